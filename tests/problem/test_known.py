"""Known pairs of other items: their relations, and what is learned from them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import blindmatch as bm
from blindmatch.problem.known import FEWEST, Known


def spaces(items: int, seed: int = 0, noise: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """Points, and a noisy linear map of them to another space."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((items, 6))
    return X, X @ rng.standard_normal((6, 8)) + noise * rng.standard_normal((items, 8))


@pytest.mark.parametrize("distortion", ["gw", "cka", "kl", "mutual-knn:k=3", "inner-product"])
def test_relations_to_other_items_cost_what_they_cost_inside_the_sets(distortion: str) -> None:
    X, Y = spaces(9)
    few = FEWEST - 1  # nothing is learned from so few
    task = bm.Task(X[few:], Y[few:], known=(X[:few], Y[:few]), distortion=distortion)
    whole = bm.Task(X, Y, known_pairs=[(i, i) for i in range(few)], distortion=distortion)
    rng = np.random.default_rng(1)
    costs = []
    for _ in range(5):
        p = rng.permutation(9 - few)
        inside = whole.problem.objective(np.concatenate([np.arange(few), few + p]))
        costs.append(inside - task.problem.objective(p))
    assert_allclose(costs, costs[0], rtol=1e-9, atol=1e-9)  # but for what the known pairs cost with each other


def test_known_pairs_help_and_the_bound_holds() -> None:
    X, Y = spaces(40, noise=1.5)
    shuffle = np.random.default_rng(3).permutation(10)
    blind = bm.match(X[:10], Y[:10][shuffle], rng=0)
    known = bm.match(X[:10], Y[:10][shuffle], known=(X[10:], Y[10:]), rng=0)
    right = [float(np.mean(shuffle[found.permutation] == np.arange(10))) for found in (blind, known)]
    assert right[1] > right[0]
    assert right[1] >= 0.8
    assert known.status == "optimal"
    assert known.verify() <= known.cost
    assert "30 known pairs of other items" in known.message
    assert "regression" in known.message


def test_saved_and_loaded(tmp_path) -> None:  # type: ignore[no-untyped-def]
    X, Y = spaces(14)
    found = bm.match(X[:7], Y[:8], known=(X[8:], Y[8:]), scale="columns", rng=0)
    again = bm.load(found.save(tmp_path / "match.npz"))
    assert again.cost == found.cost
    assert again.verify() == found.verify()
    assert again.task.known.text == found.task.known.text  # type: ignore[union-attr]
    assert again.task.digest == found.task.digest  # type: ignore[union-attr]


def test_unmatched_items_and_assessment() -> None:
    X, Y = spaces(24, noise=0.2)
    found = bm.match(X[:8], Y[:8], known=(X[8:], Y[8:]), unmatched_cost=20.0, rng=0)
    size = len(X) - 16 + found.task.hints.max_unmatched  # type: ignore[union-attr]
    problem, beyond = found.task.of_size(size)  # type: ignore[union-attr]
    assert problem.n == size
    assert beyond == np.inf
    assert found.lower_bound <= found.cost  # type: ignore[operator]
    trust = bm.match(X[:8], Y[:8], known=(X[8:], Y[8:]), rng=0).assess(draws=19, resamples=5, regret=False, rng=0)
    assert trust.p_value is not None
    assert trust.confidence.shape == (8,)


def test_unrelated_known_pairs_do_not_make_a_match_significant() -> None:
    # Known pairs without a meaning pull similar items to similar items. Copies must be pulled in the same way.
    small = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, Y = rng.standard_normal((20, 3)), rng.standard_normal((20, 3))
        found = bm.match(X[:6], Y[:6], known=(X[6:], Y[6:]), rng=0)
        p = found.assess(draws=39, resamples=2, regret=False, rng=0).p_value
        small += p is not None and p <= 0.1
    assert small <= 5


X, Y = spaces(12)


@pytest.mark.parametrize(
    ("known", "message"),
    [
        (X, "expected a pair of arrays"),
        ((X, Y[:5]), "12 sources and 5 targets"),
        ((X[:, :4], Y), r"known\[0\] has 4 columns; the sources have 6"),
        ((X, X), r"known\[1\] has 6 columns; the targets have 8"),
        ((X[[0, 1, 0]], Y[[0, 1, 0]]), "known repeats pair 0 at 2"),
        ((X[[0, 1, 0]], Y[[0, 1, 2]]), r"known\[0\] has the same item at 0 and 2, with two partners"),
        ((X[[0, 1, 2]], Y[[0, 1, 1]]), r"known\[1\] has the same item at 1 and 2, with two partners"),
        ((X * np.nan, Y), "every value must be finite"),
    ],
)
def test_bad_input(known: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bm.Task(X[:5], Y[:5], known=known)  # type: ignore[arg-type]


def test_no_relations_to_other_items_in_kernels() -> None:
    with pytest.raises(ValueError, match="known is for two arrays of embeddings"):
        bm.Task(kernels=(np.eye(3), np.eye(3)), known=(X, Y))


def test_one_pair_constant_columns_and_more_pairs_than_items() -> None:
    one = bm.Task(X[:5], Y[:5], known=(X[5:6], Y[5:6]))
    assert one.known is not None
    assert "1 known pair of" in one.known.text
    assert "too few" in one.known.text
    flat = np.column_stack([X, np.ones(12)])
    many = bm.Task(flat[:3], Y[:3], known=(flat[3:], Y[3:]))
    assert np.isfinite(many.problem.linear).all()
    assert many.known is not None
    assert many.known.weight > 0
    constant = bm.Task(X[:5], Y[:5], known=(X[5:6] * np.ones((1, 1)), Y[5:6]))
    assert isinstance(constant.known, Known)


def test_the_confidence_counts_hidden_pairs_by_itself() -> None:
    X, Y = spaces(30, noise=0.1)
    trust = bm.match(X[:6], Y[:6], known=(X[6:], Y[6:]), rng=0).assess(draws=19, resamples=5, regret=False, rng=0)
    assert trust.prior_count is not None
    assert trust.prior_count.pairs == 24
    assert trust.prior == trust.prior_count.share > 0.8
    stated = bm.match(X[:6], Y[:6], known=(X[6:], Y[6:]), rng=0)
    assert stated.assess(prior=0.3, draws=19, resamples=5, regret=False, rng=0).prior == 0.3
