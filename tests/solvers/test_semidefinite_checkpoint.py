"""A run with the semidefinite bound that is stopped, killed and taken up again, from a file that may be forged."""

import io
import os
import signal
import struct
import subprocess
import sys
import zlib
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fuzz.mutations import npz
from sampled import sampled
from solvers.test_semidefinite_shared import OPTIMUM, hard_problem
from unreliable import unreliable_executors

import blindmatch as bm
from blindmatch.solvers import checkpoint, strengthened
from blindmatch.solvers.base import Budget
from blindmatch.solvers.branch_and_bound import BranchAndBound
from blindmatch.solvers.checkpoint import TreeFile
from blindmatch.solvers.semidefinite_node import NodeBounder, children_elsewhere
from blindmatch.solvers.strengthened import EarlierNodes
from blindmatch.solving.shuffled import Shuffled

BEGIN = len(checkpoint._MAGIC) + 32  # then the records
ROOT, TREE = "semidefinite bound", "semidefinite tree"


def without_delay(patch):
    """The tree of level 1 gives up at once, all nodes go to an executor, and nothing delays a write."""
    for name in ("_LOOK_NODES", "_LOOK_SHARE", "_HERE"):
        patch.setattr(strengthened, name, 0.0)
    patch.setattr(checkpoint, "_PAUSE", 0.0)
    patch.setattr(checkpoint, "_RATE", np.inf)


@pytest.fixture(autouse=True)
def _without_delay(monkeypatch):
    without_delay(monkeypatch)


def solved(path, interval=1e-9, problem=None, seed=0, callback=None, **options) -> bm.Result:
    solver = BranchAndBound(checkpoint=path, checkpoint_interval=interval, **options)
    return bm.solve(problem or hard_problem(), solver, rng=seed, threads=1, callback=callback)


@pytest.fixture(scope="module")
def states(tmp_path_factory) -> dict[str, list[bytes]]:
    """What a whole run wrote: one state a report, by phase."""
    path, found = tmp_path_factory.mktemp("states") / "run.tree", {ROOT: [], TREE: []}

    def look(progress):
        if progress.phase in found:
            found[progress.phase].append(path.read_bytes())

    with pytest.MonkeyPatch.context() as patch:
        without_delay(patch)
        check(solved(path, callback=look))
    assert not path.exists()  # nothing is left to go on with
    return found


def check(result: bm.Result) -> None:
    assert (result.status, result.cost, result.lower_bound) == ("optimal", OPTIMUM, OPTIMUM)
    assert bm.verify(hard_problem(), result.certificate) == OPTIMUM


def records(content: bytes) -> list[dict[str, np.ndarray]]:
    """The arrays of each record."""
    found, at = [], BEGIN
    while at < len(content):
        length, checksum = struct.unpack_from("<QI", content, at)
        record = content[at + 12 : at + 12 + length]
        assert (len(record), zlib.crc32(record)) == (length, checksum)
        found.append(dict(np.load(io.BytesIO(record))))
        at += 12 + length
    return found


def sealed(content: bytes, changed: list[dict[str, np.ndarray] | bytes]) -> bytes:
    """A file with other records, whose lengths and checksums are right."""
    pieces = [content[:BEGIN]]
    for arrays in changed:
        record = arrays if isinstance(arrays, bytes) else npz(arrays)
        pieces += [struct.pack("<QI", len(record), zlib.crc32(record)), record]
    return b"".join(pieces)


def test_nodes_are_appended_and_resumed(states, tmp_path, monkeypatch):
    path, (first, second, *_) = tmp_path / "run.tree", states[TREE]
    assert second.startswith(first)
    before = len(records(first))
    assert 1 < before < len(records(second))
    path.write_bytes(first)
    bounded, child = [], NodeBounder.child
    monkeypatch.setattr(NodeBounder, "child", lambda *arguments: bounded.append(arguments) or child(*arguments))
    result = solved(path)
    check(result)
    assert f"resumed with {before} nodes; semidefinite bound at {len(result.certificate.nodes)} nodes" in result.message
    assert len(bounded) == len(result.certificate.nodes) - before  # none of them again
    assert not path.exists()


def test_a_root_that_is_not_done_goes_on(states, tmp_path):
    path = tmp_path / "run.tree"
    path.write_bytes(states[ROOT][1])
    shuffled = Shuffled.of(hard_problem(), np.random.default_rng(0)).problem
    file = TreeFile(path, shuffled, 1.0)
    file.load()
    before = bm.verify(shuffled, bm.Certificate(shuffled.n, (replace(file.node(0), spectral=False),)))
    bounds = []
    result = solved(path, callback=lambda progress: bounds.append(progress.lower_bound))
    check(result)
    assert "resumed with 1 node" in result.message
    assert shuffled.round_up(bounds[0]) >= before > 0


