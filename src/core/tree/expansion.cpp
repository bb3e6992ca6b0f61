#include "tree/expansion.h"

#include <algorithm>

#include "base/index.h"
#include "search/two_opt.h"

namespace blindmatch {
namespace {

constexpr int kNodeSweeps = 30;

// A node with one permutation left: its cost is its bound, whatever digits the duals have.
void finish(const Problem& problem, const Target& target, const OpenNode& open, Expansion& result) {
    const BranchedNode& node = result.node;
    std::vector<int> permutation(problem.n);
    for (const auto& [i, j] : node.fixed) permutation[i] = j;
    for (std::size_t k = 0; k < node.rows.size(); ++k) permutation[node.rows[k]] = node.columns[k];
    result.whole = true;
    if (!is_feasible(problem, permutation)) return;
    const double cost = problem.cost(permutation.data());
    const double error = target.granularity > 0.0 ? 0.0 : target.noise;
    result.bound = std::max(open.bound, cost - error);
    if (cost < result.cost) {
        result.cost = cost;
        result.permutation = std::move(permutation);
    }
}

// The leader's assignment, improved by swaps on the whole problem.
void try_assignment(const Problem& whole, const Bounder& bounder, const Problem& part, const Target& target, Stop& stop,
                    Expansion& result) {
    const std::vector<int>& assignment = bounder.sweeps().leader_assignment();
    if (!is_feasible(part, assignment) || part.cost(assignment.data()) >= target.of(result.cost)) return;
    const BranchedNode& node = result.node;
    std::vector<int> permutation(whole.n);
    for (const auto& [i, j] : node.fixed) permutation[i] = j;
    for (int i = 0; i < part.n; ++i) permutation[node.rows[i]] = node.columns[assignment[i]];
    const SearchResult found = two_opt_from(whole, permutation, stop);
    if (found.cost < result.cost) {
        result.cost = found.cost;
        result.permutation = found.permutation;
    }
}

// Sweeps until the node is closed or until it is clear that branching is cheaper. False if `stop` cut it short.
bool ascend(const Problem& whole, Bounder& bounder, const Problem& part, const Target& target, Stop& stop,
            Expansion& result) {
    double gap_before = target.of(result.cost) - bounder.hint();
    for (int sweep = 0; sweep < kNodeSweeps; ++sweep) {
        if (!bounder.sweep(stop)) return false;
        try_assignment(whole, bounder, part, target, stop, result);
        const double goal = target.of(result.cost);
        const double gap = goal - bounder.hint(), gain = gap_before - gap;
        const bool hopeless = sweep > 0 && gain * (kNodeSweeps - sweep) < 0.5 * gap;
        gap_before = gap;
        const bool last = gap <= 0.0 || hopeless || sweep + 1 == kNodeSweeps;
        const bool fixes = bounder.fixable_count(goal) >= 0.25 * bounder.allowed_count();
        if (last || fixes) {
            bounder.prove_and_fix(goal, fixes ? 0.25 : 2.0, stop);
            if (bounder.bound() >= goal) return true;
        }
        if (hopeless) break;
    }
    return bounder.bound() > -kInfinity;
}

}  // namespace

Expansion expand(const Problem& problem, const Target& target, const OpenNode& open, double cost, ThreadPool& pool,
                 Stop& stop) {
    Expansion result;
    result.cost = cost;
    result.node = make_child(open);
    BranchedNode& node = result.node;
    if (node.rows.size() <= 1) {
        finish(problem, target, open, result);
        return result;
    }
    const Problem part = reduced_problem(problem, node);
    Bounder bounder(part, node.forbidden, &node.duals, pool, stop);
    if (!node.assignments.empty()) bounder.start_assignments(std::move(node.assignments));
    result.whole = ascend(problem, bounder, part, target, stop, result);
    if (!result.whole) return result;
    result.bound = std::max(open.bound, bounder.bound());
    for (int i = 0; i < part.n; ++i) {
        for (int j = 0; j < part.n; ++j) result.pair_bound.push_back(std::max(open.bound, bounder.pair_bound(i, j)));
    }
    result.stages = bounder.take_stages();
    node.forbidden = result.stages.back().forbidden;
    node.duals = result.stages.back();
    node.assignments = bounder.sweeps().assignments();
    return result;
}

}  // namespace blindmatch
