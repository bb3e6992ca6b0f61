"""Read and write ``.dd`` files, the text format of the graph-matching community (and of libmpopt's ``qap_dd``).

    p 2 2 4 2           left items, right items, assignments, edges
    a 0 0 1 -1.5        assignment 0: left 0 with right 1, and its cost
    e 0 3 2.0           the cost of using both assignments 0 and 3

Lines that begin with c, i0, i1, n0 or n1 (comments, coordinates, neighbours) are skipped. An assignment that is not
listed is not allowed. In these models, unlike in a QAP, items may stay unmatched at no cost. `write_dd` therefore
lowers the cost of every assignment until a full match is always cheaper, and records the offset in a comment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from blindmatch.io.files import text_of, write_atomically
from blindmatch.problem.qap import QAP
from blindmatch.validation import BoolArray, FloatArray, IntArray

_SKIPPED = ("c", "i0", "i1", "n0", "n1")


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


def from_qap(problem: QAP) -> GraphMatching:
    """The model of a QAP, in which a full match is cheaper than any partial match.

    Examples
    --------
    >>> problem = QAP([[0, 1], [1, 0]], [[0, 5], [5, 0]], linear=[[0, 1], [2, 0]])
    >>> model = from_qap(problem)
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
    shift = float(form.linear.max(initial=0.0)) + worst + 1.0
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
    model = from_qap(problem)
    text = "\n".join(_lines(model)) + "\n"
    write_atomically(path, lambda file: file.write(text.encode("ascii")))


def _lines(model: GraphMatching) -> Iterator[str]:
    yield f"c written by blindmatch; offset {model.offset!r}: add it to the cost of a full match"
    yield f"p {model.left} {model.right} {len(model.assignments)} {len(model.edges)}"
    for index, ((left, right), cost) in enumerate(zip(model.assignments, model.costs, strict=True)):
        yield f"a {index} {left} {right} {float(cost)!r}"
    for (first, second), cost in zip(model.edges, model.edge_costs, strict=True):
        yield f"e {first} {second} {float(cost)!r}"


def read_dd(path: str | Path) -> GraphMatching:
    """Read a model; a ValueError names the file and the wrong line."""
    sizes: list[int] = []
    offset = 0.0
    rows: dict[str, list[list[float]]] = {"a": [], "e": []}
    for number, line in enumerate(_text(path).splitlines(), start=1):
        kind, *words = line.split() or ["c"]
        try:
            if kind == "c" and line.startswith("c written by blindmatch; offset "):
                offset = float(words[4].rstrip(":"))
            elif kind == "p":
                sizes = [int(word) for word in words]
                if len(sizes) != 4 or min(sizes) < 0:
                    raise ValueError("expected 'p LEFT RIGHT ASSIGNMENTS EDGES'")
            elif kind in rows:
                rows[kind].append(_row(kind, words))
            elif kind not in _SKIPPED:
                raise ValueError(f"unknown line type {kind!r}")
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {str(error)[:200]}") from None
    try:
        return _checked(sizes, rows, offset)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _text(path: str | Path) -> str:
    try:
        return text_of(path, "ascii")
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text file") from None


def _row(kind: str, words: list[str]) -> list[float]:
    form = {"a": "ID LEFT RIGHT COST", "e": "ASSIGNMENT ASSIGNMENT COST"}[kind]
    if len(words) != len(form.split()):
        raise ValueError(f"expected '{kind} {form}'")
    if any(abs(int(word)) >= 2**31 for word in words[:-1]):
        raise ValueError("an index is too large")
    values = [*(float(int(word)) for word in words[:-1]), float(words[-1])]
    if not np.isfinite(values[-1]):
        raise ValueError(f"the cost {words[-1]} is not finite")
    return values


def _checked(sizes: list[int], rows: dict[str, list[list[float]]], offset: float) -> GraphMatching:
    if not sizes:
        raise ValueError("no line 'p LEFT RIGHT ASSIGNMENTS EDGES'")
    left, right, *counts = sizes
    a, e = np.array(rows["a"]).reshape(-1, 4), np.array(rows["e"]).reshape(-1, 3)
    if counts != [len(a), len(e)]:
        raise ValueError(f"the p line announces {counts} assignments and edges, found {[len(a), len(e)]}")
    a = a[np.argsort(a[:, 0], kind="stable")]
    assignments, edges = a[:, 1:3].astype(np.intp), e[:, :2].astype(np.intp)
    if (a[:, 0] != np.arange(len(a))).any():
        raise ValueError(f"the assignments are not numbered 0 to {len(a) - 1}")
    if len(a) and ((assignments < 0) | (assignments >= [left, right])).any():
        raise ValueError(f"an assignment is outside of {left} left and {right} right items")
    if len(e) and ((edges < 0) | (edges >= len(a))).any():
        raise ValueError(f"an edge names an assignment outside of 0 to {len(a) - 1}")
    return GraphMatching(left, right, assignments, a[:, 3], np.sort(edges, axis=1), e[:, 2], offset)
