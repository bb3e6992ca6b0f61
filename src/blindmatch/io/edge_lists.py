"""Graphs in text files: lists of edges, and matrices with names, as connectomes are published."""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path

from blindmatch.errors import shown
from blindmatch.io.files import text_of

Edge = tuple[str, str, float]

# Words in the titles of the columns.
_FROM = {"source", "from", "pre", "presynaptic", "src", "sender", "sending"}
_TO = {"target", "to", "post", "postsynaptic", "tgt", "dst", "receiver", "receiving"}
_WEIGHT = {"weight", "weights", "synapses", "syn", "count", "counts", "nbr", "number", "strength"}
_PAIRED = re.compile(r"(node|neuron|cell|vertex|name|id)[ _]?([12])")


def read_edges(path: str | Path) -> list[Edge]:
    """The edges of a text file: from, to and weight (1 if there is none) on each line; or a matrix with names.

    Commas, tabs, semicolons or spaces are between them. A first row of titles is skipped. If titles such as "pre_id"
    and "post_id" say which columns are meant, others do not matter. A line with one name is a node without edges, here
    an edge of weight 0 to itself.
    """
    try:
        rows = _rows(text_of(path))
    except (UnicodeDecodeError, csv.Error):
        raise ValueError(f"{path}: not a text file with the edges of a graph, 'from,to,weight' on each line") from None
    names = {row[0] for row in rows[1:]}
    if rows and not rows[0][0] and 2 * len(names & set(rows[0][1:])) > len(names):
        return _matrix_edges(path, rows)
    first = rows[0] if rows else []
    chosen = _chosen([cell.lower() for cell in first])
    if chosen is not None:
        rows = [[row[at] for at in chosen if at < len(row)] for row in rows[1:]]
    elif len(first) > 2 and _number(first[2]) is None:
        del rows[0]
    if not any(len(row) > 1 for row in rows):
        raise ValueError(f"{path}: there is no edge in it")
    edges = []
    for number, row in enumerate(rows, 1):
        weight = _number(row[2]) if len(row) == 3 else float(len(row) == 2)
        if len(row) not in (1, 2, 3) or weight is None or not row[0] or (len(row) > 1 and not row[1]):
            told = shown(",".join(row), 60)
            raise ValueError(f"{path}: edge {number} is {told}; expected 'from,to' or 'from,to,weight'")
        edges.append((row[0], row[min(len(row) - 1, 1)], weight))
    return edges


def _rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    between = next((mark for mark in ("\t", ",", ";") if lines and mark in lines[0]), " ")
    if between == " " and all(len(line.split()) < 4 for line in lines[:2]):
        return [line.split() for line in lines]
    return [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=between) if any(row)]


def _chosen(titles: list[str]) -> tuple[int, ...] | None:
    """The columns of from, to and weight, if these are titles that say which they are."""
    words = [set(re.split(r"[^a-z]+", title)) for title in titles]
    numbered = [match and match[2] for match in map(_PAIRED.fullmatch, titles)]
    ends = []
    for known, number in ((_FROM, "1"), (_TO, "2")):
        fits = [at for at in range(len(titles)) if words[at] & known or numbered[at] == number]
        ends.append(fits[0] if fits else -1)
    rest = [at for at in range(len(titles)) if at not in ends]
    if min(ends) < 0 or ends[0] == ends[1] or any(_number(titles[at]) is not None for at in rest):
        return None  # no titles, or an edge between nodes of such names
    weights = [at for at in rest if words[at] & _WEIGHT] or (rest if len(titles) == 3 else [])
    return (*ends, *weights[:1])


def _matrix_edges(path: str | Path, rows: list[list[str]]) -> list[Edge]:
    """The edges of a matrix whose first row and column are the names; an empty cell is no edge."""
    edges = [(name, name, 0.0) for name in (*rows[0][1:], *(row[0] for row in rows[1:]))]
    for row in rows[1:]:
        for name, cell in zip(rows[0][1:], row[1:], strict=False):
            weight = _number(cell) if cell else 0.0
            if weight is None:
                raise ValueError(f"{path}: the edge from {row[0]!r} to {name!r} is {cell!r}; expected a number")
            if weight:
                edges.append((row[0], name, weight))
    return edges


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
