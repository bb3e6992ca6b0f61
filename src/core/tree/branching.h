// Which row or column to branch on, and which of its children a symmetry makes superfluous.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tree/tree_node.h"

namespace blindmatch {

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

}  // namespace blindmatch
