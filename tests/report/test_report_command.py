"""The command `report`."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report.pages import sets
from report.parsing import Page

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
    run("match", "a.npz", "b.npy", "--save", "m.npz", "--report", "first.html")
    assert run("report", "m.npz", "--out", "r.html") == (0, "Report: r.html\n", "")
    first, second = (Page(Path(name).read_text()) for name in ("first.html", "r.html"))
    assert json.loads(first.data) == json.loads(second.data)  # the same match, drawn from the same data
    assert "blindmatch match a.npz b.npy --save" in second.text
    assert "9 pairs matched, proved optimal" in second.text
    code, out, _ = run("report", "m.npz", "--out", "r.html", "--title", "another", "--truth", "rows", "--json")
    assert (code, json.loads(out)["report"]) == (0, "r.html")
    assert "another" in Path("r.html").read_text()
    assert "pairs are right" in Path("r.html").read_text()


def test_report_command_of_a_problem(run) -> None:
    Path("p.dat").write_text("4\n\n0 1 2 3\n1 0 1 2\n2 1 0 1\n3 2 1 0\n\n0 5 2 4\n5 0 3 0\n2 3 0 1\n4 0 1 0\n")
    run("solve", "p.dat", "--save", "s.npz")
    assert run("report", "s.npz")[0] == 0
    text = Path("report.html").read_text()
    assert "Is it the best?" in Page(text).text
    assert '<div class="belief yes">' in text
    code, _, err = run("report", "s.npz", "--truth", "rows")
    assert (code, "a problem has only indices" in err) == (2, True)


def test_a_match_saved_without_a_proof_proves_nothing(run) -> None:
    run("match", "a.npz", "b.npy", "--solver", "two-opt", "--save", "m.npz")
    edit("m.npz", status="optimal", lower_bound=1.0)
    assert run("report", "m.npz")[0] == 0
    page = Page(Path("report.html").read_text()).text
    assert "9 pairs matched, with no proof of how good the match is." in page
    assert "proved optimal" not in page
    assert "optimal" not in run("assess", "m.npz", "--draws", "1", "--assess-time", "1")[1]
    code, _, err = run("verify", "m.npz")
    assert (code, "there is no certificate in it" in err) == (2, True)


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        ({"permutation": np.full(9, 0.5)}, ("m.npz",), "permutation has shape (9,); expected 9 integers"),
        ({"permutation": np.arange(2)}, ("m.npz",), "permutation has shape (2,); expected 9 integers"),
        ({"permutation": np.zeros(9, int)}, ("m.npz",), "different targets below 9"),
        ({"permutation": np.full(9, 9)}, ("m.npz",), "different targets below 9"),
        ({"permutation": np.full(9, -5)}, ("m.npz",), "different targets below 9"),
        ({"whole": np.roll(np.arange(9), 1)}, ("m.npz",), "permutation has pairs that are not in whole"),
        ({"status": "sure"}, ("m.npz",), "status='sure'; expected one of"),
        ({"seconds": -1.0}, ("m.npz",), "seconds=-1.0"),
        ({"cost": float("nan")}, ("m.npz",), "cost=nan"),
        ({"words": np.array("{")}, ("m.npz",), "not a readable saved match file"),
        ({"source": np.zeros((3, 3))}, ("m.npz",), "m.npz"),
        ({"known_pairs": [[0, 99]]}, ("m.npz",), "known_pairs holds (0, 99)"),
        ({}, ("b.npy",), "b.npy: not a readable .npz file"),
        ({}, ("a.npz",), "a.npz: not a saved match"),
        ({}, ("none.npz",), "none.npz: no such file"),
        ({}, ("m.npz", "a.npz"), "unexpected extra argument"),
        ({}, ("m.npz", "--out", "m.npz"), "this would overwrite an input"),
        ({}, ("m.npz", "--out", "no/r.html"), "expected a file in a folder that exists"),
    ],
)
def test_report_command_refuses(run, change: dict, arguments: tuple[str, ...], message: str) -> None:
    run("match", "a.npz", "b.npy", "--solver", "two-opt", "--save", "m.npz")
    edit("m.npz", **change)
    code, out, err = run("report", *arguments)
    assert code == 2
    assert out == ""
    assert message in err
    assert not Path("report.html").exists()


def edit(path: str, **changes: Any) -> None:
    """Change arrays or words of a saved match."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    words = json.loads(str(arrays["words"]))
    for name, value in changes.items():
        if isinstance(value, np.ndarray):
            arrays[name] = value
        else:
            words[name] = value
            arrays["words"] = np.array(json.dumps(words))
    np.savez(path, **arrays)
