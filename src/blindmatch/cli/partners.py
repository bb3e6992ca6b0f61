"""The partner of each source, how sure it is and who else it could be: in JSON, CSV and AnnData files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from blindmatch.cli.inputs import TaskInput
from blindmatch.cli.outputs import write_table
from blindmatch.io.cells import SUFFIX, annotate_files, split_key
from blindmatch.io.files import is_stream
from blindmatch.matching.projection import project
from blindmatch.report import Match
from blindmatch.validation import IntArray


def check_partners(output: Path | None, candidates: int, inputs: TaskInput) -> None:
    """Refuse, before a long run, a file that cannot be written."""
    if candidates < 0:
        raise ValueError(f"--candidates {candidates}: expected a number of at least 0")
    if output is None:
        return
    if output.suffix.lower() not in (".csv", SUFFIX) and not is_stream(output):
        raise ValueError(f"--output {output}: expected a file name that ends with .csv or {SUFFIX}")
    cells = [split_key(path)[0].suffix.lower() == SUFFIX for path in (inputs.source, inputs.target)]
    if output.suffix.lower() == SUFFIX and not all(cells):
        raise ValueError(f"--output {output}: expected .csv, because SOURCE and TARGET are not both {SUFFIX} files")


def best_partners(match: Match, count: int) -> IntArray | None:
    """The best partners of each source, as many as there are; None if they were not asked for, or are not known."""
    ranking = match.result.ranking
    return None if not count or ranking is None else match.result.candidates(min(count, ranking.most))


def write_partners(match: Match, inputs: TaskInput, candidates: int, path: Path) -> None:
    """Write a table, one line for each source; or the source's AnnData file with its partners in it."""
    if path.suffix.lower() != SUFFIX:
        table = match.table(candidates)
        if match.confidence is not None:
            table["confidence"] = [f"{share:.4f}" if np.isfinite(share) else "" for share in match.confidence]
        write_table(table, path)
        return
    result = match.result
    # The distances to all other sources would take too much memory for a large match.
    known = match.kernels is not None and len(result.pairs) > 0
    annotate_files(
        (inputs.source, inputs.target),
        path,
        result.permutation,
        confidence=match.confidence,
        projected=project(result).points if known else None,
    )
