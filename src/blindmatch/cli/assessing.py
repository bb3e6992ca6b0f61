"""What ``assess`` and ``match --assess`` do: trust in a match, on the terminal."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.table import Table
from rich.text import Text

from blindmatch.cli.console import plain
from blindmatch.cli.inputs import EmbeddingFiles
from blindmatch.cli.progress import watched
from blindmatch.io.embeddings import load_embeddings
from blindmatch.problem.distortion import as_distortion
from blindmatch.report import Match
from blindmatch.report.verdict import number
from blindmatch.solving.result import Result
from blindmatch.trust import Trust
from blindmatch.trust.abstention import abstained
from blindmatch.trust.assessment import Clock, Plan, as_background, as_share, assess_spaces
from blindmatch.trust.spaces import Spaces
from blindmatch.trust.stability import redraw_dimensions
from blindmatch.validation import FloatArray, at_least, positive


@dataclass(frozen=True)
class Assessment:
    """How to assess: `min_confidence` None keeps all pairs."""

    min_confidence: float | None = None
    background: Path | None = None
    draws: int = 199
    time_limit: float = 60.0

    def check(self) -> None:
        """Refuse now what would fail only after a match."""
        at_least(self.draws, 1, "--draws")
        positive(self.time_limit, "--assess-time")
        if self.min_confidence is not None:
            as_share(self.min_confidence, "--min-confidence")
        if self.background is not None:
            load_embeddings(self.background)

    def of(self, inputs: EmbeddingFiles, result: Result, seed: int, threads: int | None) -> Trust:
        """Assess a result of these inputs."""
        source, target = inputs.embeddings()
        distortion = as_distortion(inputs.distortion, inputs.standardize)
        spaces = Spaces.of(distortion, source.values, target.values, None, inputs.pairs.hints(source, target))
        null = None
        if self.background is not None:
            null = as_background(load_embeddings(self.background).values, spaces, f"--background {self.background}")
        plan = Plan((redraw_dimensions(spaces.source), redraw_dimensions(spaces.target)), null, self.draws)
        with watched("assessing") as line:
            clock = Clock(self.time_limit, None if line is None else line.share)
            return assess_spaces(result, spaces, plan, np.random.default_rng(seed), clock, threads)

    def added_to(
        self, match: Match, inputs: EmbeddingFiles, seed: int, threads: int | None, fresh: bool = True
    ) -> tuple[Match, str | None]:
        """The match with its trust, and without the pairs that are not to be believed.

        Ctrl-C costs the assessment, not the match: then the second thing returned says so. A match that Ctrl-C cut
        short is not assessed if it is `fresh`, made by this very command: somebody wants it to end.
        """
        kept = "" if self.min_confidence is None else " and all its pairs are kept"
        if fresh and match.result.status == "interrupted":
            return match, f"it was not assessed{kept}"
        if not match.result.pairs:
            return match, None
        try:
            trust = self.of(inputs, match.result, seed, threads)
        except KeyboardInterrupt:
            return match, f"the match is complete, but was not assessed{kept}"
        if self.min_confidence is None:
            return replace(match, trust=trust), None
        return replace(match, trust=trust, result=abstained(match.result, trust, self.min_confidence)), None


def trust_text(trust: Trust, match: Match) -> list[object]:
    """A table of the pairs and their confidence, then the sentences."""
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("source", overflow="fold")
    table.add_column("target", overflow="fold")
    columns: list[tuple[str, FloatArray, Callable[[float], str]]] = [("confidence", trust.confidence, _percent)]
    columns += [] if trust.stability is None else [("stability", trust.stability, _percent)]
    columns += [("agreement", trust.agreement, _percent)]
    columns += [] if trust.regret is None else [("regret (proved)", trust.regret, _regret)]
    for title, *_ in columns:
        table.add_column(title, justify="right")
    for i, _, source, target in match.named_pairs:
        table.add_row(Text(plain(source)), Text(plain(target)), *(show(values[i]) for _, values, show in columns))
    names = None if match.source_names is None else [plain(name) for name in match.source_names]
    return [table, Text(trust.verdict, style="bold"), *(Text(line) for line in trust.ambiguities(names))]


def _percent(value: float) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.0f} %"


def _regret(value: float) -> str:
    # Below zero nothing is proved: not even a cheaper match is ruled out.
    return "given" if value == math.inf else number(value if value >= 0 else None)
