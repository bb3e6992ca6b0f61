"""The command in this process, and files for it."""

import json
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from blindmatch.cli import main

PROBLEM = "4\n\n0 1 2 3\n1 0 1 2\n2 1 0 1\n3 2 1 0\n\n0 5 2 4\n5 0 3 0\n2 3 0 1\n4 0 1 0\n"


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict:
        return json.loads(self.out)


@pytest.fixture
def run(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch):
    """Run the command in this process: exit code, stdout and stderr."""
    monkeypatch.setenv("NO_COLOR", "1")

    def run_in_process(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["blindmatch", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return Done(ended.value.code or 0, *capsys.readouterr())

    return run_in_process


@pytest.fixture
def hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """Two files with the same points, rotated and in another order, and a problem; returns the hidden match."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    points = rng.normal(size=(9, 5))
    order = rng.permutation(9)
    np.save("a.npy", points)
    rotated = points[order] @ np.linalg.qr(rng.normal(size=(5, 5)))[0]
    np.save("b.npy", rotated)
    np.savez("named_a.npz", embeddings=points, names=[f"thing {i}" for i in range(9)])
    np.savez("named_b.npz", embeddings=rotated, names=[f"chose {i}" for i in order])
    Path("p.dat").write_text(PROBLEM)
    return np.argsort(order)
