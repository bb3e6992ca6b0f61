"""The command line: the demo, and what the README shows of it."""

from pathlib import Path

import numpy as np
import pytest
from sampled import sampled

import blindmatch as bm
from blindmatch.demo import load_demo

pytestmark = pytest.mark.usefixtures("hidden")
SOLVER = ("--solver", "factorized-hahn-grant")
README = Path(__file__).parents[2] / "README.md"


@sampled("data", ["cifar10", "colours"], quick=1)
def test_demo_counts_what_is_right(run, data: str) -> None:
    done = run("demo", "--data", data, "--seed", 5, *SOLVER, "--report", "r.html")
    assert done.code == 0
    lines = [line for line in done.out.splitlines() if "✓" in line or "✗" in line]
    names = load_demo(data, 5).source_names
    assert [line.split()[0] for line in lines] == list(names)
    for line in lines:
        assert ("✓" in line) == (line.split()[0] == line.replace("│", " ").split()[1])
    right = sum("✓" in line for line in lines)
    assert f"{right} of {len(names)} pairs are right" in done.out
    assert run("demo", "--data", data, "--seed", 5, *SOLVER, "--json").json["right"] == right
    assert f"{right} of {len(names)} pairs are right" in Path("r.html").read_text(encoding="utf-8")


def test_demo_of_tables_that_share_no_column(run) -> None:
    shown = load_demo("countries", 5)
    assert (shown.source_names[18], shown.target_names[shown.truth[18]]) == ("France", "Frankreich")
    assert abs(np.corrcoef(shown.source[:, 1], shown.target[shown.truth, 1])[0, 1]) > 0.9  # longitude and clock
    done = run("demo", "--data", "countries", "--seed", 5)
    assert "17 of 25 pairs are right (chance: 1)." in done.out
    assert "proved optimal" in done.out
    assert "the clock tells the longitude" in " ".join(done.out.split())


def test_demo_is_shuffled_by_its_seed() -> None:
    first, second = load_demo("colours", 0), load_demo("colours", 1)
    assert first.target_names != first.source_names
    assert first.target_names != second.target_names
    undone = [second.target[second.truth[i]] for i in range(len(second.truth))]
    np.testing.assert_array_equal(undone, first.target[first.truth])


def test_the_readme_shows_what_the_demo_prints(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = README.read_text(encoding="utf-8").partition("<!-- demo output -->")[2].partition("<!-- end -->")[0]
    lines = [line for line in shown.strip().splitlines() if line != "..." and not line.startswith("```")]
    printed = [line.rstrip() for line in run("demo", "--solver", "brute-force").out.splitlines()]
    assert len(lines) > 12
    assert [line for line in lines if line not in printed] == []


def test_the_documentation_names_every_solver() -> None:
    page = README.parent / "docs" / "solvers.md"
    table = page.read_text(encoding="utf-8").partition("## Every solver")[2].partition("## How fast")[0]
    assert [name for name in bm.SOLVERS if f"`{name}`" not in table] == []
