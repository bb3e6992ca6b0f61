"""Leave out the pairs that cannot be believed, and never lose a match for the sake of its assessment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from blindmatch.solving.limits import keep_what_is_done
from blindmatch.solving.result import Result
from blindmatch.trust.report import Assessment
from blindmatch.validation import FloatArray


def assessed_or_kept(
    result: Result, assessment: Callable[[], Assessment], min_confidence: float | None = None, *, fresh: bool = True
) -> tuple[Result, Assessment | None]:
    """Assess a match, and leave out the pairs that are not believed; None keeps them all.

    A match of nothing is returned unchanged. After Ctrl-C, in the match (if that is `fresh`, made just now) or in the
    assessment, no confidence is known: all pairs are kept, the status is "interrupted", and the message says so.
    """
    if not result.pairs:
        return result, None
    everything = "" if min_confidence is None else f": min_confidence={min_confidence:g} left out no pair"
    if fresh and result.status == "interrupted":
        return _with_note(result, f"The match was not assessed after Ctrl-C{everything}."), None
    with keep_what_is_done() as interrupted:
        trust = assessment()
    if interrupted:
        kept = _with_note(result, f"The assessment was cut short by Ctrl-C{everything}.")
        return replace(kept, status="interrupted"), None
    if min_confidence is None:
        return result, trust
    kept = abstained(result, trust, min_confidence)
    return kept, trust.keeping(kept.permutation >= 0)


def abstained(result: Result, trust: Assessment, min_confidence: float) -> Result:
    """The result with -1 for the pairs whose confidence is below `min_confidence`, or unknown (which counts as 0)."""
    return _keeping(result, trust.confidence, min_confidence, int(trust.unknown.sum()))


def abstained_by(result: Result, min_confidence: float) -> Result:
    """The same for a large match, by the confidence that it has of its own."""
    if result.status == "interrupted":
        return _with_note(result, f"The match was cut short: min_confidence={min_confidence:g} left out no pair.")
    if result.confidence is None:
        return _keeping(result, np.full(len(result.permutation), np.nan), min_confidence, len(result.pairs))
    return _keeping(result, result.confidence, min_confidence, 0)


def _keeping(result: Result, confidence: FloatArray, min_confidence: float, unknown: int) -> Result:
    kept = (np.nan_to_num(confidence, nan=0.0) >= min_confidence) & (result.permutation >= 0)
    note = _fate(len(result.pairs), int(kept.sum()), min_confidence, unknown) + _without_support(result)
    left_out = len(result.pairs) - int(kept.sum())
    return replace(
        _with_note(result, note),
        permutation=np.where(kept, result.permutation, -1),
        whole=result.permutation if left_out else None,
    )


def _fate(total: int, kept: int, min_confidence: float, unknown: int) -> str:
    """What became of the pairs."""
    whole = "and cost and bound are those of the whole match."
    if unknown:
        fate = "are left out" if min_confidence > 0 else "are kept, as min_confidence=0 keeps all"
        return f"Time ran out before the confidence of {unknown} of {total} pairs was known; they {fate}, {whole}"
    if kept == total:
        return f"All {total} pairs have a confidence of at least {min_confidence:g}."
    return f"{kept} of {total} pairs have a confidence of at least {min_confidence:g}; the others are left out, {whole}"


def _without_support(result: Result) -> str:
    """Why a large match has no pair to believe."""
    if result.support != 0:
        return ""
    late = "Within the time limit no" if result.status == "time_limit" else "No"
    more = ": a longer time limit may help" if result.status == "time_limit" else ""
    return f" {late} other start of the search led to this match, so hardly any pair can be believed{more}."


def _with_note(result: Result, note: str) -> Result:
    return replace(result, notes=(*result.notes, note))
