"""Draw the pictures of the documentation from the bundled data: python tools/make_doc_figures.py [FOLDER].

Needs ``pip install '.[plot]'``. Everything is seeded; only the time axis of the bounds differs from run to run.
"""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

import blindmatch as bm
from blindmatch.demo import Demo, load_demo

FOLDER = Path(__file__).parents[1] / "docs" / "figures"


def main(folder: Path) -> None:
    mpl.use("Agg")
    mpl.rcParams.update({"font.size": 9, "savefig.dpi": 110, "figure.dpi": 110})
    folder.mkdir(parents=True, exist_ok=True)
    demo = load_demo("cifar10", seed=0)
    names = {"source_names": demo.source_names, "target_names": demo.target_names}
    result = bm.match(demo.source, demo.target, **names, rng=0)
    truth = demo.truth.tolist()

    save(bm.plot.match(result, truth=truth), folder / "match.png")
    save(bm.plot.spaces(result, truth=truth), folder / "spaces.png")
    save(bm.plot.kernels(result)[0], folder / "kernels.png")
    save(bm.plot.bounds(hard_run()), folder / "bounds.png")
    save(shuffling(demo), folder / "shuffling.png")


def save(ax: Axes, path: Path) -> None:
    ax.figure.savefig(path, metadata={"Software": None}, bbox_inches="tight", pad_inches=0.05)
    print(f"{path.name}: {path.stat().st_size // 1024} kB")


def hard_run() -> bm.Result:
    """Random costs without any structure, where bound and cost take a while to meet."""
    A, B = np.triu(np.random.default_rng(0).integers(0, 100, size=(2, 14, 14)), 1)
    return bm.solve(bm.QAP(A + A.T, B + B.T), "branch-and-bound", rng=0)


def shuffling(demo: Demo) -> Axes:
    """What pairings cost that are the true one but for a share of their pairs."""
    problem, rng, n = (
        bm.GromovWasserstein().problem(demo.source, demo.target),
        np.random.default_rng(0),
        len(demo.truth),
    )
    moved = [0, *range(2, n + 1)]  # a single pair cannot be shuffled
    costs = [[problem.objective(partly_shuffled(demo.truth, k, rng)) for _ in range(200)] for k in moved]
    return bm.plot.shuffling(np.array(moved) / n, costs, measure="cost (Gromov-Wasserstein)")


def partly_shuffled(truth: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    chosen, pairing = rng.permutation(len(truth))[:k], truth.copy()
    pairing[chosen] = truth[np.roll(chosen, 1)]
    return pairing


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
