"""AnnData in and out, with real files."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from typer.testing import CliRunner

import blindmatch as bm
from blindmatch.cli.app import app
from blindmatch.io.embeddings import load_embeddings

anndata = pytest.importorskip("anndata")


@pytest.fixture
def files(tmp_path: Path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 4))
    order = rng.permutation(12)
    a, b = anndata.AnnData(X), anndata.AnnData(np.zeros((12, 2)))
    a.obs_names = [f"a{i}" for i in range(12)]
    b.obs_names = [f"b{i}" for i in range(12)]
    b.obsm["X_lsi"] = X[order]
    b.obsm["X_other"] = rng.normal(size=(12, 2))
    a.write_h5ad(tmp_path / "a.h5ad")
    b.write_h5ad(tmp_path / "b.h5ad")
    return tmp_path, a, b, np.argsort(order)


def test_a_file_gives_its_matrix_and_the_names_of_its_cells(files) -> None:
    folder, a, b, _ = files
    read = load_embeddings(folder / "a.h5ad")
    assert np.allclose(read.values, a.X)
    assert read.names == tuple(a.obs_names)
    assert np.allclose(load_embeddings(f"{folder}/b.h5ad#X_lsi").values, b.obsm["X_lsi"])
    with pytest.raises(ValueError, match="obsm holds X_lsi, X_other; choose one"):
        load_embeddings(folder / "b.h5ad")
    with pytest.raises(ValueError, match="did you mean 'X_lsi'"):
        load_embeddings(f"{folder}/b.h5ad#X_ls")
    (folder / "broken.h5ad").write_bytes(b"no such thing")
    with pytest.raises(ValueError, match="not a readable"):
        load_embeddings(folder / "broken.h5ad")


def test_the_command_matches_them(files) -> None:
    folder, _, _, truth = files
    made = CliRunner().invoke(app, ["match", f"{folder}/a.h5ad", f"{folder}/b.h5ad#X_lsi", "--json"])
    values = json.loads(made.stdout)
    assert values["permutation"] == truth.tolist()
    assert values["pairs"][0]["target_name"] == f"b{truth[0]}"


def test_a_match_is_written_into_both_objects_and_survives_a_file(files, tmp_path: Path) -> None:
    _, a, b, truth = files
    task = bm.Task(a.X, b.obsm["X_lsi"])
    result = bm.match(task, rng=0)
    partners = result.permutation.copy()
    partners[3] = -1
    bm.io.annotate_cells(a, b, partners, confidence=np.full(12, 0.9), projected=bm.project(result).points)
    a.write_h5ad(tmp_path / "out.h5ad")
    b.write_h5ad(tmp_path / "other.h5ad")
    read = anndata.read_h5ad(tmp_path / "out.h5ad")
    assert read.obs["blindmatch_partner"].iloc[0] == f"b{truth[0]}"
    assert read.obs["blindmatch_partner"].isna().tolist() == [i == 3 for i in range(12)]
    assert read.obsm["X_blindmatch"].shape == (12, 4)
    back = anndata.read_h5ad(tmp_path / "other.h5ad").obs
    assert back["blindmatch_partner"].iloc[truth[0]] == "a0"
    assert np.isnan(back["blindmatch_confidence"].iloc[truth[3]])
    with pytest.raises(ValueError, match="permutation must hold"):
        bm.io.annotate_cells(a, b, [12] * 12)
    for bad in ([0] * 12, [-2, *range(11)]):
        with pytest.raises(ValueError, match="permutation must hold different targets below"):
            bm.io.annotate_cells(a, b, bad)
    with pytest.raises(ValueError, match="source is an AnnData object; pass one of its matrices"):
        bm.match(a, b)
    with pytest.raises(ValueError, match="projected has shape"):
        bm.io.annotate_cells(a, b, partners, projected=np.zeros((3, 2)))


def test_the_command_writes_partners_into_the_cells_of_the_source(files) -> None:
    folder, _, _, truth = files
    out = folder / "out.h5ad"
    made = CliRunner().invoke(
        app, ["match", f"{folder}/a.h5ad", f"{folder}/b.h5ad#X_lsi", "--assess", "--output", str(out)]
    )
    assert made.exit_code == 0, made.output
    read = anndata.read_h5ad(out)
    assert read.obs["blindmatch_partner"].tolist() == [f"b{j}" for j in truth]
    assert read.obs["blindmatch_confidence"].between(0, 1).all()
    assert read.obsm["X_blindmatch"].shape == (12, 4)
    assert sorted(path.name for path in folder.iterdir()) == ["a.h5ad", "b.h5ad", "out.h5ad"]


def test_hostile_files_are_refused(files) -> None:
    """Sizes that the file does not hold, data that are kept elsewhere, circles, and indices that scipy would follow."""
    import h5py

    folder = files[0]
    sound = (folder / "a.h5ad").read_bytes()
    sparse = anndata.AnnData(X=csr_matrix(np.eye(6, 4, dtype=np.float32)))
    sparse.write_h5ad(folder / "s.h5ad")

    def huge(file: Any) -> None:
        del file["X"]
        file.create_dataset("X", shape=(6, 10**9), dtype="f4", chunks=(1, 10**6))

    def elsewhere(file: Any) -> None:
        del file["X"]
        file.create_dataset("X", shape=(6, 2), dtype="f4", external=[("/etc/hostname", 0, 48)])

    def linked(file: Any) -> None:
        del file["X"]
        file["X"] = h5py.ExternalLink("s.h5ad", "X")

    def circle(file: Any) -> None:
        file["obsm"]["again"] = file["/"]

    def astray(file: Any) -> None:
        file["X/indptr"][:] = [0, 10**6, 2, 3, 4, 4, 4]

    for edit, says in (
        (huge, "would unpack to"),
        (elsewhere, "stored in other files"),
        (linked, "a link to another place"),
        (circle, "occurs in several places"),
        (astray, "indptr"),
    ):
        path = folder / "hostile.h5ad"
        path.write_bytes((folder / "s.h5ad").read_bytes() if edit is astray else sound)
        with h5py.File(path, "r+") as file:
            edit(file)
        with pytest.raises(ValueError, match=f"hostile.h5ad.*{says}"):
            load_embeddings(path)


def test_a_heap_that_hdf5_would_follow_forever_is_refused(files) -> None:
    """Neither Ctrl-C nor a time limit would end it."""
    folder = files[0]
    sound = bytearray((folder / "a.h5ad").read_bytes())
    at = sound.index(b"GCOL") + 16
    while number := int.from_bytes(sound[at : at + 2], "little"):
        at += 16 + (int.from_bytes(sound[at + 8 : at + 16], "little") + 7) // 8 * 8
    assert number == 0
    sound[at + 8 : at + 16] = bytes(8)
    (folder / "endless.h5ad").write_bytes(sound)
    with pytest.raises(ValueError, match=r"endless.h5ad.*a gap of 0 bytes"):
        load_embeddings(folder / "endless.h5ad")
    os.mkfifo(folder / "pipe.h5ad")
    with pytest.raises(ValueError, match=r"pipe.h5ad.*a pipe or a device"):
        load_embeddings(folder / "pipe.h5ad")
