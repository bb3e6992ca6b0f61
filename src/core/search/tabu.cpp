#include <algorithm>
#include <atomic>

#include "search/search.h"
#include "search/swap_delta.h"

namespace blindmatch {
namespace {

// Measured on QAPLIB and on Gromov-Wasserstein instances; results change little within a factor of two of any of these.
constexpr int kTabuPatience = 10;  // a tabu search ends after this times n swaps without a new best
constexpr double kTenure = 5;      // longest tabu tenure, over n
constexpr int kPopulation = 15;
constexpr int kPopulationOfLarge = 8, kLarge = 75;  // from this size on, where each search takes long
constexpr int kStale = 30;                          // children without a new best until the population is renewed
constexpr int kLargestStart = 2000;  // no Gilmore-Lawler start above this size: no clock interrupts its assignment

struct Team {
    const Problem& problem;
    const TabuOptions& options;
    Stop& stop;
    Incumbent incumbent;
    // The smallest stream that reached the target.
    std::atomic<std::int64_t> reached{std::numeric_limits<std::int64_t>::max()};
    std::thread::id caller = std::this_thread::get_id();
};

template <class Real>
class Stream {
 public:
    Stream(Team& shared, std::int64_t index)
        : shared_(shared),
          problem_(shared.problem),
          n_(problem_.n),
          size_(n_ < kLarge ? kPopulation : kPopulationOfLarge),
          index_(index),
          random_(shared.options.seed, static_cast<std::uint64_t>(index)),
          table_(problem_),
          tabu_({n_, n_}),
          expiry_({n_, table_.stride()}) {}

    SearchResult run() {
        evolve();
        best_.completed = completed_;
        return std::move(best_);
    }

 private:
    struct Member {
        std::vector<int> permutation;
        double cost = INFINITY;
    };

