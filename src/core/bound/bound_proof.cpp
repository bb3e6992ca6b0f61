#include "bound/bound_proof.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/index.h"
#include "base/scaling.h"
#include "base/simd.h"
#include "base/thread_pool.h"
#include "bound/leader_lap.h"

namespace blindmatch {
namespace {

constexpr double kRounding = std::numeric_limits<double>::epsilon();  // twice the unit roundoff: generous throughout

constexpr double kGrace = 0.03;  // seconds

// The problem and the stage as the kernel reads them: rows padded, `source` times 2, zeros where a pair is forbidden.
struct ProofInput {
    // An interrupted one is not complete: leaders() then gives up before it uses it.
    ProofInput(const Problem& problem, const Stage& stage, Stop& stop)
        : n(problem.n),
          stride(padded(n)),
          factor_count(static_cast<int>(problem.factors.size())),
          plane(area(n, stride)),
          target(factor_count * plane, 0.0),
          blocked(plane, kInfinity),
          u(n * plane, 0.0f),
          v(n * plane, 0.0f) {
        for (int f = 0; f < factor_count; ++f) {
            const Factor& factor = problem.factors[f];
            for (double x : factor.source) source.push_back(2.0 * x);
            for (int j = 0; j < n; ++j) {
                std::copy_n(factor.target.begin() + area(j, n), n, target.begin() + f * plane + area(j, stride));
            }
            largest_cost += 2.0 * largest_magnitude(factor.source) * largest_magnitude(factor.target);
        }
        const std::size_t pair_count = area(n, n);
        for (int k = 0; k < n; ++k) {
            if (stop() && stop.interrupted()) return;
            for (int i = 0; i < n; ++i) {
                const std::size_t row = area(i, n), wide = area(i, stride);
                for (int j = 0; j < n; ++j) {
                    if (stage.forbidden[row + j]) continue;
                    blocked[wide + j] = 0.0;
                    u[k * plane + wide + j] = stage.u[k * pair_count + row + j];
                    v[k * plane + wide + j] = stage.v[k * pair_count + row + j];
                }
            }
        }
        largest_u = largest_magnitude(u);
        largest_v = largest_magnitude(v);
    }

    // What pair (i,j) is worth with the `smallest` residuals of its rows, rounded down. Infinite if some row has no
    // partner left: the pair is impossible.
    double leader(double linear, int i, int j, const std::vector<double>& smallest) const {
        double sum = linear, magnitude = std::abs(sum);
        const std::size_t own = cell(i, j, stride);
        for (int k = 0; k < n; ++k) {
            double part = 0.0;
            if (k != i) part += u[k * plane + own] + 0.5 * smallest[k];
            if (k != j) part += v[k * plane + own];
            sum += part;
            magnitude += std::abs(part) + 2.0 * kRounding * (largest_u + largest_v + largest_cost);
        }
        if (!std::isfinite(sum)) return kInfinity;
        // Each R has factor_count products and additions and four subtractions.
        const double residual_error =
            (factor_count + 6) * kRounding * (largest_cost + 2.0 * largest_u + 2.0 * largest_v);
        return sum - (2.0 * (n + 4) * kRounding * magnitude + 0.5 * n * residual_error);
    }

