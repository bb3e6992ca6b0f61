#include "bound/hahn_grant.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace blindmatch {
namespace {

// out[l] = base[l] - a[l] - b[l] - c[l] - shift, one row of a subproblem.
BLINDMATCH_KERNEL void subtract_row(double* out, const double* base, const double* a, const double* b, const double* c,
                                    double shift, int count) {
    for (int l = 0; l < count; ++l) out[l] = base[l] - a[l] - b[l] - c[l] - shift;
}

BLINDMATCH_KERNEL void scale_row(double* out, const double* row, double factor, int count) {
    for (int l = 0; l < count; ++l) out[l] = factor * row[l];
}

BLINDMATCH_KERNEL void add_scaled_row(double* out, const double* row, double factor, int count) {
    for (int l = 0; l < count; ++l) out[l] += factor * row[l];
}

double least_off_diagonal(const Grid<double, 2>& matrix, int n) {
    double least = INFINITY;
    for (int i = 0; i < n; ++i)
        for (int k = 0; k < n; ++k)
            if (i != k) least = std::min(least, matrix(i, k));
    return least;
}

}  // namespace

HahnGrant::HahnGrant(const Problem& problem, bool factorized, LapMethod method, bool evaluate_laps, int threads)
    : problem_(problem),
      method_(method),
      factorized_(factorized),
      evaluate_laps_(evaluate_laps),
      duals_(problem.n),
      leader_(problem_.linear),
      beta_(problem.n, 0.0),
      warm_({problem.n, problem.n, problem.n}, -1),
      bound_(problem_.constant),
      pool_(factorized ? threads : 1),
      candidates_(problem.n) {
    if (!problem.forbidden.empty()) throw std::invalid_argument("HahnGrant takes no forbidden pairs");
    nonnegative_ = shift_to_nonnegative();
    if (!factorized) {
        const int n = problem_.n;
        tensor_ = Grid<double, 4>({n, n, n, n});
        for (int i = 0; i < n; ++i)
            for (int j = 0; j < n; ++j)
                for (int k = 0; k < n; ++k)
                    for (int l = 0; l < n; ++l)
                        tensor_(i, j, k, l) =
                            0.5 * problem_.pair_cost(i, j, k, l) - duals_.u(k, i, j) - duals_.v(l, i, j);
    }
    for (int w = 0; w < pool_.size(); ++w) workers_.emplace_back(problem.n);
    std::vector<int> identity(problem.n);
    std::iota(identity.begin(), identity.end(), 0);
    offer(identity.data());  // so that a run cut short before its first sweep has a permutation
}

// The paper subtracts the least entries a, b from both matrices (end of its equivalence proof), so that all costs of
// pairs are non-negative and the bound is valid from the start. With A' = A - a, B' = B - b, the cost of a pair is 2
// A'_ik B'_jl + 2 b A'_ik + 2 a B'_jl + 2 a b: the last three terms are duals to start from, and sum up to a constant.
bool HahnGrant::shift_to_nonnegative() {
    const int n = problem_.n;
    if (n == 1) return true;  // there are no pairs
    const Factor& factor = problem_.factors.front();
    if (problem_.factors.size() != 1 || !is_symmetric(factor.source, n) || !is_symmetric(factor.target, n))
        return false;
    const double a = least_off_diagonal(factor.source, n), b = least_off_diagonal(factor.target, n);
    for (int i = 0; i < n; ++i) {
        for (int m = 0; m < n; ++m) {
            if (i == m) continue;
            const double row = b * (factor.source(i, m) - a) + a * b;
            const double column = a * (factor.target(i, m) - b);
            for (int other = 0; other < n; ++other) {
                duals_.u(m, i, other) = row;
                duals_.v(m, other, i) = column;
            }
            bound_ += row + column;
            beta_[i] += column;
        }
    }
    return true;
}

bool HahnGrant::sweep(Stop& stop) {
    const int n = problem_.n;
    solve_leader();         // Alg. 1, l. 5-7; Alg. 2, l. 6-8
    redistribute_leader();  // Alg. 1, l. 8-9; Alg. 2, l. 9-10
    if (n == 1) return true;
    for (int i = 0; i < n; ++i) {  // Alg. 1, l. 10; Alg. 2, l. 11
        // All (i, j) of one i touch different duals, so this is the sequential algorithm, whatever the threads.
        std::vector<char> done(n, 0);
        pool_.run(n, [&](int j, int worker) {
            if (stop()) return;
            solve_subproblem(i, j, worker);
            done[j] = 1;
        });
        for (int j = 0; j < n; ++j) {
            if (done[j] && candidates_[j].cost < cost_) {  // Alg. 2, l. 14: P* <- better(P*, P)
                cost_ = candidates_[j].cost;
                permutation_ = candidates_[j].permutation;
            }
        }
        if (std::find(done.begin(), done.end(), 0) != done.end()) return false;
    }
    ++sweeps_;
    epsilon_ *= 0.9;  // the paper's schedule for the auction
    return true;
}

