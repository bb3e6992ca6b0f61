"""The partner of each source, how sure it is and who else it could be: in JSON, CSV and AnnData files."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from blindmatch.cli.inputs import TaskInput
from blindmatch.io.cells import SUFFIX, annotate_files, split_key
from blindmatch.io.files import is_stream, write_atomically
from blindmatch.matching.projection import project
from blindmatch.report import Match
from blindmatch.validation import FloatArray, IntArray


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
        text = _table(match, candidates)
        write_atomically(path, lambda file: file.write(text.encode()))
        return
    result, task = match.result, inputs.task
    # The distances to all other sources would take too much memory for a large match.
    known = result.solver != "alignment" and len(result.pairs) > 0
    annotate_files(
        (inputs.source, inputs.target),
        path,
        result.permutation,
        confidence=_confidence(match),
        projected=project(result, task).points if known else None,
    )


def _confidence(match: Match) -> FloatArray | None:
    return match.result.confidence if match.trust is None else match.trust.confidence


def _table(match: Match, candidates: IntArray | None) -> str:
    """Indices, names if there are any, confidence if it is known, and the best partners."""
    confidence = _confidence(match)
    sides = [("source", match.source_names), ("target", match.target_names)]
    named = [(f"{side}_name", names) for side, names in sides if names is not None]
    others = 0 if candidates is None else candidates.shape[1]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        [
            *("source", "target"),
            *(title for title, _ in named),
            *(["confidence"] if confidence is not None else []),
            *(f"candidate_{place + 1}" for place in range(others)),
        ]
    )
    for i, j in enumerate(match.result.permutation.tolist()):
        row: list[object] = [i, j if j >= 0 else ""]
        if match.source_names is not None:
            row.append(match.source_names[i])
        if match.target_names is not None:
            row.append(match.target_names[j] if j >= 0 else "")
        if confidence is not None:
            row.append(f"{confidence[i]:.4f}" if np.isfinite(confidence[i]) else "")
        if candidates is not None:
            row += [match.target_name(int(other)) for other in candidates[i]]
        writer.writerow(row)
    return text.getvalue()