    // Those that return bool say whether to go on.
    bool may_continue() {
        const TabuOptions& options = shared_.options;
        if (done_ || (options.iterations > 0 && iterations_ >= options.iterations)) return false;
        if (iterations_ % (1 + 100'000 / (n_ * static_cast<std::int64_t>(n_))) != 0)
            return true;  // the clock costs 30 ns
        if (std::this_thread::get_id() == shared_.caller) {
            const double budget = static_cast<double>(options.iterations);
            shared_.incumbent.report(budget > 0 ? static_cast<double>(iterations_) / budget : 0.0);
        }
        // Streams before the one that reached the target go on, if they ever end: they may reach it too, and come
        // first.
        const std::int64_t reached = shared_.reached.load(std::memory_order_relaxed);
        if (reached < index_ || (options.iterations == 0 && reached != std::numeric_limits<std::int64_t>::max()))
            return false;
        if (shared_.stop()) completed_ = false;
        return completed_;
    }

    // The current permutation is the best since the last start.
    void save() {
        local_ = {table_.permutation(), problem_.cost(table_.permutation().data())};
        if (!best_.permutation.empty() && !(local_.cost < best_.cost)) return;
        best_.permutation = local_.permutation;
        best_.cost = local_.cost;
        shared_.incumbent.offer(best_.cost, best_.permutation, index_);
        if (best_.cost > shared_.options.target) return;
        done_ = true;
        for (std::int64_t old = shared_.reached; index_ < old && !shared_.reached.compare_exchange_weak(old, index_);) {
        }
    }

    void move(int u, int v) {
        const std::vector<int>& p = table_.permutation();
        // Cubed, as in Taillard's own code: mostly short tenures, sometimes very long ones.
        const auto until = [&] {
            const double x = random_.uniform();
            return tick_ + 2 + static_cast<Real>(std::floor(x * x * x * kTenure * n_));
        };
        tabu_(u, p[u]) = until();
        tabu_(v, p[v]) = until();
        table_.swap(u, v);
        for (const int r : {u, v}) {
            for (int k = 0; k < n_; ++k) {
                expiry_(std::min(r, k), std::max(r, k)) = std::min(tabu_(r, p[k]), tabu_(k, p[r]));
            }
        }
    }

    // Robust tabu search until n * kTabuPatience swaps have brought nothing new. Leaves its best in local_.
    bool improve(const std::vector<int>& start) {
        const bool usable = table_.reset(start, shared_.stop);
        save();
        completed_ = completed_ && usable;
        if (!usable) return false;
        std::ranges::fill(tabu_.values, Real(0));
        std::ranges::fill(expiry_.values, Real(0));
        tick_ = 0;
        double cost = local_.cost, lowest = cost;
        bool unsaved = false, go_on = true;
        for (int since = 0; since < kTabuPatience * n_ && (go_on = may_continue()); ++since) {
            const auto swap = table_.best(expiry_.row(0), tick_, static_cast<Real>(lowest - cost) - table_.noise());
            if (unsaved && !(swap.delta < 0)) {  // a local optimum: saving it on the way down would be in vain
                save();
                cost = lowest = local_.cost;
                unsaved = false;
            }
            ++iterations_;
            if (!(swap.delta < std::numeric_limits<Real>::infinity())) break;
            move(swap.r, swap.s);
            tick_ += 1;
            cost += swap.delta;
            if (cost < lowest - table_.noise()) {
                lowest = cost;
                unsaved = true;
                since = 0;
            }
        }
        if (unsaved) save();
        return go_on && !done_;
    }

    // Takes local_ into the population unless it is there already or worse than all. True if it is the best.
    bool add() {
        const auto worse = [](const Member& x, const Member& y) { return x.cost < y.cost; };
        for (const Member& member : population_) {
            if (member.permutation == local_.permutation) return false;
        }
        const bool best = population_.empty() || local_.cost < std::ranges::min_element(population_, worse)->cost;
        if (population_.size() < size_) {
            population_.push_back(local_);
        } else if (const auto worst = std::ranges::max_element(population_, worse); local_.cost < worst->cost) {
            *worst = local_;
        }
        return best;
    }

    std::vector<int> first_start() {
        const std::vector<std::vector<int>>& initial = shared_.options.initial;
        if (index_ < static_cast<std::int64_t>(initial.size()) && is_feasible(problem_, initial[index_]))
            return initial[index_];
        std::vector<int> start;
        if (index_ == 0 && n_ <= kLargestStart) start = gilmore_lawler_start(problem_, random_, shared_.stop);
        return start.empty() ? random_feasible(problem_, random_) : start;
    }

    // Uniform crossover: what two parents agree on, then the choice of either while it is free, the rest at random.
    std::vector<int> child() {
        const int size = static_cast<int>(population_.size());
        if (size < 2) return random_feasible(problem_, random_);
        const int first = random_.below(size), other = (first + 1 + random_.below(size - 1)) % size;
        const std::vector<int>&a = population_[first].permutation, &b = population_[other].permutation;
        std::vector<int> permutation(n_, -1), rows;
        std::vector<char> used(n_, 0);
        const auto take = [&](int i, int j) {
            if (permutation[i] < 0 && !used[j]) permutation[i] = j, used[j] = 1;
        };
        for (int i = 0; i < n_; ++i) {
            if (a[i] == b[i])
                take(i, a[i]);
            else
                rows.push_back(i);
        }
        random_.shuffle(rows);
        for (const int i : rows) {
            const bool swapped = random_.below(2);
            take(i, swapped ? b[i] : a[i]);
            take(i, swapped ? a[i] : b[i]);
        }
        complete(problem_, permutation, random_);
        return permutation;
    }

    // Keeps the best of the population and moves all others away from where they are, further each time and then again.
    bool renew() {
        strength_ = strength_ < 1 ? strength_ + 0.25 : 0.25;
        const int count = static_cast<int>(strength_ * n_);
        std::ranges::sort(population_, {}, &Member::cost);
        const std::vector<Member> old = std::move(population_);
        population_ = {old.front()};
        for (std::size_t i = 1; i < size_; ++i) {
            const Member& parent = old[i % old.size()];
            if (!improve(perturbed(problem_, parent.permutation, std::max(3, count), random_))) return false;
            add();
        }
        return true;
    }

    void evolve() {
        if (!improve(first_start()) || n_ < 3) return;
        add();
        for (std::size_t i = 1; i < size_; ++i) {
            if (!improve(random_feasible(problem_, random_))) return;
            add();
        }
        for (int stale = 0;; ++stale) {
            if (stale > kStale) {
                if (!renew()) return;
                stale = 0;
            }
            if (!improve(child())) return;
            if (add()) stale = 0;
        }
    }

    Team& shared_;
    const Problem& problem_;
    const int n_;
    const std::size_t size_;  // of the population
    const std::int64_t index_;
    Random random_;
    SwapTable<Real> table_;
    Real tick_ = 0;                // swaps since the last start, exact in float32 as well
    Grid<Real, 2> tabu_;           // tabu(i, j): i may not return to j before this tick
    AlignedGrid<Real, 2> expiry_;  // expiry(r, s), r < s: the swap is tabu before this tick; laid out as the deltas
    Member local_;                 // the best since the last start
    std::vector<Member> population_;
    SearchResult best_;
    double strength_ = 0.0;  // of the next renewal: the share of the rows that it moves
    std::int64_t iterations_ = 0;
    bool completed_ = true, done_ = false;
};

template <class Real>
SearchResult run(Team& shared) {
    const TabuOptions& options = shared.options;
    const std::int64_t streams =
        options.iterations > 0 ? std::max<std::int64_t>(1, options.streams) : std::max(1, options.threads);
    std::vector<SearchResult> results(streams);
    const auto work = [&](std::int64_t index) { results[index] = Stream<Real>(shared, index).run(); };
    const auto idle = [&] { shared.stop(), shared.incumbent.report(1.0); };
    const bool all = for_each_stream(streams, options.threads, shared.stop, work, idle);
    // In the order of the streams, and not beyond the first that reached the target, so that timing cannot matter.
    SearchResult best = std::move(results[0]);
    best.completed = best.completed && (all || best.cost <= options.target);
    for (std::int64_t index = 1; index < streams && best.cost > options.target; ++index) {
        SearchResult& other = results[index];
        if (other.permutation.empty()) continue;
        const bool completed = best.completed && other.completed;
        if (other.cost < best.cost) best = std::move(other);
        best.completed = completed;
    }
    return best;
}

}  // namespace

SearchResult tabu(const Problem& problem, const TabuOptions& options, Stop& stop, const Progress& progress) {
    Team shared{.problem = problem, .options = options, .stop = stop, .incumbent = Incumbent(progress)};
    Random random(options.seed);
    if (random_feasible(problem, random).empty()) return shared.incumbent.result(true);
    SearchResult result = SwapTable<float>::exact(problem) ? run<float>(shared) : run<double>(shared);
    shared.incumbent.report(1.0);
    return result;
}

}  // namespace blindmatch
