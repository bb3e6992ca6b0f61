"""Datasets from archives of the original layout, made here small; archives that try to escape; texts and prompts."""

import csv
import hashlib
import io
import json
import tarfile
import zipfile

import numpy as np
import pytest

from blindmatch.encoders import load_images, load_texts, published
from blindmatch.encoders.prompts import class_names, describe_synsets, fill, templates
from blindmatch.encoders.published import check_hash, unpack

RNG = np.random.default_rng(0)


def tar_of(path, members):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def cifar_records(labels, coarse=False):
    """Records of the binary version: label(s), then the red, green and blue plane."""
    pixels = RNG.integers(0, 255, (len(labels), 3, 32, 32), dtype=np.uint8)
    head = [np.array([[7, label] if coarse else [label]], np.uint8) for label in labels]
    rows = [np.concatenate([h.ravel(), p.ravel()]) for h, p in zip(head, pixels, strict=True)]
    return np.concatenate(rows).tobytes(), pixels.transpose(0, 2, 3, 1)


@pytest.mark.parametrize(("dataset", "coarse"), [("cifar10", False), ("cifar100", True)])
def test_cifar_from_its_binary_archive(tmp_path, monkeypatch, dataset, coarse):
    name, member = published.ARCHIVES[dataset], published.MEMBERS[dataset, "test"][0]
    labels = list(range(len(class_names(dataset)))) * 2
    content, pixels = cifar_records(labels, coarse)
    path = tar_of(tmp_path / name, {member: content})
    monkeypatch.setitem(published.FILES, name, ("", f"md5:{hashlib.md5(path.read_bytes()).hexdigest()}"))
    found = load_images(dataset, root=tmp_path)
    assert [item.label for item in found.items] == labels
    assert all(np.array_equal(item.source, image) for item, image in zip(found.items, pixels, strict=True))
    assert found.class_names == class_names(dataset)
    assert len(found.first_of_each_class(1)) == len(class_names(dataset))
    with pytest.raises(ValueError, match="split='val'"):
        load_images(dataset, root=tmp_path, split="val")


def test_a_foreign_archive_is_refused_by_its_hash(tmp_path):
    tar_of(tmp_path / "cifar-10-binary.tar.gz", {"cifar-10-batches-bin/test_batch.bin": b"x"})
    with pytest.raises(ValueError, match=r"its md5 is .* expected c32a1d4ab5d03f1284b67883e8d87530"):
        load_images("cifar10", root=tmp_path)


def test_nothing_is_fetched_without_leave(tmp_path):
    for name in ("cifar10", "cifar100", "cinic10", "coco"):
        with pytest.raises(ValueError, match="--download"):
            load_images(name, root=tmp_path)
    with pytest.raises(ValueError, match=r"image-net\.org"):
        load_images("imagenet100", root=tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"x" * 3072, "expected a multiple of 3073"), (b"\x0b" + b"x" * 3072, "the label 11"), (b"", "has 0 bytes")],
)
def test_damaged_cifar_records(tmp_path, content, message):
    path = tar_of(tmp_path / "c.tar.gz", {"cifar-10-batches-bin/test_batch.bin": content})
    with pytest.raises(ValueError, match=message):
        published.read_cifar(path, "cifar10", "test")
    with pytest.raises(ValueError, match="binary version"):
        published.read_cifar(tar_of(tmp_path / "p.tar.gz", {"cifar-10-batches-py/test_batch": b"x"}), "cifar10", "test")


def test_a_cut_archive_is_damaged(tmp_path):
    whole = tar_of(tmp_path / "w.tar.gz", {"cifar-10-batches-bin/test_batch.bin": RNG.bytes(3073 * 4)})
    (tmp_path / "c.tar.gz").write_bytes(whole.read_bytes()[:2000])
    with pytest.raises(ValueError, match="damaged"):
        published.read_cifar(tmp_path / "c.tar.gz", "cifar10", "test")


def png():
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed (pip install '.[encoders]')")
    buffer = io.BytesIO()
    image.new("RGB", (8, 8), "red").save(buffer, "PNG")
    return buffer.getvalue()


