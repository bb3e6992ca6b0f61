"""A result as one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from blindmatch.report.belief import belief
from blindmatch.report.content import drawings
from blindmatch.report.match import Match
from blindmatch.report.measures import agreement
from blindmatch.report.pairs import left_over, pairs_table
from blindmatch.report.provenance import record
from blindmatch.report.sections import about, matrices, over_time, plane, random_pairings, tiles, trust_section
from blindmatch.report.verdict import proof_sentence, verdict

SCRIPTS = ("page.js", "table.js", "matrices.js", "plane.js", "charts.js", "start.js")


def render(match: Match) -> str:
    """Return the report as the text of an HTML page."""
    drawn, agreed = drawings(match), agreement(match)
    believed, told = belief(match, agreed), record(match)
    script = "(() => {\n'use strict';\n" + "\n".join(_asset(name) for name in SCRIPTS) + "\n})();"
    style = _asset("style.css")
    return Template(_asset("template.html")).substitute(
        title=escape(match.title),
        policy=_policy(script, style),
        style=style,
        script=script,
        data=_json(drawn),
        about=about(match),
        verdict=_sentence(verdict(match.result)),
        proof=_sentence(proof_sentence(match.result)),
        level=believed.level,
        question=believed.question,
        belief=_sentence(believed.headline),
        reasons=_sentence(believed.text),
        tiles=tiles(match, agreed),
        trust=trust_section(match),
        pairs=pairs_table(match),
        wrong='<label class="check"><input type="checkbox" id="only-wrong"> only wrong ones</label>'
        if match.truth
        else "",
        left_over=left_over(match),
        matrices=matrices(match, drawn["matrices"]),
        plane=plane(match, drawn["plane"]),
        chart=over_time(drawn["trace"]),
        random=random_pairings(match, drawn["random"]),
        command=_command(match.command),
        settings=_settings(told),
        record=escape(json.dumps(_finite(told), indent=1, ensure_ascii=False)),
    )


def _sentence(text: str) -> str:
    """Our own words: a number and its unit stay on one line."""
    return escape(text).replace(" %", "\u00a0%")


def _asset(name: str) -> str:
    return files("blindmatch.report").joinpath("assets", name).read_text(encoding="utf-8")


def _policy(script: str, style: str) -> str:
    """What the browser may load and run: nothing but what is written here. Names could never become scripts."""
    script_hash, style_hash = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)
    )
    return f"default-src 'none'; img-src data:; style-src 'sha256-{style_hash}'; script-src 'sha256-{script_hash}'"


def _json(values: Any) -> str:
    """JSON that can stand inside a script element: no name can close it."""
    text = json.dumps(_finite(values), separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _finite(value: Any) -> Any:
    """The same without infinities and nan, which JSON does not have."""
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _command(command: str | None) -> str:
    if command is None:
        return ""
    return (
        '<div class="code"><button type="button" class="copy" data-copy="command">Copy</button>'
        f'<pre id="command" tabindex="0">{escape(command)}</pre></div>'
    )


def _settings(told: dict[str, Any]) -> str:
    """Settings, versions and certificate as rows of a table."""
    rows = {**told["settings"], **told["versions"], "platform": told["platform"]}
    for key, value in (told["certificate"] or {}).items():
        rows[f"certificate: {key.replace('_', ' ')}"] = str(value)
    return "\n".join(
        f'<tr><th scope="row">{escape(key)}</th><td>{escape(value)}</td></tr>' for key, value in rows.items()
    )
