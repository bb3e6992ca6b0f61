"""The paper's numbers, to compare with ours, and its names of datasets and models."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from blindmatch.experiments.tables import Spread

_DATASETS = {"cifar10": "CIFAR-10", "cinic10": "CINIC-10", "cifar100": "CIFAR-100", "imagenet100": "ImageNet-100"}
_MODELS = {
    "allmpnetbasev2": "all-mpnet-base-v2",
    "allrobertalargev1": "All-Roberta-large-v1",
    "vitgiantpatch14dinov2lvd142m": "DINOv2",
    "dinov2vitg14": "DINOv2",
    "vitlargepatch14clip336openai": "CLIP",
    "clipvitl14336": "CLIP",
    "deitbasedistilledpatch16384fbin1k": "DeiT",
    "deitb16d384": "DeiT",
}


@cache
def paper_tables() -> dict[str, Any]:
    """All tables of the paper by number, from ``paper_values.json``."""
    content: dict[str, Any] = json.loads(
        files("blindmatch.experiments.paper").joinpath("paper_values.json").read_text(encoding="utf-8")
    )
    return content


def paper_value(table: str, column: str, **where: str) -> float | Spread | None:
    """The paper's value in one column of the only matching row; None if there is no such row.

    >>> paper_value("table-5", "bound", solver="+ auction")
    -1.949529
    >>> paper_value("table-2", "accuracy", vision="DINOv2", language="all-mpnet-base-v2").mean
    37.27499991655349
    """
    fits = [row for row in paper_tables()[table]["rows"] if all(row.get(key) == value for key, value in where.items())]
    if len(fits) != 1 or fits[0].get(column) is None:
        return None
    value: float = fits[0][column]
    deviation: float | None = fits[0].get(f"{column}_deviation")
    return value if deviation is None else Spread(value, deviation)


def _letters(name: str) -> str:
    return "".join(character for character in name.lower() if character.isalnum())


def paper_dataset(name: str) -> str:
    """The paper's name of a dataset, or the name itself.

    >>> paper_dataset("cifar10"), paper_dataset("tinyimagenet200")
    ('CIFAR-10', 'tinyimagenet200')
    """
    return _DATASETS.get(_letters(name), name)


def paper_model(name: str) -> str:
    """The paper's short name of a model in its tables, or the name itself.

    >>> paper_model("all_mpnet_base_v2"), paper_model("vit_giant_patch14_dinov2.lvd142m")
    ('all-mpnet-base-v2', 'DINOv2')
    """
    return _MODELS.get(_letters(name), name)
