"""The log of a run."""

import io
import time

import numpy as np
import pytest
from strategies import random_problem

import blindmatch as bm
from blindmatch.solvers.progress import Progress
from blindmatch.solving import log
from blindmatch.solving.log import RunLog


def test_a_log_has_a_head_lines_and_an_end():
    stream, problem = io.StringIO(), random_problem(2, 9, integer=True)
    result = bm.solve(problem, rng=0, threads=1, log=stream, pool_size=2, gap_limit=0.0)
    lines = stream.getvalue().splitlines()
    assert "QAP(n=9" in lines[0]
    assert "integers" in lines[0]
    assert lines[2] == "solver auto, 1 thread, gap_limit=0"
    assert lines[3].split() == ["seconds", "phase", "nodes", "open", "incumbent", "bound", "gap"]
    assert "*" in lines[4]
    assert lines[-3].startswith(f"optimal: cost {result.cost:.0f}, bound {result.cost:.0f}")
    assert lines[-2].startswith("1 node, proof of")
    assert lines[-1].startswith("Pool(2 permutations")
    assert bm.solve(problem, rng=0, threads=1).cost == result.cost


def test_the_head_of_a_log_is_short_for_many_factor_pairs():
    stream = io.StringIO()
    problem = bm.QAP.from_factors([(np.eye(3)[::-1], np.eye(3)[[1, 0, 2]])] * 40)
    bm.solve(problem, rng=0, threads=1, log=stream)
    line = stream.getvalue().splitlines()[1]
    assert line.endswith("of the first matrices")
    assert line.count("%") == 6


def test_the_log_goes_to_stdout(capsys):
    bm.solve(random_problem(0, 4), rng=0, log=True)
    assert "optimal" in capsys.readouterr().out
    with pytest.raises(ValueError, match=r"log='run.log'; expected True, False or an open text file"):
        bm.solve(random_problem(0, 4), log="run.log")


def test_a_line_comes_now_and_then_even_if_nothing_happens(monkeypatch):
    monkeypatch.setattr(log, "_PERIOD", 0.05)
    stream = io.StringIO()
    run = RunLog(stream)
    with run.ticking():
        run.hear(Progress(0.0, 0, 90.0, 21273196.0, "tree", nodes=3, open=2))
        deadline = time.monotonic() + 60
        while stream.getvalue().count("tree") < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
    lines = stream.getvalue().splitlines()
    assert len(lines) >= 3
    assert "* " in lines[0]
    assert "21273196" in lines[0]
    assert "*" not in lines[1]


def test_a_closed_stream_ends_the_log_not_the_run():
    stream = io.StringIO()
    stream.close()
    assert bm.solve(random_problem(0, 5), rng=0, log=stream).status == "optimal"


def test_the_caller_can_still_stop_a_logged_run():
    stream = io.StringIO()
    result = bm.solve(random_problem(0, 12), rng=0, log=stream, callback=lambda now: True)
    assert result.status == "interrupted"
    assert "interrupted: cost" in stream.getvalue()


def test_a_match_has_a_log_too():
    points, text = np.random.default_rng(0).normal(size=(9, 3)), io.StringIO()
    result = bm.match(points, points[::-1], log=text, rng=0)
    assert result.status == "optimal"
    assert "QAP(n=9" in text.getvalue().splitlines()[0]
