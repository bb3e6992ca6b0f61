// One step of the tree: bound an open node and look for a better permutation on the way.
#pragma once

#include <vector>

#include "base/index.h"
#include "base/problem.h"
#include "base/stop.h"
#include "base/thread_pool.h"
#include "bound/bounder.h"
#include "bound/target.h"
#include "tree/tree_node.h"

namespace blindmatch {

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
