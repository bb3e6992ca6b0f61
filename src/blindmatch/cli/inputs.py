"""Read the input of the commands: embeddings, problems, certificates, saved matches. Every file is read once."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.cli.answers import with_title
from blindmatch.cli.items import Pictures, item_files, named, partners, pictures
from blindmatch.cli.options import Given
from blindmatch.cli.pairs import metric_names, pair_files, pair_settings, task_of
from blindmatch.cli.progress import busy
from blindmatch.cli.tables import Tables
from blindmatch.errors import unknown_name
from blindmatch.geometry.relations import RULES, fill_missing, graph_layers
from blindmatch.geometry.views import Views
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
from blindmatch.validation import FloatArray, IntArray, as_array


class TaskInput:
    """Two files of embeddings, how they are compared, and what is known about pairs and items."""

    def __init__(self, given: Given) -> None:
        self._given = given

    @property
    def paths(self) -> list[Path]:
        """The files that are read."""
        return [self._given.source, self._given.target, *pair_files(self._given), *item_files(self._given)]

    def _settings(self, matched: Task) -> dict[str, str]:
        """The options of the task, for the report."""
        given = self._given
        return {
            "source": given.source.name,
            "target": given.target.name,
            "distortion": given.distortion,
            "standardize": str(given.standardize),
            "scale": given.scale,
            **self.tables.settings,
            **pair_settings(given, matched.hints.unmatched_cost),
            **({} if matched.price is None else {"matched at other prices": matched.price.text}),
        }

    @cached_property
    def _embeddings(self) -> tuple[Embeddings, Embeddings]:
        given = self._given
        return named(given, _load_side(given.source, given, 0), _load_side(given.target, given, 1))

    @property
    def labelled(self) -> bool:
        """True if a side has classes."""
        return any(side.labels is not None for side in self._embeddings)

    @cached_property
    def task(self) -> Task:
        """The task."""
        with busy("reading"):
            self._items  # noqa: B018 (errors in them are reported before a long run)
            task = task_of(*self._embeddings, self._given)
            if not task.too_large:
                task.kernels  # noqa: B018 (the same)
            return task

    @cached_property
    def tables(self) -> Tables:
        """The columns that were used, and their scales."""
        return Tables(self._embeddings, self.task.scalings, relations=self.task.precomputed)

    @cached_property
    def _items(self) -> tuple[list[int] | None, tuple[Pictures | None, Pictures | None]]:
        return partners(self._given, *self._embeddings), pictures(self._given, *self._embeddings)

    def match(self, result: Result) -> Match:
        """All that a report says about a result."""
        _, (source_images, target_images) = self._items
        given, truth = self._given, partners(self._given, *self._embeddings, result.permutation.tolist())
        assert isinstance(result.task, Task)
        title = f"{given.source.name} matched with {given.target.name}"
        result = with_title(result, title, {**self._settings(result.task), **given.settings})
        return Match(result, truth=truth, source_images=source_images, target_images=target_images)


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
    """The permutation in what ``--json`` printed."""
    with reading(path, "JSON"):
        values = json.loads(text_of(path, "utf-8"))
        if not isinstance(values, dict) or "permutation" not in values:
            raise ValueError(f"{path}: not what 'blindmatch match --json' prints")
        permutation = as_array(values["permutation"], "permutation")
        if permutation.ndim != 1 or permutation.dtype.kind != "i":
            raise ValueError("its permutation is no list of integers")
        return permutation
