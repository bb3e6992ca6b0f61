// The assignment problem of the leaders, in float64: its value is the bound, its reduced costs bound every pair.
#pragma once

#include <vector>

namespace blindmatch {

struct LeaderDuals {
    std::vector<double> alpha, beta;  // alpha_i + beta_j <= leader_ij, equal on the assignment
    std::vector<int> assignment;
    double value = 0.0;
};

// `leader` is n x n; entries that are not finite are forbidden. If no assignment avoids them, the value is very large.
LeaderDuals solve_leader(std::vector<double> leader, int n);

}  // namespace blindmatch
