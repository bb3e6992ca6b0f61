"""Results that were saved as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from blindmatch.cli.console import complain
from blindmatch.io.files import reading, text_of
from blindmatch.io.qaplib import read_sln
from blindmatch.problem.files import load_solution
from blindmatch.problem.fingerprint import differs
from blindmatch.problem.optimality import tolerance
from blindmatch.problem.qap import QAP
from blindmatch.proof.certificate import Certificate
from blindmatch.proof.checker import verify
from blindmatch.report import Match
from blindmatch.report.write import check_cost
from blindmatch.solvers.progress import Progress, Status
from blindmatch.solving.result import Result
from blindmatch.validation import IntArray, as_array


@dataclass(frozen=True)
class Saved:
    """What ``--json`` printed."""

    result: Result
    settings: dict[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> Saved:
        """Read a file; a ValueError names the file and says what is wrong."""
        with reading(path, "JSON"):
            values = json.loads(text_of(path, "utf-8"))
            if not isinstance(values, dict) or not {"permutation", "cost", "status"} <= values.keys():
                raise ValueError(f"{path}: not what 'blindmatch match --json' prints")
            return cls(_result(values), {str(key): str(text) for key, text in dict(values.get("settings", {})).items()})


def _result(values: dict[str, Any]) -> Result:
    permutation = as_array(values["permutation"], "permutation")
    if permutation.ndim != 1 or permutation.dtype.kind != "i":
        raise ValueError("its permutation is no list of integers")
    if values["status"] not in get_args(Status):
        raise ValueError(f"its status is {values['status']!r}")
    bound = values.get("lower_bound")
    if bound is not None and not bound <= values["cost"]:  # also where one of them is NaN
        raise ValueError(f"its lower_bound={bound} is not below its cost={values['cost']}")
    sure = None if values.get("confidence") is None else np.array(values["confidence"], dtype=np.float64)
    if sure is not None and sure.shape != permutation.shape:
        raise ValueError(f"it has {sure.size} confidences of {len(permutation)} sources")
    return Result(
        permutation=permutation.astype(np.intp),
        cost=float(values["cost"]),
        lower_bound=None if bound is None else float(bound),
        status=values["status"],
        solver=str(values.get("solver", "unknown")),
        seconds=float(values.get("seconds", math.nan)),
        trace=tuple(Progress(float(seconds), 0, low, cost) for seconds, low, cost in values.get("trace", ())),
        message=str(values.get("message", "")),
        bound=str(values.get("bound", "")),
        support=None if values.get("support") is None else int(values["support"]),
        confidence=sure,
        left_out=int(values.get("left_out", 0)),
    )


def read_start(path: Path, problem: QAP | None = None) -> IntArray:
    """A match to begin with, from a QAPLIB solution or from a saved result."""
    suffix = path.suffix.lower()
    if suffix not in (".sln", ".json"):
        raise ValueError(f"--start {path}: unknown file type {suffix!r}; expected .sln (QAPLIB) or .json")
    try:
        if suffix == ".json":
            return Saved.load(path).result.permutation
        return read_sln(path)[1] if problem is None else load_solution(path, problem)
    except ValueError as error:
        raise ValueError(f"--start {error}") from None


def saved_match(path: Path, match: Match) -> Match:
    """The match of a saved result, if it was made from the same data; ValueError if not.

    That checks its cost; what is proved about it is only the file's claim.
    """
    try:
        check_cost(match)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    settings = {**match.settings, "lower bound": f"as {path.name} says; not recomputed here"}
    return replace(match, settings=settings, claimed_by=path.name)


def warn_of_another_problem(problem: QAP, certificate: Certificate, path: Path, *, embeddings: bool) -> None:
    """Say so if a certificate was written for another problem."""
    if not differs(problem, certificate.fingerprint):
        return
    options = " or other options, such as --distortion, --metric and --scale" if embeddings else ""
    complain(f"{path}: it was written for another problem (other data{options}); the bound is that of the one given")


def proved(result: Result, problem: QAP, others: float, certificate: Certificate, path: Path) -> Result:
    """The result with a certificate that was checked here and now; matches that `problem` leaves out cost `others`."""
    bound = min(verify(problem, certificate), others)
    claimed = result.lower_bound
    why = "; it was written for another problem" if differs(problem, certificate.fingerprint) else ""
    if claimed is not None and bound < claimed - 1e-9 * max(abs(claimed), problem.scale):
        raise ValueError(f"{path}: proves {bound!r} for these data, less than the bound {claimed!r} of the result{why}")
    if result.status == "optimal" and result.cost - bound > tolerance(problem, result.cost):
        raise ValueError(f"{path}: proves {bound!r} for these data, which does not make {result.cost!r} optimal{why}")
    if claimed is None and result.status == "optimal":
        claimed = min(bound, result.cost)
    return replace(result, proof=certificate, lower_bound=claimed)
