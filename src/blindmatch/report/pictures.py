"""Pictures in the page: those of items, the match at a glance, prices of unmatched items, the agreement of models."""

from __future__ import annotations

import base64
import io
import math
import struct
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

import numpy as np
from numpy.typing import NDArray

from blindmatch.errors import pip_install
from blindmatch.io.files import bytes_of
from blindmatch.problem.task import Price, Task
from blindmatch.report.match import Images, Match

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

    from blindmatch.report.pairs import Column


_SIDES = (64, 48, 32, 24, 16)  # pixels; shown at 48
_QUALITY = 80


def thumbnails(files: Mapping[int, tuple[str, bytes]], room: int) -> dict[int, bytes]:
    """JPEG files, as large as the room for all of them (bytes of a page) allows, from names and contents of files.

    A ValueError says which one is no picture, or that they take too much room even at 16 x 16 pixels; an ImportError,
    that Pillow is missing.
    """
    images = {item: _reduce(_decode(content, name), _SIDES[0]) for item, (name, content) in files.items()}
    for side in _SIDES:
        small = {}
        for item, image in images.items():
            _reduce(image, side).save(file := io.BytesIO(), "JPEG", quality=_QUALITY, optimize=True)
            small[item] = file.getvalue()
        if 4 / 3 * sum(map(len, small.values())) + 30 * len(small) <= room:  # as data addresses in base64
            return small
    raise ValueError(f"{len(files)} pictures do not fit into a report, however small; give fewer")


def _decode(content: bytes, name: str) -> Picture:
    from blindmatch.encoders.item_sets import decode  # a tenth of a second, for those who show pictures

    try:
        return decode(content)
    except ValueError as error:
        raise ValueError(f"{name}: {error}; expected a picture") from None
    except ImportError:
        raise ImportError(f"pictures in a report need Pillow: {pip_install('plot')}") from None


def _reduce(image: Picture, side: int) -> Picture:
    small = image.copy()
    small.thumbnail((side, side))
    return small


ALL_OF_THEM = 1_200_000  # bytes in the page: with the matrices, a report of 100 pairs stays below 2 MB
_MOST_PIXELS = 4_000_000  # of a picture that is embedded as it is: a browser unpacks each to four bytes a pixel
_SIDE = 64  # pixels; shown at about this size
_KINDS = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}


def addresses(images: Images | None, items: Iterable[int], name_of_all: str, sides: int = 2) -> dict[int, str]:
    """A data address for each item that has a picture. `sides` share the bytes that pictures may take.

    A ValueError, which begins with the name of all, says which item is no picture; an ImportError, that Pillow lacks.
    """
    if images is None:
        return {}
    if not isinstance(images, Mapping):
        images = dict(enumerate(images))
    wanted = [item for item in items if item in images]
    room = ALL_OF_THEM // sides
    # A pixel takes three bytes, and base64 four thirds of that. Noise hardly compresses.
    side = int(np.clip(np.sqrt(room / (4 * max(len(wanted), 1))), 8, _SIDE))
    files, written, large = {}, {}, False
    for item in wanted:
        name, image = f"{name_of_all}[{item}]", images[item]
        if isinstance(image, np.ndarray):
            data, kind = _png(_shrunk(image, side, name)), "png"
        else:
            data = bytes_of(image) if isinstance(image, str | Path) else image
            found = next((kind for start, kind in _KINDS.items() if data.startswith(start)), None)
            if found is None or (found == "webp" and data[8:12] != b"WEBP"):
                raise ValueError(f"{name} starts with {data[:8]!r}; expected a PNG, JPEG, GIF or WebP picture")
            kind, (width, height) = found, _decode(data, name).size
            large = large or width * height > _MOST_PIXELS
        files[item], written[item] = (name, data), _data_address(data, kind)
    if not large and sum(map(len, written.values())) <= room:
        return written
    return {item: _data_address(small, "jpeg") for item, small in thumbnails(files, room).items()}


def _data_address(data: bytes, kind: str) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def _shrunk(image: NDArray[np.uint8], side: int, name: str) -> NDArray[np.uint8]:
    if image.dtype != np.uint8 or image.ndim < 2 or image.shape[2:] not in ((), (3,)) or not image.size:
        raise ValueError(f"{name} has dtype {image.dtype} and shape {image.shape}; expected uint8, (h, w, 3) or (h, w)")
    colours = image if image.ndim == 3 else np.repeat(image[:, :, None], 3, axis=2)
    block = -(-max(colours.shape[:2]) // side)
    high, wide = (min(block, length) for length in colours.shape[:2])
    height, width = len(colours) // high, colours.shape[1] // wide
    blocks = colours[: height * high, : width * wide].reshape(height, high, width, wide, 3)
    return np.asarray(np.rint(blocks.mean(axis=(1, 3))), dtype=np.uint8)


def _png(colours: NDArray[np.uint8]) -> bytes:
    """A picture of 8-bit colours (PNG specification, colour type 2)."""
    height, width, _ = colours.shape
    lines = np.hstack([np.zeros((height, 1), dtype=np.uint8), colours.reshape(height, -1)])  # filter 0 before each line
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    )
    chunks = ((len(data), kind + data) for kind, data in parts)
    framed = (struct.pack(">I", length) + chunk + struct.pack(">I", zlib.crc32(chunk)) for length, chunk in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)


