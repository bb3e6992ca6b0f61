#include "tree/branching.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/index.h"

namespace blindmatch {
namespace {

constexpr double kSidePower = 4.0;

// How uneven the costs of one side are: standard deviation over mean, counted from the smallest entry.
double unevenness(const std::vector<double>& matrix, int n) {
    double smallest = kInfinity, sum = 0.0, squares = 0.0;
    for (int i = 0; i < n; ++i) {
        for (int k = 0; k < n; ++k) {
            if (i != k) smallest = std::min(smallest, matrix[cell(i, k, n)]);
        }
    }
    for (int i = 0; i < n; ++i) {
        for (int k = 0; k < n; ++k) {
            const double x = i != k ? matrix[cell(i, k, n)] - smallest : 0.0;
            sum += x;
            squares += x * x;
        }
    }
    const double count = static_cast<double>(n) * (n - 1), mean = sum / count;
    return mean > 0.0 ? std::sqrt(std::max(0.0, squares / count - mean * mean)) / mean : 0.0;
}

// The expected size of the subtree of a child that still has this share of the gap to go.
double weight(double share) { return std::exp(3.0 * std::min(share, 1.0)); }

}  // namespace

Branching::Branching(const Problem& problem, const std::vector<Symmetry>& symmetries)
    : symmetries_(symmetries), n_(problem.n) {
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
    std::pair<int, bool> best{0, true};
    double best_score = kInfinity;
    const double gap = std::max(target - bound, 1e-300);
    for (int side = 0; side < 2; ++side) {
        std::vector<std::uint8_t> needed(n_, 1);
        for (const SkippedChild& child : find_skipped(node, side == 0)) needed[child.skipped] = 0;
        for (int x = 0; x < n; ++x) {
            double score = 0.0;
            for (int y = 0; y < n; ++y) {
                if (!needed[side == 0 ? node.columns[y] : node.rows[y]]) continue;
                const double b = pair_bound[side == 0 ? cell(x, y, n) : cell(y, x, n)];
                if (b < target) score += weight((target - b) / gap);
            }
            score *= side_penalty_[side];
            if (score < best_score) {
                best_score = score;
                best = {x, side == 0};
            }
        }
    }
    return best;
}

}  // namespace blindmatch
