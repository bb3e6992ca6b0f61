"""Which items to ask a person about."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import blindmatch as bm
from blindmatch.cli.commands.match import ask_and_match
from blindmatch.matching.match import SolveOptions, match_task


def two_triangles() -> np.ndarray:
    """Two equilateral triangles that can be turned, and three points that cannot be mistaken."""
    corner = np.exp(2j * np.pi * np.arange(3) / 3)
    flat = np.concatenate([corner, 30 + corner, [60, 61 + 40j, 70 + 90j]])
    return np.column_stack([flat.real, flat.imag])


def test_it_asks_about_what_can_be_exchanged() -> None:
    X = two_triangles()
    result = bm.match(X, X[::-1], rng=0)
    questions = result.ask(3)
    sources = [source for source, _ in questions]
    assert len(set(sources)) == 3
    assert {source // 3 for source in sources[:2]} == {0, 1}
    for source, candidates in questions:
        assert 2 <= len(candidates) <= 3
        assert len(set(candidates)) == len(candidates)
        assert int(result.permutation[source]) in candidates or source > 5
    assert questions == result.ask(3)


def test_known_items_are_not_asked_about() -> None:
    X = two_triangles()
    known = [(i, 8 - i) for i in range(7)]
    assert {source for source, _ in bm.match(X, X[::-1], known_pairs=known, rng=0).ask(9)} == {7, 8}
    everything = [(i, 8 - i) for i in range(9)]
    assert bm.match(X, X[::-1], known_pairs=everything, rng=0).ask(3) == []


def test_bad_questions() -> None:
    X = two_triangles()
    result = bm.match(X, X, rng=0)
    with pytest.raises(ValueError, match="k=0"):
        result.ask(0)
    with pytest.raises(ValueError, match=r"not of bm\.solve"):
        bm.solve(result.problem, rng=0).ask(1)


def test_a_dialogue_keeps_its_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    X = two_triangles()
    names = [f"item, {i}" for i in range(9)]
    found = bm.match(X, X[::-1], source_names=names, target_names=names[::-1], rng=0)
    path = tmp_path / "answers.csv"
    path.write_text("source,target\n")
    said = iter(["what?", "", "item, 4", "q"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(said))
    ended = ask_and_match(found, lambda task: match_task(task, SolveOptions(rng=0)), path)
    lines = path.read_text().splitlines()
    assert len(lines) == 2
    assert lines[1].endswith('"item, 4"')
    assert len(ended.task.hints.known) == 1  # type: ignore[union-attr]
    assert "is not understood" in capsys.readouterr().out
