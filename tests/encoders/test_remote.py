"""Embedding on workers: the same file as without them, whatever the executor, and what is refused."""

import sys
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("PIL.Image", reason="Pillow is not installed (pip install '.[encoders]')")
from PIL import Image

from blindmatch.cli.app import app
from blindmatch.encoders import ImageItem, ImageSet, embed_images, load_images, shards
from blindmatch.encoders.vision import load_image_encoder


@pytest.fixture
def photos(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    for place in range(20):
        folder = tmp_path / "photos" / "ab"[place % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (8, 8, 3), dtype=np.uint8)).save(folder / f"{place}.bmp")
    (tmp_path / "photos" / "a" / "broken.bmp").write_bytes(b"no image")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("blindmatch.encoders.shards.SHARD", 4)
    return load_images("photos")


@pytest.fixture
def expected(photos, tmp_path):
    embed_images(photos, "pixels", tmp_path / "expected.npz", batch_size=4)
    return (tmp_path / "expected.npz").read_bytes(), (tmp_path / "expected.npz.json").read_bytes()


def written(tmp_path, name):
    return (tmp_path / name).read_bytes(), (tmp_path / f"{name}.json").read_bytes()


def test_workers_give_the_same_file(photos, expected, tmp_path):
    seen = []
    with ThreadPoolExecutor(2) as pool:
        embed_images(
            photos, "pixels", tmp_path / "x.npz", batch_size=4, executor=pool, progress=lambda *at: seen.append(at)
        )
    assert written(tmp_path, "x.npz") == expected
    assert (len(photos), len(photos)) in seen


@pytest.mark.slow
def test_processes_in_another_folder_give_the_same_file(photos, expected, tmp_path):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=sys.path.insert, initargs=(0, "")) as pool:
        embed_images(photos, "pixels", tmp_path / "x.npz", batch_size=4, executor=pool)
    assert written(tmp_path, "x.npz") == expected


class LosesWorkers(ThreadPoolExecutor):
    """A pool that breaks at the third piece."""

    count = 0

    def submit(self, fn, /, *args, **kwargs):
        self.count += fn is shards.embed_shards
        if self.count != 3:
            done = super().submit(fn, *args, **kwargs)
            done.result()
            return done
        lost = Future()
        lost.set_exception(BrokenProcessPool("killed"))
        return lost


def test_a_lost_worker_is_told_and_the_next_run_goes_on(photos, expected, tmp_path, monkeypatch):
    with LosesWorkers(1) as pool, pytest.raises(ChildProcessError, match="run again to continue"):
        embed_images(photos, "pixels", tmp_path / "x.npz", batch_size=4, executor=pool)
    kept = len(list((tmp_path / "x.npz.parts").glob("0*.npz")))
    pieces = []
    compute = shards.embed_shards
    monkeypatch.setattr(shards, "embed_shards", lambda *given: pieces.extend(given[-1]) or compute(*given))
    with ThreadPoolExecutor(1) as pool:
        embed_images(photos, "pixels", tmp_path / "x.npz", batch_size=4, executor=pool)
    assert len(pieces) == 6 - kept
    assert written(tmp_path, "x.npz") == expected


def test_slurm_jobs_get_several_shards(photos, expected, tmp_path):
    class Counting(ThreadPoolExecutor):
        tasks = 0

        def submit(self, fn, /, *args):
            self.tasks += fn is shards.embed_shards
            return super().submit(fn, *args)

    with Counting(1) as pool:
        from blindmatch.encoders.extract import extract

        extract([shards.Place({}, pool, tasks=2).work("pixels", photos)], tmp_path / "x.npz", 4, False, None)
        assert pool.tasks == 2
    assert written(tmp_path, "x.npz") == expected


def test_what_workers_cannot_do_is_refused(photos, tmp_path):
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(ValueError, match="the name of a model"):
            embed_images(photos, load_image_encoder("pixels"), executor=pool)
        with pytest.raises(ValueError, match="executor=3"):
            embed_images(photos, "pixels", executor=3)
        function = ImageSet("hub", (ImageItem("x", 0, lambda: np.zeros((4, 4, 3), np.uint8)),), ("a",))
        with pytest.raises(ValueError, match="hub: its images cannot be sent"):
            embed_images(function, "pixels", executor=pool)
        elsewhere = ImageSet("photos", (ImageItem("x", 0, tmp_path / "photos" / "gone.bmp"),), ("a",))
        task = "pixels", (), load_image_encoder("pixels").description, 4, False
        with pytest.raises(ValueError, match=r"gone\.bmp is not on the worker"):
            shards.embed_shards(*task, [(0, elsewhere)])
        task = "pixels", (), {"library": "another"}, 4, False
        with pytest.raises(ValueError, match="all workers need the same packages"):
            shards.embed_shards(*task, [(0, photos)])


def test_a_worker_without_a_package_is_told(photos, monkeypatch):
    def lacking(*arguments):
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr(shards, "describe", lacking)
    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="a worker lacks torch"):
        embed_images(photos, "pixels", executor=pool)


def test_the_command_uses_an_engine(photos, expected, tmp_path):
    command = ["embed", "images", "photos", "-m", "pixels", "-o", "x.npz", "--batch-size", "4"]
    done = CliRunner().invoke(app, [*command, "--engine", "local", "--workers", "1"])
    assert done.exit_code == 0, done.output
    assert written(tmp_path, "x.npz") == expected
    refused = CliRunner().invoke(app, [*command, "--workers", "2"])
    assert refused.exit_code == 2
    assert "need --engine" in refused.output
