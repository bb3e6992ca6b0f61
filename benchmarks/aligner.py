"""bm.BlindAligner: does it find the map, from which seeds, and what does it take?

python benchmarks/aligner.py synthetic          # rotated noisy samples of one mixture, several seeds
python benchmarks/aligner.py large              # 100,000 x 384 against 100,000 x 768: time and memory
python benchmarks/aligner.py text a.npy b.npy   # two encoders, row i of both is text i (benchmarks/aligner_texts.py)
python benchmarks/aligner.py beside EMBEDDINGS CELLS   # beside the peer of aligner_peer.py, with known pairs too
"""

import argparse
import itertools
import resource
import time
from pathlib import Path

import numpy as np
from aligner_peer import Peer
from cells import read

import blindmatch as bm
from blindmatch.geometry.kernels import unit_rows


def mixture(n, dimensions, latent=48, kinds=300, noise=1.0, tests=2000, seed=0):
    """Disjoint samples X, Y of one mixture under two encoders, and `tests` items under both."""
    rng = np.random.default_rng(seed)
    scale = 1 / np.sqrt(1 + np.arange(latent))
    centres, shares = 2 * scale * rng.normal(size=(kinds, latent)), rng.dirichlet(np.ones(kinds))

    def items(count):
        return centres[rng.choice(kinds, count, p=shares)] + 0.5 * scale * rng.normal(size=(count, latent))

    turns = [np.linalg.qr(rng.normal(size=(d, latent)))[0].T for d in dimensions]

    def encoded(values, side):
        d = dimensions[side]
        jitter = noise * np.sqrt((scale**2).mean() * latent / d)
        rows = np.empty((len(values), d), dtype=np.float32)
        for start in range(0, len(values), 10_000):  # the data must not take more memory than the aligner
            part = values[start : start + 10_000] @ turns[side] + 0.3
            rows[start : start + len(part)] = part + jitter * rng.normal(size=part.shape)
        return rows

    both = items(tests)
    return encoded(items(n), 0), encoded(items(n), 1), encoded(both, 0), encoded(both, 1)


def halves(source, target, tests):
    """The first half of the items under one encoder, the second under the other, and `tests` items under both."""
    a, b = (np.load(path, mmap_mode="r", allow_pickle=False) for path in (source, target))
    n = min(len(a), len(b))
    half = (n - tests) // 2
    return a[:half], b[half : 2 * half], a[2 * half : n], b[2 * half : n]


def measure(data, seed, options):
    X, Y, A, B = data
    chosen = {name: value for name, value in vars(options).items() if name.startswith("n_") and value is not None}
    cpu, wall = time.process_time(), time.perf_counter()
    aligner = bm.BlindAligner(random_state=seed, n_jobs=options.threads, **chosen).fit(X, Y)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    right = aligner.kneighbors(A, 10, candidates=B)[1] == np.arange(len(A))[:, None]
    result = aligner.result_
    gap = "-" if result.gap is None else f"{result.gap:.0%}"
    per_pair = result.cost / len(result.permutation) ** 2
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{seed:4} {right[:, 0].mean():7.3f} {right.any(axis=1).mean():7.3f} {aligner.score_:6.2f}"
        f" {aligner.support_:5}/{len(aligner.candidates_) - 1} {aligner.best_ + 1:5} {per_pair:6.3f} {gap:>5}"
        f" {result.status:10} {cpu:6.0f} {wall:6.0f} {peak:6.2f}",
        flush=True,
    )


def prompts(folder, model):
    """Unit rows, and the mean of each class."""
    with np.load(folder / f"language__tinyimagenet200__{model}.npz") as file:
        classes, phrasings, size = file["embeddings"].shape
        rows = unit_rows(file["embeddings"].reshape(-1, size))
    return rows, rows.reshape(classes, phrasings, size).mean(axis=1)


def images(folder, model):
    """Unit rows, and the mean of each class."""
    with np.load(folder / f"vision__tinyimagenet200__{model}.npz") as file:
        rows, labels = unit_rows(file["embeddings"]), file["labels"]
    return rows, np.stack([rows[labels == c].mean(axis=0) for c in range(labels.max() + 1)])


