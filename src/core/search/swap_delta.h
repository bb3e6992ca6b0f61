// A permutation together with the change of cost of each of its n(n-1)/2 swaps, kept up to date under swaps.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/problem.h"
#include "base/threads.h"

namespace blindmatch {

namespace swap_delta {

// The O(n^2) part of a swap: for each of the rows of a and b, gain += a b^T everywhere, and above the diagonal
// delta -= (a_r - a_s)(b_r - b_s). All rows in one pass, since reading and writing both tables takes most of the time.
template <class Real, int count>
BLINDMATCH_INLINE void update_rows(Real* gain, Real* delta, const Real* a, const Real* b, int n, int stride) {
    constexpr int width = Simd<Real>::width;
    for (int r = 0; r < n; ++r, gain += stride, delta += stride) {
        Vector<Real> ar[count], br[count];
        for (int f = 0; f < count; ++f) ar[f] = broadcast(a[f * stride + r]), br[f] = broadcast(b[f * stride + r]);
        for (int s = 0; s < stride; s += width) {
            Vector<Real> sum = load(gain + s);
            for (int f = 0; f < count; ++f) sum = sum + ar[f] * load(b + f * stride + s);
            store(gain + s, sum);
        }
        for (int s = (r + 1) / width * width; s < stride; s += width) {
            Vector<Real> sum = load(delta + s);
            for (int f = 0; f < count; ++f)
                sum = sum - (ar[f] - load(a + f * stride + s)) * (br[f] - load(b + f * stride + s));
            store(delta + s, sum);
        }
    }
}
template <class Real>
BLINDMATCH_INLINE void update_body(Real* gain, Real* delta, const Real* a, const Real* b, int rows, int n, int stride) {
    for (; rows >= 3; rows -= 3, a += 3 * stride, b += 3 * stride) update_rows<Real, 3>(gain, delta, a, b, n, stride);
    if (rows == 2) update_rows<Real, 2>(gain, delta, a, b, n, stride);
    if (rows == 1) update_rows<Real, 1>(gain, delta, a, b, n, stride);
}
BLINDMATCH_KERNEL static inline void update(float* gain, float* delta, const float* a, const float* b, int rows, int n,
                                            int stride) {
    update_body(gain, delta, a, b, rows, n, stride);
}
BLINDMATCH_KERNEL static inline void update(double* gain, double* delta, const double* a, const double* b, int rows,
                                            int n, int stride) {
    update_body(gain, delta, a, b, rows, n, stride);
}

// row += scale * sum_k weight_k * (row k of matrix)
template <class Real>
BLINDMATCH_INLINE void accumulate_body(Real* row, Real scale, const Real* weight, const Real* matrix, int n,
                                       int stride) {
    constexpr int width = Simd<Real>::width;
    for (int s = 0; s < stride; s += width) {
        Vector<Real> sum = {};
        for (int k = 0; k < n; ++k) sum += weight[k] * load(matrix + static_cast<std::size_t>(k) * stride + s);
        store(row + s, load(row + s) + scale * sum);
    }
}
BLINDMATCH_KERNEL static inline void accumulate(float* row, float scale, const float* weight, const float* matrix,
                                                int n, int stride) {
    accumulate_body(row, scale, weight, matrix, n, stride);
}
BLINDMATCH_KERNEL static inline void accumulate(double* row, double scale, const double* weight, const double* matrix,
                                                int n, int stride) {
    accumulate_body(row, scale, weight, matrix, n, stride);
}

// The best swap among those that are not tabu (expiry <= tick) or that beat `aspiration`; all if `expiry` is null. Each
// lane keeps its own best in registers (GCC's own vectoriser stores it for each row, under a mask, far slower).
template <class Real>
struct Swap {
    Real delta = std::numeric_limits<Real>::infinity();
    int r = 0, s = 0;
};
template <class Real>
BLINDMATCH_INLINE Swap<Real> best_body(const Real* delta, const Real* expiry, Real tick, Real aspiration, int n,
                                       int stride) {
    constexpr int width = Simd<Real>::width;
    const Vector<Real> infinity = broadcast(std::numeric_limits<Real>::infinity());
    Swap<Real> best;
    for (int s = 0; s < stride; s += width) {
        Vector<Real> value = infinity, row = {}, index = {};
        for (int r = 0; r < std::min(n, s + width) - 1; ++r, index += Real(1)) {
            const std::size_t at = static_cast<std::size_t>(r) * stride + s;
            Vector<Real> v = load(delta + at);
            if (expiry) v = v < aspiration ? v : (load(expiry + at) <= tick ? v : infinity);
            row = v < value ? index : row;
            value = smaller(v, value);
        }
        for (int lane = 0; lane < width; ++lane) {
            if (value[lane] < best.delta) best = {value[lane], static_cast<int>(row[lane]), s + lane};
        }
    }
    return best;
}
BLINDMATCH_KERNEL static inline Swap<float> best(const float* delta, const float* expiry, float tick, float aspiration,
                                                 int n, int stride) {
    return best_body(delta, expiry, tick, aspiration, n, stride);
}
BLINDMATCH_KERNEL static inline Swap<double> best(const double* delta, const double* expiry, double tick,
                                                  double aspiration, int n, int stride) {
    return best_body(delta, expiry, tick, aspiration, n, stride);
}

}  // namespace swap_delta

// For the permutation p the table keeps
//   gain(r, q)  = linear[r][p_q] + 2 sum_f sum_k source_f[r][k] target_f[p_q][p_k],
//   delta(r, s) = gain(r,s) + gain(s,r) - gain(r,r) - gain(s,s) + 4 sum_{symmetric f} source_f[r][s] target_f[p_r][p_s]
// where delta(r, s), r < s, is the change of cost when r and s exchange their targets. A swap (u, v) is a rank-one
// change of `gain`; delta of the pairs without u and v then changes by -(a_r - a_s)(b_r - b_s) (Taillard's O(1)
// update), and the 2n pairs with u or v are read off `gain` at O(1) each, where Taillard needs O(n).
template <class Real>
class SwapTable {
 public:
    explicit SwapTable(const Problem& problem)
        : problem_(&problem), n_(problem.n), stride_(padded(problem.n)), permutation_(n_), exact_(exact(problem)) {
        const AlignedGrid<Real, 2> empty({n_, stride_});
        for (const Factor& factor : problem.factors) {
            Pair& pair = pairs_.emplace_back(Pair{is_symmetric(factor.source, n_), {}, empty, empty});
            for (int i = 0; i < n_; ++i) {
                const double* row = factor.source.row(i);
                std::copy_n(row, n_, pair.source.row(i));
                pair.relates.push_back(std::any_of(row, row + n_, [](double x) { return x != 0; }));
            }
        }
        gain_ = empty;
        delta_ = AlignedGrid<Real, 2>({n_, stride_}, std::numeric_limits<Real>::infinity());
        diagonal_.assign(stride_, 0);
        a_.assign(pairs_.size() * stride_, 0);
        b_ = a_;
    }

