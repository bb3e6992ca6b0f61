"""What Python takes as a side of a match: paths, data frames, dictionaries, arrays; text, names and missing cells."""

import gzip
import json
import sqlite3
import warnings
from pathlib import Path

import numpy as np
import pytest

import blindmatch as bm
from blindmatch.geometry.column_scaling import UnitsWarning
from blindmatch.io.embeddings import as_embeddings, load_embeddings

pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(2)
X = RNG.normal(size=(12, 4)).round(6)
ORDER = RNG.permutation(12)
NAMES = [f"town {i}" for i in range(12)]
FRAME = pd.DataFrame(X, columns=list("abcd"), index=NAMES).assign(note="text")
OTHER = pd.DataFrame(X[ORDER] @ np.linalg.qr(RNG.normal(size=(4, 4)))[0], index=[NAMES[i] for i in ORDER])
RECORDS = [{"name": name, **dict(zip("abcd", row, strict=True))} for name, row in zip(NAMES, X.tolist(), strict=True)]


class OnlyDLPack:
    """An array of another library that numpy reads through DLPack alone."""

    def __init__(self, values: np.ndarray) -> None:
        self._values = values

    def __dlpack__(self, **options: object) -> object:
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._values.__dlpack_device__()


def polars(frame):
    return pytest.importorskip("polars").from_pandas(frame.rename_axis("name").reset_index())


def arrow(frame):
    return pytest.importorskip("pyarrow").Table.from_pandas(frame)


@pytest.mark.parametrize(
    "make", [lambda frame: frame, polars, arrow, lambda frame: RECORDS], ids=["pandas", "polars", "arrow", "records"]
)
def test_every_kind_of_table_gives_the_same_names_and_match(make) -> None:
    result = bm.match(make(FRAME), OTHER, rng=0)
    frame = result.to_frame()
    assert frame["source"].tolist() == frame["target"].tolist() == NAMES
    assert ORDER[frame["target_index"].to_numpy(int)].tolist() == frame["source_index"].tolist() == list(range(12))
    assert result.task.columns[0] == tuple("abcd")


def test_files_in_all_formats_give_the_same_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("t.csv")
    Path("t.csv.gz").write_bytes(gzip.compress(Path("t.csv").read_bytes()))
    FRAME.rename_axis("name").reset_index().to_json("t.jsonl", orient="records", lines=True)
    with sqlite3.connect("t.db") as base:
        FRAME.to_sql("towns", base, index_label="name")
        base.execute("CREATE TABLE empty (x REAL)")
    base.close()
    files = ["t.csv", Path("t.csv.gz"), "t.jsonl", "t.db:towns"]
    if pytest.importorskip("openpyxl"):
        with pd.ExcelWriter("t.xlsx") as book:
            FRAME.to_excel(book, sheet_name="First")
            OTHER.to_excel(book, sheet_name="Second one")
        files += ["t.xlsx:First"]
    for path in files:
        read = load_embeddings(path)
        np.testing.assert_allclose(read.values, X, atol=1e-9, err_msg=str(path))
        assert (read.names, read.ignored) == (tuple(NAMES), ("note (text)",)), path
    frame = bm.match("t.csv", "t.xlsx:Second one", rng=0).to_frame()
    assert frame["source"].tolist() == frame["target"].tolist()
    for path, message in (
        ("t.xlsx", r"t\.xlsx: it has 2 sheets \(First, Second one\); choose one, as in t\.xlsx:First"),
        ("t.xlsx:Frst", "did you mean 'First'"),
        ("t.db", r"it has 2 tables \(towns, empty\)"),
        ("t.db:empty", "'empty' has 0 rows"),
    ):
        with pytest.raises(ValueError, match=message):
            load_embeddings(path)


@pytest.mark.parametrize("name", ["t.xlsx", "t.db", "t.jsonl", "t.csv.gz"])
def test_broken_files_are_named(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"not what it seems \xff")
    with pytest.raises(ValueError, match=name.replace(".", r"\.")):
        load_embeddings(path)
    with pytest.raises(FileNotFoundError):
        load_embeddings(tmp_path / f"none-{name}")


def test_a_packed_table_may_not_unpack_to_an_absurd_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blindmatch.io.table_files.UNPACKED", 1000)
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"1,2\n" * 100_000))
    with pytest.raises(ValueError, match="unpacks to more than"):
        load_embeddings(path)


