"""Tables of text and parquet: what is a number, what is a name, what is a title. Both kinds must agree."""

from pathlib import Path

import numpy as np
import pytest

from blindmatch.io.embeddings import load_embeddings

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

X = np.array([[0.5, -1.25, 2.0], [3.5, 0.25, -0.5], [1.5, 4.0, 0.125], [-2.5, 1.0, 0.75], [6.25, 5.5, -4.0]])
WORDS = ["ant", "bee", "cow", "doe", "elk"]
ROWS = [",".join(str(value) for value in row) for row in X]
NAMED = [f"{word},{row}" for word, row in zip(WORDS, ROWS, strict=True)]


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def frame(*, titles=("0", "1", "2"), index=None, index_name=None, **before):
    """A data frame of X with other columns before the numbers."""
    made = pd.concat([pd.DataFrame(before), pd.DataFrame(X, columns=list(titles))], axis=1)
    if index is not None:
        made.index = pd.Index(index, name=index_name)
    return made


IDS = [7, 3, 11, 2, 5]
LABELS = ["x", "y", "x", "x", "y"]
# name: the frame, whether its index is written, the names and the labels that are expected
FRAMES = {
    "numbers alone": (frame(), False, None, None),
    "numbers and index": (frame(), True, None, None),
    "name first": (frame(name=WORDS), False, WORDS, None),
    "name and index": (frame(name=WORDS), True, WORDS, None),
    "name and words as titles": (frame(titles="abc", name=WORDS), False, WORDS, None),
    "name over years": (frame(titles=("2019", "2020", "2021"), name=WORDS), False, WORDS, None),
    "years alone": (frame(titles=("2019", "2020", "2021")), False, None, None),
    "capitals": (frame(titles="abc", ID=IDS, Name=WORDS), False, WORDS, None),
    "name and id": (frame(titles="abc", name=WORDS, id=IDS), False, WORDS, None),
    "id and name": (frame(titles="abc", id=IDS, name=WORDS), False, WORDS, None),
    "id, name and index": (frame(id=IDS, name=WORDS), True, WORDS, None),
    "id alone": (frame(titles="abc", id=IDS), False, [str(i) for i in IDS], None),
    "names twice": (frame(titles="abc", names=WORDS, name=LABELS), False, WORDS, None),
    "word": (frame(word=WORDS), False, WORDS, None),
    "two columns of words": (frame(titles="abc", kind=LABELS, word=WORDS), False, WORDS, None),
    "label of words": (frame(titles="abc", label=WORDS), False, WORDS, WORDS),
    "label of words, not alone": (frame(titles="abc", id=IDS, label=WORDS), False, WORDS, WORDS),
    "a label for many": (frame(titles="abc", id=IDS, label=LABELS), False, [str(i) for i in IDS], LABELS),
    "a label for many, alone": (frame(titles="abc", label=LABELS), False, LABELS, LABELS),
    "label of numbers": (frame(titles="abc", label=IDS), False, None, IDS),
    "name and class": (frame(titles="abc", name=LABELS, **{"class": IDS}), False, LABELS, IDS),
    "a category": (frame(titles="abc", word=pd.Categorical(WORDS)), False, WORDS, None),
    "a name is missing": (
        frame(name=["ant", None, "cow", "doe", "elk"]),
        False,
        ["ant", "1", "cow", "doe", "elk"],
        None,
    ),
    "index of words": (frame(index=WORDS), True, WORDS, None),
    "index called name": (frame(titles="abc", index=WORDS, index_name="name"), True, WORDS, None),
    "index called so": (frame(titles="abc", index=WORDS, index_name="animal"), True, WORDS, None),
    "index with gaps": (frame(index=IDS), True, [str(i) for i in IDS], None),
    "index that counts": (frame(index=[0, 1, 2, 3, 4]), True, None, None),
    "index from five": (frame(index=range(5, 10)), True, ["5", "6", "7", "8", "9"], None),
    "index, numbers and name": (frame(index=IDS, name=WORDS), True, WORDS, None),
    "an index read as a column": (frame(**{"Unnamed: 0": range(5)}), True, None, None),
    "numbers beside numbered columns": (frame(year=[1990, 1991, 1992, 1993, 1994]), False, None, None),
}


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
@pytest.mark.parametrize("case", FRAMES)
def test_text_and_parquet_agree(case: str, kind: str) -> None:
    table, index, names, labels = FRAMES[case]
    if kind == "parquet":
        table.to_parquet("t.parquet", index=index)
    else:
        table.to_csv(f"t.{kind}", index=index, sep="\t" if kind == "tsv" else ",")
    loaded = load_embeddings(f"t.{kind}")
    np.testing.assert_array_equal(loaded.values, X)
    assert (None if loaded.names is None else list(loaded.names)) == names
    assert (None if loaded.labels is None else [str(label) for label in loaded.labels]) == (
        None if labels is None else [str(label) for label in labels]
    )


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        (NAMED, WORDS),
        (ROWS, None),
        (["word,0,1,2", *NAMED], WORDS),
        (["word,10,20,30", *NAMED], WORDS),
        (["name,0.5,1.0,1.5", *NAMED], WORDS),
        (["name,3,1,2", *NAMED], WORDS),
        (["0,1,2,name", *(f"{row},{word}" for word, row in zip(WORDS, ROWS, strict=True))], WORDS),
        ([f"{row},{word}" for word, row in zip(WORDS, ROWS, strict=True)], WORDS),  # names behind, no titles
        (
            ['"","a","b","c"', *(f'"{k + 1}",{row}' for k, row in enumerate(ROWS))],
            ["1", "2", "3", "4", "5"],
        ),  # as R does
        ([f"{k}-{word},{row}" for k, (word, row) in enumerate(zip(WORDS, ROWS, strict=True))], None),
    ],
)
def test_titles_or_an_item(lines: list[str], names: list[str] | None) -> None:
    Path("t.csv").write_text("\n".join(lines))
    loaded = load_embeddings("t.csv")
    np.testing.assert_array_equal(loaded.values, X)
    expected = [line.partition(",")[0] for line in lines] if names is None and lines is not ROWS else names
    assert (None if loaded.names is None else list(loaded.names)) == expected


