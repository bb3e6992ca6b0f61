// Problems for the tests of the core.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/problem.h"
#include "base/random.h"

namespace blindmatch {

// Flows between places on a grid that is three wide: integer costs, and a tree of some nodes from nine items on.
inline Problem grid_problem(int n, std::uint64_t seed) {
    Random random(seed);
    const Grid<double, 2> zero({n, n});
    Factor factor{zero, zero};
    for (int i = 0; i < n; ++i) {
        for (int k = 0; k < i; ++k) {
            const double flow = random.uniform() < 0.6 ? random.below(10) : 0;
            factor.source(i, k) = factor.source(k, i) = flow;
            factor.target(i, k) = factor.target(k, i) = std::abs(i / 3 - k / 3) + std::abs(i % 3 - k % 3);
        }
    }
    Problem problem;
    problem.n = n;
    problem.factors = {factor};
    problem.linear = zero;
    return problem;
}

// The optimum by trying every permutation, and the cheapest cost through each pair.
struct Enumerated {
    double optimum = kInfinity;
    std::vector<double> through;

    explicit Enumerated(const Problem& problem) : through(problem.n * problem.n, kInfinity) {
        std::vector<int> permutation(problem.n);
        std::iota(permutation.begin(), permutation.end(), 0);
        do {
            const double cost = problem.cost(permutation.data());
            optimum = std::min(optimum, cost);
            for (int i = 0; i < problem.n; ++i) {
                double& least = through[i * problem.n + permutation[i]];
                least = std::min(least, cost);
            }
        } while (std::ranges::next_permutation(permutation).found);
    }
};

}  // namespace blindmatch
