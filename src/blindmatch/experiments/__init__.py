"""The paper's experiments, one command each: plan, run what is missing, keep each result, show tables and figures."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from blindmatch.errors import unknown_name

if TYPE_CHECKING:
    from blindmatch.experiments.base import Experiment

# A worker imports the one module that it needs: k-means and plotting take longer to import than many runs take.
_MODULES = {
    "shuffling": "shuffling",
    "small-scale": "small_scale",
    "larger-scale": "larger_scale",
    "solvers-small": "solvers_small",
    "solvers-large": "solvers_large",
    "classification": "classification",
    "ablation": "ablation",
}
NAMES = tuple(_MODULES)


def load(name: str) -> Experiment:
    """Look an experiment up by its name.

    >>> load("ablation").about
    'Hahn-Grant with and without each change, on random vectors'
    """
    if name not in _MODULES:
        raise unknown_name("experiment", name, _MODULES)
    experiment: Experiment = import_module(f"blindmatch.experiments.paper.{_MODULES[name]}").EXPERIMENT
    return experiment
