// Hahn-Grant sweeps: block coordinate ascent on the duals of the level-1 RLT relaxation, one assignment problem a pair.
#pragma once

#include <cstdint>
#include <vector>

#include "bound/bound_proof.h"
#include "bound/scaled_problem.h"
#include "bound/subproblem_lap.h"

namespace blindmatch {

// Costs are scaled to about 1, and what stands for "blocked" is kBlocked: larger duals have lost all digits of the
// costs.
inline constexpr float kLargestDual = 4.0f * kBlocked;

// Owns the duals, the leaders and the forbidden pairs. All values are scaled. Nothing here is safe against rounding:
// bounds are hints, `prove` decides.
class Sweeps {
 public:
    Sweeps(const ScaledProblem& problem, std::vector<std::uint8_t> forbidden, ThreadPool& pool);

    // Half of every pair cost to each side. A pair's subproblem is then a product of two vectors, which sorting solves:
    // the Gilmore-Lawler bound in O(n^3), with duals in the middle of their ranges. Needs a single factor.
    void start_by_sorting(Stop& stop);
    // False, and nothing changes, if a dual is NaN or larger than kLargestDual.
    [[nodiscard]] bool start_from(Duals duals);

    // False if `stop` ended it early; the duals are sound but the bound is not refreshed. `redistribute` gives what the
    // leaders hold back to the pair costs first.
    [[nodiscard]] bool sweep(Stop& stop, bool redistribute = true);

    // Solves the leader's assignment problem, moves its value to the bound.
    void close();

    // The leaders of the duals as they are, each with half of the least residual in every other row: what `prove` makes
    // of them. Infinite where a pair is forbidden. For dense pair costs only.
    std::vector<double> charged_leaders();

    void forbid(int i, int j);
    bool is_forbidden(int i, int j) const { return forbidden_(i, j); }

    // The duals, times a factor, for `prove`; zero where a pair is forbidden.
    Stage stage(float factor) const;

    double bound() const { return bound_; }
    const std::vector<double>& reduced_leader() const { return leader_.values; }  // after close(): pair bound - bound
    const std::vector<int>& leader_assignment() const { return assignment_; }
    const Duals& duals() const { return duals_; }
    const std::vector<std::uint8_t>& forbidden() const { return forbidden_.values; }
    // The assignment found in the subproblem of every pair at its last visit, n x n x n: the columns to try first.
    // Entries of n mean none.
    const std::vector<std::uint16_t>& assignments() const { return previous_.values; }
    void start_assignments(std::vector<std::uint16_t> assignments) { previous_.values = std::move(assignments); }

 private:
    void give_back_leaders();
    // Solves `count` pairs at the same time, then moves their duals into u and v; false if `stop` came first.
    bool visit(const int* batch, int count, Stop& stop);
    // Depends on the size alone, so that the number of threads changes nothing.
    int batch_size() const { return n_ < 64 ? 1 : 16; }

    const ScaledProblem& problem_;
    int n_;
    Duals duals_;
    Grid<std::uint8_t, 2> forbidden_;
    Grid<std::uint16_t, 3> previous_;
    Grid<double, 2> leader_;
    std::vector<int> assignment_, order_;
    double bound_;
    ThreadPool& pool_;
    Grid<float, 3> found_;                   // duals of a batch: of the rows, of the columns
    std::vector<SubproblemLap> workspaces_;  // one a worker
};

// Sweeps on pair costs that are given one by one: what is left of a problem when a matrix is taken away.
//
// The duals, with those of the leader's assignment problem, after up to `count` sweeps from zero; fewer where one of
// them gains less than `gain` of the bound's change so far, or where `stop` comes.
[[nodiscard]] Stage dense_sweeps(const ScaledProblem& problem, std::vector<std::uint8_t> forbidden, int count,
                                 double gain, ThreadPool& pool, Stop& stop);

}  // namespace blindmatch
