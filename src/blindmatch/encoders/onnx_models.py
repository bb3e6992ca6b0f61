"""Run encoders that were exported to ONNX: no torch is needed (``pip install 'blindmatch[onnx]'``)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blindmatch.encoders.devices import IMAGES_AT_A_TIME, cache_folder, require
from blindmatch.encoders.item_sets import pillow
from blindmatch.encoders.registry import Encoder, Model
from blindmatch.errors import first_line
from blindmatch.io.exchange import read_json
from blindmatch.io.files import file_digest

if TYPE_CHECKING:
    from PIL.Image import Image

FILES = ("model.onnx", "onnx/model.onnx")  # in a folder of ours, and in one made for transformers.js
EMBEDDINGS = ("sentence_embedding", "embedding", "image_embeds", "text_embeds", "pooler_output")
LONGEST = 512  # tokens, if the folder sets no limit


def exports_folder() -> Path:
    """The folder in which exported models are found by name: $BLINDMATCH_ONNX, or onnx in the cache folder."""
    chosen = os.environ.get("BLINDMATCH_ONNX")
    return Path(chosen) if chosen else cache_folder() / "onnx"


def export_name(model: Model) -> str:
    """The name of a model's folder in the folder of exports: its name in its library, without the author's."""
    return model.library_name.rpartition("/")[2]


def exported_folder(model: Model) -> Path | None:
    """The folder of a model that is to be run as ONNX; None if torch is to run it.

    A folder with an ONNX file is always run as such. A name is looked up in `exports_folder` only if torch is missing.
    """
    if model.library == "folder":
        folder = Path(model.library_name)
    elif find_spec("torch") is None:
        folder = exports_folder() / export_name(model)
    else:
        return None
    return folder if any((folder / file).is_file() for file in FILES) else None


def onnx_image_encoder(model: Model, folder: Path, device: str, precision: str) -> Encoder:
    """A vision model from a folder with an ONNX file and ``preprocessor_config.json``."""
    session, file = _session(folder, device, precision)
    prepare, config = preparation(folder, model)
    name = _only(session, file, 4)
    output = _output(session, file)

    def encode(prepared: Sequence[Any]) -> NDArray[np.float32]:
        pieces = [prepared[at : at + IMAGES_AT_A_TIME] for at in range(0, len(prepared), IMAGES_AT_A_TIME)]
        found = [session.run([output], {name: np.stack(list(piece))})[0] for piece in pieces]
        rows = np.concatenate(found).astype(np.float32)
        # (images, d), or (images, positions, d), or (images, d, height, width)
        return rows if rows.ndim == 2 else rows.mean(axis=1 if rows.ndim == 3 else (2, 3))

    return Encoder(model, encode, _description(model, file, config), prepare)


def onnx_text_encoder(model: Model, folder: Path, device: str, precision: str) -> Encoder:
    """A language model from a folder with an ONNX file and ``tokenizer.json``."""
    session, file = _session(folder, device, precision)
    tokenizer, longest = _tokenizer(folder, model)
    output = _output(session, file)
    known = {"input_ids", "attention_mask", "token_type_ids"}
    wanted = [each.name for each in session.get_inputs()]
    if "input_ids" not in wanted or not known.issuperset(wanted):
        raise ValueError(f"{file}: it takes {', '.join(wanted)}; expected input_ids and attention_mask")
    pooling, unit = _pooling(folder)

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        tokens = tokenizer.encode_batch(list(texts))
        ids = np.array([each.ids for each in tokens], dtype=np.int64)
        mask = np.array([each.attention_mask for each in tokens], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        found = np.asarray(session.run([output], {key: feed[key] for key in wanted})[0], dtype=np.float32)
        return found if found.ndim == 2 else _pool(found, mask, pooling, unit)

    pooled = output in EMBEDDINGS
    about = {
        "longest_text_in_tokens": longest,
        "pooling": "in the model" if pooled else pooling,
        "unit length": None if pooled else unit,
    }
    return Encoder(model, encode, _description(model, file, about))


def _pool(states: NDArray[np.float32], mask: NDArray[np.int64], pooling: str, unit: bool) -> NDArray[np.float32]:
    if pooling == "first token":
        rows = states[:, 0]
    else:
        weights = mask[:, :, None].astype(np.float32)
        rows = (states * weights).sum(axis=1) / weights.sum(axis=1)
    if unit:
        rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return np.asarray(rows, dtype=np.float32)


def _pooling(folder: Path) -> tuple[str, bool]:
    """Read the kind of pooling and if rows get unit length; the default is the mean, of unit length."""
    unit = True
    if (folder / "modules.json").is_file():
        unit = any("Normalize" in str(module) for module in read_json(folder / "modules.json"))
    path = folder / "1_Pooling" / "config.json"
    if not path.is_file():
        return "mean", unit
    config = read_json(path)
    modes = [key for key, value in config.items() if key.startswith("pooling_mode") and value is True]
    kinds = {"mean": "pooling_mode_mean_tokens", "first token": "pooling_mode_cls_token"}
    kind = next((kind for kind, mode in kinds.items() if [mode] == modes), None)
    if kind is None:
        raise ValueError(f"{path}: {', '.join(modes) or 'no pooling'}; expected the mean or the first token")
    return kind, unit


def _tokenizer(folder: Path, model: Model) -> tuple[Any, int]:
    library = require("tokenizers", "onnx")
    path = folder / "tokenizer.json"
    path.open("rb").close()  # raises the usual error if the file is missing
    try:
        tokenizer = library.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare exceptions
        raise ValueError(f"{path}: not a tokenizer ({first_line(error)})") from None
    settings: dict[str, Any] = {}
    for name in ("tokenizer_config.json", "sentence_bert_config.json"):
        if (folder / name).is_file():
            settings |= read_json(folder / name)
    longest = model.input_size or settings.get("max_seq_length") or settings.get("model_max_length") or LONGEST
    longest = int(min(longest, LONGEST if longest > 1e6 else longest))  # "no limit" is written as 1e30
    word = settings.get("pad_token") or "[PAD]"
    word = word["content"] if isinstance(word, dict) else word
    tokenizer.enable_truncation(longest)
    tokenizer.enable_padding(pad_id=tokenizer.token_to_id(word) or 0, pad_token=word)
    return tokenizer, longest


def _session(folder: Path, device: str, precision: str) -> tuple[Any, Path]:
    if device not in ("auto", "cpu"):
        raise ValueError(f"device={device!r}: models in ONNX run on the CPU; expected auto or cpu")
    if precision not in ("auto", "float32"):
        raise ValueError(f"precision={precision!r}: models in ONNX run as they were exported; expected auto or float32")
    runtime = require("onnxruntime", "onnx")
    file = next(folder / name for name in FILES if (folder / name).is_file())
    options = runtime.SessionOptions()
    options.log_severity_level = 3  # errors only; they are raised
    try:
        return runtime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"]), file
    except Exception as error:  # its exceptions have no common class of their own
        raise ValueError(f"{file}: onnxruntime cannot run it ({first_line(error)})") from None


def _only(session: Any, file: Path, axes: int) -> str:
    inputs = session.get_inputs()
    if len(inputs) != 1 or len(inputs[0].shape) != axes:
        shown = ", ".join(f"{each.name} with {len(each.shape)} axes" for each in inputs)
        raise ValueError(f"{file}: it takes {shown}; expected one input with {axes} axes")
    return str(inputs[0].name)


def _output(session: Any, file: Path) -> str:
    outputs = {each.name: len(each.shape) for each in session.get_outputs()}
    for name in EMBEDDINGS:
        if outputs.get(name) == 2:
            return name
    first, axes = next(iter(outputs.items()))
    if axes not in (2, 3, 4):
        raise ValueError(f"{file}: its output {first} has {axes} axes; expected 2, 3 or 4")
    return str(first)


def _description(model: Model, file: Path, preprocessing: dict[str, Any]) -> dict[str, Any]:
    runtime = {"library": "onnxruntime", "device": "cpu", "precision": "float32", "onnxruntime": version("onnxruntime")}
    about = {"revision": None, "weights_sha256": file_digest(file), "preprocessing": preprocessing}
    return model.description(**runtime, **about)


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
            left, top = (round((now - wanted) / 2) for now, wanted in zip(image.size, crop[::-1], strict=True))
            image = image.crop((left, top, left + crop[1], top + crop[0]))  # where it is too small, padded with black
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
