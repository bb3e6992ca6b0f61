"""Tasks on the workers of an executor: submit them, collect results, and notice those lost with their worker."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, Generic, TypeVar

from blindmatch.machine import usable_cores
from blindmatch.proof.parallel import submitted

_FIRST_WORKER = 10.0  # seconds to wait until a Dask scheduler has a worker
_FIRST_ANSWER = 30.0  # seconds to wait until a worker answers
_AHEAD = 2  # tasks per worker: one runs, one waits
_LOSSES = 10  # tasks that may be lost in a row before the run gives up
_TICK = 0.2  # seconds between two checks for Ctrl-C and the time limit

Key = TypeVar("Key")


class Tasks(Generic[Key]):
    """The submitted tasks of one run, each with a key that identifies its work."""

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.out: dict[Future[Any], Key] = {}
        self.redone = 0  # tasks that were lost
        self._lost = 0  # tasks lost since the last result

    @property
    def room(self) -> int:
        """How many tasks may be out at the same time."""
        return _AHEAD * _places(self.executor)

    def submit(self, key: Key, function: Callable[..., Any], *arguments: Any) -> None:
        """Send out a task."""
        self.out[submitted(self.executor, function, *arguments)] = key

    def finished(self) -> Iterator[tuple[Key, Any]]:
        """Wait a moment, then yield the key and the result of each finished task; None is the result of a lost task."""
        done, _ = wait(self.out, timeout=_TICK, return_when=FIRST_COMPLETED)
        for future in done:
            result = self._result(future)
            yield self.out.pop(future), result

    def call_back(self) -> list[Key]:
        """Cancel all tasks that are still out, and return their keys."""
        keys = list(self.out.values())
        for future in self.out:
            future.cancel()
        self.out.clear()
        return keys

    def losses(self, what: str) -> str:
        """A note about lost tasks; empty if there were none."""
        return f"{self.redone} {what} were lost and done again" if self.redone else ""

    def _result(self, future: Future[Any]) -> Any:
        try:
            result = future.result()
        except BrokenExecutor as error:
            raise RuntimeError(f"the executor broke down ({error}); a checkpoint would let a new run resume") from error
        except BaseException as error:
            killed = isinstance(error, CancelledError) or type(error).__name__ == "KilledWorker"  # Dask's
            self.redone += 1
            self._lost += 1
            if not killed or self._lost > _LOSSES:
                raise
            return None
        self._lost = 0
        return result


def greet(executor: Executor) -> None:
    """Check that a worker answers and has this version of blindmatch; raise a clear error otherwise."""
    version = importlib.metadata.version("blindmatch")
    client = getattr(executor, "_client", None)  # Dask's
    if client is not None:
        refuse_no_workers(client, _FIRST_WORKER)
    where = f"executor={type(executor).__name__}" if client is None else f"the Dask scheduler at {_address(client)}"
    try:
        executor.submit(refuse_version, version).result(timeout=_FIRST_ANSWER)
    except FutureTimeoutError:
        raise ValueError(f"{where}: no worker answered within {_FIRST_ANSWER:g} s; is one of them free?") from None
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{where}: a worker cannot import blindmatch {version} ({error})") from None


def refuse_no_workers(client: Any, seconds: float) -> None:
    """Wait for the first worker of a Dask client; the client itself would wait forever."""
    try:
        client.wait_for_workers(1, timeout=seconds)
    except TimeoutError:
        address = _address(client)
        raise ValueError(f"the Dask scheduler at {address} has no workers; start some: dask worker {address}") from None


def refuse_version(version: str) -> None:
    """In the process of a worker: refuse tasks of another version."""
    own = importlib.metadata.version("blindmatch")
    if own != version:
        raise ValueError(f"a worker has blindmatch {own}, this process has {version}; install the same version on both")


def _address(client: Any) -> str:
    return str(client.scheduler.address)


def _places(executor: Any) -> int:
    """How many tasks an executor works on at the same time; this machine's cores if it does not say."""
    if hasattr(executor, "_client"):  # Dask's
        return max(1, int(sum(executor._client.nthreads().values())))
    return int(getattr(executor, "_max_workers", 0) or usable_cores())
