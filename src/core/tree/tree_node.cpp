#include <algorithm>

#include "bound/dual_ascent.h"
#include "search/search.h"
#include "tree/tree_state.h"

namespace blindmatch {
namespace {

std::vector<int> without(const std::vector<int>& values, int position) {
    std::vector<int> rest = values;
    rest.erase(rest.begin() + position);
    return rest;
}

// Drops plane `drop`, row `row` and column `column` of an n x n x n array.
std::vector<float> without_pair(const std::vector<float>& values, int n, int drop, int row, int column) {
    const GridView<const float, 3> lines{values.data(), {n, n, n}};
    std::vector<float> rest;
    rest.reserve(values.size());
    for (int k = 0; k < n; ++k) {
        if (k == drop) continue;
        for (int i = 0; i < n; ++i) {
            if (i == row) continue;
            const float* line = lines.row(k, i);
            rest.insert(rest.end(), line, line + column);
            rest.insert(rest.end(), line + column + 1, line + n);
        }
    }
    return rest;
}

// The assignments without row `row` and column `column`. Whoever held that column takes what the row held.
std::vector<std::uint16_t> without_pair(const std::vector<std::uint16_t>& assignments, int n, int row, int column) {
    const GridView<const std::uint16_t, 3> lines{assignments.data(), {n, n, n}};
    std::vector<std::uint16_t> rest;
    rest.reserve(assignments.size());
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) {
            if (i == row || j == column) continue;
            const std::uint16_t* old = lines.row(i, j);
            for (int k = 0; k < n; ++k) {
                if (k == row) continue;
                const int l = old[k] == column ? old[row] : old[k];
                rest.push_back(static_cast<std::uint16_t>(l >= n || l == column ? n - 1 : l - (l > column)));
            }
        }
    }
    return rest;
}

Grid<double, 2> part(const Grid<double, 2>& matrix, const std::vector<int>& rows, const std::vector<int>& columns) {
    Grid<double, 2> picked({rows.size(), columns.size()});
    for (std::size_t i = 0; i < rows.size(); ++i) {
        for (std::size_t j = 0; j < columns.size(); ++j) picked(i, j) = matrix(rows[i], columns[j]);
    }
    return picked;
}

}  // namespace

BranchedNode make_child(const OpenNode& open) {
    const BranchedNode& parent = *open.parent;
    const int n = static_cast<int>(parent.rows.size());
    BranchedNode child;
    child.rows = without(parent.rows, open.row);
    child.columns = without(parent.columns, open.column);
    child.fixed = parent.fixed;
    child.fixed.emplace_back(parent.rows[open.row], parent.columns[open.column]);
    const GridView<const std::uint8_t, 2> forbidden{parent.forbidden.data(), {n, n}};
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) {
            if (i != open.row && j != open.column) child.forbidden.push_back(forbidden(i, j));
        }
    }
    child.duals.n = n - 1;
    child.duals.u = without_pair(parent.duals.u, n, open.row, open.row, open.column);
    child.duals.v = without_pair(parent.duals.v, n, open.column, open.row, open.column);
    if (!parent.assignments.empty()) child.assignments = without_pair(parent.assignments, n, open.row, open.column);
    return child;
}

Problem reduced_problem(const Problem& problem, const BranchedNode& node) {
    const int n = static_cast<int>(node.rows.size());
    Problem reduced;
    reduced.n = n;
    reduced.constant = problem.constant;
    for (std::size_t s = 0; s < node.fixed.size(); ++s) {
        const auto [i, j] = node.fixed[s];
        reduced.constant += problem.linear(i, j);
        for (std::size_t t = s + 1; t < node.fixed.size(); ++t) {
            reduced.constant += problem.pair_cost(i, j, node.fixed[t].first, node.fixed[t].second);
        }
    }
    for (const Factor& f : problem.factors) {
        reduced.factors.push_back({part(f.source, node.rows, node.rows), part(f.target, node.columns, node.columns)});
    }
    reduced.linear = part(problem.linear, node.rows, node.columns);
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) {
            double& cost = reduced.linear(i, j);
            for (const auto& [k, l] : node.fixed) cost += problem.pair_cost(node.rows[i], node.columns[j], k, l);
        }
    }
    reduced.forbidden = node.forbidden;
    return reduced;
}

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
