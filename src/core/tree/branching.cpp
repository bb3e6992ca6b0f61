#include <algorithm>
#include <cmath>
#include <deque>

#include "tree/tree_state.h"

namespace blindmatch {
namespace {

constexpr double kSidePower = 4.0;
constexpr double kEqual = 1e-3;  // relative difference of scores that means nothing

// How uneven the costs of one side are: standard deviation over mean, counted from the smallest entry.
double unevenness(const Grid<double, 2>& matrix, int n) {
    double smallest = kInfinity, sum = 0.0, squares = 0.0;
    for (int i = 0; i < n; ++i) {
        for (int k = 0; k < n; ++k) {
            if (i != k) smallest = std::min(smallest, matrix(i, k));
        }
    }
    for (int i = 0; i < n; ++i) {
        for (int k = 0; k < n; ++k) {
            const double x = i != k ? matrix(i, k) - smallest : 0.0;
            sum += x;
            squares += x * x;
        }
    }
    const double count = static_cast<double>(n) * (n - 1), mean = sum / count;
    return mean > 0.0 ? std::sqrt(std::max(0.0, squares / count - mean * mean)) / mean : 0.0;
}

// The expected size of the subtree of a child that still has this share of the gap to go.
double weight(double share) { return std::exp(3.0 * std::min(share, 1.0)); }

constexpr std::int64_t kMostSteps = 200000;  // of all searches on one side
constexpr std::int64_t kSteps = 2000;        // of one

// Searches for permutations that keep one side of every factor and the linear costs.
//
// A group may be far too large to list: a hypercube of 32 points has 3840 symmetries. Branching fixes the first point
// of each orbit, then the first of each orbit of those that keep it, and so on. So for growing sets of fixed points,
// one symmetry is found for each other point of each orbit.
class SymmetrySearch {
 public:
    SymmetrySearch(const Problem& problem, bool of_rows, int limit, std::vector<Symmetry>& found)
        : problem_(problem), of_rows_(of_rows), limit_(found.size() + limit), n_(problem.n), found_(found) {
        for (int i = 0; i < n_; ++i) {
            std::vector<double> line;
            for (const Factor& f : problem.factors) {
                const std::size_t begin = line.size();
                line.insert(line.end(), side(f).row(i), side(f).row(i) + n_);
                std::sort(line.begin() + begin, line.end());
            }
            sorted_.push_back(std::move(line));
        }
    }

    void run() {
        std::deque<std::vector<int>> sets{{}};
        for (; !sets.empty() && found_.size() < limit_; sets.pop_front()) {
            for (const int first : moved_points(sets.front())) {
                sets.push_back(sets.front());
                sets.back().push_back(first);
            }
        }
    }

 private:
    const Grid<double, 2>& side(const Factor& f) const { return of_rows_ ? f.source : f.target; }

    // Finds symmetries that keep `fixed` and move the first point of an orbit; returns these points.
    std::vector<int> moved_points(const std::vector<int>& fixed) {
        std::vector<int> moved;
        std::vector<bool> reached(n_, false);
        for (const int point : fixed) reached[point] = true;
        for (int first = 0; first < n_; ++first) {
            if (reached[first]) continue;
            bool moves = false;
            for (int to = first + 1; to < n_ && found_.size() < limit_ && steps_ < kMostSteps; ++to) {
                if (reached[to] || !search(fixed, first, to)) continue;
                reached[to] = moves = true;
                const auto same = [&](const Symmetry& s) { return s.of_rows == of_rows_ && s.image == image_; };
                if (std::none_of(found_.begin(), found_.end(), same)) found_.push_back({of_rows_, image_});
            }
            if (moves) moved.push_back(first);
        }
        return moved;
    }

    // Looks for a symmetry that keeps `fixed` and takes `first` to `to`: `image_`.
    bool search(const std::vector<int>& fixed, int first, int to) {
        order_ = fixed;
        order_.push_back(first);
        for (int i = 0; i < n_; ++i) {
            if (std::find(order_.begin(), order_.end(), i) == order_.end()) order_.push_back(i);
        }
        image_.assign(n_, -1);
        used_.assign(n_, false);
        last_step_ = std::min(kMostSteps, steps_ + kSteps);
        for (int at = 0; at <= static_cast<int>(fixed.size()); ++at) {
            const int point = order_[at], image = point == first ? to : point;
            if (!fits(at, image)) return false;
            image_[point] = image;
            used_[image] = true;
        }
        return extend(static_cast<int>(fixed.size()) + 1);
    }

    bool same_line(int i, int to) const {
        if (sorted_[i] != sorted_[to]) return false;
        for (int other = 0; other < n_; ++other) {
            const auto [row, column] = of_rows_ ? std::pair(i, other) : std::pair(other, i);
            const auto [to_row, to_column] = of_rows_ ? std::pair(to, other) : std::pair(other, to);
            if (problem_.linear(row, column) != problem_.linear(to_row, to_column)) return false;
            if (problem_.allowed(row, column) != problem_.allowed(to_row, to_column)) return false;
        }
        return true;
    }

