"""The command line: options of distortions, files that are refused, the best subset, a suggested price."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from commands import answer, run, write_two_sets
from strategies import rng_of

import blindmatch as bm
from blindmatch.cli.options import in_shell_words
from blindmatch.matching.price import Price, suggest_price
from blindmatch.problem.distortions import MutualKNN, as_distortion


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """Two named sets; two sources have no counterpart."""
    monkeypatch.chdir(tmp_path)
    return write_two_sets("c", "c")


def test_a_distortion_with_options(files):
    assert as_distortion("mutual-knn:k=8,normalize=true") == MutualKNN(k=8, normalize=True)
    found = answer("match", "a.npz", "b.npz", "-d", "gaussian:bandwidth=0.9")
    assert found["cost"] == pytest.approx(bm.match(*files, distortion=bm.Gaussian(bandwidth=0.9), rng=0).cost)
    assert found["settings"]["distortion"] == "gaussian:bandwidth=0.9"


@pytest.mark.parametrize(
    ("distortion", "message"),
    [
        (
            "gaussian:bandwith=2",
            "--distortion 'gaussian:bandwith=2': option='bandwith' is not known; did you mean 'bandw",
        ),
        ("gaussian:bandwidth=wide", "bandwidth='wide'; expected a number"),
        ("mutual-knn:k=0", "--distortion 'mutual-knn:k=0': k=0; expected an integer of at least 1"),
        ("gauss:bandwidth=2", "--distortion 'gauss' is not known; did you mean 'gaussian'?"),
    ],
)
def test_bad_options_of_distortions(distortion, message):
    done = run("match", "a.npz", "b.npz", "-d", distortion)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--report", "x.pdf"), "--report x.pdf: expected a file name that ends with .html; a browser prints"),
        (("--report", "-"), "for standard output use /dev/stdout"),
        (("--certificate", "c.txt"), "--certificate c.txt: expected a file name that ends with .npz"),
        (("--certificate", "c.npz", "-s", "brute-force"), "brute-force writes no certificate"),
    ],
)
def test_outputs_are_refused_before_the_run(monkeypatch, arguments, message):
    monkeypatch.setattr("blindmatch.matching.match.match_task", None)  # calling it would fail
    done = run("match", "a.npz", "b.npz", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert not {"x.pdf", "-", "c.txt", "c.npz"} & {path.name for path in Path().iterdir()}


def test_errors_name_the_option():
    flags = {"n_clusters": "--clusters", "source": "SOURCE"}
    assert in_shell_words("X has 8 rows; n_clusters=20 needs 40", flags) == "SOURCE has 8 rows; --clusters 20 needs 40"
    assert in_shell_words("k=0; expected", {"k": "-k"}) == "-k 0; expected"
    assert in_shell_words("X=0; expected", {"k": "-k"}) == "X=0; expected"
    assert in_shell_words("a.npz: x=1 in k_means=2", {"x": "-x"}) == "a.npz: -x 1 in k_means=2"
    assert in_shell_words("known_pairs holds 3", {"known": "--known", "known_pairs": "--pairs"}, {"known": ["3"]}) == (
        "--known holds 3"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("match --neighbors 3", "--neighbors 3 is given with --metric 'euclidean'; only geodesic and hops have them"),
        ("match --metric a,b,c", "--metric a,b,c: expected one name, or two"),
        ("match --max-unmatched 3", "--max-unmatched 3 needs an --unmatched-cost"),
        ("match --known 0:99", "--known holds (0, 99)"),
        ("match --similarity few.npy", "--similarity has shape (1, 2)"),
        ("match -d mutual-knn:k=99", "--distortion mutual-knn:k=99: k=99; expected 1 <= k"),
        ("match --seed -1", "'--seed': '-1'; expected an integer from 0"),
        ("classify --seed -1", "'--seed': '-1'; expected an integer from 0"),
        ("match --min-confidence x", "'--min-confidence': "),
        ("match --min-confidence 2", "--min-confidence 2.0; expected"),
        ("match --start few.json", "--start few.json: not what"),
        ("classify --clusters 0", "--clusters 0; expected"),
        ("align --clusters 99", "SOURCE has 10 rows; --clusters 99 needs at least 198"),
    ],
)
def test_errors_of_functions_name_the_option(arguments, message):
    np.save("few.npy", np.ones((1, 2)))
    Path("few.json").write_text("{}", encoding="utf-8")
    command, *options = arguments.split()
    done = run(command, "a.npz", "b.npz", *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert "pydantic" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_proof_of_another_problem_is_noticed():
    done = run("match", "a.npz", "b.npz", "--certificate", "c.npz")
    assert "Proof: c.npz" in done.stdout
    same = run("verify", "a.npz", "b.npz", "c.npz", "--json")
    assert (same.exit_code, same.stderr, json.loads(same.stdout)["same_problem"]) == (0, "", True)
    other = run("verify", "a.npz", "b.npz", "c.npz", "--scale", "columns")
    assert "written for another problem" in other.stderr
    with np.load("c.npz") as file:  # as earlier versions wrote it
        np.savez("old.npz", **{name: file[name] for name in file.files if name != "fingerprint"})
    old = run("verify", "a.npz", "b.npz", "old.npz", "--scale", "columns", "--json")
    assert (old.stderr, json.loads(old.stdout)["same_problem"]) == ("", None)


def test_the_best_subset_goes_to_match():
    found = answer("subsets", "a.npz", "b.npz", "--size", 5, "-k", 2, "--out", "best")
    again = answer("match", "best/source.npz", "best/target.npz", "--truth", "rows")
    assert again["right"] == 5
    assert [pair["source_name"] for pair in again["pairs"]] == found["names"][0]
    assert "expected a folder" in run("subsets", "a.npz", "b.npz", "--size", 5, "--out", "a.npz").stderr


def test_assess_takes_names_and_truth():
    answer("match", "a.npz", "b.npz", "--save", "m.npz")
    found = answer("assess", "m.npz", "--truth", "names", "--draws", 3)
    assert found["right"] == sum(pair["right"] for pair in found["pairs"])


def test_a_suggested_price_leaves_the_outliers_alone(files):
    found = answer("match", "a.npz", "b.npz", "--unmatched-cost", "auto")
    assert found["unmatched_sources"] == [0, 1]
    price, curve = found["unmatched_cost"], found["matched_at_price"]
    assert curve[0][0] < price < curve[-1][0]
    assert [matched for _, matched in curve] == sorted(matched for _, matched in curve)
    assert suggest_price(bm.Task(*files)).price == price
    assert found["settings"]["unmatched"] == f"{price:g} each"
    result = bm.match(*files, unmatched_cost="auto", rng=0)
    assert result.permutation.tolist() == found["permutation"]
    assert f"unmatched_cost={price!r} was suggested" in result.message
    assert bm.BlindMatcher(unmatched_cost="auto", random_state=0).fit(*files).cost_ == result.cost
    assert result.task.price.price == price
    assert result.assess(draws=1, regret=False, rng=0).draws == 1
    with pytest.raises(ValueError, match="unmatched_cost='auto' has no problem yet"):
        bm.Task(*files, unmatched_cost="auto").problem  # noqa: B018
    with pytest.raises(ValueError, match="unmatched_cost is given together with a Task"):
        bm.match(bm.Task(*files), unmatched_cost="auto")
    done = run("match", "a.npz", "b.npz", "--unmatched-cost", "auto", "-d", "cka")
    assert "--unmatched-cost 'auto' needs losses that are not negative" in done.stderr
    assert run("match", "a.npz", "b.npz", "--unmatched-cost", "cheap").exit_code == 2


def test_prices_of_the_same_pairs_are_a_range():
    text = Price(2.0, ((0.5, 7), (1.0, 8), (2.0, 8), (4.0, 8))).text
    assert text == "7 pairs at a price of 0.5, 8 pairs at prices from 1 to 4"
    shown = run("match", "a.npz", "b.npz", "--unmatched-cost", "auto").stdout
    assert re.search(r"Suggested price of an unmatched item: [\d.]+\. A quick search finds [\d.]+ pairs? at ", shown)


def test_the_only_subset_is_told():
    assert "the only subset of that size" in run("subsets", "a.npz", "b.npz", "--size", 10).stdout
    assert "no proof that none is cheaper" in run("subsets", "a.npz", "b.npz", "--size", 5).stdout


def test_names_with_commas_in_subsets_can_be_told_apart():
    X = rng_of(0).standard_normal((3, 2))
    np.savez("named.npz", embeddings=X, names=["Congo, Republic", "Chad", "Mali"])
    assert "Congo, Republic; Chad; Mali" in run("subsets", "named.npz", "named.npz", "--size", 3).stdout


def test_pictures_from_the_folder_of_classes():
    image = pytest.importorskip("PIL.Image")
    for name in ("c1", "c2"):
        Path("photos", name).mkdir(parents=True)
        image.new("RGB", (8, 8)).save(Path("photos", name, "10.png"))
        image.new("RGB", (8, 8)).save(Path("photos", name, "2.png"))
    done = run("match", "a.npz", "b.npz", "--source-images", "photos", "--report", "r.html")
    assert done.exit_code == 0, done.stderr
    assert Path("r.html").read_text(encoding="utf-8").count("data:image") >= 2


def test_the_help_of_match_is_in_groups():
    text = run("match", "--help-all").stdout
    places = [text.index(word) for word in ("--distortion", "--report", "--seed", "--known", "--truth")]
    assert places == sorted(places)


def test_missing_relations_are_refused_or_filled_in():
    X = rng_of(5).standard_normal((8, 3))
    apart = np.linalg.norm(X[:, None] - X, axis=2)
    gaps = apart[::-1, ::-1].copy()
    gaps[0, 1] = gaps[1, 0] = gaps[2, 5] = np.nan
    np.save("whole.npy", apart)
    np.save("gaps.npy", gaps)
    rows = [",".join("" if np.isnan(value) else repr(float(value)) for value in row) for row in gaps]
    Path("gaps.csv").write_text("\n".join([",".join(f"c{i}" for i in range(8)), *rows]), encoding="utf-8")
    given = ("--metric", "precomputed")
    for name in ("gaps.npy", "gaps.csv"):
        refused = run("match", "whole.npy", name, *given)
        assert (refused.exit_code, f"{name}: 3 of 64 entries are missing" in refused.stderr) == (2, True)
        found = answer("match", "whole.npy", name, *given, "--missing", "path", "--certificate", "gaps.npz")
        assert found["settings"]["missing in the target"] == "3 of 64 entries, filled in by the rule 'path'"
        assert found["cost"] == pytest.approx(bm.match(kernels=(apart, bm.fill_missing(gaps)), rng=0).cost)
        same = answer("verify", "whole.npy", name, "gaps.npz", *given, "--missing", "path")
        assert (same["same_problem"], same["lower_bound"]) == (True, found["lower_bound"])
    assert "target, missing: 3 of 64" in run("match", "whole.npy", "gaps.csv", *given, "--missing", "mean").stdout
    gaps[3] = gaps[:, 3] = np.nan
    np.save("lost.npy", gaps)
    for words, message in (
        (("whole.npy", "lost.npy", *given, "--missing", "path"), "lost.npy: item 3 is not related to all others"),
        (("whole.npy", "gaps.npy", *given, "--missing", "pth"), "--missing 'pth' is not known; did you mean 'path'?"),
        (("whole.npy", "whole.npy", "--missing", "path"), "--missing path is for --metric precomputed"),
    ):
        done = run("match", *words)
        assert (done.exit_code, done.stdout) == (2, "")
        assert message in done.stderr
