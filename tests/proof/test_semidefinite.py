"""The symmetric matrix of a stage: whatever it is, it proves nothing false; files and renumbering keep it."""

from dataclasses import replace

import numpy as np
import pytest
from matrices import check_problem, check_tree, exact_form, forged_stage, honest_stages, small_problem
from strategies import all_costs, optimum, random_problem, rng_of

import blindmatch as bm
from blindmatch.proof.certificate import Certificate, Node, Stage
from blindmatch.proof.semidefinite import lack, semidefinite_term


def certificate_of(problem: bm.QAP, *stages: Stage) -> Certificate:
    return Certificate(problem.n, (Node(stages=stages),))


@pytest.mark.parametrize("seed", range(60))
def test_no_matrix_proves_too_much(seed):
    check_problem(rng_of([7, seed]))


@pytest.mark.parametrize("seed", range(25))
def test_a_tree_of_matrices_proves_the_optimum(seed):
    check_tree(rng_of([11, seed]))


def test_an_honest_matrix_proves_what_level_one_cannot():
    """On random problems of seven items the relaxation is nearly always tight; a stage without its matrix is not."""
    closed = 0
    for seed in range(6):
        problem = random_problem(seed, 7)
        stages = honest_stages(problem, 20)
        gap = optimum(problem) - bm.verify(problem, certificate_of(problem, *stages))
        plain = [replace(stage, matrix=None) for stage in stages]
        assert bm.verify(problem, certificate_of(problem, *plain)) <= optimum(problem)
        closed += gap <= 1e-5 * problem.scale
    assert closed >= 4


def test_what_is_missing_is_paid_for():
    rng = rng_of(0)
    M = rng.standard_normal((30, 30))
    G = M @ M.T
    assert 0 <= lack(G) < 1e-9
    least = np.linalg.eigvalsh(M + M.T)[0]
    assert -least <= lack(M + M.T) <= -least * (1 + 1e-6)
    assert lack(np.zeros((4, 4))) < 1e-12


def test_a_singular_matrix_is_nearly_free():
    """W = cc' is positive semidefinite of rank one, and zero at the permutations where c'y is."""
    problem = random_problem(3, 6)
    c = rng_of(1).standard_normal(37)
    forbidden = np.zeros((6, 6), dtype=bool)
    term = semidefinite_term(np.outer(c, c), forbidden, forbidden)
    assert term is not None
    assert term.deficit < 1e-9
    for p in all_costs(problem)[0][::50]:
        assert exact_form(term, p, 6) >= -term.deficit


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_numbers_out_of_range_are_refused(bad):
    problem = random_problem(0, 4)
    stage = forged_stage(rng_of(0), problem)
    matrix = stage.matrix.astype(np.float64)
    matrix[2, 2] = bad
    with pytest.raises(ValueError, match="the matrix of a stage"):
        bm.verify(problem, certificate_of(problem, replace(stage, matrix=matrix)))


def test_a_matrix_that_is_not_symmetric_is_refused():
    problem = random_problem(0, 4)
    stage = forged_stage(rng_of(0), problem)
    matrix = stage.matrix.astype(np.float64)
    matrix[2, 3] += 1.0
    with pytest.raises(ValueError, match="not symmetric"):
        bm.verify(problem, certificate_of(problem, replace(stage, matrix=matrix)))


def test_the_wrong_size_is_refused():
    stage = forged_stage(rng_of(0), random_problem(0, 4))
    with pytest.raises(ValueError, match="matrix has dtype"):
        replace(stage, matrix=np.zeros((3, 3)))


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
        assert (stage.matrix is None) == (again.matrix is None)
        assert stage.matrix is None or np.array_equal(stage.matrix, again.matrix)
    there, here = bm.verify(problem.permuted(rows, columns), moved), bm.verify(problem, back)
    best = optimum(problem)
    assert max(there, here) <= best + 1e-12 * problem.scale
    back.save(tmp_path / "proof.npz")
    assert bm.verify(problem, Certificate.load(tmp_path / "proof.npz")) == here


def test_files_of_earlier_versions_have_no_matrix(tmp_path):
    problem = random_problem(0, 5)
    certificate = bm.solve(problem, "dual-ascent", rng=0).certificate
    certificate.save(tmp_path / "new.npz")
    with np.load(tmp_path / "new.npz") as file:
        old = {name: file[name] for name in file.files if not name.startswith("matrix")}
    np.savez(tmp_path / "old.npz", **old)
    assert bm.verify(problem, Certificate.load(tmp_path / "old.npz")) == bm.verify(problem, certificate)


def test_a_file_with_a_matrix_that_is_cut_is_refused(tmp_path):
    problem = random_problem(0, 5)
    certificate_of(problem, forged_stage(rng_of(0), problem)).save(tmp_path / "proof.npz")
    with np.load(tmp_path / "proof.npz") as file:
        arrays = {name: file[name] for name in file.files}
    for change in (
        {"matrix": arrays["matrix"][:-1]},
        {"matrix_stage": np.array([1])},
        {"matrix_stage": np.array([-1])},
    ):
        np.savez(tmp_path / "cut.npz", **{**arrays, **change})
        with pytest.raises(ValueError, match="not a blindmatch certificate"):
            Certificate.load(tmp_path / "cut.npz")


def test_a_matrix_at_a_node_of_a_tree():
    """The root branches on a row; each child has a matrix of its own smaller problem."""
    problem = random_problem(5, 6)
    nodes = [Node(line=(0, 2))]
    for j in range(6):
        rest, _, _ = problem.reduced([(2, j)])
        nodes.append(Node(0, (2, j), honest_stages(rest, 12)))
    bound = bm.verify(problem, Certificate(6, tuple(nodes)))
    assert optimum(problem) - 1e-3 * problem.scale <= bound <= optimum(problem)
