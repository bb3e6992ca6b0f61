"""How images are prepared for an exported model: ``preprocessor_config.json``, as transformers writes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blindmatch.encoders.images import pillow
from blindmatch.encoders.registry import Model

if TYPE_CHECKING:
    from PIL.Image import Image

FILE = "preprocessor_config.json"
RESAMPLING = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}  # Pillow's numbers


def preparation(folder: Path, model: Model) -> tuple[Callable[[Image], NDArray[np.float32]], dict[str, Any]]:
    """The function that prepares one image, and the settings that it follows."""
    path = folder / FILE
    try:
        config = json.loads(path.read_text("utf-8"))
        resize, crop = _size(config.get("size", 224)), _size(config.get("crop_size", config.get("size", 224)))
        mean, deviation = (
            np.array(config.get(key, (neutral,) * 3), dtype=np.float64) if config.get("do_normalize", True) else neutral
            for key, neutral in (("image_mean", 0.0), ("image_std", 1.0))
        )
        factor = float(config.get("rescale_factor", 1 / 255)) if config.get("do_rescale", True) else 1.0
        resampling = pillow().Resampling(config.get("resample", RESAMPLING["bilinear"]))
        scale, shift = np.broadcast_to(factor / deviation, 3), np.broadcast_to(mean / deviation, 3)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{path}: not the settings of an image processor ({error})") from None
    cropping = bool(config.get("do_center_crop", False))
    side = crop if cropping else resize
    asked = model.options.get("size")
    if asked is not None and side != (int(asked), int(asked)):
        raise ValueError(f"model={model.name!r}: size={asked}, but it was exported for {side[0]} x {side[1]} pixels")

    def prepare(image: Image) -> NDArray[np.float32]:
        if config.get("crop_first", False):
            short = min(image.size)
            left, top = ((now - short) // 2 for now in image.size)
            image = image.crop((left, top, left + short, top + short))
        if config.get("do_resize", True):
            image = image.resize(_target(image.size, config.get("size", 224), resize), resampling)
        if cropping:
            image = _centre(image, (crop[1], crop[0]))
        pixels = np.asarray(image, dtype=np.float64) * scale - shift
        return np.ascontiguousarray(pixels.transpose(2, 0, 1), dtype=np.float32)

    return prepare, config


def processor_config(preprocessing: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a loaded model in this form: timm's, or those of EfficientNet-Lite."""
    if "scale" in preprocessing:  # EfficientNet-Lite: the central square first, and (x - 127) / 128
        height, width = preprocessing["resize"]
        return {
            "crop_first": True, "size": {"height": height, "width": width}, "rescale_factor": 1.0,
            "resample": RESAMPLING[preprocessing["interpolation"]], "image_mean": [127.0] * 3, "image_std": [128.0] * 3,
        }  # fmt: skip
    _, height, width = preprocessing["input_size"]
    mode, crop = preprocessing["crop_mode"], preprocessing["crop_pct"]
    if mode not in ("center", "squash") or height != width:
        raise ValueError(f"crop_mode={mode!r} with {height} x {width} pixels cannot be exported")
    edge = int(height / crop)
    return {
        "size": {"shortest_edge": edge} if mode == "center" else {"height": edge, "width": edge},
        "resample": RESAMPLING[preprocessing["interpolation"]],
        "do_center_crop": True, "crop_size": {"height": height, "width": width},
        "image_mean": list(preprocessing["mean"]), "image_std": list(preprocessing["std"]),
    }  # fmt: skip


def _size(size: Any) -> tuple[int, int]:
    """Height and width; a shortest edge gives a square."""
    if isinstance(size, Mapping):
        edge = size.get("shortest_edge")
        size = (edge, edge) if edge is not None else (size["height"], size["width"])
    height, width = (size, size) if isinstance(size, int) else size
    if not (isinstance(height, int) and isinstance(width, int) and 0 < height < 10_000 and 0 < width < 10_000):
        raise ValueError(f"size {height} x {width}")
    return height, width


def _target(now: tuple[int, int], config: Any, size: tuple[int, int]) -> tuple[int, int]:
    """Width and height after resizing; a shortest edge keeps the aspect ratio, rounded down."""
    if not (isinstance(config, int) or "shortest_edge" in config):
        return size[1], size[0]
    width, height = now
    edge, short = size[0], min(now)
    return (edge, int(edge * height / width)) if width == short else (int(edge * width / height), edge)


def _centre(image: Image, size: tuple[int, int]) -> Image:
    """The central part of the given width and height, padded with black."""
    left, top = (round((now - wanted) / 2) for now, wanted in zip(image.size, size, strict=True))
    return image.crop((left, top, left + size[0], top + size[1]))
