"""Slurm job arrays with the ``concurrent.futures`` interface."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

_POLL_SECONDS = 1.0


class ArrayExecutor(Executor):
    """Collect calls that are submitted within a short time into one job array, and watch its tasks.

    submitit passes the calls in its own files. Results do not depend on them, because workers write journals.
    """

    def __init__(self, folder: Path, cluster: str, parallel: int, options: dict[str, Any]) -> None:
        try:
            import submitit
        except ImportError:
            raise ImportError("--engine slurm needs submitit: pip install 'blindmatch[slurm]'") from None
        self._executor = submitit.AutoExecutor(folder=folder / "%j", cluster=cluster)
        own = {"name": "blindmatch", "cpus_per_task": 1, "tasks_per_node": 1, "slurm_array_parallelism": parallel}
        self._executor.update_parameters(**{**own, **options})
        self._parallel = parallel if cluster != "slurm" else None  # Slurm enforces the limit itself
        self._waiting: list[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = []
        self._jobs: dict[Any, Future[Any]] = {}
        self._lock = threading.Lock()
        self._closed = False
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Queue a call; it becomes a task of the next array."""
        if kwargs:
            raise TypeError("keyword arguments are not passed on")
        future: Future[Any] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("cannot submit after shutdown")
            self._waiting.append((future, fn, args))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more calls; cancel the jobs with `cancel_futures`, otherwise (with `wait`) wait for them."""
        with self._lock:
            self._closed = True
            if cancel_futures:
                for future, _, _ in self._waiting:
                    future.cancel()
                self._waiting.clear()
                for job in self._jobs:
                    job.cancel()
                self._jobs.clear()
        if wait:
            self._watcher.join()

    def _watch(self) -> None:
        while True:
            time.sleep(_POLL_SECONDS / 4)
            with self._lock:
                self._start_waiting()
                ended = [job for job in self._jobs if job.done()]
                futures = [(job, self._jobs.pop(job)) for job in ended]
                finished = self._closed and not self._jobs and not self._waiting
            for job, future in futures:
                _settle(job, future)
            if finished:
                return

    def _start_waiting(self) -> None:
        """Submit the collected calls as one array; unless Slurm enforces the limit, only as many as may run at once."""
        free = len(self._waiting) if self._parallel is None else self._parallel - len(self._jobs)
        batch, self._waiting = self._waiting[: max(free, 0)], self._waiting[max(free, 0) :]
        started = [(future, fn, args) for future, fn, args in batch if future.set_running_or_notify_cancel()]
        if not started:
            return
        with self._executor.batch():
            jobs = [self._executor.submit(fn, *args) for _, fn, args in started]
        self._jobs.update(zip(jobs, (future for future, _, _ in started), strict=True))


def _settle(job: Any, future: Future[Any]) -> None:
    error = job.exception()
    if error is None:
        future.set_result(job.result())
    else:
        future.set_exception(error)
