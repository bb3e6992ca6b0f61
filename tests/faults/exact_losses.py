"""Random tasks and problems of a few items, with the cost of every match in exact rational arithmetic."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

import blindmatch as bm

Match = tuple[int, ...]


@dataclass
class Case:
    """The arguments of a call, and what every match costs in the user's own numbers."""

    arguments: dict[str, Any]
    costs: dict[Match, Fraction]


def matrix(rng: np.random.Generator, n: int) -> np.ndarray:
    """Integers, distances, rounded or wild numbers; half of them symmetric, half with a zero diagonal."""
    kind = rng.integers(4)
    if kind == 0:
        M = rng.integers(-9, 10, (n, n)).astype(float)
    elif kind == 1:
        points = rng.standard_normal((n, 2))
        M = np.linalg.norm(points[:, None] - points, axis=2)
    elif kind == 2:
        M = np.round(rng.random((n, n)), 1)
    else:
        M = rng.standard_normal((n, n)) * 10.0 ** rng.integers(-6, 7, (n, n))
    M = (M + M.T) / 2 if rng.random() < 0.5 else M
    if rng.random() < 0.5:
        np.fill_diagonal(M, 0.0)
    return M


def _exact(M: np.ndarray) -> list[list[Fraction]]:
    return [[Fraction(float(x)) for x in row] for row in M]


def _loss(name: str, a: Fraction, b: Fraction) -> Fraction:
    return (a - b) ** 2 if name == "gw" else -a * b


def random_task(rng: np.random.Generator) -> Case:
    """Kernels, layers with weights, edges between the sides, similarities and prices, with offsets and scales."""
    n = int(rng.integers(2, 5))
    across = rng.random() < 0.4
    m = n if across or rng.random() < 0.5 else int(rng.integers(2, 5))
    count = int(rng.choice([1, 1, 2, 3]))
    names = [str(rng.choice(["gw", "gw", "inner-product"])) for _ in range(count)]
    offset, scale = float(rng.choice([0, 0, 0.1, 1e5, 1e9, -1e12])), 10.0 ** float(rng.choice([0, 0, 5, -120, 70]))

    def made(size: int) -> np.ndarray:
        return (matrix(rng, size) + offset) * scale

    layers = [(made(n), made(m)) for _ in range(count)]
    between = [(made(n), made(n)) for _ in range(count)] if across else []
    weights = [float(rng.choice([0.5, 2, 0.1, 3, 1 / 3, 100])) for _ in range(count)]
    arguments: dict[str, Any] = {"kernels": layers, "weights": weights, "distortion": names, "standardize": False}
    arguments |= {"crossed": between} if across else {}
    price, similarity, by = None, None, 1.0
    if rng.random() < 0.3:
        similarity, by = rng.standard_normal((n, m)) * scale**2, float(rng.choice([0.1, 3, 1 / 3]))
        arguments |= {"similarity": similarity, "similarity_weight": by}
    if not across and rng.random() < 0.3:
        price = float(rng.choice([0.1, 1, 5])) * scale**2
        arguments["unmatched_cost"] = price

    inside = [(_exact(K), _exact(G)) for K, G in layers]
    sides = [(_exact(there), _exact(back)) for there, back in between]
    reward = None if similarity is None else _exact(similarity)

    def cost(p: Match) -> Fraction:
        pairs = [(i, j) for i, j in enumerate(p) if j >= 0]
        total = Fraction(0) if price is None else Fraction(price) * (n + m - 2 * len(pairs))
        for name, weight, (K, G) in zip(names, weights, inside, strict=True):
            total += Fraction(weight) * sum(_loss(name, K[i][k], G[j][q]) for i, j in pairs for k, q in pairs)
        for name, weight, (there, back) in zip(names, weights, sides, strict=False):
            total += Fraction(weight) * sum(_loss(name, there[i][q], back[j][k]) for i, j in pairs for k, q in pairs)
        return total - (0 if reward is None else Fraction(by) * sum(reward[i][j] for i, j in pairs))

    return Case(arguments, {p: cost(p) for p in _matches(n, m, min(n, m) if price is None else 0)})


def random_qap(rng: np.random.Generator) -> Case:
    """Sums of factor pairs, more targets than sources, linear terms, forbidden pairs, and a least or largest cost."""
    m = int(rng.integers(1, 6))
    n = m if rng.random() < 0.5 else int(rng.integers(1, m + 1))
    offset, scale = float(rng.choice([0, 0, 1e6, 1e12])), 10.0 ** float(rng.choice([0, 0, -150, 60]))
    factors = [
        tuple((matrix(rng, size) + offset) * scale for size in (n, m)) for _ in range(int(rng.choice([1, 1, 2])))
    ]
    linear = rng.standard_normal((n, m)) * scale**2 if rng.random() < 0.5 else np.zeros((n, m))
    constant = float(rng.choice([0, 5, -3.7, 1e10])) * scale**2
    forbidden = rng.random((n, m)) < 0.2 * (rng.random() < 0.3)
    exact, terms = [(_exact(A), _exact(B)) for A, B in factors], _exact(linear)

    def cost(p: Match) -> Fraction:
        quadratic = sum(A[i][k] * B[p[i]][p[k]] for A, B in exact for i in range(n) for k in range(n))
        return Fraction(constant) + quadratic + sum(terms[i][j] for i, j in enumerate(p))

    costs = {p: cost(p) for p in itertools.permutations(range(m), n) if not any(forbidden[range(n), p])}
    problem = bm.QAP.from_factors(factors, linear, constant, forbidden=forbidden)
    return Case({"problem": problem, "maximize": bool(rng.random() < 0.5)}, costs)


def _matches(n: int, m: int, fewest: int) -> list[Match]:
    """Partners of n sources among m targets, -1 for none, with at least so many pairs."""
    every = itertools.product(range(-1, m), repeat=n)
    used = ((p, [j for j in p if j >= 0]) for p in every)
    return [p for p, own in used if len(own) >= fewest and len(own) == len(set(own))]
