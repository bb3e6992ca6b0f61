// Every permutation, with pruning: the exact solver for small problems, and the reference that the others are tested
// against.
#pragma once

#include <cstdint>

#include "base/problem.h"
#include "base/stop.h"
#include "search/two_opt.h"

namespace blindmatch {

struct EnumerateOptions {
    int threads = 1;
    std::uint64_t seed = 0;  // of the short 2-opt that gives the first incumbent; never changes the cost
};

// The optimum if `completed`, else the best so far. Of several optimal permutations it always returns the same,
// whatever the number of threads. Meant for n <= 12: n = 10 takes at most 0.3 s, n = 12 at most half a minute.
SearchResult enumerate(const Problem& problem, const EnumerateOptions& options, Stop& stop,
                       const Progress& progress = {});

}  // namespace blindmatch
