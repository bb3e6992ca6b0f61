// Infinity, dense arrays of several axes, and powers of two that bring their numbers to about 1.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "base/simd.h"

namespace blindmatch {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The lengths of the axes of a row-major array.
template <int kAxes>
class Shape {
 public:
    Shape() = default;
    template <class... Lengths>
        requires(sizeof...(Lengths) == kAxes)
    constexpr Shape(Lengths... lengths) : lengths_{static_cast<std::size_t>(lengths)...} {}
    constexpr std::size_t size() const {
        std::size_t product = 1;
        for (const std::size_t length : lengths_) product *= length;
        return product;
    }
    // Where the entry is, or where the entries begin whose first places are given.
    template <class... Places>
    BLINDMATCH_INLINE constexpr std::size_t place(Places... places) const {
        static_assert(sizeof...(Places) <= kAxes);
        std::size_t at = 0, axis = 0;
        ((at = at * lengths_[axis++] + static_cast<std::size_t>(places)), ...);
        for (; axis < kAxes; ++axis) at *= lengths_[axis];
        return at;
    }

 private:
    std::array<std::size_t, kAxes> lengths_{};
};

// Entries that somebody else owns as an array: g(i, j) is an entry, g.row(i) points to those that begin with i.
template <class T, int kAxes>
struct GridView {
    GridView(T* entries, Shape<kAxes> lengths) : data(entries), shape(lengths) {}

    T* data;
    Shape<kAxes> shape;

    template <class... Places>
    BLINDMATCH_INLINE T& operator()(Places... places) const {
        return data[shape.place(places...)];
    }
    template <class... Places>
    BLINDMATCH_INLINE T* row(Places... places) const {
        return data + shape.place(places...);
    }
};

// The same with entries of its own; g[p] is the p-th of them.
template <class T, int kAxes, class Values = std::vector<T>>
struct Grid {
    Shape<kAxes> shape;
    Values values;

    Grid() = default;
    explicit Grid(Shape<kAxes> lengths, T value = T()) : shape(lengths), values(lengths.size(), value) {}
    Grid(Shape<kAxes> lengths, Values entries) : shape(lengths), values(std::move(entries)) {}

    template <class... Places>
    BLINDMATCH_INLINE auto& operator()(Places... places) {
        return values[shape.place(places...)];
    }
    template <class... Places>
    BLINDMATCH_INLINE const auto& operator()(Places... places) const {
        return values[shape.place(places...)];
    }
    template <class... Places>
    BLINDMATCH_INLINE T* row(Places... places) {
        return values.data() + shape.place(places...);
    }
    template <class... Places>
    BLINDMATCH_INLINE const T* row(Places... places) const {
        return values.data() + shape.place(places...);
    }
    GridView<T, kAxes> view() { return {values.data(), shape}; }
    GridView<const T, kAxes> view() const { return {values.data(), shape}; }
};

// Aligned for vector instructions; the last axis is padded by whoever makes it.
template <class T, int kAxes>
using AlignedGrid = Grid<T, kAxes, AlignedVector<T>>;

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
