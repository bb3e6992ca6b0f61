#include <algorithm>
#include <cmath>

#include "search/search.h"
#include "tree/tree_state.h"

namespace blindmatch {
namespace {

bool in_range(int index, std::size_t end) { return index >= 0 && static_cast<std::size_t>(index) < end; }

bool is_permutation(const std::vector<int>& values, int n) {
    std::vector<char> seen(n, 0);
    for (const int value : values) {
        if (!in_range(value, n) || seen[value]) return false;
        seen[value] = 1;
    }
    return static_cast<int>(values.size()) == n;
}

// Costs of pairs are about 1, so duals are nowhere near this; and the solvers count on numbers that can be compared.
template <class Real>
bool is_moderate(const std::vector<Real>& values) {
    return std::ranges::all_of(values, [](Real x) { return std::abs(x) <= Real(1e6); });
}

bool is_stage(const Stage& stage, int n) {
    const auto m = static_cast<std::size_t>(std::max(stage.n, 0));
    return m >= 1 && m <= static_cast<std::size_t>(n) && stage.u.size() == m * m * m && stage.v.size() == m * m * m &&
           (stage.beta.size() == m || stage.beta.empty()) && stage.forbidden.size() == m * m && is_moderate(stage.u) &&
           is_moderate(stage.v) && is_moderate(stage.beta);
}

// A stage of the proof goes to Python as it is, with all its parts.
bool is_proved_stage(const Stage& stage, int n) { return is_stage(stage, n) && !stage.beta.empty(); }

bool is_proof(const TreeState& state, int n) {
    if (state.proof_dropped) return state.proof.empty();
    for (std::size_t index = 0; index < state.proof.size(); ++index) {
        const ProofNode& node = state.proof[index];
        const bool root = index == 0;
        const bool placed = root ? node.parent == -1
                                 : in_range(node.parent, index) && in_range(node.row, n) && in_range(node.column, n);
        const bool skips = std::ranges::all_of(node.skipped, [&](const SkippedChild& child) {
            return in_range(child.skipped, n) && in_range(child.sibling, n) &&
                   in_range(child.symmetry, state.symmetries.size());
        });
        const bool staged = std::ranges::all_of(node.stages, [n](const Stage& s) { return is_proved_stage(s, n); });
        if (!placed || !skips || !staged || (node.line != -1 && !in_range(node.line, n))) return false;
    }
    return !state.proof.empty();
}

// The free lines in ascending order and the fixed ones are together all of 0..n-1.
bool is_split(const std::vector<int>& free, std::vector<int> fixed, int n) {
    if (!std::ranges::is_sorted(free)) return false;
    fixed.insert(fixed.end(), free.begin(), free.end());
    return is_permutation(fixed, n);
}

bool is_branched(const BranchedNode& node, const TreeState& state, int n) {
    const std::size_t m = node.rows.size();
    std::vector<int> rows, columns;
    for (const auto& [i, j] : node.fixed) rows.push_back(i), columns.push_back(j);
    return m >= 1 && node.columns.size() == m && is_split(node.rows, rows, n) && is_split(node.columns, columns, n) &&
           node.forbidden.size() == m * m && node.duals.n == static_cast<int>(m) && is_stage(node.duals, n) &&
           (node.assignments.empty() || node.assignments.size() == m * m * m) &&
           (state.proof_dropped || in_range(node.proof, state.proof.size()));
}

}  // namespace

bool is_consistent(const TreeState& state, const Problem& problem) {
    const int n = problem.n;
    if (!is_feasible(problem, state.permutation) || !is_proof(state, n)) return false;
    if (std::isnan(state.root_bound) || std::isnan(state.closed_bound)) return false;
    return std::ranges::all_of(state.open, [&](const OpenNode& node) {
        const std::size_t m = node.parent->rows.size();
        return !std::isnan(node.bound) && in_range(node.row, m) && in_range(node.column, m) &&
               is_branched(*node.parent, state, n);
    });
}

}  // namespace blindmatch
