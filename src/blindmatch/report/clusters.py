"""Sentences about a classification without labels: the sources are clusters, the targets are classes.

It says "images", like the command ``classify``; they may be anything that was embedded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from blindmatch.report.verdict import counted

if TYPE_CHECKING:
    from blindmatch.matching.classifier import ClassifierScores  # scikit-learn takes a second to import

_MOST_SHOWN = 3  # classes listed for a cluster
_RARE = 0.05  # classes with a smaller share are not listed


@dataclass(frozen=True, eq=False)
class Clusters:
    """Clusters of images that were matched with classes.

    Attributes
    ----------
    members
        (images,) the cluster of each image.
    classes
        (clusters,) the class of each cluster: its partner, or that of its nearest neighbour if it has none.
    names
        (all classes) what they are called.
    labels
        (images,) the true class of each image; None where nothing is known.
    scores
        How well the classes fit the labels; None where there are none.
    """

    members: Sequence[int]
    classes: Sequence[int]
    names: Sequence[str]
    labels: Sequence[int] | None = None
    scores: ClassifierScores | None = None

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
        return [self._describe(labels) for labels in inside]

    def _describe(self, labels: Counter[int]) -> str:
        total = max(labels.total(), 1)
        kinds = [(label, count / total) for label, count in labels.most_common(_MOST_SHOWN) if count >= _RARE * total]
        return ", ".join(f"{self.names[label]} {100 * share:.0f} %" for label, share in kinds)

    def adopted(self, cluster: int) -> str:
        """Size and class of a cluster without a partner."""
        images = counted(self.counts[cluster], "image")
        return f"{images}, {self.names[self.classes[cluster]]} like the nearest named cluster"

    @property
    def about(self) -> str:
        """A description of the classification."""
        labels = "" if self.labels is None else "; the labels in the file only check the answer"
        return (
            f"{len(self.members)} images were put into {len(self.classes)} clusters (k-means). These were paired with "
            f"{len(self.names)} class names only by what is near what on each side. No label was given{labels}."
        )

    def tiles(self) -> list[tuple[str, str, str]]:
        """Figures at a glance: title, value, what it means."""
        if self.scores is None:
            return [("images", str(len(self.members)), f"in {len(self.classes)} clusters")]
        scores = self.scores
        named = "named as in the naming with the most images right"
        limits = f"by chance {_percent(1 / len(self.names))}, with the best naming {_percent(scores.ceiling)}"
        return [
            ("images right", _percent(scores.accuracy), limits),
            ("clusters right", _percent(scores.matching_accuracy), named),
        ]

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
