"""How images are prepared for exported models. This needs Pillow only; `test_onnx.py` runs the models."""

import json

import numpy as np
import pytest

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed (pip install '.[onnx]')")

from blindmatch.encoders.onnx_models import FILE, preparation, processor_config  # noqa: E402
from blindmatch.encoders.registry import Model  # noqa: E402

TIMM = {"input_size": [3, 4, 4], "crop_mode": "center", "crop_pct": 0.5, "interpolation": "bilinear",
        "mean": [0.5, 0.25, 0.0], "std": [0.5, 0.25, 1.0]}  # fmt: skip
LITE = {"resize": [4, 4], "interpolation": "bicubic", "scale": "(x - 127) / 128"}


def prepared(folder, config, image, **options):
    (folder / FILE).write_text(json.dumps(config))
    return preparation(folder, Model("m", "vision", "", "folder", "m", options=options))[0](image)


def test_the_settings_of_timm_scale_each_channel(tmp_path):
    found = prepared(tmp_path, processor_config(TIMM), Image.new("RGB", (16, 12), (255, 0, 51)))
    assert found.shape == (3, 4, 4)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.broadcast_to([[[1.0]], [[-1.0]], [[0.2]]], (3, 4, 4)), atol=1e-6)


def test_the_shortest_edge_is_resized_and_the_centre_is_taken(tmp_path):
    colours = np.zeros((8, 24, 3), dtype=np.uint8)
    colours[:, 8:16] = 255  # the central square of a wide image
    config = processor_config(TIMM | {"crop_pct": 1.0, "mean": [0.0] * 3, "std": [1.0] * 3, "interpolation": "nearest"})
    assert (prepared(tmp_path, config, Image.fromarray(colours)) == 1).all()
    assert (prepared(tmp_path, config, Image.fromarray(colours.transpose(1, 0, 2))) == 1).all()


def test_a_crop_beyond_the_image_is_black(tmp_path):
    config = {"do_resize": False, "do_center_crop": True, "crop_size": 4, "do_normalize": False}
    found = prepared(tmp_path, config, Image.new("RGB", (2, 2), (255, 255, 255)))
    expected = np.zeros((4, 4))
    expected[1:3, 1:3] = 1.0
    np.testing.assert_allclose(found, [expected] * 3)


def test_efficientnet_lite_takes_the_central_square_first(tmp_path):
    colours = np.zeros((4, 12, 3), dtype=np.uint8)
    colours[:, 4:8] = (127, 255, 0)
    found = prepared(tmp_path, processor_config(LITE), Image.fromarray(colours))
    np.testing.assert_allclose(found, np.broadcast_to([[[0.0]], [[1.0]], [[-127 / 128]]], (3, 4, 4)), atol=1e-6)


def test_what_cannot_be_prepared_is_refused(tmp_path):
    image = Image.new("RGB", (8, 8))
    with pytest.raises(ValueError, match=r"size=5, but it was exported for 4 x 4 pixels"):
        prepared(tmp_path, processor_config(TIMM), image, size="5")
    for wrong in ({"size": "x"}, {"size": 0}, {"size": {"width": 3}}, {"resample": 99}, {"image_std": "no"}):
        with pytest.raises(ValueError, match=r"preprocessor_config.json: not the settings of an image processor"):
            prepared(tmp_path, wrong, image)
    with pytest.raises(ValueError, match=r"4 x 6 pixels cannot be exported"):
        processor_config(TIMM | {"input_size": [3, 4, 6]})
