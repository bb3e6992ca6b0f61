"""The store: rows survive, are never replaced, and half-written lines do no harm."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict, replace

import pytest

from blindmatch.experiments.data import Source
from blindmatch.experiments.protocol import Record, Trial
from blindmatch.experiments.store import Journal, Store, read_journal


def record(run: Trial, result=None, error=None) -> Record:
    return Record(run.key, run.experiment, run.version, dict(run.parameters), {}, result, error, 1.0, 0.5, "w", "now")


def note(folder, *records: Record) -> None:
    with Journal(folder) as journal:
        for item in records:
            journal.add(item)


def runs(count: int) -> list[Trial]:
    return [Trial("ablation", {"seed": seed}) for seed in range(count)]


def test_the_key_depends_on_parameters_inputs_version_and_revision_but_not_on_paths():
    run = Trial("ablation", {"seed": 0}, {"vision": Source("vision", "toy", "m", "a.npz", "f00")})
    assert replace(run, files={"vision": replace(run.files["vision"], path="elsewhere/a.npz")}).key == run.key
    others = [
        replace(run, parameters={"seed": 1}),
        replace(run, files={"vision": replace(run.files["vision"], digest="f01")}),
        replace(run, version="0.0"),
        replace(run, revision=2),
        replace(run, experiment="shuffling"),
    ]
    assert len({run.key, *(other.key for other in others)}) == 6


def test_rows_come_back_as_they_were(tmp_path):
    first, second = runs(2)
    with Store(tmp_path) as store:
        store.add([record(first, {"cost": 1.25, "list": [1, 2]})])
    with Store(tmp_path) as store:
        found = store.get([first, second])
    assert list(found) == [first.key]
    assert found[first.key].flat == {"seed": 0, "cost": 1.25, "list": [1, 2], "run_seconds": 1.0, "cpu_seconds": 0.5}


def test_a_result_is_never_replaced_and_a_failure_is(tmp_path):
    (run,) = runs(1)
    with Store(tmp_path) as store:
        store.add([record(run, error="ValueError: no")])
        store.add([record(run, {"cost": 1.0})])
        store.add([record(run, {"cost": 2.0}), record(run, error="late")])
        assert store.get([run])[run.key].result == {"cost": 1.0}


def test_journals_are_taken_in_once_and_a_torn_line_is_left_out(tmp_path):
    first, second, third = runs(3)
    with Store(tmp_path) as store:
        folder = store.journals("ablation")
        folder.mkdir(parents=True)
        note(folder, record(first, {"cost": 1.0}))
        (path,) = folder.iterdir()
        line = json.dumps(asdict(record(second, {"cost": 2.0})))
        with path.open("a") as file:
            file.write("not json\n" + line[:40])
        assert [taken.key for taken in store.take_in("ablation")] == [first.key]
        with path.open("a") as file:
            file.write(line[40:] + "\n")
        assert [taken.key for taken in store.take_in("ablation")] == [second.key]
        assert store.take_in("ablation") == []
        note(folder, record(third, {"cost": 3.0}))
        store.clear_journals("ablation")
        assert set(store.get([first, second, third])) == {first.key, second.key, third.key}
        assert not list(folder.iterdir())


def test_a_line_is_there_at_once_and_a_renamed_journal_is_left_after_a_second(tmp_path, monkeypatch):
    first, second, third = (record(run, {}) for run in runs(3))
    now = [100.0]
    monkeypatch.setattr("blindmatch.experiments.store.time.monotonic", lambda: now[0])
    with Journal(tmp_path) as journal:
        journal.add(first)
        (path,) = tmp_path.iterdir()
        assert read_journal(path)[0] == [first]  # whoever kills the process now loses nothing
        moved = path.rename(path.with_suffix(".taken"))
        now[0] += 0.5
        journal.add(second)
        now[0] += 0.6
        journal.add(third)
    assert read_journal(moved)[0] == [first, second]
    assert read_journal(path)[0] == [third]


def test_a_journal_that_is_out_of_reach_is_no_error(tmp_path):
    note(tmp_path / "nowhere", record(runs(1)[0], {}))
    assert not list(tmp_path.iterdir())


def test_two_sweeps_of_one_experiment_do_not_mix(tmp_path):
    with Store(tmp_path) as one, Store(tmp_path) as two, one.sweeping("ablation"):
        with pytest.raises(ValueError, match="another sweep of 'ablation'"), two.sweeping("ablation"):
            pass
        with two.sweeping("shuffling"):
            pass


def test_a_killed_sweep_leaves_no_lock_even_if_a_forked_worker_lives_on(tmp_path):
    code = (
        "import os, sys, time\n"
        "from blindmatch.experiments.store import Store\n"
        "with Store(sys.argv[1]).sweeping('ablation'):\n"
        "    if os.fork() == 0:\n"
        "        time.sleep(60)\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert process.stdout.readline() == b"ready\n"
        with Store(tmp_path) as store:
            with pytest.raises(ValueError, match="another sweep"), store.sweeping("ablation"):
                pass
            os.kill(process.pid, signal.SIGKILL)  # the sweep alone, not its fork
            process.wait()
            with store.sweeping("ablation"):
                pass
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "results.sqlite").write_text("something else entirely, and long enough to be looked at")
    with pytest.raises(ValueError, match=r"results\.sqlite: not a database"):
        Store(tmp_path)


def test_nothing_is_pickled(tmp_path):
    (run,) = runs(1)
    with Store(tmp_path) as store:
        store.add([record(run, {"cost": 1.0})])
        store.journals("ablation").mkdir(parents=True)
        note(store.journals("ablation"), record(run, {"cost": 1.0}))
        (path,) = store.journals("ablation").iterdir()
    assert read_journal(path)[0][0].result == {"cost": 1.0}
    json.loads(path.read_text())
