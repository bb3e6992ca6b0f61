"""The partner of each source in files: --output and --candidates of the command 'match'."""

import csv
import json
import pathlib

import numpy as np
import pytest
from commands import run

from blindmatch.problem import task as module


@pytest.fixture(autouse=True)
def truth(tmp_path, monkeypatch):
    """Two sets of 120 points, which count as too many for an assignment problem."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "QUADRATIC", 100)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 8)) * np.geomspace(3, 0.5, 8) + 3 * rng.normal(size=(6, 8))[rng.integers(6, size=120)]
    order = rng.permutation(120)
    np.save("a.npy", X)
    np.save("b.npy", (X + 0.1 * rng.normal(size=X.shape))[order])
    return np.argsort(order)


def test_partners_confidences_and_candidates(truth) -> None:
    made = run("match", "a.npy", "b.npy", "--candidates", "3", "--output", "p.csv", "--json")
    assert made.exit_code == 0, made.output
    values = json.loads(made.stdout)
    assert np.shape(values["candidates"]) == (120, 3)
    assert values["support"] >= 1
    with pathlib.Path("p.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["target"]) for row in rows] == values["permutation"]
    assert np.mean([int(row["target"]) == j for row, j in zip(rows, truth, strict=True)]) > 0.9
    assert [[int(row[f"candidate_{k}"]) for k in (1, 2, 3)] for row in rows] == values["candidates"]
    assert all(0 <= float(row["confidence"]) <= 1 for row in rows)


def test_a_large_match_is_saved_and_assessed(truth) -> None:
    made = run("match", "a.npy", "b.npy", "--json", "--save", "m.npz")
    assessed = json.loads(run("assess", "m.npz", "--json").stdout)["trust"]
    assert assessed["support"] == json.loads(made.stdout)["support"]
    assert "led to the same match" in assessed["verdict"]


def test_unmatched_items_of_a_large_match_are_told() -> None:
    np.save("b.npy", np.load("b.npy")[:110])
    values = json.loads(run("match", "a.npy", "b.npy", "--json", "--output", "p.csv", "--time-limit", "1").stdout)
    assert len(values["unmatched_sources"]) == 10
    assert values["unmatched_targets"] == []
    with pathlib.Path("p.csv").open(encoding="utf-8", newline="") as file:
        assert sum(row["target"] == "" for row in csv.DictReader(file)) == 10


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [("--output", "p.txt", "ends with .csv"), ("--output", "p.h5ad", "not both"), ("--candidates", "-1", "at least 0")],
)
def test_what_is_wrong_is_told_in_one_line(option: str, value: str, words: str) -> None:
    made = run("match", "a.npy", "b.npy", option, value)
    assert made.exit_code == 2
    assert words in made.stderr
    assert made.stderr.count("\n") == 1


def test_candidates_of_few_items_are_not_known() -> None:
    np.save("c.npy", np.load("a.npy")[:8])
    made = run("match", "c.npy", "c.npy", "--candidates", "2", "--json")
    assert made.exit_code == 0
    assert "candidates" not in json.loads(made.stdout)
    assert "not known" in made.stderr
