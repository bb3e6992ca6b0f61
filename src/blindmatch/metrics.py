"""Measures of a match, and of how far two spaces agree, for items whose partners are known."""

from blindmatch.matching.evaluation import evaluate, foscttm, label_transfer, matching_accuracy

__all__ = ["evaluate", "foscttm", "label_transfer", "matching_accuracy"]
