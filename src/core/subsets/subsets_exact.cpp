// Branch and bound for the k cheapest subsets.
//
// The bound is Lagrangian (Pisinger 2006, "Upper bounds and exact algorithms for p-dispersion problems"). Split every
// pair cost in two, share[i][j] + share[j][i] = pair[i][j]. Then a subset costs the sum over its members i of single[i]
// and of share[i][j] over the r - 1 others; letting each i choose its own cheapest r - 1 others, and taking the r
// cheapest i, cannot cost more. Any split is valid; subgradient steps at the root look for a good one, the tree keeps
// it.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include "subsets/subsets.h"

namespace blindmatch {

namespace {

struct Node {
    double bound;             // no subset of this node costs less (up to rounding)
    std::vector<char> state;  // per item: 0 open, 1 in, 2 out
    bool operator<(const Node& other) const { return bound > other.bound; }  // best bound on top of the heap
};

class SubsetTree {
 public:
    SubsetTree(const SubsetProblem& problem, std::size_t k, const std::vector<Subset>& known)
        : problem_(problem), n_(problem.n), pool_(k), share_(problem.pair), order_({n_, n_}), gain_(n_), value_(n_) {
        for (const Subset& subset : known) offer(subset);
        for (double& share : share_.values) share /= 2;
    }

    SubsetResult run(Stop& stop) {
        if (problem_.size > 1) improve_split(stop);
        sort_rows();
        heap_.push_back({-INFINITY, std::vector<char>(n_, 0)});
        bool completed = true;
        while (!heap_.empty() || !stack_.empty()) {
            if (visited_++ > 0 && stop()) {  // the root is always evaluated: its bound is the least one can ask for
                completed = false;
                break;
            }
            Node node = next();
            if (!prune(node.bound)) expand(node);
        }
        for (const Node& node : stack_) proved_ = std::min(proved_, node.bound - rounding_);
        if (!heap_.empty()) proved_ = std::min(proved_, heap_.front().bound - rounding_);
        return {pool_.subsets(), std::min(proved_, pool_.best()), completed};
    }

 private:
    static constexpr std::size_t heap_limit = 1'000'000;  // beyond it: depth first, memory stays bounded
    static constexpr int subgradient_steps = 1500;

    Node next() {
        if (stack_.empty()) std::pop_heap(heap_.begin(), heap_.end());
        std::vector<Node>& from = stack_.empty() ? heap_ : stack_;
        Node node = std::move(from.back());
        from.pop_back();
        return node;
    }

    void push(Node node) {
        if (prune(node.bound)) return;
        if (heap_.size() >= heap_limit) return stack_.push_back(std::move(node));
        heap_.push_back(std::move(node));
        std::push_heap(heap_.begin(), heap_.end());
    }

    // Whether nothing under this bound can enter the pool; remembers what was proved of it.
    bool prune(double bound) {
        if (bound < pool_.worst() - rounding_) return false;
        proved_ = std::min(proved_, bound - rounding_);
        return true;
    }

    void offer(Subset subset) {
        std::sort(subset.begin(), subset.end());
        pool_.offer(problem_, subset);
    }

    // An upper bound on the rounding error of any bound or cost below: depth of the sums times the sum of magnitudes.
    void set_rounding() {
        const double largest = std::max(problem_.largest_pair, largest_magnitude(share_.values));
        const double p = problem_.size;
        rounding_ = 8 * (p + 4) * std::numeric_limits<double>::epsilon() * p * (problem_.largest_single + p * largest);
    }

    // Subgradient ascent of the root bound over the splits, Polyak steps towards the pool's worst cost.
    void improve_split(Stop& stop) {
        const int p = problem_.size;
        set_rounding();
        AlignedGrid<double, 2> best = share_;
        double best_bound = -INFINITY, step = 1.0;
        std::vector<std::vector<int>> chosen(n_);
        std::vector<int> row(n_), items(n_);
        Grid<char, 2> picked({n_, n_});
        for (int t = 0, stalled = 0; t < subgradient_steps && step > 1e-3 && !stop(); ++t) {
            for (int i = 0; i < n_; ++i) {
                row.clear();
                for (int j = 0; j < n_; ++j) {
                    if (j != i) row.push_back(j);
                }
                const double* s = share_.row(i);
                std::nth_element(row.begin(), row.begin() + (p - 2), row.end(),
                                 [s](int a, int b) { return s[a] < s[b]; });
                chosen[i].assign(row.begin(), row.begin() + (p - 1));
                value_[i] = problem_.single[i];
                for (const int j : chosen[i]) value_[i] += s[j];
            }
            std::iota(items.begin(), items.end(), 0);
            std::nth_element(items.begin(), items.begin() + (p - 1), items.end(),
                             [this](int a, int b) { return value_[a] < value_[b]; });
            double bound = 0.0;
            for (int s = 0; s < p; ++s) bound += value_[items[s]];
            if (bound > best_bound + 1e-4 * std::abs(pool_.worst() - best_bound))
                stalled = 0;
            else if (++stalled >= 20)
                step /= 2, stalled = 0;
            if (bound > best_bound) best_bound = bound, best = share_;
            if (bound >= pool_.worst() - rounding_) break;

            std::ranges::fill(picked.values, 0);
            for (int s = 0; s < p; ++s) {
                for (const int j : chosen[items[s]]) picked(items[s], j) = 1;
            }
            std::int64_t norm = 0;
            for (int i = 0; i < n_; ++i) {
                for (int j = 0; j < i; ++j) norm += picked(i, j) != picked(j, i);
            }
            if (norm == 0) break;  // the choices agree: this is an optimal subset, and the bound is its cost
            const double target = std::isfinite(pool_.worst()) ? pool_.worst() : bound + problem_.largest_pair;
            const double length = step * (target - bound) / static_cast<double>(norm);
            for (int i = 0; i < n_; ++i) {
                for (int j = 0; j < i; ++j) {
                    const int sign = picked(i, j) - picked(j, i);
                    if (sign == 0) continue;
                    share_(i, j) += sign * length;
                    share_(j, i) = problem_.pair(i, j) - share_(i, j);
                }
            }
        }
        share_ = std::move(best);
    }

