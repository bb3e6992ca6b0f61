// Hahn-Grant sweeps on pair costs that are given one by one: what is left of a problem when a matrix is taken away.
#pragma once

#include <cstdint>
#include <vector>

#include "base/stop.h"
#include "base/thread_pool.h"
#include "bound/bound_proof.h"
#include "bound/scaled_problem.h"

namespace blindmatch {

// The duals, with those of the leader's assignment problem, after up to `count` sweeps from zero; fewer where one of
// them gains less than `gain` of the bound's change so far, or where `stop` comes.
Stage dense_sweeps(const ScaledProblem& problem, std::vector<std::uint8_t> forbidden, int count, double gain,
                   ThreadPool& pool, Stop& stop);

}  // namespace blindmatch
