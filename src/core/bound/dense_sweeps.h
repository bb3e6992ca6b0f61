// Hahn-Grant sweeps on pair costs that are given one by one: what is left of a problem when a matrix is taken away.
#pragma once

#include <cstdint>
#include <vector>

#include "base/stop.h"
#include "base/thread_pool.h"
#include "bound/bound_proof.h"

namespace blindmatch {

struct DenseCosts {
    int n;
    const float* pairs;    // n^2 x n^2, symmetric: what two pairs cost together, about 1
    const double* linear;  // n x n
    const std::uint8_t* forbidden;
};

// The duals, with those of the leader's assignment problem, after up to `count` sweeps from zero; fewer where one of
// them gains less than `gain` of the bound's change so far, or where `stop` comes.
Stage dense_sweeps(const DenseCosts& costs, int count, double gain, ThreadPool& pool, Stop& stop);

}  // namespace blindmatch
