// The assignment problem of one subproblem, solved from a nearly optimal start: row minima, the previous assignment
// where it is still tight, then shortest augmenting paths (Jonker & Volgenant 1987) for the rows left over.
//
// Why not `Lap`: the sweeps spend most of their time here. In float32 a vector holds twice as many entries, the rows
// are padded, the pair that is fixed already is skipped in place, and everything is inlined into the kernel that builds
// the matrix. `Lap` is for everything else: float64, forbidden pairs, costs of any size.
#pragma once

#include <cstdint>
#include <vector>

#include "base/grid.h"

namespace blindmatch {

// Entries from `kBlocked` on are as good as forbidden; an optimal assignment uses one only if there is no other.
// Costs are scaled to about 1, so float32 sums with it still carry a few digits.
inline constexpr float kBlocked = 16384.0f;
inline constexpr float kSlackCap = 4.0f;  // blocked entries leave huge slacks: centring ignores what lies beyond
inline constexpr float kPadding = 1e30f;  // for the padding of rows: never chosen
// Costs and path lengths are far below this. Where they are not (or are NaN), a padded or excluded column could win, so
// that the solver gives up.
inline constexpr float kTooLong = 1e29f;

struct SubproblemLap {
    explicit SubproblemLap(int n) : size(n), stride(padded(n)), matrix({n, stride}) {
        for (auto* row : {&row_dual, &column_dual, &distance, &reached, &column_minimum, &parent})
            row->assign(stride, 0.0f);
        column_of.assign(n, -1);
        row_of.assign(stride, -1);
        scanned.assign(n + 1, 0);
        free_rows.assign(n, 0);
    }

    int size, stride;
    AlignedGrid<float, 2> matrix;  // size x stride; the padding holds kPadding
    AlignedVector<float> row_dual, column_dual;
    std::vector<int> column_of, row_of;
    AlignedVector<float> distance, reached, column_minimum;  // reached: 0 or kPadding
    AlignedVector<float> parent;                             // a row index
    std::vector<int> scanned, free_rows;
};

BLINDMATCH_INLINE float row_minimum(const float* row, int stride) {
    Vector<float> best = load(row);
    for (int l = Simd<float>::width; l < stride; l += Simd<float>::width) best = smaller(best, load(row + l));
    return smallest_lane<float>(best);
}

// Running minimum with its position, one candidate a lane. Positions are kept as float so that one mask selects both.
struct LaneMinimum {
    Vector<float> value = broadcast(2 * kPadding), position{}, here{};

