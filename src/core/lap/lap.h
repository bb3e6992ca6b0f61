// The linear assignment problem: min over permutations p of sum_i cost[i][p_i], with a proof (dual variables).
#pragma once

#include "lap/lap_kernels.h"

namespace blindmatch {

enum class LapMethod { jonker_volgenant, auction, hungarian };

// Owns the work space, so that solving many problems of at most max_n rows allocates nothing. Not shared by threads:
// make one for each. Memory O(n). Deterministic: no randomness, and the same arithmetic on every processor.
class Lap {
 public:
    explicit Lap(int max_n) : work_(max_n) {}

    // Solves for an n x n row-major matrix. +infinity forbids a pair.
    //
    // Returns false if no assignment avoids the forbidden pairs (the results are then meaningless: row_to_col all -1).
    // Throws std::invalid_argument on NaN, -infinity, or entries so huge that their sums overflow (about 1e300), before
    // any work is done.
    //
    // epsilon     auction only: the bid increment. The cost found is at most n * epsilon above dual_sum(). Zero, tiny
    //             or NaN is safe: after 50 n bids the rows left over are assigned by shortest augmenting paths.
    // warm        jonker_volgenant only: a previous assignment (column of each row, -1 = none), to start from.
    //             It changes the speed and the choice among optima, never the value. May be row_to_col() itself.
    // balance     jonker_volgenant only: rounds, O(n^2) each, that move the duals from an extreme point towards the
    //             middle of the optimal ones. An ascent that subtracts them gets much further with 1 than with 0.
    [[nodiscard]] bool solve(const double* cost, int n, LapMethod method = LapMethod::jonker_volgenant,
                             double epsilon = 0.0, const int* warm = nullptr, int balance = 1);

    // Results of the last solve. With every method the duals are feasible: u_i + v_j <= cost[i][j] to rounding, because
    // u_i = min_j (cost[i][j] - v_j) is computed last. So dual_sum() = sum u + sum v is a lower bound on every
    // assignment; it equals the cost of row_to_col (to rounding) for the two exact methods.
    const int* row_to_col() const { return work_.row_to_col.data(); }
    const double* u() const { return work_.u.data(); }
    const double* v() const { return work_.v.data(); }
    double dual_sum() const { return dual_sum_; }

 private:
    LapWork work_;
    double dual_sum_ = 0.0;
};

}  // namespace blindmatch