    // O(n^3). False if `stop` cut it short: the table is then not usable.
    bool reset(const std::vector<int>& permutation, Stop& stop) {
        permutation_ = permutation;
        for (std::size_t f = 0; f < pairs_.size(); ++f) {
            for (int q = 0; q < n_; ++q) {
                if ((q & 63) == 0 && stop()) return false;
                const double* row = problem_->factors[f].target.row(permutation_[q]);
                for (int k = 0; k < n_; ++k) pairs_[f].target(q, k) = static_cast<Real>(row[permutation_[k]]);
            }
        }
        for (int r = 0; r < n_; ++r) {
            if ((r & 15) == 0 && stop()) return false;
            Real* gain = gain_.row(r);
            for (int q = 0; q < n_; ++q) gain[q] = static_cast<Real>(problem_->linear(r, permutation_[q]));
            for (const Pair& pair : pairs_) {
                if (!pair.relates[r]) continue;
                // Rows k of the target instead of columns k: the sign differs where it is antisymmetric.
                const Real scale = pair.symmetric ? Real(2) : Real(-2);
                swap_delta::accumulate(gain, scale, pair.source.row(r), pair.target.row(0), n_, stride_);
            }
        }
        for (int r = 0; r < n_; ++r) diagonal_[r] = gain_(r, r);
        for (int r = 0; r < n_; ++r) refresh(r);
        if (!exact_) {
            // Products of denormal numbers are off by half of the smallest number each, whatever their size.
            noise_ = 8 * (n_ + 1) * static_cast<Real>(pairs_.size()) * std::numeric_limits<Real>::denorm_min();
            for (const Real x : gain_.values)
                noise_ = std::max(noise_, 64 * std::numeric_limits<Real>::epsilon() * std::abs(x));
        }
        return true;
    }

