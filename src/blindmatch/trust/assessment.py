"""Whether a match can be believed: all evidence together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.geometry.correlation import agreement, centred_agreement, pair_agreement
from blindmatch.machine import one_blas_thread
from blindmatch.problem.distortion import Distortion, Kernels
from blindmatch.problem.optimality import tolerance
from blindmatch.problem.task import Task, as_task
from blindmatch.solving.result import Result
from blindmatch.trust import regret as regrets
from blindmatch.trust.alternatives import Alternatives, find_alternatives, interchangeable
from blindmatch.trust.confidence import features, probability
from blindmatch.trust.large import assess_large
from blindmatch.trust.null import Null, from_background, rotated
from blindmatch.trust.prior import KnownPairs, Prior, as_prior, refuse_prior
from blindmatch.trust.report import Trust
from blindmatch.trust.search import Part
from blindmatch.trust.significance import Significance, significance
from blindmatch.trust.stability import Redraw, redraw_dimensions, redraw_samples, stability
from blindmatch.validation import FloatArray, IntArray, as_floats, as_generator, at_least, positive, refuse_other

Pairs = Iterable[tuple[int, int]]
Callback = Callable[[str, float], object]
# The share of the time limit by which each part must end.
_SHARES = {"known pairs": 0.05, "alternatives": 0.15, "resampling": 0.3, "unrelated spaces": 0.5, "regret": 1.0}


def assess(
    result: Result,
    source: ArrayLike | Task | None = None,
    target: ArrayLike | None = None,
    *,
    kernels: Kernels | None = None,
    distortion: str | Distortion = "gw",
    standardize: bool = True,
    scale: str = "none",
    metric: str | tuple[str, str] = "euclidean",
    neighbors: int | tuple[int, int] | None = None,
    known_pairs: Pairs = (),
    forbidden_pairs: Pairs | ArrayLike = (),
    similarity: ArrayLike | None = None,
    similarity_weight: float = 1.0,
    unmatched_cost: float | None = None,
    max_unmatched: int | None = None,
    source_samples: Sequence[ArrayLike] | None = None,
    target_samples: Sequence[ArrayLike] | None = None,
    background: ArrayLike | None = None,
    prior: Prior | None = None,
    draws: int = 199,
    resamples: int = 40,
    regret: bool = True,
    time_limit: float | None = 60.0,
    rng: int | np.random.Generator | None = None,
    callback: Callback | None = None,
    threads: int | None = None,
) -> Trust:
    """Assess whether two matched spaces have structure in common, and which pairs can be believed.

    A large match (``docs/large.md``) is judged by its support and by the confidence that it already has.

    Parameters
    ----------
    result
        What ``bm.match`` gave for the same arguments.
    source, target, kernels, distortion, standardize, scale, metric, neighbors, known_pairs, forbidden_pairs,
    similarity, similarity_weight, unmatched_cost, max_unmatched
        As they were given to ``bm.match``; or a ``bm.Task`` in place of the source, which has them all.
    source_samples, target_samples
        For each item, the (k, d) embeddings whose mean is its row, such as its images or its prompts. Stability is then
        measured on random halves of them; without samples, on resampled dimensions.
    background
        Other items of the target's space, at least as many as there are targets. Unrelated spaces are then drawn from
        them, which makes the test exact for any geometry; without it they are rotated copies of the target.
    prior
        The share of right pairs to expect in matches like this one, which a single match cannot show: confidence
        depends on it. Either a pair of arrays: other items of the source's and the target's space, row i of one being
        the partner of row i of the other, at least as many as are matched here. Random sets of them are matched in the
        same way, and the right pairs are counted. (With `kernels`: the kernels of such items.) Or a number between 0
        and 1. None: as in the problems that the confidence was fitted to, where few pairs are right.
    draws
        The largest number of unrelated spaces to match. The smallest possible p-value is 1 / (draws + 1).
    resamples
        The number of resamples that measure the stability of pairs.
    regret
        Whether to prove how much more any match without a pair costs (up to 60 items).
    time_limit
        Seconds for all of it. What is not finished by then is missing or coarser, but never wrong.
    rng, threads
        As in ``bm.solve``.
    callback
        Called with the name of the running part and the share of it that is done, from 0 to 1.

    Examples
    --------
    >>> import numpy as np, blindmatch as bm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((8, 5))
    >>> Y = X[::-1] + 0.05 * rng.standard_normal((8, 5))
    >>> trust = bm.assess(bm.match(X, Y, rng=0), X, Y, rng=0)
    >>> trust.p_value, bool(trust.confidence.min() > 0.8), trust.ambiguous
    (0.005, True, [])
    """
    task = as_task(
        source,
        target,
        kernels=kernels,
        distortion=distortion,
        standardize=standardize,
        scale=scale,
        metric=metric,
        neighbors=neighbors,
        known_pairs=known_pairs,
        forbidden_pairs=forbidden_pairs,
        similarity=similarity,
        similarity_weight=similarity_weight,
        unmatched_cost=unmatched_cost,
        max_unmatched=max_unmatched,
    )
    if task.scalings is not None and (source_samples is not None or target_samples is not None):
        raise ValueError(f"samples cannot be used with scale={scale!r}: scale them, and the means, before")
    plan = AssessmentPlan(
        None if background is None else as_background(background, task),
        at_least(draws, 1, "draws"),
        at_least(resamples, 1, "resamples"),
        regret,
        (source_samples, target_samples),
        as_prior(prior, task),
    )
    limit = None if time_limit is None else positive(time_limit, "time_limit")
    return assess_task(result, task, plan, Schedule(as_generator(rng), threads, limit, callback))


def assess_task(result: Result, task: Task, plan: AssessmentPlan, schedule: Schedule) -> Trust:
    """Assess a match of a task; this is what ``bm.assess``, ``min_confidence`` and the commands share."""
    refuse_other(result, Result, "result", "expected what bm.match returns")
    match = _checked(result.permutation, task)
    n = len(match)
    if result.solver == "alignment":  # too many items for an assignment problem
        refuse_prior(plan.prior, n)
        return replace(assess_large(result, match, task, schedule.rng), seconds=schedule.seconds)
    # The matrices are small: on a busy machine two threads of BLAS take many times as long as one.
    with one_blas_thread():
        prior, count = plan.prior, None
        if isinstance(prior, KnownPairs):
            count = prior.count(task, schedule.part("known pairs"))
            prior = count.share
        problem, evidence = task.problem, gather(match, task, plan, schedule)
    found, test, rows = evidence.found, evidence.test, evidence.rows
    extra = found.without - found.cost
    given = [i for i, _ in task.hints.known]
    proved = None
    part = schedule.part("regret")
    if plan.regret and problem.n <= regrets.LARGEST:
        proved = regrets.proved_regret(problem, found, rows, result.lower_bound, part)[:n]
        proved[given] = np.inf
    ambiguous = interchangeable(found, rows, 1e-9 * problem.scale)
    confidence = np.full(n, np.nan) if evidence.features is None else probability(evidence.features, prior)
    for group in ambiguous:
        confidence[group] = np.minimum(confidence[group], 1 / len(group))
    confidence[given] = 1.0
    matched = match >= 0
    return Trust(
        p_value=None if test is None else test.p_value,
        p_value_error=None if test is None else test.p_value_error,
        z=None if test is None else test.z,
        draws=0 if test is None else test.draws,
        confidence=np.where(matched, confidence, np.nan),
        regret=proved,
        found_regret=_of_rows(extra, rows, n),
        stability=None if evidence.stability is None else np.where(matched, evidence.stability, np.nan),
        consensus=np.where(matched, found.consensus[:n], np.nan),
        agreement=pair_agreement(task.kernels, match),
        whole_agreement=agreement(task.kernels, match),
        chance_agreement=None if test is None else test.agreement,
        ambiguous=ambiguous,
        better=found.better if found.better > tolerance(problem, found.cost) else 0.0,
        seconds=schedule.seconds,
        prior=prior,
        prior_count=count,
    )


@dataclass(frozen=True, eq=False)
class AssessmentPlan:
    """How thorough an assessment is, and what it draws from.

    Attributes
    ----------
    null
        Unrelated spaces; rotated copies of the target by default.
    draws, resamples, regret
        As in ``bm.assess``.
    samples
        The embeddings that each row of source and target is the mean of, where there are such.
    prior
        The share of right pairs to expect, or the known pairs to count it on.
    """

    null: Null | None = None
    draws: int = 199
    resamples: int = 40
    regret: bool = True
    samples: tuple[Sequence[ArrayLike] | None, Sequence[ArrayLike] | None] = (None, None)
    prior: float | KnownPairs | None = None

    def redraws(self, task: Task) -> tuple[Redraw, Redraw]:
        """How the points of source and target are drawn again."""
        (source, target), (ours, theirs) = task.points, self.samples
        return _redraw(source, ours, "source_samples"), _redraw(target, theirs, "target_samples")


class Schedule:
    """The random numbers, threads, deadlines and callback for the parts of an assessment."""

    def __init__(
        self,
        rng: np.random.Generator,
        threads: int | None = None,
        time_limit: float | None = None,
        callback: Callback | None = None,
    ) -> None:
        self.rng, self._threads, self._limit, self._callback = rng, threads, time_limit, callback
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self._start

    def part(self, name: str) -> Part:
        """Begin a part."""
        deadline = float("inf") if self._limit is None else self._start + _SHARES[name] * self._limit
        threads = self._threads if name == "regret" else self._threads or 1  # the others run many short searches

        def progress(share: float) -> None:
            if self._callback is not None:
                self._callback(name, min(share, 1.0))

        progress(0.0)
        return Part(self.rng, threads, deadline, progress)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the searches found.

    Attributes
    ----------
    rows
        The sources with a partner that was not given.
    found, stability, test
        Other matches; how often each pair comes back; the test. The latter two are None if time ran out.
    features
        What confidence depends on; None if time ran out.
    """

    rows: IntArray
    found: Alternatives
    stability: FloatArray | None
    test: Significance | None
    features: FloatArray | None