def test_cinic10_is_unpacked_once(tmp_path, monkeypatch):
    members = {f"test/{name}/1.png": png() for name in class_names("cinic10")}
    path = tar_of(tmp_path / "CINIC-10.tar.gz", members)
    monkeypatch.setitem(published.FILES, path.name, ("", f"md5:{hashlib.md5(path.read_bytes()).hexdigest()}"))
    assert len(load_images("cinic10", root=tmp_path)) == 10
    path.unlink()
    again = load_images("cinic10", root=tmp_path)
    assert again.class_names == class_names("cinic10")


def test_imagenet100_takes_the_listed_classes_of_a_larger_folder(tmp_path):
    numbers = class_names("imagenet100")
    assert len(set(numbers)) == 100
    noun = tmp_path / "data.noun"
    noun.write_text("".join(f'{n[1:]} 05 n 02 thing_{n} 0 other 0 000 | what {n} is; "an example"\n' for n in numbers))
    for number in (*numbers, "n01440764"):
        folder = tmp_path / "imagenet" / "val" / number
        folder.mkdir(parents=True)
        (folder / "1.JPEG").write_bytes(b"")
    names, definitions = describe_synsets(numbers, noun)
    assert (names[0], definitions[0]) == (f"thing {numbers[0]}", f"what {numbers[0]} is")
    found = load_texts("imagenet100", wordnet=tmp_path)
    assert found.texts[0] == f"thing {numbers[0]}: what {numbers[0]} is"
    images = load_images("imagenet100", root=tmp_path, wordnet=noun)
    assert (len(images), images.class_names[0]) == (100, f"thing {numbers[0]}")  # the other folder is left alone
    with pytest.raises(ValueError, match="no entry for n01440764"):
        describe_synsets(["n01440764"], noun)
    with pytest.raises(ValueError, match="not a WordNet number"):
        describe_synsets(["cat"], noun)


def test_imagenet_images_by_timm_s_tables(tmp_path):
    pytest.importorskip("timm", reason="timm is not installed (pip install '.[encoders]')")
    for number in (*class_names("imagenet100"), "n01440764"):
        folder = tmp_path / "imagenet" / "val" / number
        folder.mkdir(parents=True)
        (folder / "1.JPEG").write_bytes(b"")
    found = load_images("imagenet100", root=tmp_path)
    assert len(found) == 100
    assert found.definitions is not None
    assert len(set(found.class_names)) == 100


def test_coco_is_paired(tmp_path):
    folder = tmp_path / "coco"
    (folder / "val2017").mkdir(parents=True)
    (folder / "annotations").mkdir()
    images = [{"id": n, "file_name": f"{n:012}.jpg"} for n in (9, 4)]
    rows = [{"id": 10 - k, "image_id": n, "caption": f"caption {k} of {n}\n"} for k in range(3) for n in (4, 9)]
    captions = folder / "annotations" / "captions_val2017.json"
    captions.write_text(json.dumps({"images": images, "annotations": rows}))
    for image in images:
        (folder / "val2017" / image["file_name"]).write_bytes(png())
    found, texts = load_images("coco", root=tmp_path), load_texts("coco", root=tmp_path)
    assert [item.name for item in found.items] == ["4", "9"] == list(texts.class_names)
    assert texts.labels == (0, 0, 0, 1, 1, 1)
    assert texts.texts[0] == "caption 2 of 4"
    images[0]["file_name"] = "../../secret.jpg"
    captions.write_text(json.dumps({"images": images, "annotations": rows}))
    with pytest.raises(ValueError, match="expected a plain name"):
        load_images("coco", root=tmp_path)
    captions.write_text("{}")
    with pytest.raises(ValueError, match="not a file of COCO captions"):
        load_texts("coco", root=tmp_path)