@pytest.mark.parametrize(
    ("text", "values", "names"),
    [
        ("index,0.5,-2\nclass,3,1\n", [[0.5, -2], [3, 1]], ("index", "class")),  # items, for no titles go down
        ("class,3,3\nlabel,1,4\n", [[3, 3], [1, 4]], ("class", "label")),
        ("cat,3,1,5\ndog,2,7,1\n", [[3, 1, 5], [2, 7, 1]], ("cat", "dog")),
        ("cat,1,2,3\ndog,2,3,4\n", [[1, 2, 3], [2, 3, 4]], ("cat", "dog")),
        ("cat,1,2,3\n", [[1, 2, 3]], ("cat",)),
        ("cat,0\ndog,1\n", [[0], [1]], ("cat", "dog")),
        ("1,2\n3,4\n", [[1, 2], [3, 4]], None),
        ("0.0,1.0\n1,0\n", [[0, 1], [1, 0]], None),
        ("0,1\n0.5,0.25\n", [[0.5, 0.25]], None),
        ("0,1,2\n3,4,5\n", [[3, 4, 5]], None),
        ("name,0,1\nzero,1,0\n", [[1, 0]], ("zero",)),
        ("id,x,note\n7,1,good\n8,2,\n", [[1], [2]], ("7", "8")),
        ("1984,0.5\nEmma,0.25\nUlysses,3\n", [[0.5], [0.25], [3]], ("1984", "Emma", "Ulysses")),
        ("Ort;x;y\nUlm;1,5;2\nHof;-,25;1,5e3\n", [[1.5, 2], [-0.25, 1500]], ("Ulm", "Hof")),  # a decimal comma
        ("name;x\n1,5;3\n2,5;4\n", [[3], [4]], ("1,5", "2,5")),  # a name stays as it is
        ("sep=;\nOrt;x\nUlm;1,5\nHof;2\n", [[1.5], [2]], ("Ulm", "Hof")),  # Excel's own first line
        ("\ufeffname;x\r\na;1\r\nb;2\r\n", [[1], [2]], ("a", "b")),
        ('x,y\n1,"1,500"\n2,"2,321,305"\n', [[1, 1500], [2, 2321305]], None),  # thousands
        ("Ort;x;y\nUlm;1,5;126.405\nHof;2;45.825\n", [[1.5, 126405], [2, 45825]], ("Ulm", "Hof")),
        ('Berlin,"3,755,251"\nHof,"45,825"\n', [[3755251], [45825]], ("Berlin", "Hof")),  # no titles
        ("name,x,y\na,$3.50,1\nb,$1.25,2\n", [[3.5, 1], [1.25, 2]], ("a", "b")),
        ("name,x\na,35 %\nb,12.5%\n", [[0.35], [0.125]], ("a", "b")),
        ("name,x,when\na,1,1970-01-02\nb,2,1970-02-01\n", [[1, 1], [2, 31]], ("a", "b")),
        ("when,x\n2020-01-01,1\n2020-01-02,2\n", [[1], [2]], ("2020-01-01", "2020-01-02")),  # they tell rows apart
        ("name,x,open\na,1,yes\nb,2,No\n", [[1, 1], [2, 0]], ("a", "b")),
        ("x,y\n1,\n2,\n", [[1], [2]], None),  # an empty column
    ],
)
def test_small_tables(text: str, values: list, names: tuple[str, ...] | None) -> None:
    Path("t.csv").write_text(text)
    loaded = load_embeddings("t.csv")
    assert loaded.values.tolist() == values
    assert loaded.names == names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0,1\n1,0\n1,1\n", r"line 1 \(0,1\) may be a header or an item; .* write the item's numbers as 0.0,1.0"),
        ("0\n0.5\n", r"line 1 \(0\) may be a header"),
        ("zero,0,1\none,1,0\n", r"line 1 \(zero,0,1\) may be a header"),
        ("x,y\n1,2\nNA,4\n5,6\n", r"1 of 6 cells is missing, the first in line 3, column 1 \(x\)"),  # a hole, no name
        ("x,y\n1,2\n,4\n", r"1 of 4 cells is missing, .* \(x\); fill it in, or use missing='drop' \(rows\)"),
        # An item must not get lost.
        ("x,y\n1,2\n,\n3,4\n", r"2 of 6 cells are missing, the first in line 3.* which bm.match and bm.Task take"),
        ("0.5,1\n,2\n", "1 of 4 cells is missing, the first in line 2, column 1;"),
        # The comma may be decimal or group thousands.
        ("x;y;z\n1;1,5;2\n2;2.5;2\n", r"line 2, column 2 \(y\): '1,5' is not a number; write plain numbers"),
        ("x;y\n950;1\n1,250;2\n", r"line 3, column 1 \(x\): '1,250' is not a number; write plain numbers"),
        ("x\ty\n1\t1,500\n", r"line 2, column 2 \(y\): '1,500' is not a number"),
        ("name,x\na,$3\nb,€4\n", r"line 2, column 2 \(x\): '\$3' is not a number; write plain numbers"),
        ("name,x\na,3%\nb,4\n", r"line 2, column 2 \(x\): '3%' is not a number; write plain numbers"),
        ("name,x,when\na,1,1/2/2020\nb,2,3/4/2020\n", r"line 2, column 3 \(when\): '1/2/2020' is not a number"),
        ("name,x\na,3 kg\n", r"line 2, column 2 \(x\): '3 kg' is not a number; write plain numbers"),
        ("name,x\n,metres\na,1\nb,2\n", r"line 2, column 2 \(x\): 'metres' is not a .* second row of titles, remove"),
        ("name,0,1,2\n", "it is empty"),
        ("name,label\na,b\n", "it has no numeric column; it holds name, label; metric='gower' compares"),
    ],
)
def test_what_is_not_certain_is_refused(text: str, message: str) -> None:
    Path("t.csv").write_text(text)
    with pytest.raises(ValueError, match=r"^t\.csv: " + message):
        load_embeddings("t.csv")


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-le"])
def test_other_encodings_are_named(encoding: str) -> None:
    Path("t.csv").write_text("été,1.5\nhiver,2.5\n", encoding=encoding)
    with pytest.raises(ValueError, match=r"^t\.csv: not a text file in UTF-8"):
        load_embeddings("t.csv")


