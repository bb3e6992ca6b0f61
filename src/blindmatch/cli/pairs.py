"""Options about pairs: known, forbidden, similar, unmatched; by name, by index, or in files."""

from __future__ import annotations

import csv
import difflib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from blindmatch.cli.options import Given
from blindmatch.geometry.relations import adjacency
from blindmatch.io.edge_lists import read_edges
from blindmatch.io.embeddings import Embeddings, load_embeddings, split_parts
from blindmatch.io.files import text_of
from blindmatch.problem.task import Task
from blindmatch.validation import FloatArray, not_negative


def pair_files(given: Given) -> list[Path]:
    """The files that are read."""
    files = (given.known_pairs, *(given.known_from or ()), given.forbidden_pairs, given.similarity, given.crossed)
    return [path for path in files if path is not None]


def pair_settings(given: Given, cost: float | None) -> dict[str, str]:
    """The options about pairs, for the report."""
    known, forbidden = (
        ", ".join([*(words or ()), *([file.name] if file else [])])
        for words, file in ((given.known, given.known_pairs), (given.forbid, given.forbidden_pairs))
    )
    chosen = {} if given.metric == "euclidean" else {"metric": given.metric}
    if given.neighbors is not None:
        chosen["neighbors"] = given.neighbors
    chosen["known pairs"] = known or "none"
    if given.known_from is not None:
        chosen["known pairs of other items"] = ", ".join(path.name for path in given.known_from)
    if forbidden:
        chosen["forbidden pairs"] = forbidden
    if given.similarity is not None:
        chosen["similarity"] = f"{given.similarity.name}, weight {given.similarity_weight:g}"
    if cost is not None:
        most = "" if given.max_unmatched is None else f", at most {given.max_unmatched}"
        chosen["unmatched"] = f"{cost:g} each{most}"
    return chosen


def task_of(source: Embeddings, target: Embeddings, given: Given) -> Task:
    """Read the files about pairs, look names up, and check everything."""
    if not_negative(given.similarity_weight, "--similarity-weight") != 1.0 and given.similarity is None:
        raise ValueError(f"--similarity-weight {given.similarity_weight:g}: there is no --similarity to weigh")
    related = given.metric == "precomputed" or given.graph
    crossed = split_parts(given.crossed) if given.crossed else ()
    known: Any = given.known_from and tuple(load_embeddings(path).values for path in given.known_from)
    plain = (
        "edge_weights",
        "distortion",
        "standardize",
        "scale",
        "similarity_weight",
        "unmatched_cost",
        "max_unmatched",
    )
    return Task(
        None if related else source,
        None if related else target,
        kernels=_kernels_of(source, target) if related else None,
        weights=layer_weights(given.weights),
        crossed=[_between(path, source, target) for path in crossed] or None,
        metric="euclidean" if related else metric_names(given.metric),
        neighbors=neighbor_counts(given.neighbors),
        known_pairs=_pairs("--known", given.known or (), given.known_pairs, source, target),
        known=known,
        forbidden_pairs=_pairs("--forbid", given.forbid or (), given.forbidden_pairs, source, target),
        similarity=None if given.similarity is None else load_embeddings(given.similarity).values,
        source_names=source.names,
        target_names=target.names,
        **{name: getattr(given, name) for name in plain},
    )


def metric_names(word: str) -> str | tuple[str, str]:
    """A metric for both sides, or 'source,target'."""
    source, comma, target = word.partition(",")
    if "," in target:
        raise ValueError(f"--metric {word}: expected one name, or two as in geodesic,cosine")
    return (source.strip(), target.strip()) if comma else word


def _kernels_of(source: Embeddings, target: Embeddings) -> Any:
    """Kernels as Python takes them: a pair, or a pair for each layer."""
    ours, theirs = source.parts, target.parts
    if len(ours) != len(theirs):
        sides = [max(len(parts), 1) for parts in (ours, theirs)]
        raise ValueError(
            f"source has {sides[0]} relations and target has {sides[1]}; expected as many: one for each layer"
        )
    return [(K, G) for (_, K), (_, G) in zip(ours, theirs, strict=True)] or (source.values, target.values)


