#include "bound/rlt_lp.h"

#include <algorithm>
#include <cmath>

#include "bound/bound_proof.h"

namespace blindmatch {
namespace {

constexpr float kNoVariable = -1e6f;  // as a V: makes the gradient of a y that does not exist huge, so it stays zero
constexpr double kStep = 0.95;        // of the largest step for which the iteration converges
constexpr double kLongest = 0.15;     // restart after this share of all iterations
constexpr double kMoveBalance = 0.7;  // of the measured ratio of dual to primal moves
// Range of the primal weight. Once rounding in float32 is all that moves the duals (or y), their ratio says nothing and
// the weight would run away, to zero or infinity; beyond this range one side only moves by its rounding errors anyway.
constexpr double kLeastWeight = 1e-6, kMostWeight = 1e4;
constexpr int kBlocks = 8;  // fixed, so that sums do not depend on the number of threads

bool is_dense(int allowed, int n) { return 2 * allowed > n; }

// A tournament: in each round every block meets at most one other; the last round holds each block with itself.
std::vector<std::vector<std::pair<int, int>>> tournament(int blocks) {
    std::vector<std::vector<std::pair<int, int>>> rounds;
    for (int r = 0; r + 1 < blocks; ++r) {
        std::vector<std::pair<int, int>> round;
        round.emplace_back(std::min(r, blocks - 1), blocks - 1);
        for (int t = 1; t < blocks / 2; ++t) {
            const int x = (r + t) % (blocks - 1), y = (r + blocks - 1 - t) % (blocks - 1);
            round.emplace_back(std::min(x, y), std::max(x, y));
        }
        rounds.push_back(std::move(round));
    }
    rounds.emplace_back();
    for (int b = 0; b < blocks; ++b) rounds.back().emplace_back(b, b);
    return rounds;
}

}  // namespace

RltLp::RltLp(const ScaledProblem& problem, const std::vector<std::uint8_t>& forbidden, ThreadPool& pool)
    : problem_(problem), pool_(pool), n_(problem.n), stride_(problem.stride), rows_(n_), rounds_(tournament(kBlocks)) {
    const GridView<const std::uint8_t, 2> is_forbidden{forbidden.data(), {n_, n_}};
    std::vector<int> column_count(n_, 0);
    for (int i = 0; i < n_; ++i) {
        RltRow& row = rows_[i];
        row.slot.assign(n_, -1);
        int count = 0;
        for (int j = 0; j < n_; ++j) count += !is_forbidden(i, j);
        row.dense = is_dense(count, n_);
        for (int j = 0; j < n_; ++j) {
            const bool allowed = !is_forbidden(i, j);
            if (allowed) {
                row.slot[j] = static_cast<int>(row.column.size());
                row.active.push_back(row.slot[j]);
                ++column_count[j];
            }
            if (allowed || row.dense) row.column.push_back(j);
        }
        row.width = padded(static_cast<int>(row.column.size()));
        row.column.resize(row.width, 0);
        row.u = row.u_sum = row.v_transposed_sum = AlignedGrid<float, 2>({n_, row.width});
        row.v_transposed = AlignedGrid<float, 2>({n_, row.width}, kNoVariable);
        row.v = row.v_sum = AlignedGrid<float, 2>({row.width, stride_});
        row.x.assign(row.width, 0.0);
        row.x_reflected.assign(row.width, 0.0f);
        row.target = AlignedGrid<float, 3>({problem.factor_count, n_, row.width});
        for (int f = 0; f < problem.factor_count; ++f) {
            for (int j = 0; j < n_; ++j) {
                for (int s : row.active) row.target(f, j, s) = problem.target(f, j, row.column[s]);
            }
        }
    }
    column_step_.assign(stride_, 0.0f);
    for (int l = 0; l < n_; ++l) column_step_[l] = 1.0f / static_cast<float>(column_count[l] + 1);
    y_offset_ = Grid<std::size_t, 2>({n_, n_});
    std::size_t size = 0;
    for (int i = 0; i < n_; ++i) {
        for (int k = i + 1; k < n_; ++k) {
            y_offset_(i, k) = size;
            size += Shape<2>(rows_[i].count(), rows_[k].width).size();
        }
    }
    y_.assign(size, 0.0f);
    y_move_ = Grid<double, 2>({n_, n_});
    beta_.assign(n_, 0.0);
}

std::size_t RltLp::bytes(int n, const std::vector<std::uint8_t>& forbidden) {
    std::size_t size = 0, above = 0;
    for (int i = 0; i < n; ++i) {
        const auto row = forbidden.begin() + static_cast<std::ptrdiff_t>(n) * i;
        const int count = static_cast<int>(std::count(row, row + n, 0));
        size += above * padded(is_dense(count, n) ? n : count);
        above += count;
    }
    return 2 * sizeof(float) * size;
}

void RltLp::start(const Duals& duals, const std::vector<int>& permutation, double trust) {
    Grid<double, 2> leader({n_, n_}, kInfinity);
    for (int i = 0; i < n_; ++i) {
        RltRow& row = rows_[i];
        for (int s : row.active) {
            const int j = row.column[s];
            double sum = problem_.linear(i, j);
            for (int k = 0; k < n_; ++k) {
                if (k != i) sum += row.u(k, s) = duals.u(k, i, j);
                if (k != j) sum += row.v(s, k) = duals.v(k, i, j);
            }
            leader(i, j) = sum;
        }
        for (std::size_t a = 0; a < row.active.size(); ++a) {
            const int s = row.active[a];
            row.x[s] = trust * (row.column[s] == permutation[i]) + (1.0 - trust) / row.count();
            for (int k = i + 1; k < n_; ++k) {
                const RltRow& other = rows_[k];
                float* y = part(y_, i, k).row(a);
                for (int c : other.active) {
                    if (other.column[c] == row.column[s]) continue;
                    const bool used = row.column[s] == permutation[i] && other.column[c] == permutation[k];
                    y[c] = static_cast<float>(trust * used +
                                              (1.0 - trust) / (row.count() * std::max(1, other.count() - 1)));
                }
            }
        }
    }
    const LeaderDuals leader_duals = solve_leader(leader.values, n_);
    for (int i = 0; i < n_; ++i) rows_[i].alpha = leader_duals.alpha[i];
    beta_ = leader_duals.beta;
    prepare();
}

void RltLp::start(const RltLp& other) {
    for (int i = 0; i < n_; ++i) {
        RltRow& row = rows_[i];
        const RltRow& old = other.rows_[i];
        row.alpha = old.alpha;
        std::vector<std::size_t> rank(old.width, 0);  // of a slot among the active ones
        for (std::size_t a = 0; a < old.active.size(); ++a) rank[old.active[a]] = a;
        for (std::size_t a = 0; a < row.active.size(); ++a) {
            const int s = row.active[a], t = old.slot[row.column[s]];
            row.x[s] = old.x[t];
            for (int k = 0; k < n_; ++k) row.u(k, s) = old.u(k, t);
            std::copy_n(old.v.row(t), stride_, row.v.row(s));
            for (int k = i + 1; k < n_; ++k) {
                const RltRow &to = rows_[k], &from = other.rows_[k];
                const float* old_y = other.part(other.y_, i, k).row(rank[t]);
                float* y = part(y_, i, k).row(a);
                for (int c : to.active) y[c] = old_y[from.slot[to.column[c]]];
            }
        }
    }
    beta_ = other.beta_;
    weight_ = other.weight_;
    iteration_ = other.iteration_;
    prepare();
}

void RltLp::prepare() {
    for (RltRow& row : rows_) refresh_row(row);
    restart();
}

// The transposed copy of V, and empty sums for the next iteration.
void RltLp::refresh_row(RltRow& row) {
    for (int s : row.active) {
        for (int l = 0; l < n_; ++l) row.v_transposed(l, s) = row.v(s, l);
        row.v_transposed(row.column[s], s) = kNoVariable;
    }
    for (auto* sum : {&row.u_sum, &row.v_sum, &row.v_transposed_sum}) std::ranges::fill(sum->values, 0.0f);
}

void RltLp::update_row(int i, const RltSteps& steps) {
    RltRow& row = rows_[i];
    row.primal_move = row.dual_move = 0.0;
    std::vector<double> gradient(row.width, 0.0);
    for (int k = 0; k < n_; ++k) {
        for (int s = 0; s < row.width; ++s) gradient[s] += row.u(k, s);
    }
    double row_sum = 0.0;
    for (int s : row.active) {
        const int j = row.column[s];
        double sum = gradient[s] + problem_.linear(i, j) - row.alpha - beta_[j];
        for (int l = 0; l < n_; ++l) sum += row.v(s, l);
        const double old = row.x[s], next = std::max(0.0, old - steps.x * sum), move = next - old;
        row.primal_move += 2.0 * n_ * move * move;
        row.x[s] = steps.keep * (next + move) + steps.anchor * row.x_anchor[s];
        row.x_reflected[s] = static_cast<float>(next + move);
        row_sum += next + move;
    }
    for (int k = 0; k < n_; ++k) {
        if (k == i) continue;
        const float step = static_cast<float>(steps.dual / (rows_[k].count() + 1.0));
        row.dual_move += update_u(row.u.row(k), row.u_anchor.row(k), row.x_reflected.data(), row.u_sum.row(k), step,
                                  steps.keep, steps.anchor, row.width);
    }
    AlignedVector<float> step(stride_, 0.0f);
    for (int l = 0; l < n_; ++l) step[l] = static_cast<float>(steps.dual) * column_step_[l];
    for (int l = 0; l < n_; ++l) {
        for (int s : row.active) row.v_sum(s, l) += row.v_transposed_sum(l, s);
    }
    for (int s : row.active) {
        row.v_sum(s, row.column[s]) = row.x_reflected[s];  // V_ij,j does not exist: no move
        row.dual_move += update_v(row.v.row(s), row.v_anchor.row(s), row.x_reflected[s], row.v_sum.row(s), step.data(),
                                  steps.keep, steps.anchor, stride_);
    }
    row.dual_move *= steps.dual;  // now the squared moves, each divided by its own step size
    const double move = steps.dual / n_ * (1.0 - row_sum);
    row.dual_move += n_ * move * move;
    row.alpha = steps.keep * (row.alpha + 2.0 * move) + steps.anchor * row.alpha_anchor;
}

bool RltLp::iterate(int count, Stop& stop) {
    std::vector<int> block_start(kBlocks + 1);
    for (int b = 0; b <= kBlocks; ++b) block_start[b] = static_cast<int>(static_cast<std::int64_t>(n_) * b / kBlocks);
    for (int it = 0; it < count; ++it, ++iteration_) {
        const double age = static_cast<double>(iteration_ - restarted_);
        const RltSteps steps{static_cast<float>(kStep / (4.0 * weight_)), static_cast<float>((age + 1.0) / (age + 2.0)),
                             static_cast<float>(1.0 / (age + 2.0)), kStep / (2.0 * n_ * weight_), kStep * weight_};
        for (const auto& round : rounds_) {
            if (stop()) return false;
            pool_.run(static_cast<int>(round.size()), [&](int index, int) {
                const auto [x, y] = round[index];
                for (int i = block_start[x]; i < block_start[x + 1]; ++i) {
                    for (int k = x == y ? i + 1 : block_start[y]; k < block_start[y + 1]; ++k) {
                        y_move_(i, k) = update_y(problem_, rows_[i], rows_[k], i, k, part(y_, i, k),
                                                 part(std::as_const(y_anchor_), i, k), steps);
                    }
                }
            });
        }
        pool_.run(n_, [&](int i, int) {
            update_row(i, steps);
            refresh_row(rows_[i]);
        });
        double primal = 0.0, dual = 0.0;
        for (double move : y_move_.values) primal += 4.0 * move;
        std::vector<double> column_sum(n_, 0.0);
        for (const RltRow& row : rows_) {
            primal += row.primal_move;
            dual += row.dual_move;
            for (int s : row.active) column_sum[row.column[s]] += row.x_reflected[s];
        }
        for (int j = 0; j < n_; ++j) {
            const double move = steps.dual / n_ * (1.0 - column_sum[j]);
            dual += n_ * move * move;
            beta_[j] = steps.keep * (beta_[j] + 2.0 * move) + steps.anchor * beta_anchor_[j];
        }
        const double residual = std::sqrt(weight_ * primal + dual / weight_);
        if (first_residual_ < 0.0) first_residual_ = residual;
        const bool far_down = residual <= 0.2 * first_residual_;
        const bool down_and_rising = residual <= 0.8 * first_residual_ && residual > last_residual_;
        const bool too_long = age >= kLongest * static_cast<double>(iteration_);
        last_residual_ = residual;
        if (age > 20 && (far_down || down_and_rising || too_long)) {
            ++iteration_;
            restart();
            --iteration_;
        }
    }
    return true;
}

void RltLp::restart() {
    if (!y_anchor_.empty()) {  // balance the moves of both sides since the last restart
        double primal = 4.0 * squared_distance(y_, y_anchor_), dual = 0.0;
        for (const RltRow& row : rows_) {
            for (int s : row.active) primal += 2.0 * n_ * (row.x[s] - row.x_anchor[s]) * (row.x[s] - row.x_anchor[s]);
            dual += n_ * squared_distance(row.u.values, row.u_anchor.values);
            dual += n_ * squared_distance(row.v.values, row.v_anchor.values);
        }
        if (primal > 1e-20 && dual > 1e-20 && std::isfinite(dual / primal)) {
            const double balanced = std::sqrt(weight_ * kMoveBalance * std::sqrt(dual / primal));
            weight_ = std::clamp(balanced, kLeastWeight, kMostWeight);
        }
    }
    y_anchor_ = y_;
    for (RltRow& row : rows_) {
        row.u_anchor = row.u;
        row.v_anchor = row.v;
        row.x_anchor = row.x;
        row.alpha_anchor = row.alpha;
    }
    beta_anchor_ = beta_;
    restarted_ = iteration_;
    first_residual_ = -1.0;
}

Duals RltLp::duals() const {
    Duals duals(n_);
    for (int i = 0; i < n_; ++i) {
        const RltRow& row = rows_[i];
        for (int s : row.active) {
            for (int k = 0; k < n_; ++k) {
                duals.u(k, i, row.column[s]) = row.u(k, s);
                duals.v(k, i, row.column[s]) = row.v(s, k);
            }
        }
    }
    return duals;
}

}  // namespace blindmatch
