"""The paper's experiments, one command each: plan, run what is missing, store results, show tables and figures."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from blindmatch.errors import unknown_name

if TYPE_CHECKING:
    from blindmatch.experiments.base import Experiment

NAMES = ("shuffling", "small-scale", "larger-scale", "solvers-small", "solvers-large", "classification", "ablation")


def load(name: str) -> Experiment:
    """Return an experiment by its name.

    >>> load("ablation").about
    'Hahn-Grant with and without each change, on random vectors'
    """
    if name not in NAMES:
        raise unknown_name("experiment", name, NAMES)
    # A worker imports only the module that it needs: importing k-means and plotting takes longer than many runs.
    experiment: Experiment = import_module(f"blindmatch.experiments.paper.{name.replace('-', '_')}").EXPERIMENT
    return experiment
