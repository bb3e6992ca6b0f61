// The solver `dual-ascent`: the level-1 RLT bound by sweeps and by the first-order method, with fixing, no branching.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bound/rlt_lp.h"
#include "bound/sweeps.h"

namespace blindmatch {

enum class BoundStatus { optimal, time_limit, interrupted, stalled };

struct DualAscentOptions {
    Target target;                                    // what counts as closed
    std::size_t memory_limit = std::size_t{4} << 30;  // bytes that the first-order method may use; else sweeps alone
    std::uint64_t seed = 0;
    int threads = 1;
    bool use_relaxation = true;
    const Stage* start = nullptr;  // duals to start from
};

struct BoundProgress {
    double cost, bound;
    std::int64_t iteration;  // proofs of the ascent, or nodes of the tree
    // What somebody will have to check: the stages, 1 for one that covers all pairs, and in a tree the nodes beyond the
    // root; 0 if the proof was dropped.
    double proof_size;
    std::int64_t nodes = 0, open = 0;  // of the tree; none at its root
};
using BoundReport = std::function<void(const BoundProgress&)>;

struct BoundResult {
    std::vector<int> permutation;
    double cost = 0.0;
    double bound = 0.0;  // proven by `stages`
    BoundStatus status = BoundStatus::stalled;
    std::vector<Stage> stages;
    std::vector<double> pair_bound;  // n x n, proven by `stages`: no permutation through the pair costs less
};

// `initial` is the first incumbent; empty: a few local searches find one. `report` is called from the calling thread.
// The result does not depend on the number of threads unless `stop` cut it short.
[[nodiscard]] BoundResult dual_ascent(const Problem& problem, const DualAscentOptions& options,
                                      std::vector<int> initial, Stop& stop, const BoundReport& report = {});

// What the root and the nodes of the tree share: sweeps, the relaxation, proofs, and the fixing of impossible pairs.
//
// Bounds one problem. The proven bound is the smaller of the last proof and of the proofs by which pairs were
// forbidden.
class Bounder {
 public:
    // `start` is in the problem's own units; null: from scratch.
    Bounder(const Problem& problem, std::vector<std::uint8_t> forbidden, const Stage* start, ThreadPool& pool,
            Stop& stop);

    // One sweep and the leader's assignment problem; false if `stop` cut it short.
    [[nodiscard]] bool sweep(Stop& stop, bool redistribute = true);
    // `iterations` of the first-order method, then one sweep that makes its duals feasible; false as above.
    [[nodiscard]] bool relax(int iterations, const std::vector<int>& permutation, Stop& stop);
    std::size_t relaxation_bytes() const { return RltLp::bytes(problem_.n, sweeps_.forbidden()); }

    // Proves the current duals. Forbids every pair that cannot be in a permutation that costs less than `target`,
    // provided that they are at least `share` of the allowed ones (each stage makes the certificate longer). Returns
    // the number forbidden. Raises the proven bound if it can; does nothing if `stop` leaves no time.
    int prove_and_fix(double target, double share, Stop& stop);

    double bound() const { return bound_; }  // proven
    double hint() const { return sweeps_.bound() / scaled_.scale; }
    int allowed_count() const;
    int fixable_count(double target) const;  // by the hints: what a proof now would probably forbid
    double pair_bound(int i, int j) const;   // the largest that the stages prove
    const Sweeps& sweeps() const { return sweeps_; }
    void start_assignments(std::vector<std::uint16_t> assignments) {
        sweeps_.start_assignments(std::move(assignments));
    }
    double prove_seconds() const { return prove_seconds_; }
    double proof_size() const;  // of the stages; 1 for one in which all pairs are allowed
    // What proves bound() and pair_bound(): the stages that forbade pairs, and perhaps a last one.
    std::vector<Stage> take_stages();

 private:
    const Problem& problem_;
    ThreadPool& pool_;
    ScaledProblem scaled_;
    Sweeps sweeps_;
    std::unique_ptr<RltLp> relaxation_;
    bool relaxation_outdated_ = false;
    struct ProvenStage {
        Stage stage;
        std::vector<double> pair_bound;
        bool fixes;
    };
    std::vector<ProvenStage> stages_;
    double bound_;
    double fixed_bound_;  // no permutation through a pair forbidden here costs less
    double prove_seconds_ = 0.0;
};

}  // namespace blindmatch
