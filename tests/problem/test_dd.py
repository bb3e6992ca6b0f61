"""The .dd files of the graph-matching community."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import all_permutations, problems, random_problem

import blindmatch as bm
from blindmatch.problem.graph_matching import GraphMatching, graph_matching, write_dd


def model_in(path):
    """The model in a file, as another program reads it."""
    lines = [line.split() for line in path.read_text(encoding="ascii").splitlines()]
    [sizes] = [[int(word) for word in words] for kind, *words in lines if kind == "p"]
    a = np.array([words for kind, *words in lines if kind == "a"], dtype=float).reshape(-1, 4)
    e = np.array([words for kind, *words in lines if kind == "e"], dtype=float).reshape(-1, 3)
    assert sizes[2:] == [len(a), len(e)]
    assert a[:, 0].tolist() == list(range(len(a)))
    offset = float(path.read_text(encoding="ascii").split("offset ")[1].split(":")[0])
    return GraphMatching(*sizes[:2], a[:, 1:3].astype(int), a[:, 3], e[:, :2].astype(int), e[:, 2], offset)


def partial_labellings(n):
    """All injective labellings, some items unmatched."""
    for p in all_permutations(n):
        for mask in range(2**n):
            yield np.where([mask >> i & 1 for i in range(n)], p, -1)


@given(problems(min_size=1, max_size=4))
@settings(max_examples=25)
def test_a_full_match_costs_the_same_and_beats_all_others(problem):
    model = graph_matching(problem)
    full = {tuple(p): model.objective(p) + model.offset for p in all_permutations(problem.n)}
    scale = 1e-12 * (problem.scale + abs(model.offset) + 1)
    for p, cost in full.items():
        assert cost == pytest.approx(problem.objective(p), abs=scale)
    best = min(full.values())
    for labels in partial_labellings(problem.n):
        if (labels < 0).any():
            assert model.objective(labels) + model.offset > best


@given(problems(min_size=1, max_size=5, forbidden=0.3))
@settings(max_examples=25)
def test_round_trip(tmp_path_factory, problem):
    path = tmp_path_factory.mktemp("dd") / "problem.dd"
    write_dd(path, problem)
    written, read = graph_matching(problem), model_in(path)
    assert (read.left, read.right, read.offset) == (written.left, written.right, written.offset)
    for name in ("assignments", "costs", "edges", "edge_costs"):
        assert np.array_equal(getattr(read, name), getattr(written, name)), name
    if problem.forbidden is not None:
        listed = np.zeros((problem.n, problem.n), dtype=bool)
        listed[tuple(read.assignments.T)] = True
        assert (listed == ~problem.forbidden).all()


def test_the_written_file_obeys_libmpopts_rules(tmp_path):
    """Its parser wants edges with the smaller assignment first, no edge twice, and no edge inside a row or column."""
    write_dd(tmp_path / "p.dd", random_problem(0, 5, "asymmetric", linear=True))
    model = model_in(tmp_path / "p.dd")
    first, second = model.edges.T
    assert (first < second).all()
    assert len(np.unique(model.edges, axis=0)) == len(model.edges)
    assert (model.assignments[first] != model.assignments[second]).all()


def same_costs(read, problem):
    for p in all_permutations(problem.n):
        assert read.allows(p) == problem.allows(p)
        if problem.allows(p):
            assert read.objective(p) == pytest.approx(problem.objective(p), abs=1e-9 * (1 + problem.scale))


def test_tiny_numbers_are_not_drowned_by_the_offset(tmp_path):
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(2, 4, 4))
    problem = bm.QAP(A + A.T, (B + B.T) * 1e-60)
    again = bm.QAP.load(problem.save(tmp_path / "p.dd"))
    for p in all_permutations(4):
        assert again.objective(p) == pytest.approx(problem.objective(p), rel=1e-9, abs=1e-72)


@pytest.mark.parametrize("kind", ["symmetric", "asymmetric", "sum"])
@pytest.mark.parametrize("seed", range(4))
def test_a_problem_is_read_as_it_was_written(kind, seed, tmp_path):
    problem = random_problem(seed, 5, kind, linear=True)
    same_costs(bm.QAP.load(problem.save(tmp_path / "p.dd")), problem)


@pytest.mark.parametrize("seed", range(4))
def test_forbidden_pairs_are_read_as_they_were_written(seed, tmp_path):
    problem = random_problem(seed, 5, "symmetric", linear=True, forbidden=0.3)
    read = bm.QAP.load(problem.save(tmp_path / "p.dd"))
    assert (read.forbidden == problem.forbidden).all()
    same_costs(read, problem)


@pytest.mark.parametrize("mirror", [1, 0])
@pytest.mark.parametrize("odd", [0, 1])
def test_integers_stay_integers(mirror, odd, tmp_path):
    """Then bounds can be rounded up as before."""
    A, B = np.random.default_rng(odd).integers(0, 9, (2, 6, 6)) * (2 - odd)
    if mirror:
        A, B = A + A.T, B + B.T
    problem = bm.QAP(A, B, np.diag(np.arange(6)), constant=3)
    read = bm.QAP.load(problem.save(tmp_path / "p.dd"))
    assert read.exact
    assert read.granularity == problem.granularity
    assert read.symmetric == problem.symmetric
    same_costs(read, problem)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("left", "right"), [(2, 3), (3, 2), (3, 3)])
def test_items_of_other_files_may_stay_unmatched(seed, left, right, tmp_path):
    """As the format says: the optimum is the least cost of all partial labellings."""
    rng = np.random.default_rng(seed)
    costs, weights = rng.integers(-9, 4, (left, right)), rng.integers(-3, 4, (2, left, right))
    pairs = [(i, j) for i in range(left) for j in range(right) if rng.random() < 0.8 or seed < 2]
    lines = [f"a {at} {i} {j} {costs[i, j]}" for at, (i, j) in enumerate(pairs)]
    edges = [
        f"e {a} {b} {int(abs(i - k) * abs(j - m) * weights[0, 0, 0])}"
        for a, (i, j) in enumerate(pairs)
        for b, (k, m) in enumerate(pairs)
        if a < b and i != k and j != m
    ]
    head = f"c not ours\np {left} {right} {len(lines)} {len(edges)}"
    (tmp_path / "p.dd").write_text("\n".join([head, *lines, *edges, "n0 0 1.5 2.5"]))
    read = bm.QAP.load(tmp_path / "p.dd")
    a, e = (np.array([line.split()[1:] for line in part], dtype=float) for part in (lines, edges))
    e = e.reshape(-1, 3)
    model = GraphMatching(left, right, a[:, 1:3].astype(int), a[:, 3], e[:, :2].astype(int), e[:, 2])
    options = [(*range(right), -1)] * left
    labels = [p for p in itertools.product(*options) if all(p.count(j) <= 1 for j in range(right))]
    usable = [np.array(p) for p in labels if all(j < 0 or (i, j) in pairs for i, j in enumerate(p))]
    found = bm.solve(read, "brute-force", rng=0)
    assert found.cost == min(model.objective(p) for p in usable)
    chosen = np.where(found.permutation < right, found.permutation, -1)
    assert model.objective(chosen) == found.cost


A, E = "a 0 0 0 1\na 1 1 1 1\n", "e 0 1 2\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"p 2 2 3 1\n{A}{E}", "p 2 2 3 1 for 2 assignments and 1 edges"),
        (f"{A}{E}", "expected one line 'p LEFT RIGHT ASSIGNMENTS EDGES'; found none"),
        (f"p 2 2 2 1\n{A}e 0 7 2\n", "the index 7 is not an integer from 0 to 1"),
        (f"p 2 2 2 1\n{A}e 0 1\n", "line 4: 'e 0 1': expected 3 numbers up to 1e\\+100"),
        (f"p 2 2 2 1\n{A}e 0 1 nan\n", "line 4: 'e 0 1 nan': expected 3 numbers up to 1e\\+100"),
        ("p 2 2 2 0\na 0 0 0 1\na 1 0 0 2\n", "an assignment is listed twice"),
        ("p 99999 99999 0 0\n", "99999 x 99999 items; expected at most"),
        (f"c written by blindmatch; offset x:\np 2 2 2 1\n{A}{E}", "offset 'x': expected 1 number up to 1e\\+100"),
        (f"p 2 2 2 1\n{A}e 0 1 1e300\n", "expected 3 numbers up to 1e\\+100"),
        ("", "found none"),
    ],
)
def test_bad_files_are_refused_by_one_sentence(text, message, tmp_path):
    (tmp_path / "p.dd").write_text(text)
    with pytest.raises(ValueError, match=rf"^[^\n]*p\.dd: [^\n]*{message}[^\n]*$"):
        bm.QAP.load(tmp_path / "p.dd")


def test_edges_that_no_qap_has_are_refused(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"a {7 * i + j} {i} {j} 0" for i in range(7) for j in range(7)]
    both = [(a, b) for a in range(49) for b in range(a + 1, 49) if a // 7 != b // 7 and a % 7 != b % 7]
    edges = [f"e {a} {b} {rng.random()}" for a, b in both]
    (tmp_path / "p.dd").write_text("\n".join([f"p 7 7 49 {len(edges)}", *lines, *edges]))
    with pytest.raises(ValueError, match="expected edges that cost what a QAP can cost, a sum of up to 8 products"):
        bm.QAP.load(tmp_path / "p.dd")
