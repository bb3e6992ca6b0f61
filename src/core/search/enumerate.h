// Every permutation, with pruning: the exact solver for small problems, and the reference that the others are tested
// against.
#pragma once

#include <cstdint>

#include "base/problem.h"
#include "base/stop.h"
#include "search/two_opt.h"

namespace blindmatch {

// The optimum if `completed`, else the best so far. Of several optimal permutations it always returns the same,
// whatever the number of threads. Meant for n <= 12: n = 10 takes at most 0.3 s, n = 12 at most half a minute. `seed`
// is that of the short 2-opt that gives the first incumbent; it never changes the cost.
[[nodiscard]] SearchResult enumerate(const Problem& problem, std::uint64_t seed, int threads, Stop& stop,
                                     const Progress& progress = {});

}  // namespace blindmatch
