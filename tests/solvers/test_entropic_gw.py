"""Optimal transport as a QAP solver, and the paper's last appendix."""

import numpy as np
import pytest
from strategies import gw_problem, optimum, random_problem, rng_of

import blindmatch as bm
from blindmatch.solvers.base import Budget
from blindmatch.solvers.entropic_gw import EntropicGW, FusedTransport
from blindmatch.solvers.relaxation import random_start

ot = pytest.importorskip("ot", reason="POT is not installed: pip install 'blindmatch[ot]'")
METHODS = ("entropic", "proximal", "bapg", "conditional-gradient")


def relaxed(problem: bm.QAP, S: np.ndarray) -> float:
    """The QAP's cost at a doubly stochastic matrix, straight from its definition, with the means taken out.

    (That changes nothing on permutations, but the objective inside the polytope is only the same with it.)
    """
    form, n = problem.normal_form, problem.n
    (A, B), off = form.factors[0], ~np.eye(problem.n, dtype=bool)
    A, B = ((matrix - matrix[off].mean()) * off for matrix in (A, B))
    constant = form.constant + sum(a.sum() * b.sum() / (n * (n - 1)) for a, b in form.factors)
    return float((A * (S @ B @ S.T)).sum() + (form.linear * S).sum() + constant)


def loss(transport: FusedTransport, plan: np.ndarray) -> float:
    """<M, T> + sum_ijkl (X_ik - Y_jl)^2 T_ij T_kl, for any plan with uniform marginals."""
    constant = ((transport.source**2).sum() + (transport.target**2).sum()) / len(plan) ** 2
    cross = (transport.source * (plan @ transport.target @ plan.T)).sum()
    return float((transport.features * plan).sum() + constant - 2 * cross)


@pytest.mark.parametrize("linear", [False, True])
def test_the_appendix(linear):
    """N times the optimal plan is doubly stochastic, and its objective is N^2 times the plan's."""
    problem = random_problem(3, 6, linear=linear)
    transport, n = FusedTransport(problem), problem.n
    plan = ot.gromov.fused_gromov_wasserstein(
        transport.features, transport.source, transport.target, alpha=0.5, symmetric=True, tol_rel=1e-12, tol_abs=1e-12
    )
    S = n * plan
    assert (S >= 0).all()
    assert S.sum(axis=0) == pytest.approx(np.ones(n), abs=1e-9)
    assert S.sum(axis=1) == pytest.approx(np.ones(n), abs=1e-9)
    # The two objectives differ by a constant that is the same for every plan.
    rng = rng_of(0)
    others = [random_start(n, rng) for _ in range(5)] + [np.eye(n)[rng.permutation(n)] for _ in range(5)]
    shift = relaxed(problem, S) - n**2 * loss(transport, plan)
    for other in others:
        assert relaxed(problem, other) == pytest.approx(n**2 * loss(transport, other / n) + shift, abs=1e-9)


@pytest.mark.parametrize("kind", ["symmetric", "asymmetric", "mixed", "diagonal"])
def test_on_permutations_transport_is_the_problem(kind):
    problem = random_problem(5, 6, kind, linear=True)
    transport, n = FusedTransport(problem), problem.n
    permutations = [rng_of(seed).permutation(n) for seed in range(8)]
    shifts = [problem.objective(p) - n**2 * loss(transport, np.eye(n)[p] / n) for p in permutations]
    assert shifts == pytest.approx([shifts[0]] * len(shifts), abs=1e-9)


def test_the_loss_is_pots_own():
    problem = random_problem(5, 6, "asymmetric", linear=True)
    transport = FusedTransport(problem)
    plan = random_start(6, rng_of(1)) / 6
    uniform = np.full(6, 1 / 6)
    constC, hC1, hC2 = ot.gromov.init_matrix(transport.source, transport.target, uniform, uniform, "square_loss")
    theirs = ot.gromov.gwloss(constC, hC1, hC2, plan) + (transport.features * plan).sum()
    assert loss(transport, plan) == pytest.approx(theirs, rel=1e-6)  # the plan's marginals are uniform up to 1e-6


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_plans(method):
    problem = gw_problem(0, 10, noise=0.05)
    solver = EntropicGW(method=method)
    transport = FusedTransport(problem)
    plans = list(solver.anneal(ot.gromov, transport, np.full((10, 10), 0.01), Budget()))
    for plan in plans:
        assert plan.shape == (10, 10)
        assert (plan >= 0).all()
        assert plan.sum() == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("method", ["entropic", "proximal", "bapg"])
def test_a_clear_match_is_found(method):
    problem = gw_problem(1, 8, noise=0.02)
    assert bm.solve(problem, EntropicGW(method=method), rng=0).cost == pytest.approx(optimum(problem), abs=1e-9)


def test_a_mean_that_dwarfs_the_differences_does_no_harm():
    rng = rng_of(0)
    X = rng.standard_normal((9, 3))
    K = bm.GromovWasserstein().kernel(X)
    p = rng.permutation(9)
    noise = np.triu(rng.normal(size=(9, 9)), 1) * 1e-3
    G = K[np.ix_(p, p)] + noise + noise.T
    near, far = (
        bm.solve(bm.QAP(-(K + shift), 2 * (G + shift)), "entropic-gw", rng=0).permutation for shift in (0.0, 1e6)
    )
    assert (near == np.argsort(p)).all()
    assert (far == near).all()


def test_sums_of_factor_pairs_are_refused():
    with pytest.raises(ValueError, match="factor pairs"):
        bm.solve(random_problem(0, 5, "sum"), "entropic-gw")
