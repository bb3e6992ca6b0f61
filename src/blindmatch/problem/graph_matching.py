"""Graph matching: a problem as a model of assignments and edges, and the files (``.dd``) that hold such models.

    p 2 2 4 2           left items, right items, assignments, edges
    a 0 0 1 -1.5        assignment 0: left 0 with right 1, and its cost
    e 0 3 2.0           the cost of using both assignments 0 and 3

An assignment that is not listed is not allowed. In these models, unlike in a QAP, items may stay unmatched at no cost.
`write_dd` therefore lowers the cost of every assignment until a full match is always cheaper, and records the offset
in a comment. `read_dd` gives the sources of other files further targets, which cost nothing and mean "unmatched",
unless a full match is the cheapest anyway.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from blindmatch.io.files import text_of, write_atomically
from blindmatch.problem.qap import QAP, FactorPair
from blindmatch.validation import BoolArray, FloatArray, IntArray

_MOST_CELLS = 4000  # left items times right items: the costs of the edges take eight times its square in bytes
_MOST_PRODUCTS = 8  # factor pairs of a problem that is read
_SAME = 1e-12  # edges are products of two numbers up to this share of the largest, since files hold rounded numbers
_LARGEST = 1e100  # so that no product overflows
_WORDS = {"p": 4, "a": 4, "e": 3}  # numbers in a line of each kind; other lines (names, coordinates) are not read


@dataclass(frozen=True)
class GraphMatching:
    """A graph-matching model: the costs of assignments and of pairs of assignments."""

    left: int  # number of items on each side
    right: int
    assignments: IntArray  # (a, 2) pairs (left, right)
    costs: FloatArray  # (a,)
    edges: IntArray  # (e, 2) pairs of assignments, the smaller index first
    edge_costs: FloatArray  # (e,)
    offset: float = 0.0  # the cost of a full match plus this is the cost of the original QAP

    def objective(self, labels: IntArray) -> float:
        """Cost of a labelling, without the offset: the right item of each left item, or -1."""
        used = labels[self.assignments[:, 0]] == self.assignments[:, 1]
        both = used[self.edges[:, 0]] & used[self.edges[:, 1]]
        return float(self.costs[used].sum() + self.edge_costs[both].sum())


def graph_matching(problem: QAP) -> GraphMatching:
    """The model of a QAP, in which a full match is cheaper than any partial match.

    Examples
    --------
    >>> problem = QAP([[0, 1], [1, 0]], [[0, 5], [5, 0]], linear=[[0, 1], [2, 0]])
    >>> model = graph_matching(problem)
    >>> model.objective(np.array([1, 0])) + model.offset
    13.0
    """
    n, form = problem.n, problem.normal_form
    allowed = problem.allowed
    number = np.cumsum(allowed).reshape(n, n) - 1
    blocks = [_edges_between(problem, number, allowed, i, k) for i in range(n) for k in range(i + 1, n)]
    edges = np.concatenate([pairs for pairs, _ in blocks]) if blocks else np.empty((0, 2), dtype=np.intp)
    edge_costs = np.concatenate([costs for _, costs in blocks]) if blocks else np.empty(0)
    # Matching one more item adds at most its own cost and the worst edge to each other item.
    worst = n * max(0.0, float(edge_costs.max(initial=0.0)))
    size = max(float(np.abs(numbers).max(initial=0.0)) for numbers in (form.linear, edge_costs))
    shift = float(form.linear.max(initial=0.0)) + worst + (size or 1.0)  # 1 would drown numbers that are far below it
    return GraphMatching(
        n, n, np.argwhere(allowed), form.linear[allowed] - shift, edges, edge_costs, form.constant + n * shift
    )


def _edges_between(problem: QAP, number: IntArray, allowed: BoolArray, i: int, k: int) -> tuple[IntArray, FloatArray]:
    """Edges between the assignments of left items i < k."""
    cost = 2 * np.asarray(sum(A[i, k] * B for A, B in problem.normal_form.factors))
    listed = (cost != 0) & allowed[i][:, None] & allowed[k][None, :]
    j, other = np.nonzero(listed)
    return np.stack([number[i, j], number[k, other]], axis=1), cost[listed]


def write_dd(path: str | Path, problem: QAP) -> None:
    """Write the model of a QAP for other graph-matching programs."""
    model = graph_matching(problem)
    lines = [f"c written by blindmatch; offset {model.offset!r}: add it to the cost of a full match"]
    lines += [f"p {model.left} {model.right} {len(model.assignments)} {len(model.edges)}"]
    pairs = zip(model.assignments.tolist(), model.costs.tolist(), strict=True)
    lines += [f"a {index} {left} {right} {cost!r}" for index, ((left, right), cost) in enumerate(pairs)]
    edges = zip(model.edges.tolist(), model.edge_costs.tolist(), strict=True)
    text = "\n".join([*lines, *(f"e {first} {second} {cost!r}" for (first, second), cost in edges)]) + "\n"
    write_atomically(path, lambda file: file.write(text.encode("ascii")))


def read_dd(path: str | Path) -> QAP:
    """Read a graph-matching model whose edges cost a sum of a few products A[i, k] B[j, l], as those of a QAP do.

    Assignments that are not listed are forbidden pairs. In a file without our comment on the offset, a source may be
    "matched" with one of the targets beyond the right items: it then stays unmatched.
    """
    try:
        text = text_of(path)
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text file") from None
    lines: dict[str, list[list[float]]] = {kind: [] for kind in _WORDS}
    for number, line in enumerate(text.splitlines(), 1):
        kind, *words = line.split() or ["c"]
        if kind in lines:
            lines[kind].append(_numbers(words, _WORDS[kind], f"{path}: line {number}: {line.strip()[:60]!r}"))
    table, edges = (np.array(lines[kind], dtype=float).reshape(-1, _WORDS[kind]) for kind in "ae")
    sizes = lines["p"][0] if len(lines["p"]) == 1 else None
    if sizes is None or sizes[2:] != [len(table), len(edges)] or min(sizes[:2]) < 1:
        stated = " and ".join(" ".join(["p", *(f"{size:g}" for size in found)]) for found in lines["p"]) or "none"
        raise ValueError(
            f"{path}: expected one line 'p LEFT RIGHT ASSIGNMENTS EDGES'; found {stated} for {len(table)} assignments "
            f"and {len(edges)} edges"
        )
    n, m = (int(size) for size in sizes[:2])
    if n * m > _MOST_CELLS:
        raise ValueError(f"{path}: {n} x {m} items; expected at most {_MOST_CELLS} pairs of them")
    numbers, left, right, first, second = (
        _indices(column, most, path)
        for column, most in (*zip(table.T, (len(table), n, m), strict=False), *((e, len(table)) for e in edges.T[:2]))
    )
    linear, allowed = np.zeros((n, m)), np.zeros((n, m), dtype=bool)
    linear[left, right], allowed[left, right] = table[:, 3], True
    if int(allowed.sum()) < len(table) or len(set(numbers.tolist())) < len(table):
        raise ValueError(f"{path}: an assignment is listed twice")
    at = np.argsort(numbers)  # assignment k is in row at[k]
    i, k, j, other = left[at[first]], left[at[second]], right[at[first]], right[at[second]]
    costs = np.zeros((n, n, m, m))
    both = (i != k) & (j != other)  # other edges join assignments that exclude each other
    np.add.at(costs, (i[both], k[both], j[both], other[both]), edges[both, 2])
    costs += costs.transpose(1, 0, 3, 2)
    pairs = _factors(costs, allowed)
    if pairs is None:
        missing = "" if allowed.all() else ", or only one that cannot be told from the assignments that are listed"
        wanted = f"sum of up to {_MOST_PRODUCTS} products A[i, k] B[j, l]"
        raise ValueError(f"{path}: expected edges that cost what a QAP can cost, a {wanted}; they cost none{missing}")
    offset = re.search(r"^c written by blindmatch; offset (\S+):", text, re.MULTILINE)
    worst = linear + np.maximum(costs.max(axis=3), 0.0).sum(axis=1)  # of one more pair in any match
    if offset is None and (n > m or not allowed.all() or worst.max() > 0):
        pairs = [(A, np.pad(B, (0, n))) for A, B in pairs]
        linear, allowed = np.pad(linear, ((0, 0), (0, n))), np.pad(allowed, ((0, 0), (0, n)), constant_values=True)
    least = 0.0 if offset is None else float(linear[allowed].min(initial=math.inf))
    constant = 0.0 if offset is None else _numbers([offset[1]], 1, f"{path}: offset {offset[1]!r}")[0] + n * least
    try:
        return QAP.from_factors(pairs, np.where(allowed, linear - least, 0.0), constant, forbidden=~allowed)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _numbers(words: list[str], count: int, where: str) -> list[float]:
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        numbers = []
    if len(numbers) != count or not all(abs(number) <= _LARGEST for number in numbers):
        raise ValueError(f"{where}: expected {count} number{'' if count == 1 else 's'} up to {_LARGEST:g}")
    return numbers


def _indices(values: FloatArray, most: int, path: str | Path) -> IntArray:
    wrong = (values != np.rint(values)) | (values < 0) | (values >= most)
    if wrong.any():
        raise ValueError(f"{path}: the index {values[wrong][0]:g} is not an integer from 0 to {most - 1}")
    return values.astype(np.intp)


def _factors(costs: FloatArray, allowed: BoolArray) -> list[FactorPair] | None:
    """Factor pairs whose products are the costs of two allowed assignments each; None if they would be too many."""
    n, m = allowed.shape
    upper = np.triu_indices(n, 1)
    rows = costs[upper]
    known = allowed[upper[0]][:, :, None] & allowed[upper[1]][:, None, :]
    turned, seen = rows.transpose(0, 2, 1), known.transpose(0, 2, 1)
    rows = np.where(known, rows, np.where(seen, turned, 0.0))
    scale = float(np.abs(rows).max(initial=0.0))
    even, odd = (_products(rows + sign * rows.transpose(0, 2, 1), known | seen, _SAME * scale) for sign in (1, -1))
    if even is None or odd is None or len(even) + len(odd) > _MOST_PRODUCTS:
        return None
    pairs = [(_mirrored(shares, n, sign), B) for sign, products in ((1, even), (-1, odd)) for shares, B in products]
    if len(even) == len(odd) == 1:  # one pair, whose mixed products cancel each other; of integers, if that can be
        (A, B), (C, D) = pairs
        for g, h in ((2, 2), (1, 1), (1, 2), (2, 1)):
            pairs = [(2 * A / g + 2 * C / h, (g * B + h * D) / 2)]
            if all((matrix == np.rint(matrix)).all() for matrix in pairs[0]):
                break
    elif not odd and all((np.rint(4 * A) == 4 * A).all() for A, _ in pairs):  # quarters: twice as much above alone
        pairs = [(A if (np.rint(A) == A).all() else 2 * np.triu(A), B) for A, B in pairs]
    return pairs or [(np.zeros((n, n)), np.zeros((m, m)))]


def _mirrored(shares: FloatArray, n: int, sign: int) -> FloatArray:
    """A matrix with a quarter of the shares above its diagonal and, with this sign, below."""
    A = np.zeros((n, n))
    A[np.triu_indices(n, 1)] = shares / 4
    return A + sign * A.T


def _products(costs: FloatArray, known: BoolArray, noise: float) -> list[tuple[FloatArray, FloatArray]] | None:
    """Numbers a and a matrix B for each term of costs[x] = sum a[x] B, where they are known."""
    found: list[tuple[FloatArray, FloatArray]] = []
    rest = np.where(known, costs, 0.0)
    while np.abs(rest).max(initial=0.0) > noise:
        if len(found) == _MOST_PRODUCTS:
            return None
        a, B = _product(rest, known)
        found.append((a, B))
        rest = np.where(known, rest - a[:, None, None] * B, 0.0)
    return found


def _product(costs: FloatArray, known: BoolArray) -> tuple[FloatArray, FloatArray]:
    """One such term. From the row with the most that is known, what is known spreads to other rows and entries."""
    start = int(np.argmax(known.sum(axis=(1, 2)) * (costs != 0).any(axis=(1, 2))))
    whole = (costs == np.rint(costs)).all() and np.abs(costs).max() < 2**52
    step = np.gcd.reduce(costs[start].astype(np.int64), axis=None) if whole else 1
    a, B = np.full(len(costs), math.nan), np.where(known[start], costs[start] / step, math.nan)
    a[start] = step
    while True:
        before = np.isnan(a).sum() + np.isnan(B).sum()
        usable = known & (np.abs(np.nan_to_num(B)) > 0)
        for x in np.flatnonzero(np.isnan(a) & usable.any(axis=(1, 2))):
            j, k = np.unravel_index(np.argmax(np.where(usable[x], np.abs(B), 0.0)), B.shape)
            a[x] = costs[x, j, k] / B[j, k]
        for x in np.flatnonzero(np.nan_to_num(a)):
            B = np.where(np.isnan(B) & known[x], costs[x] / a[x], B)
        if np.isnan(a).sum() + np.isnan(B).sum() == before:
            return np.nan_to_num(a), np.nan_to_num(B)
