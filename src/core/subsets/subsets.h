// The k cheapest subsets of a given size under a pairwise cost (p-dispersion-sum): the paper's "optimal matching
// problems".
#pragma once

#include <cstdint>
#include <set>
#include <unordered_set>
#include <vector>

#include "base/grid.h"
#include "base/threads.h"

namespace blindmatch {

using Subset = std::vector<int>;  // sorted indices

// cost(S) = sum_{i in S} single[i] + sum_{i < j in S} pair[i][j]: what the ordered pairs of a square matrix sum up to.
struct SubsetProblem {
    SubsetProblem(const double* cost, int n, int size);

    double cost(const Subset& subset) const;
    std::uint64_t hash(const Subset& subset) const;  // Zobrist: the exclusive or of the members' keys
    SubsetProblem complement() const;  // the n - size items left out instead; its costs are lower by total()
    double total() const;              // the cost of all n items
    const double* row(int i) const { return pair.row(i); }

    int n, size, stride;
    AlignedGrid<double, 2> pair;  // n x stride: cost[i][j] + cost[j][i]; zero diagonal and padding
    std::vector<double> single;   // cost[i][i]
    std::vector<double> row_largest;
    std::vector<std::uint64_t> keys;
    double largest_pair = 0.0, largest_single = 0.0;
};

// The `capacity` cheapest of all subsets offered, each once. Ties go to the lexicographically smaller subset, so the
// content does not depend on the order of the offers (if a subset is always offered with the same cost).
class SubsetPool {
 public:
    struct Entry {
        double cost;
        Subset subset;
        std::uint64_t hash;
        bool operator<(const Entry& other) const {
            return cost != other.cost ? cost < other.cost : subset < other.subset;
        }
    };

    explicit SubsetPool(std::size_t capacity) : capacity_(capacity) {}

    double worst() const { return entries_.size() < capacity_ ? INFINITY : entries_.rbegin()->cost; }
    double best() const { return entries_.empty() ? INFINITY : entries_.begin()->cost; }
    bool knows(std::uint64_t hash) const { return hashes_.count(hash) > 0; }
    void offer(Entry entry);
    void offer(const SubsetProblem& problem, const Subset& subset);  // sorted
    const std::set<Entry>& entries() const { return entries_; }
    std::vector<Subset> subsets() const;  // cheapest first

 private:
    std::size_t capacity_;
    std::set<Entry> entries_;
    std::unordered_set<std::uint64_t> hashes_;
};

struct SubsetResult {
    std::vector<Subset> subsets;     // cheapest first
    double lower_bound = -INFINITY;  // no subset costs less; -infinity if nothing is proved
    bool completed = false;          // nothing cut the run short
};

struct SubsetSearchOptions {
    std::size_t k = 10;
    std::uint64_t seed = 0;
    std::int64_t restarts = 32;      // restart r depends on (seed, r) alone
    std::int64_t iterations = 1000;  // tabu moves after each descent
    int threads = 1;
};

// Swap descents from random and from greedy subsets, each followed by tabu search. Every neighbour looked at may enter
// the pool; at the end the pool is closed: no swap out of one of its subsets gives a subset that belongs into it.
[[nodiscard]] SubsetResult search_subsets(const SubsetProblem& problem, const SubsetSearchOptions& options, Stop& stop);

// Branch and bound, best bound first. Completed: no subset outside the answer is cheaper than its last one (by more
// than the rounding of float64). `known` are subsets to start from, the better the faster.
[[nodiscard]] SubsetResult exact_subsets(const SubsetProblem& problem, std::size_t k, const std::vector<Subset>& known,
                                         Stop& stop);

}  // namespace blindmatch
