// The assignment problem of one subproblem, solved from a nearly optimal start: row minima, the previous assignment
// where it is still tight, then shortest augmenting paths (Jonker & Volgenant 1987) for the rows left over.
#pragma once

#include <cstdint>
#include <vector>

#include "base/index.h"
#include "base/simd.h"

namespace blindmatch {

// Entries from `kBlocked` on are as good as forbidden; an optimal assignment uses one only if there is no other.
// Costs are scaled to about 1, so float32 sums with it still carry a few digits.
inline constexpr float kBlocked = 16384.0f;
inline constexpr float kSlackCap = 4.0f;  // blocked entries leave huge slacks: centring ignores what lies beyond
inline constexpr float kPadding = 1e30f;  // for the padding of rows: never chosen
// Costs and path lengths are far below this. Where they are not (or are NaN), a padded or excluded column could win, so
// that the solver gives up.
inline constexpr float kTooLong = 1e29f;

template <class Real>
struct LapWorkspace {
    explicit LapWorkspace(int n) : size(n), stride(padded(n)) {
        matrix.assign(area(n, stride), Real(0));
        row_dual.assign(stride, Real(0));
        column_dual.assign(stride, Real(0));
        distance.assign(stride, Real(0));
        reached.assign(stride, Real(0));
        column_minimum.assign(stride, Real(0));
        column_of.assign(n, -1);
        row_of.assign(stride, -1);
        parent.assign(stride, Real(0));
        scanned.assign(n + 1, 0);
        free_rows.assign(n, 0);
    }

    int size, stride;
    AlignedVector<Real> matrix;  // size x stride; the padding holds kPadding
    AlignedVector<Real> row_dual, column_dual;
    std::vector<int> column_of, row_of;
    AlignedVector<Real> distance, reached, column_minimum;  // reached: 0 or kPadding
    AlignedVector<Real> parent;                             // a row index
    std::vector<int> scanned, free_rows;
};

template <class Real>
BLINDMATCH_INLINE Real row_minimum(const Real* row, int stride) {
    Vector<Real> best = load(row);
    for (int l = Simd<Real>::width; l < stride; l += Simd<Real>::width) best = smaller(best, load(row + l));
    return smallest_lane<Real>(best);
}

// Running minimum with its position, one candidate a lane. Positions are kept as Real so that one mask selects both.
template <class Real>
struct LaneMinimum {
    Vector<Real> value = broadcast<Real>(2 * kPadding), position{}, here{};

