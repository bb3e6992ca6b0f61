// Solves and proves ten fixed problems and prints what it found, so that machines can be compared: see tools/cross.
#include <cmath>
#include <cstdio>
#include <numeric>

#include "../core/problems.h"
#include "tree/branch_and_bound.h"

using namespace blindmatch;

namespace {

// Distances of random points in 16 dimensions: costs that are no whole numbers.
Grid<double, 2> distances(int n, Random& random) {
    std::vector<double> points(16 * n);
    Grid<double, 2> matrix({n, n});
    for (double& x : points) x = random.uniform() - 0.5;
    for (int i = 0; i < n; ++i) {
        for (int k = 0; k < n; ++k) {
            double sum = 0.0;
            for (int t = 0; t < 16; ++t) sum += std::pow(points[16 * i + t] - points[16 * k + t], 2);
            matrix(i, k) = std::sqrt(sum);
        }
    }
    return matrix;
}

Problem metric_problem(int n, std::uint64_t seed) {
    Random random(seed);
    Problem problem;
    problem.n = n;
    problem.factors = {{distances(n, random), distances(n, random)}};
    for (double& x : problem.factors[0].target.values) x = -x;
    problem.linear = Grid<double, 2>({n, n});
    return problem;
}

void solve(const Problem& problem, double granularity, int number) {
    BranchAndBoundOptions options;
    options.root.target = {.tolerance = 1e-9, .granularity = granularity};
    options.root.seed = 7;
    options.node_limit = 2000;
    std::vector<int> start(problem.n);
    std::iota(start.begin(), start.end(), 0);
    Stop stop;
    const TreeResult tree = branch_and_bound(problem, options, start, stop);
    std::printf("%d %d %.17g %.17g", number, static_cast<int>(tree.status), tree.cost, tree.bound);
    for (const int column : tree.permutation) std::printf(" %d", column);
    std::printf("\n");
}

}  // namespace

int main() {
    for (int k = 0; k < 5; ++k) solve(grid_problem(6 + k / 2, k), 1.0, k);
    for (int k = 5; k < 10; ++k) solve(metric_problem(4 + k / 2, k), 0.0, k);
}
