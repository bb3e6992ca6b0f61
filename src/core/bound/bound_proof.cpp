#include "bound/bound_proof.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/simd.h"
#include "base/thread_pool.h"
#include "bound/leader_lap.h"

namespace blindmatch {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kRounding = std::numeric_limits<double>::epsilon();  // twice the unit roundoff: generous throughout

constexpr double kGrace = 0.03;  // seconds

// Everything the kernel reads; matrices of the stage are padded copies with zeros, blocked holds 0 or infinity.
struct ProofData {
    int n, stride, factor_count;
    const double* source;  // factor x n x n, times 2
    const double* target;  // factor x n x stride
    const float* u;        // n x n x stride
    const float* v;
    const double* blocked;  // n x stride
};

// For pair (i,j): smallest[k] = min_l R_ijkl over allowed l != j. Infinite where row k has no such l.
BLINDMATCH_KERNEL void smallest_residuals(const ProofData& d, int i, int j, double* column_part, double* smallest) {
    const int n = d.n, stride = d.stride;
    const std::size_t plane = static_cast<std::size_t>(n) * stride;
    const std::size_t own = static_cast<std::size_t>(i) * stride + j;
    for (int l = 0; l < n; ++l) column_part[l] = d.v[l * plane + own];
    for (int l = n; l < stride; ++l) column_part[l] = -kInfinity;
    column_part[j] = -kInfinity;  // l = j is no partner
    for (int k = 0; k < n; ++k) {
        if (k == i) continue;
        const double from_row = d.u[k * plane + own];
        const float* u = d.u + i * plane + static_cast<std::size_t>(k) * stride;
        const float* v = d.v + j * plane + static_cast<std::size_t>(k) * stride;
        const double* blocked = d.blocked + static_cast<std::size_t>(k) * stride;
        Vector<double> lowest = broadcast(kInfinity);
        for (int l = 0; l < stride; l += 4) {
            Vector<double> w{};
            for (int f = 0; f < d.factor_count; ++f) {
                const double a = d.source[(static_cast<std::size_t>(f) * n + i) * n + k];
                w += a * load(d.target + (static_cast<std::size_t>(f) * n + j) * stride + l);
            }
            Vector<double> taken{};
            for (int t = 0; t < 4; ++t) taken[t] = static_cast<double>(u[l + t]) + static_cast<double>(v[l + t]);
            lowest = smaller(lowest, w - taken - from_row - load(column_part + l) + load(blocked + l));
        }
        smallest[k] = smallest_lane<double>(lowest);
    }
}

double largest(const std::vector<double>& values) {
    double most = 0.0;
    for (double x : values) most = std::max(most, std::abs(x));
    return most;
}

double largest(const std::vector<float>& values) {
    double most = 0.0;
    for (float x : values) most = std::max(most, static_cast<double>(std::abs(x)));
    return most;
}

// With NaN among the duals every comparison below would fail, and pairs would count as impossible.
void zero_unless_finite(std::vector<float>& duals) {
    const bool finite = std::all_of(duals.begin(), duals.end(), [](float x) { return std::isfinite(x); });
    if (!finite) std::fill(duals.begin(), duals.end(), 0.0f);
}

}  // namespace

