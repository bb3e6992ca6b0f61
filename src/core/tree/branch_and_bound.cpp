#include "tree/branch_and_bound.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>

namespace blindmatch {
namespace {

// Nodes that may be worked on at the same time. A constant: which nodes are taken, and what is known by then, must not
// depend on the number of threads.
constexpr std::size_t kTurns = 32;
constexpr int kMostSymmetries = 128;  // of each side
constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

// A node that was taken off the heap. The turns are committed in the order in which they were taken.
struct Turn {
    OpenNode open;
    double cost;  // of the incumbent when it was taken
    bool begun;   // by some thread
    std::unique_ptr<Expansion> result;
};

// A branched node whose memory is counted. Its last child to go frees it, on whatever thread, and maybe after the tree.
struct CountedNode {
    CountedNode(BranchedNode branched, std::shared_ptr<std::atomic<std::size_t>> sum)
        : node(std::move(branched)),
          bytes(bytes_of(node.duals) + node.assignments.size() * sizeof(std::uint16_t)),
          total(std::move(sum)) {
        *total += bytes;
    }
    ~CountedNode() { *total -= bytes; }
    CountedNode(const CountedNode&) = delete;
    CountedNode& operator=(const CountedNode&) = delete;

    const BranchedNode node;
    const std::size_t bytes;
    const std::shared_ptr<std::atomic<std::size_t>> total;
};

class Tree {
 public:
    Tree(const Problem& problem, const BranchAndBoundOptions& options, Stop& stop, const BoundReport& report,
         const KeepState& keep)
        : problem_(problem),
          options_(options),
          stop_(stop),
          report_(report),
          keep_(keep),
          target_(options.root.target),
          branching_(problem, result_.symmetries) {}

    TreeResult run(std::vector<int> initial, std::optional<std::string_view> saved) {
        result_.symmetries = symmetries_for(problem_, options_);
        if (!saved || !resume(*saved, initial)) grow_root(std::move(initial));
        if (!result_.open.empty()) work_on_all_threads();
        result_.bound = global_bound();
        const bool closed = result_.bound >= target();
        result_.status = closed                  ? BoundStatus::optimal
                         : stop_.interrupted()   ? BoundStatus::interrupted
                         : stop_() || cut_short_ ? BoundStatus::time_limit
                                                 : BoundStatus::stalled;
        keep_state();
        return std::move(result_);
    }

    TreeState grow(TreeState state) {
        take_up(std::move(state));
        if (!result_.open.empty()) work_on_all_threads();
        return std::move(result_);
    }

 private:
    double target() const { return target_.of(result_.cost); }

    // Goes on from a checkpoint. False if its root is unfinished: then its duals and its permutation are where the root
    // starts.
    bool resume(std::string_view saved, std::vector<int>& initial) {
        TreeState state =
            decode_state(saved, "the checkpoint", problem_, result_.symmetries, fingerprint(problem_, target_));
        if (!state.root_done) {
            const bool better =
                initial.empty() || problem_.cost(state.permutation.data()) < problem_.cost(initial.data());
            if (better) initial = std::move(state.permutation);
            if (!state.proof.empty() && !state.proof[0].stages.empty()) start_ = state.proof[0].stages.back();
            return false;
        }
        take_up(std::move(state));
        return true;
    }

    void take_up(TreeState state) {
        static_cast<TreeState&>(result_) = std::move(state);
        result_.cost = problem_.cost(result_.permutation.data());
        for (OpenNode& node : std::exchange(result_.open, {})) push(std::move(node));
    }

    // Called with the lock held (or when no thread works).
    void keep_state() {
        if (!std::isfinite(options_.checkpoint_interval) || result_.permutation.empty()) return;
        std::string bytes;
        try {
            TreeState state = result_;
            for (const Turn& turn : turns_) state.open.push_back(turn.open);
            bytes = encode_state(state, fingerprint(problem_, target_));
        } catch (const std::bad_alloc&) {  // it costs the checkpoint, not the run
        }
        const double pause = keep_(bytes);
        next_checkpoint_ = stop_.elapsed() + pause;
    }

    void grow_root(std::vector<int> initial) {
        DualAscentOptions options = options_.root;
        if (start_.n == problem_.n) options.start = &start_;
        BoundResult root = dual_ascent(problem_, options, std::move(initial), stop_, [this](const BoundProgress& p) {
            root_size_ = p.proof_size;
            if (report_) report_(p);
        });
        result_.permutation = std::move(root.permutation);
        result_.cost = root.cost;
        result_.nodes = 1;
        result_.root_bound = root.bound;
        cut_short_ = root.status == BoundStatus::time_limit;  // the root ends before the limit, to prove what it has
        BranchedNode node;
        if (!root.stages.empty()) node.duals = root.stages.back();  // else stopped before anything was proved
        result_.add_to_proof({.stages = std::move(root.stages)}, options_.proof_limit);
        if (root.status != BoundStatus::stalled || node.duals.n == 0) {
            result_.closed_bound = root.bound;
            return;
        }
        result_.root_done = true;
        node.rows.resize(problem_.n);
        std::iota(node.rows.begin(), node.rows.end(), 0);
        node.columns = node.rows;
        node.forbidden = node.duals.forbidden;
        branch(std::move(node), root.pair_bound, 0);
    }

