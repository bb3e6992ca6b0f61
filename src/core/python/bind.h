// What the binding files share. Only the files of this folder know of both the core and Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/grid.h"

namespace blindmatch {}
namespace nb = nanobind;
using namespace blindmatch;

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Mask = nb::ndarray<const bool, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Floats = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Numbers = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;  // that are written to
using Cube = nb::ndarray<const float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<const int, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void bind_bounds(nb::module_& m);
void bind_proofs(nb::module_& m);
void bind_subsets(nb::module_& m);

// Returns the value if it is in range; otherwise the ValueError names it.
template <class T>
T in_range(const char* name, T value, std::type_identity_t<T> least,
           std::type_identity_t<T> most = std::numeric_limits<T>::max()) {
    if (value < least || value > most)
        throw std::invalid_argument(std::string(name) + "=" + std::to_string(value) + "; expected " +
                                    std::to_string(least) + " to " + std::to_string(most));
    return value;
}

// No machine starts more threads.
inline int thread_count(int threads) { return in_range("threads", threads, 1, 1 << 20); }

inline std::vector<int> to_vector(const Indices& values) { return {values.data(), values.data() + values.size()}; }

// Hands a vector over to numpy without a copy.
template <class T, class... Sizes>
nb::ndarray<nb::numpy, T, nb::ndim<sizeof...(Sizes)>> to_numpy(std::vector<T> values, Sizes... sizes) {
    auto* owned = new std::vector<T>(std::move(values));
    nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return {owned->data(), {static_cast<std::size_t>(sizes)...}, owner};
}

// A read-only view of a vector that lives as long as the object whose property it is.
template <class T, class... Sizes>
auto view_of(const std::vector<T>& values, Sizes... sizes) {
    return nb::ndarray<nb::numpy, const T, nb::ndim<sizeof...(Sizes)>>(values.data(),
                                                                       {static_cast<std::size_t>(sizes)...});
}

// The getter of a property: a view of the whole vector.
template <class Self, class Base, class T>
auto view(std::vector<T> Base::* member) {
    return [member](const Self& self) { return view_of(self.*member, (self.*member).size()); };
}
