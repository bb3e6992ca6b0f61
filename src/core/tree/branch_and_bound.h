// The solver `branch-and-bound`: the root's bound, then a tree in which a row or a column takes each of its partners.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bound/dual_ascent.h"
#include "tree/tree_state.h"

namespace blindmatch {

struct BranchAndBoundOptions {
    DualAscentOptions root;                          // target and threads hold for the tree as well
    std::size_t proof_limit = std::size_t{1} << 30;  // bytes; beyond, the proof is dropped and the result kept
    std::size_t open_limit = std::size_t{4}
                             << 30;          // bytes of the open nodes' duals; beyond, the search goes depth first
    std::optional<std::int64_t> node_limit;  // ends the run; not a clock, so that seeds repeat
    double cost_limit = -std::numeric_limits<double>::infinity();  // a permutation that costs no more ends the run
    bool use_symmetry = false;                                     // skip children that a symmetry maps to a sibling
    double checkpoint_interval = kInfinity;                        // seconds from the root to the first checkpoint; infinite: none is kept
};

struct TreeResult : TreeState {
    double bound = 0.0;
    BoundStatus status = BoundStatus::stalled;
    bool full = false;  // the node limit or the cost limit ended it
};

// Keeps the state of a run, as bytes; empty if memory is too short for them. Returns the seconds until the next call.
using KeepState = std::function<double(const std::string&)>;

// `saved` is what an earlier run on this problem kept, to go on from. The result does not depend on the number of
// threads unless `stop` cut it short; `report` and `keep` are called from the calling thread.
[[nodiscard]] TreeResult branch_and_bound(const Problem& problem, const BranchAndBoundOptions& options,
                                          std::vector<int> initial, Stop& stop, const BoundReport& report = {},
                                          std::optional<std::string_view> saved = {}, const KeepState& keep = {});

// The symmetries that a run with these options uses; none if it uses none.
[[nodiscard]] std::vector<Symmetry> symmetries_for(const Problem& problem, const BranchAndBoundOptions& options);

// Works on the open nodes of `state` until `options.node_limit` of them are bounded, `stop` says so, or none is left.
// Returns the tree as it is then.
[[nodiscard]] TreeState grow(const Problem& problem, const BranchAndBoundOptions& options, TreeState state, Stop& stop);

}  // namespace blindmatch
