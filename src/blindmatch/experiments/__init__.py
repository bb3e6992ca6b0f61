"""The paper's experiments, one command each: plan, run what is missing, store results, show tables and figures."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from blindmatch.errors import unknown_name

if TYPE_CHECKING:
    from blindmatch.experiments.base import Experiment

# A worker imports only the module that it needs: importing k-means and plotting takes longer than many runs.
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
    """Return an experiment by its name.

    >>> load("ablation").about
    'Hahn-Grant with and without each change, on random vectors'
    """
    if name not in _MODULES:
        raise unknown_name("experiment", name, _MODULES)
    experiment: Experiment = import_module(f"blindmatch.experiments.paper.{_MODULES[name]}").EXPERIMENT
    return experiment
