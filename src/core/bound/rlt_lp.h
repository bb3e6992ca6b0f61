// The level-1 RLT linear program of the problem by a matrix-free first-order method: reflected Halpern iteration of the
// primal-dual hybrid gradient with restarts (Lu & Yang 2024), diagonal preconditioning and an adaptive primal weight.
//
//   min sum linear_ij x_ij + sum_{i<k} W_ijkl y_ijkl   with x doubly stochastic, x and y >= 0,
//   sum_l y_ijkl = x_ij (dual U_ij,k),  sum_k y_ijkl = x_ij (dual V_ij,l).
//
// Its duals are those of the Hahn-Grant bound. They are feasible only in the limit, so sweeps repair them afterwards.
#pragma once

#include <cstdint>
#include <vector>

#include "base/threads.h"
#include "bound/scaled_problem.h"

namespace blindmatch {

// Everything of one source row i. A slot is a place in its vectors: all n columns while many are allowed, then the
// allowed ones only (which costs gathering, so it pays late).
struct RltRow {
    std::vector<int> column;             // of a slot; the padding repeats some column
    std::vector<int> slot;               // of an allowed column, or -1
    std::vector<int> active;             // slots of the allowed columns, ascending
    int width = 0;                       // slots, padded
    bool dense = false;                  // slot == column
    AlignedGrid<float, 2> u, u_anchor;   // n x width: U_ij,k at (k, slot of j)
    AlignedGrid<float, 2> v, v_anchor;   // width x stride: V_ij,l at (slot of j, l)
    AlignedGrid<float, 2> v_transposed;  // n x width: V_ij,l at (l, slot of j); very negative where no y exists
    AlignedGrid<float, 2> u_sum, v_sum, v_transposed_sum;
    AlignedGrid<float, 3> target;  // factor x n x width: target(f, j, slot)
    AlignedVector<float> x_reflected;
    std::vector<double> x, x_anchor;
    double alpha = 0, alpha_anchor = 0;
    double primal_move = 0, dual_move = 0;
    int count() const { return static_cast<int>(active.size()); }
};
// Step sizes, and the weights of the Halpern mean.
struct RltSteps {
    float y, keep, anchor;
    double x, dual;
};

// The inner loops, compiled twice.
//
// y <- max(0, y - step * gradient) for the rows i < k, reflected, averaged with the anchor; adds the row and column
// sums of the reflected point to the four sums of the rows. Returns the squared move.
double update_y(const ScaledProblem& problem, RltRow& row_i, RltRow& row_k, int i, int k, GridView<float, 2> y,
                GridView<const float, 2> anchor, const RltSteps& steps);

// dual <- dual + step * (x - sum), reflected and averaged with the anchor. Returns the sum of move * (x - sum).
double update_u(float* u, const float* anchor, const float* x, const float* sum, float step, float keep,
                float anchor_share, int width);
double update_v(float* v, const float* anchor, float x, const float* sum, const float* step, float keep,
                float anchor_share, int width);

double squared_distance(const AlignedVector<float>& x, const AlignedVector<float>& y);

class RltLp {
 public:
    RltLp(const ScaledProblem& problem, const std::vector<std::uint8_t>& forbidden, ThreadPool& pool);

    // Memory that the two copies of y take.
    static std::size_t bytes(int n, const std::vector<std::uint8_t>& forbidden);

    // The primal starts at the permutation with weight `trust`, the rest is spread evenly: where the relaxation is
    // tight, the optimum of the problem is that of the program.
    void start(const Duals& duals, const std::vector<int>& permutation, double trust);
    // Goes on where `other`, a program with fewer forbidden pairs, stands.
    void start(const RltLp& other);

    // False if `stop` ended it early.
    [[nodiscard]] bool iterate(int count, Stop& stop);

    Duals duals() const;

 private:
    // What rows i < k have of y, or of its anchor: active slots of i x width of k.
    template <class Y>
    auto part(Y& y, int i, int k) const {
        return GridView{y.data() + y_offset_(i, k), Shape<2>{rows_[i].count(), rows_[k].width}};
    }
    void prepare();
    void update_row(int i, const RltSteps& steps);
    void refresh_row(RltRow& row);
    void restart();

    const ScaledProblem& problem_;
    ThreadPool& pool_;
    int n_, stride_;
    std::vector<RltRow> rows_;
    Grid<std::size_t, 2> y_offset_;
    AlignedVector<float> y_, y_anchor_;  // the parts of all i < k
    Grid<double, 2> y_move_;
    std::vector<double> beta_, beta_anchor_;
    AlignedVector<float> column_step_;  // of V_ij,l: depends on how many rows may take l
    // Pairs of row blocks, in rounds: no two of a round share a row, so they can run at once.
    std::vector<std::vector<std::pair<int, int>>> rounds_;
    double weight_ = 10.0, first_residual_ = -1.0, last_residual_ = 0.0;
    std::int64_t iteration_ = 0, restarted_ = 0;
};

}  // namespace blindmatch
