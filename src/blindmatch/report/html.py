"""A result as one HTML file that needs nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from blindmatch.io.files import refuse_missing_folder, write_atomically
from blindmatch.io.json_values import json_finite
from blindmatch.report.belief import belief, chance_sentence, prior_sentence
from blindmatch.report.content import drawings
from blindmatch.report.heat import view_heats
from blindmatch.report.lines import lines_of
from blindmatch.report.match import Match
from blindmatch.report.page import fill
from blindmatch.report.pairs import columns, left_over, rows
from blindmatch.report.prices import price_curve
from blindmatch.report.provenance import record
from blindmatch.report.sections import random_sentence, shares
from blindmatch.report.summary import about, headline, tiles
from blindmatch.report.verdict import proof_sentence

SCRIPTS = ("page.js", "table.js", "matrices.js", "plane.js", "charts.js", "start.js", "theme.js")


def render(match: Match) -> str:
    """Return the report as the text of an HTML page."""
    drawn, run, shown = drawings(match), record(match), columns(match)
    return fill(
        "match.html",
        SCRIPTS,
        ["style.css"],
        data=drawn,
        match=match,
        title=match.title,
        verdict=headline(match),
        about=about(match),
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
        prices=price_curve(match.price),
        heats=view_heats(match.task),
        beside_random=drawn["random"] and random_sentence(match, drawn["random"]),
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
