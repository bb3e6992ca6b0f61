"""Whether a match can be believed: all evidence together."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.geometry.correlation import agreement, centred_agreement, pair_agreement
from blindmatch.machine import one_blas_thread
from blindmatch.problem.optimality import tolerance
from blindmatch.problem.task import Task
from blindmatch.solving.result import Result
from blindmatch.trust import regret as regrets
from blindmatch.trust.alternatives import Alternatives, find_alternatives, interchangeable
from blindmatch.trust.confidence import features, probability
from blindmatch.trust.large import assess_large
from blindmatch.trust.null import from_background, rotated
from blindmatch.trust.prior import KnownPairs, Prior, as_prior, count_hidden, refuse_prior
from blindmatch.trust.report import Assessment
from blindmatch.trust.rotation import Null
from blindmatch.trust.search import Part
from blindmatch.trust.significance import Significance, fisher, significance
from blindmatch.trust.stability import Redraw, predicted, redraw_dimensions, redraw_samples, stability
from blindmatch.validation import FloatArray, IntArray, as_floats, as_generator, as_partners, at_least, positive

Callback = Callable[[str, float], object]
# The share of the time limit by which a part must end; the others may use what is left, proofs of regret last.
_SHARES = {"known pairs": 0.05, "resampling": 0.15, "unrelated spaces": 0.85}


def assess_result(result: Result, plan: AssessmentPlan, schedule: Schedule) -> Assessment:
    """Assess a match of a task; this is what ``Result.assess``, ``min_confidence`` and the commands share."""
    task, whole = result.task, result.permutation if result.whole is None else result.whole
    assert isinstance(task, Task)
    if result.voted:
        raise ValueError(
            "the clusters of this match were chosen by how well they match, so it cannot be assessed; use "
            "vote=False (--no-vote)"
        )
    match = as_partners(whole, task.sizes, "permutation")
    n = len(match)
    if not (match >= 0).any():
        raise ValueError("result matches nothing: there is nothing to assess")
    if task.too_large or (result.solver == "alignment" and result.support is not None):
        refuse_prior(plan.prior, n)
        return replace(assess_large(result, match, task, schedule.rng), seconds=schedule.seconds)
    # The matrices are small: on a busy machine two threads of BLAS take many times as long as one.
    with one_blas_thread():
        prior, count = plan.prior, None
        if isinstance(prior, KnownPairs):
            count = prior.count(task, schedule.part("known pairs"))
            prior = count.share
        elif prior is None and task.known is not None:
            count = count_hidden(task, schedule.part("known pairs"))
            prior = None if count is None else count.share
        problem, evidence = task.problem, gather(match, task, plan, schedule)
    found, test, rows = evidence.found, evidence.test, evidence.rows
    extra = found.without - found.cost
    given = [i for i, _ in task.hints.known]
    proved = None
    if plan.regret and problem.n <= regrets.LARGEST:
        part = schedule.part("regret")
        proved = regrets.proved_regret(problem, found, rows, result.lower_bound, part)[:n]
        proved[given] = np.inf
    ambiguous = interchangeable(found, rows, 1e-9 * problem.scale)
    confidence = np.full(n, np.nan) if evidence.features is None else probability(evidence.features, prior)
    confidence = np.minimum(confidence, 1 / found.choices(1e-9 * problem.scale)[:n])
    confidence[given] = 1.0
    matched = match >= 0
    return Assessment(
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
        match=match,
        task_digest=task.digest,
    )


@dataclass(frozen=True, eq=False)
class AssessmentPlan:
    """How thorough an assessment is, and what it draws from.

    Attributes
    ----------
    null
        Unrelated spaces; rotated copies of the target by default.
    draws, resamples, regret
        As in ``Result.assess``.
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

    @classmethod
    def of(
        cls,
        task: Task,
        samples: tuple[Sequence[ArrayLike] | None, Sequence[ArrayLike] | None],
        background: ArrayLike | None,
        prior: Prior | None,
        draws: int,
        resamples: int,
        regret: bool,
    ) -> AssessmentPlan:
        """Check the arguments of ``Result.assess``."""
        if task.scalings is not None and samples != (None, None):
            scale = task.scalings[0].scale
            raise ValueError(f"samples cannot be used with scale={scale!r}: scale them, and the means, before")
        null = None if background is None else as_background(background, task)
        at_least(draws, 1, "draws")
        return cls(null, draws, at_least(resamples, 1, "resamples"), regret, samples, as_prior(prior, task))

    def redraws(self, task: Task) -> tuple[Redraw, Redraw]:
        """How the points of source and target are drawn again."""
        ours, theirs = self.samples
        source = (task.all_points if ours is None else task.points)[0]
        target = (task.all_points if theirs is None else task.points)[1]
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

    @classmethod
    def of(
        cls,
        rng: int | np.random.Generator | None,
        threads: int | None,
        time_limit: float | None,
        callback: Callback | None = None,
    ) -> Schedule:
        """Check the arguments of ``Result.assess``."""
        limit = None if time_limit is None else positive(time_limit, "time_limit")
        return cls(as_generator(rng), threads, limit, callback)

    @property
    def seconds(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self._start

    def part(self, name: str) -> Part:
        """Begin a part, which must end by its share of the time limit."""
        share = _SHARES.get(name, 1.0)
        deadline = float("inf") if self._limit is None else self._start + share * self._limit
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
    """Resample, match unrelated spaces, and look for alternatives."""
    folded = task.folded  # points have one relation: of layers, their mean is tested
    redraws = plan.redraws(folded)
    given = {i for i, _ in task.hints.known}
    rows = np.array([i for i in np.flatnonzero(match >= 0) if i not in given], dtype=np.intp)
    full = task.completed(match)
    stable = stability(folded, full, redraws, plan.resamples, schedule.part("resampling"))
    part = schedule.part("unrelated spaces")
    nulls = rotated(folded.all_points[1], part.rng, part.deadline) if plan.null is None else [plan.null]
    test = significance(folded, nulls, plan.draws, part) if plan.null is not None or folded.has_points else None
    found = find_alternatives(task.problem, full, rows, schedule.part("alternatives"))
    known = None
    if stable is not None and test is not None:
        centred = fisher(centred_agreement(folded.kernels, match))
        known = features(found, stable, test, centred, predicted(folded.all_points, match))
    return Evidence(rows, found, stable, test, known)


def as_share(value: float, name: str) -> float:
    """Return `value` if it is a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 <= value <= 1:
        raise ValueError(f"{name}={value!r}; expected a number from 0 to 1")
    return float(value)


def _of_rows(values: FloatArray, rows: IntArray, n: int) -> FloatArray:
    chosen = np.full(n, np.nan)
    chosen[rows] = values[rows]
    return chosen


def as_background(background: ArrayLike, task: Task, name: str = "background") -> Null:
    """Unrelated spaces from other items of the target's space."""
    points, (n, d) = as_floats(background, name), task.all_points[1].shape
    if points.shape[1] != d or len(points) < n:
        raise ValueError(
            f"{name} has shape {points.shape}; expected at least {n} rows of {d} numbers, as the target has"
        )
    return from_background(points if task.scalings is None else task.scalings[1].transform(points), n)


def _redraw(points: FloatArray, samples: Sequence[ArrayLike] | None, name: str) -> Redraw:
    return redraw_dimensions(points) if samples is None else redraw_samples(samples, points, name)
