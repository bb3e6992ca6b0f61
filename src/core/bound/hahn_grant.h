// The paper's dual ascent: Alg. 1 (Hahn & Grant 1998) on the dense tensor and Alg. 2, the same on factored costs.
#pragma once

#include <cstddef>
#include <vector>

#include "base/problem.h"
#include "base/threads.h"
#include "lap/lap.h"

namespace blindmatch {

// Dual variables of all subproblems. Transposed, so that one subproblem reads them contiguously:
// u[k][i][j] = U_ij,k and v[l][i][j] = V_ij,l.
struct HahnGrantDuals {
    explicit HahnGrantDuals(int n) : u({n, n, n}), v(u) {}
    Grid<double, 3> u, v;
};

class HahnGrant {
 public:
    // `factorized` chooses Alg. 2, memory 2 n^3 doubles + n^3 ints; otherwise Alg. 1, memory n^4 doubles on top.
    HahnGrant(const Problem& problem, bool factorized, LapMethod method, bool evaluate_laps, int threads);

    // One pass of the while loop. Returns false if it was cut short; bound and duals are valid then, too.
    [[nodiscard]] bool sweep(Stop& stop);

    // l of the paper, with every constant added; -infinity until the leaders of non-negative costs are solved.
    double bound() const { return valid_ ? bound_ : -INFINITY; }
    double cost() const { return cost_; }
    const std::vector<int>& permutation() const { return permutation_; }
    void offer(const int* permutation);

    int size() const { return problem_.n; }
    HahnGrantDuals& duals() { return duals_; }
    // Column duals of the leaders, for a certificate. Solves the leader problem of what the last sweep left over.
    std::vector<double> column_duals();

 private:
    bool shift_to_nonnegative();
    void solve_leader();
    void redistribute_leader();
    void solve_subproblem(int i, int j, int worker);
    // Writes the (n-1) x (n-1) matrix of subproblem (i, j), complementary costs added up.
    void gather(int i, int j, double* matrix);

    Problem problem_;
    LapMethod method_;
    bool factorized_, evaluate_laps_, nonnegative_ = false, valid_ = false;
    HahnGrantDuals duals_;
    Grid<double, 4> tensor_;  // Alg. 1: the costs C_ijkl, changed in place. Alg. 2 computes them anew: it is empty
    Grid<double, 2> leader_;
    std::vector<double> beta_;
    Grid<int, 3> warm_;  // last assignment of every subproblem
    double bound_, epsilon_ = 0.1;
    int sweeps_ = 0;
    double cost_ = INFINITY;
    std::vector<int> permutation_;

    ThreadPool pool_;
    struct Worker {
        explicit Worker(int n) : lap(n), matrix({n, n}), permutation(n) {}
        Lap lap;
        Grid<double, 2> matrix;
        std::vector<int> permutation;
    };
    std::vector<Worker> workers_;
    struct Candidate {
        double cost = INFINITY;
        std::vector<int> permutation;
    };
    std::vector<Candidate> candidates_;  // best LAP solution of each j, so that the threads' order does not matter
};

}  // namespace blindmatch
