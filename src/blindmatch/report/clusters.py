"""What a report says where the sources are clusters and the targets are classes: a classification without labels.

It speaks of images, as the command ``classify`` does; they may be anything that was embedded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

_MOST_TOLD = 3  # kinds of images in a cluster
_RARE = 0.05  # kinds with a smaller share are not told


class Scores(Protocol):
    """How an unsupervised classifier did; ``BlindClassifier.evaluate`` tells."""

    @property
    def accuracy(self) -> float: ...  # noqa: D102
    @property
    def matching_accuracy(self) -> float: ...  # noqa: D102
    @property
    def ceiling(self) -> float: ...  # noqa: D102
    def to_dict(self) -> dict[str, float]: ...  # noqa: D102


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
    scores: Scores | None = None

    @cached_property
    def counts(self) -> list[int]:
        """How many images each cluster has."""
        return [int(count) for count in np.bincount(np.asarray(self.members), minlength=len(self.classes))]

    @cached_property
    def contents(self) -> list[str] | None:
        """What is in each cluster by the labels: the most frequent classes and their shares."""
        if self.labels is None:
            return None
        inside: list[Counter[int]] = [Counter() for _ in self.classes]
        for cluster, label in zip(self.members, self.labels, strict=True):
            inside[cluster][label] += 1
        return [self._described(counted) for counted in inside]

    def _described(self, counted: Counter[int]) -> str:
        total = max(counted.total(), 1)
        kinds = [(label, count / total) for label, count in counted.most_common(_MOST_TOLD) if count >= _RARE * total]
        return ", ".join(f"{self.names[label]} {100 * share:.0f} %" for label, share in kinds)

    def adopted(self, cluster: int) -> str:
        """What became of a cluster without a partner."""
        count = self.counts[cluster]
        images = "1 image" if count == 1 else f"{count} images"
        return f"{images}, {self.names[self.classes[cluster]]} as the nearest cluster with a name"

    @property
    def about(self) -> str:
        """What was classified, and how."""
        told = (
            f"{len(self.members)} images were put into {len(self.classes)} groups (k-means), and these paired with "
            f"{len(self.names)} names of classes only by what is near what on each side."
        )
        return f"{told} No label was given{'' if self.labels is None else '; those in the file only check the answer'}."

    def tiles(self) -> list[tuple[str, str, str]]:
        """Figures at a glance: title, value, what it means."""
        if self.scores is None:
            return [("images", str(len(self.members)), f"in {len(self.classes)} clusters")]
        scores = self.scores
        named = "named as in the naming that makes most images right"
        told = f"by chance {_percent(1 / len(self.names))}, with the best naming {_percent(scores.ceiling)}"
        return [
            ("images right", _percent(scores.accuracy), told.replace(" %", "\u00a0%")),  # units stay with numbers
            ("clusters right", _percent(scores.matching_accuracy), named),
        ]

    def sentence(self) -> str | None:
        """How well it did; None where no labels are known."""
        if self.scores is None:
            return None
        scores, chance = self.scores, 1 / len(self.names)
        return (
            f"{_percent(scores.accuracy)} of the images get their class (chance: {_percent(chance)}); with the best "
            f"assignment of these clusters it would be {_percent(scores.ceiling)}. "
            f"{_percent(scores.matching_accuracy)} of the clusters are matched as in that one."
        )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
