"""The command line on tables with units: which columns are used, and how they are scaled."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from commands import run
from strategies import rng_of

from blindmatch.geometry.column_scaling import heaviest

SIZE = 10


@pytest.fixture(autouse=True)
def tables(tmp_path, monkeypatch):
    """One country a row: people, an age and a temperature; then millions of people, and the rest with noise."""
    monkeypatch.chdir(tmp_path)
    rng = rng_of(1)
    hidden = rng.standard_normal((SIZE, 3))
    table = np.column_stack([1e7 * np.exp(2 * hidden[:, 0]), 60 + 9 * hidden[:, 1], 15 + 9 * hidden[:, 2]])
    with Path("en.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["Country", "Continent", "id", "People", "Age", "Temperature"])
        rows.writerows([f"c{i}", "x", 7 * i, *row] for i, row in enumerate(table))
    with Path("de.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["Land", "Mio", "Alter", "Grad"])
        rows.writerows([f"c{i}", row[0] / 1e6, row[1], row[2]] for i, row in reversed(list(enumerate(table))))
    return table


def test_raw_units_are_warned_about_and_auto_mends_them():
    raw = run("match", "en.csv", "de.csv", "--truth", "names", "--json")
    assert "warning: column 'People' of the source carries 99.9 % of the squared distances" in raw.stderr
    assert raw.stderr.count("warning") == 1
    assert "--scale auto" in raw.stderr
    mended = run("match", "en.csv", "de.csv", "--truth", "names", "--json", "--scale", "auto", "--report", "r.html")
    assert mended.stderr == ""
    values = json.loads(mended.stdout)
    assert values["right"] == SIZE
    assert values["columns"]["source"] == {
        "used": ["People", "Age", "Temperature"],
        "ignored": ["Continent (text)", "id (an index)"],
        "scaled": "z-scores; logarithm of People",
    }
    assert values["settings"]["scale"] == "auto"
    page = Path("r.html").read_text(encoding="utf-8")
    assert "Continent (text), id (an index)" in page
    assert "z-scores; logarithm of People" in page
    shown = run("match", "en.csv", "de.csv", "--scale", "auto").stdout
    assert "source, columns: People, Age, Temperature; ignored: Continent (text), id (an index)" in shown


def test_a_saved_match_is_shown_with_the_same_scale():
    run("match", "en.csv", "de.csv", "--scale", "log", "--save", "m.npz")
    assert run("report", "m.npz").exit_code == 0
    assert "proved optimal" in Path("report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("scale", ["none", "columns"])
def test_classify_and_subsets_take_a_scale(scale):
    images = run("classify", "en.csv", "de.csv", "--scale", scale, "--starts", 3, "--json")
    assert json.loads(images.stdout)["columns"]["images"]["ignored"] == ["Continent (text)", "id (an index)"]
    subsets = run("subsets", "en.csv", "de.csv", "--scale", scale, "--size", 3, "--json")
    assert json.loads(subsets.stdout)["columns"]["target"]["used"] == ["Mio", "Alter", "Grad"]
    for told in (images, subsets):  # once each, not by Python as well
        assert told.stderr.lower().count("warning") == (1 if scale == "none" else 0)
    assert run("subsets", "en.csv", "de.csv", "--scale", "logs", "--size", 3).exit_code == 2


def test_a_scale_is_not_suggested_for_relations(tables):
    """A long vector is a heavy column of a matrix of inner products, but ``--scale`` is refused there."""
    far = np.vstack([tables[:, 1:], [1e4, 1e4]])
    products = far @ far.T
    assert heaviest(products) is not None
    np.save("products.npy", products)
    told = run("match", "products.npy", "products.npy", "--metric", "precomputed", "-d", "inner-product", "--json")
    assert (told.exit_code, told.stderr) == (0, "")
    np.save("wide.npy", far)
    told = run("match", "products.npy", "wide.npy", "--metric", "precomputed")
    assert (told.exit_code, told.stdout) == (2, "")
    assert "wide.npy: its shape is (11, 2); --metric precomputed expects a square matrix" in told.stderr


def test_align_warns_of_units_once():
    rng = rng_of(2)
    np.save("x.npy", rng.standard_normal((40, 3)) * [1e3, 1, 1])
    quick = ("--clusters", 3, "--clusterings", 1, "--candidates", 1, "--iterations", 1)
    told = run("align", "x.npy", "x.npy", *quick, "--json")
    assert told.stderr.lower().count("warning") == 1
    assert "column 0 of the source carries 99.9 %" in told.stderr
    assert run("align", "x.npy", "x.npy", *quick, "--scale", "auto", "--json").stderr == ""


def test_hints_have_the_command_to_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    np.save("a.npy", X[:9])
    np.save("b.npy", X[:7])
    np.save("many.npy", X)
    done = run("match", "a.npy", "b.npy")
    assert "9 sources and 7 targets" in done.stderr
    assert done.stderr.rstrip().endswith("--unmatched-cost auto")
    assert run("match", "a.npy", "b.npy", "--json").stderr == ""
    run("match", "a.npy", "b.npy", "--report", "sizes.html")
    assert "<p>There are 9 sources and 7 targets. If items may have no partner" in Path("sizes.html").read_text()
    np.save("twins.npy", X[[0, 0, 1, 2, 3, 4, 5]])
    assert "cannot be told apart" in run("match", "twins.npy", "b.npy", "--report", "twins.html").stderr
    page = Path("twins.html").read_text()
    assert "<p>2 of the 7 sources have the same relations as another one" in page
    assert "--unmatched-cost auto</p>" in page
    assert run("match", "a.npy", "b.npy", "--unmatched-cost", "3").stderr == ""
    many = run("match", "many.npy", "b.npy", "-s", "tabu", "-t", "5")
    assert "blindmatch classify many.npy b.npy" in many.stderr
    assert "and 33 more (53 in all)" in many.stdout.replace("\n", " ")


def test_pairs_of_repeated_names_are_right_if_the_names_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(6, 3))
    np.savez("a.npz", embeddings=X, names=np.array(list("xxyzzw")))
    np.savez("b.npz", embeddings=X[::-1], names=np.array(list("wzzyxx")))
    done = run("match", "a.npz", "b.npz", "--truth", "names", "--json")
    assert json.loads(done.stdout)["right"] == 6
    Path("truth.csv").write_text("x,x\ny,y\nz,z\nw,w\n")
    assert json.loads(run("match", "a.npz", "b.npz", "--truth", "truth.csv", "--json").stdout)["right"] == 6
    Path("truth.csv").write_text("x,y\ny,x\n")
    assert json.loads(run("match", "a.npz", "b.npz", "--truth", "truth.csv", "--json").stdout)["right"] == 0
