// Forward-reverse auction (Bertsekas & Castanon 1992): free rows bid for columns, free columns for rows, in turns.
// The turn changes only after a new pair (else the two sides could undo each other for ever) and only after a
// bidding war: most of the work is done with fewer bids from one side.
//
// Throughout u_i + v_j <= c_ij + epsilon, with equality on the assigned pairs.
#include <algorithm>
#include <limits>

#include "lap/lap.h"

namespace blindmatch {
namespace {

using namespace lap_kernels;

constexpr int kBidsPerRow = 50;  // then paths take over
constexpr int kWar = 2;          // an assignment that took more than this times n bids was a war: the other side's turn

// The two smallest of c_ij - u_i over the rows i.
TwoSmallest two_smallest_rows(const LapMatrix& c, const double* u, int j) {
    TwoSmallest best{kInfinity, kInfinity, 0};
    for (int i = 0; i < c.n; ++i) {
        const double x = c(i, j) - u[i];
        if (x < best.first) {
            best = {x, best.first, i};
        } else if (x < best.second) {
            best.second = x;
        }
    }
    return best;
}

// What the bidder is left with: as much as its second choice would give, less epsilon. A bidder with one choice only
// overbids by epsilon alone, which keeps everything finite.
double price(const TwoSmallest& best, double epsilon) {
    return (best.second < kInfinity ? best.second : best.first) + epsilon;
}

// One row bids. True: it got a free column; otherwise the row that it displaced takes its place in the queue.
BLINDMATCH_INLINE bool bid_for_column(LapWork& work, const LapMatrix& c, double epsilon, int& row_count) {
    const int i = work.rows[row_count - 1];
    const TwoSmallest best = two_smallest(c.row(i), work.v.data(), c.n);
    const int j = best.column, displaced = work.col_to_row[j];
    work.u[i] = price(best, epsilon);
    work.v[j] = c(i, j) - work.u[i];
    work.assign(i, j);
    if (displaced >= 0) {
        work.row_to_col[displaced] = -1;
        work.rows[row_count - 1] = displaced;
        return false;
    }
    work.remove_free_column(j);
    --row_count;
    return true;
}

bool bid_for_row(LapWork& work, const LapMatrix& c, double epsilon, int& row_count) {
    int& queued = work.free_columns[work.free_column_count - 1];
    const int j = queued;
    const TwoSmallest best = two_smallest_rows(c, work.u.data(), j);
    const int i = best.column, displaced = work.row_to_col[i];
    work.v[j] = price(best, epsilon);
    work.u[i] = c(i, j) - work.v[j];
    work.assign(i, j);
    if (displaced >= 0) {
        work.col_to_row[displaced] = -1;
        queued = displaced;
        return false;
    }
    --work.free_column_count;
    *std::find(work.rows.begin(), work.rows.begin() + row_count, i) = work.rows[row_count - 1];
    --row_count;
    return true;
}

// Between what rounding would swallow and the scale of the costs, beyond which only precision is lost. Zero if the
// costs are zero or denormal.
double sane_epsilon(const LapMatrix& c, double epsilon) {
    double least = kInfinity, most = -kInfinity;
    for (int i = 0; i < c.n; ++i) {
        for (int j = 0; j < c.n; ++j) {
            const double x = c(i, j);
            least = x < least ? x : least;
            most = x > most && x < kInfinity ? x : most;
        }
    }
    const double scale = std::max({most - least, most, -least});
    const double smallest = 4.0 * std::numeric_limits<double>::epsilon() * scale;
    return epsilon > smallest ? std::min(epsilon, scale) : smallest;
}

bool every_column_allowed(const LapMatrix& c) {
    for (int j = 0; j < c.n; ++j) {
        int i = 0;
        while (i < c.n && c(i, j) == kInfinity) ++i;
        if (i == c.n) return false;
    }
    return true;
}

}  // namespace

BLINDMATCH_KERNEL bool lap_auction(LapWork& work, const LapMatrix& c, double epsilon) {
    if (!every_column_allowed(c)) return false;
    epsilon = sane_epsilon(c, epsilon);
    std::fill_n(work.v.begin(), c.n, 0.0);
    work.list_free_columns(c.n);
    int row_count = c.n;
    for (int i = 0; i < c.n; ++i) work.rows[i] = c.n - 1 - i;
    bool forward = true;
    int last = 0;                                            // bid that assigned a pair without displacing another
    const int bids = epsilon > 0.0 ? kBidsPerRow * c.n : 0;  // without an increment, ties would be bid for in circles
    for (int bid = 0; bid < bids && row_count > 0; ++bid) {
        const bool assigned =
            forward ? bid_for_column(work, c, epsilon, row_count) : bid_for_row(work, c, epsilon, row_count);
        if (!assigned) continue;
        if (bid - last > kWar * c.n) forward = !forward;
        last = bid;
    }
    if (row_count == 0) return true;
    // Bidding wars, or an epsilon lost in rounding: finish with paths, which need duals feasible without the epsilon.
    for (int i = 0; i < c.n; ++i) work.u[i] = row_minimum(c.row(i), work.v.data(), c.n);
    return lap_augment(work, c);
}

}  // namespace blindmatch
