"""The partner of each source, how sure it is and who else it could be: in JSON, CSV and AnnData files."""

from __future__ import annotations

from collections.abc import Sequence
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


def write_partners(match: Match, inputs: TaskInput, candidates: IntArray | None, path: Path) -> None:
    """Write a table, one line for each source; or the source's AnnData file with its partners in it."""
    if path.suffix.lower() != SUFFIX:
        write_table(_table(match, candidates), path)
        return
    result, task = match.result, inputs.task
    # The distances to all other sources would take too much memory for a large match.
    known = result.solver != "alignment" and len(result.pairs) > 0
    annotate_files(
        (inputs.source, inputs.target),
        path,
        result.permutation,
        confidence=match.confidence,
        projected=project(result, task).points if known else None,
    )


def _table(match: Match, candidates: IntArray | None) -> dict[str, Sequence[object]]:
    """Indices, names if there are any, confidence if it is known, and the best partners."""
    partners = match.result.permutation.tolist()
    columns: dict[str, Sequence[object]] = {
        "source": range(len(partners)),
        "target": [j if j >= 0 else "" for j in partners],
    }
    if match.source_names is not None:
        columns["source_name"] = match.source_names
    if match.target_names is not None:
        columns["target_name"] = [match.target_name(j) if j >= 0 else "" for j in partners]
    if match.confidence is not None:
        columns["confidence"] = [f"{share:.4f}" if np.isfinite(share) else "" for share in match.confidence]
    if candidates is not None:
        for place, others in enumerate(candidates.T.tolist(), 1):
            columns[f"candidate_{place}"] = [match.target_name(j) for j in others]
    return columns
