"""How long a check takes, in seconds of one thread on a usual machine: what runs with a time limit plan with."""

from __future__ import annotations

_PAIR = 1e-8  # for each pair of a stage, over n^2
_PAIR_AT_LEAST = 4e-9  # for each pair of a stage, over n^2, on an idle machine
_FACTOR = 1e-10  # for the factor of a stage, over its rank and the square of the number of its pairs
_FACTOR_AT_LEAST = 2.5e-11  # the same on an idle machine with wide vectors
_STAGE = 1e-3  # for each stage, whatever its size: in a tree of few items, most of the time
_WORTH_THREADS = 2.4e6  # the least n^4 that is divided among threads
_PROJECTION = 2e-8  # for the projection bound, over n^3, at most


def stage_work(pairs: int, n: int, rank: int = 0) -> float:
    """The work of checking a stage with `pairs` allowed pairs and a factor of this rank."""
    return _STAGE / _PAIR + pairs * n**2 + _FACTOR / _PAIR * rank * pairs**2


def check_seconds(work: float, n: int, threads: int) -> float:
    """For stages of a problem with n items, on `threads` threads; `work` is the sum of their `stage_work`."""
    return _PAIR * work / (threads if n**4 >= _WORTH_THREADS else 1)


def stage_seconds_at_least(pairs: int, n: int, rank: int = 0) -> float:
    """For one stage on an idle machine: if there is less time left, its check does not begin."""
    return _PAIR_AT_LEAST * pairs * n**2 + _FACTOR_AT_LEAST * rank * pairs**2


def projection_seconds(n: int) -> float:
    """For the projection bound."""
    return _PROJECTION * n**3
