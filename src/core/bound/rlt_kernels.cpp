#include "bound/rlt_lp.h"

namespace blindmatch {
namespace {

template <bool kDense>
BLINDMATCH_INLINE double update_slots(const ScaledProblem& problem, RltRow& row_i, RltRow& row_k, int i, int k,
                                      const GridView<float, 2>& y_rows, const GridView<const float, 2>& anchor_rows,
                                      const RltSteps& steps) {
    alignas(32) float gathered[2048], reflected[2048];
    const std::size_t plane = row_k.target.shape.place(1), source_plane = problem.source.shape.place(1);
    const std::span<const int> used = problem.used.at(i, k);
    const float* source = problem.source.row(0, i, k);
    const int width = row_k.width;
    const int* columns = row_k.column.data();
    const float *u_i = row_i.u.row(k), *u_k = row_k.u.row(i);
    float *u_i_sum = row_i.u_sum.row(k), *u_k_sum = row_k.u_sum.row(i);
    const float step = steps.y, keep = steps.keep, anchor_share = steps.anchor;
    double moved = 0.0;
    for (int row = 0; row < row_i.count(); ++row) {
        const int slot = row_i.active[row], j = row_i.column[slot];
        const float *v_i = row_i.v.row(slot), *v_k = row_k.v_transposed.row(j);
        float *v_i_sum = row_i.v_sum.row(slot), *v_k_sum = row_k.v_transposed_sum.row(j);
        float* y = y_rows.row(row);
        const float* anchor = anchor_rows.row(row);
        if (!kDense) {
            for (int t = 0; t < width; ++t) gathered[t] = v_i[columns[t]];
        }
        const float *target = row_k.target.row(0, j), *first = target + used[0] * plane;
        const float weight = source[used[0] * source_plane], own = u_i[slot];
        Vector<float> sum{}, move{};
        for (int l = 0; l < width; l += 8) {
            Vector<float> cost = weight * load(first + l);
            for (const int f : used.subspan(1)) cost += source[f * source_plane] * load(target + f * plane + l);
            const Vector<float> gradient =
                cost - own - load(u_k + l) - load(kDense ? v_i + l : gathered + l) - load(v_k + l);
            const Vector<float> old = load(y + l);
            const Vector<float> next = larger(old - step * gradient, Vector<float>{});
            const Vector<float> change = next - old;
            move += change * change;
            const Vector<float> mirror = next + change;
            store(y + l, keep * mirror + anchor_share * load(anchor + l));
            sum += mirror;
            store(u_k_sum + l, load(u_k_sum + l) + mirror);
            store(v_k_sum + l, load(v_k_sum + l) + mirror);
            if (kDense) {
                store(v_i_sum + l, load(v_i_sum + l) + mirror);
            } else {
                store(reflected + l, mirror);
            }
        }
        if (!kDense) {
            for (int t = 0; t < width; ++t) v_i_sum[columns[t]] += reflected[t];
        }
        u_i_sum[slot] += sum_of_lanes<float>(sum);
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

BLINDMATCH_KERNEL double update_y(const ScaledProblem& problem, RltRow& row_i, RltRow& row_k, int i, int k,
                                  GridView<float, 2> y, GridView<const float, 2> anchor, const RltSteps& steps) {
    return row_k.dense ? update_slots<true>(problem, row_i, row_k, i, k, y, anchor, steps)
                       : update_slots<false>(problem, row_i, row_k, i, k, y, anchor, steps);
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
