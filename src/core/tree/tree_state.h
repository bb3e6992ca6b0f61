// Nodes of the branch-and-bound tree, how they are bounded and branched on, and the whole tree as bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
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

// Permutations of the rows, or of the columns, that leave the problem as it is: of equivalent children one is enough.
// image[i] is where row (or column) i goes. The costs are equal exactly, so a proof for i -> j is one for image[i] ->
// j.
struct Symmetry {
    bool of_rows = true;
    std::vector<int> image;
};

// Some symmetries other than the identity: at most `limit`, found by a search of bounded size.
[[nodiscard]] std::vector<Symmetry> find_symmetries(const Problem& problem, int limit);

// A child that was skipped: `symmetry` maps the sibling's row (or column) to this one's, and keeps all that is fixed.
struct SkippedChild {
    int skipped, sibling;  // original indices on the side that the line does not name
    int symmetry;          // in TreeResult::symmetries
};

class Branching {
 public:
    // `symmetries` may be filled later, before the first use.
    Branching(const Problem& problem, const std::vector<Symmetry>& symmetries);

    // The children of a line that are not needed, because a symmetry that keeps all fixed pairs maps a sibling to them.
    std::vector<SkippedChild> find_skipped(const BranchedNode& node, bool line_is_row) const;

    // The line (an index into the node's rows or columns; true for a row) whose needed children promise the least work.
    std::pair<int, bool> choose_line(const BranchedNode& node, const std::vector<double>& pair_bound, double bound,
                                     double target) const;

 private:
    const std::vector<Symmetry>& symmetries_;
    int n_;
    double side_penalty_[2] = {1.0, 1.0};  // of rows, of columns
    std::vector<std::uint8_t> busy_[2];    // lines with any factor that is not zero; the others say nothing when fixed
};

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
