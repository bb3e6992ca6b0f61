#include "bound/box_step.h"

#include <algorithm>
#include <vector>

#include "base/simd.h"

namespace blindmatch {
namespace {

struct Row {
    float* state;
    float* point;
    const float* cost;
    const float* slack;
    const float* of_row;     // D' of the pair's row
    const float* of_column;  // and of its column
};

// The projection is s - LD' - DL' + FF'; `own` has what D of this row takes away.
BLINDMATCH_KERNEL BoxResult box_row(const Row& row, const float* own, std::size_t begin, std::size_t end,
                                    float weight) {
    float residual = 0.0f, movement = 0.0f;
    for (std::size_t b = begin; b < end; ++b) {
        const float old = row.state[b];
        const float projection = old - (own[b] + row.of_row[b] + row.of_column[b]) + row.slack[b];
        float t = 2.0f * projection - old - weight * row.cost[b];
        t = t < 0.0f ? 0.0f : (t > 1.0f ? 1.0f : t);
        const float moved = t - row.point[b], difference = t - projection;
        residual += difference * difference;
        movement += moved * moved;
        row.point[b] = t;
        row.state[b] = old + 2.0f * difference;
    }
    return {residual, movement};
}

}  // namespace

BoxResult box_step(const BoxStep& step, std::size_t begin, std::size_t end) {
    const std::size_t side = step.p + 1, equations = 2 * step.n;
    BoxResult result;
    std::vector<float> own(side, 0.0f);
    for (std::size_t a = std::max<std::size_t>(begin, 1); a < end; ++a) {
        const auto i = static_cast<std::size_t>(step.rows[a - 1]), j = static_cast<std::size_t>(step.columns[a - 1]);
        const float* duals = step.duals + a * equations;
        for (std::size_t b = 1; b < side; ++b) own[b] = duals[step.rows[b - 1]] + duals[step.n + step.columns[b - 1]];
        const Row row{step.state + a * side,      step.point + a * side,
                      step.cost + a * side,       step.slack + (a - begin) * side,
                      step.transposed + i * side, step.transposed + (step.n + j) * side};
        for (const auto& [from, to] : {std::pair(std::size_t{1}, a), std::pair(a + 1, side)}) {
            const BoxResult part = box_row(row, own.data(), from, to, step.weight);
            result.residual += part.residual;
            result.movement += part.movement;
        }
        float* sums = step.sums + a * equations;
        std::fill(sums, sums + equations, 0.0f);
        const float diagonal = row.state[a];
        row.state[a] = 0.0f;
        for (std::size_t b = 1; b < side; ++b) {
            sums[step.rows[b - 1]] += row.state[b];
            sums[step.n + step.columns[b - 1]] += row.state[b];
        }
        row.state[a] = diagonal;
    }
    return result;
}

}  // namespace blindmatch
