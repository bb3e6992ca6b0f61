// A branch-and-bound search that can be put aside and taken up again: everything that it knows, as bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tree/branching.h"

namespace blindmatch {

// One node of the proof. Its problem has the rows and columns that are not fixed on the way from the root, ascending.
// Its bound: each stage proves min(its own bound, the pair bounds by which earlier stages forbade pairs). If it was
// branched on, min over the pairs of its line of (the child's bound if there is a child, and the node's own pair bound,
// whichever is larger) is a bound as well; a skipped child counts as its sibling.
struct ProofNode {
    int parent = -1;
    int row = -1, column = -1;  // the pair that it fixes, original indices; -1 at the root
    std::vector<Stage> stages = {};
    int line = -1;  // the original index of the row or column that its children fix; -1: a leaf
    bool line_is_row = true;
    std::vector<SkippedChild> skipped = {};
};

struct TreeState {
    bool root_done = false;  // false: only the root's duals (the last stage of proof[0]) and the incumbent count
    std::vector<int> permutation;
    double cost = 0.0;
    double root_bound = -kInfinity;
    double closed_bound = kInfinity;  // of everything that needs no further work
    std::int64_t nodes = 0, next_id = 0;
    bool proof_dropped = false;
    std::vector<ProofNode> proof = {};  // the root first; empty if it was dropped
    std::vector<Symmetry> symmetries;   // that the proof uses
    std::vector<OpenNode> open;
    std::size_t proof_bytes = 0;  // of the stages of the proof; in no file

    // Drops the whole proof if it takes more than `limit` bytes now.
    void add_to_proof(ProofNode node, std::size_t limit);
    void drop_proof();
};

// Memory of the duals.
std::size_t bytes_of(const Stage& stage);

// A number that tells problems (and what counts as solved) apart.
std::uint64_t fingerprint(const Problem& problem, const Target& target);

// The state as bytes: what a checkpoint holds, and what goes to another process.
[[nodiscard]] std::string encode_state(const TreeState& state, std::uint64_t fingerprint);

// Throws std::invalid_argument if the bytes are damaged or belong to another problem, whose symmetries are given: what
// they say of them must be that. `name` is what the error calls them.
[[nodiscard]] TreeState decode_state(std::string_view bytes, const std::string& name, const Problem& problem,
                                     const std::vector<Symmetry>& symmetries, std::uint64_t fingerprint);

// Whether a state that was read can be used at all: every size and every index in it, before anything relies on them.
// The file may come from anybody. What it claims of bounds is another matter: the proof is checked in the end.
[[nodiscard]] bool is_consistent(const TreeState& state, const Problem& problem);

}  // namespace blindmatch