    bool fits(int at, int to) {
        ++steps_;
        const int i = order_[at];
        for (const Factor& f : problem_.factors) {
            for (int before = 0; before < at; ++before) {
                const int k = order_[before];
                if (side(f)(i, k) != side(f)(to, image_[k])) return false;
            }
        }
        return same_line(i, to);
    }

    bool extend(int at) {
        if (at == n_) return true;
        const int i = order_[at];
        for (int next = -1; next < n_ && steps_ < last_step_; ++next) {
            const int to = next < 0 ? i : next;  // a symmetry that keeps most points is of use at more nodes
            if (used_[to] || next == i || !fits(at, to)) continue;
            image_[i] = to;
            used_[to] = true;
            if (extend(at + 1)) return true;
            used_[to] = false;
        }
        return false;
    }

    const Problem& problem_;
    bool of_rows_;
    std::size_t limit_;
    int n_;
    std::vector<Symmetry>& found_;
    std::vector<int> order_, image_;  // the points in the order of the search, and where each goes
    std::vector<bool> used_;
    std::vector<std::vector<double>> sorted_;
    std::int64_t steps_ = 0, last_step_ = 0;
};

}  // namespace

std::vector<Symmetry> find_symmetries(const Problem& problem, int limit) {
    std::vector<Symmetry> found;
    SymmetrySearch(problem, true, limit, found).run();
    SymmetrySearch(problem, false, limit, found).run();
    return found;
}

Branching::Branching(const Problem& problem, const std::vector<Symmetry>& symmetries)
    : symmetries_(symmetries), n_(problem.n) {
    for (std::vector<std::uint8_t>& busy : busy_) busy.assign(n_, 0);
    for (const Factor& f : problem.factors) {
        for (int i = 0; i < n_; ++i) {
            for (int k = 0; k < n_; ++k) {
                if (f.source(i, k) != 0.0) busy_[0][i] = 1;
                if (f.target(i, k) != 0.0) busy_[1][i] = 1;
            }
        }
    }
    // Fixing members of the more uneven side, one after the other, raises the bounds most: switching sides can cost a
    // factor of thirty in nodes (had16). A power, so that equal sides still compete.
    if (problem.factors.size() != 1 || problem.n < 2) return;
    const double rows = unevenness(problem.factors[0].source, problem.n);
    const double columns = unevenness(problem.factors[0].target, problem.n);
    if (rows > 0.0 && columns > 0.0) {
        side_penalty_[0] = std::pow(std::max(1.0, columns / rows), kSidePower);
        side_penalty_[1] = std::pow(std::max(1.0, rows / columns), kSidePower);
    }
}

std::vector<SkippedChild> Branching::find_skipped(const BranchedNode& node, bool line_is_row) const {
    std::vector<SkippedChild> skipped;
    const std::vector<int>& others = line_is_row ? node.columns : node.rows;
    std::vector<int> usable;
    for (std::size_t s = 0; s < symmetries_.size(); ++s) {
        const Symmetry& symmetry = symmetries_[s];
        const bool keeps = std::all_of(node.fixed.begin(), node.fixed.end(), [&](const std::pair<int, int>& pair) {
            const int x = line_is_row ? pair.second : pair.first;
            return symmetry.image[x] == x;
        });
        if (symmetry.of_rows != line_is_row && keeps) usable.push_back(static_cast<int>(s));
    }
    std::vector<std::uint8_t> gone(n_, 0);
    for (int sibling : others) {  // ascending: the smallest of its orbit stays
        if (gone[sibling]) continue;
        for (int s : usable) {
            const int image = symmetries_[s].image[sibling];
            if (image <= sibling || gone[image]) continue;
            gone[image] = 1;
            skipped.push_back({image, sibling, s});
        }
    }
    return skipped;
}

std::pair<int, bool> Branching::choose_line(const BranchedNode& node, const std::vector<double>& pair_bound,
                                            double bound, double target) const {
    const int n = static_cast<int>(node.rows.size());
    const GridView<const double, 2> bounds{pair_bound.data(), {n, n}};
    std::pair<int, bool> best{0, true};
    double best_score = kInfinity;
    bool best_busy = false;
    const double gap = std::max(target - bound, 1e-300);
    for (int side = 0; side < 2; ++side) {
        std::vector<std::uint8_t> needed(n_, 1);
        for (const SkippedChild& child : find_skipped(node, side == 0)) needed[child.skipped] = 0;
        for (int x = 0; x < n; ++x) {
            double score = 0.0;
            for (int y = 0; y < n; ++y) {
                if (!needed[side == 0 ? node.columns[y] : node.rows[y]]) continue;
                const double b = side == 0 ? bounds(x, y) : bounds(y, x);
                if (b < target) score += weight((target - b) / gap);
            }
            score *= side_penalty_[side];
            const bool busy = busy_[side][side == 0 ? node.rows[x] : node.columns[x]];
            const bool as_good = busy && !best_busy && score <= best_score * (1.0 + kEqual);
            const bool better = busy || !best_busy ? score < best_score : score < best_score * (1.0 - kEqual);
            if (better || as_good) {
                best_score = score;
                best_busy = busy;
                best = {x, side == 0};
            }
        }
    }
    return best;
}

}  // namespace blindmatch
