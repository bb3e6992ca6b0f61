"""Which models agree: all pairs of models of the same items."""

import json

import numpy as np
import pytest

import blindmatch as bm
from blindmatch.matching.evaluation import evaluate
from blindmatch.report.comparison import ComparedPair, Comparison


@pytest.fixture(scope="module")
def models():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 4))
    turned = X @ np.linalg.qr(rng.normal(size=(4, 4)))[0]
    return {
        "a": X,
        "b": turned,
        "<c>": bm.Views(X, turned + 0.1 * rng.normal(size=X.shape)),
        "d": rng.normal(size=(8, 3)),
    }


@pytest.fixture(scope="module")
def found(models):
    return bm.compare(models, draws=0, rng=0)


def test_each_pair_has_the_measures_of_the_truth_and_a_proved_match(models, found):
    assert [(pair.one, pair.other) for pair in found.pairs][:3] == [("a", "b"), ("a", "<c>"), ("a", "d")]
    same = found.pairs[0]
    assert (same.accuracy, same.cka, same.mutual_knn) == pytest.approx((1, 1, 1))
    other = found.pairs[2]
    truth = evaluate(models["a"], models["d"], range(8), truth=range(8), rng=0).true
    assert (other.cka, other.mutual_knn, other.truth_loss) == pytest.approx((truth.cka, truth.mutual_knn, truth.gw))
    assert all(pair.proved and pair.lower_bound <= pair.loss <= pair.truth_loss + 1e-9 for pair in found.pairs)
    frame = found.to_frame()
    assert len(frame) == 6
    assert frame["accuracy"][0] == 1.0


def test_cycles_close_where_three_models_agree(models, found):
    same = [pair for pair in found.pairs if "d" not in (pair.one, pair.other)]
    three = bm.compare({name: models[name] for name in ("a", "b", "<c>")}, draws=0, rng=0)
    assert [pair.match for pair in three.pairs] == [pair.match for pair in same] == 3 * [tuple(range(8))]
    assert three.cycles == 3 * [(1.0, 1.0)]
    closed = found.to_frame().set_index(["one", "other"])["cycle_closes"]
    assert closed["a", "b"] == 1.0  # by way of "<c>" and of "d": both ways there and back are the same
    assert 0 <= closed["<c>", "d"] <= 1


def test_a_cycle_that_does_not_close_is_counted():
    def pair(one, other, match):
        return ComparedPair(one, other, 4, 0, 0, 0, 0, None, 0, False, None, match)

    found = Comparison(
        ("a", "b", "c"), (pair("a", "b", (0, 1, 3, 2)), pair("a", "c", (0, 1, 2, 3)), pair("b", "c", (1, 0, 3, 2)))
    )
    # by way of c: a0 -> c0 -> b1 instead of b0, a1 -> b0 instead of b1, a2 -> b3, a3 -> b2
    assert found.cycles[0] == (0.5, 0.0)
    two = Comparison(("a", "b"), found.pairs[:1])
    assert two.cycles == [(None, None)]


def test_threads_do_not_change_the_result_and_a_store_is_continued(models, found, tmp_path):
    store = tmp_path / "done.jsonl"
    counts = []
    again = bm.compare(models, draws=0, rng=0, threads=1, store=store, callback=lambda *now: counts.append(now))
    assert again == found
    assert counts == [(at, 6) for at in range(1, 7)]
    lines = store.read_text(encoding="utf-8").splitlines()
    changed = json.loads(lines[1])
    changed["pair"]["accuracy"] = 0.25  # is read again, so it was not computed again
    store.write_text("\n".join([lines[0], json.dumps(changed), lines[2][:40]]), encoding="utf-8")
    assert [p.accuracy for p in bm.compare(models, draws=0, rng=0, store=store).pairs].count(0.25) >= 1
    assert bm.compare(models, draws=0, rng=1, store=store).pairs[1].accuracy != 0.25


