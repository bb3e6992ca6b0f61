"""Write a report from Python."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from blindmatch.io.files import refuse_missing_folder, write_atomically
from blindmatch.problem.distortion import Distortion, Kernels
from blindmatch.problem.qap import QAP
from blindmatch.problem.task import Pairs, Task, as_task, given
from blindmatch.report.html import render
from blindmatch.report.match import Images, Match, Trust
from blindmatch.solving.result import Result


def write_report(
    path: str | Path,
    result: Result,
    source: ArrayLike | Task | None = None,
    target: ArrayLike | None = None,
    *,
    kernels: Kernels | None = None,
    problem: QAP | None = None,
    distortion: str | Distortion = "gw",
    standardize: bool = True,
    scale: str = "none",
    metric: str | tuple[str, str] = "euclidean",
    neighbors: int | tuple[int, int] | None = None,
    known_pairs: Pairs = (),
    forbidden_pairs: Pairs | ArrayLike = (),
    similarity: ArrayLike | None = None,
    similarity_weight: float = 1.0,
    unmatched_cost: float | None = None,
    max_unmatched: int | None = None,
    source_names: Sequence[str] | None = None,
    target_names: Sequence[str] | None = None,
    source_images: Images | None = None,
    target_images: Images | None = None,
    truth: Sequence[int] | None = None,
    trust: Trust | None = None,
    title: str = "A blind match",
    settings: Mapping[str, str] | None = None,
) -> Path:
    """Write a result to one HTML file that opens in any browser, without a network.

    Parameters
    ----------
    path
        The file to write, such as ``report.html``.
    result
        From ``bm.match`` (pass the same embeddings or kernels, distortion and standardize) or from ``bm.solve`` (pass
        the problem).
    source, target, kernels, distortion, standardize, scale, metric, neighbors
        As in ``bm.match``; or a ``bm.Task`` in place of the source, which has all of these, the names and the hints.
    problem
        What ``bm.solve`` solved, instead of embeddings or kernels.
    known_pairs, forbidden_pairs, similarity, similarity_weight, unmatched_cost, max_unmatched
        As in ``bm.match``.
    source_names, target_names
        What the items are called; their indices by default.
    source_images, target_images
        Pictures of the items, in order or by index: paths or bytes of PNG, JPEG, GIF or WebP files, or arrays of uint8.
    truth
        The true partner of each source, -1 where it has none.
    trust
        From ``bm.assess``.
    title, settings
        What was matched, and what else the report should say about the run.

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
    refuse_missing_folder(path)
    details: dict[str, Any] = {
        "settings": dict(settings or {}),
        "truth": None if truth is None else [int(j) for j in truth],
        "trust": trust,
        "title": title,
        "source_images": source_images,
        "target_images": target_images,
    }
    matched: dict[str, Any] = {
        "kernels": kernels,
        "scale": scale,
        "metric": metric,
        "neighbors": neighbors,
        "known_pairs": known_pairs,
        "forbidden_pairs": forbidden_pairs,
        "similarity": similarity,
        "similarity_weight": similarity_weight,
        "unmatched_cost": unmatched_cost,
        "max_unmatched": max_unmatched,
    }
    names: dict[str, Any] = {"source_names": source_names, "target_names": target_names}
    if problem is None:
        task = as_task(source, target, distortion=distortion, standardize=standardize, **matched, **names)
        match = Match.of(result, task, **details)
        match = replace(match, settings={"distortion": repr(task.distortion), **match.settings})
    elif given(source=source, target=target, **matched):
        raise ValueError("problem is given together with embeddings, kernels or hints; pass one or the other")
    else:
        match = Match(result, problem=problem, **names, **details)
    check_cost(match)
    page = render(match).encode()
    write_atomically(path, lambda file: file.write(page))
    return Path(path)


def check_cost(match: Match) -> None:
    """Refuse data that the result was not made from: the report would be wrong."""
    partners, (n, m) = np.asarray(match.result.permutation), match.sizes
    used = partners[partners >= 0]
    if partners.shape != (n,) or (partners < -1).any() or (used >= m).any() or len(np.unique(used)) < len(used):
        raise ValueError(f"result.permutation must hold {n} different indices below {m}, or -1")
    if match.result.left_out:  # the cost is that of the whole match, which is not known any more
        return
    cost, claimed = match.cost_of(match.result.permutation), match.result.cost
    size = 0.0 if match.problem is None else match.problem.scale
    if cost is not None and not math.isclose(cost, claimed, rel_tol=1e-9, abs_tol=1e-9 * size):
        raise ValueError(
            f"result says that it costs {claimed:.9g}, but with these data it costs {cost:.9g}: expected the same "
            "embeddings, distortion, metric, standardize and scale (or the problem) that it was made with"
        )
