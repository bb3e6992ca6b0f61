#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "problems.h"
#include "tree/branch_and_bound.h"
#include "tree/tree_state.h"

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

TEST_CASE("the problem of a node costs what the whole problem costs with its pairs") {
    const Problem problem = grid_problem(6, 5);
    auto root = std::make_shared<BranchedNode>();
    root->rows = root->columns = {0, 1, 2, 3, 4, 5};
    root->forbidden.assign(36, 0);
    root->duals = {
        .n = 6, .u = std::vector<float>(216), .v = std::vector<float>(216), .beta = {}, .forbidden = root->forbidden};
    const BranchedNode child = make_child({.bound = 0.0, .id = 0, .row = 1, .column = 4, .parent = root});
    CHECK(child.rows == std::vector<int>{0, 2, 3, 4, 5});
    CHECK(child.columns == std::vector<int>{0, 1, 2, 3, 5});
    const Problem rest = reduced_problem(problem, child);
    CHECK(rest.n == 5);
    std::vector<int> small{0, 1, 2, 3, 4};
    do {
        std::vector<int> whole(6, 4);
        for (int i = 0; i < 5; ++i) whole[child.rows[i]] = child.columns[small[i]];
        CHECK(rest.cost(small.data()) == problem.cost(whole.data()));
    } while (std::ranges::next_permutation(small).found);
}

TEST_CASE("of children that a symmetry exchanges one is enough") {
    const Problem problem = grid_problem(9, 0);  // nine places on a square: eight symmetries of the columns
    const std::vector<Symmetry> symmetries = find_symmetries(problem, 100);
    const Branching branching(problem, symmetries);
    BranchedNode root;
    root.rows = root.columns = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    CHECK(branching.find_skipped(root, true).size() == 6);  // a corner, the middle of a side and the centre stay
    root.fixed = {{0, 0}};
    for (const SkippedChild& child : branching.find_skipped(root, true)) {
        const Symmetry& symmetry = symmetries[child.symmetry];
        CHECK(symmetry.image[0] == 0);
        CHECK(symmetry.image[child.sibling] == child.skipped);
    }
}
