"""ONNX files of a few hundred bytes, written field by field: no package is needed to make them."""

import json

import numpy as np

FLOAT, INT64 = 1, 7


def field(number, value):
    """One field of a protobuf message: a whole number, or bytes with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(value):
    found = b""
    while value > 127:
        found, value = found + bytes([value & 127 | 128]), value >> 7
    return found + bytes([value])


def node(kind, inputs, output):
    return b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, kind)


def tensor(name, kind, shape):
    """The name, type and shape of an input or output; text is an axis of any length."""
    axes = b"".join(field(1, field(2, axis) if isinstance(axis, str) else field(1, axis)) for axis in shape)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, axes)))


def weights(name, values):
    dims = b"".join(field(1, size) for size in values.shape)
    return dims + field(2, FLOAT) + field(8, name) + field(9, values.astype("<f4").tobytes())


def model(nodes, inputs, outputs, constants=()):
    graph = b"".join(field(1, each) for each in nodes) + field(2, "tiny")
    for number, group in ((5, constants), (11, inputs), (12, outputs)):
        graph += b"".join(field(number, each) for each in group)
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17))


def colour_model(folder, **settings):
    """The mean colour of an image of 8 x 8 pixels."""
    folder.mkdir()
    nodes = [node("GlobalAveragePool", ["pixels"], "pooled"), node("Flatten", ["pooled"], "embedding")]
    content = model(nodes, [tensor("pixels", FLOAT, ("images", 3, 8, 8))], [tensor("embedding", FLOAT, ("images", 3))])
    (folder / "model.onnx").write_bytes(content)
    size = {"height": 8, "width": 8}
    config = {"size": size, "resample": 3, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.25]} | settings
    (folder / "preprocessor_config.json").write_text(json.dumps(config))
    return folder


WORDS = ["[PAD]", "[UNK]", "cat", "dog", "ship", "photo"]
TABLE = np.array([[9, 9], [0, 1], [1, 2], [3, -1], [-2, 5], [0.5, 0.5]])


def word_model(folder):
    """Two numbers for each word, in the layout of transformers.js: pooling is left to the caller."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    (folder / "onnx").mkdir(parents=True)
    axes = ("texts", "tokens")
    content = model(
        [node("Gather", ["table", "input_ids"], "last_hidden_state")],
        [tensor("input_ids", INT64, axes), tensor("attention_mask", INT64, axes)],
        [tensor("last_hidden_state", FLOAT, (*axes, 2))],
        [weights("table", TABLE)],
    )
    (folder / "onnx" / "model.onnx").write_bytes(content)
    tokenizer = Tokenizer(models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder
