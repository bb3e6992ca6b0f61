// What the binding files share. Only the files of this folder know of both the core and Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/stop.h"
#include "search/two_opt.h"

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
nb::ndarray<nb::numpy, T> to_numpy(std::vector<T> values, Sizes... sizes) {
    auto* owned = new std::vector<T>(std::move(values));
    nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::ndarray<nb::numpy, T>(owned->data(), {static_cast<std::size_t>(sizes)...}, owner);
}

// The budget of a run, as the core sees it: a Stop that looks for Ctrl-C, and reports that may ask to stop. Exceptions
// never cross the core: the budget keeps them, and `solve` raises them when the incumbent is safe.
class Run {
 public:
    explicit Run(nb::object budget)
        : budget_(std::move(budget)),
          stop(nb::cast<double>(budget_.attr("remaining")), [this] { return signalled(); }) {
        if (nb::cast<bool>(budget_.attr("interrupted"))) stop.request();
    }

    bool signalled() {
        nb::gil_scoped_acquire lock;
        if (PyErr_CheckSignals() == 0) return nb::cast<bool>(budget_.attr("orphaned"));
        nb::python_error error;
        budget_.attr("fail")(error.value());
        return true;
    }

    // Tells the budget of a bound and a cost; whatever goes wrong there stops the run.
    template <class... More>
    void report(double bound, double cost, long iteration, More... more) {
        nb::gil_scoped_acquire lock;
        guarded([&] {
            if (!nb::cast<bool>(budget_.attr("report")(bound, cost, iteration, more...))) stop.request();
        });
    }

    // For searches: passes the best permutation so far on to the budget.
    Progress progress() {
        return [this](double cost, const std::vector<int>& permutation, double) {
            nb::gil_scoped_acquire lock;
            guarded([&] {
                budget_.attr("offer")(to_numpy(permutation, permutation.size()), cost);
                if (!nb::cast<bool>(budget_.attr("report")(nb::none(), cost))) stop.request();
            });
        };
    }

 private:
    template <class Call>
    void guarded(const Call& call) {
        try {
            call();
        } catch (nb::python_error& error) {
            budget_.attr("fail")(error.value());
            stop.request();
        }
    }

    nb::object budget_;  // before `stop`, which is built from it

 public:
    Stop stop;
};

// Duals in the certificate's order (U[i, j, k]) to the transposed ones of the core (u[k][i][j]).
template <class From, class To>
std::vector<To> core_order(const From* duals, int n) {
    const auto cell = static_cast<std::size_t>(n) * n;
    std::vector<To> out(cell * n);
    for (int k = 0; k < n; ++k)
        for (std::size_t ij = 0; ij < cell; ++ij) out[k * cell + ij] = static_cast<To>(duals[ij * n + k]);
    return out;
}