    // Called with the lock held (or before the threads start).
    void branch(BranchedNode node, const std::vector<double>& pair_bound, int proof) {
        const int n = static_cast<int>(node.rows.size());
        const double goal = target();
        double bound = kInfinity;
        for (double b : pair_bound) bound = std::min(bound, b);
        const auto [line, is_row] = branching_.choose_line(node, pair_bound, bound, goal);
        const std::vector<SkippedChild> skipped = branching_.find_skipped(node, is_row);
        for (std::size_t pair = 0; pair < pair_bound.size(); ++pair) {
            if (pair_bound[pair] >= goal) {
                node.forbidden[pair] = 1;
                result_.closed_bound = std::min(result_.closed_bound, pair_bound[pair]);
            }
        }
        node.proof = proof;
        if (!result_.proof_dropped) {
            result_.proof[proof].line = is_row ? node.rows[line] : node.columns[line];
            result_.proof[proof].line_is_row = is_row;
            result_.proof[proof].skipped = skipped;
        }
        const auto counted = std::make_shared<CountedNode>(std::move(node), open_bytes_);
        const std::shared_ptr<const BranchedNode> parent(counted, &counted->node);
        for (int other = 0; other < n; ++other) {
            const int i = is_row ? line : other, j = is_row ? other : line;
            const double b = pair_bound[static_cast<std::size_t>(i) * n + j];
            const int original = is_row ? parent->columns[other] : parent->rows[other];
            const bool skip = std::any_of(skipped.begin(), skipped.end(),
                                          [original](const SkippedChild& child) { return child.skipped == original; });
            if (b < goal && !skip) push({b, result_.next_id++, i, j, parent});
        }
    }

    // Best bound first, so that the global bound rises; the newer node first among equals.
    static bool later(const OpenNode& x, const OpenNode& y) {
        if (x.bound != y.bound) return x.bound > y.bound;
        return x.id < y.id;
    }

    void push(OpenNode node) {
        result_.open.push_back(std::move(node));
        std::push_heap(result_.open.begin(), result_.open.end(), later);
    }

    // While the open nodes take too much memory: the newest first, which is depth first and opens few.
    OpenNode pop() {
        if (*open_bytes_ <= options_.open_limit) {
            std::pop_heap(result_.open.begin(), result_.open.end(), later);
        } else {
            const auto newest = std::max_element(result_.open.begin(), result_.open.end(),
                                                 [](const OpenNode& x, const OpenNode& y) { return x.id < y.id; });
            std::swap(*newest, result_.open.back());
            std::make_heap(result_.open.begin(), result_.open.end() - 1, later);
        }
        OpenNode node = std::move(result_.open.back());
        result_.open.pop_back();
        return node;
    }

    double global_bound() const {
        double bound = result_.closed_bound;
        for (const OpenNode& node : result_.open) bound = std::min(bound, node.bound);
        for (const Turn& turn : turns_) bound = std::min(bound, turn.open.bound);
        return std::min(std::max(result_.root_bound, bound), result_.cost);
    }

    void work_on_all_threads() {
        const int threads = std::clamp(options_.root.threads, 1, static_cast<int>(kTurns));
        next_checkpoint_ = stop_.elapsed() + options_.checkpoint_interval;
        ahead_ = 2 * static_cast<std::size_t>(threads);
        ThreadPool pool(threads);
        pool.run(pool.size(), [this](int, int worker) { guarded(worker); });
        for (Turn& turn : turns_) {  // a stop came: what is done counts, the rest stays open
            if (!result_.full && turn.result && turn.result->whole) {
                commit(turn);
                continue;
            }
            if (turn.result) take_permutation(*turn.result);
            push(std::move(turn.open));
        }
        turns_.clear();
    }

    // What a thread throws (it may run out of memory) stops the others and is thrown again when they have ended.
    void guarded(int worker) {
        try {
            work(worker);
        } catch (...) {
            const std::lock_guard lock(mutex_);
            stop_.request();
            changed_.notify_all();
            throw;
        }
    }

