// The quadratic assignment problem in the core's normal form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/grid.h"

namespace blindmatch {

// cost(p) = constant + sum_i linear[i][p_i] + sum_{i != k} sum_f source_f[i][k] * target_f[p_i][p_k]
//
// Every matrix is n x n. The diagonals of the factors are zero (their products live in `linear`), and the
// two matrices of a factor pair are both symmetric or both antisymmetric. So the cost of the unordered pair {(i,j),
// (k,l)} is 2 * sum_f source_f[i][k] * target_f[j][l], whichever of the two comes first.
struct Factor {
    Grid<double, 2> source, target;
};

// Of a matrix of a factor: it is symmetric or antisymmetric, so one entry tells.
inline bool is_symmetric(const Grid<double, 2>& matrix, int n) {
    for (int i = 0; i < n; ++i) {
        for (int k = i + 1; k < n; ++k) {
            if (matrix(i, k) != 0) return (matrix(i, k) > 0) == (matrix(k, i) > 0);
        }
    }
    return true;
}

struct Problem {
    int n = 0;
    std::vector<Factor> factors;
    Grid<double, 2> linear;
    double constant = 0.0;
    std::vector<std::uint8_t> forbidden;  // n x n, 1 = this pair may not be used; empty = everything is allowed

    bool allowed(int i, int j) const { return forbidden.empty() || !forbidden[linear.shape.place(i, j)]; }

    // Cost of the unordered pair {(i,j), (k,l)}, i != k and j != l.
    double pair_cost(int i, int j, int k, int l) const {
        double sum = 0.0;
        for (const Factor& f : factors) {
            sum += f.source(i, k) * f.target(j, l);
        }
        return 2.0 * sum;
    }

    double cost(const int* permutation) const {
        double sum = 0.0;
        for (int i = 0; i < n; ++i) {
            const int j = permutation[i];
            sum += linear(i, j);
            for (int k = i + 1; k < n; ++k) sum += pair_cost(i, j, k, permutation[k]);
        }
        return constant + sum;
    }
};

// The factors that count between rows i and k: those whose source is not zero there, at least one. Edges between the
// sides are n^2 factors with one or two entries each.
class UsedFactors {
 public:
    UsedFactors() = default;
    explicit UsedFactors(const Problem& problem) : shape_(problem.n, problem.n), begin_{0} {
        for (std::size_t entry = 0; entry < shape_.size(); ++entry) {
            for (std::size_t f = 0; f < problem.factors.size(); ++f) {
                if (problem.factors[f].source.values[entry] != 0) used_.push_back(static_cast<int>(f));
            }
            if (used_.size() == begin_.back()) used_.push_back(0);
            begin_.push_back(used_.size());
        }
    }

    std::span<const int> at(int i, int k) const {
        const std::size_t entry = shape_.place(i, k);
        return {used_.data() + begin_[entry], begin_[entry + 1] - begin_[entry]};
    }

 private:
    Shape<2> shape_;
    std::vector<int> used_;
    std::vector<std::size_t> begin_;
};

}  // namespace blindmatch
