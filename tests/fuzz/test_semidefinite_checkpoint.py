"""Checkpoints of the semidefinite tree with records that were forged: refused, or the bound is true."""

import os
import tempfile
from functools import cache
from pathlib import Path

import pytest
from fuzz.mutations import broken, forged
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from solvers.test_semidefinite_checkpoint import TREE, records, sealed, solved, without_delay
from solvers.test_semidefinite_shared import OPTIMUM

import blindmatch as bm

EXAMPLES = int(os.environ.get("BLINDMATCH_FUZZ", "40"))


many = settings(
    max_examples=EXAMPLES,
    derandomize=EXAMPLES <= 100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def stop(progress: bm.Progress) -> None:
    """Ctrl-C after the first nodes of the tree."""
    if progress.phase == TREE:
        raise KeyboardInterrupt


@cache
def checkpoint() -> bytes:
    """The file after the first nodes of the tree."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        without_delay(patch)
        path = Path(folder) / "run.tree"
        solved(path, callback=stop)
        return path.read_bytes()


@pytest.mark.slow
def test_forged_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_delay(monkeypatch)
    content = checkpoint()
    nodes = records(content)

    @many
    @given(st.integers(0, len(nodes) - 1).flatmap(lambda at: st.tuples(st.just(at), forged(nodes[at]))))
    def run(forgery: tuple[int, bytes]) -> None:
        at, record = forgery
        go_on(sealed(content, [record if index == at else arrays for index, arrays in enumerate(nodes)]), tmp_path)

    run()


@pytest.mark.slow
def test_damaged_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_delay(monkeypatch)

    @many
    @given(broken(checkpoint()))
    def run(content: bytes) -> None:
        go_on(content, tmp_path)

    run()


def go_on(content: bytes, folder: Path) -> None:
    """A run that takes the file has a true bound; one that does not names the file and leaves it as it is."""
    path, message = folder / "run.tree", ""
    path.write_bytes(content)
    try:
        result = solved(path, callback=stop)
    except ValueError as error:
        message = str(error)
    if message:
        assert str(path) in message
        assert path.read_bytes() == content
    else:
        assert result.lower_bound <= OPTIMUM <= result.cost
