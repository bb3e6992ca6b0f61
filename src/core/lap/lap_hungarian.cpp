// The classical O(n^3) Hungarian method (Kuhn 1955, Munkres 1957), row by row and without a clever start: the
// baseline of the paper. The duals move at every step of the search, as in the textbooks.
#include <algorithm>

#include "base/grid.h"
#include "lap/lap_work.h"

namespace blindmatch {
namespace {

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

bool lap_hungarian(LapWork& work, const LapMatrix& c) {
    std::fill_n(work.v.begin(), c.n, 0.0);
    for (int r = 0; r < c.n; ++r) {
        const int j = grow_tree(work, c, r);
        if (j < 0) return false;
        work.flip_path(r, j);
    }
    return true;
}

}  // namespace blindmatch