    // O(n^2)
    void swap(int u, int v) {
        Real *a = a_.data(), *b = b_.data();
        int rows = 0;
        for (Pair& pair : pairs_) {
            const Real *su = pair.source.row(u), *sv = pair.source.row(v);
            Real *tu = pair.target.row(u), *tv = pair.target.row(v);
            if (pair.relates[u] || pair.relates[v]) {  // otherwise a is zero
                for (int k = 0; k < stride_; ++k) a[k] = 2 * (su[k] - sv[k]), b[k] = tv[k] - tu[k];
                for (int k = 0; k < stride_; ++k) diagonal_[k] += a[k] * b[k];
                a += stride_, b += stride_, ++rows;
            }
            std::swap_ranges(tu, tu + stride_, tv);
            for (int k = 0; k < n_; ++k) std::swap(pair.target(k, u), pair.target(k, v));
        }
        swap_delta::update(gain_.row(0), delta_.row(0), a_.data(), b_.data(), rows, n_, stride_);
        for (int r = 0; r < n_; ++r) std::swap(gain_(r, u), gain_(r, v));
        std::swap(permutation_[u], permutation_[v]);
        diagonal_[u] = gain_(u, u);
        diagonal_[v] = gain_(v, v);
        refresh(u);
        refresh(v);
    }

    const std::vector<int>& permutation() const { return permutation_; }
    int n() const { return n_; }
    int stride() const { return stride_; }  // a multiple of 8

    // The best swap among those that are not tabu (expiry <= tick, laid out as the deltas) or that beat `aspiration`.
    swap_delta::Swap<Real> best(const Real* expiry = nullptr, Real tick = 0, Real aspiration = 0) const {
        return swap_delta::best(delta_.row(0), expiry, tick, aspiration, n_, stride_);
    }

    // Differences of cost up to this are rounding; zero where the arithmetic is exact.
    Real noise() const { return noise_; }

    // Is every number that arises here exact for this problem? True of most integer data (QAPLIB), even in float32.
    static bool exact(const Problem& problem) {
        // Halves are welcome, because the symmetric part of an integer matrix has them; their products are quarters.
        const auto largest = [](const std::vector<double>& values) {
            double most = 0;
            for (const double x : values) most = std::max(most, 2 * x == std::rint(2 * x) ? std::abs(x) : INFINITY);
            return most;
        };
        double bound = 4 * largest(problem.linear.values);
        for (const Factor& f : problem.factors)
            bound += 8.0 * (problem.n + 1) * largest(f.source.values) * largest(f.target.values);
        return 4 * bound < std::ldexp(1.0, std::numeric_limits<Real>::digits);
    }

 private:
    struct Pair {
        bool symmetric;
        std::vector<bool> relates;            // whether an item has relations in the source
        AlignedGrid<Real, 2> source, target;  // target is kept permuted: target(q, k) = target_f(p_q, p_k)
    };

    // delta(r, .) and delta(., r) from the gains
    void refresh(int r) {
        const Real own = gain_(r, r);
        for (int k = 0; k < n_; ++k) a_[k] = gain_(r, k) + gain_(k, r) - own - diagonal_[k];
        for (const Pair& pair : pairs_) {
            if (!pair.symmetric || !pair.relates[r]) continue;
            const Real *source = pair.source.row(r), *target = pair.target.row(r);
            for (int k = 0; k < n_; ++k) a_[k] += 4 * source[k] * target[k];
        }
        for (int k = 0; k < n_ && !problem_->forbidden.empty(); ++k) {
            const bool ok = problem_->allowed(r, permutation_[k]) && problem_->allowed(k, permutation_[r]);
            if (!ok) a_[k] = std::numeric_limits<Real>::infinity();
        }
        for (int k = 0; k < r; ++k) delta_(k, r) = a_[k];
        std::copy(a_.begin() + r + 1, a_.begin() + n_, delta_.row(r) + r + 1);
    }

    const Problem* problem_;
    int n_, stride_;
    std::vector<int> permutation_;
    std::vector<Pair> pairs_;
    AlignedGrid<Real, 2> gain_;
    AlignedVector<Real> diagonal_, a_, b_;  // diagonal = that of gain; a, b are scratch, a row a pair
    // delta(r, s) for r < s < n; +infinity elsewhere and where the swap would use a forbidden pair.
    AlignedGrid<Real, 2> delta_;
    Real noise_ = 0;
    bool exact_;
};

}  // namespace blindmatch
