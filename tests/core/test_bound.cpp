#include <doctest/doctest.h>

#include "base/threads.h"
#include "bound/bound_proof.h"
#include "bound/dual_ascent.h"
#include "problems.h"

using namespace blindmatch;

namespace {

constexpr Target kIntegers{.granularity = 1.0};

}

TEST_CASE("a target is what a bound must reach") {
    CHECK(Target{.tolerance = 0.01}.of(-200.0) == doctest::Approx(-202.0));
    CHECK(Target{.tolerance = 0.01, .noise = 5.0}.of(200.0) == doctest::Approx(195.0));
    const double integer = kIntegers.of(200.0);
    CHECK(integer > 199.0);
    CHECK(integer < 199.001);
}

TEST_CASE("duals of zero prove the bound by the smallest costs, of every pair") {
    // Two items: the pair costs 2 * 3 * 5 either way, and the linear term prefers the identity by 4.
    Problem problem;
    problem.n = 2;
    problem.factors = {{{{2, 2}, {0, 3, 3, 0}}, {{2, 2}, {0, 5, 5, 0}}}};
    problem.linear = {{2, 2}, {1, 3, 3, 1}};
    problem.constant = 7;
    Stage stage{.n = 2, .u = std::vector<float>(8), .v = std::vector<float>(8), .beta = {}, .forbidden = {0, 0, 0, 0}};
    ThreadPool pool(1);
    Stop stop;
    const std::optional<Proof> proof = prove(problem, stage, pool, stop);
    REQUIRE(proof);
    CHECK(proof->bound <= 39.0);
    CHECK(proof->bound == doctest::Approx(39.0));
    CHECK(proof->pair_bound[0] == doctest::Approx(39.0));
    CHECK(proof->pair_bound[1] <= 43.0);
    CHECK(stage.beta.size() == 2);
}

TEST_CASE("no bound of a sweep is above the optimum, of all permutations or through a pair") {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
        const Problem problem = grid_problem(7, seed);
        const Enumerated truth(problem);
        ThreadPool pool(2);
        Stop stop;
        Bounder bounder(problem, std::vector<std::uint8_t>(49, 0), nullptr, pool, stop);
        double before = -kInfinity;
        for (int round = 0; round < 3; ++round) {
            REQUIRE(bounder.sweep(stop));
            bounder.prove_and_fix(kIntegers.of(truth.optimum), 1.0, stop);
            CHECK(bounder.bound() >= before);
            CHECK(bounder.bound() <= truth.optimum);
            for (int pair = 0; pair < 49; ++pair) CHECK(bounder.pair_bound(pair / 7, pair % 7) <= truth.through[pair]);
            before = bounder.bound();
        }
        CHECK(before > 0.5 * truth.optimum);
    }
}

TEST_CASE("the dual ascent closes an easy problem, whatever the number of threads") {
    const Problem problem = grid_problem(6, 1);
    const double optimum = Enumerated(problem).optimum;
    for (const int threads : {1, 3}) {
        Stop stop;
        const BoundResult result = dual_ascent(problem, {.target = kIntegers, .threads = threads}, {}, stop);
        CHECK(result.status == BoundStatus::optimal);
        CHECK(result.cost == optimum);
        CHECK(result.bound > optimum - 1.0);
        CHECK(result.bound <= optimum);
        CHECK_FALSE(result.stages.empty());
    }
}
