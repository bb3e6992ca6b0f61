// Jonker & Volgenant, "A shortest augmenting path algorithm for dense and sparse linear assignment problems", 1987.
#include <algorithm>

#include "base/grid.h"
#include "lap/lap_kernels.h"

namespace blindmatch {
namespace {

using namespace lap_kernels;

// Column reduction: v_j = min_i c_ij, and each row takes one of the columns where it has the minimum. False: a column
// has no allowed pair. Leaves in `reached` how many columns each row could have had.
BLINDMATCH_INLINE bool reduce_columns(LapWork& work, const LapMatrix& c) {
    double* v = work.v.data();
    std::int64_t* best_row = work.previous.data();
    std::fill_n(v, c.n, kInfinity);
    std::fill_n(best_row, c.n, 0);
    for (int i = 0; i < c.n; ++i) {
        const double* row = c.row(i);
        const Columns self = Columns{} + i;
        for_each_vector(c.n, [&](int j) {
            const Values x = load(row + j), y = load(v + j);
            Columns best;
            std::memcpy(&best, best_row + j, sizeof best);
            const Columns less = x < y;
            best = less ? self : best;
            store(v + j, less ? x : y);
            std::memcpy(best_row + j, &best, sizeof best);
        });
    }
    std::fill_n(work.reached.data(), c.n, 0);
    for (int j = c.n - 1; j >= 0; --j) {
        if (v[j] == kInfinity) return false;
        const int i = static_cast<int>(best_row[j]);
        if (work.reached[i]++ == 0) work.assign(i, j);
    }
    return true;
}

// Reduction transfer: a row with one column only can lower its v until a second column is as good, which leaves
// more to the other rows.
BLINDMATCH_INLINE void transfer_reductions(LapWork& work, const LapMatrix& c) {
    for (int i = 0; i < c.n; ++i) {
        if (work.reached[i] != 1) continue;
        const TwoSmallest best = two_smallest(c.row(i), work.v.data(), c.n);
        if (best.second < kInfinity) work.v[work.row_to_col[i]] -= best.second - best.first;
    }
}

BLINDMATCH_INLINE int tight_free_column(const LapWork& work, const double* row, double limit) {
    for (int f = 0; f < work.free_column_count; ++f) {
        const int j = work.free_columns[f];
        if (row[j] - work.v[j] <= limit) return j;
    }
    return -1;
}

// Augmenting row reduction: a free row takes its best column, lowers that column's v until the second best is as
// good, and the row that it displaced goes on at once. Rows that gain nothing (ties) wait for the next pass.
// `steps` bounds the chains: rounding could otherwise make them endless.
BLINDMATCH_INLINE int reduce_rows(LapWork& work, const LapMatrix& c, int count, int steps) {
    int waiting = 0;
    for (int k = 0; k < count; ++k) {
        for (int i = work.rows[k]; i >= 0; --steps) {
            const double* row = c.row(i);
            TwoSmallest best = two_smallest(row, work.v.data(), c.n);
            const double lower = work.v[best.column] - (best.second - best.first);
            const bool gains = lower < work.v[best.column] && lower > -kInfinity && steps > 0;
            if (gains) {
                work.v[best.column] = lower;
            } else if (const int j = tight_free_column(work, row, best.first); j >= 0) {
                best.column = j;
            }
            const int displaced = work.col_to_row[best.column];
            if (displaced < 0) {
                work.remove_free_column(best.column);
            } else if (!gains) {  // nothing to win by displacing it
                work.next_rows[waiting++] = i;
                break;
            } else {
                work.row_to_col[displaced] = -1;
            }
            work.assign(i, best.column);
            work.u[i] = row[best.column] - work.v[best.column];
            i = displaced;
        }
    }
    std::swap(work.rows, work.next_rows);
    return waiting;
}

BLINDMATCH_INLINE bool cold_start(LapWork& work, const LapMatrix& c) {
    if (!reduce_columns(work, c)) return false;
    transfer_reductions(work, c);
    for (int i = 0; i < c.n; ++i) {
        const int j = work.row_to_col[i];
        if (j >= 0) work.u[i] = c(i, j) - work.v[j];
    }
    work.list_free_columns(c.n);
    int count = 0;
    for (int i = 0; i < c.n; ++i) {
        if (work.row_to_col[i] < 0) work.rows[count++] = i;
    }
    for (int pass = 0; pass < 2 && count > 0; ++pass) count = reduce_rows(work, c, count, 2 * c.n);
    return true;
}

// Row minima, then column minima of what is left, and the pairs of the previous assignment that are tight.
BLINDMATCH_INLINE bool warm_start(LapWork& work, const LapMatrix& c, const int* warm) {
    double* v = work.v.data();
    std::fill_n(v, c.n, kInfinity);
    for (int i = 0; i < c.n; i += kLapRows) {
        const double* row[kLapRows] = {};
        Values u[kLapRows] = {};
        for (int t = 0; t < kLapRows; ++t) {
            const int k = std::min(i + t, c.n - 1);
            row[t] = c.row(k), u[t] = broadcast(work.u[k]);
        }
        for_each_vector(c.n, [&](int j) {
            Values least = load(v + j);
            for (int t = 0; t < kLapRows; ++t) least = smaller(load(row[t] + j) - u[t], least);
            store(v + j, least);
        });
    }
    for (int j = 0; j < c.n; ++j) {
        if (v[j] == kInfinity) return false;
    }
    for (int i = 0; i < c.n; ++i) {
        const int j = warm[i];
        if (j < 0 || j >= c.n || work.col_to_row[j] >= 0) continue;
        if (c(i, j) - work.u[i] - v[j] <= 0.0) work.assign(i, j);
    }
    return true;
}

}  // namespace

BLINDMATCH_KERNEL bool lap_jonker_volgenant(LapWork& work, const LapMatrix& c, const int* warm) {
    return (warm ? warm_start(work, c, warm) : cold_start(work, c)) && lap_augment(work, c);
}

}  // namespace blindmatch
