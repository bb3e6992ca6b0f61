"""The command line: hints for ``match``, the same options for ``verify``; ``classify`` and ``subsets``."""

from pathlib import Path

import numpy as np
import pytest
from commands import answer, run, write_two_sets
from strategies import rng_of

import blindmatch as bm


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """Two named sets; two sources have no counterpart. A matrix of similarities."""
    monkeypatch.chdir(tmp_path)
    X, Y = write_two_sets("s", "t")
    np.save("alike.npy", rng_of(1).random((10, 10)))
    return X, Y


def test_outliers_stay_alone(files):
    found = answer("match", "a.npz", "b.npz", "--unmatched-cost", 1)
    assert found["permutation"] == bm.match(*files, unmatched_cost=1, rng=0).permutation.tolist()
    assert found["permutation"] == [-1, -1, *range(2, 10)]
    assert found["unmatched_sources"] == found["unmatched_targets"] == [0, 1]
    shown = run("match", "a.npz", "b.npz", "--unmatched-cost", 1).stdout
    assert "source, unmatched: s0, s1" in shown
    assert "target, unmatched: t0, t1" in shown
    assert answer("match", "a.npz", "b.npz")["unmatched_sources"] == []
    assert answer("match", "a.npz", "b.npz", "--unmatched-cost", 3, "--max-unmatched", 0)["unmatched_targets"] == []


def test_forbidden_pairs_and_similarities(files):
    Path("not.csv").write_text("source,target\ns3,t3\n4,4\n")
    found = answer("match", "a.npz", "b.npz", "--forbid", "s2:t2", "--forbidden-pairs", "not.csv")["permutation"]
    assert all(found[i] != i for i in (2, 3, 4))
    options = {"similarity": np.load("alike.npy"), "similarity_weight": 40.0}
    found = answer("match", "a.npz", "b.npz", "--similarity", "alike.npy", "--similarity-weight", 40)
    assert found["cost"] == pytest.approx(bm.match(*files, rng=0, **options).cost)


def test_numbers_that_are_names_are_names(files):
    """A file that was written by name is read by name, also where the names are numbers in another order."""
    X, Y = files
    names = [str(i) for i in reversed(range(10))]
    np.savez("a.npz", embeddings=X, names=names)
    np.savez("b.npz", embeddings=Y, names=names)
    found = answer("match", "a.npz", "b.npz", "--known", "9:8", "--solver", "two-opt")["permutation"]
    assert found[0] == 1
    Path("truth.csv").write_text("9,8\n")
    shown = answer("match", "a.npz", "b.npz", "--known", "9:8", "--solver", "two-opt", "--truth", "truth.csv")
    assert shown["right"] == 1
    np.savez("b.npz", embeddings=Y, names=[f"{i + 20}" for i in range(10)])  # what is no name is an index
    found = answer("match", "a.npz", "b.npz", "--known", "9:8", "--solver", "two-opt")["permutation"]
    assert found[0] == 8
    np.savez("a.npz", embeddings=X, names=["1"] * 10)
    assert "the name '1' occurs 10 times" in run("match", "a.npz", "b.npz", "--known", "1:8").stderr


def test_names_with_a_colon(files):
    X, Y = files
    np.savez("a.npz", embeddings=X, names=[f"s{i}" for i in range(10)])
    np.savez("b.npz", embeddings=Y, names=[f"t:{i}" for i in range(10)])
    assert answer("match", "a.npz", "b.npz", "--known", "s3:t:7", "--solver", "two-opt")["permutation"][3] == 7


OPTIONS = [
    ("--unmatched-cost", 3),
    ("--unmatched-cost", 3, "--max-unmatched", 1),
    ("--similarity", "alike.npy", "--similarity-weight", 20, "--forbid", "2:2", "--known", "s5:t5"),
    ("--unmatched-cost", 4, "--similarity", "alike.npy", "--forbid", "2:2"),
    ("--distortion", "cka", "--unmatched-cost", 0.01, "--max-unmatched", 2),
]


@pytest.mark.parametrize("options", OPTIONS)
def test_verify_builds_the_same_problem(options):
    found = answer("match", "a.npz", "b.npz", "--certificate", "c.npz", *options)
    checked = answer("verify", "a.npz", "b.npz", "c.npz", *options)
    assert found["status"] == "optimal"
    assert checked["lower_bound"] == pytest.approx(found["lower_bound"], rel=1e-9)
    assert checked["lower_bound"] <= found["cost"] + 1e-9


