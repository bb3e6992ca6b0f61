// The paper's dual ascent: Alg. 1 (Hahn & Grant 1998) on the dense tensor and Alg. 2, the same on factored costs.
#pragma once

#include <cstddef>
#include <memory>
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

// Where the costs of the subproblems live: this alone tells the two algorithms apart.
class PairCosts {
 public:
    virtual ~PairCosts() = default;
    // Writes the (n-1) x (n-1) matrix of subproblem (i, j), complementary costs added up (Alg. 1, l. 11-12; Alg. 2, l.
    // 12).
    virtual void gather(int i, int j, double* matrix) = 0;
    // Notes that the duals of subproblem (i, j), already added to the HahnGrantDuals, leave its matrix (Alg. 1, l. 15).
    virtual void reduced(int i, int j, const double* matrix, const double* u, const double* v) = 0;
    // Notes that `share` is added to all costs of subproblem (i, j) (Alg. 1, l. 9).
    virtual void raised(int i, int j, double share) = 0;
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

    Problem problem_;
    LapMethod method_;
    bool evaluate_laps_, nonnegative_ = false, valid_ = false;
    HahnGrantDuals duals_;
    std::unique_ptr<PairCosts> costs_;
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
