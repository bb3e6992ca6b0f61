"""The bundled data: two views of the same things, made by models that were not trained together."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from blindmatch.errors import unknown_name
from blindmatch.validation import FloatArray, IntArray, as_floats

DATASETS = {
    "cifar10": "ten classes of images, and the names of the classes",
    "colours": "the looks of eleven colours, and their names",
    "countries": "25 countries in two tables that share no column, in two languages",
}


@dataclass(frozen=True, eq=False)
class Demo:
    """A matching problem whose answer is known.

    Attributes
    ----------
    source, target
        (n, d) and (n, e) embeddings; the target is shuffled.
    source_names, target_names
        The name of each row.
    truth
        Source i and target truth[i] are the same thing.
    scale
        How the columns of both sides are brought to a common scale, as in ``bm.match``.
    source_images
        (n, h, w, 3) a picture of each source, uint8; None where there is none.
    why
        Why a match can be right at all; empty if unknown.
    about, source_model, target_model, licence
        Human-readable text.
    """

    source: FloatArray
    target: FloatArray
    source_names: tuple[str, ...]
    target_names: tuple[str, ...]
    truth: IntArray
    scale: str
    source_images: NDArray[np.uint8] | None
    why: str
    about: str
    source_model: str
    target_model: str
    licence: str


def load_demo(name: str = "cifar10", seed: int = 0) -> Demo:
    """Load bundled data and shuffle its target, so that the order of the rows reveals nothing.

    Examples
    --------
    >>> demo = load_demo("colours", seed=1)
    >>> demo.target_names[demo.truth[0]] == demo.source_names[0]
    True
    """
    if name not in DATASETS:
        raise unknown_name("data", name, DATASETS)
    with files("blindmatch").joinpath("data", f"{name}.npz").open("rb") as file:
        arrays = dict(np.load(file, allow_pickle=False))
    source, target = (as_floats(arrays[side], f"{name}.npz: {side}") for side in ("source", "target"))
    names = [str(text) for text in arrays["names"]]
    others = [str(text) for text in arrays.get("target_names", names)]
    order = np.random.default_rng(seed).permutation(len(target))  # shuffled row r is row order[r] of the file
    return Demo(
        source=source,
        target=target[order],
        source_names=tuple(names),
        target_names=tuple(others[row] for row in order),
        truth=np.argsort(order),
        scale=str(arrays.get("scale", "none")),
        source_images=arrays.get("source_images"),
        why=str(arrays.get("why", "")),
        about=DATASETS[name],
        **{key: str(arrays[key]) for key in ("source_model", "target_model", "licence")},
    )
