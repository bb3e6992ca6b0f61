#include "bound/box_step.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/simd.h"

namespace blindmatch {
namespace {

struct Row {
    float* state;
    float* point;
    const float* cost;
    const float* slack;
    const float* own;        // what D of this row takes away
    const float* of_row;     // D' of the pair's row
    const float* of_column;  // and of its column
    float weight;
    float stride;
};

struct Norms {
    Vector<float> residual{}, movement{};
};

// Eight entries, of which `count` exist. The projection is s - LD' - DL' + FF'.
BLINDMATCH_INLINE void box_lanes(const Row& row, std::size_t b, std::size_t count, Norms& norms) {
    const std::size_t bytes = count * sizeof(float);
    const auto get = [b, bytes](const float* from) {
        Vector<float> v{};
        std::memcpy(&v, from + b, bytes);
        return v;
    };
    const Vector<float> old = get(row.state);
    const Vector<float> projection = old - (get(row.own) + get(row.of_row) + get(row.of_column)) + get(row.slack);
    const Vector<float> free = 2.0f * projection - old - row.weight * get(row.cost);
    const Vector<float> t = smaller(larger(free, broadcast(0.0f)), broadcast(1.0f));
    const Vector<float> moved = t - get(row.point), difference = t - projection;
    const Vector<float> next = old + row.stride * difference;
    norms.residual += difference * difference;
    norms.movement += moved * moved;
    std::memcpy(row.point + b, &t, bytes);
    std::memcpy(row.state + b, &next, bytes);
}

BLINDMATCH_KERNEL void box_row(const Row& row, std::size_t a, std::size_t side, BoxResult& result) {
    Norms norms;
    for (const auto& [from, to] : {std::pair(std::size_t{1}, a), std::pair(a + 1, side)}) {
        std::size_t b = from;
        for (; b + 8 <= to; b += 8) box_lanes(row, b, 8, norms);
        if (b < to) box_lanes(row, b, to - b, norms);
    }
    result.residual += static_cast<double>(sum_of_lanes<float>(norms.residual));
    result.movement += static_cast<double>(sum_of_lanes<float>(norms.movement));
}

// The pairs of a row of x, whose entries are [from, to): D for them, and the sums of the new state.
BLINDMATCH_KERNEL void spread(const float* duals, float of_row, const int* columns, std::size_t from, std::size_t to,
                              float* own) {
    for (std::size_t b = from; b < to; ++b) own[b] = of_row + duals[columns[b - 1]];
}

BLINDMATCH_KERNEL float gather(const float* state, const int* columns, std::size_t from, std::size_t to, float* sums) {
    float total = 0.0f;
    for (std::size_t b = from; b < to; ++b) {
        sums[columns[b - 1]] += state[b];
        total += state[b];
    }
    return total;
}

}  // namespace

BoxResult box_step(const BoxStep& step, std::size_t begin, std::size_t end) {
    const std::size_t side = step.p + 1, equations = 2 * step.n;
    std::vector<std::size_t> starts;  // of the rows of x, as entries of y
    for (std::size_t b = 1; b < side; ++b) {
        if (b == 1 || step.rows[b - 1] != step.rows[b - 2]) starts.push_back(b);
    }
    starts.push_back(side);
    BoxResult result;
    std::vector<float> own(side, 0.0f);
    for (std::size_t a = std::max<std::size_t>(begin, 1); a < end; ++a) {
        const auto i = static_cast<std::size_t>(step.rows[a - 1]), j = static_cast<std::size_t>(step.columns[a - 1]);
        const float* duals = step.duals + a * equations;
        for (std::size_t k = 0; k + 1 < starts.size(); ++k)
            spread(duals + step.n, duals[step.rows[starts[k] - 1]], step.columns, starts[k], starts[k + 1], own.data());
        const Row row{step.state + a * side,
                      step.point + a * side,
                      step.cost + a * side,
                      step.slack + (a - begin) * side,
                      own.data(),
                      step.transposed + i * side,
                      step.transposed + (step.n + j) * side,
                      step.weight,
                      step.stride};
        box_row(row, a, side, result);
        float* sums = step.sums + a * equations;
        std::fill(sums, sums + equations, 0.0f);
        const float diagonal = std::exchange(row.state[a], 0.0f);
        for (std::size_t k = 0; k + 1 < starts.size(); ++k)
            sums[step.rows[starts[k] - 1]] += gather(row.state, step.columns, starts[k], starts[k + 1], sums + step.n);
        row.state[a] = diagonal;
    }
    return result;
}

}  // namespace blindmatch
