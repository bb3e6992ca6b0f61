"""``blindmatch align``, as a user meets it."""

import importlib
import json
import math
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import blindmatch as bm
from blindmatch.cli import main
from blindmatch.cli.commands.align import _verdict

QUICK = ("--clusters", 12, "--clusterings", 5, "--candidates", 3, "--iterations", 8, "--time-limit", 60)


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[np.ndarray, np.ndarray]:
    """Two sets of different items in a folder, and new items under both encoders."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    rng = np.random.default_rng(0)
    scale = 1 / np.sqrt(1 + np.arange(8))
    kinds = 2 * scale * rng.normal(size=(60, 8))
    turns = [np.linalg.qr(rng.normal(size=(width, 8)))[0].T for width in (9, 12)]

    def items(count):
        return kinds[rng.integers(60, size=count)] + 0.4 * scale * rng.normal(size=(count, 8))

    np.save("a.npy", items(900) @ turns[0])
    np.savez("b.npz", embeddings=(items(800) @ turns[1]).astype(np.float32))
    new = items(100)
    np.save("new.npy", new @ turns[0])
    return new @ turns[0], new @ turns[1]


@pytest.fixture
def run(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch):
    """Run the command in this process: exit code, stdout and stderr."""

    def run_in_process(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["blindmatch", "align", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return (ended.value.code or 0, *capsys.readouterr())

    return run_in_process


def test_json_and_every_file(run, files):
    code, out, err = run(
        *("a.npy", "b.npz", *QUICK, "--out", "map.npz", "--transform", "new.npy", "--to", "mapped.npy"),
        *("--certificate", "proof.npz", "--json"),
    )
    assert (code, err) == (0, "")
    told = json.loads(out)
    assert (told["source_size"], told["target_size"], told["components"]) == (900, 800, 8)
    assert told["score"] > 0.7
    assert told["support"] == sum(candidate["likeness"] > 0.2 for candidate in told["candidates"]) - 1
    assert told["support"] >= 1
    assert told["verdict"].endswith("other starts led to the same map: it is probably right. Check a few pairs.")
    assert told["columns"]["source"] == {"used": 9, "ignored": [], "scaled": None}
    assert told["score"] == (told["overlap"] - told["floor"]) / (told["ceiling"] - told["floor"])
    kept = told["candidates"][told["best"]]
    assert kept["overlap"] == max(candidate["overlap"] for candidate in told["candidates"])
    assert kept["lower_bound"] <= kept["cost"]
    loaded = bm.BlindAligner.load(told["out"])
    np.testing.assert_array_equal(np.load("mapped.npy"), loaded.transform(files[0]))
    indices = loaded.kneighbors(files[0], 1, candidates=files[1])[1]
    assert (indices[:, 0] == np.arange(100)).mean() > 0.9
    assert bm.Certificate.load("proof.npz") is not None


def test_a_metric_for_each_side(run, files):
    np.save("long.npy", np.load("a.npy") * np.exp(np.random.default_rng(1).normal(size=(900, 1))))
    to = ("--transform", "new.npy", "--to", "mapped.npy")
    code, _, err = run("long.npy", "b.npz", *QUICK, "--metric", "cosine,correlation", *to, "--out", "map.npz")
    assert (code, err) == (0, "")
    loaded = bm.BlindAligner.load("map.npz")
    assert loaded.metric == ("cosine", "correlation")
    np.testing.assert_array_equal(np.load("mapped.npy"), loaded.transform(files[0]))
    np.testing.assert_allclose(loaded.transform(5 * files[0]), np.load("mapped.npy"), atol=1e-6)


def test_a_person_reads_what_the_map_is_worth(run):
    code, out, err = run("a.npy", "b.npz", *QUICK, "--out", "map.npz")
    assert (code, err) == (0, "")
    assert "900 x 9 aligned with 800 x 12 in 8 dimensions" in out
    assert "of 2 other starts led to the same map: it is probably right." in out
    assert "0 is a random rotation, 1 two halves of one set, higher is better" in " ".join(out.split())
    assert out.count("kept") == 1
    assert "Map: map.npz; in Python: bm.BlindAligner.load('map.npz').transform(X)" in out


@pytest.mark.slow
def test_sets_that_have_nothing_in_common_are_told_so(run):
    np.save("noise.npy", np.random.default_rng(1).normal(size=(800, 12)))
    code, out, _ = run("a.npy", "noise.npy", *QUICK)
    assert code == 0
    assert "None of 2 other starts led to the same map: do not trust it" in out


@pytest.mark.slow
def test_one_candidate_is_compared_with_an_unrelated_cloud(run):
    code, out, _ = run("a.npy", "b.npz", *QUICK, "--candidates", 1)
    assert code == 0
    told = " ".join(out.split())
    assert "one candidate only, but the score is above that of an unrelated cloud: the map may be right." in told
    np.save("noise.npy", np.random.default_rng(1).normal(size=(800, 12)))
    code, out, _ = run("a.npy", "noise.npy", *QUICK, "--candidates", 1)
    assert "nothing shows whether the map is right" in " ".join(out.split())


@pytest.mark.parametrize(
    ("support", "score", "chance", "verdict"),
    [
        (2, 0.98, 0.2, "2 of 4 other starts led to the same map: it is probably right. Check a few pairs."),
        (2, 1.4, 3.9, "2 of 4 other starts led to the same map, but the score cannot confirm it: check a few pairs."),
        (0, 1.25, 0.7, "None of 4 other starts led to the same map, but the score is above that of an unrelated cloud"),
        (0, 1.3, 1.4, "None of 4 other starts led to the same map: do not trust it without a check."),
        (0, math.nan, math.nan, "None of 4 other starts led to the same map: do not trust it without a check."),
    ],
)
def test_a_map_that_no_other_start_led_to_is_never_called_right(support, score, chance, verdict):
    aligner = SimpleNamespace(support_=support, candidates_=[None] * 5, score_=score, chance_=chance)
    assert _verdict(aligner).startswith(verdict)
    assert support or "probably" not in _verdict(aligner)


def test_progress_goes_to_a_log(run, monkeypatch):
    monkeypatch.setattr("blindmatch.cli.progress.OFTEN", 0.0)  # every step is written
    quick = ("--clusters", 4, "--clusterings", 1, "--candidates", 1, "--iterations", 1)
    code, out, err = run("a.npy", "b.npz", *quick, "--log", "run.log", "-v", "--json")
    assert code == 0
    first, *lines = Path("run.log").read_text(encoding="utf-8").splitlines()
    assert "align a.npy b.npz" in first
    assert lines
    steps = [line.partition(": ")[2] for line in lines]  # after the seconds, which each stream reads on its own
    assert [line.split(": ", 2)[2] for line in err.splitlines()] == steps
    json.loads(out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing.npy", "b.npz"), "missing.npy: no such file"),
        (("a.npy", "b.npz", "--transform", "new.npy"), "--transform and --to belong together"),
        (("a.npy", "b.npz", "--to", "x.npy"), "--transform and --to belong together"),
        (("a.npy", "b.npz", "--out", "map.txt"), "--out map.txt: expected a file name that ends with .npz"),
        (("a.npy", "b.npz", "--out", "nowhere/map.npz"), "expected a file in a folder that exists"),
        (("a.npy", "b.npz", "--out", "b.npz"), "this would overwrite an input"),
        (("a.npy", "b.npz", "--out", "m.npz", "--certificate", "m.npz"), "name the same file"),
        (("a.npy", "b.npz", "--log", "a.npy"), "--log a.npy: this would overwrite an input"),
        (("a.npy", "b.npz", "--log", "."), "--log .: it is a folder; expected a file"),
        (("a.npy", "b.npz", "--solver", "tabu", "--certificate", "c.npz"), "--solver tabu proves no bound"),
        (("a.npy", "b.npz", "--clusters", "1"), "--clusters 1"),
        (("a.npy", "b.npz", "--clusters", "500"), "SOURCE has 900 rows"),
        (("a.npy", "b.npz", "--solver", "tabou"), "tabou"),
        (
            ("a.npy", "b.npz", "--metric", "hops"),
            "--metric 'hops'; an aligner rotates coordinates, so it takes euclidean",
        ),
        (("a.npy", "b.npz", "--metric", "cosine,cosin"), "--metric 'cosin' is not known; did you mean 'cosine'"),
        (("zero.npy", "b.npz", "--metric", "cosine"), "SOURCE holds only zeros in row 0, which has no cosine"),
        (("a.npy", "a.npy", "--transform", "b.npz", "--to", "x.npy"), "b.npz: has 12 features; the source has 9"),
    ],
)
def test_bad_input_is_one_line_and_code_2(run, arguments, message):
    np.save("zero.npy", np.zeros((900, 9)))
    before = sorted(path.name for path in Path().iterdir())
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1
    assert sorted(path.name for path in Path().iterdir()) == before


@pytest.mark.slow
def test_the_steps_are_told_in_order():
    told: list[tuple[str, int, int]] = []
    aligner = bm.BlindAligner(
        n_clusters=12, n_clusterings=3, n_candidates=2, n_iterations=4, time_limit=None, random_state=0
    )
    aligner.fit(np.load("a.npy"), np.load("b.npz")["embeddings"], callback=lambda *step: told.append(step))
    steps = {name: [step[1:] for step in told if step[0] == name] for name, *_ in told}
    names = ["reducing dimensions", "clustering", "matching centres", "refining candidates", "refining the best"]
    assert list(steps) == names
    assert [{total for _, total in parts} for parts in steps.values()] == [{2}, {6}, {9}, {8}, {4}]
    for parts in steps.values():
        done = [count for count, _ in parts]
        assert done == sorted(done)
        assert done[0] == 0
        assert done[-1] >= parts[0][1] - 1


def test_few_points_have_no_score(run):
    np.save("few.npy", np.load("a.npy")[:40])
    code, out, err = run("few.npy", "few.npy", "--clusters", 6, *QUICK[2:])
    assert (code, err) == (0, "")
    assert "No score: there are too few points to keep some unseen." in " ".join(out.split())
    assert "nan" not in out


def test_ctrl_c_keeps_the_best_candidate(run, monkeypatch):
    search = importlib.import_module("blindmatch.alignment.search")
    grow, calls = search._grow, []

    def press(*arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return grow(*arguments)

    monkeypatch.setattr(search, "_grow", press)
    code, out, err = run("a.npy", "b.npz", *QUICK, "--out", "map.npz", "--json")
    assert (code, err) == (130, "blindmatch: interrupted; the best candidate so far was kept\n")
    assert len(json.loads(out)["candidates"]) == 1
    assert bm.BlindAligner.load("map.npz") is not None
