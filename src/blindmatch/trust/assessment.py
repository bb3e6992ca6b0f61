"""Whether a match can be believed: all evidence together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.problem.distortion import Distortion, Kernels, as_distortion
from blindmatch.problem.hints import Hints
from blindmatch.problem.qap import QAP
from blindmatch.solving.result import Result
from blindmatch.solving.run import tolerance
from blindmatch.trust import regret as regrets
from blindmatch.trust.abstention import assessed_or_kept
from blindmatch.trust.alternatives import Alternatives, find_alternatives, interchangeable
from blindmatch.trust.confidence import correlation, features, probability
from blindmatch.trust.null import Null, from_background, rotated
from blindmatch.trust.report import Trust
from blindmatch.trust.significance import Significance, significance
from blindmatch.trust.spaces import Spaces
from blindmatch.trust.stability import Redraw, redraw_dimensions, redraw_samples, stability
from blindmatch.validation import FloatArray, IntArray, as_floats, as_generator, at_least, positive

Pairs = Iterable[tuple[int, int]]
Callback = Callable[[str, float], object]
# What share of the time each part may have used up when it ends.
_SHARES = {"alternatives": 0.15, "resampling": 0.3, "unrelated spaces": 0.5, "regret": 1.0}


def assess(
    result: Result,
    source: ArrayLike | None = None,
    target: ArrayLike | None = None,
    *,
    kernels: Kernels | None = None,
    distortion: str | Distortion = "gw",
    standardize: bool = True,
    known_pairs: Pairs = (),
    forbidden_pairs: Pairs | ArrayLike = (),
    similarity: ArrayLike | None = None,
    similarity_weight: float = 1.0,
    unmatched_cost: float | None = None,
    max_unmatched: int | None = None,
    source_samples: Sequence[ArrayLike] | None = None,
    target_samples: Sequence[ArrayLike] | None = None,
    background: ArrayLike | None = None,
    draws: int = 199,
    resamples: int = 40,
    regret: bool = True,
    time_limit: float | None = 60.0,
    rng: int | np.random.Generator | None = None,
    callback: Callback | None = None,
    threads: int | None = None,
) -> Trust:
    """Tell whether two matched spaces have anything in common, and which pairs can be believed.

    Parameters
    ----------
    result
        What ``bm.match`` gave for the same arguments.
    source, target, kernels, distortion, standardize, known_pairs, forbidden_pairs, similarity, similarity_weight,
    unmatched_cost, max_unmatched
        As they were given to ``bm.match``.
    source_samples, target_samples
        For each item the embeddings that its row is the mean of, (k, d) each: its images, its prompts. Stability is
        then measured on random halves of them; otherwise on dimensions drawn again.
    background
        Other items of the target's space, at least as many as there are targets. Unrelated spaces are then drawn from
        them, which is exact whatever their geometry; otherwise they are rotated copies of the target.
    draws
        So many unrelated spaces at most: the least p-value is 1 / (draws + 1).
    resamples
        So many resamples for the stability of pairs.
    regret
        Whether to prove what any match without a pair costs more (up to 60 items).
    time_limit
        Seconds for all of it. What is not finished by then is left out or coarser, never wrong.
    rng, threads
        As in ``bm.solve``.
    callback
        Called with the name of the part that is running and how much of it is done, from 0 to 1.

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
    chosen = as_distortion(distortion, standardize)
    K, G = chosen.kernels(source, target, kernels=kernels)
    hints = Hints.of(
        (len(K), len(G)),
        known_pairs=known_pairs,
        forbidden_pairs=forbidden_pairs,
        similarity=similarity,
        similarity_weight=similarity_weight,
        unmatched_cost=unmatched_cost,
        max_unmatched=max_unmatched,
    )
    spaces = Spaces.of(chosen, source, target, kernels, hints)
    generator = as_generator(rng)
    at_least(draws, 1, "draws")
    at_least(resamples, 1, "resamples")
    redraws = (
        _redraw(spaces.source, source_samples, "source_samples"),
        _redraw(spaces.target, target_samples, "target_samples"),
    )
    null = None if background is None else as_background(background, spaces)
    clock = Clock(None if time_limit is None else positive(time_limit, "time_limit"), callback)
    return assess_spaces(result, spaces, Plan(redraws, null, draws, resamples, regret), generator, clock, threads)


