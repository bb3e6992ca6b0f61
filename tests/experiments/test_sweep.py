"""Sweeps: what is missing is computed, what ended is kept, whatever is killed."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from experiments.in_process import SMALL, InProcess

from blindmatch.experiments import ablation
from blindmatch.experiments.executors import Local
from blindmatch.experiments.protocol import Trial
from blindmatch.experiments.store import Store
from blindmatch.experiments.sweeps import compute, missing, plan, read_records, report, select, status

COMMAND = (sys.executable, "-c", "from blindmatch.cli import main; main()", "experiment", "ablation")
OPTIONS = ("--sizes", "14", "--seeds", "40", "--time-limit", "60", "--solver", "+ Jonker-Volgenant", "--chunk", "4")


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory) -> dict[str, dict]:
    """Results of a sweep that nothing disturbed."""
    return outcomes(run_all(tmp_path_factory.mktemp("unbroken")))


def run_all(out: Path):
    what = plan("ablation", SMALL)
    compute(what, out, engine=InProcess())
    return read_records(what, out)


def outcomes(records) -> dict[str, dict]:
    times = ("seconds", "solver_cpu_seconds")
    return {k: {n: v for n, v in r.result.items() if n not in times} for k, r in records.items() if r.result}


def wait_for(condition, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)


def ended(out: Path) -> int:
    """Runs in journals."""
    return sum(file.read_bytes().count(b"\n") for file in out.glob("journals/ablation/*.jsonl"))


def test_a_second_sweep_computes_nothing(tmp_path, monkeypatch):
    what = plan("ablation", {**SMALL, "seeds": 3})
    compute(what, tmp_path, engine=InProcess())
    monkeypatch.setattr(ablation.Ablation, "compute", lambda self, run: pytest.fail("computed again"))
    compute(what, tmp_path, engine=InProcess())
    more = plan("ablation", {**SMALL, "seeds": 4})
    assert [run.parameters["seed"] for run in missing(more.runs, Store(tmp_path))] == [3]


def test_a_run_that_fails_is_told_and_tried_again(tmp_path, monkeypatch):
    what = plan("ablation", {**SMALL, "seeds": 3})
    real = ablation.Ablation.compute

    def fails(self, run: Trial):
        if run.parameters["seed"] == 1:
            raise ValueError("no luck")
        return real(self, run)

    monkeypatch.setattr(ablation.Ablation, "compute", fails)
    compute(what, tmp_path, engine=InProcess())
    told = status(what, tmp_path)
    assert (told.done, told.failed, told.total) == (2, 1, 3)
    assert dict(told.errors) == {"ValueError: no luck": 1}
    monkeypatch.undo()
    compute(what, tmp_path, engine=InProcess())
    assert status(what, tmp_path).done == 3


@pytest.mark.slow
def test_killed_twice_and_run_again_gives_the_results_of_an_unbroken_sweep(tmp_path, unbroken):
    kept = 0
    for _ in range(2):
        process = subprocess.Popen([*COMMAND, *OPTIONS, "--out", tmp_path], stdout=subprocess.PIPE)
        wait_for(lambda before=kept: ended(tmp_path) > before + 1)
        process.kill()
        process.communicate()
        what = plan("ablation", SMALL)
        now = len(read_records(what, tmp_path))
        assert kept < now < 40, "the sweep was over before it could be killed"
        kept = now
    before = read_records(what, tmp_path)
    done = subprocess.run([*COMMAND, *OPTIONS, "--out", tmp_path], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    after = read_records(what, tmp_path)
    assert outcomes(after) == unbroken
    assert all(after[key] == record for key, record in before.items()), "something was computed twice"
    assert "40 of 40 runs done" in done.stdout


def test_workers_end_with_a_killed_sweep(tmp_path):
    process = subprocess.Popen([*COMMAND, *OPTIONS, "--out", tmp_path], stdout=subprocess.PIPE)
    wait_for(lambda: ended(tmp_path) > 0)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert children
    process.kill()
    process.communicate()
    wait_for(lambda: not any(_running(child) for child in children), 20)


def _running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_control_c_ends_with_code_130_and_keeps_what_ended(tmp_path):
    process = subprocess.Popen(
        [*COMMAND, *OPTIONS, "--out", tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_for(lambda: ended(tmp_path) > 0)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the sweep and its workers
    _, err = process.communicate(timeout=600)
    assert process.returncode == 130, err
    assert "resumes from there" in err
    assert "Traceback" not in err
    what = plan("ablation", SMALL)
    assert 0 < status(what, tmp_path).done < 40
    assert (tmp_path / "ablation" / "report.html").exists()


@pytest.mark.slow
def test_results_do_not_depend_on_the_workers(tmp_path):
    """To the last digit, also where several matches tie, as they do with Mutual k-NN."""
    what = plan("small-scale", {"seeds": 3, "time_limit": 60.0}, quick=True, out=tmp_path)
    found = []
    for workers in (1, 2, 3):
        compute(what, tmp_path / str(workers), engine=Local(workers), chunk=1)
        found.append(outcomes(read_records(what, tmp_path / str(workers))))
    assert len(found[0]) == len(what.runs) == 18
    assert found[1] == found[0]
    assert found[2] == found[0]


@pytest.mark.slow
def test_a_worker_that_dies_loses_nothing(tmp_path, unbroken):
    what = plan("ablation", SMALL)

    def kill_one() -> None:
        wait_for(lambda: ended(tmp_path) > 0)
        os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    compute(what, tmp_path, engine=Local(2), chunk=4)
    killer.join()
    assert outcomes(read_records(what, tmp_path)) == unbroken


def test_workers_that_keep_dying_end_the_sweep_with_a_word(tmp_path):
    class Dying(InProcess):
        @contextmanager
        def open(self, folder):
            yield self

        def submit(self, function, *arguments):
            raise BrokenExecutor("killed")

    with pytest.raises(ChildProcessError, match=r"workers were lost 3 times \(BrokenExecutor: killed\)"):
        compute(plan("ablation", {**SMALL, "seeds": 2}), tmp_path, engine=Dying())


def test_progress_counts_to_the_end_and_guesses_the_time_left(tmp_path):
    what = plan("ablation", {**SMALL, "seeds": 30})
    moments = []
    compute(what, tmp_path, engine=InProcess(), chunk=1, watch=moments.append)
    assert moments[0].done == 0
    assert moments[0].seconds_left is None
    assert all(moment.total == 30 for moment in moments)
    assert [moment.done for moment in moments] == sorted(moment.done for moment in moments)


def test_only_selects_by_pattern_and_refuses_unknown_names():
    runs = plan("ablation", {"sizes": (8, 18), "seeds": 2, "time_limits": (1.0,)}).runs
    assert {run.parameters["variant"] for run in select(runs, ["variant=*Jonker*", "size=8"])} == {"+ Jonker-Volgenant"}
    assert len(select(runs, ["seed=0", "seed=1"])) == len(runs)
    with pytest.raises(ValueError, match="expected NAME=PATTERN, where NAME is one of dimension, seed"):
        select(runs, ["sise=8"])


def test_tables_of_a_half_done_sweep_say_how_much_there_is(tmp_path):
    whole = plan("ablation", {**SMALL, "seeds": 3})
    compute(plan("ablation", {**SMALL, "seeds": 3}, only=["seed=0"]), tmp_path, engine=InProcess())
    (shown,), page = report(whole, tmp_path)
    assert shown.rows[0][shown.columns.index("seeds")] == 1
    assert "1 of 3" in page.read_text()
