"""Proofs that leave children out because a symmetry maps a sibling to them."""

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest

import blindmatch as bm
from blindmatch.proof.certificate import COLUMN, ROW, Certificate, Node, Stage


def swap(n, a, b):
    image = np.arange(n)
    image[[a, b]] = image[[b, a]]
    return image


@pytest.fixture
def problem():
    """Targets that all look alike: every renumbering of them is a symmetry."""
    A = np.array([[0.0, 1, 2, 3], [1, 0, 4, 5], [2, 4, 0, 6], [3, 5, 6, 0]])
    return bm.QAP(A, np.ones((4, 4)) - np.eye(4))


@pytest.fixture
def certificate():
    """Source 0 takes target 0; targets 1 to 3 are left out, each for target 0."""
    stage = Stage(np.zeros((3, 3, 3)), np.zeros((3, 3, 3)), np.zeros(3), np.zeros((3, 3), dtype=bool))
    root = Node(line=(ROW, 0), skipped=tuple((j, 0, j - 1) for j in (1, 2, 3)))
    child = Node(parent=0, pair=(0, 0), stages=(stage,))
    return Certificate(4, (root, child), symmetries=tuple((COLUMN, swap(4, 0, j)) for j in (1, 2, 3)))


def test_siblings_stand_for_skipped_children(problem, certificate):
    optimum = min(problem.objective(np.array(p)) for p in permutations(range(4)))
    assert bm.verify(problem, certificate) == optimum == 42.0


@pytest.mark.parametrize(
    "change",
    [
        lambda c: replace(c, symmetries=()),
        lambda c: replace(c, symmetries=((ROW, swap(4, 0, 1)), *c.symmetries[1:])),
        lambda c: replace(c, symmetries=((COLUMN, swap(4, 0, 2)), *c.symmetries[1:])),
        lambda c: replace(c, symmetries=((COLUMN, np.zeros(4, dtype=int)), *c.symmetries[1:])),
        lambda c: replace(c, nodes=(replace(c.nodes[0], skipped=c.nodes[0].skipped[1:]), c.nodes[1])),
    ],
    ids=["no symmetry", "wrong side", "wrong image", "no permutation", "child forgotten"],
)
def test_a_child_without_a_reason_proves_nothing(problem, certificate, change):
    assert bm.verify(problem, change(certificate)) == -np.inf


def test_a_symmetry_must_hold_for_this_problem(problem, certificate):
    B = problem.factors[0][1].copy()
    B[0, 1] = B[1, 0] = 1 - 1e-12
    assert bm.verify(bm.QAP(problem.factors[0][0], B), certificate) == -np.inf
    assert bm.verify(bm.QAP(*problem.factors[0], linear=np.eye(4)), certificate) == -np.inf


def test_a_fixed_pair_that_moves_breaks_the_symmetry(problem, certificate):
    """One level deeper, the symmetry has to keep the target that is taken already."""
    root, child = certificate.nodes
    below = replace(child, stages=(), line=(ROW, 1), skipped=((2, 1, 0), (3, 1, 1)))
    leaf_stage = Stage(np.zeros((2, 2, 2)), np.zeros((2, 2, 2)), np.zeros(2), np.zeros((2, 2), dtype=bool))
    leaf = Node(parent=1, pair=(1, 1), stages=(leaf_stage,))
    good = ((COLUMN, swap(4, 1, 2)), (COLUMN, swap(4, 1, 3)))
    bad = ((COLUMN, np.array([3, 2, 1, 0])), (COLUMN, swap(4, 1, 3)))
    deep = Certificate(4, (replace(root, skipped=()), below, leaf))
    root_only = tuple((COLUMN, swap(4, 0, j)) for j in (1, 2, 3))
    for symmetries, proves in ((good, True), (bad, False)):
        whole = replace(
            deep,
            nodes=(replace(root, skipped=tuple((j, 0, j + 1) for j in (1, 2, 3))), below, leaf),
            symmetries=(*symmetries, *root_only),
        )
        assert np.isfinite(bm.verify(problem, whole)) == proves


def test_round_trip_and_renumbering(problem, certificate, tmp_path):
    certificate.save(tmp_path / "c.npz")
    assert bm.verify(problem, Certificate.load(tmp_path / "c.npz")) == 42.0
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(4), rng.permutation(4)
    inverse = np.argsort(rows), np.argsort(columns)
    there = certificate.unshuffled(*inverse)  # the certificate of the shuffled problem
    assert bm.verify(problem.permuted(rows, columns), there) == 42.0
    assert bm.verify(problem, there.unshuffled(rows, columns)) == 42.0


def test_branch_and_bound_uses_them():
    """Distances on a 3 x 4 grid have mirror images; the proof is small, and complete."""
    rng = np.random.default_rng(1)
    grid = np.array([(x, y) for x in range(3) for y in range(4)])
    B = np.abs(grid[:, None] - grid[None]).sum(-1).astype(float)
    A = np.triu(rng.integers(0, 6, size=(12, 12)), 1).astype(float)
    problem = bm.QAP(A + A.T, B)
    result = bm.solve(problem, "branch-and-bound", rng=0, time_limit=60)
    assert result.status == "optimal"
    assert result.certificate.symmetries
    assert any(node.skipped for node in result.certificate.nodes)
    assert bm.verify(problem, result.certificate) == result.cost


def test_one_symmetry_is_found_for_each_point_that_another_one_stands_for():
    """A hypercube has too many symmetries to list, but all of its corners are alike: 15 of 16 children are skipped."""
    corners = np.array(list(product((0, 1), repeat=4)))
    A = np.triu(np.random.default_rng(0).integers(0, 9, (16, 16)), 1)
    problem = bm.QAP(A + A.T, np.abs(corners[:, None] - corners).sum(axis=-1))
    certificate = bm.solve(problem, "branch-and-bound", node_limit=2, rng=0).certificate
    images = [image for side, image in certificate.symmetries if side == COLUMN]
    assert max(len({int(image[point]) for image in images} - {point}) for point in range(16)) == 15
    assert len(certificate.nodes[0].skipped) == 15
    assert bm.verify(problem, certificate) <= bm.solve(problem, "tabu", rng=0).cost
