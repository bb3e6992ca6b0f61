"""Match two sets of embeddings with no pairs at all, and prove how good the match is."""

from importlib.metadata import version

from blindmatch.certificate import Certificate
from blindmatch.checker import verify
from blindmatch.distortion import CKA, KL, GromovWasserstein, InnerProduct, MutualKNN
from blindmatch.errors import SolverUnavailable
from blindmatch.matcher import match
from blindmatch.problem import QAP
from blindmatch.result import Progress, Result
from blindmatch.solve import solve
from blindmatch.solvers import SOLVERS

__version__ = version("blindmatch")
__all__ = [
    "CKA",
    "KL",
    "QAP",
    "SOLVERS",
    "Certificate",
    "GromovWasserstein",
    "InnerProduct",
    "MutualKNN",
    "Progress",
    "Result",
    "SolverUnavailable",
    "match",
    "solve",
    "verify",
]
