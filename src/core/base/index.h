// Infinity, and places in row-major matrices: products of ints that need 64 bits.
#pragma once

#include <cstddef>
#include <limits>

namespace blindmatch {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The size of a matrix, or the start of its row `rows`.
template <class Row, class Width>
[[gnu::always_inline]] constexpr std::size_t area(Row rows, Width width) {
    return static_cast<std::size_t>(rows) * width;
}

template <class Row, class Column, class Width>
[[gnu::always_inline]] constexpr std::size_t cell(Row row, Column column, Width width) {
    return static_cast<std::size_t>(row) * width + column;
}

}  // namespace blindmatch