def beside(options):
    """Both methods on the same rows, in random order, with and without known pairs, which the test leaves out."""
    embeddings, cells = map(Path, options.files)
    mini, mpnet = (prompts(embeddings, model) for model in ("all_minilm_l6_v2", "all_mpnet_base_v2"))
    resnet, efficient = (images(embeddings, model) for model in ("resnet50_keras", "efficientnet_lite0"))
    assays = read(cells, "SNAREseq")[:2]
    data = {
        "prompts, MiniLM x mpnet": (mini[0], mpnet[0], mini[0], mpnet[0]),
        "SNARE-seq": (*assays, *assays),
        "images x prompts, ResNet-50 x mpnet": (resnet[0], mpnet[0], resnet[1], mpnet[1]),
        "images x prompts, EfficientNet x MiniLM": (efficient[0], mini[0], efficient[1], mini[1]),
        "Gaussian mixture": mixture(options.rows or 3000, (384, 768), noise=options.noise, tests=options.tests),
    }
    print("| data | known | seed | method | FOSCTTM | top 1 | top 10 | CPU s | support |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    seeds = range(options.first_seed, options.first_seed + (options.seeds or 3))
    for (name, rows), known, seed in itertools.product(data.items(), options.known, seeds):
        rng = np.random.default_rng(seed)
        X, Y = (rng.permutation(points) for points in rows[:2])
        order = rng.permutation(len(rows[2]))
        (PX, A), (PY, B) = (np.split(points[order], [known]) for points in rows[2:])
        ours = bm.BlindAligner(random_state=seed, n_jobs=options.threads)
        for method, title in ((ours, "BlindAligner"), (Peer(seed, options.threads), "peer")):
            cpu = time.process_time()
            method.fit(X, Y, known=(PX, PY) if known else None)
            cpu = time.process_time() - cpu
            found = bm.BlindAligner.score(method, A, B)
            print(
                f"| {name} | {known} | {seed} | {title} | {found['foscttm']:.4f} | {found['top1']:.1%} |"
                f" {found['top10']:.1%} | {cpu:.0f} | {getattr(method, 'support_', '-')} |",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", choices=["synthetic", "large", "text", "beside"])
    parser.add_argument(
        "files", nargs="*", help="for text: two .npy files, same items in the same order; for beside: two folders"
    )
    parser.add_argument("--seeds", type=int, default=None, help="how many (10; 1 for large)")
    parser.add_argument("--first-seed", type=int, default=0, help="to go on where a run ended")
    parser.add_argument("--tests", type=int, default=2000, help="items that are kept for the test: the candidates")
    parser.add_argument("--noise", type=float, default=1.0)
    parser.add_argument("--rows", type=int, default=None, help="points on each side (20000; 100000 for large)")
    parser.add_argument("--known", type=int, nargs="+", default=[0, 10], help="for beside: how many known pairs")
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--n_components", type=int, default=None)
    parser.add_argument("--n_clusters", type=int, default=None)
    parser.add_argument("--n_candidates", type=int, default=None)
    options = parser.parse_args()
    if options.data == "beside":
        return beside(options)
    if options.data == "text":
        data = halves(*options.files, options.tests)
    else:
        rows = options.rows or (100_000 if options.data == "large" else 20_000)
        data = mixture(rows, (384, 768), noise=options.noise, tests=options.tests)
    shapes = " against ".join(f"{len(side)} x {side.shape[1]}" for side in data[:2])
    chance = 1 / len(data[2])
    print(f"{shapes}, {len(data[2])} candidates: chance is {chance:.4f} (top 1), {10 * chance:.4f} (top 10)")
    print("seed   top 1  top 10  score support  kept   cost   gap status      CPU s wall s     GB")
    count = options.seeds or (1 if options.data == "large" else 10)
    for seed in range(options.first_seed, options.first_seed + count):
        measure(data, seed, options)


if __name__ == "__main__":
    main()
