"""Match two sets of embeddings with no pairs at all, and prove how good the match is."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from blindmatch.alignment.aligner import BlindAligner
    from blindmatch.encoders.extract import embed_images, embed_texts
    from blindmatch.errors import SolverUnavailable
    from blindmatch.geometry.prototypes import class_means, prompt_means
    from blindmatch.geometry.relations import fill_missing
    from blindmatch.io.cells import annotate_cells
    from blindmatch.matching.choice import RelationChoice, choose_relation
    from blindmatch.matching.classifier import BlindClassifier
    from blindmatch.matching.evaluation import evaluate, matching_accuracy
    from blindmatch.matching.match import match, matching_problem
    from blindmatch.matching.matcher import BlindMatcher
    from blindmatch.matching.measures import foscttm, label_transfer
    from blindmatch.matching.projection import Projection, project
    from blindmatch.matching.subsets import Subsets, best_subsets
    from blindmatch.problem.distortions import CKA, KL, Gaussian, GromovWasserstein, InnerProduct, MutualKNN
    from blindmatch.problem.qap import QAP
    from blindmatch.problem.task import Task
    from blindmatch.proof.certificate import Certificate
    from blindmatch.proof.checker import verify
    from blindmatch.report.curves import plot_bounds, plot_shuffling
    from blindmatch.report.plots import plot_kernels, plot_match, plot_spaces
    from blindmatch.report.write import write_report
    from blindmatch.solvers import SOLVERS
    from blindmatch.solvers.branch_and_bound import BranchAndBound
    from blindmatch.solvers.progress import Progress
    from blindmatch.solving.result import Result
    from blindmatch.solving.run import solve
    from blindmatch.trust import Trust, assess

    __version__: str

__all__ = [
    "CKA",
    "KL",
    "QAP",
    "SOLVERS",
    "BlindAligner",
    "BlindClassifier",
    "BlindMatcher",
    "BranchAndBound",
    "Certificate",
    "Gaussian",
    "GromovWasserstein",
    "InnerProduct",
    "MutualKNN",
    "Progress",
    "Projection",
    "RelationChoice",
    "Result",
    "SolverUnavailable",
    "Subsets",
    "Task",
    "Trust",
    "annotate_cells",
    "assess",
    "best_subsets",
    "choose_relation",
    "class_means",
    "embed_images",
    "embed_texts",
    "evaluate",
    "fill_missing",
    "foscttm",
    "label_transfer",
    "match",
    "matching_accuracy",
    "matching_problem",
    "plot_bounds",
    "plot_kernels",
    "plot_match",
    "plot_shuffling",
    "plot_spaces",
    "project",
    "prompt_means",
    "solve",
    "verify",
    "write_report",
]

# The module of each public name. scipy and scikit-learn take a second to import, too long for --version or --help, so a
# name is imported when it is first used. The imports above tell type checkers the same.
_PLACES = {
    "alignment.aligner": ("BlindAligner",),
    "encoders.extract": ("embed_images", "embed_texts"),
    "errors": ("SolverUnavailable",),
    "geometry.prototypes": ("class_means", "prompt_means"),
    "geometry.relations": ("fill_missing",),
    "io.cells": ("annotate_cells",),
    "matching.choice": ("RelationChoice", "choose_relation"),
    "matching.classifier": ("BlindClassifier",),
    "matching.evaluation": ("evaluate", "matching_accuracy"),
    "matching.match": ("match", "matching_problem"),
    "matching.matcher": ("BlindMatcher",),
    "matching.measures": ("foscttm", "label_transfer"),
    "matching.projection": ("Projection", "project"),
    "matching.subsets": ("Subsets", "best_subsets"),
    "problem.distortions": ("CKA", "KL", "Gaussian", "GromovWasserstein", "InnerProduct", "MutualKNN"),
    "problem.qap": ("QAP",),
    "problem.task": ("Task",),
    "proof.certificate": ("Certificate",),
    "proof.checker": ("verify",),
    "report.curves": ("plot_bounds", "plot_shuffling"),
    "report.plots": ("plot_kernels", "plot_match", "plot_spaces"),
    "report.write": ("write_report",),
    "solvers": ("SOLVERS",),
    "solvers.branch_and_bound": ("BranchAndBound",),
    "solvers.progress": ("Progress",),
    "solving.result": ("Result",),
    "solving.run": ("solve",),
    "trust": ("Trust", "assess"),
}
_PLACE_OF = {name: place for place, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("blindmatch")
    elif name in _PLACE_OF:
        value = getattr(import_module(f"blindmatch.{_PLACE_OF[name]}"), name)
    elif not name.startswith("_") and find_spec(f"blindmatch.{name}") is not None:
        value = import_module(f"blindmatch.{name}")  # bm.distortion, as if it had been imported before
    else:
        raise AttributeError(f"module 'blindmatch' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
