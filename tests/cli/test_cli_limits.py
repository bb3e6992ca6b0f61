"""The command line: time limits, progress in lines, starts and solutions."""

import io
import json
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import run
from strategies import rng_of

import blindmatch as bm
from blindmatch.cli.progress import Listener, ProgressLine, busy
from blindmatch.io.qaplib import read_sln
from blindmatch.solvers.progress import Progress
from blindmatch.solving.limits import note_limit
from blindmatch.trust.assessment import Schedule

NUG5 = "5  0 1 1 2 3 1 0 2 1 2 1 2 0 1 2 2 1 1 0 1 3 2 2 1 0  0 5 2 4 1 5 0 3 0 2 2 3 0 0 0 4 0 0 0 5 1 2 0 5 0"


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("nug5.dat").write_text(NUG5)
    X = rng_of(0).standard_normal((6, 3))
    np.save("a.npy", X)
    np.save("b.npy", X[::-1])


def test_a_match_has_a_limit_of_a_minute_unless_somebody_says_otherwise():
    assert json.loads(run("match", "a.npy", "b.npy", "--json").stdout)["settings"]["time limit"] == "60 s"
    none = json.loads(run("match", "a.npy", "b.npy", "--json", "--time-limit", "none").stdout)
    assert none["settings"]["time limit"] == "none"
    assert json.loads(run("solve", "nug5.dat", "-t", 5, "--json").stdout)["settings"]["time limit"] == "5 s"


@pytest.mark.parametrize("command", [("match", "a.npy", "b.npy"), ("solve", "nug5.dat")])
@pytest.mark.parametrize("limit", ["0", "-3", "nan", "soon", ""])
def test_a_bad_limit_is_refused_by_the_name_of_the_option(command, limit):
    done = run(*command, "--time-limit", limit)
    assert done.exit_code == 2
    assert "--time-limit" in done.stderr
    assert "seconds above 0, or none" in done.stderr


def test_lines_come_now_and_then():
    stream = io.StringIO()
    listener = Listener(stream, 10.0, "blindmatch: ")
    for seconds in (0.5, 9.0, 11.0, 12.0, 20.9, 21.5):
        listener.hear(seconds, "busy")
    assert stream.getvalue() == "blindmatch: 11 s: busy\nblindmatch: 22 s: busy\n"


def test_a_step_without_parts_is_told_for_as_long_as_it_runs(monkeypatch):
    class Waiting(io.StringIO):
        heard = threading.Event()

        def write(self, text):
            self.heard.set()
            return super().write(text)

    monkeypatch.delenv("BLINDMATCH_PROGRESS")
    monkeypatch.setattr("blindmatch.cli.progress.OFTEN", 1e-3)
    monkeypatch.setattr("blindmatch.cli.progress.QUIET", 0.0)
    monkeypatch.setattr(sys, "stderr", Waiting())
    before = threading.active_count()
    with busy("checking the proof"):
        assert sys.stderr.heard.wait(300)
    assert sys.stderr.getvalue().startswith("blindmatch: 0 s: checking the proof\n")
    assert threading.active_count() == before


def test_a_line_says_which_bound_it_is():
    stream = io.StringIO()
    ProgressLine(None, [Listener(stream, 0.0)]).moment(Progress(1.0, 0, 90.0, 100.0, bound="projection"))
    assert stream.getvalue() == "0 s: bound 90 (projection)  cost 100  gap 10 %\n"


def test_lines_tell_the_time_that_is_left_of_a_step(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("blindmatch.cli.progress.time.monotonic", lambda: now[0])
    stream = io.StringIO()
    lines = ProgressLine(None, [Listener(stream, 0.0)])
    lines.step("clustering", 0, 4)
    now[0] += 5
    lines.step("clustering", 1, 4)
    lines.share("unrelated spaces", 0.0)
    now[0] += 2
    lines.share("unrelated spaces", 0.5)
    assert stream.getvalue().splitlines() == [
        "0 s: clustering, 1 of 4",
        "5 s: clustering, 2 of 4, about 0:15 left of this step",
        "5 s: unrelated spaces, 0 %",
        "7 s: unrelated spaces, 50 %, about 0:02 left of this step",
    ]


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("classify", "The clustering comes before it and takes its own time."),
        ("subsets", "Return the best subsets found within this time; no limit by default."),
        ("demo", "(auto: 60); 'none' for no limit. [default: auto]"),
    ],
)
def test_the_help_of_a_time_limit_is_true(command, text):
    shown = run(command, "--help").stdout.partition("--time-limit  ")[2].replace("│", " ")
    assert text in " ".join(shown.split())


def test_a_closed_stream_ends_the_lines_and_not_the_run():
    stream = io.StringIO()
    stream.close()
    listener = Listener(stream, 0.0)
    listener.hear(1.0, "busy")
    listener.hear(2.0, "busy")


