#include <algorithm>
#include <numeric>

#include "lap/lap.h"
#include "search/search.h"
#include "search/swap_delta.h"

namespace blindmatch {

void Incumbent::offer(double cost, const std::vector<int>& permutation, std::int64_t stream) {
    const std::lock_guard lock(mutex_);
    const double best = cost_;
    if (!permutation_.empty() && (cost > best || (cost == best && stream >= stream_))) return;
    permutation_ = permutation;
    stream_ = stream;  // before the cost: see cost()
    cost_ = cost;
}

void Incumbent::report(double fraction) {
    if (!progress_ || (!(cost() < reported_) && fraction < reported_fraction_ + 0.01)) return;
    if (Stop::Clock::now() < next_report_) return;
    reported_fraction_ = fraction;
    next_report_ = Stop::Clock::now() + std::chrono::milliseconds(10);
    std::unique_lock lock(mutex_);
    const std::vector<int> permutation = permutation_;
    reported_ = cost_;
    lock.unlock();  // the callback may take long, and the helpers must not wait for it
    progress_(reported_, permutation);
}

SearchResult Incumbent::result(bool completed) const {
    const std::lock_guard lock(mutex_);
    return {permutation_, cost_, completed};
}

SearchResult search_streams(std::int64_t count, int threads, Stop& stop, Incumbent& incumbent,
                            const std::function<bool(std::int64_t)>& work) {
    const auto caller = std::this_thread::get_id();
    std::atomic<std::int64_t> done{0};
    std::atomic<bool> cut{false};
    const auto report = [&] { incumbent.report(static_cast<double>(done) / static_cast<double>(count)); };
    const auto counted = [&](std::int64_t index) {
        if (!work(index)) cut = true;
        ++done;
        if (std::this_thread::get_id() == caller) report();
    };
    const bool all = for_each_stream(count, threads, stop, counted, [&] { stop(), report(); });
    return incumbent.result(all && !cut);
}

bool is_feasible(const Problem& problem, const std::vector<int>& permutation) {
    if (static_cast<int>(permutation.size()) != problem.n) return false;
    std::vector<char> used(problem.n, 0);
    for (int i = 0; i < problem.n; ++i) {
        const int j = permutation[i];
        if (j < 0 || j >= problem.n || used[j] || !problem.allowed(i, j)) return false;
        used[j] = 1;
    }
    return true;
}

namespace {

// Breadth-first augmenting path from `row`, which has no column yet. False if there is none.
bool augment(const Problem& problem, std::vector<int>& column_of, std::vector<int>& row_of, int row,
             const std::vector<int>& columns) {
    const int n = problem.n;
    std::vector<int> reached_from(n, -1), queue{row};
    for (std::size_t head = 0; head < queue.size(); ++head) {
        const int i = queue[head];
        for (const int j : columns) {
            if (reached_from[j] >= 0 || !problem.allowed(i, j)) continue;
            reached_from[j] = i;
            if (row_of[j] >= 0) {
                queue.push_back(row_of[j]);
                continue;
            }
            for (int column = j; column >= 0;) {  // turn the path around
                const int owner = reached_from[column], previous = column_of[owner];
                column_of[owner] = column;
                row_of[column] = owner;
                column = previous;
            }
            return true;
        }
    }
    return false;
}

// Finds a column for every row that has none, by augmenting paths. False if there is no such matching.
bool match(const Problem& problem, std::vector<int>& permutation, Random& random) {
    std::vector<int> row_of(problem.n, -1), columns(problem.n), rows;
    for (int i = 0; i < problem.n; ++i) {
        if (permutation[i] >= 0)
            row_of[permutation[i]] = i;
        else
            rows.push_back(i);
    }
    std::iota(columns.begin(), columns.end(), 0);
    random.shuffle(rows);
    for (const int i : rows) {
        random.shuffle(columns);
        if (!augment(problem, permutation, row_of, i, columns)) return false;
    }
    return true;
}

}  // namespace

std::vector<int> random_feasible(const Problem& problem, Random& random) {
    std::vector<int> permutation(problem.n, -1);
    if (!complete(problem, permutation, random)) permutation.clear();
    return permutation;
}

bool complete(const Problem& problem, std::vector<int>& permutation, Random& random) {
    if (!problem.forbidden.empty()) return match(problem, permutation, random);
    std::vector<char> used(problem.n, 0);
    for (const int j : permutation) {
        if (j >= 0) used[j] = 1;
    }
    std::vector<int> free;
    for (int j = 0; j < problem.n; ++j) {
        if (!used[j]) free.push_back(j);
    }
    random.shuffle(free);
    for (int& j : permutation) {
        if (j < 0) j = free.back(), free.pop_back();
    }
    return true;
}

std::vector<int> perturbed(const Problem& problem, std::vector<int> permutation, int count, Random& random) {
    std::vector<int> rows(problem.n);
    std::iota(rows.begin(), rows.end(), 0);
    random.shuffle(rows);
    for (int i = 0; i < std::min(count, problem.n); ++i) permutation[rows[i]] = -1;
    complete(problem, permutation, random);
    return permutation;
}

std::vector<int> gilmore_lawler_start(const Problem& problem, Random& random, Stop& stop) {
    const int n = problem.n;
    std::vector<int> columns(n);  // in random order, so that the ties of the assignment favour nobody
    std::iota(columns.begin(), columns.end(), 0);
    random.shuffle(columns);
    Grid<double, 2> cost({n, n}), turned(cost);
    std::vector<double> row(n);
    for (int i = 0; i < n; ++i) {
        for (int c = 0; c < n; ++c) {
            cost(i, c) = problem.allowed(i, columns[c]) ? problem.linear(i, columns[c]) : INFINITY;
        }
    }
    const auto sorted_row = [&](const Grid<double, 2>& matrix, int i, auto order) {
        std::copy_n(matrix.row(i), n, row.begin());
        std::swap(row[i], row[n - 1]);  // the diagonal does not take part
        std::sort(row.begin(), row.end() - 1, order);
    };
    for (const Factor& factor : problem.factors) {
        for (int c = 0; c < n; ++c) {
            sorted_row(factor.target, columns[c], std::greater<>());
            for (int k = 0; k + 1 < n; ++k) turned(k, c) = row[k];
        }
        for (int i = 0; i < n; ++i) {
            if (i % 16 == 0 && stop()) return {};
            sorted_row(factor.source, i, std::less<>());
            for (int k = 0; k + 1 < n; ++k) {
                for (int c = 0; c < n; ++c) cost(i, c) += row[k] * turned(k, c);
            }
        }
    }
    Lap lap(problem.n);
    if (!lap.solve(cost.row(0), n)) return {};
    std::vector<int> permutation(n);
    for (int i = 0; i < n; ++i) permutation[i] = columns[lap.row_to_col()[i]];
    return permutation;
}

namespace {

template <class Real>
struct Descent {
    explicit Descent(const Problem& p) : problem(p), table(p) {}

