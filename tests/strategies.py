"""Small problems for the tests: seeded generators, hypothesis strategies, and enumeration as the judge."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from hypothesis import strategies as st

import blindmatch as bm

KINDS = ("symmetric", "asymmetric", "mixed", "sum", "diagonal")


def rng_of(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def matrix(rng: np.random.Generator, n: int, *, symmetric: bool, integer: bool) -> np.ndarray:
    values = rng.integers(-9, 10, (n, n)).astype(float) if integer else rng.standard_normal((n, n))
    return values + values.T if symmetric else values


def random_problem(
    seed: int, n: int, kind: str = "symmetric", *, integer: bool = False, linear: bool = False, forbidden: float = 0.0
) -> bm.QAP:
    """A problem of one of the `KINDS`; `forbidden` is the share of forbidden pairs, the identity stays allowed."""
    rng = rng_of(seed)
    sides = {"symmetric": (True, True), "asymmetric": (False, False), "mixed": (True, False), "diagonal": (True, True)}
    count = 2 if kind == "sum" else 1
    factors = []
    for index in range(count):
        source, target = sides.get(kind, ((True, True), (False, False))[index])
        factors.append(tuple(matrix(rng, n, symmetric=side, integer=integer) for side in (source, target)))
    if kind == "symmetric":
        for pair in factors:
            for side in pair:
                np.fill_diagonal(side, 0.0)
    cost = matrix(rng, n, symmetric=False, integer=integer) * 5 if linear else None
    mask = None
    if forbidden:
        mask = rng.random((n, n)) < forbidden
        np.fill_diagonal(mask, False)
    constant = float(rng.integers(-50, 50)) if integer else float(rng.standard_normal())
    return bm.QAP.from_factors(factors, cost, constant, forbidden=mask)


def gw_problem(seed: int, n: int, noise: float = 0.3, dimension: int = 4) -> bm.QAP:
    """Noisy copies of the same points in another order, as a Gromov-Wasserstein problem."""
    X, Y = embeddings(seed, n, noise, dimension)
    return bm.GromovWasserstein().problem(X, Y)


def embeddings(seed: int, n: int, noise: float = 0.3, dimension: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = rng_of(seed)
    X = rng.standard_normal((n, dimension))
    turned = X @ np.linalg.qr(rng.standard_normal((dimension, dimension)))[0]
    return X, (turned + noise * rng.standard_normal((n, dimension)))[rng.permutation(n)]


def all_permutations(n: int) -> np.ndarray:
    return np.array(list(permutations(range(n))), dtype=np.intp).reshape(-1, n)


def all_costs(problem: bm.QAP) -> tuple[np.ndarray, np.ndarray]:
    """Every permutation that is allowed, and its cost: source after source, all partial permutations at once."""
    n = problem.n
    p, rest, costs = np.zeros((1, 0), dtype=np.int8), np.arange(n, dtype=np.int8)[None], np.array([problem.constant])
    for i in range(n):
        choices = range(n - i)
        last = rest.T.ravel().astype(np.intp)
        p, costs = np.tile(p, (n - i, 1)), np.tile(costs, n - i) + problem.linear[i, last]
        rest = np.concatenate([np.delete(rest, choice, axis=1) for choice in choices])
        for A, B in problem.factors:
            costs += A[i, i] * B[last, last]
            for k in range(i):
                costs += A[i, k] * B[last, p[:, k]] + A[k, i] * B[p[:, k], last]
        p = np.column_stack([p, last.astype(np.int8)])
        if problem.forbidden is not None:
            keep = ~problem.forbidden[i, last]
            p, rest, costs = p[keep], rest[keep], costs[keep]
    return p, costs


def optimum(problem: bm.QAP) -> float:
    return float(all_costs(problem)[1].min())


def slack(problem: bm.QAP) -> float:
    """What rounding may do to an enumerated cost."""
    return 1e-13 * problem.scale


seeds = st.integers(0, 2**32 - 1)


@st.composite
def problems(draw, min_size: int = 1, max_size: int = 6, **fixed) -> bm.QAP:
    options = {
        "kind": draw(st.sampled_from(KINDS)),
        "integer": draw(st.booleans()),
        "linear": draw(st.booleans()),
    }
    return random_problem(draw(seeds), draw(st.integers(min_size, max_size)), **(options | fixed))


@st.composite
def permutations_of(draw, n: int) -> np.ndarray:
    return np.array(draw(st.permutations(range(n))), dtype=np.intp)
