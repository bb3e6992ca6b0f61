#include "bound/bound_proof.h"

#include <atomic>

#include "lap/lap.h"

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
          used(problem),
          source({factor_count, n, n}),
          target({factor_count, n, stride}),
          blocked({n, stride}, kInfinity),
          u({n, n, stride}),
          v(u) {
        for (int f = 0; f < factor_count; ++f) {
            const Factor& factor = problem.factors[f];
            for (int i = 0; i < n; ++i) {
                for (int k = 0; k < n; ++k) source(f, i, k) = 2.0 * factor.source(i, k);
                std::copy_n(factor.target.row(i), n, target.row(f, i));
            }
            largest_cost += 2.0 * largest_magnitude(factor.source.values) * largest_magnitude(factor.target.values);
        }
        const GridView<const float, 3> stage_u{stage.u.data(), {n, n, n}}, stage_v{stage.v.data(), {n, n, n}};
        for (int k = 0; k < n; ++k) {
            if (stop() && stop.interrupted()) return;
            for (int i = 0; i < n; ++i) {
                for (int j = 0; j < n; ++j) {
                    if (stage.forbidden[problem.linear.shape.place(i, j)]) continue;
                    blocked(i, j) = 0.0;
                    u(k, i, j) = stage_u(k, i, j);
                    v(k, i, j) = stage_v(k, i, j);
                }
            }
        }
        largest_u = largest_magnitude(u.values);
        largest_v = largest_magnitude(v.values);
    }

    // What pair (i,j) is worth with the `smallest` residuals of its rows, rounded down. Infinite if some row has no
    // partner left: the pair is impossible.
    double leader(double linear, int i, int j, const std::vector<double>& smallest) const {
        double sum = linear, magnitude = std::abs(sum);
        for (int k = 0; k < n; ++k) {
            double part = 0.0;
            if (k != i) part += u(k, i, j) + 0.5 * smallest[k];
            if (k != j) part += v(k, i, j);
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
    UsedFactors used;
    Grid<double, 3> source;
    Grid<double, 3> target;   // factor x n x stride
    Grid<double, 2> blocked;  // n x stride: 0 or infinity
    Grid<float, 3> u, v;      // n x n x stride
    double largest_cost = 0.0, largest_u = 0.0, largest_v = 0.0;
};

// For pair (i,j): smallest[k] = min_l R_ijkl over allowed l != j. Infinite where row k has no such l.
BLINDMATCH_KERNEL void smallest_residuals(const ProofInput& d, int i, int j, double* column_part, double* smallest) {
    const int n = d.n, stride = d.stride;
    for (int l = 0; l < n; ++l) column_part[l] = d.v(l, i, j);
    for (int l = n; l < stride; ++l) column_part[l] = -kInfinity;
    column_part[j] = -kInfinity;  // l = j is no partner
    for (int k = 0; k < n; ++k) {
        if (k == i) continue;
        const double from_row = d.u(k, i, j);
        const float *u = d.u.row(i, k), *v = d.v.row(j, k);
        const double* blocked = d.blocked.row(k);
        const std::span<const int> used = d.used.at(i, k);
        Vector<double> lowest = broadcast(kInfinity);
        for (int l = 0; l < stride; l += 4) {
            Vector<double> w{};
            for (const int f : used) {
                w += d.source(f, i, k) * load(d.target.row(f, j) + l);
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
std::optional<Grid<double, 2>> leaders(const Problem& problem, const Stage& stage, const ProofInput& input,
                                       ThreadPool& pool, Stop& stop) {
    const int n = problem.n;
    Grid<double, 2> leader({n, n}, kInfinity);
    std::atomic<bool> given_up{false};
    pool.run(n, [&](int i, int) {
        // A proof that is nearly done when the time is up may end; it is what the time was spent for.
        if (stop() && (stop.interrupted() || stop.remaining() < -kGrace)) given_up = true;
        if (given_up) return;
        std::vector<double> column_part(input.stride), smallest(n);
        for (int j = 0; j < n; ++j) {
            if (stage.forbidden[leader.shape.place(i, j)]) continue;
            smallest_residuals(input, i, j, column_part.data(), smallest.data());
            leader(i, j) = input.leader(problem.linear(i, j), i, j, smallest);
        }
    });
    if (given_up) return std::nullopt;
    return leader;
}

// What the column duals `beta` of the leaders' assignment problem prove, for all permutations and for each pair.
Proof proof_of(double constant, const Grid<double, 2>& leader, const std::vector<double>& beta) {
    const int n = static_cast<int>(beta.size());
    std::vector<double> alpha(n);
    double sum = constant, magnitude = std::abs(sum);
    for (int i = 0; i < n; ++i) {
        alpha[i] = kInfinity;
        for (int j = 0; j < n; ++j) alpha[i] = std::min(alpha[i], leader(i, j) - beta[j]);
        sum += alpha[i] + beta[i];
        magnitude += std::abs(alpha[i]) + 2.0 * std::abs(beta[i]);
    }
    Proof proof;
    const double slack = 2.0 * (n + 4) * kRounding * magnitude;
    proof.bound = std::isfinite(sum) ? sum - slack : kInfinity;
    Grid<double, 2> pair_bound({n, n}, kInfinity);
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) {
            if (!std::isfinite(leader(i, j))) continue;
            const double reduced = leader(i, j) - beta[j] - alpha[i];
            pair_bound(i, j) = proof.bound + reduced * (1.0 - 4.0 * kRounding) - 4.0 * kRounding * magnitude;
        }
    }
    proof.pair_bound = std::move(pair_bound.values);
    return proof;
}

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

std::optional<Proof> prove(const Problem& problem, Stage& stage, ThreadPool& pool, Stop& stop) {
    zero_unless_finite(stage.u);
    zero_unless_finite(stage.v);
    const ProofInput input(problem, stage, stop);
    const std::optional<Grid<double, 2>> leader = leaders(problem, stage, input, pool, stop);
    if (!leader) return std::nullopt;
    if (stage.beta.empty()) stage.beta = solve_leader(leader->values, problem.n).beta;
    return proof_of(problem.constant, *leader, stage.beta);
}

}  // namespace blindmatch
