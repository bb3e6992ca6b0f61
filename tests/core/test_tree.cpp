#include <doctest/doctest.h>

#include <stdexcept>

#include "problems.h"
#include "tree/branch_and_bound.h"

using namespace blindmatch;

namespace {

TreeResult solved(const Problem& problem, int threads) {
    BranchAndBoundOptions options;
    options.root.target = {.granularity = 1.0};
    options.root.memory_limit = 0;  // sweeps alone: they leave something to branch on
    options.root.threads = threads;
    std::vector<int> identity(problem.n);
    std::iota(identity.begin(), identity.end(), 0);
    Stop stop;
    return branch_and_bound(problem, options, identity, stop);
}

}  // namespace

TEST_CASE("the tree finds the optimum, and parents come before their children") {
    int branched = 0;
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
        const Problem problem = grid_problem(8, seed);
        const TreeResult tree = solved(problem, 1);
        CHECK(tree.status == BoundStatus::optimal);
        CHECK(tree.cost == Enumerated(problem).optimum);
        CHECK(problem.cost(tree.permutation.data()) == tree.cost);
        REQUIRE(tree.proof.size() == static_cast<std::size_t>(tree.nodes));
        CHECK(tree.proof[0].parent == -1);
        for (int at = 1; at < static_cast<int>(tree.proof.size()); ++at) {
            const ProofNode &node = tree.proof[at], &parent = tree.proof[node.parent];
            CHECK(node.parent < at);
            CHECK((parent.line_is_row ? node.row : node.column) == parent.line);
        }
        branched += tree.proof.size() > 1;
    }
    CHECK(branched > 0);
}

TEST_CASE("the order of the nodes does not depend on the number of threads") {
    const Problem problem = grid_problem(10, 2);
    const TreeResult one = solved(problem, 1), four = solved(problem, 4);
    REQUIRE(one.nodes > 10);
    REQUIRE(one.proof.size() == four.proof.size());
    CHECK(one.permutation == four.permutation);
    for (std::size_t at = 0; at < one.proof.size(); ++at) {
        const ProofNode &a = one.proof[at], &b = four.proof[at];
        CHECK(a.parent == b.parent);
        CHECK(a.row == b.row);
        CHECK(a.column == b.column);
        REQUIRE(a.stages.size() == b.stages.size());
        for (std::size_t stage = 0; stage < a.stages.size(); ++stage) CHECK(a.stages[stage].u == b.stages[stage].u);
    }
}
