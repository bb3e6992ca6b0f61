#include <algorithm>
#include <cmath>

#include "bound/dual_ascent.h"

namespace blindmatch {
namespace {

Duals scaled_duals(const ScaledProblem& problem, const Stage& stage) {
    const int n = problem.n;
    const GridView<const float, 3> u{stage.u.data(), {n, n, n}}, v{stage.v.data(), {n, n, n}};
    Duals duals(n);
    for (int k = 0; k < n; ++k) {
        for (int i = 0; i < n; ++i) {
            for (int j = 0; j < n; ++j) {
                duals.u(k, i, j) = static_cast<float>(u(k, i, j) * problem.scale);
                duals.v(k, i, j) = static_cast<float>(v(k, i, j) * problem.scale);
            }
        }
    }
    return duals;
}

}  // namespace

Bounder::Bounder(const Problem& problem, std::vector<std::uint8_t> forbidden, const Stage* start, ThreadPool& pool,
                 Stop& stop)
    : problem_(problem),
      pool_(pool),
      scaled_(problem),
      sweeps_(scaled_, std::move(forbidden), pool),
      bound_(-kInfinity),
      fixed_bound_(kInfinity) {
    // Duals of a parent whose costs are far larger may be out of range here: then they are worth nothing.
    const bool started = start && sweeps_.start_from(scaled_duals(scaled_, *start));
    if (!started && scaled_.factor_count == 1) sweeps_.start_by_sorting(stop);
    sweeps_.close();
}

bool Bounder::sweep(Stop& stop, bool redistribute) {
    const bool whole = sweeps_.sweep(stop, redistribute);
    if (whole) sweeps_.close();
    return whole;
}

bool Bounder::relax(int iterations, const std::vector<int>& permutation, Stop& stop) {
    if (!relaxation_) {
        int agree = 0;
        for (int i = 0; i < problem_.n; ++i) agree += sweeps_.leader_assignment()[i] == permutation[i];
        relaxation_ = std::make_unique<RltLp>(scaled_, sweeps_.forbidden(), pool_);
        // The more the relaxation agrees with the permutation, the likelier the permutation is the relaxation's
        // optimum.
        relaxation_->start(sweeps_.duals(), permutation, 0.9 * agree / problem_.n);
    } else if (relaxation_outdated_) {
        auto smaller = std::make_unique<RltLp>(scaled_, sweeps_.forbidden(), pool_);
        smaller->start(*relaxation_);
        relaxation_ = std::move(smaller);
    }
    relaxation_outdated_ = false;
    if (!relaxation_->iterate(iterations, stop)) return false;
    const bool usable = sweeps_.start_from(relaxation_->duals());
    // Duals out of range: where pairs were fixed, the program may have no solution, and its duals no limit. The next
    // call starts again from what the sweeps have.
    if (!usable) relaxation_.reset();
    return sweep(stop, !usable);
}

int Bounder::prove_and_fix(double target, double share, Stop& stop) {
    const auto begin = Stop::Clock::now();
    const int n = problem_.n;
    Stage stage = sweeps_.stage(static_cast<float>(1.0 / scaled_.scale));
    std::optional<Proof> proven = prove(problem_, stage, pool_, stop);
    if (!proven) return 0;
    Proof& proof = *proven;
    std::vector<std::size_t> impossible;
    for (std::size_t pair = 0; pair < proof.pair_bound.size(); ++pair) {
        if (!stage.forbidden[pair] && proof.pair_bound[pair] >= target) impossible.push_back(pair);
        proof.pair_bound[pair] = std::min(proof.pair_bound[pair], fixed_bound_);
    }
    proof.bound = std::min(proof.bound, fixed_bound_);
    const bool fixes = proof.bound < target && !impossible.empty() && impossible.size() >= share * allowed_count();
    const bool better = proof.bound > bound_;
    if (better || fixes) {
        // A stage that forbade nothing is not needed any more once a later one is better.
        if (better && !stages_.empty() && !stages_.back().fixes) stages_.pop_back();
        stages_.push_back({std::move(stage), proof.pair_bound, fixes});
        bound_ = std::max(bound_, proof.bound);
    }
    if (fixes) {
        for (std::size_t pair : impossible) {
            fixed_bound_ = std::min(fixed_bound_, proof.pair_bound[pair]);
            sweeps_.forbid(static_cast<int>(pair / n), static_cast<int>(pair % n));
        }
        relaxation_outdated_ = true;
        sweeps_.close();
    }
    prove_seconds_ = std::chrono::duration<double>(Stop::Clock::now() - begin).count();
    return fixes ? static_cast<int>(impossible.size()) : 0;
}

double Bounder::pair_bound(int i, int j) const {
    double most = -kInfinity;
    for (const ProvenStage& s : stages_) most = std::max(most, s.pair_bound[problem_.linear.shape.place(i, j)]);
    return most;
}

int Bounder::allowed_count() const {
    return static_cast<int>(std::count(sweeps_.forbidden().begin(), sweeps_.forbidden().end(), 0));
}

double Bounder::proof_size() const {
    double pairs = 0.0;
    for (const ProvenStage& s : stages_) pairs += static_cast<double>(std::ranges::count(s.stage.forbidden, 0));
    return pairs / (static_cast<double>(problem_.n) * problem_.n);
}

int Bounder::fixable_count(double target) const {
    const double gap = target * scaled_.scale - sweeps_.bound();
    int count = 0;
    for (std::size_t pair = 0; pair < sweeps_.forbidden().size(); ++pair) {
        count += !sweeps_.forbidden()[pair] && sweeps_.reduced_leader()[pair] >= gap;
    }
    return count;
}

std::vector<Stage> Bounder::take_stages() {
    std::vector<Stage> stages;
    for (ProvenStage& s : stages_) stages.push_back(std::move(s.stage));
    stages_.clear();
    return stages;
}

}  // namespace blindmatch
