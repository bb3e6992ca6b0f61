"""Cost, bound, gap, proof and time of every installed solver and its peers, in one run.

python -m benchmarks.quality                      all instances, ten seconds a run
python -m benchmarks.quality --quick              a few small ones, two seconds a run
python -m benchmarks.quality --scipy --restarts 20    only FAQ and 2-opt, beside scipy's, on all of QAPLIB up to n=50
"""

from __future__ import annotations

import argparse
from pathlib import Path

from .against_scipy import compare
from .instances import Instance, instances
from .report import Row, plot, print_table, write_csv
from .runners import Run, runners


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seconds", type=float, help="time limit of a run; 10, or 2 with --quick")
    parser.add_argument("--solvers", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--instances", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--out", type=Path, default=Path("quality"), help="folder for quality.csv and quality.png")
    parser.add_argument("--scipy", action="store_true", help="compare with scipy alone")
    parser.add_argument("--restarts", type=int, default=20)
    parser.add_argument("--largest", type=int, default=50)
    options = parser.parse_args()
    if options.scipy:
        return 0 if compare(options.restarts, options.largest) else 1

    limit = options.seconds or (2.0 if options.quick else 10.0)
    chosen = {name: run for name, run in runners().items() if not options.solvers or name in options.solvers}
    problems = [item for item in instances(options.quick) if not options.instances or item.name in options.instances]
    rows: list[Row] = []
    for instance in problems:
        print(f"{instance.name} ...", flush=True)
        rows += rows_of(instance, chosen, limit)
    print_table(rows)
    options.out.mkdir(parents=True, exist_ok=True)
    write_csv(rows, options.out / "quality.csv")
    drawn = plot(rows, options.out / "quality.png")
    print(
        f"{options.out / 'quality.csv'}"
        + (f", {options.out / 'quality.png'}" if drawn else " (no matplotlib, no plot)")
    )
    return 0


def rows_of(instance: Instance, chosen: dict, limit: float) -> list[Row]:
    """All solvers on one instance; the gap is to the best known cost, or to the best of the run if that is lower."""
    runs: dict[str, Run | str] = {}
    for name, run in chosen.items():
        try:
            runs[name] = run(instance.problem, limit)
        except (ImportError, ValueError, MemoryError) as error:
            runs[name] = str(error).splitlines()[0][:60]
    costs = [run.cost for run in runs.values() if isinstance(run, Run)]
    best = min([*costs, *([instance.best_known] if instance.best_known is not None else [])], default=0.0)
    common = (instance.name, instance.family, instance.problem.n)
    rows = []
    for name, run in runs.items():
        if isinstance(run, str):
            rows.append(Row(*common, name, None, None, None, False, None, run))
        else:
            gap = (run.cost - best) / abs(best) if best else run.cost - best
            rows.append(Row(*common, name, run.cost, run.bound, gap, run.proved, run.seconds))
    return rows


if __name__ == "__main__":
    raise SystemExit(main())
