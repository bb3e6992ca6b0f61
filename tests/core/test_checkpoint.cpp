#include <doctest/doctest.h>

#include <string>

#include "problems.h"
#include "tree/branch_and_bound.h"

using namespace blindmatch;

TEST_CASE("an unfinished root is taken up, with a start match or without one") {
    const Problem problem = grid_problem(8, 1);
    BranchAndBoundOptions options;
    options.root.target = {.granularity = 1.0};
    options.root.memory_limit = 0;
    TreeState state;  // as a run leaves it that was stopped before its first bound
    state.permutation = {7, 6, 5, 4, 3, 2, 1, 0};
    state.proof.resize(1);
    const double optimum = Enumerated(problem).optimum;
    for (const std::vector<int>& start : {std::vector<int>{}, std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}}) {
        const std::string saved = encode_state(state, fingerprint(problem, options.root.target));
        Stop stop;
        const TreeResult tree = branch_and_bound(problem, options, start, stop, {}, saved);
        CHECK(tree.status == BoundStatus::optimal);
        CHECK(tree.cost == optimum);
    }
}