    BLINDMATCH_INLINE LaneMinimum() {
        for (int t = 0; t < Simd<Real>::width; ++t) here[t] = static_cast<Real>(t);
    }
    BLINDMATCH_INLINE void next(const Vector<Real>& x) {
        const auto lower = x < value;
        value = lower ? x : value;
        position = lower ? here : position;
        here += static_cast<Real>(Simd<Real>::width);
    }
    BLINDMATCH_INLINE int reduce(Real& lowest) const {
        lowest = smallest_lane<Real>(value);
        const Vector<Real> candidates = value <= lowest ? position : broadcast<Real>(kPadding);
        return static_cast<int>(smallest_lane<Real>(candidates));
    }
};

template <class Real>
BLINDMATCH_INLINE bool in_range(Real x) {
    return x > -kTooLong && x < kTooLong;  // false for NaN
}

// One shortest augmenting path from row `start`; keeps row_dual + column_dual <= matrix. False if the numbers are out
// of range: no more than `size` columns are scanned, and nothing is written out of bounds, but the assignment is
// invalid.
template <class Real>
BLINDMATCH_INLINE bool augment(LapWorkspace<Real>& w, int start) {
    constexpr int width = Simd<Real>::width;
    const int stride = w.stride;
    const Real* matrix = w.matrix.data();
    Real* distance = w.distance.data();
    Real* reached = w.reached.data();
    Real* parent = w.parent.data();
    const Real* column_dual = w.column_dual.data();

    Real mu = 0;
    int count = 0, sink = -1, column = -1;
    {
        const Real* row = matrix + area(start, stride);
        LaneMinimum<Real> nearest;
        for (int l = 0; l < stride; l += width) {
            const Vector<Real> d = load(row + l) - w.row_dual[start] - load(column_dual + l);
            store(distance + l, d);
            store(reached + l, Vector<Real>{});
            store(parent + l, broadcast(static_cast<Real>(start)));
            nearest.next(d);
        }
        column = nearest.reduce(mu);
    }
    for (;;) {
        if (!in_range(mu) || count == w.size) return false;
        w.scanned[count++] = column;
        reached[column] = kPadding;
        const int k = w.row_of[column];
        if (k < 0) {
            sink = column;
            break;
        }
        const Real* row = matrix + area(k, stride);
        const Real base = mu - w.row_dual[k];
        const Vector<Real> from = broadcast(static_cast<Real>(k));
        LaneMinimum<Real> nearest;
        for (int l = 0; l < stride; l += width) {
            const Vector<Real> old = load(distance + l), open = load(reached + l);
            const Vector<Real> candidate = base + load(row + l) - load(column_dual + l);
            const auto better = candidate + open < old;
            const Vector<Real> d = better ? candidate : old;
            store(distance + l, d);
            store(parent + l, better ? from : load(parent + l));
            nearest.next(d + open);
        }
        column = nearest.reduce(mu);
    }
    w.row_dual[start] += mu;
    for (int t = 0; t + 1 < count; ++t) {
        const int l = w.scanned[t];
        const Real shift = mu - distance[l];
        w.row_dual[w.row_of[l]] += shift;
        w.column_dual[l] -= shift;
    }
    for (int l = sink, step = 0; step < count; ++step) {
        const int k = static_cast<int>(parent[l]);
        w.row_of[l] = k;
        const int next = w.column_of[k];
        w.column_of[k] = l;
        if (k == start) return true;
        l = next;
    }
    return false;
}

// Jonker and Volgenant's augmenting row reduction: each free row takes its cheapest column at the price of the second
// cheapest, and the row that held it becomes free. Two rounds leave few rows; returns how many.
template <class Real>
BLINDMATCH_INLINE int reduce_free_rows(LapWorkspace<Real>& w, int free_count) {
    constexpr int width = Simd<Real>::width;
    const int stride = w.stride;
    Real* column_dual = w.column_dual.data();
    Real* reduced = w.distance.data();
    for (int round = 0; round < 2; ++round) {
        int kept = 0;
        int steps = 2 * w.size;  // ties in floating point could go round in circles
        for (int f = 0; f < free_count; ++f) {
            int k = w.free_rows[f];
            while (k >= 0) {
                const Real* row = w.matrix.data() + area(k, stride);
                LaneMinimum<Real> low;
                Vector<Real> next = broadcast<Real>(kPadding);
                for (int l = 0; l < stride; l += width) {
                    const Vector<Real> x = load(row + l) - load(column_dual + l);
                    store(reduced + l, x);
                    next = smaller(next, larger(low.value, x));
                    low.next(x);
                }
                Real first;
                int column = low.reduce(first);
                if (!in_range(first)) {  // leave it to augment(), which gives up
                    w.free_rows[kept++] = k;
                    break;
                }
                // The second smallest is the runner-up of some lane, or the winner of another lane.
                const Vector<Real> others =
                    low.position == static_cast<Real>(column) ? broadcast<Real>(kPadding) : low.value;
                Real second = smallest_lane<Real>(smaller(next, others));
                if (second > first + kSlackCap) second = first + kSlackCap;
                int owner = w.row_of[column];
                if (owner >= 0 && !(first < second)) {  // a tie: prefer a column that nobody holds
                    for (int l = column + 1; l < w.size; ++l) {
                        if (reduced[l] <= first && w.row_of[l] < 0) {
                            column = l;
                            owner = -1;
                            break;
                        }
                    }
                }
                if (owner >= 0 && (!(first < second) || --steps < 0)) {
                    w.row_dual[k] = first;
                    w.free_rows[kept++] = k;
                    break;
                }
                column_dual[column] -= second - first;
                w.row_dual[k] = second;
                w.column_of[k] = column;
                w.row_of[column] = k;
                if (owner >= 0) w.column_of[owner] = -1;
                k = owner;
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
template <class Real>
BLINDMATCH_INLINE bool solve_lap(LapWorkspace<Real>& w, int excluded_row, int excluded_column,
                                 const std::uint16_t* previous, Real tight) {
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
        if (l < n && w.row_of[l] < 0 && w.matrix[cell(k, l, stride)] - w.row_dual[k] <= tight) {
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
template <class Real>
BLINDMATCH_INLINE void centre_duals(LapWorkspace<Real>& w, int excluded_row, int passes) {
    constexpr int width = Simd<Real>::width;
    const int n = w.size, stride = w.stride;
    Real* matrix = w.matrix.data();
    Real* column_minimum = w.column_minimum.data();
    for (int k = 0; k < n; ++k) {
        if (k != excluded_row) matrix[area(k, stride) + w.column_of[k]] = kPadding;
    }
    Real* row_slack = w.distance.data();
    for (int pass = 0; pass < passes; ++pass) {
        for (int l = 0; l < stride; ++l) column_minimum[l] = kPadding;
        for (int k = 0; k < n; ++k) {
            if (k == excluded_row) continue;
            const Real* row = matrix + area(k, stride);
            const Vector<Real> dual = broadcast<Real>(w.row_dual[k]);
            Vector<Real> lowest = broadcast<Real>(kPadding);
            for (int l = 0; l < stride; l += width) {
                const Vector<Real> slack = load(row + l) - dual - load(w.column_dual.data() + l);
                lowest = smaller(lowest, slack);
                store(column_minimum + l, smaller(load(column_minimum + l), slack));
            }
            row_slack[k] = smallest_lane<Real>(lowest);
        }
        for (int k = 0; k < n; ++k) {
            if (k == excluded_row) continue;
            const int l = w.column_of[k];
            const Real up = row_slack[k] < kSlackCap ? row_slack[k] : kSlackCap;
            const Real down = column_minimum[l] < kSlackCap ? column_minimum[l] : kSlackCap;
            const Real step = Real(0.5) * (up - down);
            w.row_dual[k] += step;
            w.column_dual[l] -= step;
        }
    }
}

}  // namespace blindmatch
