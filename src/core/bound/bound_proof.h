// The bound that a set of duals proves, in float64, rounded down: the only bound that the solvers may claim.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/problem.h"
#include "base/threads.h"

namespace blindmatch {

class ThreadPool;

// When a bound is good enough. Python decides, in blindmatch/problem/optimality.py; the core only applies it.
// The cost that any better permutation must stay below: a bound that reaches it ends the search.
struct Target {
    double tolerance = 0.0;    // relative to the best cost
    double granularity = 0.0;  // > 0: all costs are this far apart or equal
    double noise = 0.0;        // absolute: what rounding may do to costs of this problem's size
    // Limits of the caller: a gap relative to the best cost, and a bound, that are enough.
    double gap = 0.0, enough = std::numeric_limits<double>::infinity();

    double of(double cost) const { return std::min({closing(cost), cost - gap * std::abs(cost), enough}); }

 private:
    double closing(double cost) const {
        if (granularity > 0.0) return cost - granularity * (1.0 - 1e-6);
        return cost - std::max(tolerance * std::abs(cost), noise);
    }
};

// Duals of the level-1 RLT relaxation, with the pairs that were forbidden when they were made.
template <class Real>
struct StageOf {
    int n = 0;
    std::vector<Real> u;                  // u[k][i][j]: what pair (i,j) takes from its row k
    std::vector<Real> v;                  // v[l][i][j]: what pair (i,j) takes from its column l
    std::vector<double> beta;             // column duals of the leader's assignment problem
    std::vector<std::uint8_t> forbidden;  // n x n
};
using Stage = StageOf<float>;
using HahnGrantStage = StageOf<double>;  // of the paper's ascent

struct Proof {
    double bound = 0.0;              // no permutation that avoids the forbidden pairs costs less
    std::vector<double> pair_bound;  // n x n: no such permutation through (i,j) costs less; infinite where forbidden
};

// With leader_ij = linear_ij + sum_k u_ijk + sum_l v_ijl and R = W - u_ijk - v_ijl - u_kli - v_klj, every permutation p
// costs constant + sum_i leader_ip(i) + sum_{i<k} R. Half of each R is at least the smallest R in its row k, so
// leader'_ij = leader_ij + 1/2 sum_k min_l R bounds the cost by the assignment problem of leader', whose column duals
// are `beta`. Where `stage.beta` is empty it is computed and stored there. Nothing is returned if `stop` has come and
// the proof would make the caller late.
[[nodiscard]] std::optional<Proof> prove(const Problem& problem, Stage& stage, ThreadPool& pool, Stop& stop);

// The assignment problem of the leaders, in float64: its value is the bound, its reduced costs bound every pair.
struct LeaderDuals {
    std::vector<double> alpha, beta;  // alpha_i + beta_j <= leader_ij, equal on the assignment
    std::vector<int> assignment;
    double value = 0.0;
};

// `leader` is n x n; entries that are not finite are forbidden. If no assignment avoids them, the value is very large.
LeaderDuals solve_leader(std::vector<double> leader, int n);

}  // namespace blindmatch
