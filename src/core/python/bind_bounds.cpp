// The fast bounds for Python: dual ascent and branch and bound.
#include <nanobind/stl/optional.h>

#include <ctime>
#include <optional>

#include "bound/bounder.h"
#include "bound/dense_sweeps.h"
#include "bound/dual_ascent.h"
#include "python/bind.h"
#include "tree/branch_and_bound.h"

void bind_bounds(nb::module_& m);

namespace {

const char* name_of(BoundStatus status) {
    switch (status) {
        case BoundStatus::optimal:
            return "optimal";
        case BoundStatus::time_limit:
            return "time_limit";
        case BoundStatus::interrupted:
            return "interrupted";
        case BoundStatus::stalled:
            return "stalled";
    }
    return "stalled";
}

// A stage in the core's order, without a copy: (u, v, column duals, forbidden).
nb::tuple to_tuple(Stage stage) {
    const int n = stage.n;
    return nb::make_tuple(to_numpy(std::move(stage.u), n, n, n), to_numpy(std::move(stage.v), n, n, n),
                          to_numpy(std::move(stage.beta), n), to_numpy(std::move(stage.forbidden), n, n));
}

nb::list to_list(std::vector<Stage> stages) {
    nb::list list;
    for (Stage& stage : stages) list.append(to_tuple(std::move(stage)));
    return list;
}

DualAscentOptions options_of(double granularity, std::size_t memory_limit, bool relaxation, std::uint64_t seed,
                             int threads) {
    DualAscentOptions options;
    options.granularity = granularity;
    options.memory_limit = memory_limit;
    options.use_relaxation = relaxation;
    options.seed = seed;
    options.threads = threads;
    return options;
}

// (parent, (row, column), stages, (side, index), skipped children), with -1 where there is none.
nb::tuple to_tuple(ProofNode node) {
    nb::list skipped;
    for (const SkippedChild& child : node.skipped)
        skipped.append(nb::make_tuple(child.skipped, child.sibling, child.symmetry));
    return nb::make_tuple(node.parent, nb::make_tuple(node.row, node.column), to_list(std::move(node.stages)),
                          nb::make_tuple(node.line < 0      ? -1
                                         : node.line_is_row ? 0
                                                            : 1,
                                         node.line),
                          skipped);
}

}  // namespace

