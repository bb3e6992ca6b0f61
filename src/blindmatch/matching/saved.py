"""A match in one ``.npz`` file: task, match, proof and assessment.

Nothing in the file is believed. The task is checked as if a user had typed it, cost and bound are recomputed from the
task and the certificate, and what cannot be recomputed (the assessment, the cost of a match that is too large) is
marked as stated by the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from blindmatch.errors import shown
from blindmatch.geometry.views import Views
from blindmatch.io.files import Arrays, read_npz, reading, write_atomically
from blindmatch.problem.distortion import Distortion
from blindmatch.problem.distortions import DISTORTIONS
from blindmatch.problem.known import Known
from blindmatch.problem.qap import QAP
from blindmatch.problem.task import Price, Task
from blindmatch.proof.certificate_file import FIELDS, certificate_arrays, certificate_of
from blindmatch.solvers.progress import Progress, Status
from blindmatch.solving.result import Result
from blindmatch.trust.prior import Count
from blindmatch.trust.report import Assessment
from blindmatch.validation import as_array, not_negative

_FORMAT = "blindmatch match 1"
_PROOF, _TRUST = "certificate.", "assessment."  # prefixes of arrays
_LONGEST = 100  # letters in the name of a solver or a bound
_ARRAYS = ("confidence", "regret", "found_regret", "stability", "consensus", "agreement", "kept", "match")


def save(result: Result, path: str | Path, trust: Assessment | None = None) -> Path:
    """Write a result, and its assessment if there is one; this is ``Result.save``."""
    if result.task is None:
        raise ValueError("this result was made without a task, so it cannot be saved")
    if trust is not None:
        trust.check_about(result)
    arrays, words = _task_arrays(result.task) if isinstance(result.task, Task) else _problem_arrays(result.task)
    words |= {name: getattr(result, name) for name in _STATED}
    words |= {"notes": list(result.notes), "settings": dict(result.settings)}
    arrays["permutation"] = result.permutation
    arrays |= {} if result.whole is None else {"whole": result.whole}
    arrays |= {} if result.confidence is None else {"confidence": result.confidence}
    trace = [(p.seconds, p.iteration, np.nan if p.lower_bound is None else p.lower_bound, p.cost) for p in result.trace]
    arrays["trace"] = np.array(trace, dtype=np.float64).reshape(-1, 4)  # a missing cost becomes nan
    if result.certificate is not None:
        arrays |= {_PROOF + name: array for name, array in certificate_arrays(result.certificate).items()}
    if trust is not None:
        arrays |= {_TRUST + name: value for name in _ARRAYS if (value := getattr(trust, name)) is not None}
        count = None if trust.prior_count is None else asdict(trust.prior_count)
        plain = {name: getattr(trust, name) for name in _SCALARS}
        words["assessment"] = {**plain, "prior_count": count, "ambiguous": [list(g) for g in trust.ambiguous]}
    arrays |= {"format": np.array(_FORMAT), "words": np.array(json.dumps(words))}
    write_atomically(path, lambda file: np.savez_compressed(file, **arrays))  # type: ignore[arg-type]
    return Path(path)


_STATED = (
    *("cost", "lower_bound", "maximum", "bound_name", "status", "solver"),
    *("seconds", "support", "voted", "title"),
)
_SCALARS = tuple(
    field.name for field in fields(Assessment) if field.name not in (*_ARRAYS, "prior_count", "ambiguous", "stated_by")
)


def load(path: str | Path) -> Result:
    """Read a result that ``Result.save`` or ``blindmatch match --save`` wrote, and check everything that it claims.

    Cost, bound and status are recomputed from the task and the certificate, which takes as long as ``result.verify()``.
    What cannot be recomputed, such as an assessment, is marked as stated by the file.

    Examples
    --------
    >>> import tempfile, numpy as np, blindmatch as bm
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 1.0], [2.0, 7.0]])
    >>> saved = bm.match(X, X[::-1], rng=0).save(Path(tempfile.mkdtemp()) / "match.npz")
    >>> bm.load(saved).verify() == bm.load(saved).lower_bound
    True
    """
    result = read_saved(path)
    with reading(path, "saved match"):
        checked = result.rechecked()
        if result.assessment is not None:
            result.assessment.check_about(checked)
        return checked


def read_saved(path: str | Path) -> Result:
    """Read a result as a file states it; only that it is possible is checked."""
    arrays = read_npz(path)
    if "format" not in arrays or str(arrays["format"]) != _FORMAT:
        raise ValueError(f"{path}: not a saved match; expected what Result.save or 'blindmatch match --save' writes")
    with reading(path, "saved match"):
        words = json.loads(str(arrays["words"]))
        task: Task | QAP
        if "distortion" in words:
            task = _task_of(arrays, words)
        else:
            factors = [(arrays[f"source_cost{at}"], arrays[f"target_cost{at}"]) for at in range(words["factors"])]
            task = QAP.from_factors(factors, arrays["linear"], words["constant"], forbidden=arrays.get("forbidden"))
        trust = _assessment_of(arrays, words["assessment"], Path(path).name) if "assessment" in words else None
        return replace(_read_result(arrays, words, task), assessment=trust)


def _task_arrays(task: Task) -> tuple[Arrays, dict[str, Any]]:
    hints, views, layers = task.hints, task.views, task.given_layers
    kernels = task.precomputed and views == (None, None)
    arrays: Arrays = {}
    for at, (source, target) in enumerate(layers or [task.given_sides]):
        arrays |= {f"source{at or ''}": source, f"target{at or ''}": target}
    for at, term in enumerate(task.crossed):
        arrays |= {f"there{at}": term.given[0], f"back{at}": term.given[1]}
    arrays |= {} if hints.forbidden is None else {"forbidden_pairs": hints.forbidden}
    arrays |= {} if hints.similarity is None else {"similarity": hints.similarity[0]}
    if task.known is not None:
        arrays |= {"known_source": task.known.given[0], "known_target": task.known.given[1]}
    words = {
        "distortion": _distortion_words(task.distortion, kernels),
        "layers": [[_distortion_words(one, kernels) for one in task.distortions], task.weights] if layers else None,
        "views": [v and {"widths": v.widths, "weights": v.weights.tolist(), "labels": v.labels} for v in views],
        "precomputed": kernels,
        "crossed": len(task.crossed),
        "scale": "none" if task.scalings is None else task.scalings[0].scale,
        "known_pairs": [list(pair) for pair in hints.known],
        "known": None if task.known is None else [task.known.weight, task.known.right],
        "similarity_weight": 1.0 if hints.similarity is None else hints.similarity[1],
        "unmatched_cost": hints.unmatched_cost,
        "max_unmatched": None if hints.unmatched_cost is None else hints.max_unmatched,
        "source_names": task.source_names,
        "target_names": task.target_names,
        "price": None if task.price is None else asdict(task.price),
    }
    return arrays, words


def _distortion_words(distortion: Distortion, kernels: bool) -> dict[str, Any]:
    name = next((name for name, kind in DISTORTIONS.items() if type(distortion) is kind), None)
    if name is None:
        raise ValueError(f"distortion={distortion!r} is not one of {', '.join(DISTORTIONS)}; it cannot be saved")
    if kernels:  # shortest paths were taken when the kernels were given
        distortion = replace(distortion, metric="euclidean", neighbors=None)
    return {"name": name, **asdict(distortion)}


def _task_of(arrays: Arrays, words: Mapping[str, Any]) -> Task:
    sides = [_read_side(arrays[name], of) for name, of in zip(("source", "target"), words["views"], strict=True)]
    layers, distortions, weights = None, [words["distortion"]], None
    if words["layers"] is not None:
        distortions, weights = words["layers"]
        layers = [(arrays[f"source{at or ''}"], arrays[f"target{at or ''}"]) for at in range(len(distortions))]
    task = Task(
        *(() if words["precomputed"] else sides),
        kernels=layers or (tuple(sides) if words["precomputed"] else None),
        weights=weights,
        crossed=[(arrays[f"there{at}"], arrays[f"back{at}"]) for at in range(words["crossed"])] or None,
        distortion=[_distortion_of(dict(one)) for one in distortions],
        scale=words["scale"],
        known_pairs=words["known_pairs"],
        known=None if words.get("known") is None else _known_of(arrays, *words["known"]),
        forbidden_pairs=arrays.get("forbidden_pairs", ()),
        similarity=arrays.get("similarity"),
        similarity_weight=words["similarity_weight"],
        unmatched_cost=words["unmatched_cost"],
        max_unmatched=words["max_unmatched"],
        source_names=words["source_names"],
        target_names=words["target_names"],
    )
    if words["price"] is None:
        return task
    curve = tuple((float(price), int(pairs)) for price, pairs in words["price"]["curve"])
    tried, found = [price for price, _ in curve], float(words["price"]["price"])
    if not (all(0 <= price < np.inf for price in (*tried, found)) and tried == sorted(tried)):
        raise ValueError(f"price has the curve {shown(curve)}; expected prices of at least 0 in ascending order")
    return task.changed(price=Price(found, curve))


def _known_of(arrays: Arrays, weight: Any, right: Any) -> Known:
    sides = arrays["known_source"], arrays["known_target"]
    checked = Known.of(sides, (arrays["source"].shape[-1], arrays["target"].shape[-1]))
    return replace(checked, weight=not_negative(weight, "known"), right=not_negative(right, "known"))


def _read_side(columns: Any, words: Mapping[str, Any] | None) -> Any:
    """One side: its array, or the views whose columns it holds."""
    if words is None:
        return columns
    if sum(words["widths"]) != np.shape(columns)[-1] or min(words["widths"]) < 1:
        raise ValueError(f"views of {words['widths']} columns; there are {np.shape(columns)[-1]}")
    views = np.split(columns, np.cumsum(words["widths"])[:-1], axis=1)
    return Views(*views, weights=words["weights"], labels=words["labels"])


def _distortion_of(values: dict[str, Any]) -> Distortion:
    kind = DISTORTIONS[values.pop("name")]
    for name in ("metric", "neighbors"):  # JSON has no tuples
        values[name] = tuple(values[name]) if isinstance(values[name], list) else values[name]
    return kind(**values)


def _problem_arrays(problem: QAP) -> tuple[Arrays, dict[str, Any]]:
    n = problem.sources  # without dummies
    arrays: Arrays = {"linear": problem.linear[:n]}
    for at, (A, B) in enumerate(problem.factors):
        arrays |= {f"source_cost{at}": A[:n, :n], f"target_cost{at}": B}
    arrays |= {} if problem.forbidden is None else {"forbidden": problem.forbidden[:n]}
    return arrays, {"factors": len(problem.factors), "constant": problem.constant}


def _read_result(arrays: Arrays, words: Mapping[str, Any], task: Task | QAP) -> Result:
    """The result as the file states it; of a match that is not too large, only what is recomputed is kept."""
    large = isinstance(task, Task) and task.too_large
    permutation = as_array(arrays["permutation"], "permutation")
    n = len(permutation) if isinstance(task, QAP) else task.sizes[0]
    if permutation.shape != (n,) or permutation.dtype.kind not in "iu":
        raise ValueError(f"permutation has shape {permutation.shape}; expected {n} integers")
    if words["status"] not in get_args(Status):
        raise ValueError(f"status={words['status']!r}; expected one of {', '.join(get_args(Status))}")
    confidence, support = arrays.get("confidence"), words["support"]
    if not large:
        confidence = support = None
    if confidence is not None and (
        confidence.shape != (n,) or confidence.dtype.kind != "f" or ((confidence < 0) | (confidence > 1)).any()
    ):
        raise ValueError(f"confidence has shape {confidence.shape}; expected {n} numbers from 0 to 1")
    if support is not None and not support >= 0:
        raise ValueError(f"support={support!r}; expected a number of at least 0")
    seconds, cost = float(words["seconds"]), float(words["cost"])
    if not seconds >= 0 or not np.isfinite(cost):
        raise ValueError(f"seconds={seconds!r} and cost={cost!r}; expected numbers of seconds and a finite cost")
    proof = None
    if _PROOF + "format" in arrays:
        proof = certificate_of({name: arrays[_PROOF + name] for name in FIELDS if _PROOF + name in arrays})
    trace = [
        Progress(at, int(count), None if np.isnan(bound) else bound, None if np.isnan(value) else value)
        for at, count, bound, value in arrays["trace"].astype(np.float64).tolist()
    ]
    return Result(
        permutation=permutation.astype(np.intp),
        cost=cost,
        lower_bound=None if words["lower_bound"] is None else float(words["lower_bound"]),
        maximum=None if words.get("maximum") is None else float(words["maximum"]),
        status=words["status"],
        solver=_name(words, "solver"),
        seconds=seconds,
        task=task,
        proof=proof,
        trace=tuple(trace),
        notes=tuple(map(str, words["notes"])),
        bound_name=_name(words, "bound_name"),
        support=None if support is None else int(support),
        confidence=confidence,
        voted=bool(words.get("voted", False)),
        whole=arrays["whole"].astype(np.intp) if "whole" in arrays else None,
        title=str(words["title"]),
        settings={str(key): str(text) for key, text in words["settings"].items()},
    )


def _name(words: Mapping[str, Any], key: str) -> str:
    """A short name; control characters would reach the terminal."""
    name = words[key]
    if not isinstance(name, str) or not name.isprintable() or len(name) > _LONGEST:
        raise ValueError(f"{key}={shown(name)}; expected up to {_LONGEST} printable letters")
    return name


def _assessment_of(arrays: Arrays, words: Mapping[str, Any], file: str) -> Assessment:
    values = {name: arrays.get(_TRUST + name) for name in _ARRAYS} | {name: words[name] for name in _SCALARS}
    for name in _SCALARS:
        if isinstance(words[name], float) and not np.isfinite(words[name]):
            raise ValueError(f"{name}={words[name]}; expected a finite number")
    counts = {name: words[name] for name in ("draws", "support")} | dict(words["prior_count"] or {})
    for name, value in counts.items():
        if value is not None and (not isinstance(value, int) or value < 0):
            raise ValueError(f"{name}={shown(value)}; expected a count")
    return Assessment(
        **values,
        prior_count=None if words["prior_count"] is None else Count(**words["prior_count"]),
        ambiguous=[[int(item) for item in group] for group in words["ambiguous"]],
        stated_by=file,
    )
