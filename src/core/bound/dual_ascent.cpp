#include "bound/dual_ascent.h"

#include <algorithm>
#include <cmath>

#include "search/search.h"

namespace blindmatch {
namespace {

constexpr double kWorthAStage = 0.1;        // share of the allowed pairs that fixing must forbid, during the sweeps
constexpr double kWorthALaterStage = 0.03;  // and where progress is slow: each stage is one more to be checked
constexpr double kWorthALastStage = 0.005;  // and where there is none
constexpr double kWorthASweep = 0.04;       // share of the gap that a sweep must close, or the relaxation takes over
constexpr double kEasy = 0.4;               // share of the gap that the first sweep closes where all goes well
constexpr int kWorthThreads = 24;           // rows; below, waking a thread takes longer than its work
constexpr int kMostSweeps = 400;
constexpr int kProveEvery = 5;  // sweeps
constexpr int kRepairSweeps = 2;
constexpr double kStalled = 2e-5;  // share of the gap that a round of the relaxation must close
constexpr int kPatience = 6;       // rounds below that before giving up
constexpr int kDescents = 8;       // descents with kicks, and tabu searches, on hard problems
constexpr int kSearches = 4;
constexpr double kSearching = 0.5;  // share of the time left that they may take together
constexpr double kMostKicks = 4e8;  // of each descent, times n^3: about a quarter of a second
constexpr double kMostSwaps = 3e8;  // that each tabu search may look at: about a third of a second

class Ascent {
 public:
    Ascent(const Problem& problem, const DualAscentOptions& options, std::vector<int> initial, Stop& stop,
           const BoundReport& report)
        : problem_(problem),
          options_(options),
          stop_(stop),
          report_(report),
          pool_(problem.n < kWorthThreads ? 1 : options.threads),
          target_(options.target),
          bounder_(problem, all_forbidden(problem), options.start, pool_, stop) {
        if (initial.empty()) {
            TwoOptOptions search;
            search.seed = options.seed;
            search.restarts = 20;
            initial = two_opt(problem, search, stop).permutation;
        }
        offer(initial);
    }

    BoundResult run() {
        if (problem_.n > 0 && !result_.permutation.empty()) {
            prove(kWorthAStage);
            if (!closed()) run_sweeps();
            if (!closed() && !cut_short() && !searched_) search();
            if (!closed() && !cut_short() && options_.use_relaxation) run_relaxation();
        }
        result_.bound = std::min(bounder_.bound(), result_.cost);
        for (int i = 0; i < problem_.n; ++i) {
            for (int j = 0; j < problem_.n; ++j) result_.pair_bound.push_back(bounder_.pair_bound(i, j));
        }
        result_.stages = bounder_.take_stages();
        result_.status = closed()              ? BoundStatus::optimal
                         : stop_.interrupted() ? BoundStatus::interrupted
                         : cut_short_          ? BoundStatus::time_limit
                                               : BoundStatus::stalled;
        return std::move(result_);
    }

 private:
    static std::vector<std::uint8_t> all_forbidden(const Problem& problem) {
        if (!problem.forbidden.empty()) return problem.forbidden;
        return std::vector<std::uint8_t>(problem.linear.values.size(), 0);
    }

    double target() const { return target_.of(result_.cost); }
    bool closed() const { return bounder_.bound() >= target(); }
    bool cut_short() { return cut_short_ = cut_short_ || stop_(); }

    void offer(const std::vector<int>& permutation) {
        if (!is_feasible(problem_, permutation)) return;
        const double cost = problem_.cost(permutation.data());
        if (!result_.permutation.empty() && cost >= result_.cost) return;
        result_.permutation = permutation;
        result_.cost = cost;
    }

    // The leader's assignment, improved by swaps. Each assignment is tried once.
    void try_leader_assignment() {
        const std::vector<int>& assignment = bounder_.sweeps().leader_assignment();
        if (assignment == last_tried_) return;
        last_tried_ = assignment;
        if (is_feasible(problem_, assignment)) offer(two_opt_from(problem_, assignment, stop_).permutation);
    }