def test_kinds_of_columns_in_parquet() -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    lists = pa.array(X.tolist(), pa.large_list(pa.float32()))  # as polars writes
    parquet.write_table(pa.table({"row": IDS, "vector": lists, "word": WORDS}), "a.parquet")
    assert load_embeddings("a.parquet").values.tolist() == X.astype("float32").tolist()
    assert load_embeddings("a.parquet").names == tuple(WORDS)
    decimals = pa.array(X[:, 0]).cast(pa.decimal128(10, 3))
    dates = pa.array([0] * 5, pa.date32())
    parquet.write_table(pa.table({"a": decimals, "b": X[:, 1].astype("float16"), "when": dates}), "b.parquet")
    assert load_embeddings("b.parquet").values.tolist() == [[*row[:2], 0] for row in X.tolist()]
    parquet.write_table(pa.table({"a": lists, "b": lists}), "c.parquet")
    with pytest.raises(ValueError, match=r"^c\.parquet: it holds 2 columns of lists; expected"):
        load_embeddings("c.parquet")
    parquet.write_table(pa.table({"a": pa.array([1, None, 3]), "b": [1.0, 2.0, 3.0]}), "d.parquet")
    with pytest.raises(ValueError, match=r"^d\.parquet: 1 of 6 cells is missing, the first in line 2, column 1 \(a\)"):
        load_embeddings("d.parquet")
    parquet.write_table(pa.table({"a": pa.nulls(3), "b": [1.0, 2.0, 3.0]}), "e.parquet")
    assert load_embeddings("e.parquet").columns == ("b",)


@pytest.mark.parametrize("title", ["Nr", "Nr.", "No.", "#"])
def test_a_column_that_numbers_the_rows_is_no_dimension(tmp_path, title):
    path = tmp_path / "table.csv"
    path.write_text(f"{title};Name;Preis\n1;Werk A;2,5\n2;Werk B;4,5\n", encoding="utf-8")
    table = load_embeddings(path)
    assert table.values.tolist() == [[2.5], [4.5]]
    assert table.names == ("Werk A", "Werk B")
