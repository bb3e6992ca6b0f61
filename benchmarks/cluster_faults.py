"""One problem on Dask workers, some of which are killed.

python benchmarks/cluster_faults.py kills nug18              a worker is killed every few seconds, five times
python benchmarks/cluster_faults.py coordinator nug18        the coordinator is killed twice and started again
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
from cluster import QAPLIB, cluster, solved

from blindmatch.solvers.shared_tree import Tasks


def kills(name: str, workers: int, every: float, times: int, semidefinite: bool) -> None:
    """kill -9 of a process that computes; its nanny starts another. What Dask says was on it was computed again."""
    rows: list[str] = []
    tasks = 0
    submit = Tasks.submit

    def counted(self: Tasks[object], *arguments: object) -> None:
        nonlocal tasks
        tasks += 1
        submit(self, *arguments)

    Tasks.submit = counted
    with cluster(workers) as (started, client):
        before = started.seconds()
        result, _, calm = solved(name, client, 1, semidefinite=semidefinite)
        calm += started.seconds() - before
        calm_tasks, tasks = tasks, 0
        done = threading.Event()

        def attack() -> None:
            while len(rows) < times and not done.wait(every if rows else 0.1):
                busy = {address: keys for address, keys in client.processing().items() if keys}
                if busy:
                    address, keys = sorted(busy.items())[len(rows) % len(busy)]
                    [process] = (psutil.Process(pid) for pid in client.run(os.getpid, workers=[address]).values())
                    process.kill()
                    rows.append(f"| {len(rows) + 1} | {time.perf_counter() - begin:.1f} | {len(keys)} |")

        thread = threading.Thread(target=attack)
        begin, before = time.perf_counter(), started.seconds()
        thread.start()
        result, wall, cpu = solved(name, client, 1, semidefinite=semidefinite)
        cpu += started.seconds() - before
        done.set()
        thread.join()
        events = [event for _, event in client.get_events("all") if event.get("action") == "remove-worker"]
    Tasks.submit = submit
    lost = [event for event in events if not event["expected"]]
    running, results = (sum(len(event[kind]) for event in lost) for kind in ("processing-tasks", "lost-computed-tasks"))
    print("| kill | after s | tasks on the worker, run again |", *rows, sep="\n")
    print(
        f"{name}, {workers} workers: cost {result.cost:g} {result.status}, verified, {wall:.0f} s; {result.message}\n"
        f"Dask lost {len(lost)} workers, with {running} tasks and {results} results; {tasks} tasks and {cpu:.1f} CPU s "
        f"in all, undisturbed {calm_tasks} and {calm:.1f}",
        flush=True,
    )


COORDINATOR = """
import sys, blindmatch as bm
from distributed import Client
with Client(sys.argv[1]) as client:
    semidefinite = sys.argv[4] == "True"
    solver = bm.BranchAndBound(
        executor=client, checkpoint=sys.argv[3], checkpoint_interval=1.0, semidefinite=semidefinite
    )
    problem = bm.QAP.from_qaplib(sys.argv[2])
    result = bm.solve(problem, solver, rng=0, threads=1)
assert bm.verify(problem, result.certificate) == result.cost
print(f"{result.status}, cost {result.cost:g}, verified; {result.message}", flush=True)
"""


def coordinator(name: str, workers: int, after: float, semidefinite: bool) -> None:
    """kill -9 of the coordinator, twice, then a run that ends. What was done before the first checkpoint is lost."""
    with cluster(workers) as (started, _), tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-c",
            COORDINATOR,
            started.address,
            str(QAPLIB / f"{name}.dat"),
            f"{folder}/run.tree",
            str(semidefinite),
        ]
        for _ in range(2):
            process = subprocess.Popen(command)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(after)
                print(
                    f"{name} ended within {after:g} s: nothing was killed; choose a longer problem or a shorter --after"
                )
                return
            process.kill()
            process.wait()
            checkpoint = Path(folder, "run.tree")
            kept = f"{checkpoint.stat().st_size / 1e6:.1f} MB" if checkpoint.exists() else "none: it starts anew"
            print(f"coordinator killed after {after:g} s; checkpoint: {kept}", flush=True)
        subprocess.run(command, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["kills", "coordinator"])
    parser.add_argument("name")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--every", type=float, default=4.0, help="seconds between kills of workers")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--level-1", action="store_true", help="without the semidefinite bound")
    parser.add_argument("--after", type=float, default=20.0, help="seconds until the coordinator is killed")
    arguments = parser.parse_args()
    if arguments.what == "kills":
        kills(arguments.name, arguments.workers, arguments.every, arguments.times, not arguments.level_1)
    else:
        coordinator(arguments.name, arguments.workers, arguments.after, not arguments.level_1)


if __name__ == "__main__":
    main()