@pytest.mark.parametrize(
    "change",
    [
        {"accuracy": "<b>"}, {"accuracy": 7}, {"accuracy": 10**400}, {"cka": float("nan")}, {"p_value": -1},
        {"one": "z"}, {"items": 9}, {"proved": "yes"}, {"lower_bound": 1e9}, {"more": 1}, {"loss": None},
    ],
)  # fmt: skip
def test_what_a_store_cannot_know_is_computed_again(models, found, tmp_path, change):
    store, two = tmp_path / "done.jsonl", {name: models[name] for name in ("a", "d")}
    bm.compare(two, draws=0, rng=0, store=store)
    entry = json.loads(store.read_text(encoding="utf-8"))
    entry["pair"] |= change
    store.write_text(json.dumps(entry) + "\n", encoding="utf-8")
    (pair,) = bm.compare(two, draws=0, rng=0, store=store).pairs
    assert not pair.stated
    assert pair.loss == found.pairs[2].loss


def test_what_a_store_states_is_marked_and_lines_that_were_cut_off_stay_alone(models, tmp_path):
    store = tmp_path / "done.jsonl"
    bm.compare(models, draws=0, rng=0, store=store)
    lines = store.read_text(encoding="utf-8").splitlines()
    store.write_text("\n".join([*lines[:3], lines[3][:60]]), encoding="utf-8")
    second = bm.compare(models, draws=0, rng=0, threads=1, store=store)
    assert sum(pair.stated for pair in second.pairs) == 3
    page = second.report(tmp_path / "r.html").read_text(encoding="utf-8")
    assert "3 pairs are as the store states them" in page
    assert all(pair.stated for pair in bm.compare(models, draws=0, rng=0, store=store).pairs)
    store.write_text("[" * 200_000, encoding="utf-8")
    with pytest.raises(ValueError, match="not a readable store file"):
        bm.compare(models, draws=0, rng=0, store=store)


def test_a_full_disk_costs_the_store_but_not_the_comparison(models, found, tmp_path):
    resource = pytest.importorskip("resource")
    store, before = tmp_path / "done.jsonl", resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.warns(RuntimeWarning, match="a pair was not written"):
            again = bm.compare(models, draws=0, rng=0, store=store)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert again == found
    assert 0 < sum(pair.stated for pair in bm.compare(models, draws=0, rng=0, store=store).pairs) < 6


def test_files_and_data_frames_are_models_too(models, tmp_path):
    pandas = pytest.importorskip("pandas")
    np.save(tmp_path / "a.npy", models["a"])
    frame = pandas.DataFrame(models["b"], index=list("stuvwxyz"))
    again = bm.compare({"a": tmp_path / "a.npy", "b": frame}, draws=0, rng=0).pairs[0]
    assert (again.accuracy, again.cka) == pytest.approx((1, 1))
    with pytest.raises(ValueError, match=r"models\['c'\] has an item 'q' where models\['b'\] has 'z'"):
        bm.compare({"b": frame, "c": frame.rename(index={"z": "q"})})


def test_ctrl_c_keeps_the_finished_pairs(models):
    def press(done, total):
        raise KeyboardInterrupt

    found = bm.compare(models, draws=0, rng=0, threads=1, callback=press)
    assert found.interrupted
    assert found.pairs[0].accuracy == 1.0


def test_pictures_and_pages(found, tmp_path):
    pytest.importorskip("matplotlib")
    ax = found.plot("cka")
    assert [text.get_text() for text in ax.get_xticklabels()] == ["a", "b", "<c>", "d"]
    assert "<td>a</td>" in found._repr_html_()
    page = found.report(tmp_path / "r.html", command="blindmatch compare x").read_text(encoding="utf-8")
    assert "&lt;c&gt;" in page
    assert "<c>" not in page
    assert found.matrix("p_value").shape == (4, 4)
    with pytest.raises(ValueError, match="did you mean 'accuracy'"):
        found.matrix("acuracy")


def test_the_test_of_a_pair_has_a_p_value():
    X = np.random.default_rng(1).normal(size=(6, 3))
    assert 0 < bm.compare({"a": X, "b": X[::-1]}, draws=9, rng=0).pairs[0].p_value <= 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"a": np.eye(3)}, "two models or more"),
        ({"a": np.eye(3), "b": np.eye(4)}, r"models\['b'\] has 4 items and models\['a'\] has 3"),
        ({"a": np.eye(3), "b": [[1, "x"]] * 3}, r"models\['b'\]"),
        ({"a": np.eye(2), "b": np.eye(2)}, "expected 3 to 3000"),
    ],
)
def test_bad_models_are_named(given, words):
    with pytest.raises(ValueError, match=words):
        bm.compare(given)
