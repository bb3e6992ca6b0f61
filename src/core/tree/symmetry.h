// Permutations of the rows, or of the columns, that leave the problem as it is: of equivalent children one is enough.
#pragma once

#include <vector>

#include "base/problem.h"

namespace blindmatch {

// image[i] is where row (or column) i goes. The costs are equal exactly, so a proof for i -> j is one for image[i] ->
// j.
struct Symmetry {
    bool of_rows = true;
    std::vector<int> image;
};

// Some symmetries other than the identity: at most `limit`, found by a search of bounded size.
std::vector<Symmetry> find_symmetries(const Problem& problem, int limit);

}  // namespace blindmatch