MOST = 30  # pairs; of more, the lines would be a tangle
WIDTH, ROW, TOP = 420, 26, 16  # units of the drawing
_LONGEST = 178  # units of a name: more would leave the drawing
_IMAGE, _SPACE = 22, 6  # units of a picture, and between the parts
_LETTER, _WIDE_LETTER = 8.0, 13.0  # units: Latin letters of a wide typeface, and the letters of East Asia


def lines_of(match: Match, columns: Sequence[Column]) -> dict[str, Any] | None:
    """The match at a glance; None for a problem without names on two sides, and for many pairs.

    Where the truth is known, each target stands beside its true source, so that right pairs have straight lines.
    """
    pairs, truth = match.result.pairs, match.truth
    if match.kernels is None or not 1 < len(pairs) <= MOST:
        return None
    height = {i: TOP + ROW * at for at, (i, _) in enumerate(pairs)}
    if truth is None:
        place = {j: height[i] for i, j in pairs}
    else:
        beside = {truth[i]: y for i, y in height.items()}
        place = {j: beside[j] for _, j in pairs if j in beside}
        free = iter(sorted({*height.values()} - {*place.values()}))
        place |= {j: next(free) for _, j in pairs if j not in place}
    named = [(match.source_name(i), height[i]) for i, _ in pairs], [(match.target_name(j), place[j]) for _, j in pairs]
    sides, widths, insets = [], [], []
    for names, column in zip(named, columns[:2], strict=True):
        inset = _SPACE + (_IMAGE + _SPACE if any(cell.image for cell in column.cells) else 0)
        texts = [_short(name, _LONGEST + _SPACE - inset) for name, _ in names]
        parts = zip(texts, names, column.cells, strict=True)
        sides.append([{"text": text, "y": y, "image": cell.image} for text, (_, y), cell in parts])
        widths.append(max(sum(map(_letter_width, text)) for text in texts))
        insets.append(inset)
    if truth is not None:
        kinds = {i: "good" if truth[i] == j else "bad" for i, j in pairs}  # CSS classes
        caption = "Solid lines are right, dashed ones are wrong."
    else:
        kinds = {i: "doubtful" if match.trust is not None and match.trust.doubtful[i] else "plain" for i, _ in pairs}
        caption = "Dashed lines are doubtful pairs." if "doubtful" in kinds.values() else ""
    # The lines are as long as the names allow, but not flat; the picture is in the middle.
    room = WIDTH - sum(widths) - sum(insets)
    long = min(room, max(56, ROW * len(pairs) / 2.5))
    left = (room - long) / 2 + widths[0] + insets[0]
    return {
        "height": TOP + ROW * len(pairs),
        "left": round(left),
        "right": round(left + long),
        "insets": insets,
        "sources": sides[0],
        "targets": sides[1],
        "lines": [{"start": height[i], "end": place[j], "kind": kinds[i]} for i, j in pairs],
        "caption": caption,
    }


def _letter_width(letter: str) -> float:
    return _WIDE_LETTER if east_asian_width(letter) in "WF" else _LETTER


def _short(name: str, room: float) -> str:
    ends = list(
        accumulate(map(_letter_width, name[: math.ceil(room / _LETTER) + 1]))
    )  # where the letters that may fit end
    if not ends or ends[-1] <= room:
        return name
    return f"{name[: bisect_right(ends, room - _WIDE_LETTER)].rstrip()}…"


_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 620, 26, 160  # units of the drawing


def price_curve(price: Price | None) -> dict[str, Any] | None:
    """The curve of a suggested price; prices are on a logarithmic axis.

    None if the price was given, if no prices were tried, or if all are zero because every pairing costs nothing.
    """
    if price is None or not price.curve or not price.curve[0][0] > 0:
        return None
    least, most = (math.log(price.curve[at][0]) for at in (0, -1))
    greatest = max(pairs for _, pairs in price.curve) or 1

    def place(value: float) -> float:
        return round(_LEFT + (_RIGHT - _LEFT) * (math.log(value) - least) / (most - least), 1)

    points, before = [], -1
    for value, pairs in price.curve:
        y = round(_BOTTOM - (_BOTTOM - _TOP) * pairs / greatest, 1)
        shown = "" if pairs == before else str(pairs)
        points.append({"x": place(value), "y": y, "price": f"{value:.2g}", "pairs": shown})
        before = pairs
    path = "M" + "L".join(f"{point['x']} {point['y']}" for point in points)
    return {"points": points, "path": path, "taken": place(price.price), "price": f"{price.price:.3g}"}


Heat = tuple[str, Sequence[str], list[list[float]]]  # a title, names, and an (n, n) matrix of numbers up to 1


def view_heats(task: Task | None) -> list[Heat]:
    """The agreement of the views of each side that has several."""
    if task is None or task.too_large:
        return []
    heats: list[Heat] = []
    for at, (side, views) in enumerate(zip(("source", "target"), task.views, strict=True)):
        if views is not None and len(views.widths) > 1:
            values = task.view_agreement(at).tolist()
            heats.append((f"The {len(views.widths)} models of the {side}", views.labels, values))
    return heats
