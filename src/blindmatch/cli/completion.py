"""Names that a shell completes. What knows them is imported when the shell asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module

Completion = Callable[[str], list[str]]


def _of(module: str, names: Callable[..., Iterable[str]]) -> Completion:
    """Complete to the names that a function finds in a module of this package.

    >>> solvers("branch")
    ['branch-and-bound']
    """

    def complete(incomplete: str) -> list[str]:
        return [name for name in names(import_module(f"blindmatch.{module}")) if name.startswith(incomplete)]

    return complete


solvers = _of("solvers", lambda module: module.SOLVERS)
distortions = _of("problem.distortions", lambda module: module.DISTORTIONS)
scales = _of("geometry.columns", lambda module: module.SCALES)
metrics = _of("geometry.metrics", lambda module: (*module.METRICS, "precomputed"))
coordinates = _of("alignment.metric", lambda module: module.COORDINATES)
demo_data = _of("demo", lambda module: module.DATASETS)
experiments = _of("experiments", lambda module: module.NAMES)
models = _of("encoders.registry", lambda module: (model.name for model in module.list_models()))
