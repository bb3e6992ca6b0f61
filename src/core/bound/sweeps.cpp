#include "bound/sweeps.h"

#include <algorithm>

namespace blindmatch {
namespace {

struct Visit {
    const ScaledProblem* problem;
    const Duals* duals;
    std::uint16_t* previous;  // of this pair
    const int* batch;         // pairs that are visited at the same time, this one among them
    int batch_size;
    int i, j;
};

constexpr int kCentring = 2;  // passes

// Row k of the subproblem: what the duals leave of the costs between (i, j) and (k, .), which `cost(l)` returns for the
// vector at l. Returns the least.
template <class Cost>
BLINDMATCH_INLINE float build_row(const Visit& visit, int k, const float* own_v, float* row, const Cost& cost) {
    const float* other_u = visit.duals->u.row(visit.i, k);
    const float* other_v = visit.duals->v.row(visit.j, k);
    const float own_u = visit.duals->u(k, visit.i, visit.j);
    Vector<float> lowest = broadcast(kPadding);
    for (int l = 0; l < visit.problem->stride; l += 8) {
        const Vector<float> left = cost(l) - own_u - load(other_u + l) - load(other_v + l) - load(own_v + l);
        store(row + l, left);
        lowest = smaller(lowest, left);
    }
    return smallest_lane<float>(lowest);
}

// Where the problem holds every pair cost.
BLINDMATCH_INLINE float build_dense_row(const Visit& visit, int k, const float* own_v, float* row) {
    const float* costs = visit.problem->pair_costs.row(visit.i, visit.j, k);
    return build_row(visit, k, own_v, row, [costs](int l) { return load(costs + l); });
}

// Where the costs are sums of products.
BLINDMATCH_INLINE float build_factored_row(const Visit& visit, int k, const float* own_v, float* row) {
    const ScaledProblem& p = *visit.problem;
    const std::size_t plane = p.source.shape.place(1);
    const std::span<const int> used = p.used.at(visit.i, k);
    const float *a = p.source.row(0, visit.i, k), *b = p.target.row(0, visit.j), *b_first = b + used[0] * plane;
    const float first = a[used[0] * plane];
    return build_row(visit, k, own_v, row, [=, rest = used.subspan(1)](int l) {
        Vector<float> cost = first * load(b_first + l);
        for (const int f : rest) cost += a[f * plane] * load(b + f * plane + l);
        return cost;
    });
}

// Two pairs that are visited at the same time meet in one entry of each other's subproblems: each takes half of it.
BLINDMATCH_INLINE void share_with_batch(const Visit& visit, SubproblemLap& w) {
    const int n = visit.problem->n;
    for (int other = 0; other < visit.batch_size; ++other) {
        const int k = visit.batch[other] / n, l = visit.batch[other] % n;
        if (k == visit.i || l == visit.j) continue;
        w.matrix(k, l) *= 0.5f;
        w.row_dual[k] = row_minimum(w.matrix.row(k), visit.problem->stride);
    }
}

// The duals V of the pair itself, in scratch space that is free until the augmentations start.
BLINDMATCH_INLINE float* own_column_duals(const Visit& visit, SubproblemLap& w) {
    const int n = visit.problem->n, stride = visit.problem->stride;
    float* own_v = w.reached.data();
    for (int l = 0; l < n; ++l) own_v[l] = visit.duals->v(l, visit.i, visit.j);
    for (int l = n; l < stride; ++l) own_v[l] = -kPadding;
    own_v[visit.j] = -kPadding;
    return own_v;
}

// What the pair holds itself, and half of the least residual of every other row.
BLINDMATCH_KERNEL double charged_leader(const Visit& visit, SubproblemLap& w) {
    const int n = visit.problem->n, i = visit.i, j = visit.j;
    const float* own_v = own_column_duals(visit, w);
    double sum = visit.problem->linear(i, j);
    for (int l = 0; l < n; ++l) {
        if (l != j) sum += own_v[l];
    }
    for (int k = 0; k < n; ++k) {
        if (k == i) continue;
        const float least = build_dense_row(visit, k, own_v, w.matrix.row(k));
        sum += visit.duals->u(k, i, j) + 0.5 * static_cast<double>(least);
    }
    return sum;
}

// Solves the subproblem of one pair: its duals are left in `w`. Reads u and v, writes neither. Where the numbers are
// out of range the duals are zero, so that the visit moves nothing.
BLINDMATCH_KERNEL void solve_pair(const Visit& visit, SubproblemLap& w) {
    const int n = visit.problem->n, i = visit.i, j = visit.j;
    const float* own_v = own_column_duals(visit, w);
    const bool dense = !visit.problem->pair_costs.values.empty();
    for (int k = 0; k < n; ++k) {
        if (k == i) continue;
        float* row = w.matrix.row(k);
        w.row_dual[k] = dense ? build_dense_row(visit, k, own_v, row) : build_factored_row(visit, k, own_v, row);
    }
    if (visit.batch_size > 1) share_with_batch(visit, w);
    if (!solve_subproblem(w, i, j, visit.previous, 1e-7f)) {
        for (int k = 0; k < n; ++k) {
            w.row_dual[k] = w.column_dual[k] = 0.0f;
            visit.previous[k] = static_cast<std::uint16_t>(n);
        }
        return;
    }
    for (int k = 0; k < n; ++k) visit.previous[k] = static_cast<std::uint16_t>(w.column_of[k]);
    centre_duals(w, i, kCentring);
}

}  // namespace

Sweeps::Sweeps(const ScaledProblem& problem, std::vector<std::uint8_t> forbidden, ThreadPool& pool)
    : problem_(problem),
      n_(problem.n),
      duals_(problem.n),
      forbidden_({n_, n_}),
      previous_({n_, n_, n_}, static_cast<std::uint16_t>(n_)),
      leader_(problem.linear),
      assignment_(n_, -1),
      bound_(problem.constant),
      pool_(pool),
      found_({batch_size(), 2, n_}),
      workspaces_(pool.size(), SubproblemLap(n_)) {
    for (int i = 0; i < n_; ++i) {
        for (int j = 0; j < n_; ++j) {
            if (forbidden[forbidden_.shape.place(i, j)]) forbid(i, j);
        }
    }
}

void Sweeps::forbid(int i, int j) {
    forbidden_(i, j) = 1;
    // Every other subproblem now sees a blocked entry here, at no cost.
    for (int k = 0; k < n_; ++k) {
        duals_.u(k, i, j) = -kBlocked;
        duals_.v(k, i, j) = 0.0f;
    }
}

bool Sweeps::start_from(Duals duals) {
    for (const auto* side : {&duals.u, &duals.v}) {
        bool usable = true;
        for (float x : side->values) usable &= x >= -kLargestDual && x <= kLargestDual;  // not NaN, either
        if (!usable) return false;
    }
    duals_ = std::move(duals);
    bound_ = problem_.constant;
    leader_ = problem_.linear;
    for (int i = 0; i < n_; ++i) {
        for (int j = 0; j < n_; ++j) {
            if (is_forbidden(i, j)) {
                forbid(i, j);
                continue;
            }
            double sum = 0.0;
            for (int k = 0; k < n_; ++k) {
                if (k != i) sum += duals_.u(k, i, j);
                if (k != j) sum += duals_.v(k, i, j);
            }
            leader_(i, j) += sum;
        }
    }
    return true;
}

void Sweeps::start_by_sorting(Stop& stop) {
    const int m = n_ - 1;
    Grid<int, 2> columns_down({n_, m});
    std::vector<int> rows_up(m);
    for (int j = 0; j < n_; ++j) {
        int* order = columns_down.row(j);
        for (int l = 0, t = 0; l < n_; ++l) {
            if (l != j) order[t++] = l;
        }
        const float* b = problem_.target.row(0, j);
        std::stable_sort(order, order + m, [b](int x, int y) { return b[x] > b[y]; });
    }
    std::vector<double> column_dual(m);
    for (int i = 0; i < n_ && !stop(); ++i) {  // cut short, the other rows start from zero: as valid, not as good
        const float* a = problem_.source.row(0, i);
        for (int k = 0, t = 0; k < n_; ++k) {
            if (k != i) rows_up[t++] = k;
        }
        std::stable_sort(rows_up.begin(), rows_up.end(), [a](int x, int y) { return a[x] < a[y]; });
        for (int j = 0; j < n_; ++j) {
            if (is_forbidden(i, j)) continue;
            const int* order = columns_down.row(j);
            const float* b = problem_.target.row(0, j);
            double mean = 0.0;
            for (int s = 0; s < m; ++s) {
                // Between neighbours in the sorted order the dual may fall by a[s] or by a[s+1] times the step of b.
                column_dual[s] =
                    s == 0 ? 0.0
                           : column_dual[s - 1] + 0.25 * (static_cast<double>(a[rows_up[s - 1]]) + a[rows_up[s]]) *
                                                      (static_cast<double>(b[order[s]]) - b[order[s - 1]]);
                mean += column_dual[s] / m;
            }
            std::uint16_t* previous = previous_.row(i, j);
            previous[i] = static_cast<std::uint16_t>(j);
            double gain = 0.0;
            for (int s = 0; s < m; ++s) {
                const int k = rows_up[s], l = order[s];
                previous[k] = static_cast<std::uint16_t>(l);
                const float v = static_cast<float>(column_dual[s] - mean);
                const float u = static_cast<float>(0.5 * static_cast<double>(a[k]) * b[l] - v);
                duals_.u(k, i, j) = u;
                duals_.v(l, i, j) = v;
                gain += static_cast<double>(u) + v;
            }
            leader_(i, j) += gain;
        }
    }
}

void Sweeps::give_back_leaders() {
    if (n_ == 1) return;
    for (int i = 0; i < n_; ++i) {
        for (int j = 0; j < n_; ++j) {
            if (is_forbidden(i, j)) continue;
            const float share = static_cast<float>(leader_(i, j) / (n_ - 1));
            for (int k = 0; k < n_; ++k) {
                if (k != i) duals_.u(k, i, j) -= share;
            }
            leader_(i, j) = 0.0;
        }
    }
}

bool Sweeps::sweep(Stop& stop, bool redistribute) {
    order_.clear();
    for (int pair = 0; pair < n_ * n_; ++pair) {
        if (!forbidden()[pair]) order_.push_back(pair);
    }
    // Pairs with a small leader need the costs that they share with others most, so they choose first.
    std::stable_sort(order_.begin(), order_.end(),
                     [&leader = reduced_leader()](int x, int y) { return leader[x] < leader[y]; });
    if (redistribute) give_back_leaders();
    const int step = batch_size();
    for (std::size_t first = 0; first < order_.size(); first += step) {
        const int count = static_cast<int>(std::min<std::size_t>(step, order_.size() - first));
        if (!visit(order_.data() + first, count, stop)) return false;
    }
    return true;
}

bool Sweeps::visit(const int* batch, int count, Stop& stop) {
    pool_.run(count, [&](int index, int worker) {
        if (stop()) return;
        const int i = batch[index] / n_, j = batch[index] % n_;
        SubproblemLap& w = workspaces_[worker];
        solve_pair({&problem_, &duals_, previous_.row(i, j), batch, count, i, j}, w);
        w.row_dual[i] = w.column_dual[j] = 0.0f;
        std::copy_n(w.row_dual.begin(), n_, found_.row(index, 0));
        std::copy_n(w.column_dual.begin(), n_, found_.row(index, 1));
    });
    if (stop()) return false;
    pool_.run(count, [&](int index, int) {
        const int i = batch[index] / n_, j = batch[index] % n_;
        const float *u = found_.row(index, 0), *v = found_.row(index, 1);
        double gain = 0.0;
        for (int k = 0; k < n_; ++k) {
            duals_.u(k, i, j) += u[k];
            duals_.v(k, i, j) += v[k];
            gain += static_cast<double>(u[k]) + v[k];
        }
        leader_(i, j) += gain;
    });
    return true;
}

std::vector<double> Sweeps::charged_leaders() {
    Grid<double, 2> leaders({n_, n_}, kInfinity);
    pool_.run(n_, [&](int i, int worker) {
        for (int j = 0; j < n_; ++j) {
            if (is_forbidden(i, j)) continue;
            leaders(i, j) = charged_leader({&problem_, &duals_, nullptr, nullptr, 0, i, j}, workspaces_[worker]);
        }
    });
    return leaders.values;
}

Stage Sweeps::stage(float factor) const {
    Grid<float, 3> u({n_, n_, n_}), v(u);
    for (int k = 0; k < n_; ++k) {
        for (int i = 0; i < n_; ++i) {
            for (int j = 0; j < n_; ++j) {
                if (is_forbidden(i, j)) continue;
                u(k, i, j) = duals_.u(k, i, j) * factor;
                v(k, i, j) = duals_.v(k, i, j) * factor;
            }
        }
    }
    return {.n = n_, .u = std::move(u.values), .v = std::move(v.values), .beta = {}, .forbidden = forbidden()};
}

void Sweeps::close() {
    std::vector<double> leader = reduced_leader();
    for (std::size_t pair = 0; pair < leader.size(); ++pair) {
        if (forbidden()[pair]) leader[pair] = kInfinity;
    }
    const LeaderDuals duals = solve_leader(std::move(leader), n_);
    assignment_ = duals.assignment;
    bound_ += duals.value;
    // No permutation of allowed pairs is left, which the next proof will show. The duals are as large as what stands
    // for "blocked": leaders reduced by them would grow by a large factor with each sweep, until they overflow.
    for (int i = 0; i < n_; ++i) {
        if (is_forbidden(i, assignment_[i])) return;
    }
    for (int i = 0; i < n_; ++i) {
        for (int j = 0; j < n_; ++j) leader_(i, j) -= duals.alpha[i] + duals.beta[j];
    }
}

Stage dense_sweeps(const ScaledProblem& problem, std::vector<std::uint8_t> forbidden, int count, double gain,
                   ThreadPool& pool, Stop& stop) {
    Sweeps sweeps(problem, std::move(forbidden), pool);
    sweeps.close();
    const double start = sweeps.bound();
    double before = start;
    for (int round = 0; round < count; ++round) {
        if (!sweeps.sweep(stop, round > 0)) break;
        sweeps.close();
        const double now = sweeps.bound();
        if (round > 0 && now - before < gain * (now - start)) break;
        before = now;
    }
    Stage stage = sweeps.stage(1.0f);
    stage.beta = solve_leader(sweeps.charged_leaders(), problem.n).beta;
    return stage;
}

}  // namespace blindmatch
