"""The picture of pairs against the price of an unmatched item."""

import numpy as np

import blindmatch as bm
from blindmatch.matching.price import Price
from blindmatch.report.pictures import price_curve


def test_the_curve_rises_with_the_number_of_pairs() -> None:
    curve = price_curve(Price(2.0, ((1.0, 3), (2.0, 3), (4.0, 6))))
    assert [point["pairs"] for point in curve["points"]] == ["3", "", "6"]
    assert curve["points"][0]["x"] < curve["points"][1]["x"] == curve["taken"] < curve["points"][2]["x"]
    assert curve["points"][0]["y"] == curve["points"][1]["y"] > curve["points"][2]["y"]
    assert curve["price"] == "2"


def test_there_is_no_curve_without_a_suggested_price() -> None:
    assert price_curve(None) is None


def test_prices_of_zero_have_no_curve() -> None:
    same = np.ones((6, 3))
    assert bm.match(same, same, unmatched_cost="auto", rng=0).cost == 0
    assert price_curve(Price(0.0, ((0.0, 2), (0.0, 2)))) is None
