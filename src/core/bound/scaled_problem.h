// The problem as the float32 engines read it: scaled by a power of two so that pair costs are about 1, rows padded.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/index.h"
#include "base/problem.h"
#include "base/scaling.h"
#include "base/simd.h"

namespace blindmatch {

struct ScaledProblem {
    explicit ScaledProblem(const Problem& problem)
        : n(problem.n), stride(padded(problem.n)), factor_count(static_cast<int>(problem.factors.size())) {
        double largest = 0.0;
        for (const Factor& f : problem.factors) {
            largest += 2.0 * largest_magnitude(f.source) * largest_magnitude(f.target);
        }
        // A linear term that dwarfs the pair costs sets the scale: its differences end up in the duals, too.
        if (!problem.linear.empty()) {
            const auto [low, high] = std::minmax_element(problem.linear.begin(), problem.linear.end());
            largest = std::max(largest, (*high - *low) / (largest > 0.0 ? 64.0 : 1.0));
        }
        // A power of two: scaling is exact, and what float32 duals prove does not depend on it.
        scale = scale_to_one(largest);
        const std::size_t plane = area(n, stride);
        source.assign(factor_count * plane, 0.0f);
        target.assign(factor_count * plane, 0.0f);
        for (int f = 0; f < factor_count; ++f) {
            // Split the scale between both matrices, so that neither under- or overflows in float32.
            const double split = scale_to_one(largest_magnitude(problem.factors[f].source));
            for (int i = 0; i < n; ++i) {
                for (int k = 0; k < n; ++k) {
                    const std::size_t from = cell(i, k, n), to = f * plane + cell(i, k, stride);
                    source[to] = static_cast<float>(2.0 * split * problem.factors[f].source[from]);
                    target[to] = static_cast<float>(scale / split * problem.factors[f].target[from]);
                }
            }
        }
        constant = problem.constant * scale;
        linear.reserve(problem.linear.size());
        for (double x : problem.linear) linear.push_back(x * scale);
    }

    // Pair costs that are no products: row (i, j) and column (k, l) of `costs` hold what (i, j) and (k, l) cost
    // together. They are about 1 already.
    ScaledProblem(int size, const float* costs, const double* linear_costs)
        : n(size),
          stride(padded(size)),
          factor_count(0),
          scale(1.0),
          constant(0.0),
          linear(linear_costs, linear_costs + area(size, size)) {
        const std::size_t lines = area(n, n) * n;
        pair_costs.assign(lines * stride, 0.0f);
        for (std::size_t line = 0; line < lines; ++line)
            std::copy_n(costs + line * n, n, pair_costs.begin() + line * stride);
    }

    int n, stride, factor_count;
    double scale;
    AlignedVector<float> source;      // factor x n x stride, twice the source
    AlignedVector<float> target;      // factor x n x stride
    AlignedVector<float> pair_costs;  // n x n x n x stride, or nothing where the factors say all
    double constant;
    std::vector<double> linear;  // n x n
};

// Duals in the layout of the sweeps: u[k][i][j], v[l][i][j], rows padded. Entries of forbidden pairs have no meaning.
struct Duals {
    explicit Duals(int n) : u(area(n, n) * padded(n), 0.0f), v(u) {}
    AlignedVector<float> u, v;
};

}  // namespace blindmatch
