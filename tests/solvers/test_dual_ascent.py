"""What the dual ascent adds to the contract of all solvers: warm starts, and sweeps in batches on several threads."""

import numpy as np
import pytest

import blindmatch as bm
from blindmatch.solvers.base import Budget
from blindmatch.solvers.core_problem import RescaledProblem
from blindmatch.solvers.dual_ascent import DualAscent


def problem_of(n: int, noise: float, seed: int = 0) -> bm.QAP:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    return bm.GromovWasserstein().problem(X, X + noise * rng.normal(size=X.shape))


def test_goes_on_from_the_duals_of_an_earlier_run() -> None:
    problem = problem_of(14, 1.0)
    first = bm.solve(problem, DualAscent(relaxation=True), rng=0)
    cold = bm.solve(problem, DualAscent(relaxation=False), rng=1)
    warm = bm.solve(problem, DualAscent(relaxation=False, start=first.certificate), rng=1)
    assert cold.status == "stalled"
    assert warm.lower_bound > cold.lower_bound
    assert warm.lower_bound >= first.lower_bound - 1e-3 * abs(first.lower_bound)


def test_a_start_survives_the_file(tmp_path) -> None:
    problem = problem_of(10, 1.0)
    certificate = bm.solve(problem, DualAscent(), rng=0).certificate
    certificate.save(tmp_path / "duals.npz")
    again = DualAscent(start=bm.Certificate.load(tmp_path / "duals.npz"))
    direct = DualAscent(start=certificate)
    assert bm.solve(problem, again, rng=2).lower_bound == bm.solve(problem, direct, rng=2).lower_bound


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_any_numbers_are_a_start(scale: float) -> None:
    """Duals of another problem, or nonsense, cost time but never the truth."""
    problem = problem_of(7, 0.5)
    optimum = bm.solve(problem, "brute-force").cost
    noise = np.random.default_rng(1).normal(size=(2, 7, 7, 7)) * scale
    start = bm.Certificate.from_duals(*noise, np.zeros(7))
    result = bm.solve(problem, DualAscent(start=start), rng=0)
    assert result.lower_bound <= optimum + 1e-12
    assert result.cost == pytest.approx(optimum)


def test_a_start_of_another_size_is_refused() -> None:
    start = bm.solve(problem_of(6, 1.0), DualAscent(), rng=0).certificate
    with pytest.raises(ValueError, match=r"start holds duals of size \[6\]; the problem has 8"):
        bm.solve(problem_of(8, 1.0), DualAscent(start=start), rng=0)
    with pytest.raises(ValueError, match="start=3"):
        DualAscent(start=3)  # type: ignore[arg-type]


@pytest.mark.slow
def test_threads_change_nothing_where_sweeps_run_in_batches() -> None:
    problem = problem_of(66, 0.6)
    one, two = (bm.solve(problem, DualAscent(relaxation=False), rng=0, threads=t) for t in (1, 2))
    assert one.lower_bound == two.lower_bound
    for a, b in zip(one.certificate.nodes[0].stages, two.certificate.nodes[0].stages, strict=True):
        assert np.array_equal(a.U, b.U)
        assert np.array_equal(a.V, b.V)
    assert bm.verify(problem, one.certificate) == one.lower_bound <= one.cost


def neighbourhoods(n: int) -> bm.QAP:
    """Relations that matter for near points alone: pairs are ruled out a few at a time."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 12))
    Y = X / np.linalg.norm(X, axis=1, keepdims=True) + 0.3 * rng.normal(size=X.shape) / 12**0.5
    return bm.Gaussian(bandwidth=0.36, normalize=True).problem(X, Y)


@pytest.mark.slow
def test_a_proof_takes_few_stages() -> None:
    """Each stage must be checked: a stage for every pair that is ruled out would take longer than finding them."""
    problem = neighbourhoods(30)
    result = bm.solve(problem, "dual-ascent", rng=0)
    assert result.status == "optimal"
    assert sum(np.mean(~stage.forbidden) for stage in result.certificate.nodes[0].stages) < 9


def test_a_run_ends_in_time_for_the_check_of_its_proof(monkeypatch) -> None:
    scaled = RescaledProblem.of(neighbourhoods(100))  # of which a stage takes about a second to check
    limited, unlimited = scaled.budget(Budget(time_limit=10.0)), scaled.budget(Budget())
    for seconds, most in ((4.0, 30.0), (6.0, 4.0), (8.0, 2.0), (9.5, 1.0)):  # one stage is provided for
        monkeypatch.setattr(Budget, "seconds", seconds)
        assert limited.report(0.0, 1.0, 1, most)
        assert seconds < 5 or not limited.report(0.0, 1.0, 1, most + 2)
        assert unlimited.report(0.0, 1.0, 1, 1e6)
