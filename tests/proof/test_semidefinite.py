"""The factor of a stage: whatever it is, it proves nothing false; files and renumbering keep it."""

from dataclasses import replace

import numpy as np
import pytest
from matrices import check_problem, check_tree, forged_stage, honest_stages, small_problem
from strategies import optimum, random_problem, rng_of

import blindmatch as bm
from blindmatch.proof.certificate import Certificate, Node, Stage


def certificate_of(problem: bm.QAP, *stages: Stage) -> Certificate:
    return Certificate(problem.n, (Node(stages=stages),))


@pytest.mark.parametrize("seed", range(60))
def test_no_factor_proves_too_much(seed):
    check_problem(rng_of([7, seed]))


@pytest.mark.parametrize("seed", range(25))
def test_a_tree_of_factors_proves_the_optimum(seed):
    check_tree(rng_of([11, seed]))


def test_an_honest_factor_proves_what_level_one_cannot():
    """On random problems of seven items the relaxation is nearly always tight; a stage without its factor is not."""
    closed = 0
    for seed in range(6):
        problem = random_problem(seed, 7)
        stages = honest_stages(problem, 20)
        gap = optimum(problem) - bm.verify(problem, certificate_of(problem, *stages))
        plain = [replace(stage, factor=None) for stage in stages]
        assert bm.verify(problem, certificate_of(problem, *plain)) <= optimum(problem)
        closed += gap <= 1e-5 * problem.scale
    assert closed >= 4


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e121])
def test_numbers_out_of_range_are_refused(bad):
    problem = random_problem(0, 4)
    stage = forged_stage(rng_of(0), problem)
    factor = np.ones((17, 2))
    factor[2, 1] = bad
    with pytest.raises(ValueError, match="the factor of a stage"):
        bm.verify(problem, certificate_of(problem, replace(stage, factor=factor)))


@pytest.mark.parametrize("shape", [(3, 3), (16, 2), (17, 18), (17,), (17, 2, 2)])
def test_wrong_shapes_are_refused(shape):
    stage = forged_stage(rng_of(0), random_problem(0, 4))
    with pytest.raises(ValueError, match="factor has dtype"):
        replace(stage, factor=np.zeros(shape))


def test_the_largest_and_the_smallest_numbers_prove_little_but_nothing_false():
    problem = random_problem(0, 4)
    plain = replace(forged_stage(rng_of(0), problem), factor=None)
    bound = bm.verify(problem, certificate_of(problem, plain))
    for size in (1e120, 1e-160, 5e-324):
        stage = replace(plain, factor=np.full((17, 17), size))
        proved = bm.verify(problem, certificate_of(problem, stage))
        assert proved <= optimum(problem)
        assert size > 1 or proved == pytest.approx(bound)


@pytest.mark.parametrize("seed", range(8))
def test_renumbering_and_files_keep_it(seed, tmp_path):
    rng = rng_of(seed)
    problem = small_problem(rng)
    n = problem.n
    stages = (*honest_stages(problem, 4), forged_stage(rng, problem))
    rows, columns = rng.permutation(n), rng.permutation(n)
    moved = Certificate(n, (Node(stages=tuple(stage.permuted(rows, columns) for stage in stages)),))
    back = moved.unshuffled(rows, columns)
    for stage, again in zip(stages, back.nodes[0].stages, strict=True):
        assert (stage.factor is None) == (again.factor is None)
        assert stage.factor is None or np.array_equal(stage.factor, again.factor)
    there, here = bm.verify(problem.permuted(rows, columns), moved), bm.verify(problem, back)
    best = optimum(problem)
    assert max(there, here) <= best + 1e-12 * problem.scale
    back.save(tmp_path / "proof.npz")
    assert bm.verify(problem, Certificate.load(tmp_path / "proof.npz")) == here


def test_files_of_earlier_versions_have_no_factor(tmp_path):
    problem = random_problem(0, 5)
    certificate = bm.solve(problem, "dual-ascent", rng=0).certificate
    certificate.save(tmp_path / "new.npz")
    with np.load(tmp_path / "new.npz") as file:
        old = {name: file[name] for name in file.files if not name.startswith("factor")}
    np.savez(tmp_path / "old.npz", **old)
    assert bm.verify(problem, Certificate.load(tmp_path / "old.npz")) == bm.verify(problem, certificate)


def test_a_file_with_a_factor_that_is_cut_is_refused(tmp_path):
    problem = random_problem(0, 5)
    certificate_of(problem, forged_stage(rng_of(0), problem)).save(tmp_path / "proof.npz")
    with np.load(tmp_path / "proof.npz") as file:
        arrays = {name: file[name] for name in file.files}
    for change in (
        {"factor": np.append(arrays["factor"], 0)},
        {"factor_stage": np.array([1])},
        {"factor_stage": np.array([-1])},
        {"factor_rank": np.array([-1])},
        {"factor_rank": np.array([2**62])},
        {"factor_rank": np.array([1, 1])},
    ):
        np.savez(tmp_path / "cut.npz", **{**arrays, **change})
        with pytest.raises(ValueError, match="not a blindmatch certificate"):
            Certificate.load(tmp_path / "cut.npz")


def test_a_factor_at_a_node_of_a_tree():
    """The root branches on a row; each child has a factor of its own smaller problem."""
    problem = random_problem(5, 6)
    nodes = [Node(line=(0, 2))]
    for j in range(6):
        rest, _, _ = problem.reduced([(2, j)])
        nodes.append(Node(0, (2, j), honest_stages(rest, 12)))
    bound = bm.verify(problem, Certificate(6, tuple(nodes)))
    assert optimum(problem) - 1e-3 * problem.scale <= bound <= optimum(problem)
