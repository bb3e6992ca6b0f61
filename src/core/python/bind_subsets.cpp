// Subset selection for Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>

#include "subsets/subsets.h"

namespace nb = nanobind;
using namespace blindmatch;

void bind_subsets(nb::module_& m);

namespace {

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using IndexMatrix = nb::ndarray<const int, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

SubsetProblem make_problem(const Matrix& cost, int size) {
    const int n = static_cast<int>(cost.shape(0));
    if (cost.shape(1) != cost.shape(0)) throw std::invalid_argument("cost: expected a square matrix");
    if (size < 1 || size > n) throw std::invalid_argument("size: expected 1..n");
    return SubsetProblem(cost.data(), n, size);
}

// One subset a row.
nb::ndarray<nb::numpy, int> to_numpy(const std::vector<Subset>& subsets, int size) {
    auto* owned = new std::vector<int>();
    nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<int>*>(p); });
    for (const Subset& subset : subsets) owned->insert(owned->end(), subset.begin(), subset.end());
    return nb::ndarray<nb::numpy, int>(owned->data(), {subsets.size(), static_cast<std::size_t>(size)}, owner);
}

// Runs `body(stop)` without Python's lock. Ctrl-C stops it, and the budget keeps the exception.
template <class Body>
SubsetResult run(const nb::object& budget, const Body& body) {
    Stop stop(nb::cast<double>(budget.attr("remaining")), [&budget] {
        nb::gil_scoped_acquire lock;
        if (PyErr_CheckSignals() == 0) return nb::cast<bool>(budget.attr("orphaned"));
        nb::python_error error;
        budget.attr("fail")(error.value());
        return true;
    });
    nb::gil_scoped_release release;
    return body(stop);
}

}  // namespace

void bind_subsets(nb::module_& m) {
    m.def(
        "search_subsets",
        [](const Matrix& cost, int size, std::size_t k, std::uint64_t seed, long restarts, long iterations, int threads,
           const nb::object& budget) {
            const SubsetProblem problem = make_problem(cost, size);
            const SubsetSearchOptions options{k, seed, restarts, iterations, threads};
            const SubsetResult result = run(budget, [&](Stop& stop) { return search_subsets(problem, options, stop); });
            return nb::make_tuple(to_numpy(result.subsets, size), result.completed);
        },
        nb::arg("cost"), nb::arg("size"), nb::arg("k"), nb::arg("seed"), nb::arg("restarts"), nb::arg("iterations"),
        nb::arg("threads"), nb::arg("budget"), "Multi-start tabu search: (the k best subsets found, completed).");
    m.def(
        "exact_subsets",
        [](const Matrix& cost, int size, std::size_t k, const IndexMatrix& known, const nb::object& budget) {
            const SubsetProblem problem = make_problem(cost, size);
            if (static_cast<int>(known.shape(1)) != size) throw std::invalid_argument("known: expected (m, size)");
            std::vector<Subset> start;
            for (std::size_t s = 0; s < known.shape(0); ++s) {
                start.emplace_back(known.data() + s * size, known.data() + (s + 1) * size);
            }
            const SubsetResult result = run(budget, [&](Stop& stop) { return exact_subsets(problem, k, start, stop); });
            return nb::make_tuple(to_numpy(result.subsets, size), result.lower_bound, result.completed);
        },
        nb::arg("cost"), nb::arg("size"), nb::arg("k"), nb::arg("known"), nb::arg("budget"),
        "Branch and bound: (the k best subsets, lower bound, completed). The rows of `known` are sorted subsets.");
}
