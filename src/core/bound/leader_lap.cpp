#include "bound/leader_lap.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/index.h"
#include "base/scaling.h"
#include "bound/subproblem_lap.h"

namespace blindmatch {
namespace {

BLINDMATCH_KERNEL bool solve(LapWorkspace<double>& w) {
    for (int i = 0; i < w.size; ++i) {
        w.row_dual[i] = row_minimum(w.matrix.data() + area(i, w.stride), w.stride);
    }
    return solve_lap<double>(w, -1, -1, nullptr, 0.0);
}

BLINDMATCH_KERNEL void centre(LapWorkspace<double>& w) { centre_duals<double>(w, -1, 2); }

}  // namespace

LeaderDuals solve_leader(const std::vector<double>& leader, int n) {
    LapWorkspace<double> w(n);
    double largest = 0.0;
    for (double x : leader) {
        if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
    }
    // Scaled to at most 1 by a power of two: exact, and the fixed caps of the solver fit.
    const double scale = scale_to_one(largest);
    const double blocked = 4.0 * (n + 1);
    for (int i = 0; i < n; ++i) {
        double* row = w.matrix.data() + area(i, w.stride);
        std::fill(row, row + w.stride, static_cast<double>(kPadding));
        for (int j = 0; j < n; ++j) {
            const double x = leader[cell(i, j, n)];
            row[j] = std::isfinite(x) ? x * scale : blocked;
        }
    }
    LeaderDuals result;
    if (!solve(w)) {  // all entries are finite and small, so this does not happen; zero duals are valid in any case
        result.assignment.resize(n);
        std::iota(result.assignment.begin(), result.assignment.end(), 0);
        result.alpha.assign(n, 0.0);
        result.beta.assign(n, 0.0);
        return result;
    }
    result.assignment = w.column_of;
    centre(w);
    for (int i = 0; i < n; ++i) {
        result.alpha.push_back(w.row_dual[i] / scale);
        result.beta.push_back(w.column_dual[i] / scale);
        result.value += result.alpha[i] + result.beta[i];
    }
    return result;
}

}  // namespace blindmatch
