#include "subsets/subsets.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <numeric>

#include "base/random.h"

namespace blindmatch {

SubsetProblem::SubsetProblem(const double* cost, int n_, int size_)
    : n(n_), size(size_), stride(padded(n_)), pair({n, stride}), single(n) {
    const GridView<const double, 2> given{cost, {n, n}};
    Random random(0x5eed);
    for (int i = 0; i < n; ++i) keys.push_back(random.next());
    for (int i = 0; i < n; ++i) {
        single[i] = given(i, i);
        largest_single = std::max(largest_single, std::abs(single[i]));
        for (int j = 0; j < i; ++j) {
            const double both = given(i, j) + given(j, i);
            pair(i, j) = pair(j, i) = both;
            largest_pair = std::max(largest_pair, std::abs(both));
        }
    }
    for (int i = 0; i < n; ++i) row_largest.push_back(*std::max_element(row(i), row(i) + n));
}

double SubsetProblem::cost(const Subset& subset) const {
    double sum = 0.0;
    for (std::size_t s = 0; s < subset.size(); ++s) {
        double part = single[subset[s]];
        for (std::size_t t = 0; t < s; ++t) part += row(subset[s])[subset[t]];
        sum += part;
    }
    return sum;
}

// What is left of the total when D is taken out: total - sum_{i in D} (single[i] + sum_j pair[i][j]) + the pairs inside
// D.
SubsetProblem SubsetProblem::complement() const {
    SubsetProblem other = *this;
    other.size = n - size;
    other.largest_single = 0.0;
    for (int i = 0; i < n; ++i) {
        other.single[i] = -std::accumulate(row(i), row(i) + n, single[i]);
        other.largest_single = std::max(other.largest_single, std::abs(other.single[i]));
    }
    return other;
}

double SubsetProblem::total() const {
    Subset all(n);
    std::iota(all.begin(), all.end(), 0);
    return cost(all);
}

std::uint64_t SubsetProblem::hash(const Subset& subset) const {
    std::uint64_t hash = 0;
    for (const int i : subset) hash ^= keys[i];
    return hash;
}

void SubsetPool::offer(Entry entry) {
    if (knows(entry.hash)) return;
    if (entries_.size() == capacity_) {
        const auto last = std::prev(entries_.end());
        if (!(entry < *last)) return;
        hashes_.erase(last->hash);
        entries_.erase(last);
    }
    hashes_.insert(entry.hash);
    entries_.insert(std::move(entry));
}

void SubsetPool::offer(const SubsetProblem& problem, const Subset& subset) {
    offer({problem.cost(subset), subset, problem.hash(subset)});
}

std::vector<Subset> SubsetPool::subsets() const {
    std::vector<Subset> subsets;
    for (const Entry& entry : entries_) subsets.push_back(entry.subset);
    return subsets;
}

namespace {

// The smallest any[j] - row[j] and the smallest free[j] - row[j].
BLINDMATCH_KERNEL void row_minima(const double* any, const double* free, const double* row, int stride, double* out) {
    Vector<double> low_any = broadcast<double>(INFINITY), low_free = low_any;
    for (int j = 0; j < stride; j += Simd<double>::width) {
        const auto r = load(row + j);
        low_any = smaller(low_any, load(any + j) - r);
        low_free = smaller(low_free, load(free + j) - r);
    }
    out[0] = smallest_lane<double>(low_any);
    out[1] = smallest_lane<double>(low_free);
}

// One subset and what every swap would change. gain[i] = single[i] + sum of pair[i][j] over the members j != i, so that
// replacing the member a by b costs gain[b] - gain[a] - pair[a][b].
class SwapSearch {
 public:
    SwapSearch(const SubsetProblem& problem, std::size_t k)
        : pool(k), problem_(problem), gain_(problem.stride), any_(problem.stride), free_(problem.stride) {
        noise_ = 1e-13 * (problem.size * problem.largest_pair + problem.largest_single);
    }

    void reset(const Subset& subset) {
        members_ = subset;
        inside_.assign(problem_.n, 0);
        until_.assign(problem_.n, 0);
        step_ = 0;
        for (const int i : members_) inside_[i] = 1;
        hash_ = problem_.hash(members_);
        recompute();
    }