def test_a_certificate_of_few_dummies_proves_no_more_than_they_allow():
    answer("match", "a.npz", "b.npz", "--certificate", "c.npz", "--unmatched-cost", 1000)
    assert bm.Certificate.load("c.npz").size == 10  # so high a price leaves nothing unmatched
    bound = answer("verify", "a.npz", "b.npz", "c.npz", "--unmatched-cost", 0.5)["lower_bound"]
    assert bound <= 2 * 0.5  # for this price, a match with one pair less could cost as little as that
    done = run("verify", "a.npz", "b.npz", "c.npz", "--unmatched-cost", 0.5, "--distortion", "cka")
    assert done.exit_code == 1
    assert "proves nothing" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--forbid", "2"), "--forbid 2: expected SOURCE:TARGET"),
        (("--forbid", "x:2"), "no item is called 'x'"),
        (("--similarity", "none.npy"), "none.npy: no such file"),
        (("--similarity", "a.npz"), "similarity has shape (10, 5); expected (10, 10)"),
        (("--similarity-weight", "-1"), "--similarity-weight -1.0"),
        (("--similarity-weight", "3"), "--similarity-weight 3: there is no --similarity to weigh"),
        (("--known", "s1:tt1"), "no item is called 'tt1'; did you mean 't1'?"),
        (("--known", "a:b:c"), "names with a colon go into a file for --known-pairs"),
        (("--forbid", "a:b:c"), "names with a colon go into a file for --forbidden-pairs"),
        (("--solver", "TABU"), "did you mean 'tabu'?"),
        (("--truth", "empty.csv"), "--truth empty.csv: there is no pair in it"),
        (("--truth", "title.csv"), "--truth title.csv: there is no pair in it"),
        (("--unmatched-cost", "-1"), "--unmatched-cost -1.0"),
        (("--max-unmatched", "1"), "--max-unmatched 1 needs an --unmatched-cost"),
        (("--similarity", "alike.npy", "--certificate", "alike.npy"), "overwrite an input"),
    ],
)
def test_bad_options_are_told_in_one_line(options, message):
    Path("empty.csv").write_text("")
    Path("title.csv").write_text("source,target\n")
    done = run("match", "a.npz", "b.npz", *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.fixture
def classes():
    """Images of four classes, with labels, and one embedding a class, with names."""
    rng = rng_of(1)
    centres = rng.standard_normal((4, 5))
    labels = np.repeat(np.arange(4), 15)
    images = centres[labels] + 0.05 * rng.standard_normal((60, 5))
    names = np.array(["ant", "bee", "cat", "dog"])
    np.savez("images.npz", embeddings=images, labels=names[labels])
    np.savez("numbered.npz", embeddings=images, labels=labels)
    np.save("images.npy", images)
    np.savez("classes.npz", embeddings=centres @ np.linalg.qr(rng.standard_normal((7, 7)))[0][:5], names=names)
    return labels


@pytest.mark.parametrize("images", ["images.npz", "numbered.npz"])
def test_classify_compares_with_labels(classes, images):
    found = answer("classify", images, "classes.npz", "--starts", 5)
    assert found["predicted"] == classes.tolist()
    assert (found["accuracy"], found["matching_accuracy"], found["ceiling"]) == (1.0, 1.0, 1.0)
    assert found["classes"] == ["ant", "bee", "cat", "dog"]
    assert found["match"]["status"] == "optimal"
    assert [found["cluster_class"][c] for c in found["clusters"]] == found["predicted"]
    shown = run("classify", images, "classes.npz", "--starts", 5).stdout
    assert "100.0 % of the images get their class (chance: 25.0 %)" in " ".join(shown.split())


def test_classify_without_labels_and_with_more_clusters(classes):
    done = run("classify", "images.npy", "classes.npz", "--starts", 5, "--clusters", 6, "-o", "out.csv")
    assert done.exit_code == 0
    assert "by its nearest neighbour" in done.stdout
    assert "get their class" not in done.stdout
    rows = Path("out.csv").read_text().splitlines()
    assert rows[0] == "name,class"
    predicted = answer("classify", "images.npy", "classes.npz", "--starts", 5, "--clusters", 6)["predicted"]
    assert rows[1:] == [f"{i},{('ant', 'bee', 'cat', 'dog')[c]}" for i, c in enumerate(predicted)]
    assert len(set(predicted)) == 4
    assert "accuracy" not in answer("classify", "images.npy", "classes.npz", "--starts", 2)


def test_classify_writes_a_report(classes):
    done = run("classify", "images.npz", "classes.npz", "--starts", 5, "--report", "r.html", "-o", "out.csv")
    assert done.exit_code == 0
    assert done.stdout.rstrip().endswith("Classes: out.csv\nReport: r.html")
    page = Path("r.html").read_text(encoding="utf-8")
    assert "60 images sorted into 4 classes, 100.0\u00a0% of them right." in page
    assert "Yes: checked against the labels" in page
    found = answer("classify", "images.npz", "classes.npz", "--starts", 5)
    for cluster, c in enumerate(found["cluster_class"]):
        name = ("ant", "bee", "cat", "dog")[c]
        row = page.partition(f">cluster {cluster}</bdi></span></td>")[2].partition("</tr>")[0]
        assert f"<bdi>{name}</bdi>" in row
        assert ">15</td>" in row
        assert f">{name} 100 %</td>" in row
    assert "images.npz classified by classes.npz" in page


def test_classify_of_data_without_labels_is_assessed(classes):
    found = answer("classify", "images.npy", "classes.npz", "--starts", 5, "--assess", "--report", "r.html")
    assert len(found["trust"]["confidence"]) == 4
    page = Path("r.html").read_text(encoding="utf-8")
    assert ">confidence<span" in page
    assert "get their class" not in page
    assert "trust" not in answer("classify", "images.npy", "classes.npz", "--starts", 2)
    assert "confidence" in run("classify", "images.npy", "classes.npz", "--starts", 5, "--assess").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none.npy", "classes.npz"), "none.npy: no such file"),
        (("images.npz", "classes.npz", "--starts", "0"), "--starts 0"),
        (("images.npz", "classes.npz", "--clusters", "99"), "IMAGES has 60 rows; at least 99 are needed"),
        (("a.npz", "classes.npz", "--solver", "rendom"), "did you mean 'random'?"),
        (("wrong.npz", "classes.npz"), "wrong.npz: the label 'emu' is neither a name nor an index of a class"),
        (("images.npz", "classes.npz", "-o", "no/such/out.csv"), "expected a file in a folder that exists"),
        (("images.npz", "classes.npz", "-o", "classes.npz"), "overwrite an input"),
        (("images.npz", "classes.npz", "-r", "no/such/r.html"), "expected a file in a folder that exists"),
        (("images.npz", "classes.npz", "-r", "images.npz"), "overwrite an input"),
        (("images.npz", "classes.npz", "-r", "x", "-o", "x"), "--output and --report name the same file x"),
    ],
)
def test_bad_input_of_classify(classes, arguments, message):
    np.savez("wrong.npz", embeddings=np.load("images.npy"), labels=["emu"] * 60)
    done = run("classify", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_subsets_are_those_of_best_subsets(files):
    X, Y = files
    found = answer("subsets", "a.npz", "b.npz", "--size", 4, "-k", 3, "--engine", "exact")
    expected = bm.best_subsets(X, Y, size=4, k=3, engine="exact", rng=0)
    assert found["subsets"] == [subset.tolist() for subset in expected.subsets]
    assert found["costs"] == expected.costs.tolist()
    assert found["names"][0] == [f"s{i}" for i in expected.subsets[0]]
    assert found["status"] == "optimal"
    shown = run("subsets", "a.npz", "b.npz", "--size", 4, "-k", 3).stdout
    assert "; ".join(found["names"][0]) in shown
    assert "no proof" in shown
    assert "Proved" in run("subsets", "a.npz", "b.npz", "--size", 4, "--engine", "exact").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a.npz", "b.npz", "--size", "11"), "--size 11; expected at most 10"),
        (("a.npz", "alike.npy", "--size", "2", "-k", "0"), "-k 0"),
        (("a.npz", "b.npz", "--size", "2", "--engine", "exakt"), "did you mean 'exact'?"),
        (("a.npz", "few.npy", "--size", "2"), "SOURCE has 10 items, and the other side has 3"),
    ],
)
def test_bad_input_of_subsets(arguments, message):
    np.save("few.npy", np.eye(3))
    done = run("subsets", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr


@pytest.mark.parametrize("command", ["classify", "subsets"])
def test_help_teaches_by_examples(command):
    done = run(command, "--help")
    assert done.exit_code == 0
    assert f"blindmatch {command}" in done.stdout.partition("Examples:")[2]


def test_known_pairs_of_other_items(files):
    X, Y = files
    np.save("x.npy", X[5:]), np.save("y.npy", Y[5:])
    np.save("a.npy", X[:5]), np.save("b.npy", Y[:5])
    found = answer("match", "a.npy", "b.npy", "--known-from", "x.npy", "y.npy")
    assert found["cost"] == pytest.approx(bm.match(X[:5], Y[:5], known=(X[5:], Y[5:]), rng=0).cost)
    assert "5 known pairs of other items" in found["message"]
    np.save("y.npy", Y[6:])
    assert (
        "--known-from has 5 sources and 4 targets"
        in run("match", "a.npy", "b.npy", "--known-from", "x.npy", "y.npy").stderr
    )


def test_nobody_answers_in_a_pipe(files):
    assert "--ask needs a terminal" in run("match", "a.npz", "b.npz", "--ask", "--known-pairs", "new.csv").stderr
    assert not Path("new.csv").exists()
