// When a bound is good enough. Python decides, in blindmatch/problem/optimality.py; the core only applies it.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace blindmatch {

// The cost that any better permutation must stay below: a bound that reaches it ends the search.
struct Target {
    double tolerance = 0.0;    // relative to the best cost
    double granularity = 0.0;  // > 0: all costs are this far apart or equal
    double noise = 0.0;        // absolute: what rounding may do to costs of this problem's size
    // Limits of the caller: a gap relative to the best cost, and a bound, that are enough.
    double gap = 0.0, enough = std::numeric_limits<double>::infinity();

    double of(double cost) const { return std::min({closing(cost), cost - gap * std::abs(cost), enough}); }

 private:
    double closing(double cost) const {
        if (granularity > 0.0) return cost - granularity * (1.0 - 1e-6);
        return cost - std::max(tolerance * std::abs(cost), noise);
    }
};

}  // namespace blindmatch
