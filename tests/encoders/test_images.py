"""Images that nobody vouches for: embedded rightly, listed, or refused; never embedded wrongly."""

import io
import json
import zlib

import numpy as np
import pytest

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed (pip install '.[encoders]')")

from blindmatch.encoders import embed_images, load_images  # noqa: E402
from blindmatch.encoders.item_sets import decode  # noqa: E402


def encoded(image, kind="PNG", **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def huge_png(width, height):
    """A header that announces far more pixels than there are bytes."""
    header = b"IHDR" + width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes((8, 2, 0, 0, 0))
    data = b"IDAT" + zlib.compress(bytes(1000))
    chunks = [(len(c) - 4).to_bytes(4, "big") + c + zlib.crc32(c).to_bytes(4, "big") for c in (header, data)]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


NOISE = Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"hello, this is text", "not an image"),
        (encoded(NOISE, "JPEG")[:1500], "truncated"),
        (encoded(NOISE, "PNG")[:1500], "truncated"),
        (huge_png(30_000, 30_000), "far more than"),
        (huge_png(10_000, 10_000), "10000 x 10000 pixels"),
        (encoded(Image.fromarray(np.ones((4, 4), np.float32)), "TIFF"), "mode 'F'"),
    ],
    ids=["empty", "text", "cut jpeg", "cut png", "bomb", "large", "float"],
)
def test_bad_bytes_are_told_apart(content, message):
    with pytest.raises(ValueError, match=message):
        decode(content)


def test_modes_become_rgb_without_losing_their_look():
    half = Image.new("RGBA", (4, 4), (255, 0, 0, 0))
    assert decode(encoded(half)).getpixel((0, 0)) == (255, 255, 255)  # wholly transparent red is not red
    deep = Image.fromarray(np.full((4, 4), 40_000, np.uint16))
    assert decode(encoded(deep)).getpixel((0, 0)) == (156, 156, 156)  # not cut off at 255
    assert decode(encoded(Image.new("L", (4, 4), 7))).getpixel((0, 0)) == (7, 7, 7)
    assert decode(encoded(NOISE.convert("CMYK"), "JPEG")).mode == "RGB"


def test_a_photo_is_turned_as_its_camera_says():
    image = Image.new("RGB", (8, 4))
    exif = Image.Exif()
    exif[0x0112] = 6
    assert decode(encoded(image, "JPEG", exif=exif)).size == (4, 8)


def test_bad_images_are_left_out_and_listed(photos, tmp_path, caplog):
    (photos / "cat" / "empty.jpg").write_bytes(b"")
    (photos / "cat" / "cut.png").write_bytes((photos / "cat" / "0.png").read_bytes()[:300])
    (photos / "ship" / "text.jpg").write_text("not an image")
    (photos / "ship" / "huge.png").write_bytes(huge_png(60_000, 60_000))
    (photos / "ship" / "notes.txt").write_text("not read")
    (photos / "ship" / "really-a-png.jpg").write_bytes((photos / "ship" / "0.png").read_bytes())
    found = embed_images(photos, "pixels", tmp_path / "out.npz")
    assert len(found) == 13
    rows = dict(zip(found.names, found.values, strict=True))
    assert np.array_equal(rows["ship/really-a-png.jpg"], rows["ship/0.png"])
    manifest = json.loads((tmp_path / "out.npz.json").read_text())
    assert sorted(entry["name"] for entry in manifest["skipped"]) == [
        "cat/cut.png", "cat/empty.jpg", "ship/huge.png", "ship/text.jpg",
    ]  # fmt: skip
    assert manifest["ignored_files"] == ["ship/notes.txt"]
    assert sum("left out" in record.message for record in caplog.records) == 4
    with pytest.raises(ValueError, match=r"cat/cut.png: it is truncated"):
        embed_images(photos, "pixels", strict=True)


def test_a_class_must_keep_an_image(photos):
    for path in (photos / "cat").iterdir():
        path.write_bytes(b"")
    with pytest.raises(ValueError, match="no readable image is left of class 'cat'"):
        embed_images(photos, "pixels")


def test_a_set_must_keep_an_image(tmp_path):
    (tmp_path / "a.png").write_bytes(b"")
    with pytest.raises(ValueError, match="none of 1 images can be read"):
        embed_images(tmp_path, "pixels")


def test_folders_that_are_no_set(photos, tmp_path):
    with pytest.raises(ValueError, match="no such folder"):
        load_images(tmp_path / "nowhere")
    (tmp_path / "bare").mkdir()
    with pytest.raises(ValueError, match="no image in it"):
        load_images(tmp_path / "bare")
    (photos / "truck").mkdir()
    with pytest.raises(ValueError, match="truck: no image in it"):
        load_images(photos)
    (photos / "truck").rmdir()
    NOISE.save(photos / "loose.png")
    with pytest.raises(ValueError, match="both in subfolders and outside of them"):
        load_images(photos)


def test_classes_of_one_name_are_refused(photos):
    (photos / "sports car").mkdir()
    NOISE.save(photos / "sports car" / "0.png")
    with pytest.raises(ValueError, match="class names occur twice: sports car"):
        load_images(photos)


def test_unknown_set_names_suggest(photos):
    with pytest.raises(ValueError, match="did you mean 'cifar10'"):
        load_images("cifar11")
    with pytest.raises(ValueError, match="limit=0"):
        load_images(photos, limit=0)
