#include <algorithm>
#include <cmath>
#include <limits>

#include "search/search.h"

namespace blindmatch {
namespace {

// What rounding can do to a sum over the whole cost. Where all sums are exact (multiples of 1/4 below 2^53) it is zero.
double rounding_margin(const Problem& problem) {
    bool exact = true;
    const auto largest = [&exact](const double* values, std::size_t count) {
        double most = 0;
        for (std::size_t k = 0; k < count; ++k) {
            most = std::max(most, std::abs(values[k]));
            exact = exact && 2 * values[k] == std::rint(2 * values[k]);
        }
        return most;
    };
    const double n = problem.n;
    double scale = largest(&problem.constant, 1) + n * largest(problem.linear.row(0), problem.linear.values.size());
    for (const Factor& f : problem.factors) {
        scale +=
            n * n * largest(f.source.row(0), f.source.values.size()) * largest(f.target.row(0), f.target.values.size());
    }
    return exact && 4 * scale < 0x1p53 ? 0.0 : 1e-13 * scale;
}

// rest[d][i][j]: at most half of what (i, j) and the rows from d on, except i, can cost one another, whatever their
// columns. Half, because each of the two rows counts its part.
Grid<double, 3> rest_bounds(const Problem& problem) {
    const int n = problem.n;
    Grid<double, 3> rest({n + 1, n, n});
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) {
            for (int d = n - 1; d >= 0; --d) {
                double least = d == i ? 0.0 : INFINITY;
                for (int l = 0; l < n && d != i; ++l) {
                    if (l != j && problem.allowed(d, l)) least = std::min(least, problem.pair_cost(i, j, d, l) / 2);
                }
                rest(d, i, j) = rest(d + 1, i, j) + least;
            }
        }
    }
    return rest;
}

struct Shared {
    const Problem& problem;
    const double margin;
    const Grid<double, 3> rest;
    Stop& stop;
    Incumbent incumbent;
};

// Rows get their columns in the order 0, 1, 2, ... A task is one choice for the first two rows.
class Search {
 public:
    Search(Shared& shared, std::int64_t task)
        : shared_(shared),
          problem_(shared.problem),
          n_(shared.problem.n),
          task_(task),
          permutation_(n_),
          used_(n_, 0),
          own_({n_ + 1, n_, n_}) {
        std::ranges::copy(problem_.linear.values, own_.row(0));
    }

    // False if the clock cut it short.
    bool run() {
        const int first = static_cast<int>(task_ / n_), second = static_cast<int>(task_ % n_);
        if (n_ == 1) return !problem_.allowed(0, 0) || visit(place(0, 0, problem_.constant), 1);
        if (first == second || !problem_.allowed(0, first) || !problem_.allowed(1, second)) return true;
        const double cost = place(0, first, problem_.constant);
        return visit(place(1, second, cost), 2);
    }

 private:
    // own_[d][i][j] is what (i, j) costs by itself and with the rows before d. Puts row d on column j and returns the
    // cost of the rows up to d.
    double place(int d, int j, double cost) {
        permutation_[d] = j;
        used_[j] = 1;
        for (int i = d + 1; i < n_; ++i) {
            const double* before = own_.row(d, i);
            double* after = own_.row(d + 1, i);
            for (int l = 0; l < n_; ++l) {
                if (!used_[l]) after[l] = before[l] + problem_.pair_cost(d, j, i, l);
            }
        }
        return cost + own_(d, d, j);
    }

    // No completion costs less than this: each row from d on takes its best free column, without regard to the others.
    double bound(int d, double cost) const {
        for (int i = d; i < n_; ++i) {
            const double *own = own_.row(d, i), *rest = shared_.rest.row(d, i);
            double least = INFINITY;
            for (int j = 0; j < n_; ++j) {
                if (!used_[j] && problem_.allowed(i, j)) least = std::min(least, own[j] + rest[j]);
            }
            cost += least;
        }
        return cost;
    }

    // Equal costs are cut only where sums are exact, and only in favour of a task that comes first: so the answer
    // depends neither on rounding nor on the order in which threads finish.
    bool hopeless(double bound) const {
        const double best = shared_.incumbent.cost();
        if (bound > best + shared_.margin) return true;
        return shared_.margin == 0 && bound == best && shared_.incumbent.stream() <= task_;
    }

    bool visit(double cost, int d) {
        if (++nodes_ % 1024 == 0 && shared_.stop()) return false;
        if (hopeless(d == n_ ? cost : bound(d, cost))) return true;
        if (d == n_) {
            shared_.incumbent.offer(problem_.cost(permutation_.data()), permutation_, task_);
            return true;
        }
        for (int j = 0; j < n_; ++j) {
            if (used_[j] || !problem_.allowed(d, j)) continue;
            const bool finished = visit(place(d, j, cost), d + 1);
            used_[j] = 0;
            if (!finished) return false;
        }
        return true;
    }

    Shared& shared_;
    const Problem& problem_;
    const int n_;
    const std::int64_t task_;
    std::vector<int> permutation_;
    std::vector<char> used_;
    Grid<double, 3> own_;
    std::int64_t nodes_ = 0;
};

}  // namespace

SearchResult enumerate(const Problem& problem, std::uint64_t seed, int threads, Stop& stop, const Progress& progress) {
    TwoOptOptions quick;
    quick.seed = seed;
    quick.restarts = 20L * problem.n;
    quick.kicks = 0;
    const SearchResult first = two_opt(problem, quick, stop);
    if (first.permutation.empty()) return first;

    Shared shared{problem, rounding_margin(problem), rest_bounds(problem), stop, Incumbent(progress)};
    shared.incumbent.offer(first.cost, first.permutation, std::numeric_limits<std::int64_t>::max());
    const std::int64_t tasks = problem.n == 1 ? 1 : static_cast<std::int64_t>(problem.n) * problem.n;
    return search_streams(tasks, threads, stop, shared.incumbent,
                          [&](std::int64_t task) { return Search(shared, task).run(); });
}

}  // namespace blindmatch
