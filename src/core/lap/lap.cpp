#include "lap/lap.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "lap/lap_kernels.h"

namespace blindmatch {
namespace {

using namespace lap_kernels;

// Sums of this many duals, each at most n times the largest cost, stay finite. About 1e300 for n = 5000.
double largest_cost(int n) { return std::numeric_limits<double>::max() / (4.0 * (n + 1.0) * (n + 1.0)); }

// Row minima into u. True: some entry is above `limit` or NaN, so all need a closer look.
BLINDMATCH_KERNEL bool row_minima(const LapMatrix& c, double limit, double* u) {
    const Values most = broadcast(limit);
    Columns odd{};
    for (int i = 0; i < c.n; ++i) {
        const double* row = c.row(i);
        Values least = broadcast(kLapInfinity);
        for_each_vector(c.n, [&](int j) {
            const Values x = load(row + j);
            least = smaller(x, least);
            odd |= ~(x <= most);
        });
        u[i] = smallest_lane<double>(least);
    }
    return (odd[0] | odd[1] | odd[2] | odd[3]) != 0;
}

BLINDMATCH_KERNEL void feasible_rows(const LapMatrix& c, const double* v, double* u) {
    for (int i = 0; i < c.n; ++i) u[i] = row_minimum(c.row(i), v, c.n);
}

[[noreturn]] void refuse(int i, int j, double value) {
    const std::string where = "cost[" + std::to_string(i) + "][" + std::to_string(j) + "] is ";
    if (std::isnan(value)) throw std::invalid_argument(where + "NaN");
    if (std::isinf(value)) throw std::invalid_argument(where + "-infinity; only +infinity (forbidden) is allowed");
    throw std::invalid_argument(where + std::to_string(value) + ": so large that sums of costs overflow");
}

// Leaves the row minima in u. False: a row has no allowed pair.
bool check_costs(LapWork& work, const LapMatrix& c) {
    const double limit = largest_cost(c.n);
    const bool odd = row_minima(c, limit, work.u.data());
    const double least = *std::min_element(work.u.begin(), work.u.begin() + c.n);
    if (odd || least < -limit) {
        for (int i = 0; i < c.n; ++i) {
            for (int j = 0; j < c.n; ++j) {
                const double x = c(i, j);
                if (!(std::abs(x) <= limit) && x != kLapInfinity) refuse(i, j, x);
            }
        }
    }
    return !odd || std::none_of(work.u.begin(), work.u.begin() + c.n, [](double x) { return x == kLapInfinity; });
}

// The same problem with dummy rows and columns that can only be paired with each other, at no cost.
LapMatrix enlarge(LapWork& work, const LapMatrix& c) {
    std::fill(work.padded.begin(), work.padded.end(), kLapInfinity);
    for (int i = 0; i < kLapLanes; ++i) {
        if (i < c.n) {
            std::copy_n(c.row(i), c.n, work.padded.begin() + i * kLapLanes);
        } else {
            work.padded[i * kLapLanes + i] = 0.0;
        }
    }
    return {work.padded.data(), static_cast<std::size_t>(kLapLanes), kLapLanes};
}

}  // namespace

LapWork::LapWork(int max_rows) : max_n(std::max(max_rows, kLapLanes)) {
    for (auto* list : {&row_to_col, &col_to_row, &free_columns, &rows, &next_rows, &reached}) list->assign(max_n, -1);
    for (auto* list : {&u, &v, &distance, &open_v, &reached_distance}) list->assign(max_n, 0.0);
    previous.assign(max_n, 0);
    padded.assign(kLapLanes * kLapLanes, 0.0);
}

void LapWork::clear(int n) {
    std::fill_n(row_to_col.begin(), n, -1);
    std::fill_n(col_to_row.begin(), n, -1);
    augmentations = 0;
}

void LapWork::list_free_columns(int n) {
    free_column_count = 0;
    for (int j = 0; j < n; ++j) {
        if (col_to_row[j] < 0) free_columns[free_column_count++] = j;
    }
}

void LapWork::remove_free_column(int j) {
    int f = 0;
    while (free_columns[f] != j) ++f;
    free_columns[f] = free_columns[--free_column_count];
}

Lap::Lap(int max_n) {
    if (max_n < 0) throw std::invalid_argument("max_n must be at least 0, got " + std::to_string(max_n));
    work_ = std::make_unique<LapWork>(max_n);
}
Lap::~Lap() = default;
Lap::Lap(Lap&&) noexcept = default;
Lap& Lap::operator=(Lap&&) noexcept = default;

bool Lap::solve(const double* cost, int n, int stride, LapMethod method, double epsilon, const int* warm,
                double tolerance, int balance) {
    LapWork& work = *work_;
    if (n < 0 || n > work.max_n || stride < n) {
        throw std::invalid_argument("expected 0 <= n <= max_n and stride >= n, got n = " + std::to_string(n) +
                                    ", max_n = " + std::to_string(work.max_n) + ", stride = " + std::to_string(stride));
    }
    if (!(tolerance >= 0.0 && tolerance < kLapInfinity)) {
        throw std::invalid_argument("tolerance must be finite and at least 0, got " + std::to_string(tolerance));
    }
    work.dual_sum = 0.0;
    LapMatrix c{cost, static_cast<std::size_t>(stride), n};
    if (n < kLapLanes) c = enlarge(work, c);
    if (warm) {
        std::fill_n(std::copy_n(warm, n, work.next_rows.begin()), c.n - n, -1);  // it may be row_to_col itself
        warm = work.next_rows.data();
    }
    work.clear(c.n);
    bool solved = check_costs(work, c);
    if (solved) {
        switch (method) {
            case LapMethod::jonker_volgenant:
                solved = lap_jonker_volgenant(work, c, warm, tolerance);
                break;
            case LapMethod::auction:
                solved = lap_auction(work, c, epsilon);
                break;
            case LapMethod::hungarian:
                solved = lap_hungarian(work, c);
                break;
        }
    }
    if (!solved) {
        std::fill_n(work.row_to_col.begin(), n, -1);
        return false;
    }
    if (method == LapMethod::jonker_volgenant) lap_balance(work, c, balance);
    feasible_rows(c, work.v.data(), work.u.data());
    for (int i = 0; i < n; ++i) work.dual_sum += work.u[i] + work.v[work.row_to_col[i]];  // by pairs: less cancellation
    return true;
}

const int* Lap::row_to_col() const { return work_->row_to_col.data(); }
const double* Lap::u() const { return work_->u.data(); }
const double* Lap::v() const { return work_->v.data(); }
double Lap::dual_sum() const { return work_->dual_sum; }
int Lap::augmentations() const { return work_->augmentations; }

}  // namespace blindmatch
