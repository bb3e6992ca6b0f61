"""A result as people see it: names, words, what is known besides; clusters that were matched with classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from blindmatch.geometry.correlation import agreement
from blindmatch.problem.qap import QAP
from blindmatch.problem.task import Task, with_dummies
from blindmatch.report.verdict import ASSIGNMENT, MATCH, counted
from blindmatch.solving.result import Result
from blindmatch.trust.report import Assessment
from blindmatch.validation import FloatArray, IntArray

if TYPE_CHECKING:
    from blindmatch.matching.classifier import ClassifierScores  # scikit-learn takes a second to import


Image = bytes | str | Path | NDArray[np.uint8]
Images = Mapping[int, Image] | Sequence[Image]


@dataclass(eq=False)
class Match:
    """Everything that a report says about a result."""

    result: Result  # the match, what was matched, and what is proved about it
    trust: Assessment | None = None  # whether to believe it
    truth: Sequence[int] | None = None  # the true partner of each source, -1 if it has none; None if nothing is known
    # source_images, target_images: A picture of each item (or of some, by index): the bytes or the path of a PNG, JPEG,
    # GIF or WebP file, or an (h, w, 3) or (h, w) array of uint8
    source_images: Images | None = None
    target_images: Images | None = None
    certificate_file: Path | None = None  # where the certificate was saved
    clusters: Clusters | None = None  # what the sources consist of, if they are clusters that were matched with classes

    def __post_init__(self) -> None:
        task = self.result.task if isinstance(self.result.task, Task) else None
        # Of a plain assignment problem, of facilities and locations, only the cost matters.
        self.task, self.assignment, self.title = task, task is None, self.result.title or "A blind match"
        self.source_names, self.target_names = (None, None) if task is None else (task.source_names, task.target_names)
        self.price = None if task is None else task.price  # of unmatched items, if it was suggested
        # Whether a larger number in the kernels means nearer (CKA, Mutual k-NN), as it does not for distances.
        self.similarity = task is not None and task.distortion.similarities
        permutation = np.asarray(self.result.permutation)
        matched = np.flatnonzero(permutation >= 0)
        self.pairs: tuple[IntArray, IntArray] = matched, permutation[matched]  # the matched sources, their partners
        n = len(permutation)
        if task is not None:
            self.sizes = task.sizes
        elif self.problem is None:
            self.sizes = n, max([n, *(int(j) + 1 for j in self.truth or ())])
        else:
            self.sizes = n, self.problem.n
        if self.assignment:
            self.nouns, self.words, self.plurals = ASSIGNMENT, ("facility", "location"), ("facilities", "locations")
        elif self.clusters is None:
            self.nouns, self.words, self.plurals = MATCH, ("source", "target"), ("sources", "targets")
        else:
            self.nouns, self.words, self.plurals = MATCH, ("cluster", "class"), ("clusters", "classes")
        if self.truth is not None and len(self.truth) != self.sizes[0]:
            raise ValueError(f"truth has {len(self.truth)} items; expected {self.sizes[0]}")
        if self.truth is not None and not all(-1 <= j < self.sizes[1] for j in self.truth):
            raise ValueError(f"truth={list(self.truth)} must hold target indices below {self.sizes[1]}, or -1")
        if self.trust is not None:
            self.trust.check_about(self.result)

    @cached_property
    def kernels(self) -> tuple[FloatArray, FloatArray] | None:
        """The (n, n) and (m, m) matrices that were compared; None for a plain problem and for a large match."""
        return None if self.task is None or self.task.too_large else self.task.kernels

    @property
    def problem(self) -> QAP | None:
        """The problem that was solved, for the costs of other pairings; None for a large match."""
        if self.result.task is None or (self.task is not None and self.task.too_large):
            return None
        return self.result.problem

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
        """The name of source i."""
        return str(i) if self.source_names is None else self.source_names[i]

    def target_name(self, j: int) -> str:
        """The name of target j."""
        return str(j) if self.target_names is None else self.target_names[j]

    def table(self, candidates: int = 0) -> dict[str, Sequence[object]]:
        """Columns with a row for each source: names (indices without them), confidence, candidates, and indices."""
        partners = self.result.permutation.tolist()
        indices = [j if j >= 0 else None for j in partners]
        names = self.target_names
        columns: dict[str, Sequence[object]] = {
            "source": range(len(partners)) if self.source_names is None else self.source_names,
            "target": indices if names is None else [None if j is None else names[j] for j in indices],
        }
        if self.confidence is not None:
            columns["confidence"] = self.confidence.tolist()
        if candidates and self.result.ranking is not None:
            best = self.result.candidates(min(candidates, self.result.ranking.most))
            for place, others in enumerate(best.T.tolist(), 1):
                columns[f"candidate_{place}"] = [self.target_name(j) for j in others]
        return {**columns, "source_index": range(len(partners)), "target_index": indices}

    @property
    def right(self) -> int | None:
        """The number of true pairs; None if the truth is not known."""
        return None if self.truth is None else sum(self.truth[i] == j for i, j in self.result.pairs)

    @property
    def confidence(self) -> FloatArray | None:
        """The probability that each pair is right, by the assessment or by the match itself; None if not known."""
        return self.result.confidence if self.trust is None else self.trust.confidence

    @cached_property
    def agreement(self) -> float | None:
        """The agreement of the relations inside both sets under the match, as in ``Assessment.whole_agreement``."""
        if self.result.left_out:  # chance is known of whole matches alone
            return None if self.trust is None else self.trust.whole_agreement
        return None if self.kernels is None else agreement(self.kernels, np.asarray(self.result.permutation))

    def cost_of(self, partners: Sequence[int] | IntArray) -> float | None:
        """The cost of another pairing; None if there is no problem, or it does not allow as many unmatched items."""
        if self.problem is None:
            return None
        whole = with_dummies(partners, self.sizes[1], self.problem.n)
        return None if whole is None else self.problem.objective(whole)


_MOST_SHOWN = 3  # classes listed for a cluster
_RARE = 0.05  # classes with a smaller share are not listed


@dataclass(frozen=True, eq=False)
class Clusters:
    """Clusters of images that were matched with classes."""

    members: Sequence[int]  # (images,) the cluster of each image
    # (clusters,) the class of each cluster: its partner, or that of its nearest neighbour if it has none
    classes: Sequence[int]
    names: Sequence[str]  # (all classes) what they are called
    labels: Sequence[int] | None = None  # (images,) the true class of each image; None where nothing is known
    scores: ClassifierScores | None = None  # how well the classes fit the labels; None where there are none

    @cached_property
    def counts(self) -> list[int]:
        """Number of images in each cluster."""
        return [int(count) for count in np.bincount(np.asarray(self.members), minlength=len(self.classes))]

    @cached_property
    def contents(self) -> list[str] | None:
        """The most frequent classes in each cluster and their shares, by the labels."""
        if self.labels is None:
            return None
        inside: list[Counter[int]] = [Counter() for _ in self.classes]
        for cluster, label in zip(self.members, self.labels, strict=True):
            inside[cluster][label] += 1
        found = []
        for labels in inside:
            kinds = [(label, count / labels.total()) for label, count in labels.most_common(_MOST_SHOWN)]
            found.append(", ".join(f"{self.names[k]} {100 * share:.0f} %" for k, share in kinds if share >= _RARE))
        return found

    def adoption(self, cluster: int) -> str:
        """Size and class of a cluster without a partner."""
        images = counted(self.counts[cluster], "image")
        return f"{images}, {self.names[self.classes[cluster]]} like the nearest named cluster"

    def sentence(self) -> str | None:
        """The accuracy in a sentence; None where no labels are known."""
        if self.scores is None:
            return None
        scores, chance = self.scores, 1 / len(self.names)
        return (
            f"{_percent(scores.accuracy)} of the images get their class (chance: {_percent(chance)}); with the best "
            f"assignment of these clusters it would be {_percent(scores.ceiling)}. "
            f"{_percent(scores.matching_accuracy)} of the clusters are matched as in the best assignment."
        )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
