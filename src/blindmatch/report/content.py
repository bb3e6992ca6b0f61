"""The numbers that the page draws and measures: bound and cost over time, random pairings, matrices, the plane."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from blindmatch.geometry.kernels import classical_scaling
from blindmatch.io.exchange import json_finite
from blindmatch.problem.qap import QAP
from blindmatch.report.match import Match
from blindmatch.solving.result import Result
from blindmatch.validation import BoolArray, FloatArray, IntArray

MOST_DRAWN = 800  # pairs in the matrices and in the plane; of more pairs, an even selection is drawn
MOST_MOMENTS = 400
BARS = 40


def drawings(match: Match) -> dict[str, Any]:
    """Everything that is drawn, for ``json_finite``."""
    return {
        "source": [match.source_name(i) for i in match.pairs[0].tolist()],
        "target": [match.target_name(j) for j in match.pairs[1].tolist()],
        "right": None if match.truth is None else [match.truth[i] == j for i, j in match.result.pairs],
        "confidence": None if match.trust is None else match.trust.confidence[match.pairs[0]].round(4),
        "nouns": match.nouns,
        "matrices": _matrices(match),
        "plane": _plane(match),
        "trace": moments(match),
        "random": _random(match),
        "cost": match.result.cost,
        "bound": match.result.lower_bound,
    }


def moments(match: Match) -> list[tuple[float, float | None, float | None]]:
    """Seconds, bound and cost at the moments where one of the two changed; at most 400, with the last."""
    kept = history(match.result)
    if len(kept) > MOST_MOMENTS:
        kept = [kept[int(at)] for at in np.linspace(0, len(kept) - 1, MOST_MOMENTS)]
    return kept


def _selection(match: Match) -> IntArray:
    count = len(match.pairs[0])
    return np.unique(np.linspace(0, count - 1, min(count, MOST_DRAWN)).astype(np.intp))


def _matrices(match: Match) -> dict[str, Any] | None:
    """Two matrices in the order of the pairs, how to compare them, and an order that shows groups."""
    drawn = _selection(match)
    square, beside = np.ix_(drawn, drawn), ~np.eye(len(drawn), dtype=bool)
    kernels, problem = matched_kernels(match), match.problem
    if len(drawn) < 2:
        return None
    if kernels is not None:
        K, G = (kernel[square] for kernel in kernels)
        values = np.concatenate([K[beside], G[beside]])
        scales = [_scale(values, values)] * 2
        mode, diagonal = "difference", False
        ends = ["far", "near"] if match.similarity else ["near", "far"]
    elif problem is not None and len(problem.factors) == 1 and len(match.pairs[0]) == problem.n:
        p = match.pairs[1]
        K, G = problem.factors[0][0][square], problem.factors[0][1][np.ix_(p, p)][square]
        diagonal = bool(np.ptp(np.diag(K)) or np.ptp(np.diag(G)))
        scales = [_scale(M.ravel() if diagonal else M[beside], M.ravel()) for M in (K, G)]
        mode, ends = "product", ["", ""]
    else:
        return None
    found = {"mode": mode, "diagonal": diagonal, "ends": ends, "drawn": drawn.tolist()}
    found["order"] = similar_together(K, G).tolist()
    for side, matrix, scale in zip(("source", "target"), (K, G), scales, strict=True):
        bytes_ = np.clip(np.rint((matrix - scale["low"]) / (scale["step"] or 1.0)), 0, 255).astype(np.uint8)
        found[side] = {**scale, "data": base64.b64encode(bytes_.tobytes()).decode()}
    return found


def _scale(shown: FloatArray, values: FloatArray) -> dict[str, float]:
    """The numbers of one byte: low + step * byte, and the range that the colours show."""
    low, high = float(values.min()), float(values.max())
    whole = high - low <= 255 and bool((values == np.rint(values)).all())
    step = 1.0 if whole else (high - low) / 255
    least, greatest = (float(value) for value in np.quantile(shown, [0.005, 0.995]))
    return {"low": low, "step": step, "least": least, "greatest": greatest if greatest > least else least + 1.0}


def _plane(match: Match) -> dict[str, Any] | None:
    """Both sets in the plane, the target rotated onto the source, with the items left over unless they are too many."""
    if match.kernels is None or len(match.pairs[0]) < 3:
        return None
    drawn = _selection(match)
    i, j = (side[drawn] for side in match.pairs)
    left = ([], []) if max(match.sizes) > MOST_DRAWN else match.left
    spaces = []
    for kernel, own, others in zip(match.kernels, (i, j), left, strict=True):
        items = [*own, *others]
        spaces.append(plane(dissimilarity(kernel[np.ix_(items, items)], match.similarity)))
    (X, source_share), (Y, target_share) = spaces
    size = float(np.abs(X - X.mean(axis=0)).max()) or 1.0
    X = (X - X.mean(axis=0)) / size
    Y = lay_over(Y, Y[: len(j)], X[: len(i)])
    return {
        "drawn": drawn.tolist(),
        "source": X.round(4).tolist(),
        "target": Y.round(4).tolist(),
        "leftSource": [match.source_name(item) for item in left[0]],
        "leftTarget": [match.target_name(item) for item in left[1]],
        "shares": [round(source_share, 3), round(target_share, 3)],
    }


def _random(match: Match) -> dict[str, Any] | None:
    """The distribution of the costs of random pairings. Their seed is fixed, so a report can be made again."""
    if match.problem is None or match.problem.n < 3 or match.result.left_out:
        return None
    costs = random_costs(match, match.problem, np.random.default_rng(0))
    if len(costs) == 0 or not np.ptp(costs) > 0:
        return None
    counts, edges = np.histogram(costs, bins=BARS)
    return {
        "counts": counts.tolist(),
        "low": float(edges[0]),
        "high": float(edges[-1]),
        "mean": float(costs.mean()),
        "deviation": float(costs.std()),
        "draws": len(costs),
        "truth": None if match.truth is None else match.cost_of(match.truth),
    }


_OPTIMAL_UP_TO = 150  # items: the best order of the leaves takes time n^3


def dissimilarity(kernel: FloatArray, similarity: bool) -> FloatArray:
    """Turn a kernel of either kind into dissimilarities: symmetric, and zero between the nearest two."""
    symmetric = (kernel + kernel.T) / (-2.0 if similarity else 2.0)
    result = symmetric - symmetric[~np.eye(len(kernel), dtype=bool)].min()
    np.fill_diagonal(result, 0.0)
    return np.asarray(result)


def plane(distances: FloatArray) -> tuple[FloatArray, float]:
    """(n, 2) points by classical scaling, and the share of the spread that two axes show."""
    points, values = classical_scaling(distances)
    flat = np.zeros((len(distances), 2))
    flat[:, : points.shape[1]] = points[:, :2]
    total = float(np.abs(values).sum())
    return flat, float(values[:2].clip(0.0).sum()) / total if total > 0 else 1.0


def lay_over(points: FloatArray, anchors: FloatArray, onto: FloatArray) -> FloatArray:
    """Rotate, mirror and scale `points` (Procrustes) so that `anchors`, a part of them, lie near `onto`.

    The scale is that of `onto`, not the one with the least error: a bad match must not shrink to a dot.
    """
    from scipy.linalg import orthogonal_procrustes

    here, there = anchors.mean(axis=0), onto.mean(axis=0)
    a, b = anchors - here, onto - there
    size = np.linalg.norm(a)
    scale = np.linalg.norm(b) / size if size > 0 else 1.0
    return np.asarray(scale * (points - here) @ orthogonal_procrustes(a, b)[0] + there)


def similar_together(*matrices: FloatArray) -> IntArray:
    """An order of the rows that puts similar rows of all matrices next to each other."""
    from scipy.cluster.hierarchy import leaves_list, linkage  # takes a while to import, and only reports need it

    n = len(matrices[0])
    if n < 3:
        return np.arange(n)
    tree = linkage(np.hstack(matrices), "average", optimal_ordering=n <= _OPTIMAL_UP_TO)
    return np.asarray(leaves_list(tree), dtype=np.intp)


_FEWEST, _MOST = 200, 2000  # random pairings
_WORK = 5e7  # numbers to sum for all of them


def history(result: Result) -> list[tuple[float, float | None, float | None]]:
    """Seconds, bound and cost at the moments where one of the two changed, and at the end.

    The last entry is the result itself: what the checker proved, not what the solver last said. Empty without a trace.
    """
    kept: list[tuple[float, float | None, float | None]] = []
    for moment in result.trace:
        now = (round(moment.seconds, 4), json_finite(moment.lower_bound), json_finite(moment.cost))
        if now[1:] != (None, None) and (not kept or kept[-1][1:] != now[1:]):
            kept.append(now)
    if kept:
        # max returns its first argument where the seconds of the result are nan.
        end = max(kept[-1][0], round(result.seconds, 4)), json_finite(result.lower_bound), json_finite(result.cost)
        kept += [end] if end != kept[-1] else []
    return kept


def matched_kernels(match: Match) -> tuple[FloatArray, FloatArray] | None:
    """Both kernels over the matched items: row a of each is pair a."""
    if match.kernels is None:
        return None
    rows, columns = match.pairs
    return match.kernels[0][np.ix_(rows, rows)], match.kernels[1][np.ix_(columns, columns)]


def pair_costs(match: Match) -> list[float] | None:
    """The share of the cost of each pair: half of each term with another pair. None where kernels were compared."""
    problem = match.problem
    if match.kernels is not None or problem is None or len(match.pairs[0]) != problem.n:
        return None
    p = match.pairs[1]
    total = problem.linear[np.arange(problem.n), p].copy()
    for A, B in problem.factors:
        product = A * B[np.ix_(p, p)]
        total += (product.sum(axis=0) + product.sum(axis=1)) / 2
    return [float(value) for value in total]


def random_costs(match: Match, problem: QAP, rng: np.random.Generator) -> FloatArray:
    """Costs of random pairings with as many pairs as the match has.

    All of them keep the given pairs, and none uses a forbidden pair.
    """
    n, m = match.sizes
    count = int(np.clip(_WORK / (problem.n**2 * len(problem.factors)), _FEWEST, _MOST))
    given = given_pairs(match)
    rows = np.setdiff1d(np.arange(n), [i for i, _ in given])
    columns = np.setdiff1d(np.arange(m), [j for _, j in given])
    forbidden = None if problem.forbidden is None else problem.forbidden[np.ix_(rows, columns)]
    pairs = len(match.pairs[0]) - len(given)
    costs = []
    for _ in range(count):
        partners = np.full(n, -1, dtype=np.intp)
        partners[[i for i, _ in given]] = [j for _, j in given]
        some, theirs = _random_pairs((len(rows), len(columns)), pairs, forbidden, rng)
        partners[rows[some]] = columns[theirs]
        cost = match.cost_of(partners)
        if cost is not None:
            costs.append(cost)
    return np.array(costs)


def _random_pairs(
    sizes: tuple[int, int], count: int, forbidden: BoolArray | None, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Up to `count` random pairs of rows and columns, none of them forbidden."""
    if forbidden is None or not forbidden.any():
        return rng.permutation(sizes[0])[:count], rng.permutation(sizes[1])[:count]
    from scipy.optimize import linear_sum_assignment  # takes a while to import, and only reports need it

    # The best assignment of random costs is a random assignment. A forbidden pair costs more than all others together:
    # it appears only where a row has no other column, and is then left out.
    weights = np.where(forbidden, 1.0 + min(sizes), rng.random(sizes))
    rows, columns = linear_sum_assignment(weights)
    allowed = np.flatnonzero(~forbidden[rows, columns])
    kept = rng.permutation(allowed)[:count]
    return rows[kept], columns[kept]


def given_pairs(match: Match) -> list[tuple[int, int]]:
    """Pairs of the match whose source had no other target."""
    forbidden = None if match.problem is None else match.problem.forbidden
    if forbidden is None:
        return []
    return [(i, j) for i, j in match.result.pairs if forbidden[i].sum() == len(forbidden) - 1]


def hints(match: Match) -> list[str]:
    """Hints about the pairs, which were used besides the relations inside each set, in words."""
    if match.problem is None:
        return []
    (n, m), given = match.sizes, given_pairs(match)
    words = [f"{len(given)} pair{'s' if len(given) > 1 else ''}"] if given else []
    words += ["similarities across the sets"] if match.problem.linear[:n, :m].any() else []
    if match.problem.forbidden is not None:
        rest = np.ix_(
            np.setdiff1d(np.arange(n), [i for i, _ in given]), np.setdiff1d(np.arange(m), [j for _, j in given])
        )
        words += ["forbidden pairs"] if match.problem.forbidden[rest].any() else []
    return words
