"""Encoder tests: what they share, and the mending of a torchvision that does not fit the torch beside it."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))


def _mend_torchvision():
    """Some registries pair a torch for the CPU with a torchvision for CUDA, whose operators then cannot be loaded.

    Its import fails on operators that no encoder uses; declaring them mends it. Where the two fit, nothing is done.
    """
    if importlib.util.find_spec("torch") is None:
        return
    found = importlib.util.find_spec("torchvision")
    if found is None or not found.submodule_search_locations:
        return
    version = (Path(found.submodule_search_locations[0]) / "version.py").read_text()
    import torch

    if torch.version.cuda is None and "+cu" in version:
        for operator in ("nms", "qnms"):
            torch.library.define(f"torchvision::{operator}", "(Tensor boxes, Tensor scores, float threshold) -> Tensor")


_mend_torchvision()


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    """A test that reaches for the network fails at once."""
    import socket

    def refuse(*_arguments, **_options):
        raise AssertionError("a test reached for the network")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture
def photos(tmp_path):
    """A folder of 3 classes with 4 small images each; every class has its own look."""
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed (pip install '.[encoders]')")
    rng = np.random.default_rng(0)
    for number, name in enumerate(("cat", "sports_car", "ship")):
        folder = tmp_path / "photos" / name
        folder.mkdir(parents=True)
        for place in range(4):
            pixels = rng.integers(0, 90, (40, 50, 3), dtype=np.uint8)
            pixels[..., number] += 150
            image.fromarray(pixels).save(folder / f"{place}.png")
    return tmp_path / "photos"


@pytest.fixture(scope="session")
def tiny_timm(tmp_path_factory):
    """A small vision transformer as timm saves it for the hub, and the network itself."""
    torch = pytest.importorskip("torch", reason="torch is not installed (pip install '.[encoders]')")
    timm = pytest.importorskip("timm", reason="timm is not installed (pip install '.[encoders]')")
    from timm.models import save_for_hf

    options = {"embed_dim": 24, "depth": 2, "num_heads": 2, "img_size": 32, "patch_size": 8}
    torch.manual_seed(0)
    network = timm.create_model("vit_tiny_patch16_224", num_classes=5, **options)
    network.pretrained_cfg["input_size"] = (3, 32, 32)
    folder = tmp_path_factory.mktemp("models") / "tiny"
    save_for_hf(network, folder, model_args=options, safe_serialization=True)
    return folder, network.eval()
