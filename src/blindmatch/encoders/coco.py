"""COCO's images with their captions: a paired set, so the true match is known."""

from __future__ import annotations

import json
from pathlib import Path

from blindmatch.encoders import download as downloads
from blindmatch.encoders.items import ImageItem, ImageSet, TextSet

# The file and the captions of each image, by its number.
Captions = dict[int, tuple[str, list[str]]]


def load_images(split: str, root: Path, download: bool) -> ImageSet:
    """The images that have captions, by number; ``root/coco/val2017/*.jpg``."""
    captions, folder = _captions(split, root, download), root / "coco" / f"{split}2017"
    if not folder.is_dir():
        if split != "val":
            raise ValueError(f"{folder}: no such folder; only the split 'val' can be downloaded")
        outer = downloads.unpacked_folder("val2017.zip", root, download, "coco/val2017.unpacked")
        folder = outer / "val2017"
    items = tuple(ImageItem(str(n), -1, folder / captions[n][0]) for n in sorted(captions))
    missing = [item.name for item in items if not Path(str(item.source)).is_file()]
    if missing:
        raise ValueError(f"{folder}: {len(missing)} images with captions are missing, such as number {missing[0]}")
    return ImageSet("coco", items, about={"split": split, "captions": f"captions_{split}2017.json"})


def load_captions(split: str, root: Path, download: bool) -> TextSet:
    """All captions in the order of the images, each labelled with the position of its image."""
    captions = _captions(split, root, download)
    numbers = sorted(captions)
    rows = [(text, str(n), place) for place, n in enumerate(numbers) for text in captions[n][1]]
    texts, names, labels = zip(*rows, strict=True)
    return TextSet("coco", texts, names, labels, tuple(str(n) for n in numbers), about={"split": split})


def _captions(split: str, root: Path, download: bool) -> Captions:
    name = f"captions_{split}2017.json"
    path = root / "coco" / "annotations" / name
    if not path.is_file():
        outer = downloads.unpacked_folder("annotations_trainval2017.zip", root, download, "coco/annotations.unpacked")
        path = outer / "annotations" / name
    return read_captions(path)


def read_captions(path: Path) -> Captions:
    """Read ``captions_*.json``: file and captions of each image, captions in the order of their own numbers."""
    try:
        content = json.loads(path.read_text("utf-8"))
        found: Captions = {int(image["id"]): (str(image["file_name"]), []) for image in content["images"]}
        for row in sorted(content["annotations"], key=lambda row: row["id"]):
            found[int(row["image_id"])][1].append(" ".join(str(row["caption"]).split()))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: not a file of COCO captions ({type(error).__name__}: {error})") from None
    for number, (file, texts) in found.items():
        if Path(file).name != file:
            raise ValueError(f"{path}: image {number} has the file {file!r}; expected a plain name")
        if any(not text for text in texts):
            raise ValueError(f"{path}: image {number} has an empty caption")
    captioned = {number: entry for number, entry in found.items() if entry[1]}
    if not captioned:
        raise ValueError(f"{path}: it has no image with a caption")
    return captioned
