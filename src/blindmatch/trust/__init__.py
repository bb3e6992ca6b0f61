"""Whether a match can be believed: significance, confidence of pairs, ambiguity."""

from blindmatch.trust.assessment import assess
from blindmatch.trust.report import Trust

__all__ = ["Trust", "assess"]
