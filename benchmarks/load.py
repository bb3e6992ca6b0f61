"""Many matches at once: processes by fork and by spawn, and a pool of threads. Results as alone, memory flat.

python benchmarks/load.py                     8 processes x 1,000 matches, by fork and by spawn, then 8 threads
python benchmarks/load.py --matches 50 --workers 2
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import blindmatch as bm

PROBLEMS = 50  # different ones; each worker goes through them again and again, from a place of its own
Answer = tuple[tuple[int, ...], float, float | None, str]


@dataclass(frozen=True)
class Report:
    """What one worker saw: wrong results, megabytes after a tenth of its matches and at the end, CPU seconds."""

    wrong: int
    early: float
    late: float
    seconds: float


def embeddings(seed: int, n: int = 8) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    return X, (X @ rng.standard_normal((4, 4)) + 0.3 * rng.standard_normal((n, 4)))[rng.permutation(n)]


def answer(seed: int) -> Answer:
    result = bm.match(*embeddings(seed), rng=seed, threads=1)
    return tuple(result.permutation.tolist()), result.cost, result.lower_bound, result.status


def memory() -> float:
    """Megabytes that this process holds now."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def work(worker: int, matches: int, expected: list[Answer]) -> Report:
    start, wrong, early = time.process_time(), 0, memory()
    for index in range(matches):
        seed = (7 * worker + index) % len(expected)
        wrong += answer(seed) != expected[seed]
        if index == matches // 10:
            early = memory()
    return Report(wrong, early, memory(), time.process_time() - start)


def in_processes(method: str, workers: int, matches: int, expected: list[Answer]) -> list[Report]:
    with multiprocessing.get_context(method).Pool(workers) as pool:
        return pool.starmap(work, [(worker, matches, expected) for worker in range(workers)], chunksize=1)


def in_threads(workers: int, matches: int, expected: list[Answer]) -> list[Report]:
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda worker: work(worker, matches, expected), range(workers)))


def run(workers: int, matches: int) -> bool:
    """All three; whether nothing was wrong and memory stayed where it was."""
    expected = [answer(seed) for seed in range(PROBLEMS)]
    ways = {method: in_processes(method, workers, matches, expected) for method in ("fork", "spawn")}
    ways["threads"] = in_threads(workers, matches, expected)
    good = True
    print("| by | workers x matches | wrong | MB after a tenth | MB at the end | CPU ms a match |")
    print("| --- | --- | --- | --- | --- | --- |")
    for way, reports in ways.items():
        wrong, early, late = sum(r.wrong for r in reports), max(r.early for r in reports), max(r.late for r in reports)
        # In threads each report counts the CPU time of them all.
        seconds = sum(r.seconds for r in reports) if way != "threads" else max(r.seconds for r in reports)
        cpu = 1000 * seconds / (workers * matches)
        print(f"| {way} | {workers} x {matches} | {wrong} | {early:.1f} | {late:.1f} | {cpu:.1f} |", flush=True)
        good = good and wrong == 0 and late - early < max(5.0, 0.05 * early)
    return good


def main() -> None:
    parser = argparse.ArgumentParser(description="Many matches at once.")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--matches", type=int, default=1000)
    options = parser.parse_args()
    sys.exit(0 if run(options.workers, options.matches) else 1)


if __name__ == "__main__":
    main()
