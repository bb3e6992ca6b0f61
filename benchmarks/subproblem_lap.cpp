// Microseconds of one assignment problem by the solver of the sweeps and by Lap, each with two passes of centring.
//
//     g++ -O3 -std=c++20 -Wno-psabi -I src/core benchmarks/subproblem_lap.cpp src/core/lap/*.cpp -o lap && ./lap
//
// Reduced costs of a random problem plus noise, 200 problems in a row, each started from the assignment before it: with
// little noise as in a late sweep, with much noise as in the first one. The best of 15 repetitions.
#include "bound/subproblem_lap.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <random>
#include <vector>

#include "lap/lap.h"

using namespace blindmatch;

using Problems = std::vector<std::vector<float>>;

Problems make_problems(int n, float noise) {
    std::mt19937 generator(1);
    std::uniform_real_distribution<float> uniform(0, 1);
    std::vector<double> base(Shape<2>(n, n).size());
    for (double& x : base) x = uniform(generator);
    Lap lap(n);
    static_cast<void>(lap.solve(base.data(), n));
    Problems problems(200, std::vector<float>(base.size()));
    for (auto& problem : problems) {
        for (std::size_t at = 0; at < base.size(); ++at) {
            problem[at] = static_cast<float>(base[at] - lap.u()[at / n] - lap.v()[at % n]) + noise * uniform(generator);
        }
    }
    return problems;
}

BLINDMATCH_KERNEL bool solve_one(SubproblemLap& w, const std::uint16_t* previous) {
    for (int k = 0; k < w.size; ++k) w.row_dual[k] = row_minimum(w.matrix.row(k), w.stride);
    if (!solve_subproblem(w, -1, -1, previous, 1e-7f)) return false;
    centre_duals(w, -1, 2);
    return true;
}

bool solve_as_sweeps(const Problems& problems, int n) {
    SubproblemLap w(n);
    std::ranges::fill(w.matrix.values, kPadding);
    std::vector<std::uint16_t> previous(n, static_cast<std::uint16_t>(n));
    for (const auto& problem : problems) {
        for (int k = 0; k < n; ++k) std::copy_n(&problem[static_cast<std::size_t>(k) * n], n, w.matrix.row(k));
        if (!solve_one(w, previous.data())) return false;
        std::copy(w.column_of.begin(), w.column_of.end(), previous.begin());
    }
    return true;
}

bool solve_by_lap(const Problems& problems, int n) {
    Lap lap(n);
    std::vector<double> costs(Shape<2>(n, n).size());
    const int* previous = nullptr;
    for (const auto& problem : problems) {
        std::copy(problem.begin(), problem.end(), costs.begin());
        if (!lap.solve(costs.data(), n, LapMethod::jonker_volgenant, 0.0, previous, 2)) return false;
        previous = lap.row_to_col();
    }
    return true;
}

template <class Solve>
double microseconds(const Solve& solve, const Problems& problems, int n) {
    double best = 1e9;
    for (int repetition = 0; repetition < 15; ++repetition) {
        const std::clock_t start = std::clock();
        if (!solve(problems, n)) return -1.0;
        best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    }
    return 1e6 * best / static_cast<double>(problems.size());
}

int main() {
    for (int n : {19, 39, 99}) {
        for (float noise : {0.0f, 0.0005f, 0.005f, 0.05f}) {
            const Problems problems = make_problems(n, noise);
            const double ours = microseconds(solve_as_sweeps, problems, n),
                         lap = microseconds(solve_by_lap, problems, n);
            std::printf("n=%d noise=%.4f: sweeps %.2f us, Lap %.2f us, ratio %.2f\n", n, noise, ours, lap, lap / ours);
        }
    }
}
