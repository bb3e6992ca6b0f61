// Robust tabu search (Taillard 1991) inside a small evolving population (as Benlic and Hao 2015): the primal engine.
#pragma once

#include <cstdint>
#include <vector>

#include "base/grid.h"
#include "base/problem.h"
#include "base/stop.h"
#include "search/two_opt.h"

namespace blindmatch {

struct TabuOptions {
    std::uint64_t seed = 0;
    std::int64_t streams = 1;  // independent searches; stream r depends on (seed, r) alone
    std::int64_t iterations =
        0;  // swaps that a stream may make; 0: until `stop`, and then one stream runs on each thread
    int threads = 1;
    double target = -kInfinity;  // stop as soon as a cost is at most this
    // Stream r begins at initial[r], if that is feasible; else stream 0 at gilmore_lawler_start, the others at random.
    std::vector<std::vector<int>> initial;
};

// The best permutation of all streams, ties to the smallest stream (with a target: of those up to the first that
// reached it). With an iteration budget the result is independent of `threads`; the clock alone can change it.
[[nodiscard]] SearchResult tabu(const Problem& problem, const TabuOptions& options, Stop& stop,
                                const Progress& progress = {});

}  // namespace blindmatch
