"""Checkpoints that were damaged, or forged with a checksum that is right: refused, or the result is right."""

import os
import struct
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from fuzz.mutations import broken
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import blindmatch as bm
from blindmatch.solvers.base import Budget, Proof
from blindmatch.solvers.branch_and_bound import BranchAndBound

EXAMPLES = int(os.environ.get("BLINDMATCH_FUZZ", "40"))
MAGIC = b"blindmatch tree 1\n"
HEAD = len(MAGIC) + 24  # then the problem's fingerprint, the length and the checksum
many = settings(
    max_examples=EXAMPLES,
    derandomize=EXAMPLES <= 100,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


def problem() -> bm.QAP:
    """Unrelated sides of nine items: a tree of nine nodes."""
    rng = np.random.default_rng(3)
    A, B = np.triu(rng.integers(0, 100, size=(2, 9, 9)), 1).astype(float)
    return bm.QAP(A + A.T, B + B.T)


@cache
def optimum() -> float:
    return bm.solve(problem(), "brute-force", rng=0).cost


@cache
def checkpoints() -> tuple[bytes, ...]:
    """States of the same run: in the middle of the root, with open nodes, and at its end."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.tree"
        solver = BranchAndBound(checkpoint=path, checkpoint_interval=1e-9)
        for stop_after in range(1, 100):
            calls = []

            def stop(progress, calls=calls, stop_after=stop_after):
                calls.append(progress)
                if len(calls) >= stop_after:
                    raise KeyboardInterrupt

            solver(problem(), budget=Budget(threads=1, callback=stop), rng=np.random.default_rng(0))
            if path.exists():
                found.append(path.read_bytes())
                path.unlink()
            if len(calls) < stop_after:
                break
    return tuple(dict.fromkeys([found[0], *found[-3:]]))


def checksum(content: bytes) -> int:
    value = 14695981039346656037
    for byte in content:
        value = (value ^ byte) * 1099511628211 % 2**64
    return value


def sealed(content: bytes) -> bytes:
    """The same content with a length and a checksum that fit it."""
    body = content[HEAD:]
    return content[: len(MAGIC) + 8] + struct.pack("<QQ", len(body), checksum(body)) + body


def go_on(content: bytes, path: Path) -> bool:
    """Whether a run takes a checkpoint; then its result is right. If not, the file is named and left as it is."""
    path.write_bytes(content)
    try:
        outcome = BranchAndBound(checkpoint=path)(problem(), budget=Budget(10.0, 1), rng=np.random.default_rng(0))
    except ValueError as error:
        message = str(error)
        outcome = None
    if outcome is None:
        assert str(path) in message
        assert path.read_bytes() == content
        return False
    assert problem().objective(outcome.permutation) >= optimum()
    proof = Proof.of(outcome.certificate)
    if proof is not None:
        assert bm.verify(problem(), proof.make(None)) <= optimum()
    return True


@pytest.mark.slow
def test_sound_checkpoints_are_taken(tmp_path: Path) -> None:
    assert len(checkpoints()) >= 3
    for content in checkpoints():
        assert sealed(content) == content
        assert go_on(content, tmp_path / "run.tree")


def test_damaged_checkpoints(tmp_path: Path) -> None:
    @many
    @given(st.sampled_from(checkpoints()).flatmap(broken))
    def run(content: bytes) -> None:
        taken = go_on(content, tmp_path / "run.tree")
        assert not taken or content in checkpoints()

    run()


def test_forged_checkpoints(tmp_path: Path) -> None:
    """What no checksum finds: every index and every size in the file is checked before it is used."""

    def forged(content: bytes) -> st.SearchStrategy[bytes]:
        return broken(content[HEAD:]).map(lambda body: sealed(content[:HEAD] + body))

    @many
    @given(st.sampled_from(checkpoints()).flatmap(forged))
    def run(content: bytes) -> None:
        go_on(content, tmp_path / "run.tree")

    run()


@pytest.mark.parametrize("size", [0, 10, len(MAGIC), len(MAGIC) + 20, HEAD, HEAD + 1])
def test_cut_to(size: int, tmp_path: Path) -> None:
    assert not go_on(checkpoints()[0][:size], tmp_path / "run.tree")
