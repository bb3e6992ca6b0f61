"""Load language models: sentence-transformers, CLIP's text towers through open_clip, a folder, ONNX, word vectors."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindmatch.encoders.devices import Device, as_device, hub_access, hub_revision, require, weights_digest
from blindmatch.encoders.offline import packaged_folder, word_vectors
from blindmatch.encoders.registry import Model, find_model
from blindmatch.errors import unknown_name

EncodeTexts = Callable[[Sequence[str]], NDArray[np.float32]]


@dataclass(frozen=True, eq=False)
class TextEncoder:
    """A language model, ready to use.

    Attributes
    ----------
    model
        The description of the model.
    encode
        Maps a list of texts to (n, d) float32.
    description
        Library, revision, hash of the weights, device: everything that the embeddings depend on.
    """

    model: Model
    encode: EncodeTexts
    description: dict[str, Any]


def load_text_encoder(
    spec: str, *, device: str = "auto", precision: str = "auto", download: bool = False
) -> TextEncoder:
    """Load a language model by any name that `find_model` knows; weights are downloaded only if `download` is set."""
    model = find_model(spec, "language")
    if "size" in model.options or "seed" in model.options:
        raise ValueError(f"model={spec!r}: size and seed are options of vision models")
    if model.library == "numpy":
        encode, about = word_vectors(model)
        return TextEncoder(model, encode, model.description(**about))
    from blindmatch.encoders.onnx_models import exported_folder, onnx_text_encoder

    folder = exported_folder(model)
    if folder is not None:
        return onnx_text_encoder(model, folder, device, precision)
    place = as_device(device, precision)
    loader = _open_clip if model.library == "open_clip" else _sentence_transformers
    with hub_access(spec, download):
        encode, about = loader(model, place, download)
    return TextEncoder(model, encode, model.description(**about, **place.description))


def _sentence_transformers(model: Model, place: Device, download: bool) -> tuple[EncodeTexts, dict[str, Any]]:
    network, name = sentence_network(model, place.name, download)

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        with place.autocast():
            rows = network.encode(list(texts), batch_size=len(texts), show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(rows, dtype=np.float32)

    about = {
        "revision": hub_revision(name),
        "sentence_transformers": version("sentence-transformers"),
        "transformers": version("transformers"),
        "weights_sha256": weights_digest(network),
        "preprocessing": {
            "longest_text_in_tokens": network.get_max_seq_length(),
            "modules": [type(module).__name__ for module in network],
        },
    }
    return encode, about


def sentence_network(model: Model, device: str, download: bool) -> tuple[Any, str]:
    """A model of sentence-transformers, and its folder or its name on the hub.

    Also loads any transformers model; sentence-transformers then takes the mean over its tokens.
    """
    library = require("sentence_transformers", "offline-models")
    name = model.library_name
    if model.package is not None:
        name = str(packaged_folder(model))
    elif "/" not in name and not Path(name).is_dir():
        name = f"sentence-transformers/{name}"
    if Path(name).is_dir():
        _refuse_foreign_code(Path(name))
    network = library.SentenceTransformer(name, device=device, trust_remote_code=False, local_files_only=not download)
    network.eval().requires_grad_(False)
    return network, name


def _refuse_foreign_code(folder: Path) -> None:
    """Check the parts of a saved model; only classes of the library itself are loaded."""
    path = folder / "modules.json"
    if not path.exists():
        return
    try:
        kinds = [str(module["type"]) for module in json.loads(path.read_text("utf-8"))]
    except (ValueError, TypeError, KeyError):
        raise ValueError(f"{path}: not a list of modules") from None
    for kind in kinds:
        if not kind.startswith("sentence_transformers."):
            raise ValueError(f"{path}: it names {kind!r}, which is not part of sentence-transformers")


def _open_clip(model: Model, place: Device, download: bool) -> tuple[EncodeTexts, dict[str, Any]]:
    open_clip, torch = require("open_clip"), require("torch")
    name, _, weights = model.library_name.partition("/")
    if name not in open_clip.list_models():
        raise unknown_name("model", name, open_clip.list_models())
    whole = open_clip.create_model(name, pretrained=weights)
    tokenizer = open_clip.get_tokenizer(name)
    whole.visual = torch.nn.Identity()  # free the memory of the image tower, which is not needed
    whole.eval().requires_grad_(False)
    digest = weights_digest(whole)
    whole.to(place.name)

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        return place.run(whole.encode_text, tokenizer(list(texts)))

    about = {
        "revision": None,
        "open_clip": version("open_clip_torch"),
        "weights_sha256": digest,
        "preprocessing": {"longest_text_in_tokens": whole.context_length},
    }
    return encode, about
