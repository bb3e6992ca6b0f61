"""Long runs: shards, resuming, the same bytes, memory that runs out; and the commands."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from sampled import sampled
from typer.testing import CliRunner

pytest.importorskip("PIL.Image", reason="Pillow is not installed (pip install '.[encoders]')")

import blindmatch as bm
from blindmatch.cli.app import app
from blindmatch.encoders import ImageItem, ImageSet, embed_images
from blindmatch.encoders import extract as extracting
from blindmatch.encoders.devices import encode_in_batches
from blindmatch.encoders.vision import load_image_encoder
from blindmatch.io.embeddings import load_embeddings
from blindmatch.io.files import read_arrays, write_arrays


def noise(count, seed=0):
    pixels = np.random.default_rng(seed).integers(0, 255, (count, 40, 40, 3), dtype=np.uint8)
    items = tuple(ImageItem(f"{place:04}", place % 3, pixels[place]) for place in range(count))
    return ImageSet("noise", items, ("a", "b", "c"))


@pytest.mark.parametrize("kind", ["npz", "safetensors"])
def test_a_file_holds_what_was_embedded(tmp_path, kind):
    found = embed_images(noise(30), "pixels", tmp_path / f"x.{kind}", batch_size=7)
    if kind == "safetensors":
        pytest.importorskip("safetensors", reason="safetensors is not installed (pip install '.[files]')")
    read = load_embeddings(tmp_path / f"x.{kind}")
    assert np.array_equal(read.values, found.values)
    assert read.names == found.names
    assert read.labels.tolist() == [place % 3 for place in range(30)]
    manifest = json.loads((tmp_path / f"x.{kind}.json").read_text())
    assert manifest["model"]["preprocessing"]["size"] == 32
    assert manifest["dataset"]["items"] == 30
    assert not (tmp_path / f"x.{kind}.parts").exists()


def test_class_means_are_the_papers(tmp_path):
    rows = embed_images(noise(30), "pixels")
    means = embed_images(noise(30), "pixels", means=True)
    unit = rows.values / np.linalg.norm(rows.values, axis=1, keepdims=True)
    expected = np.stack([unit[rows.labels == c].mean(0) for c in range(3)])
    assert np.allclose(means.values, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)
    assert means.names == ("a", "b", "c")


class KilledError(Exception):
    pass


@sampled("kind", ["npz", "safetensors"], quick=1)
def test_a_run_that_was_cut_off_goes_on_and_ends_the_same(tmp_path, kind):
    images, encoder = noise(700), load_image_encoder("pixels")
    embed_images(images, encoder, tmp_path / f"whole.{kind}")

    def cut(done, total):
        if done > 600:
            raise KilledError

    path = tmp_path / f"cut.{kind}"
    with pytest.raises(KilledError):
        embed_images(images, encoder, path, progress=cut)
    assert not path.exists()
    encoded = []

    def counting(prepared):
        encoded.append(len(prepared))
        return encoder.encode(prepared)

    counter = replace(encoder, encode=counting)
    embed_images(images, counter, path)
    assert sum(encoded) == 700 - 512  # two shards of 256 were there
    assert path.read_bytes() == (tmp_path / f"whole.{kind}").read_bytes()
    encoded.clear()
    embed_images(images, counter, path)
    assert not encoded  # nothing is computed again


def test_shards_of_another_plan_are_not_used(tmp_path):
    path = tmp_path / "x.npz"

    def cut(done, total):
        if done > 256:
            raise KilledError

    with pytest.raises(KilledError):
        embed_images(noise(300, seed=1), "pixels", path, progress=cut)
    embed_images(noise(300, seed=2), "pixels", path)
    assert np.array_equal(load_embeddings(path).values, embed_images(noise(300, seed=2), "pixels").values)
    embed_images(noise(300, seed=1), "pixels", path)  # a finished file of another set is not taken either
    assert np.array_equal(load_embeddings(path).values, embed_images(noise(300, seed=1), "pixels").values)


def test_a_damaged_shard_is_computed_again(tmp_path):
    path = tmp_path / "x.npz"

    def cut(done, total):
        if done > 290:
            raise KilledError

    with pytest.raises(KilledError):
        embed_images(noise(300), "pixels", path, progress=cut)
    shard = tmp_path / "x.npz.parts" / "000000.npz"
    shard.write_bytes(shard.read_bytes()[:1000])
    embed_images(noise(300), "pixels", path)
    assert np.array_equal(load_embeddings(path).values, embed_images(noise(300), "pixels").values)


@pytest.mark.slow
def test_kill_9_and_resume_on_the_command_line(tmp_path):
    """A real process, killed for good while it works, then started again."""
    from PIL import Image

    rng = np.random.default_rng(0)
    for place in range(600):
        folder = tmp_path / "photos" / "ab"[place % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (64, 64, 3), dtype=np.uint8)).save(folder / f"{place}.bmp")
    program = "from blindmatch.cli import main; main()"
    command = [sys.executable, "-c", program, "embed", "images", "photos", "-m", "pixels", "--batch-size", "8"]
    start = subprocess.Popen([*command, "-o", "cut.npz"], cwd=tmp_path)
    parts = tmp_path / "cut.npz.parts"
    deadline = time.monotonic() + 120
    while not (parts / "000000.npz").exists() and time.monotonic() < deadline and start.poll() is None:
        time.sleep(0.002)
    os.kill(start.pid, signal.SIGKILL)
    assert start.wait() == -signal.SIGKILL
    kept = {path.name: path.stat().st_mtime_ns for path in parts.glob("[0-9]*.npz")}
    assert kept, "killed before the first shard"
    assert not (tmp_path / "cut.npz").exists()
    subprocess.run([*command, "-o", "cut.npz"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([*command, "-o", "whole.npz"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    assert (tmp_path / "cut.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
    assert (tmp_path / "cut.npz.json").read_bytes() == (tmp_path / "whole.npz.json").read_bytes()


def test_the_batch_shrinks_where_memory_runs_out():
    sizes = []

    def encode(items):
        if len(items) > 3:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")
        sizes.append(len(items))
        return np.array([[item] for item in items], dtype=np.float32)

    values, batch = encode_in_batches(encode, list(range(20)), 16)
    assert (values[:, 0].tolist(), batch) == (list(range(20)), 2)
    assert max(sizes) == 2
    with pytest.raises(RuntimeError, match="another fault"):
        encode_in_batches(lambda items: (_ for _ in ()).throw(RuntimeError("another fault")), [1, 2], 2)

    def hopeless(items):
        raise MemoryError("not even one")

    with pytest.raises(MemoryError):
        encode_in_batches(hopeless, [1, 2], 2)


def test_numbers_that_are_not_finite_are_refused(tmp_path):
    encoder = load_image_encoder("pixels")
    broken = replace(encoder, encode=lambda prepared: np.full((len(prepared), 2), np.nan, np.float32), description={})
    with pytest.raises(ValueError, match="0000: the model returns numbers that are not finite"):
        embed_images(noise(5), broken)


@pytest.mark.parametrize("out", ["x.pkl", "nowhere/x.npz", "."])
def test_out_must_be_a_file_that_can_be_written(tmp_path, out):
    with pytest.raises(ValueError, match=r"expected a file \.npz or \.safetensors"):
        embed_images(noise(3), "pixels", tmp_path / out)
    with pytest.raises(ValueError, match="batch_size=0"):
        embed_images(noise(3), "pixels", batch_size=0)


def test_arrays_come_back_from_both_kinds(tmp_path):
    arrays = {"embeddings": np.eye(3, dtype=np.float32), "names": np.array(["ä", "b", "c"]), "parameters": np.array(7)}
    library = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    for kind in ("npz", "safetensors"):
        write_arrays(tmp_path / f"a.{kind}", arrays)
        read = read_arrays(tmp_path / f"a.{kind}")
        assert {key: value.tolist() for key, value in read.items()} == {key: a.tolist() for key, a in arrays.items()}
    assert np.array_equal(library.load_file(tmp_path / "a.safetensors")["embeddings"], np.eye(3))


def test_the_commands_complain_in_one_line(photos, tmp_path):
    for words, text in (
        (["images", str(photos), "-m", "pixls", "-o", "x.npz"], "did you mean 'pixels'"),
        (["images", str(tmp_path / "no"), "-m", "pixels", "-o", "x.npz"], "no such folder"),
        (["texts", str(tmp_path / "no.txt"), "-m", "all-MiniLM-L6-v2", "-o", "x.npz"], "no such file"),
        (["images", str(photos), "-m", "pixels", "-o", "x.pkl"], "expected a file"),
        (["classes", str(photos), "--vision", "dinov9", "-o", str(tmp_path / "o")], "is not known"),
    ):
        result = CliRunner().invoke(app, ["embed", *words])
        assert result.exit_code == 2
        assert text in result.stderr
        assert result.stderr.count("\n") == 1


def test_the_command_writes_what_the_function_gives(photos, tmp_path):
    out = tmp_path / "images.npz"
    (photos / "cat" / "broken.jpg").write_bytes(b"")
    result = CliRunner().invoke(
        app, ["embed", "images", str(photos), "-m", "pixels", "-o", str(out), "--class-means", "--json"]
    )
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["files"][0]["skipped"][0]["name"] == "cat/broken.jpg"
    assert "left out cat/broken.jpg: it is empty" in result.stderr
    assert load_embeddings(out).names == ("cat", "ship", "sports car")
    assert extracting.manifest_path(out).exists()


def halved(encoder):
    """Another model: the first half of the numbers of the given one."""
    model = replace(encoder.model, name="half")
    encode = lambda prepared: encoder.encode(prepared)[:, :1536]  # noqa: E731
    return replace(encoder, model=model, encode=encode, description=encoder.description | {"name": "half"})


@pytest.mark.parametrize("kind", ["npz", "safetensors"])
def test_several_models_write_one_file_of_views(tmp_path, kind):
    if kind == "safetensors":
        pytest.importorskip("safetensors", reason="safetensors is not installed (pip install '.[files]')")
    encoder, path = load_image_encoder("pixels"), tmp_path / f"x.{kind}"
    models = [encoder, halved(encoder)]
    found = embed_images(noise(30), models, path, means=True)
    assert [label for label, _ in found.parts] == ["pixels", "half"]
    assert np.array_equal(found.parts[0][1], embed_images(noise(30), encoder, means=True).values)
    assert sorted(file.name for file in tmp_path.iterdir()) == [f"x.{kind}", f"x.{kind}.json"]
    assert len(json.loads((tmp_path / f"x.{kind}.json").read_text())["views"]) == 2
    views = bm.match(path, found, rng=0).task.views[0]
    assert (views.labels, views.widths, views.names) == (("pixels", "half"), (3072, 1536), ("a", "b", "c"))
    assert bm.match(f"{path}+{path}", path, rng=0).task.views[0].labels == ("pixels", "half") * 2
    written = path.stat().st_mtime_ns
    embed_images(noise(30), models, path, means=True)  # it is finished
    assert path.stat().st_mtime_ns == written
    with pytest.raises(ValueError, match="several different ones"):
        embed_images(noise(3), ["pixels", "pixels"])


def test_a_damaged_file_of_views_is_refused(tmp_path):
    np.savez(tmp_path / "x.npz", embeddings=np.eye(3), views=["a", "b"], widths=[1, 1])
    with pytest.raises(ValueError, match=r"views \['a', 'b'\] have widths \[1, 1\] of 3 columns"):
        bm.match(tmp_path / "x.npz", np.eye(3))
