"""The paper's experiments and one of ours: plan, run what is missing, store results, show tables and figures."""

from __future__ import annotations

import tomllib
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from blindmatch.errors import unknown_name

if TYPE_CHECKING:
    from blindmatch.experiments.protocol import Experiment

_DECLARED: dict[str, Any] = tomllib.loads(files(__name__).joinpath("studies.toml").read_text(encoding="utf-8"))
STUDIES: dict[str, dict[str, Any]] = _DECLARED["studies"]
TABLES: dict[str, dict[str, Any]] = _DECLARED["tables"]
NAMES = tuple(STUDIES)


def load(name: str) -> type[Experiment]:
    """Return the class of an experiment by its name."""
    if name not in STUDIES:
        raise unknown_name("experiment", name, NAMES)
    # A worker imports only the module that it needs: importing k-means and plotting takes longer than many runs.
    module, _, kind = STUDIES[name]["place"].partition(":")
    experiment: type[Experiment] = getattr(import_module(f"blindmatch.experiments.{module}"), kind)
    return experiment
