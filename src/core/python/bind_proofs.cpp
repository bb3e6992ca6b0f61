// What the solvers prove, for Python: stages of duals, nodes of the tree, symmetries. Arrays are views, not copies.
#include <nanobind/stl/optional.h>

#include <optional>

#include "python/bind.h"

namespace {

using Pair = std::pair<int, int>;

std::optional<Pair> fixed_pair(const ProofNode& node) {
    return node.row < 0 ? std::nullopt : std::optional<Pair>({node.row, node.column});
}

// (side, index): side 0 for a row, 1 for a column.
std::optional<Pair> line(const ProofNode& node) {
    return node.line < 0 ? std::nullopt : std::optional<Pair>({node.line_is_row ? 0 : 1, node.line});
}

// Duals in the certificate's order (U[i, j, k]) to the transposed ones of the core (u[k][i][j]).
std::vector<float> core_order(const Cube& duals) {
    const std::size_t n = duals.shape(0), plane = n * n;
    std::vector<float> out(plane * n);
    for (std::size_t k = 0; k < n; ++k)
        for (std::size_t ij = 0; ij < plane; ++ij) out[k * plane + ij] = duals.data()[ij * n + k];
    return out;
}

template <class Real>
auto bind_stage(nb::module_& m, const char* name, const char* doc) {
    using S = StageOf<Real>;
    return nb::class_<S>(m, name, doc)
        .def_prop_ro("u", [](const S& self) { return view_of(self.u, self.n, self.n, self.n); })
        .def_prop_ro("v", [](const S& self) { return view_of(self.v, self.n, self.n, self.n); })
        .def_prop_ro("column_duals", view<S>(&S::beta))
        .def_prop_ro("forbidden", [](const S& self) { return view_of(self.forbidden, self.n, self.n); });
}

}  // namespace

void bind_proofs(nb::module_& m) {
    bind_stage<double>(m, "HahnGrantStage", "Duals in float64, in the core's order: u[k, i, j] and v[l, i, j].");
    bind_stage<float>(m, "Stage", "Duals in float32, in the core's order: u[k, i, j] and v[l, i, j].")
        .def_static(
            "from_certificate",
            [](const Cube& U, const Cube& V) {
                const int n = static_cast<int>(U.shape(0));
                for (std::size_t axis = 0; axis < 3; ++axis)
                    if (U.shape(axis) != U.shape(0) || V.shape(axis) != U.shape(0))
                        throw nb::value_error("U, V: expected cubes of one size");
                return Stage{.n = n,
                             .u = core_order(U),
                             .v = core_order(V),
                             .beta = std::vector<double>(n, 0.0),
                             .forbidden = std::vector<std::uint8_t>(U.shape(0) * U.shape(0), 0)};
            },
            "U"_a, "V"_a, "Duals to start from, in the certificate's order: U[i, j, k] and V[i, j, l].");

    nb::class_<SkippedChild>(m, "SkippedChild", "A child that a symmetry maps to its sibling.")
        .def_ro("skipped", &SkippedChild::skipped)
        .def_ro("sibling", &SkippedChild::sibling)
        .def_ro("symmetry", &SkippedChild::symmetry, "An index into the symmetries of the result.");

    nb::class_<ProofNode>(m, "ProofNode", "A node of the proof tree, in original indices.")
        .def_prop_ro(
            "parent",
            [](const ProofNode& self) { return self.parent < 0 ? std::nullopt : std::optional<int>(self.parent); },
            "An index into the proof; None at the root.")
        .def_prop_ro("pair", fixed_pair, "The pair (row, column) that it fixes; None at the root.")
        .def_prop_ro("line", line, "What its children fix: (0, row) or (1, column); None if it has no children.")
        .def_ro("stages", &ProofNode::stages)
        .def_ro("skipped", &ProofNode::skipped);

    nb::class_<Symmetry>(m, "Symmetry", "A permutation of the rows, or of the columns, that changes no cost.")
        .def_ro("of_rows", &Symmetry::of_rows)
        .def_prop_ro("image", view<Symmetry>(&Symmetry::image));
}
