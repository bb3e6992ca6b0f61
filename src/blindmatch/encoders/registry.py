"""The known models, and how the name of a model is interpreted. Nothing heavy is imported here."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qsl

from blindmatch.errors import unknown_name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Modality = Literal["vision", "language"]
OnProgress = Callable[[int, int], None]
Encode = Callable[[Sequence[Any]], "NDArray[np.float32]"]
MODALITIES: tuple[Modality, ...] = ("vision", "language")

# Prefixes of names that are not in models.toml, and the library of each.
PREFIXES = {
    "timm": "timm",
    "st": "sentence-transformers",
    "openclip": "open_clip",
    "hf": "transformers",
    "random": "random",
    "folder": "folder",
}


@dataclass(frozen=True)
class Model:
    """A model: its name here and in its library, and its size."""

    name: str  # the paper's name, or the name that the user gave
    modality: Modality
    family: str
    library: str  # the package that runs it
    library_name: str  # its name in that package
    parameters: int | None = None  # number of parameters of the part that computes the embedding; None if unknown
    input_size: int | None = None  # pixels per side, or the longest text in tokens; None if unknown or unlimited
    dimension: int | None = None  # of the embedding; None if unknown
    paper: bool = False  # whether it is one of the paper's 32 + 27 models
    keep_head: bool = False  # whether the embedding is the output of the last layer
    crop: float | None = None  # the share of the resized image that is kept, if its authors and its library differ
    checkpoint: str | None = None  # the location of its weights, if they are not with its library
    package: str | None = None  # the packages with its weights, if it needs no hub
    note: str = ""
    options: Mapping[str, str] = field(default_factory=dict)  # after the question mark (``timm:NAME?size=518``)

    @property
    def id(self) -> str:
        """The name without spaces and slashes, for the command line and file names."""
        return identifier(self.name)

    def description(self, **about: Any) -> dict[str, Any]:
        """The names of the model and the values that a loader adds, for the manifest."""
        return {"name": self.name, "library": self.library, "library_name": self.library_name, **about}

    def row(self) -> dict[str, Any]:
        """The output of ``blindmatch models --json``."""
        values = asdict(self)
        return {"id": self.id} | {key: values[key] for key in values if key not in ("keep_head", "crop", "options")}


@dataclass(frozen=True, eq=False)
class Encoder:
    """A model, ready to use."""

    model: Model
    encode: Encode  # maps a list of texts or prepared images to (n, d) float32
    description: dict[str, Any]  # library, revision, hash of the weights, preprocessing, device: all that decides
    prepare: Callable[[Any], Any] = lambda image: image  # preprocesses one image; runs in threads


def identifier(name: str) -> str:
    """A name in the form that the command line uses."""
    return name.lower().replace("/", "").replace(" ", "-").replace("@", "-")


@functools.cache
def list_models() -> tuple[Model, ...]:
    """All named models: the paper's, then those whose weights are on package registries."""
    groups = tomllib.loads(files("blindmatch.encoders").joinpath("models.toml").read_text("utf-8"))["group"]
    models = [
        Model(**({key: group[key] for key in group if key != "models"} | m))
        for group in groups
        for m in group["models"]
    ]
    return (
        *models,
        Model("pixels", "vision", "baseline", "numpy", "pixels", 0, 32, 3072, note="raw pixels, 32 x 32 x 3"),
    )


def find_model(spec: str, modality: Modality | None = None) -> Model:
    """Find a model by name.

    Parameters
    ----------
    spec
        A name of `list_models` in any spelling (``DINOv2 ViT-G/14``, ``dinov2-vit-g14``); ``timm:NAME``, ``st:NAME``,
        ``openclip:NAME/WEIGHTS``, ``hf:NAME``; a folder with a saved model; ``random:ARCHITECTURE?seed=3``, an
        untrained timm model; ``pixels``. Options follow a question mark: ``?size=518`` (pixels per side).
    modality
        "vision" or "language", if the name could mean both (a CLIP model has two towers).

    Examples
    --------
    >>> find_model("clip-rn50x64", "language").library_name
    'RN50x64-quickgelu/openai'
    >>> find_model("timm:resnet18.a1_in1k").library
    'timm'
    """
    if modality is not None and modality not in MODALITIES:
        raise ValueError(f"modality={modality!r}; expected 'vision' or 'language'")
    word, _, query = spec.partition("?")
    options = _options(spec, query)
    known = [model for model in list_models() if modality in (None, model.modality)]
    wanted = identifier(word)
    for candidate in (wanted, f"{wanted}-text"):
        for model in known:
            if candidate == model.id:
                return _with_options(model, options)
    prefix, colon, name = word.partition(":")
    if colon and name and prefix in PREFIXES:
        return _library_model(spec, prefix, name, modality, options)
    if word and Path(word).is_dir():
        texts = any(Path(word, name).exists() for name in ("modules.json", "tokenizer.json"))
        kind = modality or ("language" if texts else "vision")
        return Model(word, kind, "folder", "folder", word, options=options)
    for other in list_models():
        if wanted in (other.id, identifier(other.library_name)):
            if modality is not None and other.modality != modality:
                raise ValueError(f"model={spec!r} is a {other.modality} model; expected a {modality} model")
            return _with_options(other, options)
    error = unknown_name("model", spec, [model.id for model in known])
    raise ValueError(f"{error}; or timm:NAME, st:NAME, openclip:NAME, hf:NAME, random:NAME?seed=0, a folder")


def _with_options(model: Model, options: Mapping[str, str]) -> Model:
    size = int(options["size"]) if "size" in options else model.input_size
    return replace(model, options=options, input_size=size)


def _options(spec: str, query: str) -> dict[str, str]:
    try:
        options = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=True)) if query else {}
    except ValueError:
        raise ValueError(f"model={spec!r}: after the question mark expected KEY=VALUE, such as seed=3") from None
    for key, value in options.items():
        if key not in ("seed", "size"):
            raise ValueError(f"model={spec!r}: unknown option {key!r}; expected seed or size")
        if not value.isdecimal() or (key == "size" and int(value) == 0):
            raise ValueError(f"model={spec!r}: {key}={value!r} is not a whole number")
    return options


def _library_model(spec: str, prefix: str, name: str, modality: Modality | None, options: Mapping[str, str]) -> Model:
    known: dict[str, Modality] = {"timm": "vision", "random": "vision", "st": "language"}
    natural = known.get(prefix)
    if natural is not None and modality not in (None, natural):
        raise ValueError(f"model={spec!r} is a {natural} model; expected a {modality} model")
    kind = natural or modality
    if kind is None:
        raise ValueError(f"model={spec!r} may be a vision or a language model; say which with modality=")
    if prefix == "openclip" and "/" not in name:
        name = f"{name}/openai"
    return _with_options(Model(spec, kind, PREFIXES[prefix], PREFIXES[prefix], name), options)


def model_names() -> list[str]:
    """The names of all models of `list_models`."""
    return [model.name for model in list_models()]
