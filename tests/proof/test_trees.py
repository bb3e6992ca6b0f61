"""The checker on proof trees: children that cover a line, broken trees, forced pairs."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from proofs import branching_certificate, exact_optimum, random_stage, solved
from strategies import KINDS, optimum, problems, random_problem, rng_of, seeds, slack

import blindmatch as bm
from blindmatch.proof.certificate import COLUMN, ROW, Certificate, Node


@given(problems(min_size=2, max_size=5), seeds, st.integers(1, 3), st.sampled_from(["f2", "f4", "f8"]))
@settings(max_examples=50)
def test_proof_trees_prove_nothing_false(problem, seed, depth, dtype):
    certificate = branching_certificate(problem, rng_of(seed), depth=depth, dtype=np.dtype(dtype))
    bound = bm.verify(problem, certificate)
    assert math.isfinite(bound)
    assert Fraction(bound) <= exact_optimum(problem)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("integer", [True, False])
def test_a_full_tree_proves_the_optimum(kind, integer):
    for n in (1, 2, 3, 4, 5):
        problem = random_problem(n, n, kind, integer=integer, linear=True)
        bound = bm.verify(problem, branching_certificate(problem, rng_of(0), depth=n))
        assert Fraction(bound) <= exact_optimum(problem)
        assert bound == pytest.approx(optimum(problem), abs=1e-13 * problem.scale)
        assert not integer or n == 1 or bound == optimum(problem)


def test_branching_on_six_items():
    problem = random_problem(3, 6, linear=True)
    root, two = (bm.verify(problem, branching_certificate(problem, rng_of(0), depth=d)) for d in (0, 3))
    assert root < two <= optimum(problem) + slack(problem)


@pytest.mark.parametrize("gone", range(5))
def test_leaving_out_a_child_destroys_the_bound(gone):
    problem = random_problem(1, 4)
    whole, broken = (
        bm.verify(problem, strip(branching_certificate(problem, rng_of(0), depth=3, leave_out=which)))
        for which in (None, gone)
    )
    assert math.isfinite(whole)
    assert broken == -math.inf


def strip(certificate):
    """The same tree with duals at the leaves alone, so that every leaf counts."""
    nodes = [replace(node, stages=() if node.line is not None else node.stages) for node in certificate.nodes]
    return replace(certificate, nodes=tuple(nodes))


def test_children_that_try_other_pairs_do_not_count():
    problem = random_problem(1, 3)
    stage = random_stage(rng_of(0), 2)
    for wrong in ((0, 0), (1, 1), (2, 0)):
        nodes = [Node(line=(ROW, 0)), Node(0, (0, 1), (stage,)), Node(0, (0, 2), (stage,)), Node(0, wrong, (stage,))]
        assert (bm.verify(problem, Certificate(3, tuple(nodes))) == -math.inf) == (wrong != (0, 0))


BROKEN_TREES = {
    "no nodes": (),
    "root with a parent": (Node(parent=0),),
    "root with a pair": (Node(pair=(0, 0)),),
    "negative parent": (Node(line=(ROW, 0)), Node(parent=-2, pair=(0, 0))),
    "orphan": (Node(line=(ROW, 0)), Node(parent=-1, pair=(0, 0))),
    "its own parent": (Node(line=(ROW, 0)), Node(parent=1, pair=(0, 0))),
    "later parent": (Node(line=(ROW, 0)), Node(parent=2, pair=(0, 0)), Node(parent=0, pair=(0, 1))),
    "child without a pair": (Node(line=(ROW, 0)), Node(parent=0)),
    "pair out of range": (Node(line=(ROW, 0)), Node(parent=0, pair=(0, 7))),
    "pair used twice": (Node(line=(ROW, 0)), Node(0, (0, 0), line=(ROW, 1)), Node(1, (0, 1))),
    "line out of range": (Node(line=(ROW, 9)),),
    "line of no side": (Node(line=(5, 0)),),
    "line that is taken": (Node(line=(ROW, 0)), Node(0, (0, 0), line=(COLUMN, 0))),
    "stage of another size": (Node(stages=(random_stage(rng_of(0), 2),)),),
}


@pytest.mark.parametrize("nodes", BROKEN_TREES.values(), ids=BROKEN_TREES.keys())
def test_broken_trees_are_refused(nodes):
    with pytest.raises(ValueError, match=r"certificate|pairs|permutation"):
        bm.verify(random_problem(0, 3), Certificate(3, nodes))


def test_a_certificate_of_another_size_is_refused():
    with pytest.raises(ValueError, match=r"^certificate is for n=3, the problem has n=4"):
        bm.verify(random_problem(0, 4), Certificate(3))


def test_a_certificate_of_another_problem_still_proves_a_true_bound():
    for seed in range(20):
        certificate, _ = solved(random_problem(seed, 5), max_sweeps=3)
        other = random_problem(seed + 1, 5)
        assert bm.verify(other, certificate) <= optimum(other) + slack(other)


def test_an_empty_certificate_proves_nothing():
    assert bm.verify(random_problem(0, 3), Certificate(3)) == -math.inf


@pytest.mark.parametrize("forced", [((0, 0),), ((0, 1), (1, 0)), ((3, 3),), ((0, 9),), ((-1, 0),), ((0, 2), (0, 2))])
def test_forged_forced_pairs_are_refused(forced):
    free = random_problem(0, 4)
    known = free.with_known_pairs([(0, 2)])
    for problem in (free, known):
        with pytest.raises(ValueError, match=r"^certificate: the pair .* is not (allowed|forced)"):
            bm.verify(problem, Certificate(4, (Node(),), forced))


def test_forced_pairs_count_in_their_order():
    """Only (0, 0) is forced at first; it makes (1, 1) the only choice of row 1."""
    mask = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]], dtype=bool)
    problem = bm.QAP(rng_of(0).random((3, 3)), rng_of(1).random((3, 3)), forbidden=mask)
    everything = Certificate(3, (Node(),), ((0, 0), (1, 1), (2, 2)))
    assert bm.verify(problem, everything) == pytest.approx(problem.objective([0, 1, 2]), rel=1e-12)
    with pytest.raises(ValueError, match=r"the pair \(1, 1\) is not forced"):
        bm.verify(problem, Certificate(3, (Node(),), ((1, 1), (0, 0), (2, 2))))
