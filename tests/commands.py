"""Run commands in this process, on small files of embeddings."""

import json
from typing import Any

import numpy as np
from click.testing import Result
from strategies import rng_of
from typer.testing import CliRunner

from blindmatch.cli.app import app


def run(*arguments: object) -> Result:
    return CliRunner(env={"NO_COLOR": "1", "COLUMNS": "120"}).invoke(app, [str(word) for word in arguments])


def answer(*arguments: object) -> dict[str, Any]:
    """What a command prints as JSON."""
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def write_two_sets(source_names: str, target_names: str) -> tuple[np.ndarray, np.ndarray]:
    """a.npz and b.npz, ten named items each; the first two sources have no counterpart."""
    rng = rng_of(0)
    X = rng.standard_normal((10, 5))
    Y = X + 0.05 * rng.standard_normal((10, 5))
    X[:2] = rng.standard_normal((2, 5))
    for file, values, names in (("a.npz", X, source_names), ("b.npz", Y, target_names)):
        np.savez(file, embeddings=values, names=[f"{names}{i}" for i in range(10)])
    return X, Y