@pytest.mark.parametrize("name", ["../escape", "/absolute", "a/../../escape", "a\\..\\b", "C:x"])
def test_archives_cannot_write_outside(tmp_path, name):
    with pytest.raises(ValueError, match="outside of the folder"):
        unpack(tar_of(tmp_path / "a.tar.gz", {"fine": b"1", name: b"2"}), tmp_path / "inner" / "out")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(name, "2")
    with pytest.raises(ValueError, match="outside of the folder"):
        unpack(tmp_path / "a.zip", tmp_path / "inner" / "out")
    assert not list((tmp_path / "inner").iterdir())  # nothing is left behind
    assert not (tmp_path / "escape").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_archives_hold_no_links_and_devices(tmp_path, kind):
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        info = tarfile.TarInfo("link")
        info.type, info.linkname = kind, "/etc/passwd"
        archive.addfile(info)
    with pytest.raises(ValueError, match="a link or a device"):
        unpack(tmp_path / "a.tar", tmp_path / "out")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        member = zipfile.ZipInfo("link")
        member.external_attr = 0o120777 << 16
        archive.writestr(member, "/etc/passwd")
    with pytest.raises(ValueError, match="is a link"):
        unpack(tmp_path / "a.zip", tmp_path / "out")


def test_archives_have_limits(tmp_path):
    path = tar_of(tmp_path / "a.tar.gz", {"zeros": bytes(10_000), "more": bytes(10)})
    with pytest.raises(ValueError, match="more than 9,999 bytes"):
        unpack(path, tmp_path / "out", max_bytes=9_999)
    with pytest.raises(ValueError, match="more than 1 files"):
        unpack(path, tmp_path / "out", max_files=1)
    unpack(path, tmp_path / "out")
    assert (tmp_path / "out" / "zeros").stat().st_size == 10_000
    with pytest.raises(ValueError, match="already exists"):
        unpack(path, tmp_path / "out")
    (tmp_path / "b.zip").write_text("x")
    with pytest.raises(ValueError, match="neither a tar nor a zip"):
        unpack(tmp_path / "b.zip", tmp_path / "other")


