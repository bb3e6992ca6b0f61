"""Show a result to people."""

from blindmatch.report.html import Match, render
from blindmatch.report.verdict import proof_sentence, verdict

__all__ = ["Match", "proof_sentence", "render", "verdict"]
