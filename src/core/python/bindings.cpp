// The module: problems, assignment problems, the paper's ascent and the searches.
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "bound/hahn_grant.h"
#include "python/bind.h"

namespace {

template <class T, class Array>
Grid<T, 2> copy_of(const Array& matrix, int n, const char* name) {
    if (matrix.shape(0) != static_cast<std::size_t>(n) || matrix.shape(1) != matrix.shape(0))
        throw std::invalid_argument(std::string(name) + ": expected a square matrix, all of one size");
    return {{n, n}, {matrix.data(), matrix.data() + matrix.size()}};
}

double largest(const Grid<double, 2>& matrix) {
    double most = 0.0;
    for (const double x : matrix.values) most = std::isnan(x) ? INFINITY : std::max(most, std::abs(x));
    return most;
}

// The solvers add and compare costs, so no sum may overflow.
void refuse_huge(const Problem& problem) {
    const double n = problem.n;
    double sum = std::abs(problem.constant) + n * largest(problem.linear);
    for (const Factor& f : problem.factors) sum += 2 * n * n * largest(f.source) * largest(f.target);
    if (!(sum < 1e300))
        throw std::invalid_argument("factors, linear, constant: expected finite sums of costs below 1e300");
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
    nb::class_<Problem>(m, "Problem", "An assignment problem in the normal form: see base/problem.h.")
        .def(
            "__init__",
            [](Problem* self, const std::vector<std::pair<Matrix, Matrix>>& factors, const Matrix& linear,
               double constant, const std::optional<Mask>& forbidden) {
                Problem problem;
                const int n = in_range("n", static_cast<int>(linear.shape(0)), 1);
                problem.n = n;
                if (factors.empty()) throw std::invalid_argument("factors: expected at least one pair");
                for (const auto& [source, target] : factors)
                    problem.factors.push_back(
                        {copy_of<double>(source, n, "source"), copy_of<double>(target, n, "target")});
                problem.linear = copy_of<double>(linear, n, "linear");
                problem.constant = constant;
                if (forbidden) problem.forbidden = copy_of<std::uint8_t>(*forbidden, n, "forbidden").values;
                refuse_huge(problem);
                new (self) Problem(std::move(problem));
            },
            "factors"_a, "linear"_a, "constant"_a, "forbidden"_a = nb::none());
}

struct LapSolution {
    std::vector<int> columns;
    std::vector<double> u, v;
    bool feasible;
};

void bind_lap(nb::module_& m) {
    nb::class_<LapSolution>(m, "LapSolution", "Dual variables u[i] + v[j] <= cost[i, j], tight on the assignment.")
        .def_prop_ro("columns", view<LapSolution>(&LapSolution::columns),
                     "The column of each row; all -1 if not feasible.")
        .def_prop_ro("u", view<LapSolution>(&LapSolution::u))
        .def_prop_ro("v", view<LapSolution>(&LapSolution::v))
        .def_ro("feasible", &LapSolution::feasible, "Whether an assignment avoids all infinite costs.");
    m.def(
        "solve_lap",
        [](const Matrix& cost, const std::string& method, double epsilon, const std::optional<Indices>& warm) {
            const int n = side_of("cost", cost);
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
        "cost"_a, "method"_a = "jonker-volgenant", "epsilon"_a = 0.0, "warm"_a = nb::none(),
        "Solve a linear assignment problem.");
}

void refuse_taken(HahnGrant& ascent) {
    if (ascent.duals().u.values.empty()) throw std::invalid_argument("the duals were taken, which ended the ascent");
}

void bind_hahn_grant(nb::module_& m) {
    nb::class_<HahnGrant>(m, "HahnGrant", "The paper's Algorithm 2 (factorized), or 1: one sweep after the other.")
        .def(
            "__init__",
            [](HahnGrant* self, const Problem& problem, bool factorized, const std::string& lap, bool evaluate_laps,
               int threads) {
                new (self) HahnGrant(problem, factorized, lap_method(lap), evaluate_laps, thread_count(threads));
            },
            "problem"_a, nb::kw_only(), "factorized"_a, "lap"_a, "evaluate_laps"_a, "threads"_a)
        .def(
            "sweep",
            [](HahnGrant& self, CoreBudget budget) {
                refuse_taken(self);
                return run_with(std::move(budget), [&](Run& run) { return self.sweep(run.stop); });
            },
            "budget"_a, "One pass over all subproblems; False if it was cut short.")
        .def(
            "offer",
            [](HahnGrant& self, const Indices& permutation) {
                Problem any;  // every pair is allowed
                any.n = self.size();
                if (!is_feasible(any, to_vector(permutation)))
                    throw std::invalid_argument("permutation: expected a permutation of the problem's size");
                self.offer(permutation.data());
            },
            "permutation"_a)
        .def_prop_ro("bound", &HahnGrant::bound)
        .def_prop_ro("cost", &HahnGrant::cost)
        .def_prop_ro(
            "permutation",
            [](const HahnGrant& self) { return to_numpy(self.permutation(), self.permutation().size()); },
            nb::rv_policy::move)
        .def(
            "take_duals",
            [](HahnGrant& self) {
                refuse_taken(self);
                auto& [u, v] = self.duals();
                return HahnGrantStage{self.size(), std::move(u.values), std::move(v.values), self.column_duals(),
                                      std::vector<std::uint8_t>(Shape<2>(self.size(), self.size()).size())};
            },
            "The duals, without a copy: the ascent ends with this.");
}

std::vector<std::vector<int>> copy_of(const std::vector<Indices>& permutations) {
    std::vector<std::vector<int>> copies;
    for (const Indices& p : permutations) copies.push_back(to_vector(p));
    return copies;
}

void bind_searches(nb::module_& m) {
    nb::class_<SearchResult>(m, "SearchResult", "What two_opt, tabu or enumerate found.")
        .def_prop_ro("permutation", view<SearchResult>(&SearchResult::permutation),
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
            options.kicks = in_range("kicks", kicks, 0);
            options.threads = thread_count(threads);
            options.initial = copy_of(initial);
            return run_with(std::move(budget),
                            [&](Run& run) { return two_opt(problem, options, run.stop, run.progress()); });
        },
        "problem"_a, nb::kw_only(), "seed"_a = 0, "restarts"_a = 1, "kicks"_a = 0, "threads"_a = 1, "initial"_a,
        "budget"_a, "Multi-start 2-swap local search.");
    m.def(
        "tabu",
        [](const Problem& problem, std::uint64_t seed, std::int64_t streams, std::int64_t iterations, int threads,
           double target, const std::vector<Indices>& initial, SearchBudget budget) {
            TabuOptions options;
            options.seed = seed;
            options.streams = in_range("streams", streams, 0, 1 << 20);  // a result each
            options.iterations = in_range("iterations", iterations, 0);
            options.threads = thread_count(threads);
            options.target = target;
            options.initial = copy_of(initial);
            return run_with(std::move(budget),
                            [&](Run& run) { return tabu(problem, options, run.stop, run.progress()); });
        },
        "problem"_a, nb::kw_only(), "seed"_a, "streams"_a, "iterations"_a, "threads"_a, "target"_a, "initial"_a,
        "budget"_a, "Iterated tabu search; iterations=0 means until the budget ends.");
    m.def(
        "enumerate",
        [](const Problem& problem, std::uint64_t seed, int threads, SearchBudget budget) {
            thread_count(threads);
            return run_with(std::move(budget),
                            [&](Run& run) { return enumerate(problem, seed, threads, run.stop, run.progress()); });
        },
        "problem"_a, nb::kw_only(), "seed"_a, "threads"_a, "budget"_a, "Every permutation, with pruning.");
}

}  // namespace

NB_MODULE(_core, m) {
    m.doc() = "The C++ core of blindmatch.";
    bind_problem(m);
    bind_lap(m);
    bind_proofs(m);
    bind_hahn_grant(m);
    bind_searches(m);
    bind_bounds(m);
    bind_subsets(m);
}
