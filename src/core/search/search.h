// Multi-start 2-swap local search, and what the primal searches share: their result and their feasible starts.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "base/problem.h"
#include "base/random.h"
#include "base/threads.h"

namespace blindmatch {

struct SearchResult {
    std::vector<int> permutation;  // empty: none avoids the forbidden pairs
    double cost = INFINITY;        // problem.cost(permutation)
    bool completed = false;        // the whole budget was used; nothing cut the search short
};

// Called from the calling thread only, with the best permutation so far.
using Progress = std::function<void(double cost, const std::vector<int>& permutation)>;

struct TwoOptOptions {
    std::uint64_t seed = 0;
    std::int64_t restarts = 100;  // at least one for each of `initial`; restart r depends on (seed, r) alone
    int kicks = 40;  // then, this many times: perturb the restart's best and search again; 0 is plain 2-opt
    int threads = 1;
    std::vector<std::vector<int>> initial;  // restart r begins at initial[r], if that is feasible; the others at random
};

// The best of all restarts, ties to the smallest restart, so independent of `threads`.
[[nodiscard]] SearchResult two_opt(const Problem& problem, const TwoOptOptions& options, Stop& stop,
                                   const Progress& progress = {});

// What one restart from `permutation` finds, in at most ten seconds.
[[nodiscard]] SearchResult two_opt_from(const Problem& problem, const std::vector<int>& permutation, Stop& stop);

// Gives a random allowed column to each row that has -1, moving other rows where they are in the way. False if no
// permutation of allowed pairs exists.
bool complete(const Problem& problem, std::vector<int>& permutation, Random& random);

// A random permutation of allowed pairs; empty if there is none.
[[nodiscard]] std::vector<int> random_feasible(const Problem& problem, Random& random);

// `permutation` with `count` random rows matched anew at random.
[[nodiscard]] std::vector<int> perturbed(const Problem& problem, std::vector<int> permutation, int count,
                                         Random& random);

// The assignment that is best when each pair (i, j) could choose its own order of the others: sorted against reversely
// sorted rows. On problems that can be aligned it is close to the optimum, which no random start is. Empty if `stop`
// came first or no permutation of allowed pairs exists. O(n^3).
[[nodiscard]] std::vector<int> gilmore_lawler_start(const Problem& problem, Random& random, Stop& stop);

[[nodiscard]] bool is_feasible(const Problem& problem,
                               const std::vector<int>& permutation);  // a permutation of allowed pairs?

// The best permutation that any thread has found. Ties go to the smallest stream, which makes it independent of timing.
class Incumbent {
 public:
    explicit Incumbent(const Progress& progress) : progress_(progress) {}

    void offer(double cost, const std::vector<int>& permutation, std::int64_t stream);
    // Calling thread only: tells `progress` of a better cost or of another hundredth done, at most every 10 ms. The
    // fraction is 0 where only the clock limits the work.
    void report(double fraction);
    // A stream that reads cost() and then stream() never sees a cost with the stream of an earlier one.
    double cost() const { return cost_; }
    std::int64_t stream() const { return stream_; }
    SearchResult result(bool completed) const;

 private:
    const Progress& progress_;
    mutable std::mutex mutex_;
    std::vector<int> permutation_;
    std::atomic<double> cost_{INFINITY};
    std::atomic<std::int64_t> stream_{0};
    double reported_ = INFINITY, reported_fraction_ = 0;
    Stop::Clock::time_point next_report_{};
};

// Calls work(0) ... work(count - 1) on `threads` threads, as for_each_stream does, and reports the share that is done.
// The best of all; it is completed unless `stop` left work out or a call returned false.
[[nodiscard]] SearchResult search_streams(std::int64_t count, int threads, Stop& stop, Incumbent& incumbent,
                                          const std::function<bool(std::int64_t)>& work);

// Robust tabu search (Taillard 1991) inside a small evolving population (as Benlic and Hao 2015): the primal engine.
struct TabuOptions {
    std::uint64_t seed = 0;
    std::int64_t streams = 1;     // independent searches; stream r depends on (seed, r) alone
    std::int64_t iterations = 0;  // swaps of each stream; 0: until `stop`, and then one stream runs on each thread
    int threads = 1;
    double target = -kInfinity;  // stop as soon as a cost is at most this
    // Stream r begins at initial[r], if that is feasible; else stream 0 at gilmore_lawler_start, the others at random.
    std::vector<std::vector<int>> initial;
};

// The best permutation of all streams, ties to the smallest stream (with a target: of those up to the first that
// reached it). With an iteration budget the result is independent of `threads`; the clock alone can change it.
[[nodiscard]] SearchResult tabu(const Problem& problem, const TabuOptions& options, Stop& stop,
                                const Progress& progress = {});

// Every permutation, with pruning: the exact solver for small problems, and the reference that the others are tested
// against.
//
// The optimum if `completed`, else the best so far. Of several optimal permutations it always returns the same,
// whatever the number of threads. Meant for n <= 12: n = 10 takes at most 0.3 s, n = 12 at most half a minute. `seed`
// is that of the short 2-opt that gives the first incumbent; it never changes the cost.
[[nodiscard]] SearchResult enumerate(const Problem& problem, std::uint64_t seed, int threads, Stop& stop,
                                     const Progress& progress = {});

}  // namespace blindmatch
