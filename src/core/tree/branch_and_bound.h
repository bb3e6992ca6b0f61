// The solver `branch-and-bound`: the root's bound, then a tree in which a row or a column takes each of its partners.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bound/dual_ascent.h"
#include "tree/tree_state.h"

namespace blindmatch {

struct BranchAndBoundOptions {
    DualAscentOptions root;                          // target and threads hold for the tree as well
    std::size_t proof_limit = std::size_t{1} << 30;  // bytes; beyond, the proof is dropped and the result kept
    std::size_t open_limit = std::size_t{4} << 30;   // of the open nodes' duals; beyond, the search is depth first
    std::optional<std::int64_t> node_limit;          // ends the run; not a clock, so that seeds repeat
    double cost_limit = -std::numeric_limits<double>::infinity();  // a permutation that costs no more ends the run
    bool use_symmetry = false;                                     // skip children that a symmetry maps to a sibling
    double checkpoint_interval = kInfinity;  // seconds from the root to the first checkpoint; infinite: none is kept
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

// A tree whose open nodes are worked on elsewhere: it hands out pieces of itself and takes back what became of them.
class SharedTree {
 public:
    // What `branch_and_bound` left open.
    SharedTree(const Problem& problem, const BranchAndBoundOptions& options, TreeResult root);

    // The `count` open nodes with the lowest bounds, as a state of their own, and a number for it. Nodes that need no
    // more work are dropped first; the state is empty if none is left.
    std::pair<std::int64_t, std::string> take(std::size_t count);
    // What `grow` made of a piece. Throws std::invalid_argument if that is no state of this problem; the piece is then
    // still out.
    void absorb(std::int64_t number, const std::string& bytes);
    // The piece was lost: its nodes are open again.
    void give_back(std::int64_t number);

    double cost() const { return state_.cost; }
    double bound() const;
    std::int64_t nodes() const { return state_.nodes; }
    std::size_t open() const { return state_.open.size(); }
    std::size_t proof_nodes() const { return state_.proof.size(); }
    const std::vector<int>& permutation() const { return state_.permutation; }

    // The state as if all pieces had been given back; `branch_and_bound` goes on from there as well.
    std::string encoded() const;
    // Everything, to look at; the tree is empty afterwards. The caller says why it ended.
    TreeResult finish(BoundStatus status);

 private:
    struct Piece {
        std::vector<OpenNode> nodes;
        std::vector<int> anchors;  // places in the whole proof, for those in the piece's
    };

    const Problem& problem_;
    BranchAndBoundOptions options_;
    std::uint64_t fingerprint_;
    TreeState state_;
    std::map<std::int64_t, Piece> out_;
    std::int64_t next_number_ = 0;

    double goal() const { return options_.root.target.of(state_.cost); }
};

// For a worker: the piece after at most `options.node_limit` nodes, or when `stop` says so.
[[nodiscard]] std::string grow_piece(const Problem& problem, const BranchAndBoundOptions& options,
                                     const std::string& piece, Stop& stop);

}  // namespace blindmatch
