"""Items that the data cannot tell apart: an optimal match is then one of many."""

from __future__ import annotations

import numpy as np

from blindmatch.problem.task import Task
from blindmatch.validation import FloatArray

_LARGEST = 150  # beyond that equal items take long to find
_EQUAL = 1e-6  # relative to the largest relation; distances of equal points have errors of 1e-8


def tie_notes(task: Task) -> list[str]:
    """What a proof of optimality does not say: which pairings cost the same as the one found."""
    if max(task.sizes) > _LARGEST or task.hints.reward is not None or task.known is not None or task.folded is not task:
        return []
    all_are_matched = task.sizes[0] == task.sizes[1] and task.hints.unmatched_cost is None
    notes = []
    for side, kernel in zip(("sources", "targets"), task.kernels, strict=True):
        if all_are_matched and len(kernel) > 1 and _constant(kernel):
            notes.append(f"the {side} are all equally far apart: every pairing costs the same")
        elif count := _with_a_twin(kernel):
            notes.append(
                f"{count} of the {len(kernel)} {side} have the same relations as another one: exchanging the "
                "partners of such items costs nothing"
            )
    return notes


def _constant(kernel: FloatArray) -> bool:
    """Whether all items have the same relation to all others, and to themselves."""
    others = kernel[~np.eye(len(kernel), dtype=bool)]
    size = _EQUAL * np.abs(kernel).max()
    return bool(np.ptp(others) <= size and np.ptp(np.diagonal(kernel)) <= size)


def _with_a_twin(kernel: FloatArray) -> int:
    """How many items can be exchanged with another one without any change in the kernel."""
    size, own, everyone = _EQUAL * np.abs(kernel).max(), np.diagonal(kernel), np.arange(len(kernel))
    count = 0
    for i, row in enumerate(kernel):
        apart = np.maximum(np.abs(kernel - row), np.abs(kernel.T - kernel[:, i]))  # of item k and i, to each item
        apart[:, i] = np.abs(row - kernel[:, i])  # the two of them
        apart[everyone, everyone] = np.abs(own - own[i])  # and each to itself
        apart[i] = np.inf
        count += bool(apart.max(axis=1).min() <= size)
    return count
