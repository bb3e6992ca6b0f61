#include "bound/leader_lap.h"

#include <algorithm>
#include <cmath>

#include "base/grid.h"
#include "lap/lap.h"

namespace blindmatch {
namespace {

constexpr double kTooLarge = 1e280;  // Lap refuses numbers whose sums overflow
constexpr int kBalance = 8;          // rounds that move the duals to the middle of the optimal ones

// The largest of the numbers that Lap accepts. The others become +infinity: whatever they are, the duals stay valid.
double forbid_too_large(std::vector<double>& leader) {
    double largest = 0.0;
    for (double& x : leader) {
        if (std::abs(x) <= kTooLarge) {
            largest = std::max(largest, std::abs(x));
        } else {
            x = kInfinity;
        }
    }
    return largest;
}

}  // namespace

LeaderDuals solve_leader(std::vector<double> leader, int n) {
    const double largest = forbid_too_large(leader);
    Lap lap(n);
    const auto solve = [&] { return lap.solve(leader.data(), n, LapMethod::jonker_volgenant, 0.0, nullptr, kBalance); };
    if (!solve()) {
        const double blocked = 4.0 * (n + 1) * (largest > 0.0 ? largest : 1.0);
        std::replace_if(leader.begin(), leader.end(), [](double x) { return std::isinf(x); }, blocked);
        solve();
    }
    return {{lap.u(), lap.u() + n}, {lap.v(), lap.v() + n}, {lap.row_to_col(), lap.row_to_col() + n}, lap.dual_sum()};
}

}  // namespace blindmatch
