#include <doctest/doctest.h>

#include <set>
#include <thread>

#include "problems.h"
#include "search/search.h"
#include "subsets/subsets.h"

using namespace blindmatch;

namespace {

// Only pairs (i, j) with (j - i) mod n below `width` are allowed.
Problem banded(int n, int width) {
    Problem problem = grid_problem(n, 3);
    problem.forbidden.assign(n * n, 1);
    for (int i = 0; i < n; ++i) {
        for (int d = 0; d < width; ++d) problem.forbidden[i * n + (i + d) % n] = 0;
    }
    return problem;
}

std::vector<double> random_costs(int n, std::uint64_t seed) {
    Random random(seed);
    std::vector<double> costs(n * n);
    for (double& cost : costs) cost = random.uniform();
    return costs;
}

// All subsets of three items, cheapest first.
std::vector<Subset> triples(const SubsetProblem& problem) {
    std::vector<Subset> all;
    for (int i = 0; i < problem.n; ++i) {
        for (int j = i + 1; j < problem.n; ++j) {
            for (int k = j + 1; k < problem.n; ++k) all.push_back({i, j, k});
        }
    }
    std::ranges::sort(all, {}, [&](const Subset& subset) { return problem.cost(subset); });
    return all;
}

}  // namespace

TEST_CASE("enumeration finds the optimum, and the same permutation with any number of threads") {
    const Problem problem = grid_problem(7, 4);
    Stop stop;
    const SearchResult one = enumerate(problem, 0, 1, stop), three = enumerate(problem, 5, 3, stop);
    CHECK(one.completed);
    CHECK(one.cost == Enumerated(problem).optimum);
    CHECK(one.permutation == three.permutation);
}

TEST_CASE("searches reach the optimum of a small problem and state the cost of what they return") {
    const Problem problem = grid_problem(8, 1);
    const double optimum = Enumerated(problem).optimum;
    Stop stop;
    const SearchResult local = two_opt(problem, {.seed = 1, .initial = {}}, stop);
    const SearchResult wide = tabu(problem, {.seed = 1, .iterations = 5000, .initial = {}}, stop);
    for (const SearchResult& result : {local, wide}) {
        CHECK(result.completed);
        CHECK(result.cost == optimum);
        CHECK(problem.cost(result.permutation.data()) == result.cost);
    }
}

TEST_CASE("a search does not depend on the number of threads") {
    const Problem problem = grid_problem(12, 6);
    Stop stop;
    std::set<std::vector<int>> local, wide;
    for (const int threads : {1, 2, 4}) {
        const TabuOptions options{.seed = 3, .streams = 4, .iterations = 200, .threads = threads, .initial = {}};
        local.insert(two_opt(problem, {.seed = 3, .restarts = 6, .threads = threads, .initial = {}}, stop).permutation);
        wide.insert(tabu(problem, options, stop).permutation);
    }
    CHECK(local.size() == 1);
    CHECK(wide.size() == 1);
}

TEST_CASE("a start avoids forbidden pairs and keeps what is given, or says that none exists") {
    const Problem problem = banded(9, 2);
    Random random(0);
    for (int round = 0; round < 20; ++round) CHECK(is_feasible(problem, random_feasible(problem, random)));
    std::vector<int> some(9, -1);
    CHECK(complete(problem, some, random));
    CHECK(is_feasible(problem, some));
    Problem impossible = banded(4, 2);
    for (int j = 0; j < 4; ++j) impossible.forbidden[j] = 1;  // the first row has no partner
    CHECK(random_feasible(impossible, random).empty());
}

TEST_CASE("a stopped search returns a permutation all the same") {
    const Problem problem = grid_problem(30, 0);
    Stop stop;
    stop.request();
    const SearchResult result = two_opt(problem, {.initial = {}}, stop);
    CHECK_FALSE(result.completed);
    CHECK(is_feasible(problem, result.permutation));
}

TEST_CASE("a stop is asked by its own thread, by its clock, or by hand") {
    Stop never;
    CHECK_FALSE(never());
    Stop late(0.0);
    CHECK(late());
    CHECK_FALSE(late.interrupted());
    Stop polled(1e9, [] { return true; });
    while (!polled()) std::this_thread::yield();
    CHECK(polled.interrupted());
    Stop asked(1e9);
    std::thread([&] { asked.request(); }).join();
    CHECK(asked());
}

TEST_CASE("the exact subset search finds the cheapest subsets, in order") {
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        const std::vector<double> costs = random_costs(10, seed);
        const SubsetProblem problem(costs.data(), 10, 3);
        const std::vector<Subset> all = triples(problem);
        Stop stop;
        const SubsetResult found = exact_subsets(problem, 5, {}, stop);
        CHECK(found.completed);
        CHECK(found.subsets == std::vector<Subset>(all.begin(), all.begin() + 5));
        CHECK(found.lower_bound <= problem.cost(all[0]));
        CHECK(found.lower_bound == doctest::Approx(problem.cost(all[0])));
    }
}

TEST_CASE("the subset search proves nothing, and does not depend on the number of threads") {
    const std::vector<double> costs = random_costs(12, 9);
    const SubsetProblem problem(costs.data(), 12, 3);
    Stop stop;
    const SubsetResult one = search_subsets(problem, {.k = 4, .threads = 1}, stop);
    const SubsetResult four = search_subsets(problem, {.k = 4, .threads = 4}, stop);
    CHECK(one.subsets == four.subsets);
    CHECK(one.subsets[0] == triples(problem)[0]);
    CHECK(one.lower_bound == -INFINITY);
}

TEST_CASE("the items left out cost the same, up to the cost of all items") {
    const std::vector<double> costs = random_costs(7, 2);
    const SubsetProblem problem(costs.data(), 7, 3);
    CHECK(problem.complement().size == 4);
    CHECK(problem.complement().cost({0, 2, 4, 6}) + problem.total() == doctest::Approx(problem.cost({1, 3, 5})));
}
