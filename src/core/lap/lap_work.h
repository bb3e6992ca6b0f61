// Inside the linear assignment solvers: the view of the matrix, the work space, and what the methods share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/grid.h"

namespace blindmatch {

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

}  // namespace blindmatch
