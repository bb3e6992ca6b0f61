"""The convex quadratic bound: any point proves a true bound, a good one more than the projection bound."""

from dataclasses import replace

import numpy as np
import pytest
from qaplib import needs_qaplib, qaplib
from strategies import optimum, random_problem, rng_of, slack

import blindmatch as bm
from blindmatch.proof.certificate import Certificate, Node
from blindmatch.proof.convex import convex_bound, multipliers
from blindmatch.proof.spectral import projection_bound
from blindmatch.solvers.auto import convex_point
from blindmatch.solvers.base import Budget


@pytest.mark.parametrize("seed", range(120))
def test_no_point_proves_too_much(seed):
    rng = rng_of([3, seed])
    problem = random_problem(
        seed,
        int(rng.integers(3, 7)),
        integer=bool(seed % 2),
        linear=bool(rng.random() < 0.5),
        forbidden=float(rng.choice([0.0, 0.3])),
    )
    best, n = optimum(problem), problem.n
    points = [np.full((n, n), 1 / n), rng.standard_normal((n, n)) * 10.0 ** rng.integers(-3, 3), np.eye(n)]
    found = convex_point(problem, Budget())
    for point in [*points, *([] if found is None else [found])]:
        point = np.clip(point, -1e3, 1e3)
        bound = convex_bound(problem, point)
        assert bound <= best + 1e-12 * slack(problem)
        assert bm.verify(problem, Certificate(n, (Node(spectral=True, point=point),))) >= problem.round_up(bound)


def test_at_the_centre_it_is_the_projection_bound():
    problem = random_problem(0, 9)
    assert convex_bound(problem, np.full((9, 9), 1 / 9)) == pytest.approx(projection_bound(problem), rel=1e-9)


def test_the_multipliers_are_feasible():
    rng = rng_of(0)
    s, t = np.sort(rng.standard_normal(12)), -np.sort(rng.standard_normal(12))
    p, q = multipliers(s, t)
    rest = np.outer(s, t) - p[:, None] - q
    assert rest.min() > -1e-12
    assert np.allclose(np.diag(rest), 0)


@pytest.mark.parametrize("bad", [np.full((4, 4), np.nan), np.full((4, 4), 1e4), np.zeros((3, 4)), np.zeros(4)])
def test_other_points_are_refused(bad):
    with pytest.raises(ValueError, match="a point of shape"):
        bm.verify(random_problem(0, 4), Certificate(4, (Node(spectral=True, point=bad),)))


def test_files_and_renumbering_keep_the_point(tmp_path):
    problem = random_problem(1, 6)
    rng = rng_of(0)
    point = convex_point(problem, Budget())
    certificate = Certificate(6, (Node(spectral=True),)).with_point(point)
    certificate.save(tmp_path / "proof.npz")
    bound = bm.verify(problem, certificate)
    assert bm.verify(problem, Certificate.load(tmp_path / "proof.npz")) == bound
    rows, columns = rng.permutation(6), rng.permutation(6)
    moved = replace(certificate.nodes[0], point=point[np.ix_(rows, columns)])
    back = Certificate(6, (moved,)).unshuffled(rows, columns)
    assert np.array_equal(back.nodes[0].point, point)


@needs_qaplib
def test_it_is_above_the_projection_bound():
    problem = qaplib("nug30")
    bound = convex_bound(problem, convex_point(problem, Budget()))
    assert 5350 < bound < 5353
