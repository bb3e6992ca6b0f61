"""Read the input of the commands: embeddings, problems, certificates, saved matches. Every file is read once."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.cli.answers import with_title
from blindmatch.cli.items import item_files, pairs_given, partners, pictures, with_names
from blindmatch.cli.options import Given
from blindmatch.cli.progress import busy
from blindmatch.cli.texts import Tables
from blindmatch.errors import unknown_name
from blindmatch.geometry.relations import RULES, adjacency, fill_missing, graph_layers
from blindmatch.geometry.views import Views
from blindmatch.io.edge_lists import read_edges
from blindmatch.io.embeddings import MISSING, Embeddings, load_embeddings, split_parts
from blindmatch.io.files import reading, text_of
from blindmatch.io.qaplib import read_sln
from blindmatch.matching.saved import load, read_saved
from blindmatch.problem.problem_files import load_problem, load_solution
from blindmatch.problem.qap import QAP
from blindmatch.problem.task import Task
from blindmatch.proof.certificate import Certificate
from blindmatch.report import Match
from blindmatch.solving.result import Result
from blindmatch.validation import FloatArray, IntArray, as_array, not_negative


class TaskInput:
    """Two files of embeddings, how they are compared, and what is known about pairs and items."""

    def __init__(self, given: Given) -> None:
        self._given = given
        pairs = [given.known_pairs, *(given.known_from or ()), given.forbidden_pairs, given.similarity, given.crossed]
        # The files that are read.
        self.paths = [given.source, given.target, *(path for path in pairs if path is not None), *item_files(given)]

    @cached_property
    def _sides(self) -> tuple[Embeddings, Embeddings]:
        given = self._given
        return with_names(given, _load_side(given.source, given, 0), _load_side(given.target, given, 1))

    @property
    def labelled(self) -> bool:
        """True if a side has classes."""
        return any(side.labels is not None for side in self._sides)

    @cached_property
    def task(self) -> Task:
        """The task; whatever is wrong in any file is reported here, before a long run."""
        with busy("reading"):
            partners(self._given, *self._sides)
            self._images = pictures(self._given, *self._sides)
            task = task_of(*self._sides, self._given)
            if not task.too_large:
                task.kernels  # noqa: B018 (for its errors)
            return task

    @cached_property
    def tables(self) -> Tables:
        """The columns that were used, and their scales."""
        return Tables(self._sides, self.task.scalings, relations=self.task.precomputed)

    def match(self, result: Result) -> Match:
        """All that a report says about a result."""
        given, task = self._given, result.task
        assert isinstance(task, Task)
        settings = {
            **{"source": given.source.name, "target": given.target.name, "distortion": given.distortion},
            **{"standardize": str(given.standardize), "scale": given.scale},
            **self.tables.settings,
            **_pair_settings(given, task.hints.unmatched_cost),
            **({} if task.price is None else {"matched at other prices": task.price.text}),
            **given.settings,
        }
        result = with_title(result, f"{given.source.name} matched with {given.target.name}", settings)
        truth = partners(given, *self._sides, result.permutation.tolist())
        return Match(result, truth=truth, source_images=self._images[0], target_images=self._images[1])


def _pair_settings(given: Given, cost: float | None) -> dict[str, str]:
    known, forbidden = (
        ", ".join([*(words or ()), *([file.name] if file else [])])
        for words, file in ((given.known, given.known_pairs), (given.forbid, given.forbidden_pairs))
    )
    most = "" if given.max_unmatched is None else f", at most {given.max_unmatched}"
    chosen = {
        "metric": None if given.metric == "euclidean" else given.metric,
        "neighbors": given.neighbors,
        "known pairs": known or "none",
        "known pairs of other items": given.known_from and ", ".join(path.name for path in given.known_from),
        "forbidden pairs": forbidden or None,
        "similarity": given.similarity and f"{given.similarity.name}, weight {given.similarity_weight:g}",
        "unmatched": None if cost is None else f"{cost:g} each{most}",
    }
    return {name: text for name, text in chosen.items() if text is not None}


def _load_side(path: Path, given: Given, at: int) -> Embeddings:
    """Read the source (0) or the target (1)."""
    rule, told = given.missing, ""
    if given.graph:
        files = split_parts(path)
        matrices, nodes = graph_layers(files, str(path))
        parts = tuple(zip([file.stem for file in files], matrices, strict=True))
        return Embeddings(matrices[0], nodes, parts=parts if len(parts) > 1 else ())
    if given.metric != "precomputed":
        if rule in RULES:
            raise ValueError(f"--missing {rule} is for --metric precomputed; expected {', '.join(MISSING)} for tables")
        if rule is not None and rule not in MISSING:
            raise unknown_name("missing", rule, MISSING)
        names = metric_names(given.metric)
        gower = (names if isinstance(names, str) else names[at]) == "gower"
        return load_embeddings(path, missing="distance" if gower and rule is None else rule, categories=gower)
    if rule is not None and rule not in RULES:
        raise unknown_name("missing", rule, RULES)

    def complete(values: ArrayLike) -> ArrayLike:
        nonlocal told
        array = as_array(values, str(path))
        gaps = int(np.isnan(array).sum()) if array.dtype.kind == "f" else 0
        if gaps:
            counted = f"{gaps} of {array.size} entries"
            if rule is None:
                raise ValueError(f"{path}: {counted} are missing; --missing path or --missing mean fills them in")
            told = f"{counted}, filled in by the rule {rule!r}"
            try:
                return fill_missing(array, rule)
            except ValueError as error:
                what = str(error).removeprefix("dissimilarities").removeprefix(":").strip()
                raise ValueError(f"{path}: {what}") from None
        return array

    side = load_embeddings(path, complete)
    for values in [part for _, part in side.parts] or [side.values]:
        if values.shape[0] != values.shape[1]:
            raise ValueError(f"{path}: its shape is {values.shape}; --metric precomputed expects a square matrix")
    return replace(side, gaps=told)


def side_of(read: Embeddings) -> FloatArray | Views:
    """A side as Python takes it: an array, or several views."""
    return Views.of(read) or read.values


def read_certified(given: Given) -> tuple[QAP, float, Certificate]:
    """A problem, the least cost of any match that it leaves out, and a certificate: of one file, or of several."""
    files = given.files
    if len(files) < 3 and given.changed("task"):
        raise ValueError(f"{files[0]} has a problem: options that say how two sets are compared do not apply to it")
    if len(files) == 1:
        saved = read_saved(files[0])
        if saved.certificate is None:
            raise ValueError(f"{files[0]}: there is no certificate in it, because solver={saved.solver!r} left none")
        return *saved.problem_of_size(saved.certificate.size), saved.certificate
    if len(files) > 3:
        raise ValueError(f"{len(files)} files given; expected MATCH, PROBLEM CERTIFICATE or SOURCE TARGET CERTIFICATE")
    certificate = Certificate.load(files[-1])
    if len(files) == 2:  # the checker complains if the certificate has another size
        return load_problem(files[0]), math.inf, certificate
    nothing = dict.fromkeys(("truth", "source_names", "target_names", "source_images", "target_images"))
    sides = TaskInput(Given(**vars(given), **nothing, source=files[0], target=files[1]))
    return *sides.task.of_size(certificate.size), certificate


def read_match(path: Path) -> Result:
    """The match in a file that ``--save`` wrote, checked again."""
    with busy("checking the saved match"):
        return load(path)


def read_start(path: Path, problem: QAP | None = None) -> IntArray:
    """A match to begin with, from a QAPLIB solution or from a saved match."""
    suffix = path.suffix.lower()
    if suffix not in (".sln", ".json", ".npz"):
        raise ValueError(f"--start {path}: unknown file type {suffix!r}; expected .sln (QAPLIB), .npz or .json")
    try:
        if suffix == ".npz":
            return load(path).permutation
        if suffix == ".json":
            return _permutation(path)
        return read_sln(path)[1] if problem is None else load_solution(path, problem)
    except ValueError as error:
        raise ValueError(f"--start {error}") from None


def _permutation(path: Path) -> IntArray:
    with reading(path, "JSON"):
        values = json.loads(text_of(path, "utf-8"))
        if not isinstance(values, dict) or "permutation" not in values:
            raise ValueError(f"{path}: not what 'blindmatch match --json' prints")
        permutation = as_array(values["permutation"], "permutation")
        if permutation.ndim != 1 or permutation.dtype.kind != "i":
            raise ValueError("its permutation is no list of integers")
        return permutation


def task_of(source: Embeddings, target: Embeddings, given: Given) -> Task:
    """Read the files about pairs, look names up, and check everything."""
    if not_negative(given.similarity_weight, "--similarity-weight") != 1.0 and given.similarity is None:
        raise ValueError(f"--similarity-weight {given.similarity_weight:g}: there is no --similarity to weigh")
    related = given.metric == "precomputed" or given.graph
    crossed = split_parts(given.crossed) if given.crossed else ()
    known: Any = given.known_from and tuple(load_embeddings(path).values for path in given.known_from)
    words = given.weights
    weights = None if words is None else _parts("--weights", words, float, "numbers, as in 1,0.5")
    plain = ("distortion", "standardize", "scale", "similarity_weight", "unmatched_cost", "max_unmatched")
    return Task(
        None if related else source,
        None if related else target,
        kernels=_kernels_of(source, target) if related else None,
        weights=weights,
        crossed=[_between(path, source, target) for path in crossed] or None,
        edge_weights=[word.strip() for word in given.edge_weights.split(",")],
        metric="euclidean" if related else metric_names(given.metric),
        neighbors=neighbor_counts(given.neighbors),
        known_pairs=pairs_given("--known", given.known or (), given.known_pairs, source, target),
        known=known,
        forbidden_pairs=pairs_given("--forbid", given.forbid or (), given.forbidden_pairs, source, target),
        similarity=None if given.similarity is None else load_embeddings(given.similarity).values,
        source_names=source.names,
        target_names=target.names,
        **{name: getattr(given, name) for name in plain},
    )


def _kernels_of(source: Embeddings, target: Embeddings) -> Any:
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
    if any(len(set(names)) < len(names) for names in (source.names, target.names)):
        raise ValueError(f"--crossed {path}: several items have one name; are these edges of graphs (--graph)?")
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


def neighbor_counts(word: str | None) -> Any:
    """The number of neighbours for both sides, or of each."""
    return None if word is None else _parts("--neighbors", word, int, "a number, or two as in 20,30", 2)


def metric_names(word: str) -> Any:
    """A metric for both sides, or 'source,target'."""
    return _parts("--metric", word, str.strip, "one name, or two as in geodesic,cosine", 2)


def _parts(option: str, word: str, kind: Callable[[str], Any], expected: str, most: float = math.inf) -> Any:
    """The values of an option, between commas; of an option for both sides, the only one itself."""
    try:
        parts = tuple(kind(part) for part in word.split(","))
    except ValueError:
        parts = ()
    if not 0 < len(parts) <= most:
        raise ValueError(f"{option} {word}: expected {expected}")
    return parts[0] if len(parts) == 1 and most == 2 else parts
