#include "bound/rlt_kernels.h"

#include "base/grid.h"
#include "base/simd.h"

namespace blindmatch {
namespace {

template <bool kDense>
BLINDMATCH_INLINE double update_slots(const PairUpdate& p, float* gathered, float* reflected) {
    const std::size_t plane = p.target.shape.place(1);
    double moved = 0.0;
    for (int row = 0; row < p.rows; ++row) {
        const int slot = p.active[row], j = p.row_columns[slot];
        const float* v_i = p.v_i.row(slot);
        float* v_i_sum = p.v_i_sum.row(slot);
        const float* v_k = p.v_k.row(j);
        float* v_k_sum = p.v_k_sum.row(j);
        float* y = p.y.row(row);
        const float* anchor = p.anchor.row(row);
        if (!kDense) {
            for (int t = 0; t < p.width; ++t) gathered[t] = v_i[p.columns[t]];
        }
        const float *target = p.target.row(0, j), *first = target + p.factors[0] * plane;
        const float own = p.u_i[slot];
        Vector<float> sum{}, move{};
        for (int l = 0; l < p.width; l += 8) {
            Vector<float> cost = p.source[0] * load(first + l);
            for (int f = 1; f < p.factor_count; ++f) cost += p.source[f] * load(target + p.factors[f] * plane + l);
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

BLINDMATCH_KERNEL double squared_distance(const AlignedVector<float>& x, const AlignedVector<float>& y) {
    double total = 0.0;
    for (std::size_t t = 0; t + 8 <= x.size(); t += 8) {
        const Vector<float> d = load(x.data() + t) - load(y.data() + t);
        total += sum_of_lanes<float>(d * d);
    }
    return total;
}

}  // namespace blindmatch
