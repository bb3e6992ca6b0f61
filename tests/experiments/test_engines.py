"""Engines: a real Dask cluster that loses a worker, submitit's own executor, and what is refused."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from experiments.in_process import SMALL, InProcess

import blindmatch as bm
from blindmatch.encoders import ImageItem, ImageSet, embed_images
from blindmatch.experiments.executors import Dask, Local, Slurm, forkable, make_engine
from blindmatch.experiments.sweeps import compute, plan, read_records


def costs(what, out) -> dict[str, float]:
    return {key: record.result["cost"] for key, record in read_records(what, out).items()}


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> dict[str, float]:
    out = tmp_path_factory.mktemp("expected")
    what = plan("ablation", SMALL)
    compute(what, out, engine=InProcess())
    return costs(what, out)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_dask_cluster_that_loses_a_worker_loses_no_run(tmp_path, expected):
    distributed = pytest.importorskip("distributed")
    what = plan("ablation", SMALL)
    with distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as cluster:
        engine = make_engine("dask", address=cluster.scheduler_address)
        assert engine == Dask(cluster.scheduler_address)
        assert engine.workers == 3
        killed = []

        def kill_one() -> None:
            while not any((tmp_path / "journals" / "ablation").glob("*.jsonl")):
                time.sleep(0.02)
            killed.append(cluster.workers[0].pid)
            os.kill(killed[0], signal.SIGKILL)

        killer = threading.Thread(target=kill_one, daemon=True)
        killer.start()
        compute(what, tmp_path, engine=engine, chunk=2)
        killer.join(5)
    assert killed
    assert costs(what, tmp_path) == expected
    workers = {record.worker for record in read_records(what, tmp_path).values()}
    assert len(workers) > 1


@pytest.mark.slow
def test_slurm_arrays_with_submitits_local_executor(tmp_path):
    pytest.importorskip("submitit")
    what = plan("ablation", {**SMALL, "seeds": 6})
    engine = make_engine("slurm", workers=2, options={"cluster": "local", "timeout_min": 5})
    assert engine == Slurm("local", 2, {"timeout_min": 5})
    compute(what, tmp_path, engine=engine, chunk=2)
    found = costs(what, tmp_path)
    compute(what, tmp_path / "again", engine=InProcess())
    assert found == costs(what, tmp_path / "again")
    assert len(list((tmp_path / "journals" / "ablation").glob("*.jsonl"))) > 1  # each worker has one


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_dask_workers_with_a_resource_embed_images(tmp_path):
    distributed = pytest.importorskip("distributed")
    pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 255, (20, 8, 8, 3), dtype=np.uint8)
    images = ImageSet("noise", tuple(ImageItem(str(at), at % 2, one) for at, one in enumerate(pixels)), ("a", "b"))
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, resources={"GPU": 1}, dashboard_address=None, silence_logs=50
    ) as cluster:
        address = cluster.scheduler_address
        with make_engine("dask", address=address, options={"GPU": 1}).open(tmp_path) as pool:
            found = embed_images(images, "pixels", tmp_path / "x.npz", executor=pool)
        too_many = make_engine("dask", address=address, options={"GPU": 2})
        with pytest.raises(ValueError, match="no Dask worker has GPU=2"), too_many.open(tmp_path):
            pass
    assert np.array_equal(found.values, embed_images(images, "pixels").values)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="did you mean 'slurm'"):
        make_engine("slrum")
    with pytest.raises(ValueError, match="GPU='one' with engine='dask'; expected a number"):
        make_engine("dask", address="tcp://localhost:1", options={"GPU": "one"})
    with pytest.raises(ValueError, match="engine='dask' needs an address"):
        make_engine("dask")
    with pytest.raises(ValueError, match="only 'dask' takes an address"):
        make_engine("local", address="tcp://localhost:1")
    with pytest.raises(ValueError, match="only 'slurm' and 'dask' take them"):
        make_engine("local", options={"slurm_partition": "x"})
    with pytest.raises(ValueError, match="workers=0"):
        make_engine("local", workers=0)
    assert Local().workers >= 1


def test_a_process_with_threads_of_its_own_is_not_forked():
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert not forkable()
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("", True),
        ("import numpy as np; np.ones((500, 500)) @ np.ones((500, 500))", True),  # OpenBLAS stops its threads
        pytest.param(
            "from sklearn.cluster import KMeans; KMeans(3).fit([[0.0], [1.0], [2.0], [3.0]])",
            False,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_workers_are_forked_unless_openmp_is_loaded(tmp_path, before, expected):
    code = (
        f"{before}\n"
        "import sys\n"
        "from blindmatch.experiments.executors import Local, forkable\n"
        "from blindmatch.experiments.sweeps import compute, plan, status\n"
        "if __name__ == '__main__':\n"
        "    settings = {'sizes': (14,), 'seeds': 4, 'time_limits': (60.0,), 'variants': ('+ Jonker-Volgenant',)}\n"
        "    what = plan('ablation', settings)\n"
        "    forks = forkable()\n"
        "    compute(what, sys.argv[1], engine=Local(2))\n"
        "    print(forks, status(what, sys.argv[1]).done)\n"
    )
    script = tmp_path / "script.py"  # workers that are started afresh import it
    script.write_text(code)
    done = subprocess.run([sys.executable, script, tmp_path / "out"], capture_output=True, text=True, timeout=600)
    assert done.stdout.split() == [str(expected), "4"], done.stderr


def test_a_scheduler_that_does_not_answer_is_told():
    pytest.importorskip("distributed")
    with pytest.raises(ValueError, match="no Dask scheduler answers there"):
        Dask("tcp://127.0.0.1:1", timeout=1).workers  # noqa: B018


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_a_scheduler_without_workers_is_told(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    idle = distributed.LocalCluster(n_workers=0, processes=False, protocol="tcp", dashboard_address=None)
    message = r"the Dask scheduler at tcp://\S+ has no workers; start some: dask worker tcp://\S+$"
    with idle as cluster:
        with pytest.raises(ValueError, match=message), Dask(cluster.scheduler_address, timeout=1).open(tmp_path):
            pass
        monkeypatch.setattr("blindmatch.solvers.shared_tree._FIRST_WORKER", 1.0)
        with distributed.Client(cluster) as client, pytest.raises(ValueError, match=message):
            bm.solve(bm.QAP(np.eye(3), np.eye(3)), bm.BranchAndBound(executor=client))