def _between(path: Path, source: Embeddings, target: Embeddings) -> tuple[FloatArray, FloatArray]:
    """The edges from sources to targets, and back, of a list of edges; edges within a side are passed over."""
    if source.names is None or target.names is None:
        raise ValueError(f"--crossed {path}: the items need names, as those of --graph have them")
    edges = read_edges(path)
    found = adjacency(edges, source.names, target.names), adjacency(edges, target.names, source.names)
    if not (found[0].any() or found[1].any()):
        raise ValueError(f"--crossed {path}: no edge leads from a source to a target, or back")
    return found


def relation(given: Given) -> dict[str, Any]:
    """--metric and --neighbors as Python takes them."""
    if given.metric == "precomputed":
        raise ValueError("--metric precomputed: this command needs embeddings")
    return {"metric": metric_names(given.metric), "neighbors": neighbor_counts(given.neighbors)}


def layer_weights(words: str | None) -> list[float] | None:
    """The weight of each layer, from '1,0.5'."""
    try:
        return None if words is None else [float(word) for word in words.split(",")]
    except ValueError:
        raise ValueError(f"--weights {words}: expected numbers, as in 1,0.5") from None


def neighbor_counts(word: str | None) -> int | tuple[int, int] | None:
    """The number of neighbours for both sides, or of each."""
    if word is None:
        return None
    source, comma, target = word.partition(",")
    try:
        return (int(source), int(target)) if comma else int(word)
    except ValueError:
        raise ValueError(f"--neighbors {word}: expected a number, or two as in 20,30") from None


def _pairs(
    option: str, words: Sequence[str], file: Path | None, source: Embeddings, target: Embeddings
) -> list[tuple[int, int]]:
    pairs = []
    for word in words:
        left, colon, right = word.partition(":")
        if not colon:
            raise ValueError(f"{option} {word}: expected SOURCE:TARGET, for example 0:4")
        pairs.append((f"{option} {word}", left, right))
    if file is not None:
        pairs += _rows(file)
    try:
        return [(_index(left, source.names, where), _index(right, target.names, where)) for where, left, right in pairs]
    except ValueError as error:
        if not any(word.count(":") > 1 for word in words):
            raise
        others = {"--known": "--known-pairs", "--forbid": "--forbidden-pairs"}[option]
        raise ValueError(f"{error}; names with a colon go into a file for {others}") from None


def read_pairs(path: Path, source: Embeddings, target: Embeddings) -> list[tuple[list[int], list[int]]]:
    """The items that each line of a file names, with one 'source,target' per line, by name or index."""
    return [
        (_places(left, source.names, where), _places(right, target.names, where)) for where, left, right in _rows(path)
    ]


def _rows(path: Path) -> list[tuple[str, str, str]]:
    """The place of each pair, and its two sides; a first line "source,target" is skipped."""
    try:
        lines = csv.reader(io.StringIO(text_of(path), newline=""))
        rows = [(number, row) for number, row in enumerate(lines, 1) if any(row)]
    except (UnicodeDecodeError, csv.Error):
        raise ValueError(f"{path}: not a text file with one 'source,target' per line") from None
    if rows and [cell.strip().lower() for cell in rows[0][1]] == ["source", "target"]:
        del rows[0]
    for number, row in rows:
        if len(row) != 2:
            raise ValueError(f"{path}: line {number} has {len(row)} cells; expected 'source,target'")
    return [(f"{path}: line {number}", row[0].strip(), row[1].strip()) for number, row in rows]


def _index(word: str, names: Sequence[str] | None, where: str) -> int:
    """The index of a name that occurs once."""
    places = _places(word, names, where)
    if len(places) > 1:
        raise ValueError(f"{where}: the name {word!r} occurs {len(places)} times; expected once")
    return places[0]


def _places(word: str, names: Sequence[str] | None, where: str) -> list[int]:
    """The indices of a name; a word that is no name is an index. Items may have numbers as names."""
    places = [index for index, name in enumerate(names or ()) if name == word]
    if places or word.isdecimal():
        return places or [int(word)]
    if names is None:
        raise ValueError(f"{where}: {word!r} is not an index, and the file holds no names")
    near = difflib.get_close_matches(word, names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "; expected once"
    raise ValueError(f"{where}: the name {word!r} occurs 0 times{hint}")
