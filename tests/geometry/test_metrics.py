"""Dissimilarities by metric, along graphs, and given matrices with holes."""

import re

import numpy as np
import pytest
from scipy.sparse import csr_array, lil_array
from scipy.spatial.distance import cdist

import blindmatch as bm
from blindmatch.geometry.metrics import DIRECT, Metric, as_metrics
from blindmatch.geometry.relations import as_relations


@pytest.mark.parametrize("name", sorted(set(DIRECT) - {"mahalanobis", "seuclidean"}))
def test_direct_metrics_are_those_of_scipy(name: str) -> None:
    points = np.random.default_rng(0).random((7, 4)) * (np.random.default_rng(1).random((7, 4)) > 0.3)
    given = points != 0 if name in ("dice", "rogerstanimoto", "russellrao", "sokalsneath", "yule") else points
    found = Metric.of(name).of_points(points)
    apart = ~np.eye(7, dtype=bool)  # russellrao is not zero between an item and itself
    assert np.allclose(found[apart], cdist(given, given, name)[apart], atol=1e-12)
    assert (found == found.T).all()
    assert not found.diagonal().any()


def test_other_points_are_as_far_as_the_metric_says() -> None:
    points = np.random.default_rng(0).random((6, 4)) * (np.random.default_rng(1).random((6, 4)) > 0.3)
    for name in ("cosine", "dice", "hops:cityblock"):
        metric = Metric.of(name)
        direct = Metric(metric.base).of_points(points)
        assert np.allclose(metric.between(points[:2], points), direct[:2], atol=1e-12)


def test_matrices_that_are_too_large_are_refused() -> None:
    with pytest.raises(ValueError, match="20001 items need a matrix"):
        Metric.of("hops").of_points(np.zeros((20_001, 1)))


def test_geodesics_follow_a_curve_and_hops_count_its_steps() -> None:
    angles = np.linspace(0, np.pi, 21)
    arc = np.column_stack([np.cos(angles), np.sin(angles)])
    found = Metric.of("geodesic", 2).of_points(arc)
    assert found[0, -1] == pytest.approx(np.linalg.norm(np.diff(arc, axis=0), axis=1).sum(), rel=0.02)
    # Each end has its second neighbour two steps away: 18 single steps between, two double ones at the ends.
    assert Metric.of("hops", 2).of_points(arc)[0, -1] == 18
    assert Metric.of("geodesic", 20).of_points(arc)[0, -1] == pytest.approx(2.0)


def test_geodesics_do_not_depend_on_the_order() -> None:
    rng = np.random.default_rng(0)
    points = np.round(rng.normal(size=(30, 2)), 1)  # with ties
    order = rng.permutation(30)
    metric = Metric.of("hops", 3)
    assert (metric.of_points(points[order]) == metric.of_points(points)[np.ix_(order, order)]).all()


def test_parts_are_joined_by_their_shortest_links() -> None:
    line = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
    metric = Metric.of("geodesic", 1)
    assert metric.components(Metric().of_points(line)) == 2
    assert metric.of_points(line)[0, 5] == pytest.approx(12.0)
    task = bm.Task(line, line, metric="geodesic", neighbors=1)
    assert "source: the graph of nearest neighbours had 2 parts" in bm.match(task, rng=0).message


def test_duplicates_have_paths_of_length_zero() -> None:
    twice = np.repeat(np.array([[0.0], [1.0], [5.0]]), 2, axis=0)
    found = Metric.of("geodesic", 1).of_points(twice)
    assert found[0, 1] == 0
    assert found[0, 5] == pytest.approx(5.0)
    assert np.isfinite(found).all()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("cosin",), "did you mean 'cosine'"),
        (("geodesic:cosin",), "did you mean 'geodesic:cosine'"),
        (("geodesic", 0), "neighbors=0"),
        (("geodesic", "auto"), "neighbors='auto'; expected an integer: bm.choose_relation"),
        (("cosine", 5), "neighbors=5 is given with metric='cosine'"),
        ((("cosine",),), "metric has 1 items"),
        ((3,), "metric=3"),
        (("precomputed",), "metric='precomputed'; expected kernels=(K, G)"),
        (("auto",), "metric='auto'; expected a name: bm.choose_relation"),
    ],
)
def test_bad_metrics_are_named(arguments: tuple[object, ...], complaint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        as_metrics(*arguments)


def test_an_item_without_a_direction_is_named() -> None:
    with pytest.raises(ValueError, match=r"source\[1\] has no 'cosine'"):
        bm.match([[1.0, 2.0], [0.0, 0.0], [2.0, 1.0]], np.eye(3), metric="cosine")


def test_missing_relations_are_counted_and_filled() -> None:
    K = np.array([[0, 1, np.nan, 5], [1, 0, 2, np.nan], [np.nan, 2, 0, 4], [np.nan, np.nan, 4, 0]])
    with pytest.raises(ValueError, match=r"kernels\[0\] holds nan in 5 of 16 entries"):
        bm.match(kernels=(K, np.zeros((4, 4))))
    filled = bm.fill_missing(K, "path")
    assert filled[0, 2] == 3
    assert filled[1, 3] == 6
    assert filled[3, 0] == 5
    assert bm.fill_missing(K, "mean")[0, 2] == pytest.approx(((1 + 5) / 2 + (2 + 4) / 2) / 2)
    with pytest.raises(ValueError, match="item 0 is not related to all others"):
        bm.fill_missing([[0, np.nan], [np.nan, 0]])
    K[1] = K[:, 1] = np.nan
    for rule in ("path", "mean"):
        with pytest.raises(ValueError, match=f"item 1 is not related to all others, not even by a {rule}"):
            bm.fill_missing(K, rule)
    with pytest.raises(ValueError, match="did you mean 'path'"):
        bm.fill_missing(K, "paths")


def test_a_sparse_graph_is_matched_by_its_edges_and_by_its_paths() -> None:
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [1, 5], [5, 6], [6, 7], [7, 1]])  # no symmetry
    A = np.zeros((8, 8))
    A[edges[:, 0], edges[:, 1]] = A[edges[:, 1], edges[:, 0]] = 1
    order = np.random.default_rng(0).permutation(8)
    B = A[np.ix_(order, order)]
    for options in ({}, {"metric": "geodesic"}, {"metric": "hops"}):
        result = bm.match(kernels=(csr_array(A), csr_array(B)), rng=0, **options)
        assert result.cost == pytest.approx(0, abs=1e-9)
        assert (B[np.ix_(result.permutation, result.permutation)] == A).all()
    assert as_relations(csr_array(A), "A", Metric.of("hops"))[0, 4] == 4
    A[3, 4] = A[4, 3] = 0
    with pytest.raises(ValueError, match=r"kernels\[0\]: no path joins 7 pairs"):
        bm.match(kernels=(csr_array(A), csr_array(B)), metric="geodesic")
    with pytest.raises(ValueError, match=r"neighbors=3 is given for kernels\[0\], a sparse graph"):
        bm.match(kernels=(csr_array(B), csr_array(B)), metric="hops", neighbors=3)
    for negative in (-B, csr_array(-B), lil_array(-B)):
        with pytest.raises(ValueError, match=r"kernels\[0\] holds -1.0; paths need lengths that are not negative"):
            bm.match(kernels=(negative, B), metric="geodesic")
    with pytest.raises(ValueError, match="metric='cosine' is given together with kernels"):
        bm.match(kernels=(A, B), metric="cosine")
