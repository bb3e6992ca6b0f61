// The linear assignment problem: min over permutations p of sum_i cost[i][p_i], with a proof (dual variables).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/grid.h"

namespace blindmatch {

// Inside the methods: the view of the matrix, the work space, and what they share.
struct LapMatrix {
    const double* data;
    int n;

    const double* row(int i) const { return data + static_cast<std::size_t>(i) * n; }
    double operator()(int i, int j) const { return row(i)[j]; }
};

struct LapWork {
    explicit LapWork(int max_rows);

    void assign(int i, int j) { row_to_col[i] = j, col_to_row[j] = i; }
    void list_free_columns(int n);
    void remove_free_column(int j);
    void flip_path(int r, int sink);  // swaps the pairs along the path from the free row to the free column

    std::vector<int> row_to_col, col_to_row;  // -1 = free
    std::vector<double> u, v;

    // Scratch. The vectors below keep their size: emptying and filling lists would write more than it saves.
    std::vector<int> free_columns, rows, next_rows, reached;
    int free_column_count = 0;
    std::vector<double> distance, open_v, reached_distance;
    std::vector<std::int64_t> previous;  // as wide as a double, so that one vector loop moves both
    std::vector<double> padded;          // a problem too small for the vector loops, enlarged
};

// Each method starts from u = the row minima, all finite, and leaves an assignment and v; Lap::solve then sets
// u_i = min_j (c_ij - v_j). False: no assignment avoids the forbidden pairs.
bool lap_jonker_volgenant(LapWork& work, const LapMatrix& c, const int* warm);
bool lap_auction(LapWork& work, const LapMatrix& c, double epsilon);
bool lap_hungarian(LapWork& work, const LapMatrix& c);

// A shortest augmenting path for every free row. Wants u_i + v_j <= c_ij for each assigned row i and all j, and
// keeps it. An assigned pair may be slack: it keeps its slack while it lasts.
bool lap_augment(LapWork& work, const LapMatrix& c);

// Moves feasible duals towards the middle of the optimal ones; each pair keeps u_i + v_j.
void lap_balance(LapWork& work, const LapMatrix& c, int rounds);

enum class LapMethod { jonker_volgenant, auction, hungarian };

// Owns the work space, so that solving many problems of at most max_n rows allocates nothing. Not shared by threads:
// make one for each. Memory O(n). Deterministic: no randomness, and the same arithmetic on every processor.
class Lap {
 public:
    explicit Lap(int max_n) : work_(max_n) {}

    // Solves for an n x n row-major matrix. +infinity forbids a pair.
    //
    // Returns false if no assignment avoids the forbidden pairs (the results are then meaningless: row_to_col all -1).
    // Throws std::invalid_argument on NaN, -infinity, or entries so huge that their sums overflow (about 1e300), before
    // any work is done.
    //
    // epsilon     auction only: the bid increment. The cost found is at most n * epsilon above dual_sum(). Zero, tiny
    //             or NaN is safe: after 50 n bids the rows left over are assigned by shortest augmenting paths.
    // warm        jonker_volgenant only: a previous assignment (column of each row, -1 = none), to start from.
    //             It changes the speed and the choice among optima, never the value. May be row_to_col() itself.
    // balance     jonker_volgenant only: rounds, O(n^2) each, that move the duals from an extreme point towards the
    //             middle of the optimal ones. An ascent that subtracts them gets much further with 1 than with 0.
    [[nodiscard]] bool solve(const double* cost, int n, LapMethod method = LapMethod::jonker_volgenant,
                             double epsilon = 0.0, const int* warm = nullptr, int balance = 1);

    // Results of the last solve. With every method the duals are feasible: u_i + v_j <= cost[i][j] to rounding, because
    // u_i = min_j (cost[i][j] - v_j) is computed last. So dual_sum() = sum u + sum v is a lower bound on every
    // assignment; it equals the cost of row_to_col (to rounding) for the two exact methods.
    const int* row_to_col() const { return work_.row_to_col.data(); }
    const double* u() const { return work_.u.data(); }
    const double* v() const { return work_.v.data(); }
    double dual_sum() const { return dual_sum_; }

 private:
    LapWork work_;
    double dual_sum_ = 0.0;
};

// The vector loops over one row of an assignment problem, for the files lap*.cpp.
//
// They use vector types because compilers do not vectorise a plain minimum of doubles without -ffast-math. A row
// whose length is not a multiple of the vector is finished by one vector that overlaps its predecessor: no
// remainder loop and no padding, but n >= kLapLanes (Lap::solve enlarges smaller problems).
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
