"""What a report is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindmatch.geometry.correlation import agreement
from blindmatch.matching.price import Price
from blindmatch.problem.qap import QAP
from blindmatch.problem.task import Task, with_dummies
from blindmatch.report.clusters import Clusters
from blindmatch.report.verdict import ASSIGNMENT, MATCH, Nouns
from blindmatch.solving.result import Result
from blindmatch.trust.report import Trust as Trust
from blindmatch.validation import FloatArray, IntArray

Image = bytes | str | Path | NDArray[np.uint8]
Images = Mapping[int, Image] | Sequence[Image]


@dataclass(frozen=True, eq=False)
class Match:
    """Everything that a report says about a result.

    Attributes
    ----------
    result
        The match and what is proved about it.
    kernels
        The (n, n) and (m, m) matrices that were compared; None for a plain problem.
    source_names, target_names
        What the items are; their indices by default.
    truth
        The true partner of each source, -1 if it has none; None if nothing is known.
    settings
        What was run, so that it can be repeated.
    title
        What was matched with what.
    problem
        What was solved, for the costs of random pairings and of the truth.
    similarity
        Whether a larger number in the kernels means nearer (CKA, Mutual k-NN) rather than farther (distances).
    source_images, target_images
        A picture of each item (or of some, by index): the bytes or the path of a PNG, JPEG, GIF or WebP file, or an
        (h, w, 3) or (h, w) array of uint8.
    trust
        Whether to believe it, from ``bm.assess``.
    command
        The command line that repeats the run.
    certificate_file
        Where the certificate was saved.
    clusters
        What the sources consist of, if they are clusters that were matched with classes.
    targets
        How many targets there are, where neither kernels nor names tell.
    price
        The price of unmatched items, if it was suggested.
    claimed_by
        The file that claims what is proved, if that was not checked; None if it was proved or checked here.
    """

    result: Result
    kernels: tuple[FloatArray, FloatArray] | None = None
    source_names: Sequence[str] | None = None
    target_names: Sequence[str] | None = None
    truth: Sequence[int] | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    title: str = "A blind match"
    problem: QAP | None = None
    similarity: bool = False
    source_images: Images | None = None
    target_images: Images | None = None
    trust: Trust | None = None
    command: str | None = None
    certificate_file: Path | None = None
    clusters: Clusters | None = None
    claimed_by: str | None = None
    targets: int | None = None
    price: Price | None = None

    @classmethod
    def of(cls, result: Result, task: Task, **others: Any) -> Match:
        """The match of a task: its kernels, names and problem, and `others` of the attributes."""
        large = result.solver == "alignment"  # matrices of all relations would take gigabytes
        return cls(
            result,
            None if large else task.kernels,
            task.source_names,
            task.target_names,
            problem=None if large else task.problem,
            similarity=task.distortion.similarities,
            targets=task.sizes[1],
            **others,
        )

    def __post_init__(self) -> None:
        n, m = self.sizes
        expected = {"source_names": n, "target_names": m, "truth": n}
        for name, size in expected.items():
            given = getattr(self, name)
            if given is not None and len(given) != size:
                raise ValueError(f"{name} has {len(given)} items; expected {size}")
        if self.trust is not None and np.shape(self.trust.confidence) != (n,):
            raise ValueError(f"trust.confidence has shape {np.shape(self.trust.confidence)}; expected ({n},)")
        if self.truth is not None and not all(-1 <= j < m for j in self.truth):
            raise ValueError(f"truth={list(self.truth)} must hold target indices below {m}, or -1")

    @cached_property
    def sizes(self) -> tuple[int, int]:
        """How many sources and targets there are."""
        n = len(self.result.permutation)
        if self.kernels is not None:
            if len(self.kernels[0]) != n:
                raise ValueError(f"kernels[0] has {len(self.kernels[0])} rows; expected {n}, one for each source")
            return n, len(self.kernels[1])
        if self.targets is not None or self.target_names is not None:
            return n, len(self.target_names or ()) if self.targets is None else self.targets
        if self.problem is not None:
            return n, self.problem.n
        return n, max([n, *(int(j) + 1 for j in (*self.result.permutation, *(self.truth or ())))])

    @property
    def plain(self) -> bool:
        """Whether this is a plain assignment problem, where only the cost matters."""
        return self.kernels is None and self.result.support is None

    @property
    def assignment(self) -> bool:
        """Whether the report uses the terms of that problem: facilities and locations."""
        return self.plain and self.problem is not None

    @property
    def words(self) -> tuple[str, str]:
        """What a source and a target are."""
        if self.assignment:
            return "facility", "location"
        return ("source", "target") if self.clusters is None else ("cluster", "class")

    @property
    def plurals(self) -> tuple[str, str]:
        """What sources and targets are."""
        if self.assignment:
            return "facilities", "locations"
        return ("sources", "targets") if self.clusters is None else ("clusters", "classes")

    @property
    def nouns(self) -> Nouns:
        """What the match is called."""
        return ASSIGNMENT if self.assignment else MATCH

    @cached_property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """The sources that have a partner, and their partners."""
        permutation = np.asarray(self.result.permutation)
        matched = np.flatnonzero(permutation >= 0)
        return matched, permutation[matched]

    @cached_property
    def left(self) -> tuple[list[int], list[int]]:
        """The sources and the targets without a partner."""
        sources, targets = (
            np.setdiff1d(np.arange(size), side).tolist() for size, side in zip(self.sizes, self.pairs, strict=True)
        )
        return sources, targets

    @property
    def named_pairs(self) -> list[tuple[int, int, str, str]]:
        """The pairs with the names of both sides."""
        return [(i, j, self.source_name(i), self.target_name(j)) for i, j in self.result.pairs]

    def source_name(self, i: int) -> str:
        """What source i is called."""
        return str(i) if self.source_names is None else self.source_names[i]

    def target_name(self, j: int) -> str:
        """What target j is called."""
        return str(j) if self.target_names is None else self.target_names[j]

    @property
    def right(self) -> int | None:
        """How many pairs are true; None if the truth is not known."""
        return None if self.truth is None else sum(self.truth[i] == j for i, j in self.result.pairs)

    @property
    def confidence(self) -> FloatArray | None:
        """The probability that each pair is right, by the assessment or by the match itself; None if not known."""
        return self.result.confidence if self.trust is None else self.trust.confidence

    @cached_property
    def agreement(self) -> float | None:
        """How far the relations inside both sets agree under the match, as ``Trust.whole_agreement`` has it."""
        if self.result.left_out:  # chance is known of whole matches alone
            return None if self.trust is None else self.trust.whole_agreement
        return None if self.kernels is None else agreement(self.kernels, np.asarray(self.result.permutation))

    def cost_of(self, partners: Sequence[int] | IntArray) -> float | None:
        """The cost of another pairing; None if there is no problem, or it does not allow as many unmatched items."""
        if self.problem is None:
            return None
        whole = with_dummies(partners, self.sizes[1], self.problem.n)
        return None if whole is None else self.problem.objective(whole)
