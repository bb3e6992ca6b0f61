"""A saved match: everything comes back, and nothing in the file is believed."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from strategies import embeddings

import blindmatch as bm
from blindmatch.matching import saved

QUICK = {"rng": 0, "draws": 5, "resamples": 2, "regret": False}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"distortion": "cka", "known_pairs": [(0, 3)], "source_names": np.array(list("abcdefgh"))},
        {"unmatched_cost": 2.0, "max_unmatched": 3},
        {"unmatched_cost": "auto"},
        {"scale": "columns", "metric": ("cosine", "euclidean"), "forbidden_pairs": [(1, 1)]},
        {"distortion": "mutual-knn:k=3", "similarity": np.eye(8), "similarity_weight": 0.5},
        {"metric": "geodesic", "neighbors": (2, 3), "standardize": False},
    ],
)
def test_everything_comes_back(tmp_path: Path, options: dict) -> None:
    X, Y = embeddings(0, 8, noise=0.05, dimension=6)
    result = bm.match(X, Y, rng=0, **options)
    trust = result.assess(**QUICK)
    again = bm.load(result.save(tmp_path / "m.npz", trust))
    assert again.permutation.tolist() == result.permutation.tolist()
    assert again.cost == pytest.approx(result.cost, rel=1e-9)  # with fewer dummies, the sum is rounded elsewhere
    assert (again.lower_bound, again.status) == (result.lower_bound, result.status)
    assert again.verify() == result.verify()
    assert again.notes == result.notes
    assert again.task.digest == result.task.digest
    assert again.task.source_names == result.task.source_names
    assert again.task.price == result.task.price
    assert again.assessment.p_value == trust.p_value
    np.testing.assert_array_equal(again.assessment.confidence, trust.confidence)
    assert "it was not assessed again here" in again.assessment.verdict
    fresh = again.assess(**QUICK)
    assert (fresh.p_value, fresh.stated_by) == (trust.p_value, "")


def test_kernels_unequal_sizes_and_left_out_pairs_come_back(tmp_path: Path) -> None:
    X, Y = embeddings(1, 8, noise=0.05, dimension=6)
    kernels = bm.GromovWasserstein().kernels(X, Y[:6])
    result = bm.match(kernels=kernels, rng=0, min_confidence=1.0)
    assert result.left_out == 6
    again = bm.load(result.save(tmp_path / "m.npz"))
    assert (again.left_out, again.cost, again.lower_bound) == (6, result.cost, result.lower_bound)
    assert again.pairs == []


def test_a_solved_problem_comes_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    problem = bm.QAP(*rng.integers(0, 9, (2, 6, 6)), linear=rng.integers(0, 9, (6, 6)), constant=3.0)
    result = bm.solve(problem, rng=0)
    again = bm.load(result.save(tmp_path / "m.npz"))
    assert (again.cost, again.lower_bound, again.status) == (result.cost, result.lower_bound, "optimal")
    assert again.problem.objective(range(6)) == problem.objective(range(6))


def test_an_edited_file_cannot_lie(tmp_path: Path) -> None:
    """Whatever is changed: the cost is that of the match, no bound is above it, and no wrong match is optimal."""
    X, Y = embeddings(2, 8, noise=0.05, dimension=6)
    result, path = bm.match(X, Y, rng=0), tmp_path / "m.npz"
    result.save(path, result.assess(**QUICK))
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    words, wrong = json.loads(str(arrays["words"])), result.permutation[::-1]
    edits = [
        {"permutation": wrong},
        {"permutation": wrong, "assessment.match": wrong},
        {"permutation": wrong, "words": {"cost": result.cost, "status": "optimal", "solver": "alignment"}},
        {"permutation": wrong, "whole": wrong, "words": {"support": 10}},
        {"source": X[::-1]},
        {"words": {"lower_bound": 1e9, "status": "optimal"}},
        {"words": {"distortion": {**words["distortion"], "name": "cka"}}},
        {"words": {"unmatched_cost": 0.0, "max_unmatched": 8}},
    ]
    for change in edits:
        forged = {**arrays, **change, "words": np.array(json.dumps({**words, **change.get("words", {})}))}
        np.savez(path, **forged)
        try:
            found = bm.load(path)
        except ValueError:
            continue
        problem = found.problem
        full = found.task.completed(found.permutation)
        assert found.cost == problem.objective(full)
        best = bm.solve(problem, rng=0).cost
        assert found.lower_bound is None or found.lower_bound <= best * (1 + 1e-9)
        assert found.status != "optimal" or found.cost <= best * (1 + 1e-5)


def test_a_large_match_is_marked_as_stated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blindmatch.problem.task.QUADRATIC", 50)
    X, Y = embeddings(3, 120, noise=0.05, dimension=6)
    result = bm.match(X, Y, rng=0)
    again = bm.load(result.save(tmp_path / "m.npz"))
    assert again.support == result.support
    assert "is as stated: the match is too large to compute it again" in again.message
    assert again.assess(rng=0).stated_by


@pytest.mark.parametrize("name", ["confidence", "support"])
def test_impossible_values_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("blindmatch.problem.task.QUADRATIC", 50)
    X, Y = embeddings(3, 120, noise=0.05, dimension=6)
    bm.match(X, Y, rng=0).save(tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as file:
        arrays = {key: file[key] for key in file.files}
    if name == "confidence":
        arrays["confidence"] = np.full(120, 7.0)
    else:
        arrays["words"] = np.array(json.dumps({**json.loads(str(arrays["words"])), "support": -1}))
    np.savez(tmp_path / "m.npz", **arrays)
    with pytest.raises(ValueError, match=f"{name}"):
        bm.load(tmp_path / "m.npz")


def test_a_distortion_of_your_own_cannot_be_saved(tmp_path: Path) -> None:
    class Own(bm.GromovWasserstein):
        pass

    X, Y = embeddings(0, 5, noise=0.05, dimension=3)
    with pytest.raises(ValueError, match="it cannot be saved"):
        bm.match(X, Y, distortion=Own(), rng=0).save(tmp_path / "m.npz")
    assert not (tmp_path / "m.npz").exists()
    assert saved.read_saved(bm.match(X, Y, rng=0).save(tmp_path / "m.npz")).checked is None


def test_results_show_themselves() -> None:
    X, Y = embeddings(0, 12, noise=0.05, dimension=6)
    result = bm.match(X, Y, source_names=[f"<b>{i}" for i in range(12)], rng=0)
    trust = result.assess(**QUICK)
    page = result._repr_html_()
    assert result.assessment is trust
    assert trust.judgement.headline in page
    assert "proved optimal" in page
    assert "<b>0" not in page.removeprefix("<p><b>")
    assert "&lt;b&gt;0" in page
    assert "12 rows, of which 10 are shown" in page
    assert repr(result).startswith("Result(12 pairs matched, proved optimal")
    assert len(repr(trust)) < 600
    assert trust.judgement.headline in trust._repr_html_()
    frame = result.to_frame()
    assert frame["target"].tolist() == result.permutation.tolist()
    assert frame["confidence"].tolist() == trust.confidence.tolist()
    assert frame["source"][0] == "<b>0"
    problem = result.task.problem
    assert "<td>items</td><td>12</td>" in problem._repr_html_()
    found = bm.best_subsets(X, Y, size=4, k=2, engine="exact")
    assert repr(found).startswith("Subsets(2 subsets, proved to be the cheapest. No subset costs less than")
    assert f"<td>{', '.join(map(str, found.subsets[0]))}</td>" in found._repr_html_()


def edited(path: Path, words: dict) -> None:
    """Change what a saved match states; a key with dots leads into what it holds."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    stated = json.loads(str(arrays["words"]))
    for key, value in words.items():
        *folders, last = key.split(".")
        place = stated
        for folder in folders:
            place = place[folder]
        place[last] = value
    np.savez(path, **{**arrays, "words": np.array(json.dumps(stated))})


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ({"solver": "\x1b[2J"}, "solver"),
        ({"bound_name": "x" * 200}, "bound_name"),
        ({"price.curve": [[-2.5, 3], [1.0, 4]]}, "price"),
        ({"price.price": float("nan")}, "price"),
        ({"assessment.support": float("inf")}, "support"),
        ({"assessment.draws": 2.5}, "draws"),
        ({"assessment.prior_count": {"right": -1, "pairs": 3}}, "right"),
        ({"assessment.p_value": float("nan")}, "p_value"),
        ({"assessment.better": -1.0}, "better"),
        ({"assessment.z": float("-inf")}, "z=-inf"),
    ],
)
def test_impossible_words_are_refused_by_name(tmp_path: Path, words: dict, named: str) -> None:
    X, Y = embeddings(0, 8, noise=0.05, dimension=6)
    result = bm.match(X, Y, unmatched_cost="auto", rng=0)
    path = result.save(tmp_path / "m.npz", result.assess(**QUICK))
    edited(path, words)
    with pytest.raises(ValueError, match=f"m.npz.*{named}"):
        bm.load(path)


def test_a_changed_result_does_not_call_itself_proved() -> None:
    X, Y = embeddings(0, 8, noise=0.05, dimension=6)
    result = bm.match(X, Y, solver="random", rng=0)
    forged = replace(result, status="optimal", lower_bound=result.cost)
    assert "not checked" in repr(forged)
    assert "not checked" in forged._repr_html_()
    assert forged.rechecked().status == "heuristic"
    assert "not checked" not in repr(replace(bm.match(X, Y, rng=0), title="the same match"))
