"""A result as one HTML file that needs nothing else: a template, styles and scripts, and a policy for the browser."""

from __future__ import annotations

import base64
import hashlib
import json
import platform
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from blindmatch.io.csv_text import REPLACED
from blindmatch.io.files import file_digest, refuse_missing_folder, write_atomically
from blindmatch.io.json_values import json_finite
from blindmatch.proof.certificate import Certificate
from blindmatch.report.belief import belief, chance_sentence, prior_sentence
from blindmatch.report.content import drawings, given_pairs, hints
from blindmatch.report.match import Match
from blindmatch.report.pairs import columns, left_over, price_advice, rows, ties
from blindmatch.report.pictures import lines_of, price_curve, view_heats
from blindmatch.report.summary import headline, shares, tiles, truth_sentence
from blindmatch.report.verdict import proof_sentence

if TYPE_CHECKING:
    from jinja2 import Environment


_HERE = "blindmatch.report"


def fill(
    template: str, scripts: Sequence[str], styles: Sequence[str], *, package: str = _HERE, data: Any, **values: Any
) -> str:
    """Fill in a page template. Everything in `values` is escaped; nothing in them reorders the text around it.

    Parameters
    ----------
    template, scripts, styles
        Names of files in the ``assets`` of `package` or of this package. Scripts and styles become part of the page.
    package
        Where assets are looked up first.
    data
        What the scripts read, as JSON.
    values
        What the template shows.
    """
    environment = _environment(package)

    def text(names: Sequence[str]) -> str:
        assert environment.loader is not None
        return "\n".join(environment.loader.get_source(environment, name)[0] for name in names)

    script, style = f"(() => {{\n'use strict';\n{text(scripts)}\n}})();", text(styles)
    return environment.get_template(template).render(
        values, data=json_finite(data), script=script, style=style, policy=_policy(script, style)
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
    return environment


def _policy(script: str, style: str) -> str:
    """A policy by which the browser runs only this script and this style: a name can never become a script."""
    script_hash, style_hash = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)
    )
    return f"default-src 'none'; img-src data:; style-src 'sha256-{style_hash}'; script-src 'sha256-{script_hash}'"


SCRIPTS = ("page.js", "table.js", "matrices.js", "plane.js", "charts.js", "start.js", "theme.js")


def render(match: Match) -> str:
    """Return the report as the text of an HTML page."""
    drawn, run, shown = drawings(match), record(match), columns(match)
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
        lines=lines_of(match, shown),
        tiles=tiles(match),
        proof=proof_sentence(match.result, match.nouns),
        chance=match.trust and chance_sentence(match.trust),
        prior=match.trust and prior_sentence(match.trust),
        shares=match.trust and shares(match, match.trust),
        columns=shown,
        rows=rows(match, shown),
        left_over=left_over(match),
        ties=ties(match),
        advice=price_advice(match),
        prices=price_curve(match.price),
        heats=view_heats(match.task),
        given=given_pairs(match),
        hints=hints(match),
        truth=None if true_cost is None else truth_sentence(true_cost, match),
        command=match.result.settings.get("command"),
        settings=_settings(run),
        record=json.dumps(json_finite(run), indent=1, ensure_ascii=False),
    )


def write_report(path: str | Path, match: Match) -> Path:
    """Write the page, whole or not at all."""
    refuse_missing_folder(path)
    page = render(match).encode()
    write_atomically(path, lambda file: file.write(page))
    return Path(path)


def _settings(run: dict[str, Any]) -> dict[str, Any]:
    """Settings, versions and certificate, one row each."""
    certificate = (run["certificate"] or {}).items()
    return {
        **run["settings"],
        **run["versions"],
        "platform": run["platform"],
        **{f"certificate: {key.replace('_', ' ')}": value for key, value in certificate},
    }


PACKAGES = ("blindmatch", "numpy", "scipy")


def record(match: Match) -> dict[str, Any]:
    """Settings, versions, result and certificate, ready for JSON."""
    return {
        "title": match.title,
        "command": match.result.settings.get("command"),
        "settings": {key: text for key, text in match.result.settings.items() if key != "command"},
        "versions": {"python": platform.python_version(), **{package: version(package) for package in PACKAGES}},
        "platform": f"{platform.system()} {platform.machine()}",
        "certificate": _certificate(match),
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


def _certificate(match: Match) -> dict[str, Any] | None:
    certificate, path = match.result.certificate, match.certificate_file
    if path is not None and path.exists():
        return {"file": path.name, "sha256_of_file": file_digest(path)}
    if certificate is None:
        return None
    return {"nodes": len(certificate.nodes), "sha256_of_contents": certificate_digest(certificate)}
