"""Sets of images: a folder, CIFAR, CINIC-10, ImageNet-100, COCO, and Hugging Face's datasets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from blindmatch.encoders import cifar, coco
from blindmatch.encoders import download as downloads
from blindmatch.encoders.images import SUFFIXES
from blindmatch.encoders.items import ImageItem, ImageSet
from blindmatch.encoders.prompts import check_unique, class_names, describe_synsets, disambiguated, read_lines
from blindmatch.errors import unknown_name

DATASETS = ("cifar10", "cifar100", "cinic10", "imagenet100", "coco")


def load_images(
    source: str | Path,
    *,
    split: str | None = None,
    root: str | Path = "data",
    download: bool = False,
    limit: int | None = None,
    classes: str | Path | None = None,
    wordnet: str | Path | None = None,
) -> ImageSet:
    """Load images by the name of a dataset, or from a folder.

    Parameters
    ----------
    source
        A folder ``class/*.jpg`` (or of images without classes); ``cifar10``, ``cifar100``, ``cinic10``,
        ``imagenet100``, ``coco``; ``hf:NAME`` for a dataset of the Hugging Face hub.
    split
        By default the paper's split: "test", or "val" for ImageNet-100 and COCO.
    root
        The folder of datasets.
    download
        Download missing data (not ImageNet, whose licence requires each user to request it).
    limit
        Maximum number of images per class; the first ones are taken.
    classes
        A file with one class per line, to load only these; for ImageNet, a list of WordNet numbers.
    wordnet
        For ImageNet, the location of the names and definitions (see `describe_synsets`).
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit={limit!r}; expected at least 1")
    word = str(source)
    readers: dict[str, Callable[[], ImageSet]] = {
        "cifar10": lambda: cifar.load("cifar10", split or "test", Path(root), download),
        "cifar100": lambda: cifar.load("cifar100", split or "test", Path(root), download),
        "cinic10": lambda: _cinic10(split or "test", Path(root), download),
        "imagenet100": lambda: _imagenet100(split or "val", Path(root), classes, wordnet),
        "coco": lambda: coco.load_images(split or "val", Path(root), download),
    }
    if word in readers and not Path(word).is_dir():
        found = readers[word]()
    elif word.startswith("hf:"):
        from blindmatch.encoders.hub_datasets import load_images as load_hub

        found = load_hub(word.removeprefix("hf:"), split or "test", download)
    elif Path(word).is_dir():
        found = read_folder(Path(word), _listed_classes(classes))
    elif "/" in word or "." in word:
        raise ValueError(f"{word}: no such folder")
    else:
        raise unknown_name("images", word, [*DATASETS, "hf:NAME", "a folder"])
    return found if limit is None else found.limited(limit)


def read_folder(folder: Path, classes: tuple[str, ...] | None = None) -> ImageSet:
    """Images of ``folder/class/...``, or all images of a folder without subfolders, in the order of their names."""
    subfolders = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    if classes is not None:
        missing = sorted(set(classes) - {path.name for path in subfolders})
        if missing:
            raise ValueError(f"{folder}: no subfolder for the class {missing[0]!r} ({len(missing)} missing)")
        subfolders = [path for path in subfolders if path.name in classes]
    items: list[ImageItem] = []
    ignored: list[str] = []
    for label, place in enumerate(subfolders or [folder]):
        before = len(items)
        for path in sorted(place.rglob("*")):
            if not path.is_file() or path.name.startswith("."):
                continue
            name = path.relative_to(folder).as_posix()
            if path.suffix.lower() in SUFFIXES:
                items.append(ImageItem(name, label if subfolders else -1, path))
            else:
                ignored.append(name)
        if subfolders and len(items) == before:
            raise ValueError(f"{place}: no image in it; expected {', '.join(sorted(SUFFIXES))}")
    if subfolders:
        loose = [path.name for path in sorted(folder.iterdir()) if path.is_file() and path.suffix.lower() in SUFFIXES]
        if loose:
            raise ValueError(f"{folder}: it has images both in subfolders and outside of them, such as {loose[0]!r}")
    if not items:
        raise ValueError(f"{folder}: no image in it; expected {', '.join(sorted(SUFFIXES))}")
    names = tuple(path.name.replace("_", " ").strip() for path in subfolders) or None
    check_unique(names or (), str(folder))
    return ImageSet(folder.resolve().name, tuple(items), names, about={"folder": folder.name}, ignored=tuple(ignored))


def _listed_classes(path: str | Path | None) -> tuple[str, ...] | None:
    return None if path is None else tuple(line.split()[0] for line in read_lines(Path(path)))


def _cinic10(split: str, root: Path, download: bool) -> ImageSet:
    """CINIC-10 as its authors distribute it. The paper kept ImageNet's resolution: for that, pass a folder."""
    folder = downloads.unpacked_folder("CINIC-10.tar.gz", root, download, "CINIC-10")
    if not (folder / split).is_dir():
        raise unknown_name("split", split, [path.name for path in folder.iterdir() if path.is_dir()])
    found = read_folder(folder / split)
    if found.class_names != class_names("cinic10"):
        raise ValueError(f"{folder / split}: not CINIC-10's classes: {', '.join(found.class_names or ())}")
    return replace(found, name="cinic10", about={"archive": "CINIC-10.tar.gz", "split": split})


def _imagenet100(split: str, root: Path, classes: str | Path | None, wordnet: str | Path | None) -> ImageSet:
    """``root/imagenet/val/n01440764/*.JPEG``; each user gets ImageNet itself from image-net.org."""
    folder = next((root / name / split for name in ("imagenet100", "imagenet") if (root / name / split).is_dir()), None)
    if folder is None:
        raise ValueError(
            f"{root / 'imagenet' / split}: no such folder; download ImageNet's {split} images from image-net.org "
            "and sort them into one folder for each WordNet number (n01440764)"
        )
    numbers = _listed_classes(classes) or class_names("imagenet100")
    found = read_folder(folder, tuple(sorted(numbers)))
    names, definitions = describe_synsets(found.class_names or (), wordnet)
    unique = disambiguated(names, found.class_names or ())
    about = {"split": split, "classes": "the list that most studies use" if classes is None else str(classes)}
    return replace(found, name="imagenet100", class_names=unique, definitions=tuple(definitions), about=about)