def forged(path, field, size, value):
    """A zip of 10,000 zeros whose central directory holds another value at `field`."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(10_000))
    data = bytearray(path.read_bytes())
    start = data.rindex(b"PK\x01\x02") + field
    data[start : start + size] = value.to_bytes(size, "little")
    path.write_bytes(data)
    return path


def test_damaged_archives(tmp_path):
    small, secret = forged(tmp_path / "small.zip", 24, 4, 100), forged(tmp_path / "secret.zip", 8, 2, 1)
    for path in (small, secret):  # a size that lies, and a password
        with pytest.raises(ValueError, match=rf"{path.name}: damaged"):
            unpack(path, tmp_path / "out")
    cut = tar_of(tmp_path / "cut.tar.gz", {"random": np.random.default_rng(0).bytes(50_000)})
    cut.write_bytes(cut.read_bytes()[:30_000])
    with pytest.raises(ValueError, match=r"cut.tar.gz: damaged"):
        unpack(cut, tmp_path / "out")
    with tarfile.open(tmp_path / "twice.tar", "w") as archive:
        for _ in range(2):
            archive.addfile(tarfile.TarInfo("same"))
    with pytest.raises(ValueError, match="'same' occurs twice"):
        unpack(tmp_path / "twice.tar", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_fetching_checks_the_hash_before_the_file_gets_its_name(tmp_path):
    source = tmp_path / "source.bin"
    source.write_bytes(b"content")
    right = f"sha256:{hashlib.sha256(b'content').hexdigest()}"
    published.fetch(source.as_uri(), tmp_path / "new" / "file.bin", right)
    check_hash(tmp_path / "new" / "file.bin", right)
    with pytest.raises(ValueError, match="damaged or a different file"):
        published.fetch(source.as_uri(), tmp_path / "new" / "bad.bin", "md5:" + "0" * 32)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["file.bin"]


def test_templates_are_those_of_clip():
    assert [len(templates(name)) for name in ("cifar10", "cifar100", "cinic10", "imagenet", "imagenet100")] == [
        18, 18, 7, 80, 1,
    ]  # fmt: skip
    assert set(templates("imagenet7")) <= set(templates("imagenet"))
    metadata = pytest.importorskip("open_clip.zero_shot_metadata", reason="open_clip is not installed")
    assert list(templates("imagenet")) == [make("{}") for make in metadata.OPENAI_IMAGENET_TEMPLATES]
    assert list(templates("imagenet7")) == [make("{}") for make in metadata.SIMPLE_IMAGENET_TEMPLATES]


def test_templates_are_checked(tmp_path):
    with pytest.raises(ValueError, match="did you mean 'cifar10'"):
        templates("cifar1")
    for wrong in ("no place", "{} and {other}"):
        with pytest.raises(ValueError, match="is not a template"):
            templates([wrong])
    with pytest.raises(ValueError, match="need definitions"):
        fill(["cat"], templates("definition"))
    (tmp_path / "mine.txt").write_text("a drawing of a {}\n\n{}\n")
    assert templates(tmp_path / "mine.txt") == ("a drawing of a {}", "{}")


def test_texts_from_files(tmp_path):
    lines = tmp_path / "names.txt"
    lines.write_text("cat\n\n dog \n", encoding="utf-8-sig")
    assert load_texts(lines).texts == ("cat", "dog")
    prompts = load_texts(lines, prompts="cifar10")
    assert (len(prompts), prompts.class_names, prompts.labels[:19:18]) == (36, ("cat", "dog"), (0, 1))
    with (tmp_path / "t.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["id", "caption"], ["a", "one, two"], ["b", "three"]])
    table = load_texts(tmp_path / "t.csv")
    assert (table.texts, table.names) == (("one, two", "three"), ("a", "b"))
    with pytest.raises(ValueError, match="no column words; it holds id, caption"):
        load_texts(tmp_path / "t.csv", column="words")
    (tmp_path / "t.jsonl").write_text('{"n": 1, "text": "x"}\n{"n": 2, "text": "y"}\n')
    assert load_texts(tmp_path / "t.jsonl").texts == ("x", "y")
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install '.[files]')")
    from pyarrow import parquet

    parquet.write_table(arrow.table({"n": [1, 2], "text": ["x", "y"]}), tmp_path / "t.parquet")
    assert load_texts(tmp_path / "t.parquet").texts == ("x", "y")


@pytest.mark.parametrize(
    ("content", "prompts", "message"),
    [
        ("cat\ndog\ncat\n", None, "names.txt: class names occur twice: cat"),
        ("", None, "no text in it"),
        ("cat\n", "nothing", "prompts='nothing' is not known"),
    ],
)
def test_texts_that_cannot_be_used(tmp_path, content, prompts, message):
    path = tmp_path / "names.txt"
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        load_texts(path, prompts=prompts)


def test_more_texts_that_cannot_be_used(tmp_path):
    with pytest.raises(ValueError, match="class names occur twice"):
        load_texts(["cat", "cat"], prompts="cifar")
    with pytest.raises(ValueError, match="text 2 is ' '"):
        load_texts(["cat", " "])
    with pytest.raises(FileNotFoundError):
        load_texts(tmp_path / "nowhere.txt")
    (tmp_path / "b.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="not a text file"):
        load_texts(tmp_path / "b.txt")
    (tmp_path / "r.csv").write_text("a,b\n1\n")
    with pytest.raises(ValueError, match="line 2 has 1 cells"):
        load_texts(tmp_path / "r.csv")
    with pytest.raises(ValueError, match="did you mean 'cifar100'"):
        load_texts("cifar1000")


def test_hugging_face_datasets(tmp_path):
    library = pytest.importorskip("datasets", reason="datasets is not installed (pip install datasets)")
    from PIL import Image

    from blindmatch.encoders import embed_images

    images = [Image.new("RGB", (6, 6), colour) for colour in ("red", "blue", "red")]
    features = library.Features({"img": library.Image(), "label": library.ClassLabel(names=["warm", "cold"])})
    table = library.Dataset.from_dict({"img": images, "label": [0, 1, 0]}, features=features)
    (tmp_path / "set").mkdir()
    table.to_parquet(tmp_path / "set" / "test.parquet")
    found = embed_images(f"hf:{tmp_path / 'set'}", "pixels")
    assert found.labels.tolist() == [0, 1, 0]
    assert found.values[0].reshape(-1, 3).mean(0).tolist() == [1, 0, 0]
    library.Dataset.from_dict({"n": [1, 2], "text": ["x", "y"]}).to_parquet(tmp_path / "t.parquet")
    (tmp_path / "texts").mkdir()
    (tmp_path / "t.parquet").rename(tmp_path / "texts" / "test.parquet")
    assert load_texts(f"hf:{tmp_path / 'texts'}").texts == ("x", "y")
    with pytest.raises(ValueError, match="no column of images"):
        load_images(f"hf:{tmp_path / 'texts'}")
