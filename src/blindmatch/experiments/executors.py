"""The executors that compute runs, with the interface of concurrent.futures: local processes, Dask, or Slurm."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

from blindmatch.errors import pip_install, unknown_name
from blindmatch.experiments.store import start_local_worker
from blindmatch.machine import usable_cores
from blindmatch.validation import at_least

_MOST_ON_WINDOWS = 61  # processes that one process can wait for there
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Local:
    """Processes on this machine, one for each core by default, one thread each.

    They are forked if that is safe (`forkable`), for example when the command line starts them; forked processes need
    no imports. Otherwise new processes are started. Windows can wait for 61 of them: more are never started there.
    """

    processes: int | None = None

    @property
    def workers(self) -> int:
        """The number of simultaneous runs: it determines the chunks and the estimated time left."""
        wanted = self.processes or usable_cores()
        return min(wanted, _MOST_ON_WINDOWS) if sys.platform == "win32" else wanted

    @contextmanager
    def open(self, folder: Path) -> Iterator[Executor]:
        """A pool of processes; leaving the context stops the current runs."""
        before = set(multiprocessing.active_children())
        context = multiprocessing.get_context("fork" if forkable() else "spawn")
        pool = ProcessPoolExecutor(self.workers, mp_context=context, initializer=start_local_worker)
        with _environment(dict.fromkeys(_ONE_THREAD, "1")), warnings.catch_warnings():
            # Python 3.12 warns of every thread, even those that OpenBLAS stops before a fork.
            warnings.filterwarnings("ignore", ".*multi-threaded, use of fork", DeprecationWarning)
            try:
                yield pool
                pool.shutdown()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
                for process in set(multiprocessing.active_children()) - before:
                    process.terminate()
                    process.join(5)


def forkable() -> bool:
    """Return True if a fork of this process is safe: it has no threads except those that OpenBLAS stops before a fork.

    OpenMP does not: once a process has used it, its forks hang when they use it. scikit-learn's k-means uses OpenMP.
    Only Linux reports the number of threads; elsewhere nothing is forked.
    """
    if threading.active_count() > 1:
        return False
    pools = threadpool_info()
    if any((pool["internal_api"], pool.get("threading_layer")) != ("openblas", "pthreads") for pool in pools):
        return False
    try:
        threads = len(list(Path("/proc/self/task").iterdir()))
    except OSError:
        return False
    return threads <= 1 + sum(int(pool["num_threads"]) - 1 for pool in pools)


@dataclass(frozen=True)
class Dask:
    """A running Dask cluster; its workers need this package, and the files under the same paths."""

    address: str  # of the scheduler, such as ``tcp://host:8786``
    timeout: float = 10.0  # seconds to wait for it, and for its first worker
    # What a task needs of a worker, such as {"GPU": 1}: workers that were started with --resources GPU=1 run one such
    # task at a time.
    resources: dict[str, float] = field(default_factory=dict)

    @property
    def workers(self) -> int:
        """The number of threads of all workers."""
        with _dask_client(self.address, self.timeout) as client:
            return max(1, int(sum(client.nthreads().values())))

    @contextmanager
    def open(self, folder: Path) -> Iterator[Executor]:
        """The cluster as an executor. Dask reassigns the work of a worker that dies."""
        from blindmatch.solvers.shared_tree import refuse_no_workers  # late: imports of solvers take time

        with _dask_client(self.address, self.timeout) as client:
            refuse_no_workers(client, self.timeout)
            workers = client.scheduler_info()["workers"].values()
            listed = len(workers) == len(client.nthreads())  # some versions list only the first few
            for name, amount in self.resources.items() if workers and listed else ():
                if all(worker.get("resources", {}).get(name, 0) < amount for worker in workers):
                    need = f"{name}={amount:g}"  # Dask would wait for it forever
                    raise ValueError(f"no Dask worker has {need}; start them with dask worker ... --resources {need}")
            pool = client.get_executor(pure=False, **({"resources": self.resources} if self.resources else {}))
            try:
                yield pool
            finally:
                pool.shutdown(wait=False)  # without waiting, it cancels its tasks


@contextmanager
def _dask_client(address: str, timeout: float) -> Iterator[Any]:
    try:
        from distributed import Client
    except ImportError:
        raise ImportError(f"--engine dask needs distributed: {pip_install('dask')}") from None
    try:
        client: Any = Client(address, timeout=timeout, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise ValueError(f"address={address!r}: no Dask scheduler answers there ({error})") from None
    try:
        yield client
    finally:
        client.close()


@dataclass(frozen=True)
class Slurm:
    """Job arrays of Slurm, through submitit; jobs need the result folder and the inputs under the same paths."""

    cluster: str = "slurm"  # or "local" for submitit's processes on this machine, as a trial
    workers: int = 64  # array tasks that run at the same time
    options: dict[str, Any] = field(default_factory=dict)  # in submitit's words: ``slurm_partition``, ``timeout_min``

    def __post_init__(self) -> None:
        at_least(self.workers, 1, "workers")

    @contextmanager
    def open(self, folder: Path) -> Iterator[Executor]:
        """An executor that puts work submitted together into one job array."""
        pool = ArrayExecutor(folder / "slurm", self.cluster, self.workers, self.options)
        try:
            yield pool
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


Engine = Local | Dask | Slurm
ENGINES = ("local", "dask", "slurm")


def make_engine(
    name: str, *, workers: int | None = None, address: str | None = None, options: dict[str, Any] | None = None
) -> Engine:
    """An engine from the options of the command line."""
    if name not in ENGINES:
        raise unknown_name("engine", name, ENGINES)
    if workers is not None:
        at_least(workers, 1, "workers")
    chosen = dict(options or {})
    if name == "dask":
        if address is None:
            raise ValueError("engine='dask' needs an address, such as address='tcp://host:8786'")
        for key, value in chosen.items():
            if not isinstance(value, int | float):
                raise ValueError(f"job option {key}={value!r} with engine='dask'; expected a number, such as GPU=1")
        return Dask(address, resources={key: float(value) for key, value in chosen.items()})
    if address is not None:
        raise ValueError(f"address={address!r} with engine={name!r}; only 'dask' takes an address")
    if name == "slurm":
        return Slurm(str(chosen.pop("cluster", "slurm")), workers or 64, chosen)
    if chosen:
        raise ValueError(f"job options {sorted(chosen)} with engine={name!r}; only 'slurm' and 'dask' take them")
    return Local(workers)


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Set variables that new processes inherit; BLAS reads them once, when it is loaded."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


_POLL_SECONDS = 0.25


class ArrayExecutor(Executor):
    """Collect calls that are submitted within a short time into one job array, and watch its tasks.

    submitit passes the calls in its own files. Results do not depend on them, because workers write journals.
    """

    def __init__(self, folder: Path, cluster: str, parallel: int, options: dict[str, Any]) -> None:
        try:
            import submitit
        except ImportError:
            raise ImportError(f"--engine slurm needs submitit: {pip_install('slurm')}") from None
        self._executor = submitit.AutoExecutor(folder=folder / "%j", cluster=cluster)
        own = {"name": "blindmatch", "cpus_per_task": 1, "tasks_per_node": 1, "slurm_array_parallelism": parallel}
        self._executor.update_parameters(**{**own, **options})
        self._parallel = parallel if cluster != "slurm" else None  # Slurm enforces the limit itself
        self._waiting: list[tuple[Future[Any], Callable[[], Any]]] = []
        self._jobs: dict[Any, Future[Any]] = {}
        self._lock = threading.Lock()
        self._closed = False
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Queue a call; it becomes a task of the next array."""
        future: Future[Any] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("cannot submit after shutdown")
            self._waiting.append((future, partial(fn, *args, **kwargs)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more calls; cancel the jobs with `cancel_futures`, otherwise (with `wait`) wait for them."""
        with self._lock:
            self._closed = True
            if cancel_futures:
                for future, _ in self._waiting:
                    future.cancel()
                for job in self._jobs:
                    job.cancel()
                self._waiting, self._jobs = [], {}
        if wait:
            self._watcher.join()

    def _watch(self) -> None:
        finished = False
        while not finished:
            time.sleep(_POLL_SECONDS)
            with self._lock:
                # Unless Slurm enforces the limit, only as many are sent as may run at once.
                free = len(self._waiting) if self._parallel is None else max(self._parallel - len(self._jobs), 0)
                batch, self._waiting = self._waiting[:free], self._waiting[free:]
                started = [(future, call) for future, call in batch if future.set_running_or_notify_cancel()]
                if started:
                    with self._executor.batch():  # one array
                        jobs = [self._executor.submit(call) for _, call in started]
                    self._jobs.update(zip(jobs, (future for future, _ in started), strict=True))
                ended = [(job, self._jobs.pop(job)) for job in list(self._jobs) if job.done()]
                finished = self._closed and not self._jobs and not self._waiting
            for job, future in ended:
                error = job.exception()
                if error is None:
                    future.set_result(job.result())
                else:
                    future.set_exception(error)
