// Subset selection for Python.
#include <algorithm>
#include <functional>

#include "python/bind.h"
#include "subsets/subsets.h"

namespace {

using IndexMatrix = nb::ndarray<const int, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

SubsetProblem make_problem(const Matrix& cost, int size) {
    const int n = side_of("cost", cost);
    return SubsetProblem(cost.data(), n, in_range("size", size, 1, n));
}

// Sorted subsets of 0 .. n - 1.
std::vector<Subset> to_subsets(const IndexMatrix& rows, const SubsetProblem& problem) {
    std::vector<Subset> subsets;
    const auto size = static_cast<std::size_t>(problem.size);
    if (rows.shape(0) > 0 && rows.shape(1) != size) throw std::invalid_argument("known: expected (m, size)");
    for (std::size_t s = 0; s < rows.shape(0); ++s) {
        Subset subset(rows.data() + s * size, rows.data() + (s + 1) * size);
        if (std::ranges::adjacent_find(subset, std::greater_equal<>()) != subset.end() || subset.front() < 0 ||
            subset.back() >= problem.n)
            throw std::invalid_argument("known: expected ascending indices below " + std::to_string(problem.n));
        subsets.push_back(std::move(subset));
    }
    return subsets;
}

nb::ndarray<nb::numpy, int, nb::ndim<2>> to_rows(const std::vector<Subset>& subsets) {
    std::vector<int> rows;
    for (const Subset& subset : subsets) rows.insert(rows.end(), subset.begin(), subset.end());
    return to_numpy(std::move(rows), subsets.size(), subsets.empty() ? 0 : subsets[0].size());
}

}  // namespace

void bind_subsets(nb::module_& m) {
    nb::class_<SubsetResult>(m, "SubsetResult", "The best subsets found.")
        .def_prop_ro(
            "subsets", [](const SubsetResult& self) { return to_rows(self.subsets); }, nb::rv_policy::move,
            "One subset a row.")
        .def_ro("lower_bound", &SubsetResult::lower_bound, "-inf unless exact_subsets found it.")
        .def_ro("completed", &SubsetResult::completed, "False if the budget cut the search short.");
    m.def(
        "search_subsets",
        [](const Matrix& cost, int size, std::size_t k, std::uint64_t seed, std::int64_t restarts,
           std::int64_t iterations, int threads, CoreBudget budget) {
            const SubsetProblem problem = make_problem(cost, size);
            const SubsetSearchOptions options{in_range("k", k, 1), seed, in_range("restarts", restarts, 1),
                                              in_range("iterations", iterations, 0), thread_count(threads)};
            return run_with(std::move(budget), [&](Run& run) { return search_subsets(problem, options, run.stop); });
        },
        "cost"_a, nb::kw_only(), "size"_a, "k"_a, "seed"_a, "restarts"_a, "iterations"_a, "threads"_a, "budget"_a,
        "The k best subsets by multi-start tabu search.");
    m.def(
        "exact_subsets",
        [](const Matrix& cost, int size, std::size_t k, const IndexMatrix& known, CoreBudget budget) {
            const SubsetProblem problem = make_problem(cost, size);
            in_range("k", k, 1);
            const std::vector<Subset> start = to_subsets(known, problem);
            return run_with(std::move(budget), [&](Run& run) { return exact_subsets(problem, k, start, run.stop); });
        },
        "cost"_a, nb::kw_only(), "size"_a, "k"_a, "known"_a, "budget"_a,
        "The k best subsets by branch and bound. The rows of `known` are sorted subsets to start from.");
}