std::optional<Proof> prove(const Problem& problem, Stage& stage, ThreadPool& pool, Stop& stop) {
    const int n = problem.n, stride = padded(n), factor_count = static_cast<int>(problem.factors.size());
    const std::size_t plane = static_cast<std::size_t>(n) * stride, pair_count = static_cast<std::size_t>(n) * n;

    zero_unless_finite(stage.u);
    zero_unless_finite(stage.v);
    std::vector<double> source, target(static_cast<std::size_t>(factor_count) * plane, 0.0);
    double largest_cost = 0.0;
    for (int f = 0; f < factor_count; ++f) {
        const Factor& factor = problem.factors[f];
        for (double x : factor.source) source.push_back(2.0 * x);
        for (int j = 0; j < n; ++j) {
            std::copy_n(factor.target.begin() + static_cast<std::size_t>(j) * n, n,
                        target.begin() + f * plane + static_cast<std::size_t>(j) * stride);
        }
        largest_cost += 2.0 * largest(factor.source) * largest(factor.target);
    }
    std::vector<double> blocked(plane, kInfinity);
    std::vector<float> u(n * plane, 0.0f), v(n * plane, 0.0f);
    for (int k = 0; k < n; ++k) {
        if (stop() && stop.interrupted()) return std::nullopt;
        for (int i = 0; i < n; ++i) {
            const std::size_t row = static_cast<std::size_t>(i) * n, padded_row = static_cast<std::size_t>(i) * stride;
            for (int j = 0; j < n; ++j) {
                if (stage.forbidden[row + j]) continue;
                blocked[padded_row + j] = 0.0;
                u[k * plane + padded_row + j] = stage.u[k * pair_count + row + j];
                v[k * plane + padded_row + j] = stage.v[k * pair_count + row + j];
            }
        }
    }
    const ProofData data{n, stride, factor_count, source.data(), target.data(), u.data(), v.data(), blocked.data()};
    const double largest_u = largest(u), largest_v = largest(v);
    // Each R has factor_count products and additions and four subtractions.
    const double residual_error = (factor_count + 6) * kRounding * (largest_cost + 2.0 * largest_u + 2.0 * largest_v);

    std::vector<double> leader(pair_count, kInfinity);
    std::atomic<bool> given_up{false};
    pool.run(n, [&](int i, int) {
        // A proof that is nearly done when the time is up may end; it is what the time was spent for.
        if (stop() && (stop.interrupted() || stop.remaining() < -kGrace)) given_up = true;
        if (given_up) return;
        std::vector<double> column_part(stride), smallest(n);
        for (int j = 0; j < n; ++j) {
            const std::size_t pair = static_cast<std::size_t>(i) * n + j;
            if (stage.forbidden[pair]) continue;
            smallest_residuals(data, i, j, column_part.data(), smallest.data());
            double sum = problem.linear[pair], magnitude = std::abs(sum);
            const std::size_t own = static_cast<std::size_t>(i) * stride + j;
            for (int k = 0; k < n; ++k) {
                double part = 0.0;
                if (k != i) part += u[k * plane + own] + 0.5 * smallest[k];
                if (k != j) part += v[k * plane + own];
                sum += part;
                magnitude += std::abs(part) + 2.0 * kRounding * (largest_u + largest_v + largest_cost);
            }
            if (!std::isfinite(sum)) continue;  // some row has no partner left: the pair is impossible
            leader[pair] = sum - (2.0 * (n + 4) * kRounding * magnitude + 0.5 * n * residual_error);
        }
    });

    if (given_up) return std::nullopt;
    if (stage.beta.empty()) stage.beta = solve_leader(leader, n).beta;
    std::vector<double> alpha(n);
    double sum = problem.constant, magnitude = std::abs(sum);
    for (int i = 0; i < n; ++i) {
        alpha[i] = kInfinity;
        for (int j = 0; j < n; ++j)
            alpha[i] = std::min(alpha[i], leader[static_cast<std::size_t>(i) * n + j] - stage.beta[j]);
        sum += alpha[i] + stage.beta[i];
        magnitude += std::abs(alpha[i]) + 2.0 * std::abs(stage.beta[i]);
    }
    Proof proof;
    const double slack = 2.0 * (n + 4) * kRounding * magnitude;
    proof.bound = std::isfinite(sum) ? sum - slack : kInfinity;
    proof.pair_bound.assign(pair_count, kInfinity);
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) {
            const std::size_t pair = static_cast<std::size_t>(i) * n + j;
            if (!std::isfinite(leader[pair])) continue;
            const double reduced = leader[pair] - stage.beta[j] - alpha[i];
            proof.pair_bound[pair] = proof.bound + reduced * (1.0 - 4.0 * kRounding) - 4.0 * kRounding * magnitude;
        }
    }
    return proof;
}

}  // namespace blindmatch
