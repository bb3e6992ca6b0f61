"""Names of datasets and models in files and in the paper."""

from __future__ import annotations

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
