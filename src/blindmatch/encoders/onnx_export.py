"""Write a model as ONNX, in a folder that can be run without torch."""

from __future__ import annotations

import json
import tempfile
import warnings
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindmatch.encoders import onnx_models
from blindmatch.encoders.devices import hub_access, require
from blindmatch.encoders.item_sets import pillow
from blindmatch.encoders.language import sentence_network
from blindmatch.encoders.registry import Modality, Model, find_model
from blindmatch.encoders.vision import load_network

TOLERANCE = 1e-4  # the largest accepted difference between torch and ONNX, for rows of length 1
TEXTS = ("cat", "a photo of a cat.", "The quick brown fox jumps over the lazy dog, and nobody knows why it does so.")


def export_encoder(
    spec: str, out: str | Path | None = None, *, modality: Modality | None = None, download: bool = False
) -> tuple[Path, float]:
    """Export a model to ONNX; needs torch and onnxscript (``pip install onnxscript``).

    Parameters
    ----------
    spec
        A name of a model (see `find_model`): vision models of timm and EfficientNet-Lite, and any language model that
        sentence-transformers runs.
    out
        The folder to write, which must not exist. By default the model's name in the folder of exports
        ($BLINDMATCH_ONNX, or ``onnx`` in the cache folder): there it is found by its name where torch is missing.
    modality, download
        As in `find_model` and `embed_images`.

    Returns
    -------
    tuple
        The folder, and the largest difference between the embeddings (of length 1) of torch and of the written model.
        If it is above 1e-4, nothing is written and a ValueError is raised.
    """
    model = find_model(spec, modality)
    folder = onnx_models.exports_folder() / onnx_models.export_name(model) if out is None else Path(out)
    if folder.exists():
        raise ValueError(f"out={str(folder)!r} exists; expected a new folder")
    require("onnxruntime", "onnx")
    for module in ("torch", "onnxscript"):
        require(module, "onnx-export")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        made = Path(scratch) / "model"
        made.mkdir()
        export = _export_vision if model.modality == "vision" else _export_language
        difference = export(model, spec, made, download)
        if not difference <= TOLERANCE:
            raise ValueError(f"model={spec!r}: ONNX differs from torch by {difference:.2g}; expected {TOLERANCE:g}")
        made.rename(folder)
    return folder, difference


def _export_vision(model: Model, spec: str, folder: Path, download: bool) -> float:
    torch = require("torch")
    if model.library not in ("timm", "random", "folder", "efficientnet-lite-pytorch"):
        raise ValueError(f"model={spec!r}: vision models of {model.library} cannot be exported; those of timm can")
    network, prepare, about = load_network(model, spec, download)
    settings = about["preprocessing"]
    if "crop_mode" not in settings and "scale" not in settings:
        raise ValueError(f"model={spec!r}: vision models of transformers cannot be exported; those of timm can")
    (folder / onnx_models.FILE).write_text(
        json.dumps(onnx_models.processor_config(settings), indent=1) + "\n", encoding="utf-8"
    )
    images = []
    for seed, (width, height) in enumerate(((300, 201), (57, 90), (640, 480))):
        pixels = np.random.default_rng(seed).integers(0, 256, (height // 8 + 1, width // 8 + 1, 3), dtype=np.uint8)
        images.append(pillow().fromarray(pixels).resize((width, height)))
    batch = torch.stack([prepare(image) for image in images])
    shapes = {"pixels": {0: torch.export.Dim("images")}}
    _write(network, {"pixels": batch}, shapes, "embedding", folder)
    with torch.inference_mode():
        expected = network(batch).numpy()
    encoder = onnx_models.onnx_image_encoder(model, folder, "cpu", "float32")
    return _difference(expected, encoder.encode([encoder.prepare(image) for image in images]))


def _export_language(model: Model, spec: str, folder: Path, download: bool) -> float:
    torch = require("torch")
    if model.library in ("numpy", "open_clip"):
        raise ValueError(f"model={spec!r}: a model of {model.library} cannot be exported; sentence-transformers can")
    with hub_access(spec, download):
        whole, _ = sentence_network(model, "cpu", download)

    class Sentences(torch.nn.Module):  # type: ignore[misc,name-defined]
        """All modules in turn, with the pooling and what follows it."""

        def __init__(self) -> None:
            super().__init__()
            self.whole = whole

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            return self.whole({"input_ids": input_ids, "attention_mask": attention_mask})["sentence_embedding"]

    whole.tokenizer.save_pretrained(str(folder))
    limits = {"max_seq_length": whole.get_max_seq_length()}
    (folder / "sentence_bert_config.json").write_text(json.dumps(limits) + "\n", encoding="utf-8")
    tokens = whole.tokenizer(list(TEXTS), padding=True, return_tensors="pt")
    inputs = {key: tokens[key] for key in ("input_ids", "attention_mask")}
    shape = {0: torch.export.Dim("texts"), 1: torch.export.Dim("tokens", max=limits["max_seq_length"] or 512)}
    _write(Sentences(), inputs, dict.fromkeys(inputs, shape), "sentence_embedding", folder)
    expected = whole.encode(list(TEXTS), batch_size=len(TEXTS), show_progress_bar=False, convert_to_numpy=True)
    return _difference(expected, onnx_models.onnx_text_encoder(model, folder, "cpu", "float32").encode(TEXTS))


def _write(network: Any, inputs: dict[str, Any], shapes: dict[str, Any], output: str, folder: Path) -> None:
    """Write ``model.onnx``, with the weights inside."""
    torch = require("torch")
    with torch.inference_mode(), redirect_stdout(StringIO()), warnings.catch_warnings():  # the exporter prints
        warnings.simplefilter("ignore")  # it warns of its own future, and of names of axes
        torch.onnx.export(
            network.eval(), tuple(inputs.values()), str(folder / "model.onnx"), input_names=list(inputs),
            output_names=[output], dynamic_shapes=tuple(shapes.values()), dynamo=True, external_data=False,
        )  # fmt: skip


def _difference(expected: NDArray[Any], found: NDArray[Any]) -> float:
    expected, found = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (expected, found))
    return float(np.abs(expected - found).max())
