"""The static plots: what is on the axes."""

import sys
from collections.abc import Iterator
from dataclasses import replace

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from report.pages import Doubt, found, sets

import blindmatch as bm
from blindmatch.report.plots import BAD, GOOD, PALE

X, Y, TRUTH = sets(8)
SWAPPED = TRUTH.copy()
SWAPPED[[0, 1]] = SWAPPED[[1, 0]]
RESULT = found(X, Y, SWAPPED)


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


def test_match_has_a_line_for_each_pair() -> None:
    _, ax = plt.subplots()
    confidence = np.linspace(0.2, 0.9, 8)
    result = found(X, Y, SWAPPED, source_names=np.array(list("abcdefgh")))
    drawn = bm.plot.match(result, truth=TRUTH.tolist(), trust=Doubt(confidence), ax=ax)
    assert drawn is ax
    assert [to_hex(line.get_color()) for line in ax.lines] == [BAD] * 2 + [GOOD] * 6
    assert [line.get_alpha() for line in ax.lines] == pytest.approx(confidence)
    words = [text.get_text() for text in ax.texts]
    assert words[::2] == list("abcdefgh")
    assert words[1::2] == [str(j) for j in SWAPPED]
    with pytest.raises(ValueError, match="trust is about 2 sources"):
        bm.plot.match(RESULT, trust=Doubt(np.ones(2)), ax=ax)
    unknown = bm.plot.match(RESULT, trust=Doubt(np.full(8, np.nan)))
    assert [line.get_alpha() for line in unknown.lines] == [1.0] * 8  # a confidence that is not known hides nothing


def test_match_leaves_out_what_has_no_partner() -> None:
    result = replace(RESULT, permutation=np.array([3, -1, 7, 0, 1, -1, 5, 6]))
    ax = bm.plot.match(result)
    assert len(ax.lines) == 6
    assert {to_hex(line.get_color()) for line in ax.lines} == {PALE}
    assert "7" in [text.get_text() for text in ax.texts]


@pytest.mark.parametrize("distortion", ["gw", "cka"])
def test_kernels_are_in_the_same_order(distortion: str) -> None:
    turned = X[np.argsort(TRUTH)]  # the same points in the order of the target
    source, target, difference = bm.plot.kernels(found(X, turned, TRUTH, distortion=distortion))
    K, G = (np.asarray(ax.images[0].get_array()) for ax in (source, target))
    off = ~np.eye(8, dtype=bool)
    assert K[off] == pytest.approx(G[off])
    assert np.abs(np.asarray(difference.images[0].get_array())[off]).max() < 1e-12
    assert source.images[0].get_clim() == target.images[0].get_clim()
    assert sorted(K[off]) == pytest.approx(sorted(bm_kernel(distortion)[off]))


def bm_kernel(distortion: str) -> np.ndarray:
    return {"gw": bm.GromovWasserstein, "cka": bm.CKA}[distortion]().kernels(X, X)[0]


def test_kernels_take_three_axes() -> None:
    _, axes = plt.subplots(1, 3)
    assert bm.plot.kernels(RESULT, axes=axes) == list(axes)
    with pytest.raises(ValueError, match="axes has 2 items; expected 3"):
        bm.plot.kernels(RESULT, axes=axes[:2])


def test_spaces_lie_over_each_other() -> None:
    turned = X[np.argsort(TRUTH)] @ np.linalg.qr(np.random.default_rng(0).normal(size=(8, 8)))[0]
    ax = bm.plot.spaces(found(X, turned, TRUTH, source_names="abcdefgh"))
    source, target = (np.asarray(marks.get_offsets()) for marks in ax.collections)
    assert target[TRUTH] == pytest.approx(source, abs=1e-6 * np.abs(source).max())
    assert [text.get_text() for text in ax.texts] == list("abcdefgh")
    ax = bm.plot.spaces(RESULT, truth=TRUTH.tolist())
    assert [line.get_linestyle() for line in ax.lines] == ["--"] * 2 + ["-"] * 6


def test_spaces_of_unequal_sizes() -> None:
    few, many, partners = sets(5, 9)
    ax = bm.plot.spaces(found(few, many, partners))
    assert [len(marks.get_offsets()) for marks in ax.collections] == [5, 9]
    assert len(ax.lines) == 5


def test_bounds_meet_the_trace() -> None:
    ax = bm.plot.bounds(RESULT)
    cost, bound = ax.lines
    assert list(cost.get_ydata()) == [moment.cost for moment in RESULT.trace] + [RESULT.cost]
    assert list(bound.get_xdata()) == [0.5, 1.5, 2.0]
    assert len(ax.collections) == 1
    ended = bm.plot.bounds(replace(RESULT, lower_bound=RESULT.cost, status="optimal"))
    assert [line.get_xydata()[-1].tolist() for line in ended.lines] == [[RESULT.seconds, RESULT.cost]] * 2
    with pytest.raises(ValueError, match="has no trace to draw"):
        bm.plot.bounds(replace(RESULT, trace=()))


def test_shuffling_draws_mean_and_spread() -> None:
    levels, values = [0.0, 0.5, 1.0], np.array([[3.0, 3.0], [2.0, 4.0], [0.0, 1.0]])
    ax = bm.plot.shuffling(levels, values, measure="CKA", label="one")
    assert bm.plot.shuffling(levels, values[:, 0], ax=ax) is ax
    assert ax.lines[0].get_ydata() == pytest.approx([3.0, 3.0, 0.5])
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == pytest.approx((0.0, 4.0))
    assert ax.lines[1].get_ydata() == pytest.approx(values[:, 0])
    with pytest.raises(ValueError, match=r"values has shape \(2, 2\); expected \(3, seeds\)"):
        bm.plot.shuffling(levels, values[:2])


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install .*\[plot\]'"):
        bm.plot.bounds(RESULT)


def test_long_names_are_not_clipped() -> None:
    result = found(
        X, Y, SWAPPED, source_names=["Chesapeake Bay retriever of the north"] * 8, target_names=["n" * 20] * 8
    )
    ax = bm.plot.match(result)
    width, renderer = ax.figure.bbox.width, ax.figure.canvas.get_renderer()
    assert all(0 <= box.x0 < box.x1 <= width for box in (text.get_window_extent(renderer) for text in ax.texts))
