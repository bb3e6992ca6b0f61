// Powers of two to scale numbers by: exact, whatever the numbers.
#pragma once

#include <algorithm>
#include <cmath>

namespace blindmatch {

inline double largest_magnitude(const auto& values) {
    double most = 0.0;
    for (const double x : values) most = std::max(most, std::abs(x));
    return most;
}

inline constexpr double kMostScaling = 100.0;  // its power of two and the inverse are normal numbers in float32 as well

// The power of two that brings `largest` to at most 1 and above 1/2; 1 if it is zero or infinite. Numbers further away
// than 2^100 stay small or large: a larger power would overflow, and infinity times zero is NaN.
inline double scale_to_one(double largest) {
    if (!(largest > 0.0) || !std::isfinite(largest)) return 1.0;
    return std::exp2(std::clamp(-std::ceil(std::log2(largest)), -kMostScaling, kMostScaling));
}

}  // namespace blindmatch