    // Makes the best swap until none improves; false if the clock cut it short. First improvement ends as well as this,
    // or half a percent better on grids (sko49: 2.5 % above the best known against 3.1 %), but takes three times as
    // long: kicks use that time far better.
    bool run(const std::vector<int>& start, Stop& stop) {
        if (!table.reset(start, stop)) return false;
        const int interval = 1 + 100'000 / (table.n() * table.n() + 1);  // swaps between two looks at the clock
        const int patience = 32 * table.n();                             // most descents end after n swaps or so
        double cost = INFINITY;
        for (std::int64_t step = 1; step % interval != 0 || !stop(); ++step) {
            const auto swap = table.best();
            if (!(swap.delta < -table.noise())) return true;
            if (step % patience == 0) {  // the table gathers rounding errors: it must not go round in circles on them
                const double now = problem.cost(table.permutation().data());
                if (!(now < cost)) return true;
                cost = now;
            }
            table.swap(swap.r, swap.s);
        }
        return false;
    }

    const Problem& problem;
    SwapTable<Real> table;
};

// One restart: a local optimum, then `kicks` times the best of it and of a local optimum near it; a third of them in
// vain ends it. False if cut short.
template <class Real>
bool restart(const Problem& problem, const TwoOptOptions& options, std::int64_t index, Stop& stop,
             Incumbent& incumbent) {
    Descent<Real> descent(problem);
    Random random(options.seed, static_cast<std::uint64_t>(index));
    std::vector<int> start = random_feasible(problem, random);
    const bool given = index < static_cast<std::int64_t>(options.initial.size());
    if (given && is_feasible(problem, options.initial[index])) start = options.initial[index];
    std::vector<int> best = start;
    double best_cost = problem.cost(best.data());
    bool finished = true;
    int improved = 0;
    for (int kick = 0; kick <= options.kicks && 3 * (kick - improved) <= options.kicks && finished; ++kick) {
        finished = descent.run(start, stop);
        const double cost = problem.cost(descent.table.permutation().data());
        if (cost < best_cost) {
            best = descent.table.permutation();
            best_cost = cost;
            improved = kick;
        }
        if (problem.n < 3) break;
        start = perturbed(problem, best, 3 + random.below(problem.n / 2 + 1), random);
    }
    incumbent.offer(best_cost, best, index);
    return finished;
}

template <class Real>
SearchResult search(const Problem& problem, const TwoOptOptions& options, Stop& stop, const Progress& progress) {
    Incumbent incumbent(progress);
    const std::int64_t restarts =
        std::max({std::int64_t{1}, options.restarts, static_cast<std::int64_t>(options.initial.size())});
    return search_streams(restarts, options.threads, stop, incumbent,
                          [&](std::int64_t index) { return restart<Real>(problem, options, index, stop, incumbent); });
}

}  // namespace

SearchResult two_opt(const Problem& problem, const TwoOptOptions& options, Stop& stop, const Progress& progress) {
    Random random(options.seed);
    if (random_feasible(problem, random).empty()) return Incumbent(progress).result(true);
    const bool small = SwapTable<float>::exact(problem);
    return small ? search<float>(problem, options, stop, progress) : search<double>(problem, options, stop, progress);
}

SearchResult two_opt_from(const Problem& problem, const std::vector<int>& permutation, Stop& stop) {
    TwoOptOptions options;
    options.restarts = 1;
    options.initial = {permutation};
    Stop brief(std::min(stop.remaining(), 10.0), [&stop] { return stop(); });
    return two_opt(problem, options, brief);
}

}  // namespace blindmatch