void HahnGrant::solve_leader() {
    Lap& lap = workers_.front().lap;
    const int n = problem_.n;
    // Nothing is forbidden here, so an assignment exists.
    static_cast<void>(lap.solve(leader_.row(0), n, method_, epsilon_));
    offer(lap.row_to_col());  // Alg. 2, l. 7
    bound_ += lap.dual_sum();
    // The first sweep over costs of any sign leaves non-negative costs, but maybe negative leaders: those count from
    // here on.
    valid_ = nonnegative_ || sweeps_ > 0;
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) leader_(i, j) -= lap.u()[i] + lap.v()[j];
    for (int j = 0; j < n; ++j) beta_[j] += lap.v()[j];
}

void HahnGrant::redistribute_leader() {
    const int n = problem_.n;
    if (n == 1) return;
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) {
            double& leader = leader_(i, j);
            const double share = leader / (n - 1);
            for (int k = 0; k < n; ++k) {
                if (k == i) continue;
                duals_.u(k, i, j) -= share;
                for (int l = 0; l < n && !factorized_; ++l)
                    if (l != j) tensor_(i, j, k, l) += share;
            }
            leader = 0.0;
        }
    }
}

void HahnGrant::gather(int i, int j, double* matrix) {
    const int n = problem_.n;
    if (!factorized_) {  // Alg. 1, l. 11-12: take the complementary costs over
        for (int k = 0; k < n; ++k) {
            for (int l = 0; l < n; ++l) {
                if (k == i || l == j) continue;
                tensor_(i, j, k, l) += tensor_(k, l, i, j);
                tensor_(k, l, i, j) = 0.0;
                *matrix++ = tensor_(i, j, k, l);
            }
        }
        return;
    }
    // Alg. 2, l. 12: C_tmp_kl = 2 C1_ik C2_jl - U_ijk - V_ijl - U_kli - V_klj.
    std::vector<double> own(n), base(n), row(n);
    for (int l = 0; l < n; ++l) own[l] = duals_.v(l, i, j);
    for (int k = 0; k < n; ++k) {
        if (k == i) continue;
        const Factor& first = problem_.factors.front();
        scale_row(base.data(), first.target.row(j), 2.0 * first.source(i, k), n);
        for (std::size_t f = 1; f < problem_.factors.size(); ++f) {
            const Factor& factor = problem_.factors[f];
            add_scaled_row(base.data(), factor.target.row(j), 2.0 * factor.source(i, k), n);
        }
        subtract_row(row.data(), base.data(), own.data(), duals_.u.row(i, k), duals_.v.row(j, k), duals_.u(k, i, j), n);
        std::copy(row.begin(), row.begin() + j, matrix);
        std::copy(row.begin() + j + 1, row.end(), matrix + j);
        matrix += n - 1;
    }
}

void HahnGrant::solve_subproblem(int i, int j, int worker) {
    const int n = problem_.n, m = n - 1;
    Worker& w = workers_[worker];
    gather(i, j, w.matrix.row(0));
    int* warm = warm_.row(i, j);
    static_cast<void>(w.lap.solve(w.matrix.row(0), m, method_, epsilon_, warm));  // Alg. 1, l. 13; Alg. 2, l. 13
    const double *u = w.lap.u(), *v = w.lap.v();
    std::copy(w.lap.row_to_col(), w.lap.row_to_col() + m, warm);
    const double* left = w.matrix.row(0);
    for (int k = 0, row = 0; k < n; ++k) {
        if (k == i) continue;
        for (int l = 0, column = 0; l < n && !factorized_; ++l)
            if (l != j) tensor_(i, j, k, l) = *left++ - u[row] - v[column++];  // Alg. 1, l. 15
        duals_.u(k, i, j) += u[row++];                                         // Alg. 2, l. 16
    }
    for (int l = 0, column = 0; l < n; ++l)
        if (l != j) duals_.v(l, i, j) += v[column++];  // Alg. 2, l. 17
    leader_(i, j) = w.lap.dual_sum();                  // Alg. 1, l. 14; Alg. 2, l. 15

    candidates_[j].cost = INFINITY;
    if (!evaluate_laps_) return;
    w.permutation[i] = j;
    for (int k = 0, row = 0; k < n; ++k) {
        if (k == i) continue;
        const int column = w.lap.row_to_col()[row++];
        w.permutation[k] = column + (column >= j);
    }
    candidates_[j].cost = problem_.cost(w.permutation.data());
    candidates_[j].permutation = w.permutation;
}

void HahnGrant::offer(const int* permutation) {
    const double cost = problem_.cost(permutation);
    if (cost < cost_) {
        cost_ = cost;
        permutation_.assign(permutation, permutation + problem_.n);
    }
}

std::vector<double> HahnGrant::column_duals() {
    const int n = problem_.n;
    Lap& lap = workers_.front().lap;
    static_cast<void>(lap.solve(leader_.row(0), n));
    std::vector<double> beta = beta_;
    for (int j = 0; j < n; ++j) beta[j] += lap.v()[j];
    return beta;
}

}  // namespace blindmatch
