// Optimal duals are seldom unique. The shortest paths return an extreme point, where some rows hold all they can
// get and others nothing; ascents that subtract the duals (Hahn-Grant) stall early on those. This moves to the
// middle.
#include <algorithm>

#include "base/grid.h"
#include "lap/lap_kernels.h"

namespace blindmatch {
namespace {

using namespace lap_kernels;

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

}  // namespace

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

}  // namespace blindmatch
