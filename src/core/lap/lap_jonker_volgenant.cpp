// Jonker & Volgenant, "A shortest augmenting path algorithm for dense and sparse linear assignment problems", 1987.
#include <algorithm>

#include "lap/lap.h"

namespace blindmatch {
namespace {

using namespace lap_kernels;

// distance_j = c_rj - v_j: the paths of one edge from the free row r. Its dual is what the distances are relative to.
BLINDMATCH_INLINE Nearest start(LapWork& work, const double* row, int r, int n) {
    double* distance = work.distance.data();
    double* open_v = work.open_v.data();
    std::int64_t* previous = work.previous.data();
    const double* v = work.v.data();
    const Columns from = Columns{} + r;
    Values least = broadcast(kInfinity);
    Columns at{};
    for_each_vector(n, [&](int j) {
        const Values y = load(v + j);
        const Values x = load(row + j) - y;
        store(open_v + j, y);
        store(distance + j, x);
        std::memcpy(previous + j, &from, sizeof from);
        const Columns less = x < least;
        least = less ? x : least;
        at = less ? columns_from(j) : at;
    });
    return nearest_lane(least, at);
}

// Paths that go on from a reached row: offset + c_ij - v_j. Columns already reached have v = -infinity and distance
// = +infinity here, so that they neither change nor win, without a branch.
BLINDMATCH_INLINE Nearest relax(LapWork& work, const double* row, int i, double offset, int n) {
    double* distance = work.distance.data();
    const double* open_v = work.open_v.data();
    std::int64_t* previous = work.previous.data();
    const Columns from = Columns{} + i;
    Values least = broadcast(kInfinity);
    Columns at{};
    for_each_vector(n, [&](int j) {
        const Values path = (load(row + j) - load(open_v + j)) + offset;
        Values x = load(distance + j);
        Columns p;
        std::memcpy(&p, previous + j, sizeof p);
        const Columns shorter = path < x;
        x = shorter ? path : x;
        p = shorter ? from : p;
        store(distance + j, x);
        std::memcpy(previous + j, &p, sizeof p);
        const Columns less = x < least;
        least = less ? x : least;
        at = less ? columns_from(j) : at;
    });
    return nearest_lane(least, at);
}

// A free column among the nearest ends the search: with many ties, much earlier than the nearest one would.
BLINDMATCH_INLINE int nearest_free_column(const LapWork& work, double least) {
    for (int f = 0; f < work.free_column_count; ++f) {
        const int j = work.free_columns[f];
        if (work.distance[j] <= least) return j;
    }
    return -1;
}

BLINDMATCH_INLINE bool augment_row(LapWork& work, const LapMatrix& c, int r) {
    Nearest nearest = start(work, c.row(r), r, c.n);
    double radius = nearest.value;
    int count = 0, sink;
    while (true) {
        if (nearest.value == kInfinity) return false;
        radius = std::max(radius, nearest.value);  // rounding must not let it shrink
        sink = nearest_free_column(work, nearest.value);
        if (sink >= 0) break;
        const int j = nearest.column, i = work.col_to_row[j];
        work.reached[count] = j;
        work.reached_distance[count++] = radius;
        work.open_v[j] = -kInfinity;
        work.distance[j] = kInfinity;
        nearest = relax(work, c.row(i), i, radius - work.u[i], c.n);
    }
    for (int k = 0; k < count; ++k) {
        const int j = work.reached[k];
        const double change = radius - work.reached_distance[k];
        work.v[j] -= change;
        work.u[work.col_to_row[j]] += change;
    }
    work.u[r] = radius;
    work.remove_free_column(sink);
    work.flip_path(r, sink);
    return true;
}

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

BLINDMATCH_KERNEL bool lap_augment(LapWork& work, const LapMatrix& c) {
    work.list_free_columns(c.n);
    for (int r = 0; r < c.n; ++r) {
        if (work.row_to_col[r] < 0 && !augment_row(work, c, r)) return false;
    }
    return true;
}

BLINDMATCH_KERNEL bool lap_jonker_volgenant(LapWork& work, const LapMatrix& c, const int* warm) {
    return (warm ? warm_start(work, c, warm) : cold_start(work, c)) && lap_augment(work, c);
}

}  // namespace blindmatch
