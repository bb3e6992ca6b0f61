"""Certificates as files and as proofs that can be carried from one numbering to another."""

import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from proofs import branching_certificate, random_stage
from strategies import problems, random_problem, rng_of, seeds

import blindmatch as bm
from blindmatch.proof.certificate import COLUMN, ROW, Certificate, Node, Stage


def same(a, b):
    assert (a.size, a.forced, len(a.nodes)) == (b.size, b.forced, len(b.nodes))
    for x, y in zip(a.nodes, b.nodes, strict=True):
        assert (x.parent, x.pair, x.line, x.spectral) == (y.parent, y.pair, y.line, y.spectral)
        for s, t in zip(x.stages, y.stages, strict=True):
            for name in ("U", "V", "column_duals", "forbidden"):
                assert getattr(s, name).dtype == getattr(t, name).dtype
                assert np.array_equal(getattr(s, name), getattr(t, name), equal_nan=name != "forbidden")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_round_trip(tmp_path, dtype):
    problem = random_problem(1, 5)
    certificate = branching_certificate(problem, rng_of(0), dtype=dtype)
    path = tmp_path / "c.npz"
    certificate.save(path)
    loaded = Certificate.load(path)
    same(certificate, loaded)
    assert bm.verify(problem, loaded) == bm.verify(problem, certificate)
    assert [file.name for file in tmp_path.iterdir()] == ["c.npz"]


def test_round_trip_of_odd_certificates(tmp_path):
    nan = Stage(np.full((1, 1, 1), np.nan), np.full((1, 1, 1), np.inf), np.zeros(1), np.ones((1, 1), dtype=bool))
    for certificate in (
        Certificate(3),
        Certificate(2, (Node(line=(COLUMN, 1)), Node(0, (0, 1), (nan,)), Node(0, (1, 1), (nan, nan), (ROW, 0)))),
        Certificate(4, (Node(spectral=True),), ((2, 1), (0, 0))),
    ):
        certificate.save(tmp_path / "c.npz")
        same(certificate, Certificate.load(tmp_path / "c.npz"))


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "c.npz"
    Certificate(3).save(path)
    before = path.read_bytes()

    def broken(*_args, **_kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez_compressed", broken)
    with pytest.raises(OSError, match="disk full"):
        Certificate(4).save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["c.npz"]


class Evil:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


def test_no_pickle_is_ever_loaded(tmp_path):
    path = tmp_path / "evil.npz"
    np.savez(path, format=np.array([Evil()], dtype=object))
    with pytest.raises(ValueError, match=r"evil\.npz: not a blindmatch certificate"):
        Certificate.load(path)
    path.write_bytes(pickle.dumps([1, 2, 3]))
    with pytest.raises(ValueError, match=r"evil\.npz: not a blindmatch certificate"):
        Certificate.load(path)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(FileNotFoundError):
        Certificate.load(tmp_path / "missing.npz")
    with pytest.raises(OSError, match="directory"):
        Certificate.load(tmp_path)


def test_other_files_are_refused(tmp_path):
    np.save(tmp_path / "array.npy", np.ones(3))
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    (tmp_path / "empty.npz").write_bytes(b"")
    (tmp_path / "text.npz").write_text("hello")
    with zipfile.ZipFile(tmp_path / "zip.npz", "w") as archive:
        archive.writestr("format.npy", "not an array")
    for path in tmp_path.iterdir():
        with pytest.raises(ValueError, match=rf"{path.name}: not a blindmatch certificate"):
            Certificate.load(path)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "c.npz"
    problem = random_problem(1, 4)
    branching_certificate(problem, rng_of(0)).save(path)
    with np.load(path) as file:
        arrays = dict(file)
    return problem, path.read_bytes(), arrays


FORGERIES = {
    "format": lambda a: np.array("blindmatch certificate 99"),
    "size": lambda a: np.array([4, 4]),
    "forced": lambda a: np.zeros((1, 3), dtype=np.int64),
    "parent": lambda a: a[:-1],
    "pair": lambda a: a[:, :1],
    "line": lambda a: a[:-1],
    "stage_node": lambda a: a[:-1],
    "stage_size": lambda a: a + 1,
    "U": lambda a: a[:-1],
    "V": lambda a: a.reshape(1, -1),
    "column_duals": lambda a: np.array(["x"] * len(a)),
    "forbidden": lambda a: a[:-1],
}


@pytest.mark.parametrize("name", FORGERIES)
def test_fields_that_do_not_fit_are_refused(tmp_path, saved, name):
    arrays = dict(saved[2])
    arrays[name] = FORGERIES[name](arrays[name])
    path = tmp_path / "forged.npz"
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=r"forged\.npz: not a blindmatch certificate"):
        Certificate.load(path)
    del arrays[name]
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=r"forged\.npz: not a blindmatch certificate"):
        Certificate.load(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("stage_size", 10**6),
        ("stage_size", 2**22),
        ("stage_size", -3),
        ("U", np.array([object()], dtype=object)),
        ("U", np.ones(3, dtype=complex)),
        ("parent", np.zeros(0, dtype=np.int64)),
        ("fingerprint", np.array(["1.0"] * 7)),
        ("fingerprint", np.ones(7, dtype=complex)),
        ("fingerprint", np.ones((7, 1))),
        ("fingerprint", np.ones(65)),
        ("fingerprint", np.array(1.0)),
    ],
)
def test_hostile_numbers_are_refused(tmp_path, saved, name, value):
    arrays = dict(saved[2])
    arrays[name] = value if isinstance(value, np.ndarray) else np.full_like(arrays[name], value)
    path = tmp_path / "hostile.npz"
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=r"hostile\.npz: not a blindmatch certificate"):
        Certificate.load(path)


