#include "lap/lap.h"

#include <algorithm>
#include <stdexcept>
#include <string>

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
        Values least = broadcast(kInfinity);
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
                if (!(std::abs(x) <= limit) && x != kInfinity) refuse(i, j, x);
            }
        }
    }
    return !odd || std::none_of(work.u.begin(), work.u.begin() + c.n, [](double x) { return x == kInfinity; });
}

// The same problem with dummy rows and columns that can only be paired with each other, at no cost.
LapMatrix enlarge(LapWork& work, const LapMatrix& c) {
    std::fill(work.padded.begin(), work.padded.end(), kInfinity);
    for (int i = 0; i < kLapLanes; ++i) {
        if (i < c.n) {
            std::copy_n(c.row(i), c.n, work.padded.begin() + i * kLapLanes);
        } else {
            work.padded[i * kLapLanes + i] = 0.0;
        }
    }
    return {work.padded.data(), kLapLanes};
}

// How far u_i can rise (into reached_distance) and v_j can rise (into distance) before another pair than their own
// is tight.
BLINDMATCH_INLINE void room_to_rise(LapWork& work, const LapMatrix& c) {
    const double* v = work.v.data();
    double* column_room = work.distance.data();
    std::fill_n(column_room, c.n, kInfinity);
    const Values nothing = broadcast(kInfinity);
    for (int i = 0; i < c.n; i += kLapRows) {
        const double* row[kLapRows] = {};
        Values u[kLapRows] = {}, least[kLapRows] = {};
        std::int64_t own[kLapRows] = {};
        for (int t = 0; t < kLapRows; ++t) {
            const int k = std::min(i + t, c.n - 1);
            row[t] = c.row(k), u[t] = broadcast(work.u[k]), own[t] = work.row_to_col[k], least[t] = nothing;
        }
        for_each_vector(c.n, [&](int j) {
            const Values y = load(v + j);
            const Columns here = columns_from(j);
            Values room = load(column_room + j);
            for (int t = 0; t < kLapRows; ++t) {
                const Values reduced = (load(row[t] + j) - y) - u[t];
                const Values x = here == own[t] ? nothing : reduced;
                least[t] = smaller(x, least[t]);
                room = smaller(x, room);
            }
            store(column_room + j, room);
        });
        for (int t = 0; t < kLapRows && i + t < c.n; ++t)
            work.reached_distance[i + t] = smallest_lane<double>(least[t]);
    }
}

// Grows a tree of tight pairs from the free row r until it holds a free column, and returns that column (-1: none
// can).
int grow_tree(LapWork& work, const LapMatrix& c, int r) {
    std::vector<double>& slack = work.distance;  // of each column, to the rows of the tree
    std::fill_n(slack.begin(), c.n, kInfinity);
    std::fill_n(work.rows.begin(), c.n, 0);  // 1 = the column is in the tree
    int count = 0;
    for (int i = r;;) {
        double least = kInfinity;
        int nearest = -1;
        for (int j = 0; j < c.n; ++j) {
            if (work.rows[j]) continue;
            const double reduced = c(i, j) - work.u[i] - work.v[j];
            if (reduced < slack[j]) slack[j] = reduced, work.previous[j] = i;
            const bool ends = slack[j] == least && work.col_to_row[j] < 0;  // among equals, a free column
            if (slack[j] < least || (ends && nearest >= 0)) least = slack[j], nearest = j;
        }
        if (nearest < 0) return -1;
        work.u[r] += least;
        for (int k = 0; k < count; ++k) {
            work.u[work.col_to_row[work.reached[k]]] += least;
            work.v[work.reached[k]] -= least;
        }
        for (int j = 0; j < c.n; ++j) {
            if (!work.rows[j]) slack[j] -= least;
        }
        if (work.col_to_row[nearest] < 0) return nearest;
        work.rows[nearest] = 1;
        work.reached[count++] = nearest;
        i = work.col_to_row[nearest];
    }
}

}  // namespace

// Optimal duals are seldom unique. The shortest paths return an extreme point, where some rows hold all they can
// get and others nothing; ascents that subtract the duals (Hahn-Grant) stall early on those. This moves to the
// middle.
//
// Each pair shifts between its two duals by half the difference of their rooms. All pairs can do so at once: a
// reduced cost loses at most half the room of its row and half the room of its column, and is no smaller than
// either.
BLINDMATCH_KERNEL void lap_balance(LapWork& work, const LapMatrix& c, int rounds) {
    for (int round = 0; round < rounds; ++round) {
        room_to_rise(work, c);
        for (int i = 0; i < c.n; ++i) {
            const int j = work.row_to_col[i];
            const double row_room = work.reached_distance[i], column_room = work.distance[j];
            if (row_room == kInfinity || column_room == kInfinity) continue;
            const double shift = 0.5 * (row_room - column_room);
            work.u[i] += shift;
            work.v[j] -= shift;
        }
    }
}

// The classical O(n^3) Hungarian method (Kuhn 1955, Munkres 1957), row by row and without a clever start: the
// baseline of the paper. The duals move at every step of the search, as in the textbooks.
bool lap_hungarian(LapWork& work, const LapMatrix& c) {
    std::fill_n(work.v.begin(), c.n, 0.0);
    for (int r = 0; r < c.n; ++r) {
        const int j = grow_tree(work, c, r);
        if (j < 0) return false;
        work.flip_path(r, j);
    }
    return true;
}

LapWork::LapWork(int max_rows) {
    const int n = std::max(max_rows, kLapLanes);
    for (auto* list : {&row_to_col, &col_to_row, &free_columns, &rows, &next_rows, &reached}) list->assign(n, -1);
    for (auto* list : {&u, &v, &distance, &open_v, &reached_distance}) list->assign(n, 0.0);
    previous.assign(n, 0);
    padded.assign(kLapLanes * kLapLanes, 0.0);
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

void LapWork::flip_path(int r, int sink) {
    for (int i = -1, j = sink; i != r;) {
        i = static_cast<int>(previous[j]);
        col_to_row[j] = i;
        std::swap(j, row_to_col[i]);
    }
}

bool Lap::solve(const double* cost, int n, LapMethod method, double epsilon, const int* warm, int balance) {
    dual_sum_ = 0.0;
    LapMatrix c{cost, n};
    if (n < kLapLanes) c = enlarge(work_, c);
    if (warm) {
        std::fill_n(std::copy_n(warm, n, work_.next_rows.begin()), c.n - n, -1);  // it may be row_to_col itself
        warm = work_.next_rows.data();
    }
    std::fill_n(work_.row_to_col.begin(), c.n, -1);
    std::fill_n(work_.col_to_row.begin(), c.n, -1);
    bool solved = check_costs(work_, c);
    if (solved) {
        switch (method) {
            case LapMethod::jonker_volgenant:
                solved = lap_jonker_volgenant(work_, c, warm);
                break;
            case LapMethod::auction:
                solved = lap_auction(work_, c, epsilon);
                break;
            case LapMethod::hungarian:
                solved = lap_hungarian(work_, c);
                break;
        }
    }
    if (!solved) {
        std::fill_n(work_.row_to_col.begin(), n, -1);
        return false;
    }
    if (method == LapMethod::jonker_volgenant) lap_balance(work_, c, balance);
    feasible_rows(c, work_.v.data(), work_.u.data());
    for (int i = 0; i < n; ++i) dual_sum_ += work_.u[i] + work_.v[work_.row_to_col[i]];  // by pairs: less cancellation
    return true;
}

}  // namespace blindmatch
