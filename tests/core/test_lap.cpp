#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/random.h"
#include "lap/lap.h"

using namespace blindmatch;

namespace {

double cheapest(const std::vector<double>& cost, int n) {
    std::vector<int> permutation(n);
    std::iota(permutation.begin(), permutation.end(), 0);
    double best = std::numeric_limits<double>::infinity();
    do {
        double sum = 0.0;
        for (int i = 0; i < n; ++i) sum += cost[i * n + permutation[i]];
        best = std::min(best, sum);
    } while (std::ranges::next_permutation(permutation).found);
    return best;
}

}  // namespace

TEST_CASE("every method finds the cheapest assignment, and duals that prove it") {
    constexpr int n = 6;
    Random random(1);
    for (const LapMethod method : {LapMethod::jonker_volgenant, LapMethod::hungarian, LapMethod::auction}) {
        for (int trial = 0; trial < 20; ++trial) {
            std::vector<double> cost(n * n);
            for (double& x : cost) x = random.below(100);
            Lap lap(n);
            REQUIRE(lap.solve(cost.data(), n, n, method, 0.01));
            double sum = 0.0;
            for (int i = 0; i < n; ++i) sum += cost[i * n + lap.row_to_col()[i]];
            const double best = cheapest(cost, n);
            CHECK(sum == best);
            for (int i = 0; i < n; ++i)
                for (int j = 0; j < n; ++j) CHECK(lap.u()[i] + lap.v()[j] <= cost[i * n + j] + 1e-9);
            CHECK(lap.dual_sum() <= best + 1e-9);
            CHECK(lap.dual_sum() >= best - n * 0.01 - 1e-9);
        }
    }
}

TEST_CASE("an assignment that does not exist is not found") {
    const double none = std::numeric_limits<double>::infinity();
    const std::vector<double> cost = {1.0, none, none, 2.0, none, none, 3.0, 4.0, 5.0};
    Lap lap(3);
    CHECK_FALSE(lap.solve(cost.data(), 3, 3));
}
