// Shortest augmenting paths by Dijkstra's method on the reduced costs (Jonker & Volgenant 1987, section 3).
#include <algorithm>

#include "base/grid.h"
#include "lap/lap_kernels.h"

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

}  // namespace

BLINDMATCH_KERNEL bool lap_augment(LapWork& work, const LapMatrix& c) {
    work.list_free_columns(c.n);
    for (int r = 0; r < c.n; ++r) {
        if (work.row_to_col[r] < 0 && !augment_row(work, c, r)) return false;
    }
    return true;
}

}  // namespace blindmatch
