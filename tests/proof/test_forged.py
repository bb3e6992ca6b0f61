"""Forged certificates: refused, or a bound that is true. BLINDMATCH_FUZZ=20000 forges that many; CI runs a sample."""

import math
import os
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from proof.forgeries import FORGERS, exact_optimum, forgeries, through_a_file, verdict
from strategies import random_problem
from typer.testing import CliRunner

import blindmatch as bm
from blindmatch.cli.app import app
from blindmatch.proof import rounding, spectral, stage_check
from blindmatch.proof.certificate import ROW, Certificate, Node, Stage

COUNT = int(os.environ.get("BLINDMATCH_FUZZ", "330"))
LARGEST = np.finfo(float).max


def test_forged_certificates_prove_nothing_false(tmp_path):
    seen: dict[str, set[str]] = {name: set() for name in FORGERS}
    for index, (name, problem, optimum, certificate) in enumerate(forgeries(COUNT, seed=1)):
        found = verdict(problem, optimum, certificate)
        assert found != "FALSE", f"forgery {index} of seed 1: {name}"
        seen[name].add(found)
        if index % 10 == 0 and not certificate.symmetries:
            try:
                read = through_a_file(certificate, tmp_path)
            except ValueError:
                continue
            assert verdict(problem, optimum, read) != "FALSE", f"forgery {index} of seed 1, from a file: {name}"
    assert all("true" in found for found in seen.values())  # the forgeries are good enough to be taken seriously
    assert sum("refused" in found for found in seen.values()) > 4


def one_sided_overflow(n: int, size: float = 1e300) -> Stage:
    """Duals of which one sum overflows to infinity and the other does not."""
    U = np.zeros((n, n, n))
    U[0, :, 1:] = size
    return Stage(U, np.zeros((n, n, n)), np.full(n, -LARGEST), np.zeros((n, n), dtype=bool))


def forged_tree(problem: bm.QAP) -> Certificate:
    """Every child of the root but one claims an infinite bound; the last one is solved, and dearer than the optimum."""
    n = problem.n
    costs = {p: problem.objective(np.array(p)) for p in permutations(range(n))}
    dearest = max(range(n), key=lambda j: min(cost for p, cost in costs.items() if p[0] == j))
    nodes = [Node(line=(ROW, 0))]
    for j in range(n):
        nodes.append(Node(0, (0, j), (one_sided_overflow(n - 1),) if j != dearest else ()))
    rest, _, columns = problem.reduced([(0, dearest)])
    result = bm.solve(rest, "dual-ascent", rng=0)
    nodes[1 + dearest] = Node(0, (0, dearest), result.certificate.nodes[0].stages)
    assert len(columns) == n - 1
    return Certificate(n, tuple(nodes))


@pytest.mark.parametrize(
    "forge", [lambda problem: Certificate(5, (Node(stages=(one_sided_overflow(5),)),)), forged_tree]
)
def test_sums_that_overflow_on_one_side_are_refused(forge, tmp_path):
    problem = random_problem(3, 5, integer=True)
    certificate = forge(problem)
    path, data = tmp_path / "forged.npz", tmp_path / "problem.npz"
    certificate.save(path)
    ((A, B),) = problem.factors
    np.savez(data, source_cost=A, target_cost=B, constant=problem.constant)
    for forged in (certificate, Certificate.load(path)):
        with pytest.raises(ValueError, match=r"certificate: U of a stage .* expected numbers between"):
            bm.verify(problem, forged)
    told = CliRunner().invoke(app, ["verify", str(data), str(path)])
    assert told.exit_code == 2
    assert "expected numbers between -1e+250 and 1e+250" in " ".join(told.output.split())


@pytest.mark.parametrize("name", ["U", "V", "column_duals"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1.001e250, -LARGEST])
def test_duals_out_of_range_are_refused(name, value):
    problem = random_problem(0, 4)
    arrays = {"U": np.zeros((4, 4, 4)), "V": np.zeros((4, 4, 4)), "column_duals": np.zeros(4)}
    arrays[name][(1, 2, 3)[: arrays[name].ndim]] = value
    stage = Stage(**arrays, forbidden=np.zeros((4, 4), dtype=bool))
    with pytest.raises(ValueError, match=f"certificate: {name} of a stage goes from"):
        bm.verify(problem, Certificate(4, (Node(stages=(stage,)),)))


