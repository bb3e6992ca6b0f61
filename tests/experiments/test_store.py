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
from blindmatch.experiments.store import Journal, Store, read_journal, run_chunk
from blindmatch.experiments.sweeps import plan


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
    Store(tmp_path).add([record(first, {"cost": 1.25, "list": [1, 2]})])
    found = Store(tmp_path).get([first, second])
    assert list(found) == [first.key]
    assert found[first.key].flat == {"seed": 0, "cost": 1.25, "list": [1, 2], "run_seconds": 1.0, "cpu_seconds": 0.5}


def test_a_result_is_never_replaced_and_a_failure_is(tmp_path):
    (run,) = runs(1)
    store = Store(tmp_path)
    store.add([record(run, error="ValueError: no")])
    store.add([record(run, error="ValueError: again")])
    assert store.get([run])[run.key].error == "ValueError: again"
    store.add([record(run, {"cost": 1.0})])
    store.add([record(run, {"cost": 2.0}), record(run, error="late")])
    for one in (store, Store(tmp_path)):
        assert one.get([run])[run.key].result == {"cost": 1.0}


def test_journals_are_read_once_and_a_torn_line_is_left_out(tmp_path):
    first, second, third = runs(3)
    store = Store(tmp_path)
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
    assert set(store.get([first, second, third])) == {first.key, second.key, third.key}


def test_a_line_is_there_at_once(tmp_path):
    first = record(runs(1)[0], {})
    with Journal(tmp_path) as journal:
        journal.add(first)
        (path,) = tmp_path.iterdir()
        assert read_journal(path)[0] == [first]  # whoever kills the process now loses nothing


def test_a_journal_that_is_out_of_reach_is_no_error_for_a_worker(tmp_path):
    (run,) = plan("ablation", {"sizes": (8,), "seeds": 1, "time_limits": (60.0,), "variants": ("+ auction",)}).runs
    (found,) = run_chunk([run], str(tmp_path / "nowhere"))
    assert found.error is None
    assert not list(tmp_path.iterdir())


def test_two_sweeps_of_one_experiment_do_not_mix(tmp_path):
    one, two = Store(tmp_path), Store(tmp_path)
    with one.sweeping("ablation"):
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
        store = Store(tmp_path)
        with pytest.raises(ValueError, match="another sweep"), store.sweeping("ablation"):
            pass
        os.kill(process.pid, signal.SIGKILL)  # the sweep alone, not its fork
        process.wait()
        with store.sweeping("ablation"):
            pass
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()


def test_nothing_is_pickled(tmp_path):
    (run,) = runs(1)
    store = Store(tmp_path)
    store.add([record(run, {"cost": 1.0})])
    (path,) = store.journals("ablation").iterdir()
    assert read_journal(path)[0][0].result == {"cost": 1.0}
    json.loads(path.read_text())
