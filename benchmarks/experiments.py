"""What a sweep costs beside its solvers: 1,000 matches of ten classes, CPU seconds of all processes together.

    python benchmarks/experiments.py              seeded embeddings, the size of real ones
    python benchmarks/experiments.py FOLDER       your own; their dataset cifar10

A run's solver time is what a call of ``bm.match`` takes: building the problem, solving it, checking the proof. All
else is overhead: planning, starting workers, reading embeddings, class means, sending work, keeping results. What the
process of the sweep takes to start (interpreter, imports) and the report are told beside it, as they do not grow with
the runs.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from blindmatch import experiments
from blindmatch.experiments.executors import Local, forkable
from blindmatch.experiments.sweeps import compute, plan, read_records, report

VISION, LANGUAGE = (("a", 1280), ("b", 2048)), (("a", 384), ("b", 768), ("c", 100), ("d", 256))
CLASSES, IMAGES, PROMPTS = 10, 200, 9
RUNS = 1000
CASES = {"gw": ("gw",), "three measures": ("mutual-knn", "cka", "gw")}


def write_embeddings(folder: Path) -> None:
    """Classes that lie alike in all spaces, up to noise."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=(CLASSES, 32))
    names, labels = np.array([f"class {c}" for c in range(CLASSES)]), np.repeat(np.arange(CLASSES), IMAGES)

    def seen(d: int, copies: int) -> np.ndarray:
        centres = common @ rng.normal(size=(32, d)) + 3.0 * rng.normal(size=(CLASSES, d))
        return (centres[:, None] + 5.0 * rng.normal(size=(CLASSES, copies, d))).astype(np.float16)

    for name, d in VISION:
        np.savez(
            folder / f"vision__cifar10__{name}.npz",
            embeddings=seen(d, IMAGES).reshape(-1, d), labels=labels, class_names=names,
        )  # fmt: skip
    for name, d in LANGUAGE:
        np.savez(folder / f"language__cifar10__{name}.npz", embeddings=seen(d, PROMPTS), class_names=names)


def one_sweep(embeddings: str, measures: tuple[str, ...], out: str) -> dict[str, float]:
    """In a process of its own, so that what it takes to start counts."""
    experiments.load("small-scale")  # all that is imported counts as start
    start, wall = time.process_time(), time.perf_counter()
    pairs = len(VISION) * len(LANGUAGE) * len(measures)
    settings = {"datasets": ("cifar10",), "measures": measures, "seeds": -(-RUNS // pairs), "time_limit": 60.0}
    sweep = plan("small-scale", settings, embeddings=embeddings)
    forked = forkable()
    compute(sweep, out, engine=Local())
    wall, swept = time.perf_counter() - wall, time.process_time()
    workers = resource.getrusage(resource.RUSAGE_CHILDREN)
    records = read_records(sweep, out).values()
    before = time.process_time()
    report(sweep, out)
    return {
        "runs": len(records),
        "forked": forked,
        "start": start,
        "sweep": swept - start,
        "workers": workers.ru_utime + workers.ru_stime,
        "in runs": sum(record.cpu_seconds for record in records),
        "solver": sum(record.result["solver_cpu_seconds"] for record in records if record.result),
        "report": time.process_time() - before,
        "wall": wall,
        "cores": Local().workers,
    }


def main() -> None:
    """Both cases, as a table."""
    with tempfile.TemporaryDirectory() as folder:
        embeddings = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder)
        if len(sys.argv) == 1:
            write_embeddings(embeddings)
        for number, case in enumerate(CASES):
            command = [sys.executable, __file__, "--one", str(embeddings), case, f"{folder}/{number}"]
            told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            beside = told["sweep"] + told["workers"] - told["solver"]
            print(
                f"{case}: {told['runs']} runs, forked: {told['forked']}; solver {told['solver']:.2f} CPU s; beside it "
                f"{beside:.2f} ({100 * beside / told['solver']:.1f} %): data and bookkeeping inside runs "
                f"{told['in runs'] - told['solver']:.2f}, "
                f"workers between runs {told['workers'] - told['in runs']:.2f}, "
                f"the sweep's own process {told['sweep']:.2f}. Start {told['start']:.2f}, "
                f"report {told['report']:.2f}. Clock {told['wall']:.2f} s on {told['cores']} cores."
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(one_sweep(sys.argv[2], CASES[sys.argv[3]], sys.argv[4])))
    else:
        main()