void bind_bounds(nb::module_& m) {
    m.def(
        "dual_ascent",
        [](const Problem& problem, double granularity, std::size_t memory_limit, bool relaxation, std::uint64_t seed,
           int threads, const Indices& initial, const std::optional<std::pair<Cube, Cube>>& start, nb::object budget) {
            Run run(std::move(budget));
            DualAscentOptions options = options_of(granularity, memory_limit, relaxation, seed, threads);
            Stage first;
            if (start) {
                first.n = problem.n;
                first.u = core_order<float, float>(start->first.data(), problem.n);
                first.v = core_order<float, float>(start->second.data(), problem.n);
                options.start = &first;
            }
            long steps = 0;
            BoundResult result;
            {
                nb::gil_scoped_release release;
                result = dual_ascent(
                    problem, options, {initial.data(), initial.data() + initial.size()}, run.stop,
                    [&](const BoundProgress& now) { run.report(now.bound, now.cost, ++steps, now.proof_size); });
            }
            const std::size_t n = result.permutation.size();
            return nb::make_tuple(to_numpy(std::move(result.permutation), n), name_of(result.status),
                                  to_list(std::move(result.stages)));
        },
        nb::arg("problem"), nb::arg("granularity"), nb::arg("memory_limit"), nb::arg("relaxation"), nb::arg("seed"),
        nb::arg("threads"), nb::arg("initial"), nb::arg("start").none(), nb::arg("budget"),
        "The level-1 RLT bound by sweeps and a first-order method: (permutation, status, stages).");
    m.def(
        "dense_sweeps",
        [](const Floats& pairs, const Matrix& linear, const Mask& forbidden, int count, double gain, int threads,
           nb::object budget) {
            const int n = static_cast<int>(linear.shape(0));
            const std::size_t side = static_cast<std::size_t>(n) * n;
            if (linear.shape(1) != linear.shape(0) || forbidden.shape(0) != linear.shape(0) ||
                forbidden.shape(1) != linear.shape(0) || pairs.shape(0) != side || pairs.shape(1) != side)
                throw nb::value_error("pairs, linear and forbidden do not fit each other");
            Run run(std::move(budget));
            const std::vector<std::uint8_t> mask(forbidden.data(), forbidden.data() + side);
            Stage stage;
            {
                nb::gil_scoped_release release;
                ThreadPool pool(threads);
                stage = dense_sweeps({n, pairs.data(), linear.data(), mask.data()}, count, gain, pool, run.stop);
            }
            return nb::make_tuple(to_numpy(std::move(stage.u), n, n, n), to_numpy(std::move(stage.v), n, n, n),
                                  to_numpy(std::move(stage.beta), n));
        },
        nb::arg("pairs"), nb::arg("linear"), nb::arg("forbidden"), nb::arg("count"), nb::arg("gain"),
        nb::arg("threads"), nb::arg("budget"),
        "Hahn-Grant sweeps on dense pair costs of about 1: the duals u[k][i][j] and v[l][i][j], and column duals.");
    m.def(
        "time_sweeps",
        [](const Problem& problem, int count) {
            nb::gil_scoped_release release;
            ThreadPool pool(1);
            const auto all = static_cast<std::size_t>(problem.n) * problem.n;
            Stop total;
            Bounder bounder(problem, std::vector<std::uint8_t>(all, 0), nullptr, pool, total);
            std::vector<double> seconds;
            const std::clock_t start = std::clock();
            for (int sweep = 0; sweep < count; ++sweep) {
                bounder.sweep({}, total);
                seconds.push_back(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
            }
            return seconds;
        },
        nb::arg("problem"), nb::arg("count"),
        "For benchmarks: CPU seconds from the start of the first sweep to the end of each.");
    m.def(
        "branch_and_bound",
        [](const Problem& problem, double granularity, std::size_t memory_limit, std::size_t proof_limit, bool symmetry,
           const std::string& checkpoint, double checkpoint_interval, std::uint64_t seed, int threads,
           const Indices& initial, nb::object budget) {
            Run run(std::move(budget));
            BranchAndBoundOptions options;
            options.use_symmetry = symmetry;
            options.checkpoint = checkpoint;
            options.checkpoint_interval = checkpoint_interval;
            options.root = options_of(granularity, memory_limit, true, seed, threads);
            options.proof_limit = proof_limit;
            TreeResult result;
            {
                nb::gil_scoped_release release;
                result = branch_and_bound(
                    problem, options, {initial.data(), initial.data() + initial.size()}, run.stop,
                    [&](const TreeProgress& now) { run.report(now.bound, now.cost, now.nodes, now.proof_size); });
            }
            nb::list proof;
            for (ProofNode& node : result.proof) proof.append(to_tuple(std::move(node)));
            const std::size_t n = result.permutation.size();
            nb::list symmetries;
            for (Symmetry& s : result.symmetries)
                symmetries.append(nb::make_tuple(s.of_rows ? 0 : 1, to_numpy(std::move(s.image), problem.n)));
            return nb::make_tuple(to_numpy(std::move(result.permutation), n), name_of(result.status), result.bound,
                                  result.nodes, proof, symmetries, result.checkpoint_error);
        },
        nb::arg("problem"), nb::arg("granularity"), nb::arg("memory_limit"), nb::arg("proof_limit"),
        nb::arg("symmetry"), nb::arg("checkpoint"), nb::arg("checkpoint_interval"), nb::arg("seed"), nb::arg("threads"),
        nb::arg("initial"), nb::arg("budget"),
        "Branch and bound on the dual ascent: (permutation, status, bound, nodes, proof tree or nothing, symmetries, "
        "why "
        "the checkpoint could not be written).");
}
