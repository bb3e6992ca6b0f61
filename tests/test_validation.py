import numpy as np
import pytest

from blindmatch.validation import as_floats, as_pairs, as_permutation, as_square, at_least, positive

NOT_MATRICES = {
    "nan": [[0.0, np.nan], [1.0, 0.0]],
    "inf": [[0.0, np.inf], [1.0, 0.0]],
    "minus inf": [[0.0, -np.inf], [1.0, 0.0]],
    "empty": np.zeros((0, 2)),
    "empty list": [],
    "no columns": np.zeros((2, 0)),
    "one axis": [1.0, 2.0],
    "three axes": np.zeros((2, 2, 2)),
    "scalar": 3.0,
    "ragged": [[1.0, 2.0], [3.0]],
    "strings": [["1", "2"], ["3", "4"]],
    "objects": np.array([[1, None], [2, 3]], dtype=object),
    "none": None,
    "complex": np.ones((2, 2), dtype=complex),
    "dates": np.zeros((2, 2), dtype="datetime64[s]"),
    "too large an integer": [[2**80, 1], [1, 1]],
    "masked": np.ma.masked_array(np.ones((2, 2)), mask=[[True, False], [False, False]]),
    "generator": (row for row in [[1.0, 2.0]]),
    "dict": {"a": 1},
}


@pytest.mark.parametrize("values", NOT_MATRICES.values(), ids=NOT_MATRICES.keys())
def test_as_floats_refuses_by_name(values):
    with pytest.raises(ValueError, match=r"^my_argument\b"):
        as_floats(values, "my_argument")


def test_beyond_float64_is_refused_without_a_warning():
    big = np.array([[np.longdouble("1e400")]])
    if not np.isfinite(big).all():
        pytest.skip("long double is no wider than double here")
    with pytest.raises(ValueError, match=r"^X holds inf"):
        as_floats(big, "X")


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", ">f8"])
def test_every_kind_of_real_number_is_taken(dtype):
    values = np.array([[1, 0], [0, 1]], dtype=dtype)
    assert as_floats(values, "X").dtype == np.float64
    assert as_floats(values, "X").tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_the_result_is_a_copy():
    values = np.ones((2, 2))
    as_floats(values, "X")[0, 0] = 5.0
    assert values[0, 0] == 1.0


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_numbers_of_pandas_that_may_be_missing(backend):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    values = np.array([[1.5, 2.0], [-0.25, 4.0]])
    frame = pd.DataFrame(values).convert_dtypes(dtype_backend=backend)
    assert as_floats(frame, "X").tolist() == values.tolist()
    assert as_permutation(pd.Series([1, 0]).convert_dtypes(dtype_backend=backend), 2).tolist() == [1, 0]
    frame.iloc[1, 0] = pd.NA
    with pytest.raises(ValueError, match=r"^X holds nan at \[1, 0\]; every value must be finite"):
        as_floats(frame, "X")
    with pytest.raises(ValueError, match=r"^X holds text \('1'\); expected real numbers"):
        as_floats(pd.DataFrame({"a": ["1", "2"]}).convert_dtypes(dtype_backend=backend), "X")


def test_three_axes_lead_to_prompt_means():
    with pytest.raises(ValueError, match=r"^X has shape \(10, 9, 8\); expected 2 axes .*bm\.prompt_means"):
        as_floats(np.zeros((10, 9, 8)), "X")
    with pytest.raises(ValueError, match=r"^X has shape \(3,\); expected 2 axes$"):
        as_floats(np.zeros(3), "X")


def test_not_square():
    with pytest.raises(ValueError, match=r"^A .*\(2, 3\).*square"):
        as_square(np.ones((2, 3)), "A")
    with pytest.raises(ValueError, match=r"^A .*expected \(4, 4\)"):
        as_square(np.ones((3, 3)), "A", 4)


@pytest.mark.parametrize(
    "values",
    [[0, 1], [0, 1, 2, 3], [0, 1, 1], [0, 1, 3], [-1, 0, 1], [0.0, 1.0, 2.0], [[0, 1, 2]], "abc", None, [[0], [1, 2]]],
)
def test_not_a_permutation(values):
    with pytest.raises(ValueError, match=r"^permutation\b"):
        as_permutation(values, 3)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "uint64"])
def test_permutations_of_any_integer_type(dtype):
    permutation = as_permutation(np.array([2, 0, 1], dtype=dtype), 3)
    assert permutation.dtype == np.intp
    assert permutation.tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    "pairs",
    [[(0, 3)], [(3, 0)], [(-1, 0)], [(0,)], [(0, 1, 2)], [0], 7, None, [(0.5, 1)], [("0", "1")], [(None, 0)], ["01"]],
)
def test_bad_pairs(pairs):
    with pytest.raises(ValueError, match=r"^known_pairs\b"):
        as_pairs(pairs, (3, 3), "known_pairs")


def test_pairs_from_an_array():
    assert as_pairs(np.array([[0, 2], [1, 0]]), (3, 3), "known_pairs") == [(0, 2), (1, 0)]


@pytest.mark.parametrize("package", ["pandas", "polars", "pandas nullable"])
def test_pairs_from_a_data_frame_are_its_rows(package):
    frame = pytest.importorskip(package.split()[0]).DataFrame({"source": [0, 1], "target": [2, 3]})
    pairs = frame.convert_dtypes() if package == "pandas nullable" else frame
    assert as_pairs(pairs, (4, 4), "known_pairs") == [(0, 2), (1, 3)]


@pytest.mark.parametrize("value", [0, -1, float("nan"), "1", None, [1], True])
def test_positive(value):
    with pytest.raises(ValueError, match=r"^time_limit="):
        positive(value, "time_limit")


@pytest.mark.parametrize("value", [0, -3, 1.0, True, "2", None])
def test_at_least(value):
    with pytest.raises(ValueError, match=r"^threads="):
        at_least(value, 1, "threads")
