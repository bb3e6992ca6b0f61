"""``blindmatch assess`` and ``match --assess``."""

import json
from pathlib import Path

import numpy as np
import pytest
from strategies import embeddings
from typer.testing import CliRunner

from blindmatch.cli.app import app


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    X, Y = embeddings(0, 8, noise=0.05, dimension=6)
    np.savez(tmp_path / "a.npz", embeddings=X, names=np.array([f"item {i}" for i in range(8)]))
    np.save(tmp_path / "b.npy", Y)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str, code: int = 0):
    result = CliRunner().invoke(app, [*words])
    assert result.exit_code == code, result.output
    return result


def test_a_saved_match_is_assessed(files: Path) -> None:
    told = json.loads(run("match", "a.npz", "b.npy", "--save", "m.npz", "--json").stdout)
    shown = run("assess", "m.npz", "--draws", "19").stdout
    assert "confidence" in shown
    assert "item 3" in shown
    assert "structure in common: unrelated ones match as well in only 5 % of cases" in " ".join(shown.split())
    again = json.loads(run("assess", "m.npz", "--draws", "19", "--json", "--save", "assessed.npz").stdout)
    assert again["trust"]["p_value"] == 0.05
    assert len(again["trust"]["confidence"]) == 8
    assert again["permutation"] == told["permutation"]
    run("report", "assessed.npz", "--out", "r.html")
    assert "As assessed.npz states; it was not assessed again here." in (files / "r.html").read_text()


@pytest.mark.parametrize(
    ("width", "left_out"), [("40", {"stability", "consensus", "agreement"}), ("60", {"consensus", "agreement"})]
)
def test_a_narrow_table_has_fewer_columns_and_whole_numbers(
    files: Path, monkeypatch: pytest.MonkeyPatch, width: str, left_out: set[str]
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    table = run("match", "a.npz", "b.npy", "--assess", "--evidence").stdout
    for title in ("source", "target", "confidence", "(proved)"):
        assert title in table
    titles = {"stability", "consensus", "agreement"}
    assert {title for title in titles if title in table.partition("item 0")[0]} == titles - left_out
    assert "…" not in table


def test_the_figures_behind_a_confidence_are_shown_on_request(files: Path) -> None:
    plain, full = (run("match", "a.npz", "b.npy", "--assess", *more).stdout for more in ((), ("--evidence",)))
    words = ("stability", "consensus", "agreement", "(proved)", "Agreement of all relations")
    assert [word in full for word in words] == [True] * 5
    assert [word in plain for word in words] == [False] * 5
    assert "confidence" in plain
    assert plain.startswith("About 8 of 8 pairs are right.")


def test_solvers_are_a_list_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    shown = run("solvers").stdout
    assert "…" not in shown
    assert "factorized-hahn-grant\n  bound, linear, asym, uneq; max n: any" in shown


def test_trust_goes_into_the_report(files: Path) -> None:
    run("match", "a.npz", "b.npy", "--save", "m.npz")
    run("assess", "m.npz", "--draws", "19", "--report", "page.html")
    assert 'id="trust"' in (files / "page.html").read_text()


def test_match_can_assess_and_abstain(files: Path) -> None:
    told = json.loads(run("match", "a.npz", "b.npy", "--assess", "--json").stdout)
    assert told["trust"]["headline"] == "About 8 of 8 pairs are right"
    none = json.loads(run("match", "a.npz", "b.npy", "--min-confidence", "1", "--json").stdout)
    assert none["pairs"] == []
    assert none["unmatched_sources"] == list(range(8))
    assert none["left_out"] == 8
    assert none["trust"]["verdict"].endswith(" None of 8 pairs is kept.")
    assert "0 of 8 pairs kept; all 8 were matched" in run("match", "a.npz", "b.npy", "--min-confidence", "1").stdout
    run("match", "a.npz", "b.npy", "--min-confidence", "1", "--save", "none.npz")
    run("report", "none.npz", "--out", "none.html")
    assert "0 of 8 pairs kept" in (files / "none.html").read_text(encoding="utf-8")
    assert "trust" not in json.loads(run("match", "a.npz", "b.npy", "--json").stdout)


def test_a_prior_is_told_wherever_the_confidence_is(files: Path) -> None:
    run("match", "a.npz", "b.npy", "--save", "m.npz")
    shown = run("assess", "m.npz", "--draws", "19", "--prior", "0.25", "--report", "page.html").stdout
    assert "should be right, given a prior of 0.25." in " ".join(shown.split())
    assert "The confidences are for a prior of 0.25" in (files / "page.html").read_text(encoding="utf-8")
    quick = ("assess", "m.npz", "--draws", "19", "--json", "--min-confidence", "0.5", "--prior")
    few, many = (json.loads(run(*quick, prior).stdout) for prior in ("1e-9", "0.5"))
    assert (few["trust"]["prior"], many["trust"]["prior"]) == (1e-9, 0.5)
    assert (len(few["pairs"]), len(many["pairs"])) == (0, 8)


@pytest.mark.parametrize("words", [("match", "--min-confidence", "0.5"), ("classify", "--starts", "1", "--assess")])
def test_every_command_that_assesses_takes_a_prior(files: Path, words: tuple[str, ...]) -> None:
    name, *more = words
    told = json.loads(run(name, "a.npz", "b.npy", *more, "--prior", "1e-9", "--json").stdout)
    assert told["trust"]["prior"] == 1e-9
    assert max(told["trust"]["confidence"]) < 0.5


def test_a_prior_for_a_large_match_is_refused_before_it(files: Path) -> None:
    np.save(files / "many.npy", np.random.default_rng(0).standard_normal((9000, 3)))
    told = run("match", "many.npy", "many.npy", "--assess", "--prior", "0.5", code=2)
    assert told.stdout == ""
    assert "--prior 0.5 cannot be used for 9000 items" in told.stderr


def test_bad_input_is_told_in_one_line(files: Path) -> None:
    run("match", "a.npz", "b.npy", "--save", "m.npz")
    for words, message in (
        (("assess", "a.npz"), "a.npz: not a saved match"),
        (("assess", "b.npy"), "b.npy: not a readable .npz file"),
        (("assess", "m.npz", "--min-confidence", "2"), "--min-confidence 2.0; expected a number from 0 to 1"),
        (("assess", "m.npz", "--prior", "1"), "--prior 1.0; expected a number above 0 and below 1"),
        (
            ("match", "a.npz", "b.npy", "--assess", "--prior", "nan"),
            "--prior nan; expected a number above 0 and below 1",
        ),
        (
            ("classify", "a.npz", "b.npy", "--assess", "--prior", "0"),
            "--prior 0.0; expected a number above 0 and below",
        ),
        (("assess", "m.npz", "--prior", "half"), "'--prior': expected a valid number"),
        (("match", "a.npz", "b.npy", "--prior", "0.5"), "--prior 0.5 needs --assess or --min-confidence"),
        (("classify", "a.npz", "b.npy", "--prior", "0.5"), "--prior 0.5 needs --assess"),
        (("assess", "m.npz", "--draws", "0"), "--draws 0"),
        (("assess", "m.npz", "--background", "b.npy", "--truth", "none.csv"), "no such file"),
    ):
        told = run(*words, code=2).stderr
        assert message in told
        assert told.count("\n") == 1