    int n, stride, factor_count;
    std::size_t plane;
    std::vector<double> source;   // factor x n x n
    std::vector<double> target;   // factor x n x stride
    std::vector<double> blocked;  // n x stride: 0 or infinity
    std::vector<float> u, v;      // n x n x stride
    double largest_cost = 0.0, largest_u = 0.0, largest_v = 0.0;
};

// For pair (i,j): smallest[k] = min_l R_ijkl over allowed l != j. Infinite where row k has no such l.
BLINDMATCH_KERNEL void smallest_residuals(const ProofInput& d, int i, int j, double* column_part, double* smallest) {
    const int n = d.n, stride = d.stride;
    const std::size_t plane = d.plane, own = cell(i, j, stride);
    for (int l = 0; l < n; ++l) column_part[l] = d.v[l * plane + own];
    for (int l = n; l < stride; ++l) column_part[l] = -kInfinity;
    column_part[j] = -kInfinity;  // l = j is no partner
    for (int k = 0; k < n; ++k) {
        if (k == i) continue;
        const double from_row = d.u[k * plane + own];
        const float* u = d.u.data() + i * plane + area(k, stride);
        const float* v = d.v.data() + j * plane + area(k, stride);
        const double* blocked = d.blocked.data() + area(k, stride);
        Vector<double> lowest = broadcast(kInfinity);
        for (int l = 0; l < stride; l += 4) {
            Vector<double> w{};
            for (int f = 0; f < d.factor_count; ++f) {
                const double a = d.source[(cell(f, i, n)) * n + k];
                w += a * load(d.target.data() + cell(f, j, n) * stride + l);
            }
            Vector<double> taken{};
            for (int t = 0; t < 4; ++t) taken[t] = static_cast<double>(u[l + t]) + static_cast<double>(v[l + t]);
            lowest = smaller(lowest, w - taken - from_row - load(column_part + l) + load(blocked + l));
        }
        smallest[k] = smallest_lane<double>(lowest);
    }
}

// With NaN among the duals every comparison below would fail, and pairs would count as impossible.
void zero_unless_finite(std::vector<float>& duals) {
    const bool finite = std::ranges::all_of(duals, [](float x) { return std::isfinite(x); });
    if (!finite) std::ranges::fill(duals, 0.0f);
}

// The matrix leader' of all pairs; infinite where a pair is forbidden or impossible.
std::optional<std::vector<double>> leaders(const Problem& problem, const Stage& stage, const ProofInput& input,
                                           ThreadPool& pool, Stop& stop) {
    const int n = problem.n;
    std::vector<double> leader(area(n, n), kInfinity);
    std::atomic<bool> given_up{false};
    pool.run(n, [&](int i, int) {
        // A proof that is nearly done when the time is up may end; it is what the time was spent for.
        if (stop() && (stop.interrupted() || stop.remaining() < -kGrace)) given_up = true;
        if (given_up) return;
        std::vector<double> column_part(input.stride), smallest(n);
        for (int j = 0; j < n; ++j) {
            const std::size_t pair = cell(i, j, n);
            if (stage.forbidden[pair]) continue;
            smallest_residuals(input, i, j, column_part.data(), smallest.data());
            leader[pair] = input.leader(problem.linear[pair], i, j, smallest);
        }
    });
    if (given_up) return std::nullopt;
    return leader;
}

// What the column duals `beta` of the leaders' assignment problem prove, for all permutations and for each pair.
Proof proof_of(double constant, const std::vector<double>& leader, const std::vector<double>& beta) {
    const int n = static_cast<int>(beta.size());
    std::vector<double> alpha(n);
    double sum = constant, magnitude = std::abs(sum);
    for (int i = 0; i < n; ++i) {
        alpha[i] = kInfinity;
        for (int j = 0; j < n; ++j) alpha[i] = std::min(alpha[i], leader[cell(i, j, n)] - beta[j]);
        sum += alpha[i] + beta[i];
        magnitude += std::abs(alpha[i]) + 2.0 * std::abs(beta[i]);
    }
    Proof proof;
    const double slack = 2.0 * (n + 4) * kRounding * magnitude;
    proof.bound = std::isfinite(sum) ? sum - slack : kInfinity;
    proof.pair_bound.assign(leader.size(), kInfinity);
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) {
            const std::size_t pair = cell(i, j, n);
            if (!std::isfinite(leader[pair])) continue;
            const double reduced = leader[pair] - beta[j] - alpha[i];
            proof.pair_bound[pair] = proof.bound + reduced * (1.0 - 4.0 * kRounding) - 4.0 * kRounding * magnitude;
        }
    }
    return proof;
}

}  // namespace

std::optional<Proof> prove(const Problem& problem, Stage& stage, ThreadPool& pool, Stop& stop) {
    zero_unless_finite(stage.u);
    zero_unless_finite(stage.v);
    const ProofInput input(problem, stage, stop);
    const std::optional<std::vector<double>> leader = leaders(problem, stage, input, pool, stop);
    if (!leader) return std::nullopt;
    if (stage.beta.empty()) stage.beta = solve_leader(*leader, problem.n).beta;
    return proof_of(problem.constant, *leader, stage.beta);
}

}  // namespace blindmatch
