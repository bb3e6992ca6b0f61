#include "tree/tree_node.h"

#include "base/index.h"

namespace blindmatch {
namespace {

std::vector<int> without(const std::vector<int>& values, int position) {
    std::vector<int> rest = values;
    rest.erase(rest.begin() + position);
    return rest;
}

// Drops plane `drop`, row `row` and column `column` of an n x n x n array.
std::vector<float> without_pair(const std::vector<float>& values, int n, int drop, int row, int column) {
    std::vector<float> rest;
    rest.reserve(area(n - 1, n - 1) * (n - 1));
    for (int k = 0; k < n; ++k) {
        if (k == drop) continue;
        for (int i = 0; i < n; ++i) {
            if (i == row) continue;
            const float* line = values.data() + cell(k, i, n) * n;
            rest.insert(rest.end(), line, line + column);
            rest.insert(rest.end(), line + column + 1, line + n);
        }
    }
    return rest;
}

// The assignments without row `row` and column `column`. Whoever held that column takes what the row held.
std::vector<std::uint16_t> without_pair(const std::vector<std::uint16_t>& assignments, int n, int row, int column) {
    std::vector<std::uint16_t> rest;
    rest.reserve(area(n - 1, n - 1) * (n - 1));
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) {
            if (i == row || j == column) continue;
            const std::uint16_t* old = assignments.data() + cell(i, j, n) * n;
            for (int k = 0; k < n; ++k) {
                if (k == row) continue;
                const int l = old[k] == column ? old[row] : old[k];
                rest.push_back(static_cast<std::uint16_t>(l >= n || l == column ? n - 1 : l - (l > column)));
            }
        }
    }
    return rest;
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
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) {
            if (i != open.row && j != open.column) child.forbidden.push_back(parent.forbidden[cell(i, j, n)]);
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
    const auto at = [&problem](int i, int j) { return cell(i, j, problem.n); };
    for (std::size_t s = 0; s < node.fixed.size(); ++s) {
        const auto [i, j] = node.fixed[s];
        reduced.constant += problem.linear[at(i, j)];
        for (std::size_t t = s + 1; t < node.fixed.size(); ++t) {
            reduced.constant += problem.pair_cost(i, j, node.fixed[t].first, node.fixed[t].second);
        }
    }
    for (const Factor& f : problem.factors) {
        Factor part;
        for (int i : node.rows) {
            for (int k : node.rows) part.source.push_back(f.source[at(i, k)]);
        }
        for (int j : node.columns) {
            for (int l : node.columns) part.target.push_back(f.target[at(j, l)]);
        }
        reduced.factors.push_back(std::move(part));
    }
    for (int i : node.rows) {
        for (int j : node.columns) {
            double cost = problem.linear[at(i, j)];
            for (const auto& [k, l] : node.fixed) cost += problem.pair_cost(i, j, k, l);
            reduced.linear.push_back(cost);
        }
    }
    reduced.forbidden = node.forbidden;
    return reduced;
}

}  // namespace blindmatch
