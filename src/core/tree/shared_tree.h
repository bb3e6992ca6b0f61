// A tree whose open nodes are worked on elsewhere: it hands out pieces of itself and takes back what became of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tree/branch_and_bound.h"

namespace blindmatch {

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
