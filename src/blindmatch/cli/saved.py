"""Results that were saved as JSON, and the report of one."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np

from blindmatch.cli.console import echo_json, output
from blindmatch.cli.inputs import EmbeddingFiles, Loaded, ProblemFile
from blindmatch.cli.outputs import Delivery, check_outputs, write_page
from blindmatch.cli.progress import busy
from blindmatch.io.files import reading
from blindmatch.problem.distortion import DISTORTIONS
from blindmatch.proof.certificate import Certificate
from blindmatch.proof.checker import verify
from blindmatch.report import Match
from blindmatch.report.write import check_cost
from blindmatch.solvers.progress import Progress, Status
from blindmatch.solving.result import Result
from blindmatch.solving.run import tolerance
from blindmatch.validation import as_array


@dataclass(frozen=True)
class Saved:
    """What ``--json`` printed."""

    result: Result
    settings: dict[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> Saved:
        """Read a file; whatever is wrong with it is told in a ValueError that names it."""
        with reading(path, "JSON"):
            values = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(values, dict) or not {"permutation", "cost", "status"} <= values.keys():
                raise ValueError("it is not what 'blindmatch match --json' prints")
            return cls(_result(values), {str(key): str(text) for key, text in dict(values.get("settings", {})).items()})


def _result(values: dict[str, Any]) -> Result:
    permutation = as_array(values["permutation"], "permutation")
    if permutation.ndim != 1 or permutation.dtype.kind != "i":
        raise ValueError("its permutation is no list of integers")
    if values["status"] not in get_args(Status):
        raise ValueError(f"its status is {values['status']!r}")
    bound = values.get("lower_bound")
    if bound is not None and bound > values["cost"]:
        raise ValueError(f"its lower_bound={bound} is above its cost={values['cost']}")
    return Result(
        permutation=permutation.astype(np.intp),
        cost=float(values["cost"]),
        lower_bound=None if bound is None else float(bound),
        status=values["status"],
        solver=str(values.get("solver", "unknown")),
        seconds=float(values.get("seconds", math.nan)),
        trace=tuple(Progress(float(seconds), 0, low, cost) for seconds, low, cost in values.get("trace", ())),
        message=str(values.get("message", "")),
    )


def saved_match(path: Path, match: Match) -> Match:
    """The match of a saved result, if it was made from the same data; ValueError if not.

    What it costs is checked by that; what is proved about it is only told by the file.
    """
    try:
        check_cost(match)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    settings = {**match.settings, "lower bound": f"as {path.name} tells; not recomputed here"}
    return replace(match, settings=settings, told_by=path.name)


def run_report(
    path: Path,
    inputs: ProblemFile | EmbeddingFiles,
    out: Path,
    proof: Path | None,
    title: str | None,
    as_json: bool,
) -> None:
    """Write the report of a saved result."""
    check_outputs({"--out": out}, (path, *inputs.paths, *([proof] if proof else [])))
    saved = Saved.load(path)
    certificate = None if proof is None else Certificate.load(proof)
    # Without a certificate, the problem in which as many items as may do so stay unmatched.
    with busy("reading"):
        loaded = inputs.load_for_certificate(sys.maxsize if certificate is None else certificate.size)
    settings = {**saved.settings, **inputs.settings}
    match = Match(
        saved.result,
        loaded.kernels,
        loaded.source_names,
        loaded.target_names,
        loaded.truth,
        settings=settings,
        title=title or " matched with ".join(given.name for given in inputs.paths[:2]),
        problem=loaded.problem,
        similarity=isinstance(inputs, EmbeddingFiles) and DISTORTIONS[inputs.distortion].similarities,
        certificate_file=proof,
        source_images=loaded.images[0],
        target_images=loaded.images[1],
    )
    match = saved_match(path, match)
    if certificate is not None and proof is not None:
        result = _proved(match.result, loaded, certificate, proof)
        match = replace(match, result=result, settings=settings, told_by=None)
    delivery = Delivery()
    if delivery.write(out, partial(write_page, match)):
        told = {"report": str(out), "bytes": out.stat().st_size}
        text = f"Report: {out}"
        delivery.show(lambda: echo_json(told) if as_json else output().print(text, markup=False, soft_wrap=True))
    delivery.end()


def _proved(result: Result, loaded: Loaded, certificate: Certificate, path: Path) -> Result:
    """The result with a certificate that was checked here and now."""
    bound = min(verify(loaded.problem, certificate), loaded.cost_beyond)
    told = result.lower_bound
    if told is not None and bound < told - 1e-9 * max(abs(told), loaded.problem.scale):
        raise ValueError(f"{path}: proves {bound!r} for these data, less than the bound {told!r} of the result")
    if result.status == "optimal" and result.cost - bound > tolerance(loaded.problem, result.cost):
        raise ValueError(f"{path}: proves {bound!r} for these data, which does not make {result.cost!r} optimal")
    if told is None and result.status == "optimal":
        told = min(bound, result.cost)
    return replace(result, proof=certificate, lower_bound=told)
