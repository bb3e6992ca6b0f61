"""Columns of two tables with hidden headers: how many are matched right, beside the assignment of shapes alone.

Each table of scikit-learn, vega_datasets and statsmodels with five columns or more is split into two halves of rows,
and the columns of each half are shuffled. Then the same with a third of the columns in one half only (--missing). Needs
pandas, vega_datasets and statsmodels, or a folder of .csv files. Run: python benchmarks/columns.py [FOLDER]
[--seeds N] [--missing]
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

import blindmatch as bm

SKLEARN = ("wine", "breast_cancer", "diabetes", "iris")
VEGA = ("cars", "seattle_weather", "burtin", "airports", "la_riots")
ROWS = 3000


def tables(folder: Path | None = None) -> Iterator[tuple[str, pd.DataFrame]]:
    """The tables, by name: those of a folder, or of the packages."""
    if folder is not None:
        for path in sorted(folder.glob("*.csv")):
            frame = pd.read_csv(path)
            yield path.stem, frame.loc[:, ~frame.columns.str.startswith("Unnamed")]
        return
    import statsmodels.api as sm
    from sklearn import datasets
    from vega_datasets import local_data

    for name in SKLEARN:
        yield f"sklearn {name}", getattr(datasets, f"load_{name}")(as_frame=True).frame
    for name in VEGA:
        yield f"vega {name}", getattr(local_data, name)()
    for name in sorted(vars(sm.datasets)):
        module = getattr(sm.datasets, name)
        if hasattr(module, "load_pandas"):
            frame = module.load_pandas().data
            if frame.shape[1] >= 5 and len(frame) >= 40:
                yield f"statsmodels {name}", frame


def halves(frame: pd.DataFrame, seed: int, missing: bool) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    """Two halves of the rows, each with its columns in an order of its own, and the true partner of each column."""
    rng = np.random.default_rng(seed)
    rows, d = rng.permutation(len(frame))[:ROWS], frame.shape[1]
    ours, theirs, gone = rng.permutation(d), rng.permutation(d), rng.permutation(d)
    if missing:
        each = max(d // 6, 1)
        ours = ours[~np.isin(ours, gone[:each])]
        theirs = theirs[~np.isin(theirs, gone[each : 2 * each])]
    place = {column: at for at, column in enumerate(theirs.tolist())}
    truth = np.array([place.get(column, -1) for column in ours.tolist()])
    half = len(rows) // 2
    parts = frame.iloc[rows[:half], ours], frame.iloc[rows[half:], theirs]
    one, other = (part.set_axis([f"{side}{at}" for at in range(part.shape[1])], axis=1).reset_index(drop=True)
                  for part, side in zip(parts, "ab", strict=True))  # fmt: skip
    return one, other, truth


def main() -> None:
    """Print a line for each table, and how often the baseline is reached."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--missing", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    found, begin = [], time.process_time()
    print(f"{'table':28s} rows columns  shapes alone  match_columns  wrong pairs  proved")
    for name, frame in tables(given.folder):
        scores = []
        for seed in range(given.seeds):
            one, other, truth = halves(frame, seed, given.missing)
            result = bm.match_columns(one, other, rng=0, time_limit=20, threads=1)
            alone = np.full(len(truth), -1)
            rows, columns = linear_sum_assignment(-result.task.hints.reward)
            alone[rows] = columns
            both, p = truth >= 0, result.permutation
            wrong = int(((p >= 0) & (p != truth)).sum())
            right = (alone[both] == truth[both]).mean(), (p[both] == truth[both]).mean()
            scores.append((*right, wrong, result.status == "optimal"))
        mean = np.mean(scores, axis=0)
        found.append(mean[:2])
        figures = f"{mean[0]:13.0%} {mean[1]:14.0%} {mean[2]:12.1f} {mean[3]:7.0%}"
        print(f"{name:28s} {len(frame):4d} {frame.shape[1]:7d} {figures}", flush=True)
    shapes, ours = np.array(found).T
    print(
        f"mean {shapes.mean():.0%} and {ours.mean():.0%}; 90 % or more on {(ours >= 0.9).sum()} of {len(ours)} tables "
        f"({(shapes >= 0.9).sum()} by shapes); below shapes on {(ours < shapes - 1e-9).sum()}; "
        f"{time.process_time() - begin:.0f} CPU s"
    )


if __name__ == "__main__":
    main()
