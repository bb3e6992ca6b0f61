// The inner loops of the first-order method, over raw pointers.
#pragma once

#include <cstddef>

#include "base/grid.h"

namespace blindmatch {

// All that the update of y between two rows i < k reads and writes.
struct PairUpdate {
    int rows, width, factor_count;
    bool dense;
    const int* factors;               // those that count here
    const float* source;              // of each of them: A_ik
    GridView<const float, 3> target;  // of every factor: row k's compact target, n x width
    const int* active;                // slots of i
    const int* row_columns;           // their columns
    const int* columns;               // of the slots of k
    const float *u_i, *u_k;
    GridView<const float, 2> v_i, v_k;  // v_k transposed
    GridView<float, 2> y;
    GridView<const float, 2> anchor;
    float *u_i_sum, *u_k_sum;
    GridView<float, 2> v_i_sum, v_k_sum;
    float step, keep, anchor_share;
};

// y <- max(0, y - step * gradient), reflected, averaged with the anchor; adds the row and column sums of the reflected
// point to the four sums. Returns the squared move.
double update_y(const PairUpdate& pair);

// dual <- dual + step * (x - sum), reflected and averaged with the anchor. Returns the sum of move * (x - sum).
double update_u(float* u, const float* anchor, const float* x, const float* sum, float step, float keep,
                float anchor_share, int width);
double update_v(float* v, const float* anchor, float x, const float* sum, const float* step, float keep,
                float anchor_share, int width);

double squared_distance(const AlignedVector<float>& x, const AlignedVector<float>& y);

}  // namespace blindmatch