    void sort_rows() {
        set_rounding();
        for (int i = 0; i < n_; ++i) {
            int* order = order_.row(i);
            std::iota(order, order + n_, 0);
            const double* s = share_.row(i);
            std::sort(order, order + n_, [s](int a, int b) { return s[a] < s[b]; });
        }
    }

    // Bounds the node, fixes what it can, and puts its two children on the heap (or offers the subsets that are left).
    void expand(Node& node) {
        for (;;) {
            double base;
            collect(node, base);
            const int r = problem_.size - static_cast<int>(in_.size()), open = static_cast<int>(open_.size());
            if (r == 0 || r >= open) {
                if (r > open) return;  // too few items left
                if (r > 0) in_.insert(in_.end(), open_.begin(), open_.end());
                offer(in_);
                return;
            }
            if (r == 1) {
                for (const int i : open_) {
                    if (prune(base + gain_[i])) continue;
                    in_.push_back(i);
                    offer(in_);
                    in_.pop_back();
                }
                return;
            }
            for (const int i : open_) value_[i] = gain_[i] + cheapest(i, r - 1, node.state);
            std::sort(open_.begin(), open_.end(),
                      [this](int a, int b) { return value_[a] != value_[b] ? value_[a] < value_[b] : a < b; });
            double bound = base;
            for (int s = 0; s < r; ++s) bound += value_[open_[s]];
            node.bound = std::max(node.bound, bound);
            if (prune(node.bound)) return;
            if (!fix(node, bound, r)) {
                branch(node, bound, r);
                return;
            }
        }
    }

    void collect(const Node& node, double& base) {
        in_.clear();
        open_.clear();
        for (int i = 0; i < n_; ++i) {
            if (node.state[i] == 1) in_.push_back(i);
            if (node.state[i] == 0) open_.push_back(i);
        }
        base = problem_.cost(in_);
        for (const int i : open_) {
            gain_[i] = problem_.single[i];
            for (const int j : in_) gain_[i] += problem_.row(i)[j];
        }
    }

    double cheapest(int i, int count, const std::vector<char>& state) const {
        const int* order = order_.row(i);
        const double* s = share_.row(i);
        double sum = 0.0;
        for (int t = 0; count > 0; ++t) {
            const int j = order[t];
            if (state[j] != 0 || j == i) continue;
            sum += s[j];
            --count;
        }
        return sum;
    }

    // Items that the bound alone puts out or in. `open_` is sorted by value, the first r make up the bound.
    bool fix(Node& node, double bound, int r) {
        bool changed = false;
        const double last = value_[open_[r - 1]], following = value_[open_[r]];
        for (std::size_t s = open_.size(); s-- > static_cast<std::size_t>(r);) {
            if (!prune(bound - last + value_[open_[s]])) break;
            node.state[open_[s]] = 2;
            changed = true;
        }
        for (int s = 0; s < r; ++s) {
            if (!prune(bound - value_[open_[s]] + following)) break;
            node.state[open_[s]] = 1;
            changed = true;
        }
        return changed;
    }

    void branch(Node& node, double bound, int r) {
        const int item = open_[0];
        Node without{std::max(node.bound, bound - value_[item] + value_[open_[r]]), node.state};
        without.state[item] = 2;
        node.state[item] = 1;
        push(std::move(without));
        push(std::move(node));
    }

    const SubsetProblem& problem_;
    const int n_;
    SubsetPool pool_;
    AlignedGrid<double, 2> share_;
    Grid<int, 2> order_;  // row i: the other items by ascending share[i][.]
    std::vector<double> gain_, value_;
    std::vector<int> in_, open_;
    std::vector<Node> heap_;  // best bound first
    std::vector<Node> stack_;
    double proved_ = INFINITY, rounding_ = 0.0;
    std::int64_t visited_ = 0;
};

Subset others(const Subset& subset, int n) {
    Subset all(n), rest;
    std::iota(all.begin(), all.end(), 0);
    std::ranges::set_difference(all, subset, std::back_inserter(rest));
    return rest;
}

}  // namespace

SubsetResult exact_subsets(const SubsetProblem& problem, std::size_t k, const std::vector<Subset>& known, Stop& stop) {
    const int n = problem.n;
    if (2 * problem.size <= n || problem.size == n) return SubsetTree(problem, k, known).run(stop);
    // The fewer items to choose the tighter the bound: choose those to leave out.
    std::vector<Subset> left_out;
    for (const Subset& subset : known) left_out.push_back(others(subset, n));
    const SubsetProblem complement = problem.complement();
    SubsetResult result = SubsetTree(complement, k, left_out).run(stop);
    for (Subset& subset : result.subsets) subset = others(subset, n);
    const double size = n, magnitude = size * (problem.largest_single + size * problem.largest_pair);
    result.lower_bound += problem.total() - 4 * size * std::numeric_limits<double>::epsilon() * magnitude;
    return result;
}

}  // namespace blindmatch
