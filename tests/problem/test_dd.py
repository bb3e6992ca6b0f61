"""The .dd files of the graph-matching community."""

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import all_permutations, problems, random_problem

from blindmatch.problem.exports import GraphMatching, graph_matching, write_dd


def read_dd(path):
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
    written, read = graph_matching(problem), read_dd(path)
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
    model = read_dd(tmp_path / "p.dd")
    first, second = model.edges.T
    assert (first < second).all()
    assert len(np.unique(model.edges, axis=0)) == len(model.edges)
    assert (model.assignments[first] != model.assignments[second]).all()