def test_the_largest_duals_in_range_prove_something_finite():
    """The argument of rounding.py: nothing overflows up to the limit."""
    problem = random_problem(0, 5)
    for signs in range(8):
        size = [(-1.0) ** (signs >> bit) * rounding.LARGEST_DUAL for bit in range(3)]
        stage = Stage(*(np.full((5, 5, 5), s) for s in size[:2]), np.full(5, size[2]), np.zeros((5, 5), dtype=bool))
        bound = bm.verify(problem, Certificate(5, (Node(stages=(stage,)),)))
        assert -1e255 < bound <= exact_optimum(problem)


def test_duals_beyond_float64_are_refused():
    U = np.zeros((2, 2, 2), dtype=np.longdouble)
    with pytest.raises(ValueError, match=r"U has dtype .*128.* at most 64 bits"):
        Stage(U, np.zeros((2, 2, 2)), np.zeros(2), np.zeros((2, 2), dtype=bool))


def test_a_result_that_is_no_number_proves_nothing(monkeypatch):
    """Nothing reaches this, as far as we know; if something does, it is no bound."""
    problem = random_problem(0, 4)
    stage = Stage(np.zeros((4, 4, 4)), np.zeros((4, 4, 4)), np.zeros(4), np.zeros((4, 4), dtype=bool))
    certificate = Certificate(4, (Node(stages=(stage,)),))
    assert math.isfinite(bm.verify(problem, certificate))
    monkeypatch.setattr(stage_check, "_leaders", lambda *_: np.full((4, 4), 1e308) * 10)
    assert bm.verify(problem, certificate) == -math.inf


@pytest.mark.parametrize("spoil", ["values", "vectors", "nan", "order"])
def test_lapack_is_not_trusted(monkeypatch, spoil):
    """Whatever it returns for eigenvalues and eigenvectors, the projection bound stays a bound."""
    problem = random_problem(0, 5, linear=True)
    honest, eigh = spectral.projection_bound(problem), np.linalg.eigh

    def wrong(matrix):
        values, vectors = eigh(matrix)
        if spoil == "values":
            return values + 1.0, vectors
        if spoil == "vectors":
            return values, vectors + 0.01
        return (values * math.nan, vectors) if spoil == "nan" else (values[::-1], vectors)

    monkeypatch.setattr(np.linalg, "eigh", wrong)
    bound = spectral.projection_bound(problem)
    assert bound < honest
    assert bound == -math.inf or Fraction(bound) <= exact_optimum(problem)


def test_scipy_is_not_trusted(monkeypatch):
    """Any assignment gives column duals, and any column duals a bound."""
    problem = random_problem(0, 5, linear=True)
    honest = spectral.projection_bound(problem)
    monkeypatch.setattr(spectral, "linear_sum_assignment", lambda costs: (np.arange(5), np.arange(5)))
    assert -math.inf < spectral.projection_bound(problem) <= honest + 1e-9


def test_halves_of_denormal_numbers_count_with_huge_ones():
    """Half of 3 * 2^-1074 is no float64; times 1e200 the error would be a third of the cost."""
    A, B = np.zeros((3, 3)), np.zeros((3, 3))
    A[0, 1], A[1, 2] = 3 * 2.0**-1074, 2.0**-1074
    B[0, 1], B[2, 1], B[1, 0], B[0, 2] = 1e200, 1e200, -1e200, 5e199
    problem = bm.QAP(A, B)
    bound = bm.verify(problem, Certificate(3, (Node(spectral=True),)))
    assert bound > -1e-120
    assert Fraction(bound) <= exact_optimum(problem)


def test_sizes_whose_cubes_wrap_around_are_refused(tmp_path):
    path = tmp_path / "c.npz"
    Certificate(2, (Node(stages=(Stage(np.zeros((2, 2, 2)), np.zeros((2, 2, 2)), np.zeros(2), np.eye(2) > 0),)),)).save(
        path
    )
    with np.load(path) as file:
        arrays = {key: file[key] for key in file.files}
    for size in (2**32, 2**22, -1, 0):
        np.savez(path, **(arrays | {"stage_size": np.array([size])}))
        with pytest.raises(ValueError, match=r"not a blindmatch certificate .*stages of sizes"):
            Certificate.load(path)
