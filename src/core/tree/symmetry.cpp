#include "tree/symmetry.h"

#include <algorithm>
#include <cstdint>

#include "base/index.h"

namespace blindmatch {
namespace {

constexpr std::int64_t kMostSteps = 200000;

// Depth-first search for permutations that keep one side of every factor and the linear costs.
class SymmetrySearch {
 public:
    SymmetrySearch(const Problem& problem, bool of_rows, int limit, std::vector<Symmetry>& found)
        : problem_(problem),
          of_rows_(of_rows),
          limit_(limit),
          n_(problem.n),
          found_(found),
          image_(n_, -1),
          used_(n_, false) {
        for (int i = 0; i < n_; ++i) {
            std::vector<double> line;
            for (const Factor& f : problem.factors) {
                const std::size_t begin = line.size();
                const std::vector<double>& matrix = of_rows ? f.source : f.target;
                line.insert(line.end(), matrix.begin() + area(i, n_), matrix.begin() + area(i + 1, n_));
                std::sort(line.begin() + begin, line.end());
            }
            sorted_.push_back(std::move(line));
        }
    }

    void run() { extend(0); }

 private:
    bool same_line(int i, int to) const {
        if (sorted_[i] != sorted_[to]) return false;
        for (int other = 0; other < n_; ++other) {
            const std::size_t a = of_rows_ ? cell(i, other, n_) : cell(other, i, n_);
            const std::size_t b = of_rows_ ? cell(to, other, n_) : cell(other, to, n_);
            if (problem_.linear[a] != problem_.linear[b]) return false;
            if (!problem_.forbidden.empty() && problem_.forbidden[a] != problem_.forbidden[b]) return false;
        }
        return true;
    }

    bool fits(int i, int to) const {
        for (const Factor& f : problem_.factors) {
            const std::vector<double>& matrix = of_rows_ ? f.source : f.target;
            for (int k = 0; k < i; ++k) {
                if (matrix[cell(i, k, n_)] != matrix[area(to, n_) + image_[k]]) return false;
            }
        }
        return same_line(i, to);
    }

    void extend(int i) {
        if (i == n_) {
            for (int k = 0; k < n_; ++k) {
                if (image_[k] != k) {
                    found_.push_back({of_rows_, image_});
                    ++count_;
                    return;
                }
            }
            return;
        }
        for (int to = 0; to < n_ && count_ < limit_ && ++steps_ < kMostSteps; ++to) {
            if (used_[to] || !fits(i, to)) continue;
            image_[i] = to;
            used_[to] = true;
            extend(i + 1);
            used_[to] = false;
        }
    }

    const Problem& problem_;
    bool of_rows_;
    int limit_, n_, count_ = 0;
    std::vector<Symmetry>& found_;
    std::vector<int> image_;
    std::vector<bool> used_;
    std::vector<std::vector<double>> sorted_;
    std::int64_t steps_ = 0;
};

}  // namespace

std::vector<Symmetry> find_symmetries(const Problem& problem, int limit) {
    std::vector<Symmetry> found;
    SymmetrySearch(problem, true, limit, found).run();
    SymmetrySearch(problem, false, limit, found).run();
    return found;
}

}  // namespace blindmatch
