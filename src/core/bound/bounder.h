// What the root and the nodes of the tree share: sweeps, the relaxation, proofs, and the fixing of impossible pairs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bound/rlt_lp.h"
#include "bound/sweeps.h"

namespace blindmatch {

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
