"""Parts of paths, cells as numbers and as text, JSON."""

import numpy as np

from blindmatch.io.cells import split_key
from blindmatch.io.exchange import csv_text, json_finite
from blindmatch.io.table_files import split_part
from blindmatch.io.values import Writing, numbers_of


def test_parts_of_paths():
    assert (split_key("cells.h5ad#X_pca")[1], split_key("cells.npy#1")[1]) == ("X_pca", None)
    assert (split_part("towns.xlsx:Sheet 2")[1], split_part("towns.csv:1")[1]) == ("Sheet 2", None)


def test_cells():
    assert np.array_equal(numbers_of(["1,200", ""], Writing()), [1200.0, np.nan], equal_nan=True)
    assert numbers_of(["many", "1"], Writing()) == [None, 1.0]
    assert numbers_of(["yes", "No"], Writing()) == [1.0, 0.0]
    assert numbers_of(["1.2.1970", "28.2.1970"], Writing()) == [31.0, 58.0]
    assert csv_text([["=1+1", "-5", "-5+A1", "cat"]]) == "'=1+1,-5,'-5+A1,cat\n"


def test_numbers_of_json_are_finite():
    assert json_finite({"cost": float("inf"), "pairs": [(0, 1.5)]}) == {"cost": None, "pairs": [[0, 1.5]]}
