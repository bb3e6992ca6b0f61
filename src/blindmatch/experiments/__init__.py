"""The paper's experiments and one of ours: plan, run what is missing, store results, show tables and figures."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from blindmatch.errors import unknown_name

if TYPE_CHECKING:
    from blindmatch.experiments.protocol import Experiment

EXPERIMENTS = {  # module and class of each
    "shuffling": ("shuffling", "Shuffling"),
    "small-scale": ("small_scale", "SmallScale"),
    "larger-scale": ("larger_scale", "LargerScale"),
    "solvers-small": ("ablation", "SolversSmall"),
    "solvers-large": ("larger_scale", "SolversLarge"),
    "classification": ("classification", "Classification"),
    "ablation": ("ablation", "Ablation"),
    "views": ("views", "ViewsStudy"),
}
NAMES = tuple(EXPERIMENTS)


def load(name: str) -> type[Experiment]:
    """Return the class of an experiment by its name.

    >>> load("ablation").about
    'Hahn-Grant with and without each change, on random vectors'
    """
    if name not in EXPERIMENTS:
        raise unknown_name("experiment", name, NAMES)
    # A worker imports only the module that it needs: importing k-means and plotting takes longer than many runs.
    module, kind = EXPERIMENTS[name]
    experiment: type[Experiment] = getattr(import_module(f"blindmatch.experiments.{module}"), kind)
    return experiment
