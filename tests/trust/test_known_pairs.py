"""A prior that is counted: random sets of other items are matched whose partners are known."""

import json

import numpy as np
import pytest
from commands import run
from strategies import rng_of

import blindmatch as bm
from blindmatch.trust.prior import as_prior
from blindmatch.trust.search import Part

QUICK = {"draws": 39, "resamples": 10, "regret": False, "rng": 0, "threads": 1}


def spaces(n: int, noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Paired points of two spaces: row i of one is the partner of row i of the other."""
    rng = rng_of(seed)
    X = rng.standard_normal((n, 6))
    return X, (X + noise * rng.standard_normal((n, 6))) @ np.linalg.qr(rng.standard_normal((8, 6)))[0].T


@pytest.mark.parametrize("options", [{}, {"distortion": "cka"}, {"scale": "columns"}])
def test_a_prior_is_counted_on_known_pairs(options: dict) -> None:
    (X, Y), order = spaces(40, 0.05), rng_of(1).permutation(10)
    source, target = X[:10], Y[:10][order]
    result = bm.match(source, target, rng=0, threads=1, **options)
    close = result.assess(prior=(X[10:], Y[10:]), **QUICK)
    assert close.prior_count.pairs == 200
    assert close.prior == (close.prior_count.right + 0.5) / 201 > 0.9
    apart = result.assess(prior=(X[10:], spaces(40, 0.05, 7)[1][10:]), **QUICK)
    assert apart.prior < 0.3
    assert apart.confidence.mean() < close.confidence.mean()
    assert f"given a prior of {close.prior:.2g} ({close.prior_count.right} of 200 known pairs found)" in close.verdict
    assert close.to_dict()["prior_count"] == {"right": close.prior_count.right, "pairs": 200}


def test_a_counted_prior_gives_what_the_same_number_gives() -> None:
    (X, Y), order = spaces(25, 0.4), rng_of(1).permutation(8)
    task = bm.Task(X[:8], Y[:8][order])
    known = as_prior((X[8:], Y[8:]), task)
    count = known.count(task, Part(rng_of(3)))
    assert count == known.count(task, Part(rng_of(3)))
    assert count == as_prior((X[8:], Y[8:]), bm.Task(X[:8], Y[:8], known_pairs=[(0, 1)])).count(task, Part(rng_of(3)))
    assert 0 < count.right < count.pairs == 160


@pytest.mark.parametrize("sizes", [(4, 9), (9, 4)])
def test_known_pairs_of_unequal_sets(sizes: tuple[int, int]) -> None:
    X, Y = spaces(30, 0.01)
    task = bm.Task(X[: sizes[0]], Y[: sizes[1]], standardize=False)
    count = as_prior((X, Y), task).count(task, Part(rng_of(0)))
    assert count.pairs == 80
    assert count.right > 60


def test_known_pairs_as_kernels() -> None:
    X, Y = spaces(20, 0.01)
    K, G = (np.linalg.norm(side[:, None] - side, axis=2) for side in (X, Y))
    task = bm.Task(kernels=(K[:9, :9], G[:9, :9]))
    count = as_prior((K, G), task).count(task, Part(rng_of(0)))
    assert count.right / count.pairs > 0.8


def test_as_many_known_pairs_as_items_are_matched_once() -> None:
    X, Y = spaces(9, 0.01)
    task = bm.Task(X, Y)
    assert as_prior((X, Y), task).count(task, Part(rng_of(0), deadline=0.0)).pairs == 9


def test_a_price_at_which_no_known_pair_is_matched_is_told(monkeypatch) -> None:
    X, Y = spaces(9, 1.0)
    monkeypatch.setattr("blindmatch.trust.prior.search", lambda problem, part: (np.roll(np.arange(18), 9), 0.0))
    task = bm.Task(X, Y, unmatched_cost=0.0)
    with pytest.raises(ValueError, match=r"none of 9 known pairs was matched at unmatched_cost=0"):
        as_prior((X, Y), task).count(task, Part(rng_of(0)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X, Y: (X, Y[:-1]), "12 sources and 11 targets"),
        (lambda X, Y: (X[:5], Y[:5]), "5 known pairs; expected at least 9"),
        (lambda X, Y: (X[:, :3], Y), "sources of 3 dimensions; those of the match have 6"),
        (lambda X, Y: (X * np.nan, Y), "known partners: source"),
        (lambda X, Y: (X, Y, Y), "expected a number above 0 and below 1"),
        (lambda X, Y: [0.3, 0.4], "known partners: source"),
    ],
)
def test_bad_known_pairs_are_refused(change, words: str) -> None:
    X, Y = spaces(21, 0.1)
    result = bm.match(X[:9], Y[:9], rng=0, threads=1)
    with pytest.raises(ValueError, match=words):
        result.assess(prior=change(X[9:], Y[9:]), **QUICK)


def test_known_pairs_on_the_command_line(tmp_path) -> None:
    X, Y = spaces(30, 0.05)
    files = {"a": X[:8], "b": Y[:8], "known_a": X[8:], "known_b": Y[8:]}
    for name, values in files.items():
        np.save(tmp_path / f"{name}.npy", values)
    a, b, known_a, known_b = (str(tmp_path / f"{name}.npy") for name in files)
    known = ["--prior-from", known_a, known_b]
    saved = str(tmp_path / "m.npz")
    assert run("match", a, b, "--save", saved).exit_code == 0
    for command in (["assess", saved, "--draws", "19"], ["match", a, b, "--assess"]):
        trust = json.loads(run(*command, *known, "--json").stdout)["trust"]
        assert trust["prior_count"]["pairs"] == 160
        assert trust["prior"] > 0.9
    for wrong, words in (
        (["match", a, b, *known], "--prior-from needs --assess or --min-confidence"),
        (["assess", saved, *known, "--prior", "0.3"], "--prior 0.3 and --prior-from are given"),
        (["assess", saved, "--prior-from", known_a, b], "--prior-from has 22 sources and 8 targets"),
        (["match", a, b, "--assess", "--prior-from", known_b, known_a], "--prior-from has sources of 8 dimensions"),
    ):
        answer = run(*wrong)
        assert answer.exit_code == 2
        assert words in answer.stderr
