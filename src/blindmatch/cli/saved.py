"""Results that were saved as JSON, and the report of one."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from blindmatch.certificate import Certificate
from blindmatch.checker import verify
from blindmatch.cli.console import echo_json, output
from blindmatch.cli.inputs import EmbeddingFiles, Loaded, ProblemFile
from blindmatch.cli.progress import busy
from blindmatch.distortion import DISTORTIONS
from blindmatch.files import reading, write_atomically
from blindmatch.report import Match, render
from blindmatch.report.write import check_cost
from blindmatch.result import Progress, Result, Status
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
    """The match of a saved result, if it was made from the same data; ValueError if not."""
    try:
        check_cost(match)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return match


def run_report(
    path: Path,
    inputs: ProblemFile | EmbeddingFiles,
    out: Path,
    proof: Path | None,
    title: str | None,
    as_json: bool,
) -> None:
    """Write the report of a saved result."""
    if not out.parent.is_dir() or out.is_dir():
        raise ValueError(f"--out {out}: expected a file in a folder that exists")
    if any(out.exists() and out.samefile(given) for given in (path, *inputs.paths, *([proof] if proof else []))):
        raise ValueError(f"--out {out}: this would overwrite an input")
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
    if certificate is None or proof is None:
        match = replace(match, settings={**settings, "lower bound": f"as {path.name} tells; not recomputed here"})
    else:
        match = replace(match, result=_proved(match.result, loaded, certificate, proof))
    with busy("writing the report"):
        page = render(match).encode()
    write_atomically(out, lambda file: file.write(page))
    if as_json:
        echo_json({"report": str(out), "bytes": len(page)})
    else:
        output().print(f"Report: {out}", markup=False, soft_wrap=True)


def _proved(result: Result, loaded: Loaded, certificate: Certificate, path: Path) -> Result:
    """The result with a certificate that was checked here and now."""
    bound = min(verify(loaded.problem, certificate), loaded.cost_beyond)
    told = result.lower_bound
    if told is not None and bound < told - 1e-9 * max(abs(told), loaded.problem.scale):
        raise ValueError(f"{path}: proves {bound!r} for these data, less than the bound {told!r} of the result")
    return replace(result, certificate=certificate)
