"""The tree of semidefinite bounds inside branch and bound: its proof, its limits, and how it stops."""

import _thread
import time

import numpy as np
import pytest
from qaplib import needs_qaplib, qaplib
from sampled import sampled
from strategies import random_problem

import blindmatch as bm
from blindmatch.solvers.branch_and_bound import BranchAndBound
from blindmatch.solvers.semidefinite_node import NodeBounder, line_penalties

pytestmark = needs_qaplib


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch):
    """The tree of level 1 gives up at once."""
    monkeypatch.setattr("blindmatch.solvers.strengthened._LOOK_NODES", 0.0)
    monkeypatch.setattr("blindmatch.solvers.strengthened._LOOK_SHARE", 0.0)


def test_its_proof_is_checked_from_a_file(tmp_path):
    problem = qaplib("nug12")
    result = bm.solve(problem, BranchAndBound(), rng=0)
    assert (result.status, result.cost, result.lower_bound) == ("optimal", 578, 578)
    nodes = result.certificate.nodes
    assert f"semidefinite bound at {len(nodes)} nodes" in result.message
    assert any(stage.factor is not None for node in nodes[1:] for stage in node.stages)
    assert any(node.skipped for node in nodes)  # the symmetries of the grid are used
    result.certificate.save(tmp_path / "proof.npz")
    assert bm.verify(problem, bm.Certificate.load(tmp_path / "proof.npz")) == 578
    plain = bm.solve(problem, BranchAndBound(semidefinite=False), rng=0)
    assert plain.cost == 578
    assert len(plain.certificate.nodes) > 3 * len(nodes)
    assert all(stage.factor is None for node in plain.certificate.nodes for stage in node.stages)


@pytest.mark.slow
def test_the_number_of_threads_changes_nothing():
    problem = qaplib("rou12")
    one, two = (bm.solve(problem, BranchAndBound(), rng=0, threads=threads) for threads in (1, 2))
    assert one.status == "optimal"
    assert one.message == two.message
    assert np.array_equal(one.permutation, two.permutation)
    assert one.certificate.nbytes == two.certificate.nbytes


def test_lines_of_the_more_uneven_side_are_preferred():
    A, B = qaplib("nug12").factors[0]  # distances on a grid, and flows, most of which are small
    rows, columns = line_penalties(bm.QAP(A, B))
    assert (columns == 1.0).all()
    assert (rows == rows[0]).all()
    assert rows[0] > 1
    assert np.array_equal(line_penalties(bm.QAP(B, A)), (columns, rows))
    assert np.array_equal(line_penalties(bm.QAP(A, A)), np.ones((2, 12)))


def test_items_without_relations_are_placed_last():
    A, B = qaplib("nug12").factors[0]
    A = np.where(np.arange(12) % 3 == 0, 0, A) * (np.arange(12) % 3 > 0)[:, None]
    rows, _ = line_penalties(bm.QAP(A, B))
    assert np.array_equal(rows > rows.min(), np.arange(12) % 3 == 0)


def test_a_proof_that_is_too_large_is_dropped():
    problem = qaplib("nug12")
    result = bm.solve(problem, BranchAndBound(proof_limit=100_000), rng=0)
    assert (result.status, result.lower_bound, result.certificate) == ("optimal", 578, None)
    assert "exceeded proof_limit=100000 bytes" in result.message


def test_phases_and_ctrl_c(monkeypatch):
    """Ctrl-C in the tree keeps the match, and a bound no worse than nothing; its proof is what was done."""
    # One node at a time: a whole wave may close the tree before the first report, depending on the last digits.
    monkeypatch.setattr("blindmatch.solvers.semidefinite_tree._WAVE", 1)
    problem, phases = qaplib("nug12"), []

    def callback(progress):
        phases.append(progress.phase)
        if progress.phase == "semidefinite tree":
            raise KeyboardInterrupt

    result = bm.solve(problem, BranchAndBound(), rng=0, callback=callback)
    assert list(dict.fromkeys(phases)) == ["search", "root", "tree", "semidefinite bound", "semidefinite tree"]
    assert result.status == "interrupted"
    assert result.lower_bound <= 578 <= result.cost
    assert 560 <= bm.verify(problem, result.certificate) <= 578


@pytest.mark.parametrize("proof_limit", [0, 1 << 30])
def test_ctrl_c_in_the_middle_of_nodes_closes_nothing(monkeypatch, proof_limit):
    """The nodes that were being bounded are open, whether the proof is kept or dropped."""
    bound = NodeBounder.child

    def pressed(*arguments):
        _thread.interrupt_main()
        time.sleep(0.05)
        return bound(*arguments)

    monkeypatch.setattr(NodeBounder, "child", pressed)
    result = bm.solve(qaplib("nug12"), BranchAndBound(proof_limit=proof_limit), rng=0, threads=1)
    assert result.status == "interrupted"
    assert result.lower_bound < 578 <= result.cost


@sampled("scale", [1e80, 1e-90])
def test_very_large_and_very_small_costs(scale):
    plain = random_problem(0, 12, "symmetric", integer=True)
    (A, B), *_ = plain.factors
    result = bm.solve(bm.QAP(scale * A, scale * B), BranchAndBound(), rng=0)
    assert result.status == "optimal"
    assert "semidefinite" in result.message
    assert plain.objective(result.permutation) == bm.solve(plain, BranchAndBound(semidefinite=False), rng=0).cost


@sampled("kind", ["asymmetric", "symmetric", "sum"])
def test_other_kinds_of_problems(kind):
    """A linear term, forbidden pairs, two factor pairs: level 1 and the tree of semidefinite bounds agree."""
    seed = ("symmetric", "asymmetric", "sum").index(kind)
    problem = random_problem(seed, 12, kind, integer=True, linear=True, forbidden=0.2)
    result = bm.solve(problem, BranchAndBound(), rng=0)
    assert result.status == "optimal"
    assert result.cost == bm.solve(problem, BranchAndBound(semidefinite=False), rng=0).cost
    assert bm.verify(problem, result.certificate) == result.cost