    // What the sweeps do not close is hard for the first, short search as well, and every later phase gains by a good
    // match. The number of steps is fixed, so that the result depends on the seed alone, unless time is short: the
    // bounds need some too.
    void search() {
        searched_ = true;
        const double n = problem_.n;
        Stop brief(kSearching * stop_.remaining(), [this] { return stop_(); });
        TwoOptOptions kicked;
        kicked.seed = options_.seed;
        kicked.threads = options_.threads;
        kicked.restarts = kDescents;
        kicked.kicks = static_cast<int>(std::min(4 * n, kMostKicks / (n * n * n)));
        offer(two_opt(problem_, kicked, brief).permutation);
        TabuOptions options;
        options.seed = options_.seed;
        options.streams = kSearches;
        options.threads = options_.threads;
        options.iterations = static_cast<std::int64_t>(std::min(4 * n * n * n, kMostSwaps / (n * n / 2))) + 1;
        options.initial = {result_.permutation};
        offer(tabu(problem_, options, brief).permutation);
    }

    int prove(double share) {
        const int fixed = bounder_.prove_and_fix(target(), share, stop_);
        if (report_) report_({result_.cost, bounder_.bound(), ++proofs_, bounder_.proof_size()});
        return fixed;
    }

    // The sweeps and the relaxation end early enough for one last proof.
    double seconds_to_work() const { return stop_.remaining() - 1.5 * bounder_.prove_seconds(); }

    void run_sweeps() {
        double gap_before = target() - bounder_.hint();
        for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
            Stop early(seconds_to_work(), [this] { return stop_(); });
            const bool whole = bounder_.sweep(early);
            if (stop_.interrupted()) return;
            if (whole) try_leader_assignment();
            // The first sweep tells hard problems: it closes a third of their gap or less. Who has little time for one
            // has more from a better match than from more sweeps.
            if (whole && sweep == 0 && target() - bounder_.hint() > (1.0 - kEasy) * gap_before) search();
            const double gap = target() - bounder_.hint();
            const bool fixes = bounder_.fixable_count(target()) >= kWorthAStage * bounder_.allowed_count();
            const bool slow = gap_before - gap < kWorthASweep * gap_before;
            const bool overdue = ++since_proof_ >= kProveEvery;
            int fixed = 0;
            if (!whole || fixes || slow || gap <= 0.0 || overdue) {
                fixed = prove(slow ? kWorthALaterStage : kWorthAStage);
                since_proof_ = 0;
            }
            if (!whole) cut_short_ = true;
            if (closed() || cut_short_ || (slow && fixed == 0 && sweep > 3)) return;
            gap_before = target() - bounder_.hint();
        }
    }

    void run_relaxation() {
        if (bounder_.relaxation_bytes() > options_.memory_limit) return;
        int idle = 0;
        for (int round = 0; idle < kPatience; ++round) {
            const double before = bounder_.bound();
            Stop early(seconds_to_work(), [this] { return stop_(); });
            bool whole = bounder_.relax(round < 2 ? 150 : 300, result_.permutation, early);
            for (int sweep = 0; whole && sweep < kRepairSweeps; ++sweep) whole = bounder_.sweep(early);
            if (stop_.interrupted()) return;
            if (whole) try_leader_assignment();
            const int fixed = prove(idle > 0 ? kWorthALastStage : kWorthALaterStage);
            if (!whole) cut_short_ = true;
            if (closed() || cut_short_) return;
            idle = fixed > 0 || bounder_.bound() - before > kStalled * (target() - before) ? 0 : idle + 1;
        }
    }

    const Problem& problem_;
    const DualAscentOptions& options_;
    Stop& stop_;
    const BoundReport& report_;
    ThreadPool pool_;
    Target target_;
    Bounder bounder_;
    BoundResult result_;
    std::vector<int> last_tried_;
    bool cut_short_ = false, searched_ = false;
    int since_proof_ = 0;
    std::int64_t proofs_ = 0;
};

}  // namespace

BoundResult dual_ascent(const Problem& problem, const DualAscentOptions& options, std::vector<int> initial, Stop& stop,
                        const BoundReport& report) {
    return Ascent(problem, options, std::move(initial), stop, report).run();
}

}  // namespace blindmatch
