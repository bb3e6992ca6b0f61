// The fast bounds for Python: dual ascent and branch and bound.
#include <nanobind/stl/optional.h>

#include <ctime>
#include <optional>

#include "bound/box_step.h"
#include "bound/dual_ascent.h"
#include "python/bind.h"

namespace {

std::vector<int> incumbent_of(const Indices& initial, const Problem& problem) {
    std::vector<int> permutation = to_vector(initial);
    if (!is_feasible(problem, permutation))
        throw nb::value_error("initial: expected a permutation of the problem's size without forbidden pairs");
    return permutation;
}

// What branch_and_bound found. Once Python has looked into the proof it has references to its nodes, which must then
// stay where they are.
struct Tree : TreeResult {
    bool seen = false;
};

template <class Member>
auto seen(Member member) {
    return [member](Tree& self) -> const auto& {
        self.seen = true;
        return self.*member;
    };
}

void bind_options(nb::module_& m) {
    nb::class_<Target>(m, "Target", "When a bound is good enough; see blindmatch.problem.optimality.")
        .def(nb::init<double, double, double, double, double>(), nb::kw_only(), "tolerance"_a, "granularity"_a,
             "noise"_a, "gap"_a = 0.0, "enough"_a = std::numeric_limits<double>::infinity());

    nb::class_<DualAscentOptions>(m, "DualAscentOptions", "What dual_ascent may use, and when it is done.")
        .def(
            "__init__",
            [](DualAscentOptions* self, Target target, std::size_t memory_limit, std::uint64_t seed, int threads,
               bool relaxation) {
                new (self) DualAscentOptions{target, memory_limit, seed, thread_count(threads), relaxation};
            },
            nb::kw_only(), "target"_a, "memory_limit"_a, "seed"_a, "threads"_a, "relaxation"_a = true);

    nb::class_<BranchAndBoundOptions>(m, "BranchAndBoundOptions", "Those of the root, and the limits of the tree.")
        .def(nb::init<DualAscentOptions, std::size_t, std::size_t, std::optional<std::int64_t>, double, bool, double>(),
             nb::kw_only(), "root"_a, "proof_limit"_a, "open_limit"_a = std::size_t{4} << 30,
             "node_limit"_a = nb::none(), "cost_limit"_a = -std::numeric_limits<double>::infinity(),
             "symmetry"_a = false, "checkpoint_interval"_a = kInfinity);
}

void bind_results(nb::module_& m) {
    nb::enum_<BoundStatus>(m, "BoundStatus", "Why a run ended; the caller knows which limit it was.")
        .value("optimal", BoundStatus::optimal)
        .value("time_limit", BoundStatus::time_limit)
        .value("interrupted", BoundStatus::interrupted)
        .value("stalled", BoundStatus::stalled);

    nb::class_<BoundResult>(m, "BoundResult", "What dual_ascent found.")
        .def_prop_ro("permutation", view<BoundResult>(&BoundResult::permutation))
        .def_ro("status", &BoundResult::status)
        .def_ro("bound", &BoundResult::bound)
        .def_ro("stages", &BoundResult::stages, "They prove the bound.");

    nb::class_<Tree>(m, "TreeResult", "What branch_and_bound found.")
        .def_prop_ro(
            "permutation", [](const Tree& self) { return to_numpy(self.permutation, self.permutation.size()); },
            nb::rv_policy::move)
        .def_ro("status", &Tree::status)
        .def_ro("bound", &Tree::bound)
        .def_ro("nodes", &Tree::nodes, "How many were bounded.")
        .def_ro("full", &Tree::full, "Whether node_limit or cost_limit ended the run.")
        .def_prop_ro("proof", seen(&Tree::proof), nb::rv_policy::reference_internal,
                     "The tree, the root first; empty if it outgrew proof_limit.")
        .def_prop_ro("symmetries", seen(&Tree::symmetries), nb::rv_policy::reference_internal,
                     "Those that the proof uses.");
}

nb::bytes to_bytes(const std::string& text) { return nb::bytes(text.data(), text.size()); }

SharedTree& unfinished(SharedTree& tree) {
    if (tree.permutation().empty()) throw nb::value_error("the tree was finished, and is empty");
    return tree;
}

void bind_shared_tree(nb::module_& m) {
    nb::class_<SharedTree>(m, "SharedTree", "A tree whose open nodes are worked on elsewhere, piece by piece.")
        .def(
            "__init__",
            [](SharedTree* self, const Problem& problem, const BranchAndBoundOptions& options, Tree& root) {
                if (!is_consistent(root, problem))
                    throw nb::value_error("root: expected a result for this problem, which no other tree has taken");
                if (root.seen) throw nb::value_error("root: expected a result whose proof nobody has looked at");
                new (self) SharedTree(problem, options, std::move(root));
            },
            "problem"_a, "options"_a, "root"_a, nb::keep_alive<1, 2>(),
            "What branch_and_bound left open; the result is empty afterwards.")
        .def(
            "take",
            [](SharedTree& self, std::size_t count) {
                auto [number, bytes] = unfinished(self).take(count);
                return std::pair(number, to_bytes(bytes));
            },
            "count"_a, "A piece of at most `count` open nodes: its number and its bytes, empty if none is left.")
        .def(
            "absorb",
            [](SharedTree& self, std::int64_t number, const nb::bytes& piece) {
                unfinished(self).absorb(number, std::string(piece.c_str(), piece.size()));
            },
            "number"_a, "piece"_a, "What grow_piece made of a piece.")
        .def(
            "give_back", [](SharedTree& self, std::int64_t number) { unfinished(self).give_back(number); }, "number"_a,
            "The piece was lost: its nodes are open again.")
        .def_prop_ro("cost", &SharedTree::cost)
        .def_prop_ro("bound", &SharedTree::bound)
        .def_prop_ro("nodes", &SharedTree::nodes, "How many were bounded.")
        .def_prop_ro("open", &SharedTree::open, "How many wait.")
        .def_prop_ro("proof_nodes", &SharedTree::proof_nodes, "Nodes of the proof; 0 if it was dropped.")
        .def(
            "encoded", [](SharedTree& self) { return to_bytes(unfinished(self).encoded()); },
            "The state for a checkpoint, as if no piece were out.")
        .def(
            "finish", [](SharedTree& self, BoundStatus status) { return Tree{unfinished(self).finish(status)}; },
            "status"_a, "The result; the tree is empty afterwards.");
    m.def(
        "grow_piece",
        [](const Problem& problem, const BranchAndBoundOptions& options, const nb::bytes& piece, BoundBudget budget) {
            const std::string bytes(piece.c_str(), piece.size());
            return to_bytes(
                run_with(std::move(budget), [&](Run& run) { return grow_piece(problem, options, bytes, run.stop); }));
        },
        "problem"_a, "options"_a, "piece"_a, "budget"_a,
        "Works on a piece of a SharedTree until the budget or node_limit ends it; returns what it is then.");
}

}  // namespace

