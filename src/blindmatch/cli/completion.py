"""Names that a shell completes. What knows them is imported when the shell asks."""

from __future__ import annotations


def solvers(incomplete: str) -> list[str]:
    """Names of solvers.

    >>> solvers("branch")
    ['branch-and-bound']
    """
    from blindmatch.solvers import SOLVERS

    return [name for name in SOLVERS if name.startswith(incomplete)]


def distortions(incomplete: str) -> list[str]:
    """Names of distortions."""
    from blindmatch.problem.distortions import DISTORTIONS

    return [name for name in DISTORTIONS if name.startswith(incomplete)]


def scales(incomplete: str) -> list[str]:
    """Names of scales of columns."""
    from blindmatch.geometry.columns import SCALES

    return [name for name in SCALES if name.startswith(incomplete)]


def metrics(incomplete: str) -> list[str]:
    """Names of metrics."""
    from blindmatch.geometry.metrics import METRICS

    return [name for name in (*METRICS, "precomputed") if name.startswith(incomplete)]


def coordinates(incomplete: str) -> list[str]:
    """Names of metrics that an aligner takes."""
    from blindmatch.alignment.metric import COORDINATES

    return [name for name in COORDINATES if name.startswith(incomplete)]


def demo_data(incomplete: str) -> list[str]:
    """Names of bundled data."""
    from blindmatch.demo import DATASETS

    return [name for name in DATASETS if name.startswith(incomplete)]


def experiments(incomplete: str) -> list[str]:
    """Names of experiments."""
    from blindmatch.experiments import NAMES

    return [name for name in NAMES if name.startswith(incomplete)]


def models(incomplete: str) -> list[str]:
    """Names of models."""
    from blindmatch.encoders.registry import list_models

    return [model.name for model in list_models() if model.name.startswith(incomplete)]
