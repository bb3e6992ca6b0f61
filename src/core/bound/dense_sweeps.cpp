#include "bound/dense_sweeps.h"

#include "bound/leader_lap.h"
#include "bound/scaled_problem.h"
#include "bound/sweeps.h"

namespace blindmatch {

Stage dense_sweeps(const DenseCosts& costs, int count, double gain, ThreadPool& pool, Stop& stop) {
    const int n = costs.n;
    const std::size_t pairs = area(n, n);
    const ScaledProblem problem(n, costs.pairs, costs.linear);
    Sweeps sweeps(problem, {costs.forbidden, costs.forbidden + pairs}, pool);
    sweeps.close();
    const double start = sweeps.bound();
    double before = start;
    for (int round = 0; round < count; ++round) {
        SweepOptions options;
        options.redistribute = round > 0;
        if (!sweeps.sweep(options, stop)) break;
        sweeps.close();
        const double now = sweeps.bound();
        if (round > 0 && now - before < gain * (now - start)) break;
        before = now;
    }
    Stage stage;
    stage.n = n;
    stage.beta = solve_leader(sweeps.charged_leaders(), n).beta;
    stage.u.assign(pairs * n, 0.0f);
    stage.v.assign(pairs * n, 0.0f);
    stage.forbidden = sweeps.forbidden();
    for (std::size_t line = 0; line < pairs; ++line) {
        const std::size_t i = line % n;
        for (int j = 0; j < n; ++j) {
            if (stage.forbidden[i * n + j]) continue;
            stage.u[line * n + j] = sweeps.duals().u[line * problem.stride + j];
            stage.v[line * n + j] = sweeps.duals().v[line * problem.stride + j];
        }
    }
    return stage;
}

}  // namespace blindmatch