def gather(match: IntArray, task: Task, plan: AssessmentPlan, schedule: Schedule) -> Evidence:
    """Look for alternatives, resample, and match unrelated spaces."""
    redraws = plan.redraws(task)
    given = {i for i, _ in task.hints.known}
    rows = np.array([i for i in np.flatnonzero(match >= 0) if i not in given], dtype=np.intp)
    full = task.completed(match)
    found = find_alternatives(task.problem, full, rows, schedule.part("alternatives"))
    stable = stability(task, match, redraws, plan.resamples, schedule.part("resampling"))
    part = schedule.part("unrelated spaces")
    nulls = rotated(task.points[1], part.rng, part.deadline) if plan.null is None else [plan.null]
    test = significance(task, nulls, plan.draws, part) if plan.null is not None or task.has_points else None
    known = None
    if stable is not None and test is not None:
        known = features(found, stable, test, centred_agreement(task.kernels, match) or 0.0, task.sizes)
    return Evidence(rows, found, stable, test, known)


def as_share(value: float, name: str) -> float:
    """Return `value` if it is a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 <= value <= 1:
        raise ValueError(f"{name}={value!r}; expected a number from 0 to 1")
    return float(value)


def _checked(permutation: IntArray, task: Task) -> IntArray:
    n, m = task.sizes
    match = np.asarray(permutation)
    used = match[match >= 0]
    if match.shape != (n,) or match.dtype.kind not in "iu":
        raise ValueError(f"result matches {match.shape} sources; source has {n}")
    if match.min() < -1 or match.max() >= m or len(np.unique(used)) != len(used):
        raise ValueError(f"result.permutation must hold different indices below {m}, or -1")
    if not len(used):
        raise ValueError("result matches nothing: there is nothing to assess")
    return match.astype(np.intp)


def _of_rows(values: FloatArray, rows: IntArray, n: int) -> FloatArray:
    chosen = np.full(n, np.nan)
    chosen[rows] = values[rows]
    return chosen


def as_background(background: ArrayLike, task: Task, name: str = "background") -> Null:
    """Unrelated spaces from other items of the target's space."""
    points, (n, d) = as_floats(background, name), task.points[1].shape
    if points.shape[1] != d or len(points) < n:
        raise ValueError(
            f"{name} has shape {points.shape}; expected at least {n} rows of {d} numbers, as the target has"
        )
    return from_background(points if task.scalings is None else task.scalings[1].transform(points), n)


def _redraw(points: FloatArray, samples: Sequence[ArrayLike] | None, name: str) -> Redraw:
    return redraw_dimensions(points) if samples is None else redraw_samples(samples, points, name)
