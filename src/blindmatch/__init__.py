"""Match two sets of embeddings with no pairs at all, and prove how good the match is."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from blindmatch.certificate import Certificate
from blindmatch.checker import verify
from blindmatch.distortion import CKA, KL, GromovWasserstein, InnerProduct, MutualKNN
from blindmatch.errors import SolverUnavailable
from blindmatch.evaluation import evaluate, matching_accuracy
from blindmatch.matching import match, matching_problem
from blindmatch.problem import QAP
from blindmatch.prototypes import class_means, prompt_means
from blindmatch.result import Progress, Result
from blindmatch.solve import solve
from blindmatch.solvers import SOLVERS
from blindmatch.subsets import Subsets, best_subsets
from blindmatch.trust import Trust, assess

if TYPE_CHECKING:
    from blindmatch.aligner import BlindAligner
    from blindmatch.classifier import BlindClassifier
    from blindmatch.encoders.extract import embed_images, embed_texts
    from blindmatch.matcher import BlindMatcher
    from blindmatch.report.plots import plot_bounds, plot_kernels, plot_match, plot_shuffling, plot_spaces
    from blindmatch.report.write import write_report

__version__ = version("blindmatch")
__all__ = [
    "CKA",
    "KL",
    "QAP",
    "SOLVERS",
    "BlindAligner",
    "BlindClassifier",
    "BlindMatcher",
    "Certificate",
    "GromovWasserstein",
    "InnerProduct",
    "MutualKNN",
    "Progress",
    "Result",
    "SolverUnavailable",
    "Subsets",
    "Trust",
    "assess",
    "best_subsets",
    "class_means",
    "embed_images",
    "embed_texts",
    "evaluate",
    "match",
    "matching_accuracy",
    "matching_problem",
    "plot_bounds",
    "plot_kernels",
    "plot_match",
    "plot_shuffling",
    "plot_spaces",
    "prompt_means",
    "solve",
    "verify",
    "write_report",
]

# Estimators need scikit-learn, which takes a second to import: only who uses them waits for it.
_LAZY = {"BlindClassifier": "blindmatch.classifier", "BlindMatcher": "blindmatch.matcher"}
_LAZY["BlindAligner"] = "blindmatch.aligner"
_LAZY |= dict.fromkeys(
    ("plot_bounds", "plot_kernels", "plot_match", "plot_shuffling", "plot_spaces"), "blindmatch.report.plots"
)
_LAZY["write_report"] = "blindmatch.report.write"
_LAZY |= dict.fromkeys(("embed_images", "embed_texts"), "blindmatch.encoders.extract")


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'blindmatch' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)