void bind_bounds(nb::module_& m) {
    bind_options(m);
    bind_results(m);
    bind_shared_tree(m);
    m.def(
        "dual_ascent",
        [](const Problem& problem, DualAscentOptions options, const Indices& initial, const Stage* start,
           BoundBudget budget) {
            if (start && start->n != problem.n) throw nb::value_error("start: expected duals of the problem's size");
            options.start = start;
            std::vector<int> incumbent = incumbent_of(initial, problem);
            return run_with(std::move(budget), [&](Run& run) {
                return dual_ascent(problem, options, std::move(incumbent), run.stop, run.bound_report());
            });
        },
        "problem"_a, "options"_a, "initial"_a, "start"_a.none(), "budget"_a,
        "The level-1 RLT bound by sweeps and a first-order method.");
    m.def(
        "dense_sweeps",
        [](const Floats& pairs, const Matrix& linear, const Mask& forbidden, int count, double gain, int threads,
           CoreBudget budget) {
            const int n = in_range("n", static_cast<int>(linear.shape(0)), 1);
            thread_count(threads);
            const std::size_t side = Shape<2>(n, n).size();
            if (linear.shape(1) != linear.shape(0) || forbidden.shape(0) != linear.shape(0) ||
                forbidden.shape(1) != linear.shape(0) || pairs.shape(0) != side || pairs.shape(1) != side)
                throw nb::value_error("pairs, linear and forbidden do not fit each other");
            return run_with(std::move(budget), [&](Run& run) {
                ThreadPool pool(threads);
                return dense_sweeps({n, pairs.data(), linear.data()}, {forbidden.data(), forbidden.data() + side},
                                    count, gain, pool, run.stop);
            });
        },
        "pairs"_a, "linear"_a, "forbidden"_a, nb::kw_only(), "count"_a, "gain"_a, "threads"_a, "budget"_a,
        "Hahn-Grant sweeps on dense pair costs of about 1.");
    m.def(
        "box_step",
        [](const Numbers& state, const Numbers& point, const Floats& cost, const Floats& slack, const Floats& duals,
           const Floats& transposed, const Indices& rows, const Indices& columns, const Numbers& sums, float weight,
           float stride, std::size_t begin) {
            const std::size_t p = rows.size(), side = p + 1, equations = duals.shape(1), n = equations / 2;
            const auto is = [](const auto& array, std::size_t height, std::size_t width) {
                return array.shape(0) == height && array.shape(1) == width;
            };
            const std::size_t end = begin + slack.shape(0);
            if (!is(state, side, side) || !is(point, side, side) || !is(cost, side, side) || slack.shape(1) != side ||
                !is(duals, side, 2 * n) || !is(transposed, 2 * n, side) || !is(sums, side, 2 * n) ||
                columns.size() != p || begin > side || end > side)
                throw nb::value_error("the arrays do not fit each other");
            for (std::size_t a = 0; a < p; ++a) {
                in_range("rows", rows.data()[a], 0, static_cast<int>(n) - 1);
                in_range("columns", columns.data()[a], 0, static_cast<int>(n) - 1);
            }
            const BoxStep step{p,
                               n,
                               state.data(),
                               point.data(),
                               cost.data(),
                               slack.data(),
                               duals.data(),
                               transposed.data(),
                               rows.data(),
                               columns.data(),
                               sums.data(),
                               weight,
                               stride};
            nb::gil_scoped_release release;
            const BoxResult result = box_step(step, begin, end);
            return std::pair(result.residual, result.movement);
        },
        "state"_a, "point"_a, "cost"_a, "slack"_a, "duals"_a, "transposed"_a, "rows"_a, "columns"_a, "sums"_a,
        "weight"_a, "stride"_a, "begin"_a,
        "Rows of the box step of the splitting, from `begin` on; returns two squared norms.");
    m.def(
        "time_sweeps",
        [](const Problem& problem, int count) {
            in_range("count", count, 0, 10'000);  // nothing stops it
            nb::gil_scoped_release release;
            ThreadPool pool(1);
            Stop total;
            Bounder bounder(problem, std::vector<std::uint8_t>(problem.linear.values.size()), nullptr, pool, total);
            std::vector<double> seconds;
            const std::clock_t start = std::clock();
            for (int sweep = 0; sweep < count && bounder.sweep(total); ++sweep) {
                seconds.push_back(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
            }
            return seconds;
        },
        "problem"_a, "count"_a, "For benchmarks: CPU seconds from the start of the first sweep to the end of each.");
    m.def(
        "branch_and_bound",
        [](const Problem& problem, const BranchAndBoundOptions& options, const Indices& initial, BoundBudget budget,
           const std::optional<nb::bytes>& saved) {
            std::vector<int> incumbent = incumbent_of(initial, problem);
            std::optional<std::string_view> state;
            if (saved) state.emplace(saved->c_str(), saved->size());
            return run_with(std::move(budget), [&](Run& run) {
                return Tree{branch_and_bound(problem, options, std::move(incumbent), run.stop, run.bound_report(),
                                             state, run.keep_state())};
            });
        },
        "problem"_a, "options"_a, "initial"_a, "budget"_a, "saved"_a = nb::none(),
        "Branch and bound on the dual ascent; `saved` is the state that an earlier run kept.");
}
