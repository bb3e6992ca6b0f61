// The solver `dual-ascent`: the level-1 RLT bound by sweeps and by the first-order method, with fixing, no branching.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bound/bound_proof.h"

namespace blindmatch {

enum class BoundStatus { optimal, time_limit, interrupted, stalled };

struct DualAscentOptions {
    Target target;                                    // what counts as closed
    std::size_t memory_limit = std::size_t{4} << 30;  // bytes that the first-order method may use; else sweeps alone
    std::uint64_t seed = 0;
    int threads = 1;
    bool use_relaxation = true;
    const Stage* start = nullptr;  // duals to start from
};

struct BoundProgress {
    double cost, bound;
    std::int64_t iteration;  // proofs of the ascent, or nodes of the tree
    // What somebody will have to check: the stages, 1 for one that covers all pairs, and in a tree the nodes beyond the
    // root; 0 if the proof was dropped.
    double proof_size;
    std::int64_t nodes = 0, open = 0;  // of the tree; none at its root
};
using BoundReport = std::function<void(const BoundProgress&)>;

struct BoundResult {
    std::vector<int> permutation;
    double cost = 0.0;
    double bound = 0.0;  // proven by `stages`
    BoundStatus status = BoundStatus::stalled;
    std::vector<Stage> stages;
    std::vector<double> pair_bound;  // n x n, proven by `stages`: no permutation through the pair costs less
};

// `initial` is the first incumbent; empty: a few local searches find one. `report` is called from the calling thread.
// The result does not depend on the number of threads unless `stop` cut it short.
[[nodiscard]] BoundResult dual_ascent(const Problem& problem, const DualAscentOptions& options,
                                      std::vector<int> initial, Stop& stop, const BoundReport& report = {});

}  // namespace blindmatch
