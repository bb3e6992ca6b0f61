// The module: problems, assignment problems, the paper's ascent and the searches.
#include <nanobind/stl/optional.h>

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>

#include "base/problem.h"
#include "bound/hahn_grant.h"
#include "lap/lap.h"
#include "python/bind.h"
#include "python/budget.h"
#include "search/enumerate.h"
#include "search/tabu.h"
#include "search/two_opt.h"

namespace {

std::vector<double> copy_of(const Matrix& matrix, int n, const char* name) {
    if (static_cast<int>(matrix.shape(0)) != n || static_cast<int>(matrix.shape(1)) != n)
        throw std::invalid_argument(std::string(name) + ": expected a square matrix, all of one size");
    return {matrix.data(), matrix.data() + matrix.size()};
}

Problem make_problem(const std::vector<std::pair<Matrix, Matrix>>& factors, const Matrix& linear, double constant,
                     const std::optional<Mask>& forbidden) {
    Problem problem;
    problem.n = static_cast<int>(linear.shape(0));
    for (const auto& [source, target] : factors)
        problem.factors.push_back({copy_of(source, problem.n, "source"), copy_of(target, problem.n, "target")});
    problem.linear = copy_of(linear, problem.n, "linear");
    problem.constant = constant;
    if (forbidden) problem.forbidden.assign(forbidden->data(), forbidden->data() + forbidden->size());
    return problem;
}

LapMethod lap_method(const std::string& name) {
    static const std::map<std::string, LapMethod> methods = {{"jonker-volgenant", LapMethod::jonker_volgenant},
                                                             {"auction", LapMethod::auction},
                                                             {"hungarian", LapMethod::hungarian}};
    const auto found = methods.find(name);
    if (found == methods.end()) throw std::invalid_argument("unknown LAP method " + name);
    return found->second;
}

void bind_problem(nb::module_& m) {
    nb::class_<Problem>(m, "Problem")
        .def(
            "__init__",
            [](Problem* self, const std::vector<std::pair<Matrix, Matrix>>& factors, const Matrix& linear,
               double constant, const std::optional<Mask>& forbidden) {
                new (self) Problem(make_problem(factors, linear, constant, forbidden));
            },
            nb::arg("factors"), nb::arg("linear"), nb::arg("constant"), nb::arg("forbidden") = nb::none())
        .def(
            "cost", [](const Problem& self, const Indices& permutation) { return self.cost(permutation.data()); },
            nb::arg("permutation"));
}

struct LapSolution {
    std::vector<int> columns;
    std::vector<double> u, v;
    bool feasible;
};

void bind_lap(nb::module_& m) {
    nb::class_<LapSolution>(m, "LapSolution", "Dual variables u[i] + v[j] <= cost[i, j], tight on the assignment.")
        .def_prop_ro(
            "columns", [](const LapSolution& self) { return view_of(self.columns, self.columns.size()); },
            "The column of each row; all -1 if not feasible.")
        .def_prop_ro("u", [](const LapSolution& self) { return view_of(self.u, self.u.size()); })
        .def_prop_ro("v", [](const LapSolution& self) { return view_of(self.v, self.v.size()); })
        .def_ro("feasible", &LapSolution::feasible, "Whether an assignment avoids all infinite costs.");
    m.def(
        "solve_lap",
        [](const Matrix& cost, const std::string& method, double epsilon, const std::optional<Indices>& warm) {
            const int n = static_cast<int>(cost.shape(0));
            if (cost.shape(1) != cost.shape(0)) throw std::invalid_argument("cost: expected a square matrix");
            Lap lap(n);
            std::vector<int> start;
            if (warm) {
                if (static_cast<int>(warm->size()) != n) throw std::invalid_argument("warm: expected n columns");
                start.assign(warm->data(), warm->data() + n);
            }
            const LapMethod how = lap_method(method);
            nb::gil_scoped_release release;
            const bool feasible = lap.solve(cost.data(), n, how, epsilon, start.empty() ? nullptr : start.data());
            return LapSolution{
                {lap.row_to_col(), lap.row_to_col() + n}, {lap.u(), lap.u() + n}, {lap.v(), lap.v() + n}, feasible};
        },
        nb::arg("cost"), nb::arg("method") = "jonker-volgenant", nb::arg("epsilon") = 0.0, nb::arg("warm") = nb::none(),
        "Solve a linear assignment problem.");
}

// The duals of the paper's ascent as a stage: like Stage, in float64.
struct HahnGrantStage {
    int n;
    std::vector<double> u, v, column_duals;
    std::vector<std::uint8_t> forbidden;
};

void bind_hahn_grant(nb::module_& m) {
    nb::class_<HahnGrantStage>(m, "HahnGrantStage", "Duals in float64, in the core's order: u[k, i, j] and v[l, i, j].")
        .def_prop_ro("u", [](const HahnGrantStage& self) { return view_of(self.u, self.n, self.n, self.n); })
        .def_prop_ro("v", [](const HahnGrantStage& self) { return view_of(self.v, self.n, self.n, self.n); })
        .def_prop_ro("column_duals", [](const HahnGrantStage& self) { return view_of(self.column_duals, self.n); })
        .def_prop_ro("forbidden", [](const HahnGrantStage& self) { return view_of(self.forbidden, self.n, self.n); });

    nb::class_<HahnGrant>(m, "HahnGrant")
        .def(
            "__init__",
            [](HahnGrant* self, const Problem& problem, bool factorized, const std::string& lap, bool evaluate_laps,
               int threads) { new (self) HahnGrant(problem, factorized, lap_method(lap), evaluate_laps, threads); },
            nb::arg("problem"), nb::kw_only(), nb::arg("factorized"), nb::arg("lap"), nb::arg("evaluate_laps"),
            nb::arg("threads"))
        .def(
            "sweep",
            [](HahnGrant& self, CoreBudget budget) {
                if (self.duals().u.empty()) throw std::logic_error("the duals were taken: no further sweep");
                Run run(std::move(budget));
                nb::gil_scoped_release release;
                return self.sweep(run.stop);
            },
            nb::arg("budget"), "One pass over all subproblems; False if it was cut short.")
        .def(
            "offer", [](HahnGrant& self, const Indices& permutation) { self.offer(permutation.data()); },
            nb::arg("permutation"))
        .def_prop_ro("bound", [](const HahnGrant& self) { return self.bound_is_valid() ? self.bound() : -INFINITY; })
        .def_prop_ro("gain", &HahnGrant::leader_gain)
        .def_prop_ro("cost", &HahnGrant::cost)
        .def_prop_ro(
            "permutation",
            [](const HahnGrant& self) { return to_numpy(self.permutation(), self.permutation().size()); },
            nb::rv_policy::move)
        .def(
            "take_duals",
            [](HahnGrant& self) {
                const int n = self.duals().n;
                std::vector<double> column_duals = self.column_duals();  // before the duals are gone
                return HahnGrantStage{n, std::move(self.duals().u), std::move(self.duals().v), std::move(column_duals),
                                      std::vector<std::uint8_t>(area(n, n), 0)};
            },
            "The duals, without a copy: the ascent ends with this.");
}

std::vector<std::vector<int>> copy_of(const std::vector<Indices>& permutations) {
    std::vector<std::vector<int>> copies;
    for (const Indices& p : permutations) copies.emplace_back(p.data(), p.data() + p.size());
    return copies;
}

// Runs a search without Python's lock; what it finds on the way goes to the budget.
template <class Search, class Options>
SearchResult run_search(Search search, const Problem& problem, const Options& options, SearchBudget budget) {
    Run run(std::move(budget));
    const Progress progress = run.progress();
    nb::gil_scoped_release release;
    return search(problem, options, run.stop, progress);
}

void bind_searches(nb::module_& m) {
    nb::class_<SearchResult>(m, "SearchResult", "What two_opt, tabu or enumerate found.")
        .def_prop_ro(
            "permutation", [](const SearchResult& self) { return view_of(self.permutation, self.permutation.size()); },
            "Empty if no permutation avoids the forbidden pairs.")
        .def_ro("cost", &SearchResult::cost)
        .def_ro("completed", &SearchResult::completed, "False if the budget cut the search short.");
    m.def(
        "two_opt",
        [](const Problem& problem, std::uint64_t seed, std::int64_t restarts, int kicks, int threads,
           const std::vector<Indices>& initial, SearchBudget budget) {
            TwoOptOptions options;
            options.seed = seed;
            options.restarts = restarts;
            options.kicks = kicks;
            options.threads = threads;
            options.initial = copy_of(initial);
            return run_search(two_opt, problem, options, std::move(budget));
        },
        nb::arg("problem"), nb::kw_only(), nb::arg("seed") = 0, nb::arg("restarts") = 1, nb::arg("kicks") = 0,
        nb::arg("threads") = 1, nb::arg("initial"), nb::arg("budget"), "Multi-start 2-swap local search.");
    m.def(
        "tabu",
        [](const Problem& problem, std::uint64_t seed, std::int64_t streams, std::int64_t iterations, int threads,
           double target, const std::vector<Indices>& initial, SearchBudget budget) {
            TabuOptions options;
            options.seed = seed;
            options.streams = streams;
            options.iterations = iterations;
            options.threads = threads;
            options.target = target;
            options.initial = copy_of(initial);
            return run_search(tabu, problem, options, std::move(budget));
        },
        nb::arg("problem"), nb::kw_only(), nb::arg("seed"), nb::arg("streams"), nb::arg("iterations"),
        nb::arg("threads"), nb::arg("target"), nb::arg("initial"), nb::arg("budget"),
        "Iterated tabu search; iterations=0 means until the budget ends.");
    m.def(
        "enumerate",
        [](const Problem& problem, std::uint64_t seed, int threads, SearchBudget budget) {
            EnumerateOptions options;
            options.seed = seed;
            options.threads = threads;
            return run_search(enumerate, problem, options, std::move(budget));
        },
        nb::arg("problem"), nb::kw_only(), nb::arg("seed"), nb::arg("threads"), nb::arg("budget"),
        "Every permutation, with pruning.");
}

}  // namespace

void bind_bounds(nb::module_& m);
void bind_proofs(nb::module_& m);
void bind_subsets(nb::module_& m);

NB_MODULE(_core, m) {
    m.doc() = "The C++ core of blindmatch.";
    bind_problem(m);
    bind_lap(m);
    bind_hahn_grant(m);
    bind_searches(m);
    bind_proofs(m);
    bind_bounds(m);
    bind_subsets(m);
}
