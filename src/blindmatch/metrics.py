"""Measures of a match, and of how far two spaces agree, for items whose partners are known."""

from blindmatch.matching.evaluation import evaluate, matching_accuracy
from blindmatch.matching.measures import foscttm, label_transfer

__all__ = ["evaluate", "foscttm", "label_transfer", "matching_accuracy"]
