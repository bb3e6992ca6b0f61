"""Columns of two tables, matched without their headers."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from typer.testing import CliRunner

import blindmatch as bm
from blindmatch.cli.app import app

pd = pytest.importorskip("pandas")


def halves(frame, seed: int = 0):
    """Two halves of the rows with hidden headers, the second with its columns shuffled, and where each one went."""
    rng = np.random.default_rng(seed)
    rows, order = rng.permutation(len(frame)), rng.permutation(frame.shape[1])
    half = len(frame) // 2
    one, other = frame.iloc[rows[:half]], frame.iloc[rows[half:], order]
    hidden = (
        part.set_axis([f"{side}{at}" for at in range(part.shape[1])], axis=1)
        for part, side in ((one, "a"), (other, "b"))
    )
    return *(part.reset_index(drop=True) for part in hidden), np.argsort(order)


@pytest.mark.parametrize(("load", "least"), [(load_wine, 0.85), (load_breast_cancer, 0.95)])
def test_columns_of_real_tables_are_found(load, least: float) -> None:
    one, other, truth = halves(load(as_frame=True).frame)
    result = bm.match_columns(one, other, rng=0, threads=1)
    assert (result.permutation == truth).mean() >= least
    assert result.to_frame()["source"].tolist() == list(one.columns)
    assert result.settings["examples of the source"].startswith("a0: ")


def mixed(rows: int, seed: int):
    """A table with numbers, text, dates and holes whose columns are related."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=rows)
    frame = pd.DataFrame(
        {
            "size": size,
            "weight": (size + 0.3 * rng.normal(size=rows)).round(2),
            "kind": np.where(size > 0, "large", "small"),
            "colour": rng.choice(["red", "green", "blue"], rows, p=[0.6, 0.3, 0.1]),
            "open": rng.random(rows) > 0.8,
            "when": pd.to_datetime("2020-01-01") + pd.to_timedelta((size * 100).round(), unit="D"),
            "code": [f"{at:x}" for at in rng.integers(1 << 40, size=rows)],
        }
    )
    frame.loc[rng.random(rows) < 0.3, "weight"] = np.nan
    return frame


def test_mixed_columns_other_units_and_columns_of_one_table_alone(tmp_path: Path) -> None:
    ours, theirs = mixed(200, 1), mixed(150, 2)
    theirs["size"] *= 2.54
    theirs["kind"] = theirs["kind"].map({"large": "gross", "small": "klein"})
    theirs = theirs[["code", "colour", "when", "weight", "kind", "size"]].assign(
        other=np.random.default_rng(0).pareto(1, 150)
    )
    theirs.to_csv(tmp_path / "theirs.csv", index=False)
    for target in (theirs, tmp_path / "theirs.csv"):
        frame = bm.match_columns(ours, target, rng=0, threads=1).to_frame().set_index("source")
        right = frame["target"] == frame.index
        assert right.sum() >= 5
        assert pd.isna(frame.loc["open", "target"])
    everything = bm.match_columns(ours, theirs, unmatched_cost=None, rng=0, threads=1)
    assert (everything.permutation >= 0).all()


def test_bad_tables_are_refused() -> None:
    with pytest.raises(ValueError, match="expected a table with columns, and three rows or more"):
        bm.match_columns(np.ones((2, 3)), np.ones((9, 3)))
    with pytest.raises(ValueError, match="unmatched_cost='much'"):
        bm.match_columns(np.eye(5), np.eye(5), unmatched_cost="much")


def test_the_command_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import json

    monkeypatch.chdir(tmp_path)
    one, other, truth = halves(load_wine(as_frame=True).frame)
    one.to_csv("a.csv", index=False)
    other.to_json("b.jsonl", orient="records", lines=True)
    done = CliRunner().invoke(app, ["match-columns", "a.csv", "b.jsonl", "--json", "--report", "r.html"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert np.mean(np.array(found["permutation"]) == truth) >= 0.85
    assert {pair["source_name"] for pair in found["pairs"]} <= set(one.columns)
    assert "examples of the target" in Path("r.html").read_text()
    refused = CliRunner().invoke(app, ["match-columns", "a.csv", "none.csv"])
    assert (refused.exit_code, "none.csv" in refused.stderr) == (2, True)
