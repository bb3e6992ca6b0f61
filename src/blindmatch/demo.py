"""The bundled data: two views of the same things, made by models that were not trained together."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from blindmatch.errors import unknown_name
from blindmatch.validation import FloatArray, IntArray, as_floats

DATASETS = {
    "cifar10": "ten classes of images, and the names of the classes",
    "colours": "the looks of eleven colours, and their names",
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
    about, source_model, target_model, licence
        Human-readable text.
    """

    source: FloatArray
    target: FloatArray
    source_names: tuple[str, ...]
    target_names: tuple[str, ...]
    truth: IntArray
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
    order = np.random.default_rng(seed).permutation(len(target))  # shuffled row r is row order[r] of the file
    return Demo(
        source=source,
        target=target[order],
        source_names=tuple(names),
        target_names=tuple(names[row] for row in order),
        truth=np.argsort(order),
        about=DATASETS[name],
        **{key: str(arrays[key]) for key in ("source_model", "target_model", "licence")},
    )
