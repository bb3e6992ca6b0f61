// The solver `branch-and-bound`: the root's bound, then a tree in which a row or a column takes each of its partners.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/problem.h"
#include "base/stop.h"
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
    std::filesystem::path checkpoint;   // a file to go on from, if it exists, and to write; empty: none
    double checkpoint_interval = 60.0;  // seconds
};

struct TreeResult : TreeState {
    double bound = 0.0;
    BoundStatus status = BoundStatus::stalled;
    bool full = false;                  // the node limit or the cost limit ended it
    std::string checkpoint_error = {};  // why the last attempt to write the checkpoint failed; empty: it did not
};

// With a checkpoint, the run keeps its state in that file, and the next run on the same problem continues from it. The
// caller removes the file once it has saved the result. If the file cannot be written, `checkpoint_error` says why and
// the run continues. The result does not depend on the number of threads unless `stop` cut it short; `report` is called
// from the calling thread.
[[nodiscard]] TreeResult branch_and_bound(const Problem& problem, const BranchAndBoundOptions& options,
                                          std::vector<int> initial, Stop& stop, const BoundReport& report = {});

// The symmetries that a run with these options uses; none if it uses none.
[[nodiscard]] std::vector<Symmetry> symmetries_for(const Problem& problem, const BranchAndBoundOptions& options);

// Works on the open nodes of `state` until `options.node_limit` of them are bounded, `stop` says so, or none is left.
// Returns the tree as it is then.
[[nodiscard]] TreeState grow(const Problem& problem, const BranchAndBoundOptions& options, TreeState state, Stop& stop);

}  // namespace blindmatch
