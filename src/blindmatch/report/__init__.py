"""Show a result to people."""

from blindmatch.report.clusters import Clusters
from blindmatch.report.html import render
from blindmatch.report.match import Match, Trust
from blindmatch.report.verdict import proof_sentence, verdict
from blindmatch.report.write import write_report

__all__ = ["Clusters", "Match", "Trust", "proof_sentence", "render", "verdict", "write_report"]