def assess_spaces(
    result: Result,
    spaces: Spaces,
    plan: Plan,
    rng: np.random.Generator,
    clock: Clock,
    threads: int | None = None,
) -> Trust:
    """The assessment of checked arguments."""
    match = _checked(result.permutation, spaces)
    n = len(match)
    evidence = gather(match, spaces, plan, rng, clock, threads or 1)
    found, test, rows, problem = evidence.found, evidence.test, evidence.rows, evidence.problem
    extra = found.without - found.cost
    given = [i for i, _ in spaces.hints.known]
    proved = None
    deadline = clock.part("regret")
    if plan.regret and problem.n <= regrets.LARGEST:
        full = found.matches[0]
        proved = regrets.proved_regret(
            problem, result, full, rows, extra, rng, threads=threads, deadline=deadline, progress=clock.progress
        )[:n]
        proved[given] = np.inf
    ambiguous = interchangeable(found, rows, 1e-9 * problem.scale)
    confidence = np.full(n, np.nan) if evidence.features is None else probability(evidence.features)
    if test is not None:  # where unrelated spaces match as well, no pair stands out, whatever the other numbers say
        confidence = np.minimum(confidence, 1 - test.p_value)
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
        agreement=np.where(matched, found.agreement[:n], np.nan),
        ambiguous=ambiguous,
        better=found.better if found.better > tolerance(problem, found.cost) else 0.0,
        seconds=clock.seconds,
    )


@dataclass(frozen=True, eq=False)
class Plan:
    """How thorough an assessment is, and from what it draws."""

    redraws: tuple[Redraw, Redraw]
    null: Null | None = None
    draws: int = 199
    resamples: int = 40
    regret: bool = True


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the searches found out; `features` is what confidence depends on, None if time ran out."""

    problem: QAP
    rows: IntArray
    found: Alternatives
    stability: FloatArray | None
    test: Significance | None
    features: FloatArray | None


def gather(
    match: IntArray, spaces: Spaces, plan: Plan, rng: np.random.Generator, clock: Clock, threads: int = 1
) -> Evidence:
    """Look for alternatives, resample, and match unrelated spaces."""
    problem = spaces.problem
    given = {i for i, _ in spaces.hints.known}
    rows = np.array([i for i in np.flatnonzero(match >= 0) if i not in given], dtype=np.intp)
    full = spaces.completed(match, problem.n)
    deadline = clock.part("alternatives")
    found = find_alternatives(problem, full, rows, rng, threads=threads, deadline=deadline)
    deadline = clock.part("resampling")
    stable = stability(
        spaces, match, plan.redraws, plan.resamples, rng, threads=threads, deadline=deadline, progress=clock.progress
    )
    deadline = clock.part("unrelated spaces")
    nulls = rotated(spaces.target, rng, deadline) if plan.null is None else [plan.null]
    test = significance(spaces, nulls, plan.draws, rng, threads=threads, deadline=deadline, progress=clock.progress)
    known = None
    if stable is not None and test is not None:
        known = features(found, stable, test.z, correlation(spaces.kernels, match), spaces.hints.sizes)
    return Evidence(problem, rows, found, stable, test, known)


def confident(
    result: Result,
    spaces: Callable[[], Spaces],
    min_confidence: float,
    *,
    time_limit: float | None,
    rng: int | np.random.Generator | None,
    threads: int | None,
) -> Result:
    """The result without the pairs whose confidence is too low; all of it after Ctrl-C."""

    def assessment() -> Trust:
        clock, both = Clock(time_limit, None), spaces()
        plan = Plan((redraw_dimensions(both.source), redraw_dimensions(both.target)), regret=False)
        return assess_spaces(result, both, plan, as_generator(rng), clock, threads)

    return assessed_or_kept(result, assessment, min_confidence)[0]


def as_share(value: float, name: str) -> float:
    """Return `value` if it is a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 <= value <= 1:
        raise ValueError(f"{name}={value!r}; expected a number from 0 to 1")
    return float(value)


class Clock:
    """Deadlines for the parts of an assessment, and its progress."""

    def __init__(self, time_limit: float | None, callback: Callback | None) -> None:
        self._start, self._limit, self._callback, self._part = time.perf_counter(), time_limit, callback, ""

    @property
    def seconds(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self._start

    def part(self, name: str) -> float:
        """Begin a part; returns when it must end."""
        self._part = name
        self.progress(0.0)
        return float("inf") if self._limit is None else self._start + _SHARES[name] * self._limit

    def progress(self, share: float) -> None:
        """Tell the caller how much of the part is done."""
        if self._callback is not None:
            self._callback(self._part, min(share, 1.0))


def _checked(permutation: IntArray, spaces: Spaces) -> IntArray:
    n, m = spaces.hints.sizes
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


def as_background(background: ArrayLike, spaces: Spaces, name: str = "background") -> Null:
    """Unrelated spaces from other items of the target's space."""
    points = as_floats(background, name)
    if points.shape[1] != spaces.target.shape[1] or len(points) < len(spaces.target):
        raise ValueError(
            f"{name} has shape {points.shape}; expected at least {len(spaces.target)} rows of "
            f"{spaces.target.shape[1]} numbers, as the target has"
        )
    return from_background(points, len(spaces.target))


def _redraw(points: FloatArray, samples: Sequence[ArrayLike] | None, name: str) -> Redraw:
    return redraw_dimensions(points) if samples is None else redraw_samples(samples, points, name)
