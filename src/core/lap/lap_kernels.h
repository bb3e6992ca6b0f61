// The vector loops over one row of an assignment problem, for the files lap*.cpp.
//
// They use vector types because compilers do not vectorise a plain minimum of doubles without -ffast-math. A row
// whose length is not a multiple of the vector is finished by one vector that overlaps its predecessor: no
// remainder loop and no padding, but n >= kLapLanes (Lap::solve enlarges smaller problems).
#pragma once

#include <cstdint>

#include "base/grid.h"
#include "base/simd.h"
#include "lap/lap_work.h"

namespace blindmatch {

inline constexpr int kLapLanes = Simd<double>::width;
inline constexpr int kLapRows = 4;  // loops over whole columns take so many rows at once: fewer trips through memory

namespace lap_kernels {

using Values = Vector<double>;
typedef std::int64_t Columns __attribute__((vector_size(sizeof(Values))));

BLINDMATCH_INLINE Columns columns_from(std::int64_t j) {
    Columns columns{};
    for (int t = 0; t < kLapLanes; ++t) columns[t] = j + t;
    return columns;
}

// Calls body(j) for vectors at j, the last of which may overlap the one before: fine for minima and copies.
template <class Body>
BLINDMATCH_INLINE void for_each_vector(int n, Body body) {
    int j = 0;
    for (; j + kLapLanes <= n; j += kLapLanes) body(j);
    if (j < n) body(n - kLapLanes);
}

struct Nearest {
    double value;
    int column;
};

// The smallest lane; the lowest column among equals, so that the answer does not depend on the order of the lanes.
BLINDMATCH_INLINE Nearest nearest_lane(const Values& values, const Columns& columns) {
    Nearest best{values[0], static_cast<int>(columns[0])};
    for (int t = 1; t < kLapLanes; ++t) {
        const int column = static_cast<int>(columns[t]);
        const bool better = values[t] < best.value || (values[t] == best.value && column < best.column);
        best.value = better ? values[t] : best.value;
        best.column = better ? column : best.column;
    }
    return best;
}

// min_j (row_j - v_j)
BLINDMATCH_INLINE double row_minimum(const double* row, const double* v, int n) {
    Values least = broadcast(kInfinity);
    for_each_vector(n, [&](int j) { least = smaller(load(row + j) - load(v + j), least); });
    return smallest_lane<double>(least);
}

struct TwoSmallest {
    double first, second;
    int column;  // of the first
};

// The two smallest of row_j - v_j, at different columns.
BLINDMATCH_INLINE TwoSmallest two_smallest(const double* row, const double* v, int n) {
    Values first = broadcast(kInfinity), second = first;
    Columns at{}, columns = columns_from(0);
    const auto visit = [&](const Values& x) {
        const Columns less = x < first;
        second = smaller(less ? first : x, second);
        first = less ? x : first;
        at = less ? columns : at;
    };
    int j = 0;
    for (; j + kLapLanes <= n; j += kLapLanes, columns += kLapLanes) visit(load(row + j) - load(v + j));
    if (j < n) {  // seen twice, an element would be its own runner-up: hide the overlap
        columns = columns_from(n - kLapLanes);
        const Values x = load(row + n - kLapLanes) - load(v + n - kLapLanes);
        visit(columns < j ? broadcast(kInfinity) : x);
    }
    const Nearest best = nearest_lane(first, at);
    double runner_up = kInfinity;
    for (int t = 0; t < kLapLanes; ++t) {
        const double x = at[t] == best.column ? second[t] : first[t];
        runner_up = x < runner_up ? x : runner_up;
    }
    return {best.value, runner_up, best.column};
}

}  // namespace lap_kernels
}  // namespace blindmatch
