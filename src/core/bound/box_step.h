// One pass of the splitting with a low-rank slack: the projection onto the box, and the reflection.
#pragma once

#include <cstddef>

namespace blindmatch {

// The (p + 1)^2 matrices over 1 and p pairs, row by row, and what the rows [begin, end) need.
struct BoxStep {
    std::size_t p, n;
    float* state;             // s: becomes s + stride (t - projection)
    float* point;             // the last t: becomes the new one
    const float* cost;        // huge where two pairs exclude each other
    const float* slack;       // rows [begin, end) of FF'
    const float* duals;       // D, (p + 1) x 2n
    const float* transposed;  // D', 2n x (p + 1)
    const int* rows;          // of the pairs
    const int* columns;
    float* sums;   // (p + 1) x 2n: what the new state adds up to in each row and column of x
    float weight;  // 1 / penalty
    float stride;  // 2 reflects
};

struct BoxResult {
    double residual = 0.0;  // |t - projection|^2
    double movement = 0.0;  // |t - last t|^2
};

// Leaves row 0, column 0 and the diagonal alone: the caller averages them.
BoxResult box_step(const BoxStep& step, std::size_t begin, std::size_t end);

}  // namespace blindmatch
