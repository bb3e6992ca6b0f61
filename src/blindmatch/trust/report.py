"""What an assessment says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from html import escape
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from blindmatch.errors import shown
from blindmatch.io.exchange import json_finite
from blindmatch.notebook import html_table
from blindmatch.problem.task import Task
from blindmatch.solving.result import Result
from blindmatch.trust.prior import Count
from blindmatch.validation import FloatArray, IntArray

HIGH = 0.8  # a confidence from here on is called high
LIKELY, CERTAIN = 0.05, 0.01  # p-values up to which spaces probably have, or have, structure in common
BETTER = 1.0  # standard deviations that a match costs less than those of unrelated spaces: then it is not refuted
DOUBTFUL = 0.5  # a pair of a lower confidence is called doubtful
FEW, MOST = 0.25, 0.75  # shares of right pairs: with fewer a match is no good, from the other on it can be believed


@dataclass(frozen=True)
class Judgement:
    """An answer to "can I believe this match?".

    Attributes
    ----------
    level
        "yes", "care" (in part, or with doubts), "no", or "open": nothing is known either way.
    headline, text
        The answer in plain words, for the large type, and the reasons in sentences.
    """

    level: Literal["yes", "care", "no", "open"]
    headline: str
    text: str


def judge(
    p_value: float | None,
    confidence: FloatArray,
    pairs: int,
    left_out: int = 0,
    prior: str = "",
    draws: int = 0,
    z: float = 0.0,
) -> Judgement:
    """Decide whether to believe a match with this number of pairs; `confidence` is nan where it is not known.

    `left_out` further pairs were left out, because their confidence is too low or not known. `prior` is the
    prior in words, if there is one. The p-value is from so many draws: with few of them it cannot be small. The match
    costs `z` standard deviations less than those of unrelated spaces.
    """
    known = np.asarray(confidence, dtype=float)
    known = known[np.isfinite(known)]
    about_pairs = _pairs_sentence(known, pairs, left_out, prior)
    if p_value is None:
        why = "too little time, or kernels that are not distances between points"
        text = f"The test for structure in common was not made: {why}. {about_pairs}"
        return Judgement("open", "Matched; whether it is right could not be tested", text)
    first = bool(draws) and p_value * (draws + 1) < 1.5  # no draw was as good as the match
    if p_value > LIKELY and first:
        spaces = (
            "one unrelated space was matched, which is" if draws == 1 else f"{draws} unrelated spaces were matched, all"
        )
        text = f"Only {spaces} worse than this match: too few to tell. Allow more time or draws. {about_pairs}"
        return Judgement("open", "Matched; whether it is right is not known yet", text)
    if p_value > LIKELY:
        if z >= BETTER:
            why = "spaces that are as much like themselves as these may match as well by chance"
            text = f"It costs {z:.1f} standard deviations less than matches of unrelated spaces, but {why}"
            text += f" (p = {p_value:.2g}). Known pairs would tell. {about_pairs}"
            return Judgement("open", "Not enough evidence to believe this match", text)
        share = f"unrelated ones match as well in {100 * p_value:.0f} % of cases"
        text = f"Not enough evidence that the spaces have anything in common: {share}."
        if left_out or prior or len(known) < pairs:
            text += f" {about_pairs}"
        return Judgement("no", "Do not believe this match: unrelated data match as well", text)
    check = "probably have structure in common" if p_value > CERTAIN else "have structure in common"
    text = f"The two spaces {check}: unrelated ones match as well in only {100 * p_value:.2g} % of cases. {about_pairs}"
    return _believed(known, pairs, text, sure=p_value <= CERTAIN or first)


def _believed(known: FloatArray, pairs: int, text: str, sure: bool = True) -> Judgement:
    """The answer about a match that is better than chance: how many of its pairs are right, and how many doubtful."""
    if not pairs:
        return Judgement("care", "Better than chance, but no pair is kept", text)
    if len(known) < pairs:
        return Judgement("care", "Better than chance; which pairs are right is not known", text)
    right, doubtful, share = round(float(known.sum())), int((known < DOUBTFUL).sum()), float(known.mean())
    if share < FEW:
        few = f"only about {right} of {pairs} pairs" if right else "hardly any pair"
        return Judgement("care", f"Better than chance, but {few} {'are' if right else 'is'} right", text)
    doubts = f"; {doubtful} {'is' if doubtful == 1 else 'are'} doubtful" if doubtful else ""
    about = "About" if sure else "Probably about"
    level: Literal["yes", "care"] = "yes" if sure and share >= MOST else "care"
    return Judgement(level, f"{about} {right} of {pairs} pairs are right{doubts}", text)


def judge_support(support: int, confidence: FloatArray, pairs: int, left_out: int = 0) -> Judgement:
    """Decide whether to believe a large match, by whether other starts of the search led to it by themselves."""
    known = confidence[np.isfinite(confidence)]
    about_pairs = _pairs_sentence(known, pairs, left_out)
    if not support:
        text = f"No other start led to this match, as with unrelated sets: do not believe it. {about_pairs}"
        return Judgement("no", "Do not believe this match: no other start of the search led to it", text)
    others = "Another start" if support == 1 else f"{support} other starts"
    text = f"{others} led to the same match, which hardly happens with unrelated sets. {about_pairs}"
    return _believed(known, pairs, text)


def _pairs_sentence(known: FloatArray, pairs: int, left_out: int, prior: str = "") -> str:
    """How many pairs can be believed, as far as that is known."""
    given = f", given {prior}" if prior else ""
    if left_out:
        should = f"; about {known.sum():.0f} of these should be right{given}" if len(known) == pairs > 0 else ""
        return f"{pairs or 'None'} of {pairs + left_out} pairs {'are' if pairs > 1 else 'is'} kept{should}."
    if len(known) < pairs:
        which = "any pair" if not len(known) else f"{pairs - len(known)} of {pairs} pairs"
        return f"Time ran out before the confidence of {which} was known."
    return (
        f"{int((known >= HIGH).sum())} of {pairs} pairs have a confidence of at least {100 * HIGH:.0f} %; "
        f"of all {pairs}, about {known.sum():.0f} should be right{given}."
    )


@dataclass(frozen=True, eq=False, repr=False)
class Assessment:
    """How far a match can be believed.

    Attributes
    ----------
    p_value, p_value_error
        How often unrelated spaces with the geometry of the target match as well, and the Monte Carlo standard error of
        that share. None if time ran out first.
    z
        How many standard deviations the cost is below the mean cost of unrelated spaces.
    draws
        How many unrelated spaces were matched.
    confidence
        (n,) the probability that the pair of each source is right; nan if it has none, or time ran out.
    regret
        (n,) proved: no match without this pair costs less than the cost plus this. nan where time ran out before
        anything was proved, 0 where another match costs the same (to one part in a million of the cost), negative where
        a cheaper one is not ruled out, inf where the pair was given. None if not computed.
    found_regret
        (n,) how much more the best match found without this pair costs: an upper bound on the true regret. None for
        large matches.
    stability
        (n,) share of resamples in which the pair came back. None if time ran out first.
    consensus
        (n,) share of the matches of nearly the same cost in which the pair occurs. None for large matches.
    agreement
        (n,) for each pair, the correlation of its relations to all other pairs in one set and in the other: 1 if they
        are the same, 0 if they are unrelated. nan for fewer than four pairs. For large matches: to 512 other pairs.
    whole_agreement, chance_agreement
        The same correlation over all relations, and its mean over the unrelated spaces, which are matched by the same
        search; it is far above 0 even for unrelated spaces. None if it is not known.
    ambiguous
        Groups of sources that are interchangeable: exchanging their partners costs (nearly) nothing.
    better
        How much cheaper the best match found on the way is; 0.0 if none is.
    seconds
        Duration of the assessment.
    support
        For large matches, which are judged by it: how many other starts of the search led to the same match. None for
        others.
    prior
        The share of right pairs that was expected before the match; None if it was neither stated nor counted.
    prior_count
        The count of right pairs that the prior is from, if it was counted on known pairs.
    kept
        (n,) which pairs `min_confidence` kept; None if it was not asked for. The verdict is about these.
    match, task_digest
        What was assessed: the partner of each source, and ``Task.digest``. Reports refuse another match.
    stated_by
        The file that states all this, if it was not computed here.
    """

    p_value: float | None
    p_value_error: float | None
    z: float | None
    draws: int
    confidence: FloatArray
    regret: FloatArray | None
    found_regret: FloatArray | None
    stability: FloatArray | None
    consensus: FloatArray | None
    agreement: FloatArray
    whole_agreement: float | None
    chance_agreement: float | None
    ambiguous: list[list[int]]
    better: float
    seconds: float
    support: int | None = None
    prior: float | None = None
    prior_count: Count | None = None
    kept: NDArray[np.bool_] | None = None
    match: IntArray | None = None
    task_digest: str = ""
    stated_by: str = ""

    def __post_init__(self) -> None:
        n = len(self.confidence)
        for name in ("confidence", "stability", "consensus", "regret", "found_regret", "agreement", "kept", "match"):
            values = getattr(self, name)
            if values is not None and np.shape(values) != (n,):
                raise ValueError(f"{name} has shape {np.shape(values)}; expected ({n},), a number for each source")
        for name in ("confidence", "stability", "consensus", "p_value", "p_value_error", "prior"):
            values = getattr(self, name)
            if values is not None and ((np.asarray(values) < 0) | (np.asarray(values) > 1 + 1e-9)).any():
                raise ValueError(f"{name}={shown(values)}; expected numbers from 0 to 1")
        for name in ("p_value", "p_value_error", "z", "whole_agreement", "chance_agreement", "prior"):
            if getattr(self, name) is not None and math.isnan(getattr(self, name)):
                raise ValueError(f"{name} is nan; expected a number, or None if it is not known")
        for name in ("draws", "better", "seconds", "support"):
            if getattr(self, name) is not None and not getattr(self, name) >= 0:
                raise ValueError(f"{name}={getattr(self, name)!r}; expected a number of at least 0")
        if not all(0 <= item < n for group in self.ambiguous for item in group):
            raise ValueError(f"ambiguous={self.ambiguous}; expected groups of sources below {n}")

    def check_about(self, result: Result) -> None:
        """Refuse a result that this is not about."""
        whole = result.permutation if result.whole is None else result.whole
        if len(self.confidence) != len(whole):
            raise ValueError(f"trust is about {len(self.confidence)} sources; the result has {len(whole)}")
        digest = result.task.digest if isinstance(result.task, Task) else ""
        if self.match is None or not np.array_equal(self.match, whole) or self.task_digest != digest:
            raise ValueError("trust is about another match or other data; expected what result.assess() returns")

    @cached_property
    def judgement(self) -> Judgement:
        """Whether to believe the match: the only place that decides it, for terminal, page and JSON."""
        if self.better > 0:
            text = f"A match that is cheaper by {self.better:.4g} was found on the way; match again with more time."
            return Judgement("no", "Do not use this match: a cheaper one exists", text)
        found = self._judged
        if self.stated_by:
            return replace(found, text=f"{found.text} (As {self.stated_by} states; it was not assessed again here.)")
        return found

    @property
    def _judged(self) -> Judgement:
        chosen = self._matched if self.kept is None else self._matched & self.kept
        confidence, pairs = self.confidence[chosen], int(chosen.sum())
        left_out = int(self._matched.sum()) - pairs
        if self.support is not None:
            return judge_support(self.support, confidence, pairs, left_out)
        return judge(self.p_value, confidence, pairs, left_out, self.prior_text, self.draws, self.z or 0.0)

    def keeping(self, kept: NDArray[np.bool_]) -> Assessment:
        """The same about some of the pairs."""
        groups = [[i for i in group if kept[i]] for group in self.ambiguous]
        return replace(self, kept=kept, ambiguous=[group for group in groups if len(group) > 1])

    @property
    def _matched(self) -> NDArray[np.bool_]:
        """(n,) the sources with a partner."""
        return np.isfinite(self.agreement if self.consensus is None else self.consensus)

    @property
    def significant(self) -> bool:
        """Whether the match as a whole is better than those of unrelated spaces; if not, no pair is shown as good."""
        if self.support is not None:
            return self.support > 0
        return self.p_value is not None and self.p_value <= LIKELY and self.better == 0

    @property
    def verdict(self) -> str:
        """The answer in plain English, then the reasons."""
        return f"{self.judgement.headline}. {self.judgement.text}"

    @property
    def doubtful(self) -> NDArray[np.bool_]:
        """(n,) the pairs that are not to be relied on: all, if the match as a whole is no better than chance."""
        return self._matched & ((np.nan_to_num(self.confidence) < DOUBTFUL) | (not self.significant))

    @property
    def unknown(self) -> NDArray[np.bool_]:
        """(n,) the pairs whose confidence is not known because time ran out."""
        return self._matched & np.isnan(self.confidence)

    @property
    def prior_text(self) -> str:
        """The prior in words; empty if there is none."""
        if self.prior is None:
            return ""
        if self.prior_count is None:
            return f"a prior of {self.prior:g}"
        return f"a prior of {self.prior:.2g} ({self.prior_count.right} of {self.prior_count.pairs} known pairs found)"

    def ambiguities(self, names: Sequence[str] | None = None) -> list[str]:
        """A sentence for each group of interchangeable sources."""
        return [
            f"{_listed([str(i) if names is None else names[i] for i in group])} are interchangeable."
            for group in self.ambiguous
        ]

    def __repr__(self) -> str:
        p = "not known" if self.p_value is None else f"{self.p_value:.3g}"
        return f"Assessment({self.verdict} p_value={p}, draws={self.draws})"

    def _repr_html_(self) -> str:
        """What a notebook shows: the verdict, then the first pairs."""
        rows = np.flatnonzero(self._matched)
        columns = {"source": rows.tolist()}
        if self.match is not None:
            columns["target"] = self.match[rows].tolist()
        columns["confidence"] = self.confidence[rows].tolist()
        judged = self.judgement
        return f"<p><b>{escape(judged.headline)}.</b> {escape(judged.text)}</p>{html_table(columns)}"

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, ready for JSON; numbers that are not finite are None."""
        return {
            "headline": self.judgement.headline,
            "level": self.judgement.level,
            "verdict": self.verdict,
            "p_value": self.p_value,
            "p_value_error": self.p_value_error,
            "z": self.z,
            "draws": self.draws,
            "prior": self.prior,
            "prior_count": None if self.prior_count is None else asdict(self.prior_count),
            "confidence": json_finite(self.confidence),
            "regret": json_finite(self.regret),
            "found_regret": json_finite(self.found_regret),
            "stability": json_finite(self.stability),
            "consensus": json_finite(self.consensus),
            "agreement": json_finite(self.agreement),
            "whole_agreement": self.whole_agreement,
            "chance_agreement": self.chance_agreement,
            "ambiguous": [list(group) for group in self.ambiguous],
            "better": self.better,
            "seconds": self.seconds,
            **({} if self.support is None else {"support": self.support}),
        }


def _listed(words: list[str], most: int = 8) -> str:
    shown, others = (words, 0) if len(words) <= most else (words[: most - 1], len(words) - most + 1)
    return f"{', '.join(shown)} and {others} others" if others else f"{', '.join(shown[:-1])} and {shown[-1]}"
