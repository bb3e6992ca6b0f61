"""The .dd files of the graph-matching community."""

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import all_permutations, problems, random_problem

from blindmatch.problem.dd import from_qap, read_dd, write_dd

SMALL = """c a comment
p 2 3 3 1
a 0 0 2 -1.5
a 1 1 0 2
i0 0 1.0 2.0
a 2 1 1 0.25
n0 0 1
e 0 2 -4e-1
"""


def partial_labellings(n):
    """All injective labellings, some items unmatched."""
    for p in all_permutations(n):
        for mask in range(2**n):
            yield np.where([mask >> i & 1 for i in range(n)], p, -1)


@given(problems(min_size=1, max_size=4))
@settings(max_examples=25)
def test_a_full_match_costs_the_same_and_beats_all_others(problem):
    model = from_qap(problem)
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
    written, read = from_qap(problem), read_dd(path)
    assert (read.left, read.right, read.offset) == (written.left, written.right, written.offset)
    for name in ("assignments", "costs", "edges", "edge_costs"):
        assert np.array_equal(getattr(read, name), getattr(written, name)), name
    if problem.forbidden is not None:
        listed = np.zeros((problem.n, problem.n), dtype=bool)
        listed[tuple(read.assignments.T)] = True
        assert (listed == ~problem.forbidden).all()


def test_a_file_of_others(tmp_path):
    path = tmp_path / "small.dd"
    path.write_text(SMALL)
    model = read_dd(path)
    assert (model.left, model.right, model.offset) == (2, 3, 0.0)
    assert model.objective(np.array([2, 1])) == -1.5 + 0.25 - 0.4
    assert model.objective(np.array([2, -1])) == -1.5


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("p 2 3 3 1", "p 2 3 3", "line 2: expected 'p LEFT"),
        ("p 2 3 3 1", "p 2 3 4 1", r"announces \[4, 1\]"),
        ("p 2 3 3 1\n", "", "no line 'p"),
        ("a 1 1 0 2", "a 1 1 0", "line 4: expected 'a ID"),
        ("a 1 1 0 2", "a 1 1 0 nan", "line 4: the cost nan"),
        ("a 1 1 0 2", "a 1 1 x 2", "line 4"),
        ("a 1 1 0 2", "a 5 1 0 2", "not numbered"),
        ("a 1 1 0 2", "a 1 2 0 2", "outside of 2 left"),
        ("e 0 2 -4e-1", "e 0 3 1", "outside of 0 to 2"),
        ("e 0 2 -4e-1", "e 0 -1 1", "outside of 0 to 2"),
        ("c a comment", "x what", "line 1: unknown line type"),
    ],
)
def test_faults_name_the_file_and_the_line(tmp_path, old, new, message):
    path = tmp_path / "bad.dd"
    path.write_text(SMALL.replace(old, new))
    with pytest.raises(ValueError, match=message) as caught:
        read_dd(path)
    assert "bad.dd" in str(caught.value)


def test_what_is_not_text(tmp_path):
    path = tmp_path / "bad.dd"
    path.write_bytes(b"\xff\x00\x80")
    with pytest.raises(ValueError, match=r"bad\.dd: not a text file"):
        read_dd(path)


def test_the_written_file_obeys_libmpopts_rules(tmp_path):
    """Its parser wants edges with the smaller assignment first, no edge twice, and no edge inside a row or column."""
    write_dd(tmp_path / "p.dd", random_problem(0, 5, "asymmetric", linear=True))
    model = read_dd(tmp_path / "p.dd")
    first, second = model.edges.T
    assert (first < second).all()
    assert len(np.unique(model.edges, axis=0)) == len(model.edges)
    assert (model.assignments[first] != model.assignments[second]).all()
