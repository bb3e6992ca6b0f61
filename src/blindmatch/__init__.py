"""Match two sets of embeddings with no pairs at all, and prove how good the match is."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from blindmatch.certificate import Certificate
from blindmatch.checker import verify
from blindmatch.distortion import CKA, KL, GromovWasserstein, InnerProduct, MutualKNN
from blindmatch.errors import SolverUnavailable
from blindmatch.evaluation import evaluate, matching_accuracy
from blindmatch.matching import match
from blindmatch.problem import QAP
from blindmatch.prototypes import class_means, prompt_means
from blindmatch.result import Progress, Result
from blindmatch.solve import solve
from blindmatch.solvers import SOLVERS
from blindmatch.subsets import Subsets, best_subsets

if TYPE_CHECKING:
    from blindmatch.classifier import BlindClassifier
    from blindmatch.matcher import BlindMatcher

__version__ = version("blindmatch")
__all__ = [
    "CKA",
    "KL",
    "QAP",
    "SOLVERS",
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
    "best_subsets",
    "class_means",
    "evaluate",
    "match",
    "matching_accuracy",
    "prompt_means",
    "solve",
    "verify",
]

# Estimators need scikit-learn, which takes a second to import: only who uses them waits for it.
_LAZY = {"BlindClassifier": "blindmatch.classifier", "BlindMatcher": "blindmatch.matcher"}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'blindmatch' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)
