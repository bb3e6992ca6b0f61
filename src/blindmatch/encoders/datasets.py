"""Load images and texts by the name of a dataset or from files: folders, published datasets, Hugging Face's hub."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blindmatch.encoders import published
from blindmatch.encoders.devices import advice
from blindmatch.encoders.item_sets import SUFFIXES, ImageItem, ImageSet, TextSet
from blindmatch.encoders.prompts import (
    check_unique,
    class_names,
    describe_synsets,
    disambiguate,
    read_lines,
    read_texts,
    text_set_of_classes,
)
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
        "cifar10": lambda: published.load_cifar("cifar10", split or "test", Path(root), download),
        "cifar100": lambda: published.load_cifar("cifar100", split or "test", Path(root), download),
        "cinic10": lambda: _cinic10(split or "test", Path(root), download),
        "imagenet100": lambda: _imagenet100(split or "val", Path(root), classes, wordnet),
        "coco": lambda: published.load_coco_images(split or "val", Path(root), download),
    }
    if word in readers and not Path(word).is_dir():
        found = readers[word]()
    elif word.startswith("hf:"):
        found = _load_hub_images(word.removeprefix("hf:"), split or "test", download)
    elif Path(word).is_dir():
        found = read_folder(Path(word), _read_classes(classes))
    elif "/" in word or "." in word:
        raise ValueError(f"{word}: no such folder")
    else:
        raise unknown_name("images", word, [*DATASETS, "hf:NAME", "a folder"])
    return found if limit is None else found.first_of_each_class(limit)


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


def _read_classes(path: str | Path | None) -> tuple[str, ...] | None:
    return None if path is None else tuple(line.split()[0] for line in read_lines(Path(path)))


def _cinic10(split: str, root: Path, download: bool) -> ImageSet:
    """CINIC-10 as its authors distribute it. The paper kept ImageNet's resolution: for that, pass a folder."""
    folder = published.unpacked_folder("CINIC-10.tar.gz", root, download, "CINIC-10")
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
    numbers = _read_classes(classes) or class_names("imagenet100")
    found = read_folder(folder, tuple(sorted(numbers)))
    names, definitions = describe_synsets(found.class_names or (), wordnet)
    unique = disambiguate(names, found.class_names or ())
    about = {"split": split, "classes": "the list that most studies use" if classes is None else str(classes)}
    return replace(found, name="imagenet100", class_names=unique, definitions=tuple(definitions), about=about)


def load_texts(
    source: str | Path | Sequence[str],
    *,
    prompts: str | Path | Sequence[str] | None = None,
    column: str | None = None,
    split: str | None = None,
    root: str | Path = "data",
    download: bool = False,
    wordnet: str | Path | None = None,
) -> TextSet:
    """Load texts by the name of a dataset, from a file, or from a list.

    Parameters
    ----------
    source
        A list; a ``.txt`` file with one text per line; a table (``.csv``, ``.tsv``, ``.jsonl``, ``.xlsx``, SQLite,
        ``.parquet``); a folder whose subfolders are classes; ``cifar10``, ``cifar100``, ``cinic10``, ``imagenet100``
        for their class names; ``coco`` for its captions; ``hf:NAME`` for a dataset of the Hugging Face hub.
    prompts
        Templates into which each text is inserted (see `templates`); the texts are then class names, which must differ.
        A named dataset uses its own templates by default.
    column
        The column of a table that holds the texts.
    wordnet
        The folder of WordNet 3.0, for definitions.
    """
    if not isinstance(source, str | Path):
        found = TextSet("texts", tuple(source), tuple(source))
    elif str(source) in DATASETS and not Path(source).exists():
        if source == "coco":
            return published.load_coco_captions(split or "val", Path(root), download)
        return text_set_of_classes(str(source), class_names(str(source)), prompts or str(source), wordnet=wordnet)
    elif str(source).startswith("hf:"):
        found = _load_hub_texts(str(source).removeprefix("hf:"), split or "test", column, download)
    elif not Path(source).exists() and "/" not in str(source) and not Path(source).suffix:
        raise unknown_name("texts", str(source), [*DATASETS, "hf:NAME", "a file", "a folder"])
    else:
        found = read_texts(Path(source), column)
    for place, text in enumerate(found.texts):
        if not isinstance(text, str) or not text.strip():
            raise ValueError(f"{found.name}: text {place + 1} is {text!r}; expected words")
    if not found.texts:
        raise ValueError(f"{found.name}: no text in it")
    return found if prompts is None else text_set_of_classes(found.name, found.texts, prompts, wordnet=wordnet)


def _load_hub_split(name: str, split: str, download: bool) -> Any:
    try:
        import datasets
    except ImportError:
        raise ImportError(f"hf:{name} needs the package datasets: pip install datasets") from None
    config = datasets.DownloadConfig(local_files_only=not download)
    try:
        return datasets.load_dataset(name, split=split, download_config=config)  # nosec B615 (the user names it)
    except Exception as error:  # its errors for "not cached", "no such name" and "no such split" have no common class
        raise ValueError(f"hf:{name}: {' '.join(str(error).split())[:200]}{advice(download)}") from None


def _set_name(name: str) -> str:
    return name.strip("/").replace("/", "-")  # valid in file names


def _load_hub_images(name: str, split: str, download: bool) -> ImageSet:
    """The first column of images, with the first column of class labels."""
    table = _load_hub_split(name, split, download)
    kinds = {column: type(feature).__name__ for column, feature in table.features.items()}
    images = [column for column, kind in kinds.items() if kind == "Image"]
    labels = [column for column, kind in kinds.items() if kind == "ClassLabel"]
    if not images:
        raise ValueError(f"hf:{name}: it has no column of images; it holds {', '.join(kinds)}")
    names = tuple(table.features[labels[0]].names) if labels else None

    def pixels(place: int) -> NDArray[np.uint8]:
        return np.asarray(table[place][images[0]].convert("RGB"))

    numbers = table[labels[0]] if labels else [-1] * len(table)
    items = tuple(
        ImageItem(f"{split}/{place}", int(label), partial(pixels, place)) for place, label in enumerate(numbers)
    )
    about = {"hub": name, "split": split, "fingerprint": table._fingerprint}
    return ImageSet(_set_name(name), items, names, about=about)


def _load_hub_texts(name: str, split: str, column: str | None, download: bool) -> TextSet:
    """One column of texts: `column`, or the first that holds strings."""
    table = _load_hub_split(name, split, download)
    texts = [key for key, feature in table.features.items() if getattr(feature, "dtype", "") == "string"]
    chosen = column or (texts[0] if texts else None)
    if chosen not in texts:
        raise ValueError(f"hf:{name}: it has no column of texts {column or ''}; it holds {', '.join(table.features)}")
    rows = tuple(str(text) for text in table[chosen])
    return TextSet(_set_name(name), rows, rows, about={"hub": name, "split": split, "column": chosen})