def test_json_lines_may_hold_an_embedding(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    rows = [{"name": name, "embedding": row, "year": 3} for name, row in zip(NAMES, X.tolist(), strict=True)]
    path.write_text("\n".join(map(json.dumps, rows)))
    read = load_embeddings(path)
    assert (read.values.tolist(), read.names, read.ignored) == (X.tolist(), tuple(NAMES), ("year (beside lists)",))
    path.write_text("[1, 2]\n")
    with pytest.raises(ValueError, match=r"line 1 holds \[1, 2\]; expected an object"):
        load_embeddings(path)


def test_kinds_of_cells_in_a_frame() -> None:
    frame = pd.DataFrame(
        {
            "day": pd.to_datetime(["1970-01-02", "1970-01-11"]),
            "open": [True, False],
            "kind": pd.Categorical(["a", "b"]),
            "count": pd.array([1, 2], dtype="Int64"),
            "people": ["2,321,305", "12,500"],
        }
    )
    read = as_embeddings(frame, "source")
    assert read.columns == ("day", "open", "count", "people")
    assert read.values.tolist() == [[1, 1, 1, 2321305], [10, 0, 2, 12500]]


def test_arrays_of_other_libraries_and_of_names() -> None:
    given = X.copy()
    result = bm.match(OnlyDLPack(given), X[ORDER], source_names=np.array(NAMES), rng=0)
    assert result.to_frame()["source"].tolist() == NAMES
    assert (given == X).all()
    with pytest.raises(ValueError, match=r"source holds text \('town 0'\); expected real numbers"):
        bm.match(np.array(NAMES), X)
    with pytest.raises(ValueError, match=r"source holds \{'a': \[1, 2\]\}; expected real numbers"):
        bm.match({"a": [1, 2]}, X)
    with pytest.raises(ValueError, match="source holds None; expected real numbers"):
        bm.match(np.array([[1, None], [2, 3]], dtype=object), X)
    with pytest.raises(ValueError, match=r"source: row 1, column 'a': inf is not a finite number"):
        bm.match(pd.DataFrame({"a": [1, np.inf], "b": [3, 4]}), X)


def test_a_lazy_frame_is_read_without_a_warning() -> None:
    lazy = pytest.importorskip("polars").DataFrame({"name": NAMES, "a": X[:, 0], "b": X[:, 1]}).lazy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = as_embeddings(lazy, "source")
    assert read.names == tuple(NAMES)
    assert read.columns == ("a", "b")


def test_a_warning_names_the_column_and_a_note_what_was_left_out() -> None:
    heavy = FRAME.assign(people=RNG.normal(size=12) * 1e6)
    with pytest.warns(UnitsWarning, match="column 'people' of the source"):
        result = bm.match(heavy, OTHER, rng=0)
    assert "source: left out note (text)" in result.notes
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bm.match(heavy, OTHER, scale="auto", rng=0)


def damaged():
    frame = FRAME.copy()
    frame.iloc[3, 1] = np.nan
    return frame


def test_missing_cells_are_refused_with_their_number_and_place() -> None:
    message = r"^source: 1 of 48 cells is missing, the first in row 3, column 'b'; fill it in, or use missing='drop'"
    with pytest.raises(ValueError, match=message):
        bm.match(damaged(), OTHER)
    with pytest.raises(ValueError, match=r"^source: 1 of 48 cells is missing, the first at \[3, 1\]; fill it in"):
        bm.match(damaged()[list("abcd")].to_numpy(), OTHER)
    with pytest.raises(ValueError, match="missing='medain' is not known; did you mean 'median'"):
        bm.match(damaged(), OTHER, missing="medain")
    with pytest.raises(ValueError, match="kernels are relations already"):
        bm.match(kernels=(X @ X.T, X @ X.T), missing="median")


@pytest.mark.parametrize("rule", ["drop", "median", "distance"])
def test_missing_cells_are_treated_as_asked(rule: str) -> None:
    result = bm.match(damaged(), OTHER, missing=rule, rng=0)
    frame = result.to_frame()
    assert any("1 of 48 cells is missing" in note for note in result.notes)
    assert ("town 3" in set(frame["source"])) == (rule != "drop")
    assert (frame["source"] == frame["target"]).sum() >= 10
    bare = bm.match(damaged()[list("abcd")].to_numpy(), OTHER, missing=rule, rng=0)
    assert bare.cost == pytest.approx(result.cost)


def test_distances_over_known_cells_are_those_of_scikit_learn() -> None:
    from sklearn.metrics.pairwise import nan_euclidean_distances

    values = damaged()[list("abcd")].to_numpy()
    notes = bm.Task(values, X, missing="distance", scale="columns").table_notes
    assert notes[-2:] == ("source: scaled: z-scores", "target: scaled: z-scores")
    task = bm.Task(values, X, missing="distance")
    np.testing.assert_allclose(task.relations[0], nan_euclidean_distances(values))
    np.testing.assert_allclose(task.relations[1], bm.Task(X, X).relations[0])
    nothing = np.array([[1.0, np.nan], [np.nan, 2.0], [1.0, 2.0]])
    with pytest.raises(ValueError, match="source: rows 0 and 1 have no filled cell in common"):
        bm.Task(nothing, X, missing="distance")
    with pytest.raises(ValueError, match="missing='distance' measures Euclidean distances"):
        bm.Task(values, X, missing="distance", metric="cosine")


def test_gower_uses_columns_of_text(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "name": [f"item {i}" for i in range(20)],
            "size": rng.normal(size=20),
            "colour": rng.choice(["red", "green", "blue"], 20),
            "shape": rng.choice(["round", "flat", "long", None], 20),
            "class": rng.choice(["p", "q"], 20),
        }
    )
    task = bm.Task(frame, frame, metric="gower")
    assert task.columns[0] == ("size", "colour", "shape")
    share = abs(frame["size"][0] - frame["size"][1]) / np.ptp(frame["size"])
    both = [share, frame["colour"][0] != frame["colour"][1]]
    both += [] if frame["shape"][:2].isna().any() else [frame["shape"][0] != frame["shape"][1]]
    assert task.relations[0][0, 1] == pytest.approx(np.mean(both))
    order = rng.permutation(20)
    renamed = frame.iloc[order].replace({"red": "rot", "green": "gruen", "blue": "blau"})
    found = bm.match(frame, renamed, metric="gower", rng=0)
    assert (found.to_frame()["source"] == found.to_frame()["target"]).mean() > 0.8
    again = bm.load(found.save(tmp_path / "m.npz"))
    assert again.cost == pytest.approx(found.cost)
    with pytest.raises(ValueError, match="metric='gower' is for tables"):
        bm.GromovWasserstein(metric="gower")
