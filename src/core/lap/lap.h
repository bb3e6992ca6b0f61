// The linear assignment problem: min over permutations p of sum_i cost[i][p_i], with a proof (dual variables).
#pragma once

#include <memory>

namespace blindmatch {

enum class LapMethod { jonker_volgenant, auction, hungarian };

struct LapWork;

// Owns the work space, so that solving many problems of at most max_n rows allocates nothing. Not shared by threads:
// make one for each. Memory O(n). Deterministic: no randomness, and the same arithmetic on every processor.
class Lap {
 public:
    explicit Lap(int max_n);
    ~Lap();
    Lap(Lap&&) noexcept;
    Lap& operator=(Lap&&) noexcept;

    // Solves for the n x n row-major matrix whose rows start `stride` doubles apart. +infinity forbids a pair.
    //
    // Returns false if no assignment avoids the forbidden pairs (the results are then meaningless: row_to_col all -1).
    // Throws std::invalid_argument on NaN, -infinity, or entries so huge that their sums overflow (about 1e300), before
    // any work is done.
    //
    // epsilon     auction only: the bid increment. The cost found is at most n * epsilon above dual_sum(). Zero, tiny
    //             or NaN is safe: after 50 n bids the rows left over are assigned by shortest augmenting paths.
    // warm        jonker_volgenant only: a previous assignment (column of each row, -1 = none), to start from.
    //             It changes the speed and the choice among optima, never the value. May be row_to_col() itself.
    // tolerance   jonker_volgenant only: pairs whose reduced cost is at most this count as tight. The duals remain
    //             feasible, the cost found is at most n * tolerance above dual_sum(). Set it to the rounding noise of
    //             the matrix (some ulps of the numbers it was computed from) where many ties are expected; else 0.
    // balance     jonker_volgenant only: rounds, O(n^2) each, that move the duals from an extreme point towards the
    //             middle of the optimal ones. An ascent that subtracts them gets much further with 1 than with 0.
    bool solve(const double* cost, int n, int stride, LapMethod method = LapMethod::jonker_volgenant,
               double epsilon = 0.0, const int* warm = nullptr, double tolerance = 0.0, int balance = 1);

    // Results of the last solve. With every method the duals are feasible: u_i + v_j <= cost[i][j] to rounding, because
    // u_i = min_j (cost[i][j] - v_j) is computed last. So dual_sum() = sum u + sum v is a lower bound on every
    // assignment; it equals the cost of row_to_col (to rounding) for the two exact methods, with tolerance 0.
    const int* row_to_col() const;
    const double* u() const;
    const double* v() const;
    double dual_sum() const;

    // Shortest augmenting paths that the last solve needed: what a warm start saves.
    int augmentations() const;

 private:
    std::unique_ptr<LapWork> work_;
};

}  // namespace blindmatch
