#include "bound/rlt_kernels.h"

#include "base/index.h"
#include "base/simd.h"

namespace blindmatch {
namespace {

template <bool kDense>
BLINDMATCH_INLINE double update_slots(const PairUpdate& p, float* gathered, float* reflected) {
    double moved = 0.0;
    for (int row = 0; row < p.rows; ++row) {
        const int slot = p.active[row], j = p.row_columns[slot];
        const float* v_i = p.v_i + area(slot, p.stride);
        float* v_i_sum = p.v_i_sum + area(slot, p.stride);
        const float* v_k = p.v_k + area(j, p.width);
        float* v_k_sum = p.v_k_sum + area(j, p.width);
        float* y = p.y + area(row, p.width);
        const float* anchor = p.anchor + area(row, p.width);
        if (!kDense) {
            for (int t = 0; t < p.width; ++t) gathered[t] = v_i[p.columns[t]];
        }
        const float own = p.u_i[slot];
        Vector<float> sum{}, move{};
        for (int l = 0; l < p.width; l += 8) {
            Vector<float> cost = p.source[0] * load(p.target[0] + cell(j, l, p.width));
            for (int f = 1; f < p.factor_count; ++f) {
                cost += p.source[f] * load(p.target[f] + cell(j, l, p.width));
            }
            const Vector<float> gradient =
                cost - own - load(p.u_k + l) - load(kDense ? v_i + l : gathered + l) - load(v_k + l);
            const Vector<float> old = load(y + l);
            const Vector<float> next = larger(old - p.step * gradient, Vector<float>{});
            const Vector<float> step = next - old;
            move += step * step;
            const Vector<float> mirror = next + step;
            store(y + l, p.keep * mirror + p.anchor_share * load(anchor + l));
            sum += mirror;
            store(p.u_k_sum + l, load(p.u_k_sum + l) + mirror);
            store(v_k_sum + l, load(v_k_sum + l) + mirror);
            if (kDense) {
                store(v_i_sum + l, load(v_i_sum + l) + mirror);
            } else {
                store(reflected + l, mirror);
            }
        }
        if (!kDense) {
            for (int t = 0; t < p.width; ++t) v_i_sum[p.columns[t]] += reflected[t];
        }
        p.u_i_sum[slot] += sum_of_lanes<float>(sum);
        moved += sum_of_lanes<float>(move);
    }
    return moved;
}

// `x` and `step` are vectors or (kOne) scalars.
template <bool kOneStep, bool kOneX>
BLINDMATCH_INLINE double update_duals(float* dual, const float* anchor, const float* x, const float* sum,
                                      const float* step, float keep, float anchor_share, int width) {
    Vector<float> moved{};
    for (int t = 0; t < width; t += 8) {
        const Vector<float> excess = (kOneX ? broadcast(*x) : load(x + t)) - load(sum + t);
        const Vector<float> move = (kOneStep ? broadcast(*step) : load(step + t)) * excess;
        moved += move * excess;
        store(dual + t, keep * (load(dual + t) + 2.0f * move) + anchor_share * load(anchor + t));
    }
    return sum_of_lanes<float>(moved);
}

}  // namespace

BLINDMATCH_KERNEL double update_y(const PairUpdate& p) {
    alignas(32) float gathered[2048], reflected[2048];
    return p.dense ? update_slots<true>(p, gathered, reflected) : update_slots<false>(p, gathered, reflected);
}

BLINDMATCH_KERNEL double update_u(float* u, const float* anchor, const float* x, const float* sum, float step,
                                  float keep, float anchor_share, int width) {
    return update_duals<true, false>(u, anchor, x, sum, &step, keep, anchor_share, width);
}

BLINDMATCH_KERNEL double update_v(float* v, const float* anchor, float x, const float* sum, const float* step,
                                  float keep, float anchor_share, int width) {
    return update_duals<false, true>(v, anchor, &x, sum, step, keep, anchor_share, width);
}

BLINDMATCH_KERNEL double squared_distance(const float* x, const float* y, std::size_t count) {
    double total = 0.0;
    std::size_t t = 0;
    for (; t + 8 <= count; t += 8) {
        const Vector<float> d = load(x + t) - load(y + t);
        total += sum_of_lanes<float>(d * d);
    }
    return total;
}

}  // namespace blindmatch
