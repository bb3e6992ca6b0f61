"""The report for who works in Python."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypedDict, Unpack

from numpy.typing import ArrayLike

from blindmatch.io.files import write_atomically
from blindmatch.problem.distortion import Distortion, Kernels, as_distortion
from blindmatch.problem.hints import Hints
from blindmatch.problem.qap import QAP
from blindmatch.report.html import render
from blindmatch.report.match import Images, Match, Trust
from blindmatch.solving.result import Result
from blindmatch.validation import FloatArray


class HintArguments(TypedDict, total=False):
    """The arguments of ``bm.match`` that tell something about the pairs."""

    known_pairs: Iterable[tuple[int, int]]
    forbidden_pairs: Iterable[tuple[int, int]] | ArrayLike
    similarity: ArrayLike | None
    similarity_weight: float
    unmatched_cost: float | None
    max_unmatched: int | None


def write_report(
    path: str | Path,
    result: Result,
    source: ArrayLike | None = None,
    target: ArrayLike | None = None,
    *,
    kernels: Kernels | None = None,
    problem: QAP | None = None,
    distortion: str | Distortion = "gw",
    standardize: bool = True,
    source_names: Sequence[str] | None = None,
    target_names: Sequence[str] | None = None,
    source_images: Images | None = None,
    target_images: Images | None = None,
    truth: Sequence[int] | None = None,
    trust: Trust | None = None,
    title: str = "A blind match",
    settings: Mapping[str, str] | None = None,
    **hints: Unpack[HintArguments],
) -> Path:
    """Write a result to one HTML file that opens in any browser, without a network.

    Parameters
    ----------
    path
        Where to: ``report.html``.
    result
        From ``bm.match`` (give it the same embeddings or kernels, distortion and standardize as that) or ``bm.solve``
        (give it the problem).
    source, target, kernels, distortion, standardize
        As in ``bm.match``.
    problem
        What ``bm.solve`` solved, instead of embeddings or kernels.
    source_names, target_names
        What the items are called; their indices by default.
    source_images, target_images
        Pictures of the items, in order or by index: paths or bytes of PNG, JPEG, GIF or WebP files, or arrays of uint8.
    truth
        The true partner of each source, -1 where it has none.
    trust
        From ``bm.assess``.
    title, settings
        What was matched, and what else should be told about the run.
    hints
        known_pairs, forbidden_pairs, similarity, similarity_weight, unmatched_cost, max_unmatched: as ``bm.match`` had
        them.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile, numpy as np, blindmatch as bm
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 1.0], [2.0, 7.0]])
    >>> result = bm.match(X, X[[3, 1, 0, 2]], rng=0)
    >>> folder = Path(tempfile.mkdtemp())
    >>> bm.write_report(folder / "report.html", result, X, X[[3, 1, 0, 2]], source_names="abcd").name
    'report.html'
    """
    chosen = as_distortion(distortion, standardize)
    told = dict(settings or {})
    compared: tuple[FloatArray, FloatArray] | None = None
    if problem is None:
        compared = chosen.kernels(source, target, kernels=kernels)
        problem = Hints.of((len(compared[0]), len(compared[1])), **hints).problem(chosen, *compared)
        told = {"distortion": repr(chosen), **told}
    elif source is not None or target is not None or kernels is not None or hints:
        raise ValueError("problem is given together with embeddings, kernels or hints; pass one or the other")
    match = Match(
        result,
        compared,
        source_names,
        target_names,
        None if truth is None else [int(j) for j in truth],
        told,
        title,
        problem,
        chosen.similarities,
        source_images,
        target_images,
        trust,
    )
    check_cost(match)
    page = render(match).encode()
    write_atomically(path, lambda file: file.write(page))
    return Path(path)


def check_cost(match: Match) -> None:
    """Refuse data that the result was not made from: the report would tell something false."""
    cost, told = match.cost_of(match.result.permutation), match.result.cost
    size = 0.0 if match.problem is None else match.problem.scale
    if cost is not None and not math.isclose(cost, told, rel_tol=1e-9, abs_tol=1e-9 * size):
        raise ValueError(
            f"result says that it costs {told:.9g}, but with these data it costs {cost:.9g}: expected the very "
            "embeddings, distortion and standardize (or the problem) that it was made with"
        )
