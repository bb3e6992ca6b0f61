"""A result as one HTML file that needs nothing else."""

from __future__ import annotations

import json
from html import escape
from string import Template
from typing import Any

from blindmatch.report.belief import belief
from blindmatch.report.content import drawings
from blindmatch.report.match import Match
from blindmatch.report.measures import agreement
from blindmatch.report.page import LOOK, THEME, asset, bundle, command_box, facts_rows, finite, policy, script_json
from blindmatch.report.pairs import left_over, pairs_table
from blindmatch.report.provenance import record
from blindmatch.report.sections import matrices, over_time, plane, random_pairings, trust_section
from blindmatch.report.summary import about, headline, tiles
from blindmatch.report.verdict import proof_sentence

SCRIPTS = ("page.js", "table.js", "matrices.js", "plane.js", "charts.js", "start.js", THEME)


def render(match: Match) -> str:
    """Return the report as the text of an HTML page."""
    drawn, agreed = drawings(match), agreement(match)
    believed, told = belief(match, agreed), record(match)
    script, style = bundle([asset(name) for name in SCRIPTS]), asset(LOOK)
    return Template(asset("template.html")).substitute(
        title=escape(match.title),
        policy=policy(script, style),
        style=style,
        script=script,
        data=script_json(drawn),
        about=_sentence(about(match)),
        verdict=_sentence(headline(match)),
        proof=_sentence(proof_sentence(match.result, match.told_by)),
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
        chart=over_time(drawn["trace"], match.told_by),
        random=random_pairings(match, drawn["random"]),
        command=command_box(match.command),
        settings=_settings(told),
        record=escape(json.dumps(finite(told), indent=1, ensure_ascii=False)),
    )


def _sentence(text: str) -> str:
    """Our own words: a number and its unit stay on one line."""
    return escape(text).replace(" %", "\u00a0%")


def _settings(told: dict[str, Any]) -> str:
    """Settings, versions and certificate as rows of a table."""
    rows = {**told["settings"], **told["versions"], "platform": told["platform"]}
    for key, value in (told["certificate"] or {}).items():
        rows[f"certificate: {key.replace('_', ' ')}"] = str(value)
    return facts_rows(rows)
