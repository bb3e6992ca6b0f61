"""What the commands read: two files of embeddings, or one file with a problem. Every file is read once."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from blindmatch.cli.gaps import load_side
from blindmatch.cli.items import Pictures, item_files, named, partners, pictures
from blindmatch.cli.options import ItemOptions, TaskOptions
from blindmatch.cli.pairs import pair_files, pair_settings, task_of
from blindmatch.cli.progress import busy
from blindmatch.cli.tables import Tables
from blindmatch.io.embeddings import Embeddings
from blindmatch.matching.match_large import too_large
from blindmatch.matching.price import Price
from blindmatch.problem.files import load_problem
from blindmatch.problem.qap import QAP
from blindmatch.problem.task import Task
from blindmatch.report import Match
from blindmatch.solving.result import Result


@dataclass(frozen=True)
class ProblemInput:
    """A quadratic assignment problem in a file."""

    path: Path

    @property
    def paths(self) -> list[Path]:
        """The files that are read."""
        return [self.path]

    @property
    def title(self) -> str:
        """What is solved."""
        return self.path.name

    @property
    def settings(self) -> dict[str, str]:
        """What was asked for, for the report."""
        return {"problem": self.path.name}

    @cached_property
    def problem(self) -> QAP:
        """The problem."""
        return load_problem(self.path)

    def of_size(self, size: int) -> tuple[QAP, float]:
        """The problem; the checker complains if a certificate has another size."""
        return self.problem, math.inf

    def match(self, result: Result, **others: Any) -> Match:
        """All that a report says about a result."""
        return Match(result, problem=self.problem, **others)


@dataclass(frozen=True)
class TaskInput:
    """Two files of embeddings, how they are compared, and what is known about pairs and items."""

    source: Path
    target: Path
    what: TaskOptions = field(default_factory=TaskOptions)
    items: ItemOptions = field(default_factory=ItemOptions)

    @property
    def paths(self) -> list[Path]:
        """The files that are read."""
        return [self.source, self.target, *pair_files(self.what), *item_files(self.items)]

    @property
    def title(self) -> str:
        """What is matched."""
        return f"{self.source.name} matched with {self.target.name}"

    @property
    def settings(self) -> dict[str, str]:
        """What was asked for, for the report."""
        return {
            "source": self.source.name,
            "target": self.target.name,
            "distortion": self.what.distortion,
            "standardize": str(self.what.standardize),
            "scale": self.what.scale,
            **self.tables.settings,
            **pair_settings(self.what, self.task.hints.unmatched_cost),
            **({} if self.price is None else {"matched at other prices": self.price.text}),
        }

    @cached_property
    def _loaded(self) -> tuple[tuple[Embeddings, str], tuple[Embeddings, str]]:
        return load_side(self.source, self.what), load_side(self.target, self.what)

    @cached_property
    def _embeddings(self) -> tuple[Embeddings, Embeddings]:
        (source, _), (target, _) = self._loaded
        return named(self.items, source, target)

    @property
    def task(self) -> Task:
        """What is matched."""
        return self._read[0]

    @property
    def price(self) -> Price | None:
        """The price of unmatched items, if it was suggested."""
        return self._read[1]

    @cached_property
    def _read(self) -> tuple[Task, Price | None]:
        with busy("reading"):
            self._items  # noqa: B018 (errors in them are reported before a long run)
            task, price = task_of(*self._embeddings, self.what)
            if not too_large(task.sizes, task.hints.max_unmatched):
                task.kernels  # noqa: B018 (the same)
            return task, price

    @cached_property
    def tables(self) -> Tables:
        """Which columns were used, and how they were scaled."""
        (_, ours), (_, theirs) = self._loaded
        return Tables(self._embeddings, self.task.scalings, gaps=(ours, theirs), relations=self.task.precomputed)

    @cached_property
    def _items(self) -> tuple[list[int] | None, tuple[Pictures | None, Pictures | None]]:
        return partners(self.items, *self._embeddings), pictures(self.items, *self._embeddings)

    def of_size(self, size: int) -> tuple[QAP, float]:
        """The problem of a certificate's size, and the least cost of any match that it leaves out."""
        return self.task.of_size(size)

    def match(self, result: Result, **others: Any) -> Match:
        """All that a report says about a result."""
        truth, (source_images, target_images) = self._items
        images = {"source_images": source_images, "target_images": target_images}
        return Match.of(result, self.task, truth=truth, price=self.price, **images, **others)


def task_or_problem(files: Sequence[Path], what: TaskOptions, items: ItemOptions | None = None) -> Any:
    """Two files of embeddings or one file with a problem; None if it is neither."""
    if len(files) == 1:
        if what != TaskOptions():
            raise ValueError(f"{files[0]} is a problem: options that say how two sets are compared do not apply to it")
        return ProblemInput(files[0])
    return TaskInput(files[0], files[1], what, items or ItemOptions()) if len(files) == 2 else None


def command_line() -> str:
    """The command that runs, to copy."""
    return shlex.join(["blindmatch", *sys.argv[1:]])