def test_a_log_names_the_run():
    assert run("solve", "nug5.dat", "--log", "run.log").exit_code == 0
    assert len(Path("run.log").read_text().splitlines()) >= 1
    assert run("solve", "nug5.dat", "--log", "nug5.dat").exit_code == 2


def test_solutions_are_read_and_written():
    done = run("solve", "nug5.dat", "--solution", "s.sln")
    assert "Optimal assignment of 5 facilities" in done.stdout
    assert "location" in done.stdout
    assert "pairs matched" not in done.stdout
    cost, permutation = read_sln("s.sln")
    assert bm.QAP.from_qaplib("nug5.dat").objective(permutation) == cost
    again = json.loads(run("solve", "nug5.dat", "--start", "s.sln", "-s", "random", "--json").stdout)
    assert again["cost"] == cost
    inverse = np.argsort(permutation) + 1
    Path("i.sln").write_text(f"5 {cost}\n{' '.join(map(str, inverse))}\n")
    again = json.loads(run("solve", "nug5.dat", "--start", "i.sln", "-s", "random", "--json").stdout)
    assert again["cost"] == cost


def test_the_match_of_an_earlier_run_is_a_start():
    Path("m.json").write_text(run("match", "a.npy", "b.npy", "--json").stdout)
    again = json.loads(run("match", "a.npy", "b.npy", "--start", "m.json", "-s", "random", "--json").stdout)
    assert again["permutation"] == [5, 4, 3, 2, 1, 0]
    wrong = run("match", "a.npy", "b.npy", "--start", "a.npy")
    assert wrong.exit_code == 2
    assert "--start a.npy" in wrong.stderr


@pytest.mark.slow
def test_the_cheap_bound_comes_first_and_has_a_name():
    rng = rng_of(4)
    A, B = (np.triu(rng.integers(0, 9, (14, 14)), 1) for _ in range(2))
    seen = []
    result = bm.solve(bm.QAP(A + A.T, B + B.T), rng=0, callback=seen.append)
    first = next(now for now in seen if now.lower_bound is not None)
    assert first.bound == "Gilmore-Lawler"  # here it is above the projection bound
    assert first.lower_bound <= result.lower_bound
    assert result.bound_name in ("branch and bound", "level-1 RLT")
    assert result.to_dict()["bound_name"] == result.bound_name
    assert bm.solve(bm.QAP(A + A.T, B + B.T), "tabu", rng=0).bound_name == ""


def test_starts_of_a_match():
    X = rng_of(1).standard_normal((7, 3))
    order = rng_of(2).permutation(7)
    truth = np.argsort(order)
    assert bm.match(X, X[order], start=truth, solver="random", rng=0).permutation.tolist() == truth.tolist()
    for bad in ([0, 1], [0, 0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5, 9], "words"):
        with pytest.raises(ValueError, match="start="):
            bm.match(X, X[order], start=bad)


def test_the_default_limit_is_told():
    result = bm.match([[0.0], [1.0], [3.0]], [[0.0], [1.0], [3.0]], rng=0)
    assert note_limit(result, "auto") is result
    cut = note_limit(replace(result, status="time_limit"), "auto")
    assert "default time limit of 60 s" in cut.message
    assert note_limit(replace(result, status="time_limit"), 60.0).message == result.message
    with pytest.raises(ValueError, match="time_limit='soon'"):
        bm.match([[0.0], [1.0]], [[0.0], [1.0]], time_limit="soon")


def test_an_assessment_takes_as_long_again_as_the_match(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def assess(result: object, plan: object, schedule: Schedule) -> None:
        asked.append(schedule._limit)
        raise ValueError("enough")

    monkeypatch.setattr("blindmatch.cli.answers.assess_result", assess)
    for words in (["-t", "6"], [], ["-t", "none"]):
        run("match", "a.npy", "b.npy", "--assess", *words)
    assert asked == [6.0, 60.0, 60.0]


def test_a_log_without_a_file_is_printed():
    done = run("solve", "nug5.dat", "--log", "--gap-limit", "0.5", "--pool-size", "3", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert len(found["pool"]["costs"]) == 3
    assert "incumbent" in done.stderr
    assert run("solve", "nug5.dat", "--log").exit_code == 0


def test_an_assignment_is_one_line_or_rows():
    assert "Locations of the facilities:" in run("solve", "nug5.dat").stdout
    rows = run("solve", "nug5.dat", "--rows", "--maximize").stdout
    assert "facility" in rows
    assert "Locations" not in rows


@pytest.mark.parametrize(
    ("option", "value"), [("--gap-limit", "nan"), ("--node-limit", "0"), ("--pool-size", "0"), ("--work-limit", "-1")]
)
def test_impossible_limits_are_refused_in_one_line(option, value):
    done = run("solve", "nug5.dat", option, value)
    assert done.exit_code == 2
    assert option in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
