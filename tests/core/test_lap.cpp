#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/random.h"
#include "bound/bound_proof.h"
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
            REQUIRE(lap.solve(cost.data(), n, method, 0.01));
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
    CHECK_FALSE(lap.solve(cost.data(), 3));
}

TEST_CASE("leaders that are no numbers are forbidden, and the duals stay finite") {
    const double none = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    const std::vector<double> leader = {1.0, nan, 4.0, -none, 2.0, none, 1e300, 7.0, 3.0};
    const LeaderDuals duals = solve_leader(leader, 3);
    CHECK(duals.assignment == std::vector<int>{0, 1, 2});
    CHECK(duals.value == doctest::Approx(6.0));
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
            if (std::abs(leader[i * 3 + j]) < 10.0) CHECK(duals.alpha[i] + duals.beta[j] <= leader[i * 3 + j] + 1e-9);
}

TEST_CASE("leaders without an allowed assignment have a very large value") {
    const double none = std::numeric_limits<double>::infinity();
    const LeaderDuals duals = solve_leader({1.0, none, none, 2.0, none, none, 3.0, 4.0, 5.0}, 3);
    CHECK(std::isfinite(duals.value));
    CHECK(duals.value > 3 * 5.0);
}
