"""How long a solver takes to answer Ctrl-C: a real SIGINT to a process of its own, at several moments of the run.

python tests/faults/press.py SOLVER N [SECONDS]...     one solver, pressed after each of the SECONDS
python tests/faults/press.py                           the table of docs/faults.md
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

ALL = [
    ("auto", 100), ("auto", 300), ("auto", 1000),
    ("branch-and-bound", 30), ("branch-and-bound", 200), ("branch-and-bound", 600),
    ("dual-ascent", 100), ("dual-ascent", 300), ("dual-ascent", 600),
    ("factorized-hahn-grant", 100), ("factorized-hahn-grant", 300),
    ("hahn-grant", 100),
    ("tabu", 300), ("tabu", 1000),
    ("faq", 300), ("faq", 1000),
    ("two-opt", 300), ("two-opt", 1000),
    ("entropic-gw", 300), ("entropic-gw", 1000),
    ("local-cka", 1000),
    ("brute-force", 12),
]  # fmt: skip


def solver_of(name: str):
    """The solver, set to run for longer than the test."""
    import blindmatch as bm

    endless = {
        "tabu": {"iterations": 10**9},
        "faq": {"restarts": 10**6},
        "two-opt": {"restarts": 10**8},
        "entropic-gw": {"restarts": 10**6},
    }
    return bm.SOLVERS[name](**endless.get(name, {}))


def problem_of(n: int, alike: bool = False):
    """Unrelated sides, which nothing closes early; or sides all alike, of which enumeration can cut nothing."""
    import numpy as np

    import blindmatch as bm

    if alike:
        return bm.QAP(np.full((n, n), 0.1), np.full((n, n), 0.1))
    rng = np.random.default_rng(0)
    return bm.GromovWasserstein().problem(rng.standard_normal((n, 8)), rng.standard_normal((n, 8)))


def run(name: str, n: int, seconds: float) -> None:
    """In the process that is interrupted: print what happened, and when."""
    import blindmatch as bm

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
    problem, solver = problem_of(n, alike=name == "brute-force"), solver_of(name)
    bm.solve(problem_of(5), solver, time_limit=0.01)  # everything is imported now
    pressed = []

    def press() -> None:
        time.sleep(seconds)
        pressed.append((time.perf_counter(), time.process_time()))
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press, daemon=True).start()
    result = bm.solve(problem, solver, rng=0)
    waited = time.perf_counter() - pressed[0][0] if pressed else None
    cpu = time.process_time() - pressed[0][1] if pressed else None
    right = result.cost == problem.objective(result.permutation)
    row = {"status": result.status, "waited": waited, "cpu": cpu, "right": right, "bound": result.lower_bound}
    sys.stdout.write(json.dumps(row | {"cost": result.cost, "message": result.message}))


def press(name: str, n: int, seconds: float, timeout: float = 300) -> dict:
    """Run a solver in a process of its own and interrupt it after so many seconds."""
    command = [sys.executable, str(Path(__file__)), "--inside", name, str(n), str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode != 0:
        return {"status": f"exit code {done.returncode}", "waited": None, "message": done.stderr[-300:]}
    return json.loads(done.stdout)


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--inside"]:
        return run(arguments[1], int(arguments[2]), float(arguments[3]))
    chosen = [(arguments[0], int(arguments[1]))] if arguments else ALL
    moments = [float(word) for word in arguments[2:]] or [0.05, 0.7, 4.0]
    for name, n in chosen:
        for moment in moments:
            row = press(name, n, moment)
            times = "- | -" if row["waited"] is None else f"{row['waited']:.2f} | {row['cpu']:.2f}"
            note = "" if row["waited"] is not None else (row["message"].splitlines() or ["it was done before"])[-1]
            sys.stdout.write(f"| `{name}` | {n} | {moment:g} | {row['status']} | {times} | {note} |\n")
            sys.stdout.flush()
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