    BLINDMATCH_INLINE LaneMinimum() {
        for (int t = 0; t < Simd<float>::width; ++t) here[t] = static_cast<float>(t);
    }
    BLINDMATCH_INLINE void next(const Vector<float>& x) {
        const auto lower = x < value;
        value = lower ? x : value;
        position = lower ? here : position;
        here += static_cast<float>(Simd<float>::width);
    }
    BLINDMATCH_INLINE int reduce(float& lowest) const {
        lowest = smallest_lane<float>(value);
        const Vector<float> candidates = value <= lowest ? position : broadcast(kPadding);
        return static_cast<int>(smallest_lane<float>(candidates));
    }
};

BLINDMATCH_INLINE bool in_range(float x) {
    return x > -kTooLong && x < kTooLong;  // false for NaN
}

// The paths of one edge from the free row `start`: their lengths, and the nearest column with its distance `mu`.
BLINDMATCH_INLINE int first_distances(SubproblemLap& w, int start, float& mu) {
    const float* row = w.matrix.row(start);
    LaneMinimum nearest;
    for (int l = 0; l < w.stride; l += Simd<float>::width) {
        const Vector<float> d = load(row + l) - w.row_dual[start] - load(w.column_dual.data() + l);
        store(w.distance.data() + l, d);
        store(w.reached.data() + l, Vector<float>{});
        store(w.parent.data() + l, broadcast(static_cast<float>(start)));
        nearest.next(d);
    }
    return nearest.reduce(mu);
}

// Paths that go on from row k, at distance `mu`; returns the nearest column not reached yet, and its distance in `mu`.
BLINDMATCH_INLINE int relax(SubproblemLap& w, int k, float& mu) {
    const float* row = w.matrix.row(k);
    const float base = mu - w.row_dual[k];
    const Vector<float> from = broadcast(static_cast<float>(k));
    LaneMinimum nearest;
    for (int l = 0; l < w.stride; l += Simd<float>::width) {
        const Vector<float> old = load(w.distance.data() + l), open = load(w.reached.data() + l);
        const Vector<float> candidate = base + load(row + l) - load(w.column_dual.data() + l);
        const auto better = candidate + open < old;
        const Vector<float> d = better ? candidate : old;
        store(w.distance.data() + l, d);
        store(w.parent.data() + l, better ? from : load(w.parent.data() + l));
        nearest.next(d + open);
    }
    return nearest.reduce(mu);
}

// One shortest augmenting path from row `start`; keeps row_dual + column_dual <= matrix. False if the numbers are out
// of range: no more than `size` columns are scanned, and nothing is written out of bounds, but the assignment is
// invalid.
BLINDMATCH_INLINE bool augment(SubproblemLap& w, int start) {
    float mu = 0;
    int count = 0;
    int column = first_distances(w, start, mu);
    for (;;) {
        if (!in_range(mu) || count == w.size) return false;
        w.scanned[count++] = column;
        w.reached[column] = kPadding;
        const int k = w.row_of[column];
        if (k < 0) break;
        column = relax(w, k, mu);
    }
    w.row_dual[start] += mu;
    for (int t = 0; t + 1 < count; ++t) {
        const int l = w.scanned[t];
        const float shift = mu - w.distance[l];
        w.row_dual[w.row_of[l]] += shift;
        w.column_dual[l] -= shift;
    }
    for (int l = column, step = 0; step < count; ++step) {
        const int k = static_cast<int>(w.parent[l]);
        w.row_of[l] = k;
        const int next = w.column_of[k];
        w.column_of[k] = l;
        if (k == start) return true;
        l = next;
    }
    return false;
}

struct TwoLowest {
    float first, second;
    int column;  // of the first
};

// The two smallest of row k less the column duals; leaves all of them in `distance`.
BLINDMATCH_INLINE TwoLowest two_lowest(SubproblemLap& w, int k) {
    const float* row = w.matrix.row(k);
    LaneMinimum low;
    Vector<float> next = broadcast(kPadding);
    for (int l = 0; l < w.stride; l += Simd<float>::width) {
        const Vector<float> x = load(row + l) - load(w.column_dual.data() + l);
        store(w.distance.data() + l, x);
        next = smaller(next, larger(low.value, x));
        low.next(x);
    }
    TwoLowest found;
    found.column = low.reduce(found.first);
    // The second smallest is the runner-up of some lane, or the winner of another lane.
    const Vector<float> others = low.position == static_cast<float>(found.column) ? broadcast(kPadding) : low.value;
    found.second = smallest_lane<float>(smaller(next, others));
    if (found.second > found.first + kSlackCap) found.second = found.first + kSlackCap;
    return found;
}

// Gives row k its cheapest column at the price of the second cheapest, and returns the row that held it, or -1. If that
// gains nothing, or `steps` are used up, row k stays free and is returned itself.
BLINDMATCH_INLINE int take_cheapest(SubproblemLap& w, int k, int& steps) {
    TwoLowest low = two_lowest(w, k);
    if (!in_range(low.first)) return k;  // augment() will give up on it
    const bool tie = !(low.first < low.second);
    int owner = w.row_of[low.column];
    for (int l = low.column + 1; tie && owner >= 0 && l < w.size; ++l) {  // prefer a column that nobody holds
        if (w.distance[l] <= low.first && w.row_of[l] < 0) {
            low.column = l;
            owner = -1;
        }
    }
    if (owner >= 0 && (tie || --steps < 0)) {
        w.row_dual[k] = low.first;
        return k;
    }
    w.column_dual[low.column] -= low.second - low.first;
    w.row_dual[k] = low.second;
    w.column_of[k] = low.column;
    w.row_of[low.column] = k;
    if (owner >= 0) w.column_of[owner] = -1;
    return owner;
}

// Jonker and Volgenant's augmenting row reduction: each free row takes its cheapest column, and the row that held it
// becomes free. Two rounds leave few rows; returns how many.
BLINDMATCH_INLINE int reduce_free_rows(SubproblemLap& w, int free_count) {
    for (int round = 0; round < 2; ++round) {
        int kept = 0;
        int steps = 2 * w.size;  // ties in floating point could go round in circles
        for (int f = 0; f < free_count; ++f) {
            for (int k = w.free_rows[f]; k >= 0;) {
                const int next = take_cheapest(w, k, steps);
                if (next == k) {
                    w.free_rows[kept++] = k;
                    break;
                }
                k = next;
            }
        }
        free_count = kept;
    }
    return free_count;
}

// Solves the whole matrix of `w`. `excluded_row` / `excluded_column` (or -1) stand for a pair that is fixed already:
// that row is never looked at, and the caller has put kPadding into that column. `row_dual` must hold row minima.
// `previous[k]` is the column to try first for row k. False if the numbers are out of range: duals and assignment are
// invalid then.
BLINDMATCH_INLINE bool solve_subproblem(SubproblemLap& w, int excluded_row, int excluded_column,
                                        const std::uint16_t* previous, float tight) {
    const int n = w.size, stride = w.stride;
    for (int l = 0; l < stride; ++l) {
        w.column_dual[l] = 0;
        w.row_of[l] = -1;
    }
    if (excluded_row >= 0) {
        w.column_of[excluded_row] = excluded_column;
        w.row_of[excluded_column] = excluded_row;
    }
    int free_count = 0;
    for (int k = 0; k < n; ++k) {
        if (k == excluded_row) continue;
        w.column_of[k] = -1;
        const int l = previous ? previous[k] : n;
        if (l < n && w.row_of[l] < 0 && w.matrix(k, l) - w.row_dual[k] <= tight) {
            w.column_of[k] = l;
            w.row_of[l] = k;
        } else {
            w.free_rows[free_count++] = k;
        }
    }
    if (4 * free_count > n) free_count = reduce_free_rows(w, free_count);
    for (int f = 0; f < free_count; ++f) {
        if (!augment(w, w.free_rows[f])) return false;
    }
    return true;
}

// Moves the duals towards the middle of the optimal face. Raising the row dual of a matched pair by x and lowering its
// column dual by x keeps the value; x may range from minus the smallest slack of the column to the smallest slack of
// the row. All pairs step to the middle of their own ranges at once, which keeps every slack non-negative. The matched
// entries of the matrix are overwritten.
BLINDMATCH_INLINE void centre_duals(SubproblemLap& w, int excluded_row, int passes) {
    constexpr int width = Simd<float>::width;
    const int n = w.size, stride = w.stride;
    float* column_minimum = w.column_minimum.data();
    for (int k = 0; k < n; ++k) {
        if (k != excluded_row) w.matrix(k, w.column_of[k]) = kPadding;
    }
    float* row_slack = w.distance.data();
    for (int pass = 0; pass < passes; ++pass) {
        for (int l = 0; l < stride; ++l) column_minimum[l] = kPadding;
        for (int k = 0; k < n; ++k) {
            if (k == excluded_row) continue;
            const float* row = w.matrix.row(k);
            const Vector<float> dual = broadcast(w.row_dual[k]);
            Vector<float> lowest = broadcast(kPadding);
            for (int l = 0; l < stride; l += width) {
                const Vector<float> slack = load(row + l) - dual - load(w.column_dual.data() + l);
                lowest = smaller(lowest, slack);
                store(column_minimum + l, smaller(load(column_minimum + l), slack));
            }
            row_slack[k] = smallest_lane<float>(lowest);
        }
        for (int k = 0; k < n; ++k) {
            if (k == excluded_row) continue;
            const int l = w.column_of[k];
            const float up = row_slack[k] < kSlackCap ? row_slack[k] : kSlackCap;
            const float down = column_minimum[l] < kSlackCap ? column_minimum[l] : kSlackCap;
            const float step = 0.5f * (up - down);
            w.row_dual[k] += step;
            w.column_dual[l] -= step;
        }
    }
}

}  // namespace blindmatch