def test_a_run_that_is_stopped_keeps_all_that_it_did(states, tmp_path):
    path = tmp_path / "run.tree"
    for phase in (ROOT, TREE):

        def stop(progress, phase=phase):
            if progress.phase == phase:
                raise KeyboardInterrupt

        result = solved(path, interval=1e9, callback=stop)
        assert result.status == "interrupted"
        assert result.lower_bound <= OPTIMUM <= result.cost
    assert len(records(path.read_bytes())) == len(result.certificate.nodes)


KILLED = """
import os, signal, sys
sys.path.insert(0, {tests!r})
import pytest
from solvers.test_semidefinite_checkpoint import solved, without_delay
without_delay(pytest.MonkeyPatch())
def kill(progress):
    if progress.phase == "semidefinite tree":
        os.kill(os.getpid(), {signal})
solved({path!r}, {interval}, callback=kill)
"""


@sampled("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_run_goes_on(tmp_path, how):
    path, interval = tmp_path / "run.tree", 1e-9 if how == signal.SIGKILL else 1e9
    tests = str(Path(__file__).parents[1])
    script = KILLED.format(tests=tests, path=str(path), signal=int(how), interval=interval)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == (-how if how == signal.SIGKILL else 128 + how), done.stderr
    assert len(records(path.read_bytes())) > 1
    result = solved(path)
    check(result)
    assert "resumed with" in result.message


def test_a_torn_end_is_dropped_and_overwritten(states, tmp_path):
    path, content = tmp_path / "run.tree", states[TREE][0]
    nodes = len(records(content))
    shuffled = Shuffled.of(hard_problem(), np.random.default_rng(0)).problem
    ends = [(content[:-1], 1), (content[:-1] + b"\1", 1), (content + b"\x07\0\0", 0), (content + bytes(40), 0)]
    for torn, lost in ends:
        path.write_bytes(torn)
        file = TreeFile(path, shuffled, 1.0)
        file.load()
        assert file.torn
        assert len(file) == nodes - lost
    path.write_bytes(content[:-1])

    def stop(progress):
        raise KeyboardInterrupt

    result = solved(path, callback=stop)
    assert f"resumed with {nodes - 1} nodes; the end of the checkpoint was incomplete" in result.message
    assert len(records(path.read_bytes())) > nodes - 1


def test_two_runs_do_not_mix_their_trees(states, tmp_path):
    """The run that notices the other one goes on without a checkpoint, and says so."""
    path, (first, second, *_) = tmp_path / "run.tree", states[TREE]
    path.write_bytes(first)

    def other(progress):
        path.write_bytes(second)  # another process has got further

    result = solved(path, callback=other)
    check(result)
    assert "was changed by another process" in result.message


def test_an_executor_takes_up_what_a_run_without_one_did(states, tmp_path):
    path = tmp_path / "run.tree"
    path.write_bytes(states[TREE][0])
    with ThreadPoolExecutor(2) as pool:
        check(solved(path, executor=pool))


@pytest.mark.slow
def test_a_run_takes_up_what_an_executor_did(tmp_path):
    path = tmp_path / "run.tree"

    def stop(number, nodes):
        if number > 2:
            raise CancelledError
        return nodes

    with unreliable_executors(children_elsewhere) as make, pytest.raises(CancelledError):
        solved(path, executor=make(stop))
    assert len(records(path.read_bytes())) > 1
    check(solved(path))


def test_foreign_files_are_refused_and_kept(states, tmp_path):
    path, content = tmp_path / "run.tree", states[TREE][0]
    path.write_bytes(content)
    A, B = hard_problem().factors[0]
    for options in ({"problem": bm.QAP(A, B)}, {"seed": 1}):
        with pytest.raises(ValueError, match=r"run\.tree belongs to another problem, or to the same one with another"):
            solved(path, **options)
    with pytest.raises(ValueError, match=r"run\.tree has a tree of the semidefinite bound: it needs semidefinite=True"):
        solved(path, semidefinite=False)
    assert path.read_bytes() == content
    for bad in (content[:40], content[:BEGIN], content[: BEGIN + 40]):
        path.write_bytes(bad)
        with pytest.raises(ValueError, match=r"run\.tree is damaged; delete it to begin anew$"):
            solved(path)
        assert path.read_bytes() == bad


def stronger(record: dict[str, np.ndarray]) -> None:
    record["factor"] = 1.0001 * record["factor"]
    record["U"] = record["U"] + 1
    record["column_duals"] = record["column_duals"] + 1000


def swapped(image: np.ndarray) -> np.ndarray:
    return np.array([[1, 0, *range(2, len(image))]])


FORGERIES = {
    "no such parent": lambda nodes: nodes[2].update(parent=np.array([2])),
    "a child twice": lambda nodes: nodes[2].update(nodes[1]),
    "off its line": lambda nodes: nodes[1].update(pair=np.full((1, 2), (nodes[0]["line"][0, 1] + 1) % 12)),
    "a second root": lambda nodes: nodes[1].update(parent=np.array([-1]), pair=np.array([[-1, -1]])),
    "a line that is fixed": lambda nodes: nodes[1].update(line=np.array([[0, nodes[1]["pair"][0, 0]]])),
    "a line beyond": lambda nodes: nodes[0].update(line=np.array([[7, 3]])),
    "a match that is none": lambda nodes: nodes[-1].update(incumbent=np.zeros(12, dtype=np.int64)),
    "a match of text": lambda nodes: nodes[-1].update(incumbent=np.array(["x"] * 12)),
    "duals of nothing": lambda nodes: nodes[1].update(U=nodes[1]["U"] * np.nan),
    "a stage of another size": lambda nodes: nodes[1].update(
        {name: nodes[0][name] for name in nodes[0] if name not in ("parent", "pair", "line")}
    ),
    "a symmetry": lambda nodes: nodes[0].update(
        symmetry_side=np.array([0]), symmetry_image=swapped(nodes[0]["incumbent"])
    ),
    "another n": lambda nodes: nodes[1].update(size=np.array(13)),
    "pickles": lambda nodes: nodes[1].update(U=np.array([{}], dtype=object)),
    "no number": lambda nodes: nodes[0].update(start_Y=nodes[0]["start_Y"] * np.nan),
    "a huge start": lambda nodes: nodes[0].update(start_Z=nodes[0]["start_Z"] * 0 + 1e30),
    "a start of another size": lambda nodes: nodes[0].update(start_allowed=np.ones((3, 3), dtype=bool)),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_records_are_refused(states, tmp_path, name):
    path, content = tmp_path / "run.tree", states[TREE][0]
    nodes = records(content)
    FORGERIES[name](nodes)
    path.write_bytes(sealed(content, nodes))
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"run\.tree is damaged; delete it to begin anew$"):
        solved(path)
    assert path.read_bytes() == before


@sampled("proof_limit", [0, 1 << 30])
def test_a_forged_proof_proves_nothing_that_is_false(states, tmp_path, proof_limit):
    """Duals that promise more, a tree that claims to be closed: also where the proof is dropped, and not checked."""
    path, content = tmp_path / "run.tree", states[TREE][1]
    nodes = records(content)
    for record in nodes:
        stronger(record)
        record["line"] = record["line"] if record is nodes[0] else np.array([[-1, -1]])
    nodes = [record for record in nodes if record["parent"] <= 0]
    path.write_bytes(sealed(content, nodes))
    result = solved(path, proof_limit=proof_limit)
    assert (result.status, result.cost) == ("optimal", OPTIMUM)
    assert OPTIMUM - 1 < result.lower_bound <= OPTIMUM
    assert (result.certificate is None) == (proof_limit == 0)


def test_a_time_limit_that_is_too_short_for_the_checkpoint(states, tmp_path, monkeypatch):
    path = tmp_path / "run.tree"
    path.write_bytes(states[TREE][1])
    read = EarlierNodes.read
    monkeypatch.setattr(
        EarlierNodes, "read", lambda self, problem, over: read(self, problem, lambda _: len(self.bounded) == 3)
    )
    monkeypatch.setattr("blindmatch.solvers.semidefinite_tree.SemidefiniteTree.out_of_time", True)
    result = solved(path)
    assert "the time was too short for more than 3 of them" in result.message
    assert len(result.certificate.nodes) == 3
    assert result.lower_bound < OPTIMUM <= result.cost
    assert path.read_bytes() == states[TREE][1]


def test_a_checkpoint_of_level_1_goes_on_with_level_1(tmp_path):
    problem, solver = hard_problem(), BranchAndBound(checkpoint=tmp_path / "run.tree")
    _, full = solver.tree(problem, Budget(threads=1), np.random.default_rng(0), node_limit=5)
    assert full
    outcome = solver(problem, budget=Budget(threads=1), rng=np.random.default_rng(0))
    assert outcome.status == "optimal"
    assert problem.objective(outcome.permutation) == OPTIMUM
    assert not any("semidefinite" in note for note in outcome.notes)


def test_a_full_disk_does_not_stop_the_run(states, tmp_path, monkeypatch):
    path = tmp_path / "run.tree"
    path.write_bytes(states[TREE][0])

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)

    def stop(progress):
        raise KeyboardInterrupt

    result = solved(path, callback=stop)
    assert f"cannot write the checkpoint {path}: No space left on device" in result.message
    assert path.read_bytes() == states[TREE][0]  # the last good one
