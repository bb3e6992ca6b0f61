#include "bound/dense_sweeps.h"

#include "bound/leader_lap.h"
#include "bound/sweeps.h"

namespace blindmatch {

Stage dense_sweeps(const ScaledProblem& problem, std::vector<std::uint8_t> forbidden, int count, double gain,
                   ThreadPool& pool, Stop& stop) {
    Sweeps sweeps(problem, std::move(forbidden), pool);
    sweeps.close();
    const double start = sweeps.bound();
    double before = start;
    for (int round = 0; round < count; ++round) {
        if (!sweeps.sweep(stop, round > 0)) break;
        sweeps.close();
        const double now = sweeps.bound();
        if (round > 0 && now - before < gain * (now - start)) break;
        before = now;
    }
    Stage stage = sweeps.stage(1.0f);
    stage.beta = solve_leader(sweeps.charged_leaders(), problem.n).beta;
    return stage;
}

}  // namespace blindmatch
