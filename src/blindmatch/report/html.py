"""A result as one HTML file that needs nothing else: figures at a glance, a template, and a policy for the browser."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import platform
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from blindmatch.io.exchange import REPLACED, json_finite
from blindmatch.io.files import file_digest, refuse_missing_folder, write_text
from blindmatch.proof.certificate import Certificate
from blindmatch.report import pairs, pictures
from blindmatch.report.belief import belief
from blindmatch.report.content import drawings, given_pairs, hints
from blindmatch.report.match import Match
from blindmatch.report.pairs import columns, shorten
from blindmatch.report.verdict import assignment_verdict, number, percent, proof_sentence, quality, verdict
from blindmatch.trust.report import HIGH

if TYPE_CHECKING:
    from jinja2 import Environment


_HERE = "blindmatch.report"


def fill(
    template: str, scripts: Sequence[str], styles: Sequence[str], *, package: str = _HERE, data: Any, **values: Any
) -> str:
    """Fill in a page template. Everything in `values` is escaped; nothing in them reorders the text around it.

    `template`, `scripts` and `styles` are files in the ``assets`` of `package` or of this package; scripts and styles
    become part of the page. The scripts read `data` as JSON, the template shows `values`.
    """
    environment = _environment(package)

    def text(names: Sequence[str]) -> str:
        assert environment.loader is not None
        return "\n".join(environment.loader.get_source(environment, name)[0] for name in names)

    script, style = f"(() => {{\n'use strict';\n{text(scripts)}\n}})();", text(styles)
    hashes = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (style, script)]
    # By this policy the browser runs only this script and this style: a name can never become a script.
    policy = "default-src 'none'; img-src data:; style-src 'sha256-{}'; script-src 'sha256-{}'".format(*hashes)
    return environment.get_template(template).render(
        values, data=json_finite(data), script=script, style=style, policy=policy
    )


@cache
def _environment(package: str) -> Environment:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined  # only reports need it

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name, "assets") for name in (package, _HERE)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value.translate(REPLACED) if isinstance(value, str) else value,
    )
    # Letters are not escaped in JSON, so that `finalize` sees them.
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False, "ensure_ascii": False}
    environment.filters["units"] = lambda text: text.replace(" %", "\u00a0%")  # a number and its unit on one line
    environment.filters |= {"percent": percent, "shorten": shorten}
    return environment


SCRIPTS = ("page.js", "table.js", "matrices.js", "plane.js", "charts.js", "start.js", "theme.js")


def render(match: Match) -> str:
    """Return the report as the text of an HTML page."""
    drawn, run, shown = drawings(match), record(match), columns(match)
    sure = np.array([]) if match.confidence is None else match.confidence[match.pairs[0]]
    true_cost = drawn["random"] and drawn["random"]["truth"]
    return fill(
        "match.html",
        SCRIPTS,
        ["style.css"],
        data=drawn,
        match=match,
        title=match.title,
        verdict=headline(match),
        belief=belief(match),
        least=HIGH,
        sure=sure[np.isfinite(sure)].tolist(),
        proof=proof_sentence(match.result, match.nouns),
        columns=shown,
        rows=list(zip(match.result.pairs, zip(*(column.cells for column in shown), strict=True), strict=True)),
        words=pairs,
        pictures=pictures,
        given=given_pairs(match),
        hints=hints(match),
        truth=None if true_cost is None else truth_sentence(true_cost, match),
        command=match.result.settings.get("command"),
        settings={
            **run["settings"],
            **run["versions"],
            "platform": run["platform"],
            **{f"certificate: {key.replace('_', ' ')}": value for key, value in (run["certificate"] or {}).items()},
        },
        record=json.dumps(json_finite(run), indent=1, ensure_ascii=False),
    )


def write_report(path: str | Path, match: Match) -> Path:
    """Write the page, whole or not at all."""
    refuse_missing_folder(path)
    write_text(path, render(match))
    return Path(path)


PACKAGES = ("blindmatch", "numpy", "scipy")


def record(match: Match) -> dict[str, Any]:
    """Settings, versions, result and certificate, ready for JSON."""
    certificate, path = match.result.certificate, match.certificate_file
    about: dict[str, Any] | None = None
    if path is not None and path.exists():
        about = {"file": path.name, "sha256_of_file": file_digest(path)}
    elif certificate is not None:
        about = {"nodes": len(certificate.nodes), "sha256_of_contents": certificate_digest(certificate)}
    return {
        "title": match.title,
        "command": match.result.settings.get("command"),
        "settings": {key: text for key, text in match.result.settings.items() if key != "command"},
        "versions": {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}},
        "platform": f"{platform.system()} {platform.machine()}",
        "certificate": about,
        "result": match.result.to_dict(),
        **({} if match.trust is None else {"trust": match.trust.to_dict()}),
    }


def certificate_digest(certificate: Certificate) -> str:
    """SHA-256 of the contents of a certificate, whether it was saved or not."""
    digest = hashlib.sha256(repr((certificate.size, certificate.forced)).encode())
    for side, image in certificate.symmetries:
        digest.update(repr((side, image.tolist())).encode())
    for node in certificate.nodes:
        digest.update(repr((node.parent, node.pair, node.line, node.spectral, node.skipped)).encode())
        for stage in node.stages:
            for array in (stage.U, stage.V, stage.column_duals, stage.forbidden):
                digest.update(f"{array.dtype} {array.shape}".encode())
                digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def headline(match: Match) -> str:
    """One sentence: what was done, and how good it is known to be."""
    if match.assignment:
        return assignment_verdict(match.result)
    if match.clusters is None:
        return verdict(match.result)
    images, classes = len(match.clusters.members), len(set(match.clusters.classes))
    scores = match.clusters.scores
    how = quality(match.result) if scores is None else f"{100 * scores.accuracy:.1f} % of them right"
    return f"{images} images sorted into {classes} classes, {how}."


def truth_sentence(truth: float, match: Match) -> str:
    """The cost of the true pairing, beside that of the match."""
    cost, ruled = match.result.cost, match.problem is not None and match.problem.forbidden is not None
    if math.isclose(truth, cost, rel_tol=1e-9, abs_tol=1e-12):
        beside = "the same as this match"
    elif truth > cost:
        beside = "more than this match: the truth is not the best fit here, and no solver can change that"
    else:
        why = ", or known or forbidden pairs exclude it" if ruled else ""
        beside = f"less than this match: the search missed it{why}"
    return f"The true pairing costs {number(truth)}, {beside}."
