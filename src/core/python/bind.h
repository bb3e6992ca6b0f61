// What the binding files share. Only the files of this folder know of both the core and Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>

#include "base/index.h"

namespace blindmatch {}
namespace nb = nanobind;
using namespace blindmatch;

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Mask = nb::ndarray<const bool, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Floats = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using CubeOf = nb::ndarray<const T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Cube = CubeOf<float>;
using Indices = nb::ndarray<const int, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

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

// Duals in the certificate's order (U[i, j, k]) to the transposed ones of the core (u[k][i][j]).
template <class From, class To>
std::vector<To> core_order(const From* duals, int n) {
    const std::size_t plane = area(n, n);
    std::vector<To> out(plane * n);
    for (int k = 0; k < n; ++k)
        for (std::size_t ij = 0; ij < plane; ++ij) out[k * plane + ij] = static_cast<To>(duals[ij * n + k]);
    return out;
}
