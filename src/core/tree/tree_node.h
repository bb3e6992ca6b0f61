// Nodes of the branch-and-bound tree: what a child inherits, how its smaller problem is made, and how it is bounded.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bound/bound_proof.h"

namespace blindmatch {

// A node that was bounded and branched on. Its children share it. Rows and columns of its problem are those of the
// original problem that are still free, in ascending order.
struct BranchedNode {
    std::vector<int> rows, columns;
    std::vector<std::pair<int, int>> fixed;  // original indices
    std::vector<std::uint8_t> forbidden;     // rows x columns
    Stage duals;                             // where the children start
    std::vector<std::uint16_t> assignments;  // of the subproblems (see Sweeps); empty: none
    int proof = -1;                          // its place in the proof tree
};

// A child that waits for its turn: fix (row, column) of the parent's problem.
struct OpenNode {
    double bound;     // the parent's pair bound
    std::int64_t id;  // order of creation
    int row, column;
    std::shared_ptr<const BranchedNode> parent;
};

// The parent with `open.row -> open.column` fixed; its duals restricted to the free rows and columns.
[[nodiscard]] BranchedNode make_child(const OpenNode& open);

// The problem of the free rows and columns: costs with the fixed pairs become linear.
[[nodiscard]] Problem reduced_problem(const Problem& problem, const BranchedNode& node);

// One step of the tree: an open node that was bounded, and the better permutations met on the way.
struct Expansion {
    bool whole = false;  // false: `stop` cut it short, and only the permutation below is valid
    BranchedNode node;
    std::vector<Stage> stages;       // empty if one permutation was left
    std::vector<double> pair_bound;  // of the node's own problem; empty if one permutation was left
    double bound = kInfinity;
    std::vector<int> permutation;  // the best below `cost` that was met; empty if none was
    double cost;
};

// `cost` is that of the incumbent. The result depends on the arguments alone, unless `stop` cut it short.
[[nodiscard]] Expansion expand(const Problem& problem, const Target& target, const OpenNode& open, double cost,
                               ThreadPool& pool, Stop& stop);

}  // namespace blindmatch
