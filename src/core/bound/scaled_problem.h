// The problem as the float32 engines read it: scaled by a power of two so that pair costs are about 1, rows padded.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/problem.h"

namespace blindmatch {

struct ScaledProblem {
    explicit ScaledProblem(const Problem& problem)
        : n(problem.n),
          stride(padded(problem.n)),
          factor_count(static_cast<int>(problem.factors.size())),
          used(problem) {
        double largest = 0.0;
        for (const Factor& f : problem.factors) {
            largest += 2.0 * largest_magnitude(f.source.values) * largest_magnitude(f.target.values);
        }
        // A linear term that dwarfs the pair costs sets the scale: its differences end up in the duals, too.
        if (n > 0) {
            const auto [low, high] = std::ranges::minmax(problem.linear.values);
            largest = std::max(largest, (high - low) / (largest > 0.0 ? 64.0 : 1.0));
        }
        // A power of two: scaling is exact, and what float32 duals prove does not depend on it.
        scale = scale_to_one(largest);
        source = target = AlignedGrid<float, 3>({factor_count, n, stride});
        for (int f = 0; f < factor_count; ++f) {
            // Split the scale between both matrices, so that neither under- or overflows in float32.
            const Factor& factor = problem.factors[f];
            const double split = scale_to_one(largest_magnitude(factor.source.values));
            for (int i = 0; i < n; ++i) {
                for (int k = 0; k < n; ++k) {
                    source(f, i, k) = static_cast<float>(2.0 * split * factor.source(i, k));
                    target(f, i, k) = static_cast<float>(scale / split * factor.target(i, k));
                }
            }
        }
        constant = problem.constant * scale;
        linear = problem.linear;
        for (double& x : linear.values) x *= scale;
    }

    // Pair costs that are no products: row (i, j) and column (k, l) of `costs` hold what (i, j) and (k, l) cost
    // together. They are about 1 already.
    ScaledProblem(int size, const float* costs, const double* linear_costs)
        : n(size),
          stride(padded(size)),
          factor_count(0),
          scale(1.0),
          pair_costs({n, n, n, stride}),
          constant(0.0),
          linear({n, n}) {
        std::copy_n(linear_costs, linear.values.size(), linear.values.begin());
        const GridView<const float, 4> from{costs, {n, n, n, n}};
        for (int i = 0; i < n; ++i)
            for (int j = 0; j < n; ++j)
                for (int k = 0; k < n; ++k) std::copy_n(from.row(i, j, k), n, pair_costs.row(i, j, k));
    }

    int n, stride, factor_count;
    UsedFactors used;
    double scale;
    AlignedGrid<float, 3> source;      // factor x n x stride, twice the source
    AlignedGrid<float, 3> target;      // factor x n x stride
    AlignedGrid<float, 4> pair_costs;  // n x n x n x stride, or nothing where the factors say all
    double constant;
    Grid<double, 2> linear;
};

// Duals in the layout of the sweeps: u[k][i][j], v[l][i][j], rows padded. Entries of forbidden pairs have no meaning.
struct Duals {
    explicit Duals(int n) : u({n, n, padded(n)}), v(u) {}
    AlignedGrid<float, 3> u, v;
};

}  // namespace blindmatch
