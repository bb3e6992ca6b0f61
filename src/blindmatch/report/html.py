"""A result as one HTML file that needs nothing else."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.metadata import version
from importlib.resources import files
from string import Template

import numpy as np

from blindmatch.report.chart import bounds_chart
from blindmatch.report.png import heatmap
from blindmatch.report.verdict import number, percent, proof_sentence, verdict
from blindmatch.result import Result
from blindmatch.validation import FloatArray


@dataclass(frozen=True, eq=False)
class Match:
    """Everything that a report tells about a result.

    Attributes
    ----------
    result
        The match and what is proved about it.
    kernels
        The two (n, n) matrices that were compared; None where there are none to show.
    source_names, target_names
        What the items are; their indices by default.
    truth
        The true partner of each source, where it is known.
    settings
        What was run, so that it can be repeated: text to text, in order.
    title
        What was matched with what.
    """

    result: Result
    kernels: tuple[FloatArray, FloatArray] | None = None
    source_names: Sequence[str] | None = None
    target_names: Sequence[str] | None = None
    truth: Sequence[int] | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    title: str = "A blind match"

    @property
    def named_pairs(self) -> list[tuple[int, int, str, str]]:
        """The pairs with the names of both sides."""
        sources, targets = self.source_names, self.target_names
        return [
            (i, j, str(i) if sources is None else sources[i], str(j) if targets is None else targets[j])
            for i, j in self.result.pairs
        ]

    @property
    def right(self) -> int | None:
        """How many pairs are true; None where the truth is not known."""
        return None if self.truth is None else sum(self.truth[i] == j for i, j in self.result.pairs)


def render(match: Match) -> str:
    """Return the report as the text of an HTML page."""
    template = Template(files("blindmatch.report").joinpath("template.html").read_text(encoding="utf-8"))
    return template.substitute(
        title=escape(match.title),
        verdict=escape(verdict(match.result)),
        proof=escape(proof_sentence(match.result)),
        truth=_truth(match),
        facts=_rows(_facts(match.result)),
        header=f"<tr><th>source</th><th>target</th>{'' if match.truth is None else '<th>right?</th>'}</tr>",
        pairs="\n".join(_pair_rows(match)),
        kernels=_kernels(match),
        chart=bounds_chart(match.result.trace),
        settings=_rows({**match.settings, **_versions()}),
    )


def _truth(match: Match) -> str:
    if match.right is None:
        return ""
    return (
        f"<p>Here the true pairs are known: <strong>{match.right} of {len(match.result.pairs)} are right.</strong></p>"
    )


def _facts(result: Result) -> dict[str, str]:
    facts = {
        "cost": number(result.cost),
        "lower bound": number(result.lower_bound),
        "gap": percent(result.gap),
        "status": result.status,
        "seconds": f"{result.seconds:.2f}",
    }
    return {**facts, "message": result.message} if result.message else facts


def _versions() -> dict[str, str]:
    packages = ("blindmatch", "numpy", "scipy")
    return {"Python": platform.python_version(), **{package: version(package) for package in packages}}


def _rows(table: Mapping[str, str]) -> str:
    return "\n".join(f"<tr><th>{escape(key)}</th><td>{escape(value)}</td></tr>" for key, value in table.items())


def _pair_rows(match: Match) -> list[str]:
    rows = []
    for i, j, source, target in match.named_pairs:
        mark = ""
        if match.truth is not None:
            mark = '<td class="right">✓</td>' if match.truth[i] == j else '<td class="wrong">✗</td>'
        rows.append(f"<tr><td>{escape(source)}</td><td>{escape(target)}</td>{mark}</tr>")
    return rows


def _kernels(match: Match) -> str:
    """Both matrices in the order of the match, and their difference, on one scale of colours."""
    if match.kernels is None:
        return ""
    rows, columns = (np.array(side, dtype=np.intp) for side in zip(*match.result.pairs, strict=True))
    K, G = match.kernels[0][np.ix_(rows, rows)], match.kernels[1][np.ix_(columns, columns)]
    limit = float(max(np.abs(K).max(), np.abs(G).max()))
    figures = [
        f'<figure><img alt="{caption}" src="{heatmap(matrix, limit)}"><figcaption>{caption}</figcaption></figure>'
        for caption, matrix in (("source", K), ("target, in the order of the match", G), ("difference", K - G))
    ]
    return (
        "<h2>Relations inside each set</h2><p>Where the match is good, the two pictures look alike and the third is "
        f"pale. Blue is below zero, red above, full colour at {number(limit)}.</p>"
        f'<div class="row">{"".join(figures)}</div>'
    )