    // To the local optimum. False if cut short.
    bool descend(Stop& stop) {
        while (!stop()) {
            const Move move = best_move(false);
            if (!(move.delta < -noise_)) return true;
            apply(move);
        }
        return false;
    }

    bool tabu(std::int64_t iterations, Random& random, Stop& stop) {
        const int outside = problem_.n - problem_.size;
        double best = cost_;
        for (; step_ < iterations; ++step_) {
            if (step_ % 16 == 0 && stop()) return false;
            if (step_ % 1024 == 1023) recompute();  // rounding errors do not pile up
            aspiration_ = best - noise_ - cost_;
            const Move move = best_move(true);
            if (move.leaves < 0) {  // everything is tabu
                std::fill(until_.begin(), until_.end(), 0);
                continue;
            }
            // What left stays out for a while, what came stays in; never so long that no move remains.
            const int out = std::min(outside - 1, 5 + random.below(10 + outside / 20));
            const int in = std::min(problem_.size - 1, 2 + random.below(3 + problem_.size / 4));
            until_[move.leaves] = step_ + 1 + std::max(out, 0);
            until_[move.enters] = step_ + 1 + std::max(in, 0);
            apply(move);
            best = std::min(best, cost_);
        }
        return true;
    }

    void offer_current() { offer(-1, -1, cost_); }
    void offer_neighbours() { best_move(true); }

    SubsetPool pool;  // with costs as the search sees them: right up to rounding

 private:
    struct Move {
        double delta = INFINITY;
        int leaves = -1, enters = -1;
    };

    void recompute() {
        cost_ = 0.0;
        for (int i = 0; i < problem_.n; ++i) gain_[i] = problem_.single[i];
        for (const int j : members_) {
            cost_ += gain_[j];
            const double* row = problem_.row(j);
            for (int i = 0; i < problem_.n; ++i) gain_[i] += row[i];
        }
    }

    void apply(const Move& move) {
        const double *out = problem_.row(move.leaves), *in = problem_.row(move.enters);
        for (int i = 0; i < problem_.n; ++i) gain_[i] += in[i] - out[i];
        *std::find(members_.begin(), members_.end(), move.leaves) = move.enters;
        inside_[move.leaves] = 0, inside_[move.enters] = 1;
        hash_ ^= problem_.keys[move.leaves] ^ problem_.keys[move.enters];
        cost_ += move.delta;
    }

    // The best swap that is not tabu (or reaches a new best). With `offering`, all neighbours good enough go to the
    // pool.
    Move best_move(bool offering) {
        double lowest = INFINITY;
        for (int i = 0; i < problem_.stride; ++i) {
            const bool out = i < problem_.n && !inside_[i];
            any_[i] = out ? gain_[i] : INFINITY;
            free_[i] = out && until_[i] <= step_ ? gain_[i] : INFINITY;
            lowest = std::min(lowest, any_[i]);
        }
        Move best;
        double found = INFINITY;
        const AlignedVector<double>* where = nullptr;
        for (const int a : members_) {
            const double cut = offering ? pool.worst() - noise_ - cost_ : -INFINITY;
            if (lowest - gain_[a] - problem_.row_largest[a] >= std::max(cut, best.delta)) continue;
            double minima[2];
            row_minima(any_.data(), free_.data(), problem_.row(a), problem_.stride, minima);
            const double any = minima[0] - gain_[a], free = minima[1] - gain_[a];
            if (any < cut) offer_row(a);
            if (until_[a] <= step_ && free < best.delta) {
                best.delta = free, best.leaves = a, found = minima[1], where = &free_;
            }
            if (any < best.delta && any < aspiration_) {
                best.delta = any, best.leaves = a, found = minima[0], where = &any_;
            }
        }
        if (where == nullptr) return best;
        const double* row = problem_.row(best.leaves);
        for (best.enters = 0; (*where)[best.enters] - row[best.enters] != found;) ++best.enters;
        return best;
    }

