"""Several models and relations on the command line, and which models agree."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from blindmatch.cli.app import app


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(word) for word in arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 3))
    for name, noise in (("a", 0.0), ("b", 0.1), ("c", 0.1)):
        np.save(tmp_path / f"{name}.npy", X + noise * rng.normal(size=X.shape))
        np.save(tmp_path / f"{name}_kernel.npy", np.abs(X @ X.T + noise))
    np.savez(tmp_path / "named.npz", embeddings=X, names=list("uvwxyz"))
    np.savez(tmp_path / "other.npz", embeddings=X, names=list("uvwxyq"))
    return tmp_path


def test_views_and_layers_by_plus(files):
    page = files / "r.html"
    out = run("match", f"{files}/a.npy+{files}/b.npy", files / "c.npy", "--json", "--report", page)
    assert json.loads(out.stdout)["permutation"] == list(range(6))
    assert "The 2 models of the source" in page.read_text(encoding="utf-8")
    sides = [f"{files}/{name}_kernel.npy+{files}/b_kernel.npy" for name in "ac"]
    out = run("match", *sides, "--metric", "precomputed", "--weights", "1,0.5", "--json")
    assert json.loads(out.stdout)["permutation"] == list(range(6))
    out = run("match", f"{files}/a.npy+{files}/named.npz", files / "named.npz", "--json")
    assert json.loads(out.stdout)["pairs"][0]["source_name"] == "u"


def test_bad_views_are_told_in_one_line(files):
    np.save(files / "short.npy", np.eye(4))
    for source, more, words in [
        (f"{files}/a.npy+{files}/short.npy", [], "has 4 items and"),
        (f"{files}/named.npz+{files}/other.npz", [], "item 5 is 'q'"),
        (f"{files}/a.npy", ["--weights", "1,x"], "expected numbers"),
    ]:
        out = run("match", source, files / "a.npy", *more, code=2)
        assert words in out.stderr
        assert len(out.stderr.strip().splitlines()) == 1


def test_compare_a_folder(files, tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    for name in "abc":
        (folder / f"{name}.npy").write_bytes((files / f"{name}.npy").read_bytes())
    for _ in range(2):  # the second time the table is in the folder, and is no model
        out = run("compare", folder, "--csv", folder / "t.csv", "--report", folder / "r.html", "--draws", 0, "--json")
        assert [row["one"] for row in json.loads(out.stdout)] == ["a", "a", "b"]
    assert (folder / "t.csv").read_text(encoding="utf-8").splitlines()[0].startswith("one,other,items,cka")
    assert "expected a folder" in run("compare", folder / "a.npy", code=2).stderr


def test_graphs_with_edges_between_them(tmp_path):
    edges = [("a", "b", 2), ("b", "c", 1), ("c", "a", 5), ("a", "d", 3)]
    for name, end in (("left", "1"), ("right", "2")):
        lines = [f"{u}{end},{v}{end},{w}" for u, v, w in edges]
        (tmp_path / f"{name}.csv").write_text("\n".join([*lines, f"e{end}", f"f{end}"]), encoding="utf-8")
    (tmp_path / "all.csv").write_text("e1,a2,2\ne2,a1,2\na1,b1,9\n", encoding="utf-8")
    files = [tmp_path / "left.csv", tmp_path / "right.csv", "--graph"]
    out = json.loads(run("match", *files, "--edge-weights", "log", "--crossed", tmp_path / "all.csv", "--json").stdout)
    pairs = {pair["source_name"]: pair["target_name"] for pair in out["pairs"]}
    assert pairs == {f"{node}1": f"{node}2" for node in "abcdef"}  # the edge between tells e and f apart
    layers = [f"{tmp_path}/{name}.csv+{tmp_path}/{name}.csv" for name in ("left", "right")]
    assert json.loads(run("match", *layers, "--graph", "--weights", "1,2", "--json").stdout)["status"] == "optimal"
    (tmp_path / "none.csv").write_text("x,y\n", encoding="utf-8")
    assert "no edge leads" in run("match", *files, "--crossed", tmp_path / "none.csv", code=2).stderr
    (tmp_path / "rows.csv").write_text("name,x,y\na,1,2\na,3,5\nb,4,4\n", encoding="utf-8")
    rows = [tmp_path / "rows.csv"] * 2
    assert "several items have one name" in run("match", *rows, "--crossed", tmp_path / "all.csv", code=2).stderr
