"""Show a result to people."""

from blindmatch.report.html import render, write_report
from blindmatch.report.match import Clusters, Match
from blindmatch.report.verdict import proof_sentence, verdict

__all__ = ["Clusters", "Match", "proof_sentence", "render", "verdict", "write_report"]