    void offer_row(int a) {
        const double* row = problem_.row(a);
        for (int b = 0; b < problem_.n; ++b) {
            const double delta = any_[b] - row[b] - gain_[a];
            if (delta < pool.worst() - noise_ - cost_ && !inside_[b]) offer(a, b, cost_ + delta);
        }
    }

    // The current subset with `leaves` replaced by `enters`.
    void offer(int leaves, int enters, double cost) {
        const std::uint64_t hash = leaves < 0 ? hash_ : hash_ ^ problem_.keys[leaves] ^ problem_.keys[enters];
        if (pool.knows(hash)) return;
        Subset subset = members_;
        if (leaves >= 0) *std::find(subset.begin(), subset.end(), leaves) = enters;
        std::sort(subset.begin(), subset.end());
        pool.offer({cost, std::move(subset), hash});
    }

    const SubsetProblem& problem_;
    AlignedVector<double> gain_, any_, free_;  // any_: gain of the items outside; free_: of those that are not tabu
    Subset members_;                           // in any order
    std::vector<char> inside_;
    std::vector<std::int64_t> until_;  // tabu before this step
    std::uint64_t hash_ = 0;
    double cost_ = 0.0, noise_ = 0.0, aspiration_ = -INFINITY;
    std::int64_t step_ = 0;
};

Subset random_subset(int n, int size, Random& random) {
    Subset items(n);
    std::iota(items.begin(), items.end(), 0);
    for (int s = 0; s < size; ++s) std::swap(items[s], items[s + random.below(n - s)]);
    items.resize(size);
    return items;
}

// From one random item, always the item that adds least. Finds the small tight groups that swaps miss among many items.
Subset greedy_subset(const SubsetProblem& problem, Random& random) {
    Subset items;
    std::vector<double> gain = problem.single;
    for (int next = random.below(problem.n);;) {
        items.push_back(next);
        if (static_cast<int>(items.size()) == problem.size) return items;
        for (int i = 0; i < problem.n; ++i) gain[i] += problem.row(next)[i];
        gain[next] = INFINITY;
        next = static_cast<int>(std::min_element(gain.begin(), gain.end()) - gain.begin());
    }
}

// Swaps out of each subset of the pool, also out of those that come in, until nothing new belongs to it.
bool close_pool(const SubsetProblem& problem, std::size_t k, SubsetPool& pool, Stop& stop) {
    SwapSearch search(problem, k);
    for (const auto& entry : pool.entries()) search.pool.offer(entry);
    std::unordered_set<std::uint64_t> expanded;
    do {
        std::vector<Subset> fresh;
        for (const auto& entry : search.pool.entries()) {
            if (expanded.insert(entry.hash).second) fresh.push_back(entry.subset);
        }
        if (fresh.empty()) break;
        for (const Subset& subset : fresh) {
            search.reset(subset);
            search.offer_neighbours();  // before the clock is asked: a run without time has its k subsets, too
            if (stop()) break;
        }
    } while (!stop());
    for (const Subset& subset : search.pool.subsets()) pool.offer(problem, subset);
    return !stop();
}

}  // namespace

SubsetResult search_subsets(const SubsetProblem& problem, const SubsetSearchOptions& options, Stop& stop) {
    SubsetPool pool(options.k);
    std::mutex mutex;
    std::atomic<bool> cut{false};
    const auto work = [&](std::int64_t index) {
        Random random(options.seed, static_cast<std::uint64_t>(index));
        SwapSearch search(problem, options.k);
        search.reset(index % 2 == 0 ? random_subset(problem.n, problem.size, random) : greedy_subset(problem, random));
        bool finished = search.descend(stop);
        search.offer_current();
        finished = finished && (problem.size == problem.n || search.tabu(options.iterations, random, stop));
        if (!finished) cut = true;
        const std::lock_guard lock(mutex);
        for (const Subset& subset : search.pool.subsets()) pool.offer(problem, subset);
    };
    const bool all = for_each_stream(options.restarts, options.threads, stop, work, [&] { stop(); });
    const bool closed = close_pool(problem, options.k, pool, stop);
    return {.subsets = pool.subsets(), .completed = all && closed && !cut};
}

}  // namespace blindmatch