    void work(int worker) {
        ThreadPool alone(1);
        std::unique_lock lock(mutex_);
        for (;;) {
            advance();
            if (worker == 0) tell();
            if (worker == 0 && stop_.elapsed() >= next_checkpoint_) keep_state();
            if (stop_() || turns_.empty() || result_.full) {
                changed_.notify_all();
                return;
            }
            // Not too far ahead of the oldest: results that wait for their turn take memory.
            const auto end = turns_.begin() + static_cast<std::ptrdiff_t>(std::min(ahead_, turns_.size()));
            const auto next = std::find_if(turns_.begin(), end, [](const Turn& turn) { return !turn.begun; });
            if (next == end) {
                changed_.wait_for(lock, std::chrono::milliseconds(50));
                continue;
            }
            next->begun = true;
            Turn& turn = *next;  // a deque that changes at its ends only: the reference stays
            lock.unlock();
            auto result = std::make_unique<Expansion>(expand(problem_, target_, turn.open, turn.cost, alone, stop_));
            lock.lock();
            turn.result = std::move(result);
            changed_.notify_all();
        }
    }

    // With the lock held. Fills the turns from the heap, then commits the oldest, and again, until one is not done yet:
    // the order of all this is that of a single thread, however many there are and however long each node takes.
    void advance() {
        for (;;) {
            while (turns_.size() < kTurns && !result_.open.empty()) {
                OpenNode node = pop();
                if (node.bound >= target()) {  // a better permutation was found since
                    result_.closed_bound = std::min(result_.closed_bound, node.bound);
                } else {
                    turns_.push_back({std::move(node), result_.cost, false, nullptr});
                }
            }
            const bool enough = result_.nodes >= options_.node_limit.value_or(kNoLimit);
            result_.full = !turns_.empty() && (enough || result_.cost <= options_.cost_limit);
            if (turns_.empty() || result_.full || !turns_.front().result || !turns_.front().result->whole) return;
            const Turn turn = std::move(turns_.front());
            turns_.pop_front();
            commit(turn);
        }
    }

    void take_permutation(Expansion& result) {
        if (!(result.cost < result_.cost)) return;
        result_.cost = result.cost;
        result_.permutation = std::move(result.permutation);
    }

    void commit(const Turn& turn) {
        Expansion& result = *turn.result;
        ++result_.nodes;
        take_permutation(result);
        const auto& [row, column] = result.node.fixed.back();
        const int proof = static_cast<int>(result_.proof.size());
        result_.add_to_proof(
            {.parent = turn.open.parent->proof, .row = row, .column = column, .stages = std::move(result.stages)},
            options_.proof_limit);
        if (result.bound >= target() || result.pair_bound.empty()) {
            result_.closed_bound = std::min(result_.closed_bound, result.bound);
        } else {
            branch(std::move(result.node), result.pair_bound, proof);
        }
    }

    void tell() {
        const double now = stop_.elapsed();
        if (!report_ || now < next_report_) return;
        next_report_ = now + 0.1;
        const auto nodes = static_cast<double>(result_.proof.size());
        const double size = nodes > 0 ? nodes - 1 + root_size_ : 0.0;
        report_({result_.cost, global_bound(), result_.nodes, size, result_.nodes,
                 static_cast<std::int64_t>(result_.open.size() + turns_.size())});
    }

    const Problem& problem_;
    const BranchAndBoundOptions& options_;
    Stop& stop_;
    const BoundReport& report_;
    const KeepState& keep_;
    Target target_;
    std::mutex mutex_;
    std::condition_variable changed_;
    TreeResult result_;  // its open nodes are a heap
    Branching branching_;
    std::shared_ptr<std::atomic<std::size_t>> open_bytes_ = std::make_shared<std::atomic<std::size_t>>(0);
    std::deque<Turn> turns_;  // nodes that were taken off the heap, in that order
    Stage start_;             // duals of an unfinished root, from a checkpoint
    double next_checkpoint_ = kInfinity, next_report_ = 0.0;
    bool cut_short_ = false;
    double root_size_ = 1.0;  // of its proof
    std::size_t ahead_ = 0;
};

}  // namespace

std::vector<Symmetry> symmetries_for(const Problem& problem, const BranchAndBoundOptions& options) {
    return options.use_symmetry ? find_symmetries(problem, kMostSymmetries) : std::vector<Symmetry>{};
}

TreeResult branch_and_bound(const Problem& problem, const BranchAndBoundOptions& options, std::vector<int> initial,
                            Stop& stop, const BoundReport& report, std::optional<std::string_view> saved,
                            const KeepState& keep) {
    return Tree(problem, options, stop, report, keep).run(std::move(initial), saved);
}

TreeState grow(const Problem& problem, const BranchAndBoundOptions& options, TreeState state, Stop& stop) {
    return Tree(problem, options, stop, {}, {}).grow(std::move(state));
}

}  // namespace blindmatch
