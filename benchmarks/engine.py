"""Speed of the exact engine, as a ratio to scipy's assignment solver in the same run.

    python benchmarks/engine.py sweeps proofs random qaplib-bounds qaplib-exact threads laps anytime memory tabu
    python benchmarks/engine.py files --data FOLDER        instances of your own, .npz as in instances.py

The unit "u" is the time of 1600 calls of scipy.optimize.linear_sum_assignment on random 39 x 39 matrices.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from instances import aligned, from_file, qaplib, random_vectors
from scipy.optimize import linear_sum_assignment

import blindmatch as bm
from blindmatch import _core
from blindmatch.solvers.core_problem import RescaledProblem
from blindmatch.solvers.tabu import Tabu


def unit() -> float:
    """CPU seconds of the yardstick."""
    matrices = np.random.default_rng(0).random((1600, 39, 39))
    start = time.process_time()
    for matrix in matrices:
        linear_sum_assignment(matrix)
    return time.process_time() - start


def row(name: str, problem: bm.QAP, solver: str = "auto", threads: int = 1, **options: object) -> None:
    """Solve, verify, print one line."""
    yardstick = unit()
    cpu, wall = time.process_time(), time.perf_counter()
    result = bm.solve(problem, solver, rng=0, threads=threads, **options)  # type: ignore[arg-type]
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    per_n2 = (result.cost - (result.lower_bound or -np.inf)) / problem.n**2
    print(
        f"{name:26s} {result.status:10s} cost {result.cost:14.6f} bound {result.lower_bound:14.6f} "
        f"gap/n2 {per_n2:8.2g} cpu {cpu:7.2f} s = {cpu / yardstick:6.1f} u  wall {wall:7.2f} s  {result.message}",
        flush=True,
    )


def sweeps() -> None:
    """The first and the steady sweep, against scipy on as many problems of that size."""
    yardstick = unit()
    for n, count in ((40, 60), (100, 6)):
        ends = np.array(_core.time_sweeps(RescaledProblem.of(random_vectors(n)).core, count))
        steps = np.diff(ends, prepend=0.0)
        steady = np.median(steps[-5:])
        print(f"N={n}: first sweep {steps[0]:.3f} CPU s, median of the last ones {steady:.4f}")
        if n == 40:
            print(f"      1600 scipy problems of size 39: {yardstick:.3f} CPU s; ratio {yardstick / steady:.1f}")


def proofs() -> None:
    """Alignable problems until they are proved."""
    for n in (20, 40, 60, 100):
        for noise in (0.05, 0.2, 0.5):
            row(f"aligned n={n} noise={noise}", aligned(n, noise), time_limit=300)
    print(f"largest memory so far: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


def random() -> None:
    """Random vectors: the gap that is left (the paper, Tables 4 and 5: 2.8e-4 in 1 h, 3.4e-4 in 2 h)."""
    for n, seconds in ((40, 20), (40, 60), (100, 120)):
        row(f"random n={n}, {seconds} s", random_vectors(n), threads=2, time_limit=seconds)


def qaplib_bounds() -> None:
    """Bounds without branching; Hahn-Grant 1998: 523 1039 2179 6571 642058 616644 4793 75853."""
    for name in ("nug12", "nug15", "nug20", "had20", "rou20", "tai20a", "nug30", "kra30a"):
        row(name, qaplib(name), "dual-ascent", time_limit=10 if "30" in name else 3)


def qaplib_exact() -> None:
    """Proved optima."""
    families = {"nug": (12, 14, 15), "had": (12, 14), "scr": (12, 15, 20), "rou": (12, 15)}
    names = [f"{family}{n}" for family, sizes in families.items() for n in sizes]
    names += ["chr12a", "chr15a", "chr18a", "chr20a", "tai12a"]
    for name in names:
        row(name, qaplib(name), "branch-and-bound", threads=2, time_limit=120)


def threads() -> None:
    """One thread against two: a tree, and a single node with large sweeps."""
    for count in (1, 2):
        row(f"nug15, {count} threads", qaplib("nug15"), "branch-and-bound", threads=count, time_limit=120)
    for count in (1, 2):
        row(f"aligned n=100, {count} threads", aligned(100, 0.5), threads=count, time_limit=120)


def laps() -> None:
    """One assignment problem: ours and its peers, as ratios to scipy."""
    solvers: dict[str, Callable[[np.ndarray], object]] = {"scipy": linear_sum_assignment}
    for name in ("jonker-volgenant", "auction", "hungarian"):
        solvers[f"ours, {name}"] = partial(_core.solve_lap, method=name)
    if find_spec("lap"):
        solvers["lap"] = import_module("lap").lapjv
    if find_spec("lapjv"):
        solvers["lapjv"] = import_module("lapjv").lapjv
    for n in (39, 99, 400):
        matrices = np.random.default_rng(0).random((max(4, 400000 // n**2), n, n))
        seconds = {name: cpu_seconds(solver, matrices) for name, solver in solvers.items()}
        ratios = ", ".join(f"{name} {seconds['scipy'] / value:.1f}" for name, value in seconds.items())
        print(f"n={n}: times as fast as scipy: {ratios}", flush=True)


def cpu_seconds(solver: Callable[[np.ndarray], object], matrices: np.ndarray) -> float:
    start = time.process_time()
    for matrix in matrices:
        solver(matrix)
    return time.process_time() - start


def anytime() -> None:
    """The gap (share of the cost) that is left after so many seconds."""
    marks = (0.1, 0.3, 1, 3, 10, 30)
    for name, problem in (("aligned n=100 noise=0.5", aligned(100, 0.5)), ("random n=40", random_vectors(40))):
        result = bm.solve(problem, rng=0, time_limit=30)
        gaps = []
        for mark in marks:
            seen = [t for t in result.trace if t.seconds <= mark and t.lower_bound is not None]
            gaps.append(f"{mark} s {(seen[-1].cost - seen[-1].lower_bound) / abs(seen[-1].cost):.2g}" if seen else "")
        print(f"{name:26s} {', '.join(filter(None, gaps))}; {result.status} after {result.seconds:.1f} s", flush=True)


def memory() -> None:
    """Peak memory and CPU time against the size, each in a process of its own."""
    code = (  # the peak of this program (VmHWM); getrusage counts that of the one that started it as well
        "import re, time; from instances import aligned; import blindmatch as bm; p = aligned({n}, 0.2); "
        "peak = lambda: int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]); "
        "bm.solve(aligned(5, 0.2), rng=0); before = peak(); t = time.process_time(); "
        "r = bm.solve(p, rng=0, threads=1, time_limit=600); "
        "print('n={n}', r.status, f'{{time.process_time() - t:.2f}} CPU s,', "
        "(peak() - before) // 1000, 'MB above the start')"
    )
    for n in (25, 50, 100, 200):
        subprocess.run([sys.executable, "-c", code.format(n=n)], cwd=Path(__file__).parent, check=True)


def tabu() -> None:
    """QAPLIB by tabu search: how far above the best known value after 20 s."""
    best = {"sko100a": 152002, "tai50a": 4938796, "wil100": 273038, "tho150": 8133398, "tai40a": 3139370}
    for name, value in best.items():
        result = bm.solve(qaplib(name), Tabu(iterations=None), rng=0, time_limit=20)
        print(f"{name:10s} {result.cost:.0f}, {100 * (result.cost / value - 1):.3f} % above the best known", flush=True)


def files(folder: Path, names: Iterable[str]) -> None:
    """All instances of a folder."""
    for path in sorted(folder.glob("*.npz")):
        if "source" in np.load(path, allow_pickle=False) and (not names or path.stem in names):
            row(path.stem, from_file(path), threads=2, time_limit=600)


PARTS: dict[str, Callable[[], None]] = {
    "sweeps": sweeps,
    "proofs": proofs,
    "random": random,
    "qaplib-bounds": qaplib_bounds,
    "qaplib-exact": qaplib_exact,
    "threads": threads,
    "laps": laps,
    "anytime": anytime,
    "memory": memory,
    "tabu": tabu,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=["sweeps", "proofs"], help=", ".join([*PARTS, "files"]))
    parser.add_argument("--data", type=Path, help="folder of .npz instances, for the part 'files'")
    parser.add_argument("--only", nargs="*", default=[], help="names of instances in that folder")
    arguments = parser.parse_args()
    for part in arguments.parts:
        print(f"-- {part}", flush=True)
        if part == "files":
            files(arguments.data, arguments.only)
        else:
            PARTS[part]()


if __name__ == "__main__":
    main()
