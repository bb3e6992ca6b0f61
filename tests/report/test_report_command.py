"""The command `report`."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from report.pages import sets
from report.parsing import Page

import blindmatch as bm
from blindmatch.cli import main


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch):
    """The command in this process, in a folder with two files of embeddings: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    X, Y, _ = sets(9)
    np.savez("a.npz", embeddings=X, names=[f"thing {i}" for i in range(9)])
    np.save("b.npy", Y)

    def run_in_process(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["blindmatch", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return (ended.value.code or 0, *capsys.readouterr())

    return run_in_process


def test_report_command(run) -> None:
    _, out, _ = run("match", "a.npz", "b.npy", "--json", "--certificate", "c.npz", "--report", "first.html")
    Path("r.json").write_text(out)
    assert run("report", "r.json", "a.npz", "b.npy", "--out", "r.html") == (0, "Report: r.html\n", "")
    first, second = (Path(name).read_text() for name in ("first.html", "r.html"))
    one, other = (json.loads(Page(text).data) for text in (first, second))
    assert other == {**one, "bound": None}  # the same match, drawn from the same data, without a bound to believe
    assert "blindmatch match a.npz b.npy --json" in Page(first).text
    assert "not recomputed here" in second
    code, out, _ = run("report", "r.json", "a.npz", "b.npy", "--out", "r.html", "--certificate", "c.npz", "--json")
    assert (code, json.loads(out)["report"]) == (0, "r.html")
    assert "not recomputed here" not in Path("r.html").read_text()
    assert "sha256 of file" in Path("r.html").read_text()


def test_report_command_of_a_problem(run) -> None:
    Path("p.dat").write_text("4\n\n0 1 2 3\n1 0 1 2\n2 1 0 1\n3 2 1 0\n\n0 5 2 4\n5 0 3 0\n2 3 0 1\n4 0 1 0\n")
    Path("r.json").write_text(run("solve", "p.dat", "--json")[1])
    assert run("report", "r.json", "p.dat")[0] == 0
    assert "Is it the best?" in Page(Path("report.html").read_text()).text


def test_what_a_file_says_is_not_a_proof(run) -> None:
    """Somebody wrote "optimal" into the JSON of a search that proves nothing."""
    values = json.loads(run("match", "a.npz", "b.npy", "--json", "--solver", "two-opt")[1])
    forged = {**values, "status": "optimal", "lower_bound": values["cost"]}
    Path("forged.json").write_text(json.dumps(forged))
    assert run("report", "forged.json", "a.npz", "b.npy")[0] == 0
    page = Page(Path("report.html").read_text()).text
    assert "proved optimal" not in page
    assert "9 pairs matched, and forged.json says that no other pairing costs less, which was not checked here." in page
    assert "not checked" in page
    _, out, _ = run("assess", "forged.json", "a.npz", "b.npy", "--draws", "1", "--assess-time", "1")
    assert "proved optimal" not in out
    assert "forged.json says" in out
    Path("gap.json").write_text(json.dumps({**forged, "status": "time_limit", "lower_bound": 0.5 * values["cost"]}))
    assert run("report", "gap.json", "a.npz", "b.npy")[0] == 0
    assert "gap.json says that no other pairing costs less by more than 50" in Path("report.html").read_text()


def test_a_certificate_must_prove_what_the_file_says(run) -> None:
    values = json.loads(run("match", "a.npz", "b.npy", "--json", "--certificate", "c.npz")[1])
    told = ("a.npz", "b.npy", "--certificate", "c.npz")
    Path("r.json").write_text(json.dumps(values))
    assert run("report", "r.json", *told)[0] == 0
    assert "9 pairs matched, proved optimal" in Page(Path("report.html").read_text()).text
    Path("weak.json").write_text(json.dumps({**values, "lower_bound": None}))
    rng = np.random.default_rng(0)
    proof = bm.Certificate.load("c.npz")
    nodes = [
        replace(n, stages=tuple(replace(s, U=s.U + rng.normal(size=s.U.shape).astype(s.U.dtype)) for s in n.stages))
        for n in proof.nodes
    ]
    replace(proof, nodes=tuple(nodes)).save("c.npz")
    code, _, err = run("report", "weak.json", *told)
    assert (code, "optimal" in err) == (2, True)


def test_a_problem_whose_proof_nobody_checked(run) -> None:
    Path("p.dat").write_text("3\n\n0 1 2\n1 0 1\n2 1 0\n\n0 5 2\n5 0 3\n2 3 0\n")
    Path("r.json").write_text(run("solve", "p.dat", "--json", "--certificate", "c.npz")[1])
    assert run("report", "r.json", "p.dat")[0] == 0
    page = Path("report.html").read_text()
    assert "Not checked here" in page
    assert '<div class="belief open">' in page
    assert run("report", "r.json", "p.dat", "-c", "c.npz")[0] == 0
    assert '<div class="belief yes">' in Path("report.html").read_text()


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        ({}, ("r.json", "a.npz", "b.npy", "-d", "cka"), "r.json: result says that it costs"),
        ({"cost": 1.0}, ("r.json", "a.npz", "b.npy"), "r.json: result says that it costs 1"),
        ({"lower_bound": 1e9}, ("r.json", "a.npz", "b.npy"), "r.json: not a readable JSON file (its lower_bound="),
        ({"permutation": [0.5]}, ("r.json", "a.npz", "b.npy"), "its permutation is no list of integers"),
        ({"permutation": [0, 1]}, ("r.json", "a.npz", "b.npy"), "kernels[0] has 9 rows"),
        ({"permutation": [0] * 9}, ("r.json", "a.npz", "b.npy"), "must hold 9 different indices below 9"),
        ({"permutation": [9] * 9}, ("r.json", "a.npz", "b.npy"), "must hold 9 different indices below 9"),
        ({"permutation": [-5] * 9}, ("r.json", "a.npz", "b.npy"), "must hold 9 different indices below 9"),
        ({"lower_bound": float("nan")}, ("r.json", "a.npz", "b.npy"), "its lower_bound=nan is not below"),
        ({"status": "sure"}, ("r.json", "a.npz", "b.npy"), "its status is 'sure'"),
        ({}, ("b.npy", "a.npz", "b.npy"), "b.npy: not a readable JSON file"),
        ({}, ("none.json", "a.npz", "b.npy"), "none.json: no such file"),
        ({}, ("r.json", "a.npz", "b.npy", "b.npy"), "3 files given"),
        ({}, ("r.json", "a.npz", "b.npy", "--out", "r.json"), "this would overwrite an input"),
        ({}, ("r.json", "a.npz", "b.npy", "--out", "no/r.html"), "expected a file in a folder that exists"),
    ],
)
def test_report_command_refuses(run, change: dict, arguments: tuple[str, ...], message: str) -> None:
    values = json.loads(run("match", "a.npz", "b.npy", "--json", "--solver", "two-opt")[1])
    Path("r.json").write_text(json.dumps({**values, **change}))
    code, out, err = run("report", *arguments)
    assert code == 2
    assert out == ""
    assert message in err
    assert not Path("report.html").exists()
