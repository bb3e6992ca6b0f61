"""Whether a match can be believed: significance, confidence of pairs, ambiguity."""

from blindmatch.trust.report import Assessment

__all__ = ["Assessment"]
