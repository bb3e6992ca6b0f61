"""Graphs as people have them, and edges between the two sides."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

import blindmatch as bm
from blindmatch.geometry.relations import EDGE_WEIGHTS
from blindmatch.io.edge_lists import read_edges
from blindmatch.matching import match_crossed
from blindmatch.matching.match_crossed import Landscape
from blindmatch.solvers.base import Budget


def halves(seed, n, noise=0.0):
    """Two halves of a random directed graph with integer weights, the edges between them, and the true partners."""
    rng = np.random.default_rng(seed)
    inside, across = (rng.poisson(1.0, (n, n)) * (rng.random((n, n)) < 0.4) for _ in range(2))
    noisy = lambda M: np.maximum(M + (rng.random((n, n)) < noise) * rng.integers(-1, 2, (n, n)), 0).astype(float)  # noqa: E731
    p = rng.permutation(n)
    A, B, there, back = noisy(inside), noisy(inside), noisy(across), noisy(across)
    return A, B[np.ix_(p, p)], there[:, p], back[p], np.argsort(p)


def direct(A, B, there, back, p):
    return ((A - B[np.ix_(p, p)]) ** 2).sum() + ((there[:, p] - back[p]) ** 2).sum()


@pytest.mark.parametrize("seed", range(4))
def test_the_crossed_term_is_proved_against_enumeration(seed, tmp_path):
    A, B, there, back, _ = halves(seed, 5, noise=0.5)
    result = bm.match(kernels=(A, B), crossed=(there, back), standardize=False, rng=0)
    costs = [direct(A, B, there, back, list(p)) for p in itertools.permutations(range(5))]
    assert result.status == "optimal"
    assert result.cost == pytest.approx(min(costs), abs=1e-9)
    assert result.cost == pytest.approx(direct(A, B, there, back, result.permutation), abs=1e-9)
    assert result.verify() <= min(costs) + 1e-9
    again = bm.load(result.save(tmp_path / "m.npz"))
    assert (again.cost, again.verify(), again.task.digest) == (result.cost, result.verify(), result.task.digest)


def test_no_bound_of_the_crossed_term_is_above_its_exact_cost():
    rng = np.random.default_rng(0)
    A, B, there, back = rng.random((4, 4, 4))
    task = bm.Task(kernels=(A, B), crossed=(there, back))
    term = task.crossed[0]
    for p in itertools.islice(itertools.permutations(range(4)), 0, 24, 5):
        inner = task.changed(crossed=()).problem
        exact = sum(
            (Fraction(float(term.there[i, p[k]])) - Fraction(float(term.back[p[i], k]))) ** 2
            for i in range(4)
            for k in range(4)
        )
        low = sum(
            Fraction(float(M[i, k])) * Fraction(float(N[p[i], p[k]]))
            for M, N in task.problem.factors[len(inner.factors) :]
            for i in range(4)
            for k in range(4)
        )
        low += Fraction(task.problem.constant) - Fraction(inner.constant)
        assert low <= exact
        assert exact - low < Fraction(1, 10**12)
        assert task.problem.objective(p) == pytest.approx(inner.objective(p) + float(exact), rel=1e-12)


@pytest.mark.parametrize("distortion", ["gw", "inner-product"])
@pytest.mark.parametrize("weight", [1.0, 0.01, 30.0])
@pytest.mark.parametrize("seed", range(5))
def test_the_shares_of_pairs_are_no_more_than_the_crossed_term(seed, weight, distortion):
    A, B, there, back, _ = halves(seed, 5, noise=0.3)
    layers = {"kernels": [(A, B)] * 2, "weights": [1.0, weight], "standardize": bool(seed % 2)}
    crossed = [(there + 0.1, back), (there, back + 0.2)]
    term = bm.Task(**layers, distortion=distortion, crossed=crossed).crossed[1]
    shares, exact = term.shares(), lambda M: [[Fraction(float(x)) for x in row] for row in M]
    mine, theirs = exact(term.there), exact(term.back)
    loss = (lambda a, b: (a - b) ** 2) if term.squared else (lambda a, b: -a * b)
    for p in itertools.permutations(range(5)):
        cost = sum(loss(mine[i][p[k]], theirs[p[i]][k]) for i in range(5) for k in range(5)) * Fraction(weight)
        assert sum(Fraction(float(shares[i, p[i]])) for i in range(5)) <= cost <= Fraction(term.cost(np.array(p)))
        assert float(cost) == pytest.approx(term.cost(np.array(p)), rel=1e-14)
    assert np.abs(shares).max() > 0


@pytest.mark.parametrize("distortion", ["gw", "inner-product"])
def test_the_shares_are_no_more_than_the_crossed_term_where_products_underflow(distortion):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        there, back = rng.normal(size=(2, 2, 2)) * 10.0 ** -rng.integers(160, 163)
        weight = float(rng.choice([1.0, 0.1, 3.0]))
        crossed = [(there, back)]
        task = bm.Task(
            kernels=[(there, back)], crossed=crossed, weights=[weight], distortion=distortion, standardize=False
        )
        term, (a, b) = task.crossed[0], ([[Fraction(float(x)) for x in row] for row in side] for side in (there, back))
        loss = (lambda x, y: (x - y) ** 2) if term.squared else (lambda x, y: -x * y)
        for p in ([0, 1], [1, 0]):
            exact = Fraction(weight) * sum(loss(a[i][p[k]], b[p[i]][k]) for i in range(2) for k in range(2))
            assert sum(Fraction(float(term.shares()[i, p[i]])) for i in range(2)) <= exact


def test_numbers_between_the_sides_that_overflow_are_named():
    A, B, there, back, _ = halves(0, 26)
    with pytest.raises(ValueError, match=r"crossed\[0\] holds numbers up to 1e\+160; expected up to 1e\+100"):
        bm.match(kernels=(A, B), crossed=(np.full_like(there, 1e160), back), rng=0)


def test_a_match_of_many_items_that_meets_its_bound_is_optimal(tmp_path):
    A, B, there, back, _ = halves(3, 26)
    result = bm.match(kernels=(A, B), crossed=(there, back), standardize=False, rng=0)
    assert (result.status, result.cost) == ("optimal", 0.0)
    assert bm.load(result.save(tmp_path / "m.npz")).status == "optimal"


def test_the_bound_of_many_items_with_a_small_weight_is_below_the_cost_of_the_truth():
    A, B, there, back, truth = halves(0, 26, noise=0.2)
    layers = {"kernels": [(A, B)] * 2, "weights": [1.0, 0.01], "crossed": [(there, back)] * 2}
    result = bm.match(**layers, standardize=False, rng=0, time_limit=5)
    cost = 1.01 * direct(A, B, there, back, truth)
    assert 0 < result.lower_bound <= cost * (1 + 1e-12)
    only = bm.match(kernels=[(A * 0, B * 0)] * 2, weights=[1.0, 0.01], crossed=[(there, back), (there * 0, back * 0)],
                    standardize=False, rng=0, time_limit=5)  # fmt: skip
    assert only.lower_bound <= direct(A * 0, B * 0, there, back, truth) * (1 + 1e-12)


def test_with_hints_layers_and_weights():
    A, B, there, back, truth = halves(7, 6)
    C, D, along, against, _ = halves(8, 6)
    order = np.argsort(truth)
    D, along, against = D[np.ix_(order, order)], along[:, order], against[order]
    task = bm.Task(
        kernels=[(A, B), (C, D)], weights=[1, 0.3], crossed=[(there, back), (along, against)], standardize=False,
        known_pairs=[(0, int(truth[0]))],
    )  # fmt: skip
    p = bm.match(task, rng=0).permutation
    assert p[0] == truth[0]
    expected = direct(A, B, there, back, p) + 0.3 * direct(C, D, along, against, p)
    assert task.problem.objective(p) == pytest.approx(expected, abs=1e-9)
    assert bm.match(kernels=(A, B), crossed=(there, back), distortion="inner-product", rng=0).status == "optimal"


def test_many_items_are_searched_with_a_bound_and_the_derivative_is_right(tmp_path):
    A, B, there, back, truth = halves(3, 30, noise=0.05)
    result = bm.match(kernels=(A, B), crossed=(there, back), rng=0, time_limit=20)
    assert (result.permutation == truth).all()
    assert 0 <= result.lower_bound <= result.cost
    assert "searched" in result.notes[0]
    task = bm.Task(kernels=(A, B), crossed=(there, back))
    landscape = Landscape.of(task.changed(crossed=()).problem, task.crossed)
    rng = np.random.default_rng(0)
    P, D = rng.random((2, 30, 30))
    value = lambda X: landscape.curvature(X) + (landscape.linear * X).sum()  # noqa: E731
    step = value(P + 1e-3 * D) - value(P - 1e-3 * D)
    assert step / 2e-3 == pytest.approx((landscape.gradient(P) * D).sum(), rel=1e-6)
    p = landscape.polish(rng.permutation(30), Budget())
    cost = lambda q: direct(*(term.copy() for term in (A, B, there, back)), q)  # noqa: E731
    assert cost(p) > cost(truth) or (p == truth).all()
    with pytest.raises(ValueError, match="up to 24"):
        bm.match(kernels=(A, B), crossed=(there, back), solver="tabu")


def test_without_memory_for_level_1_the_bound_is_another_one(monkeypatch):
    A, B, there, back, _ = halves(5, 25)
    monkeypatch.setattr(match_crossed, "available_bytes", lambda: 1000)
    result = bm.match(kernels=(A, B), crossed=(there, back), rng=0, time_limit=20)
    assert result.bound_name != "level-1 RLT"
    assert result.lower_bound == result.verify() <= result.cost


@pytest.mark.parametrize("distortion", ["gw", "inner-product"])
def test_the_bound_of_many_items_has_a_certificate_that_files_keep(distortion, tmp_path):
    A, B, there, back, truth = halves(4, 26, noise=0.05)
    result = bm.match(kernels=(A, B), crossed=(there, back), distortion=distortion, rng=0, time_limit=10)
    assert (result.permutation == truth).all()
    assert -np.inf < result.lower_bound == result.verify() < result.cost
    again = bm.load(result.save(tmp_path / "m.npz"))
    assert (again.cost, again.lower_bound, again.verify()) == (result.cost, result.lower_bound, result.verify())
    weaker = replace(result, proof=None, lower_bound=result.cost, status="optimal").save(tmp_path / "forged.npz")
    found = bm.load(weaker)
    assert (found.lower_bound, found.status) == (None, "heuristic")
    with_less = replace(result, cost=result.lower_bound).save(tmp_path / "cheaper.npz")
    assert bm.load(with_less).cost == result.cost


def test_networkx_graphs_and_lists_of_edges(tmp_path):
    networkx = pytest.importorskip("networkx")
    with pytest.raises(ValueError, match=r"networkx graph; graphs are kernels=\(G, H\)"):
        bm.match(networkx.path_graph(3), networkx.path_graph(3))
    one = networkx.DiGraph()
    one.add_weighted_edges_from([("a", "b", 2), ("b", "c", 1), ("c", "a", 5), ("a", "d", 3)])
    two = networkx.relabel_nodes(one, {"a": "z", "b": "y", "c": "x", "d": "w"})
    two = networkx.DiGraph(two.reverse().reverse())
    result = bm.match(kernels=(one, two), rng=0)
    pairs = {result.task.source_names[i]: result.task.target_names[j] for i, j in result.pairs}
    assert pairs == {"a": "z", "b": "y", "c": "x", "d": "w"}
    path = tmp_path / "edges.csv"
    path.write_text("from,to,n\na,b,2\nb,c,1\nc,a,4\nc,a,1\na,d,3\n", encoding="utf-8")
    task = bm.Task(kernels=(str(path), two))
    assert task.source_names == ("a", "b", "c", "d")
    assert (task.sides[0] == networkx.to_numpy_array(one)).all()  # edges that repeat are added up
    undirected = networkx.Graph([("a", "b"), ("b", "c"), ("c", "c")])
    assert bm.Task(kernels=(undirected, undirected)).sides[0].tolist() == [[0, 1, 0], [1, 0, 1], [0, 1, 1]]
    with pytest.raises(ValueError, match="other nodes than the first"):
        bm.Task(kernels=[(one, two), (networkx.relabel_nodes(one, {"a": "q"}), two)])
    undirected.add_edge("a", "c", weight=None)
    with pytest.raises(ValueError, match="weight None; expected a number"):
        bm.Task(kernels=(undirected, undirected))
    sparse = bm.Task(kernels=[(csr_array(np.eye(3)), csr_array(np.eye(3)))] * 2)
    assert len(sparse.layers) == 2


def test_weights_of_edges():
    M = np.array([[0.0, 3.0], [7.0, 0.0]])
    assert EDGE_WEIGHTS["log"](M) == pytest.approx(np.log1p(M))
    assert EDGE_WEIGHTS["binary"](M).tolist() == [[0, 1], [1, 0]]
    assert EDGE_WEIGHTS["ranks"](M).tolist() == [[0, 0.5], [1, 0]]
    task = bm.Task(kernels=(M, M), edge_weights="log", crossed=(M, M))
    assert task.sides[0] == pytest.approx(np.log1p(M))
    assert task.crossed[0].given[0] == pytest.approx(np.log1p(M))
    with pytest.raises(ValueError, match="did you mean 'log'"):
        bm.Task(kernels=(M, M), edge_weights="lg")
    with pytest.raises(ValueError, match="edge_weights='log'; expected one or more, for the graphs of kernels="):
        bm.Task(M, M, edge_weights="log")
    with pytest.raises(ValueError, match=r"edge_weights=\[\]; expected one or more"):
        bm.Task(kernels=(M, M), edge_weights=[])


def test_several_weights_of_edges_are_a_layer_each():
    A, B, there, back, _ = halves(0, 6, noise=0.3)
    C, D, along, against, _ = halves(1, 6, noise=0.3)
    given = {"kernels": [(A, B), (C, D)], "crossed": [(there, back), (along, against)], "weights": [1, 0.5]}
    both = bm.Task(**given, distortion=["gw", "gw"], edge_weights=("log", "binary"))
    one, other = (bm.Task(**given, edge_weights=way) for way in ("log", "binary"))
    assert both.weights == (1.0, 0.5, 1.0, 0.5)
    for p in ([0, 1, 2, 3, 4, 5], [3, 1, 5, 0, 2, 4]):
        parts = one.problem.objective(p) + other.problem.objective(p)
        assert both.problem.objective(p) == pytest.approx(parts, rel=1e-12)
    single = bm.Task(kernels=(A, B), edge_weights=["none", "ranks"])
    assert len(single.layers) == 2
    assert single.given_layers[0][0].tolist() == A.tolist()
    with pytest.raises(ValueError, match="crossed has 2 pairs of matrices; expected 1: one for each layer"):
        bm.Task(kernels=(A, B), crossed=given["crossed"], edge_weights=("log", "binary"))


EDGES = [("a", "b", 2.0), ("b", "c", 1.0)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b,2\nb,c,1\n", EDGES),
        ("bodyId_pre,bodyId_post,weight\na,b,2\nb,c,1\n", EDGES),
        ("Neuron 1,Neuron 2,Type,Nbr\na,b,EJ,2\nb,c,S,1\n", EDGES),  # columns that are not meant are passed over
        (",from,to,synapses\n0,a,b,2\n1,b,c,1\n", EDGES),  # as pandas writes an index
        ("x,y,z\na,b,2\nb,c,1\n", EDGES),
        ("\ufefffrom;to;weight\r\na;b;2\r\nb;c;1\r\n", EDGES),
        ("a\tb\t2\nb\tc\t1\n", EDGES),
        ("# a comment\na b 2\nb c 1\n", EDGES),
        ("pre_id,post_id\na,b\nb,c\n", [("a", "b", 1.0), ("b", "c", 1.0)]),
        ("source,target,2\ntarget,sink,1\n", [("source", "target", 2.0), ("target", "sink", 1.0)]),  # no titles
        ("1,2,3\n2,3,1\n3,1,1\n", [("1", "2", 3.0), ("2", "3", 1.0), ("3", "1", 1.0)]),
        ("a,b,1\nalone\n", [("a", "b", 1.0), ("alone", "alone", 0.0)]),
        (",a,b\na,,2\nb,1,\n", [*((x, x, 0.0) for x in "abab"), ("a", "b", 2.0), ("b", "a", 1.0)]),
    ],
)
def test_edges_are_read_as_people_have_them(tmp_path, text, expected):
    path = tmp_path / "edges.txt"
    path.write_text(text, encoding="utf-8")
    assert read_edges(path) == expected


def test_a_data_frame_keeps_the_names_of_its_nodes():
    pandas = pytest.importorskip("pandas")
    one = pandas.DataFrame([[0, 1, 2.0], [0, 0, 1], [1, 0, 0]], index=list("abc"), columns=list("abc"))
    other = one.loc[list("cab"), list("bca")]  # rows and columns in different orders
    frame = bm.match(kernels=(one, other), rng=0).to_frame()
    assert frame["source"].tolist() == frame["target"].tolist() == list("abc")


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "no edge"), ("a,b,1\na,b,c,d\n", "edge 2"), ("a,b,1\nb,c,x\n", "edge 2"), ("a\nb\n", "no edge")],
)
def test_bad_lists_of_edges_are_named(tmp_path, text, words):
    path = tmp_path / "e.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=words):
        read_edges(path)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"crossed": np.eye(3)}, "expected two matrices"),
        ({"crossed": (np.eye(3), np.eye(4))}, r"crossed\[1\] has shape \(4, 4\)"),
        ({"crossed": (np.eye(3), np.eye(3)), "distortion": "kl"}, "expected 'gw' or 'inner-product'"),
        ({"crossed": (np.eye(3), np.eye(3)), "unmatched_cost": 1.0}, "unmatched_cost"),
        ({"crossed": [(np.eye(3), np.eye(3))] * 2}, "one for each layer"),
    ],
)
def test_bad_crossed_terms_are_named(more, words):
    with pytest.raises(ValueError, match=words):
        bm.match(kernels=(np.eye(3), np.eye(3)), **more)


def test_unequal_sizes_have_no_crossed_term():
    with pytest.raises(ValueError, match="equal numbers"):
        bm.match(kernels=(np.eye(3), np.eye(4)), crossed=(np.eye(3), np.eye(3)))


def test_an_assessment_of_many_items_shows_exchanges_that_cost_nothing():
    A, B, there, back, truth = halves(6, 26)
    for M in (A, there, back.T):
        M[3] = M[5]
    A[:, 3], back[:, 3], A[3, 3] = A[:, 5], back[:, 5], A[5, 5]
    A[3, 5] = A[5, 3] = A[3, 3] = A[5, 5] = 0.0  # sources 3 and 5 have the same edges
    task = bm.Task(kernels=(A, B), crossed=(there, back), distortion="inner-product", standardize=False)
    swapped = truth.copy()
    swapped[[3, 5]] = truth[[5, 3]]
    term, costs = task.crossed[0], task.crossed[0].swap_costs(truth)
    for r, s in ((3, 5), (0, 7), (9, 2)):
        other = truth.copy()
        other[[r, s]] = truth[[s, r]]
        assert costs[r, s] == pytest.approx(term.cost(other) - term.cost(truth), abs=1e-9)
    result = bm.match(task, rng=0, time_limit=5)
    trust = result.assess(rng=0)
    assert any({3, 5} <= set(group) for group in trust.ambiguous)
    assert trust.found_regret[[3, 5]] == pytest.approx([0, 0], abs=1e-9)
    assert trust.found_regret.max() > 0
    assert trust.p_value is None


def test_exchanges_end_where_only_rounding_is_left_to_gain():
    """Before, numbers with a large common offset were exchanged without end."""
    rng = np.random.default_rng(0)
    A, B, there, back = (rng.random((26, 26)) + 1e9 for _ in range(4))
    task = bm.Task(kernels=(A, B), crossed=(there, back), distortion="inner-product", standardize=False)
    landscape, count = Landscape.of(task.halves.problem, task.crossed), 0

    class Counted(Budget):
        @property
        def stopped(self) -> bool:
            nonlocal count
            count += 1
            return count > 10_000

    landscape.polish(rng.permutation(26), Counted())
    assert count < 1000