def test_truncated_files_are_refused(tmp_path, saved):
    path = tmp_path / "cut.npz"
    for length in np.linspace(0, len(saved[1]) - 1, 60).astype(int):
        path.write_bytes(saved[1][:length])
        with pytest.raises(ValueError, match=r"cut\.npz: not a blindmatch certificate"):
            Certificate.load(path)


def test_flipped_bits_are_refused_or_prove_nothing_false(tmp_path, saved):
    problem, data, _ = saved
    least = min(problem.objective(p) for p in np.array(list(np.ndindex(4, 4, 4, 4))) if len(set(p)) == 4)
    path = tmp_path / "flipped.npz"
    rng = rng_of(0)
    refused = 0
    for _ in range(150):
        damaged = bytearray(data)
        damaged[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            bound = bm.verify(problem, Certificate.load(path))
        except ValueError:
            refused += 1
        else:
            assert bound <= least
    assert refused > 75  # zip files carry checksums


@given(problems(min_size=2, max_size=5), seeds, st.booleans())
def test_unshuffled_proves_the_same(problem, seed, tree):
    rng = rng_of(seed)
    rows, columns = rng.permutation(problem.n), rng.permutation(problem.n)
    shuffled = problem.permuted(rows, columns)
    nodes = (
        branching_certificate(shuffled, rng)
        if tree
        else Certificate(problem.n, (Node(stages=(random_stage(rng, problem.n),)),))
    )
    expected = bm.verify(shuffled, nodes)
    assert bm.verify(problem, nodes.unshuffled(rows, columns)) == pytest.approx(expected, abs=1e-12 * problem.scale)


@given(problems(min_size=3, max_size=6), seeds)
def test_lifted_and_then_unshuffled_proves_the_same(problem, seed):
    rng = rng_of(seed)
    known = ((1, 2), (0, 1))
    fixed = problem.with_known_pairs(known)
    rest, rows, columns = fixed.reduced(known)
    certificate = branching_certificate(rest, rng)
    expected = bm.verify(rest, certificate)
    lifted = certificate.lifted(problem.n, known, rows, columns)
    margin = 1e-12 * problem.scale
    assert bm.verify(fixed, lifted) == pytest.approx(expected, abs=margin)
    # The lifted certificate belongs to a shuffled problem as well as any other does.
    back_rows, back_columns = rng.permutation(problem.n), rng.permutation(problem.n)
    original = fixed.permuted(np.argsort(back_rows), np.argsort(back_columns))
    assert bm.verify(original, lifted.unshuffled(back_rows, back_columns)) == pytest.approx(expected, abs=margin)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("U", np.zeros((3, 3, 1))),
        ("V", np.zeros((3, 3))),
        ("U", np.zeros((3, 3, 3), dtype=complex)),
        ("forbidden", np.zeros((1, 3), dtype=bool)),
        ("forbidden", np.zeros((3, 3))),
        ("column_duals", np.zeros((3, 1))),
    ],
)
def test_a_stage_of_wrong_shape_is_refused(name, value):
    arrays = {"U": np.zeros((3,) * 3), "V": np.zeros((3,) * 3), "column_duals": np.zeros(3), "forbidden": np.eye(3) > 1}
    with pytest.raises(ValueError, match=rf"^{name} has dtype"):
        Stage(**(arrays | {name: value}))


def test_nbytes_counts_the_duals():
    assert Certificate.from_duals(np.zeros((4, 4, 4)), np.zeros((4, 4, 4)), np.zeros(4)).nbytes == 2 * 64 * 8
