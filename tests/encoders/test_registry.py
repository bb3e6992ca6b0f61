"""The models of the paper, and what a user's word for a model means."""

import json
import re
import sys
from importlib.metadata import requires

import pytest
from typer.testing import CliRunner

from blindmatch.cli.app import app
from blindmatch.cli.commands.embed import SMALL
from blindmatch.encoders import load_image_encoder, load_text_encoder
from blindmatch.encoders.registry import find_model, identifier, list_models

PAPER = [model for model in list_models() if model.paper]


def test_the_paper_has_32_vision_and_27_language_models_under_different_names():
    assert sum(model.modality == "vision" for model in PAPER) == 32
    assert sum(model.modality == "language" for model in PAPER) == 27
    assert len({model.id for model in list_models()}) == len(list_models())
    assert {model.family for model in PAPER if model.modality == "vision"} == {
        "CLIP", "ConvNeXt", "DeiT", "DINO", "DINOv2",
    }  # fmt: skip


@pytest.mark.parametrize("model", list_models(), ids=lambda model: model.id)
def test_every_model_is_found_by_its_name_and_its_identifier(model):
    assert find_model(model.name, model.modality) == find_model(model.id, model.modality)
    assert find_model(model.id, model.modality).library_name == model.library_name


def test_a_clip_name_means_the_tower_that_is_asked_for():
    assert find_model("CLIP ViT-L/14@336", "vision").library == "timm"
    assert find_model("CLIP ViT-L/14@336", "language").library == "open_clip"


def test_names_of_libraries_keep_their_form():
    assert find_model("timm:resnet18.a1_in1k").library_name == "resnet18.a1_in1k"
    assert find_model("st:BAAI/bge-small-en").modality == "language"
    assert find_model("openclip:ViT-B-32/laion2b_s34b_b79k", "vision").library_name == "ViT-B-32/laion2b_s34b_b79k"
    assert find_model("hf:facebook/dinov2-small", "vision").library == "transformers"
    assert find_model("random:vit_huge_patch14_224?seed=3").options == {"seed": "3"}
    assert find_model("dinov2-vit-g14?size=518").input_size == 518


@pytest.mark.parametrize(
    ("word", "modality", "message"),
    [
        ("dinov2-vit-g15", None, "did you mean 'dinov2-vit-g14'"),
        ("all-mpnet-base-v3", "language", "did you mean 'all-mpnet-base-v"),
        ("deit-s16", "language", "is a vision model; expected a language model"),
        ("st:x", "vision", "is a language model"),
        ("hf:some/name", None, "may be a vision or a language model"),
        ("random:vit_tiny_patch16_224?seed=x", None, "not a whole number"),
        ("pixels?colour=1", None, "unknown option 'colour'"),
        ("pixels", "sound", "modality='sound'"),
        ("", None, "is not known"),
    ],
)
def test_unknown_models_are_named_with_the_nearest(word, modality, message):
    with pytest.raises(ValueError, match=message):
        find_model(word, modality)


def test_timm_knows_every_vision_model_with_its_size_and_dimension():
    torch = pytest.importorskip("torch", reason="torch is not installed (pip install '.[encoders]')")
    timm = pytest.importorskip("timm", reason="timm is not installed (pip install '.[encoders]')")
    pretrained, architectures = set(timm.list_pretrained()), set(timm.list_models())
    for model in PAPER:
        if model.library != "timm":
            continue
        known = architectures if model.checkpoint else pretrained
        assert model.library_name in known, model.name
        options = {} if model.keep_head else {"num_classes": 0}
        if "vit" in model.library_name:
            options["img_size"] = model.input_size
        with torch.device("meta"):  # the shape without the weights
            network = timm.create_model(model.library_name, pretrained=False, **options)
            output = network.eval()(torch.zeros(1, 3, model.input_size, model.input_size))
        assert output.shape == (1, model.dimension), model.name
        assert sum(weights.numel() for weights in network.parameters()) == model.parameters, model.name


def test_open_clip_knows_every_text_tower():
    open_clip = pytest.importorskip("open_clip", reason="open_clip is not installed (pip install '.[encoders]')")
    for model in PAPER:
        if model.library == "open_clip":
            name, weights = model.library_name.split("/")
            assert (name, weights) in open_clip.list_pretrained(), model.name
            config = open_clip.get_model_config(name)
            assert (config["embed_dim"], config["text_cfg"]["context_length"]) == (model.dimension, model.input_size)
            assert config["quick_gelu"], model.name


def test_sentence_transformers_names_are_whole():
    """The library has no list of its models (they live on a hub), so only their form can be checked here."""
    rows = [model for model in PAPER if model.library == "sentence-transformers"]
    assert len(rows) == 18
    assert all(model.library_name.lower() == f"sentence-transformers/{model.name}".lower() for model in rows)


def test_the_command_lists_and_filters():
    rows = json.loads(CliRunner().invoke(app, ["models", "--paper", "--json"]).stdout)
    assert len(rows) == 59
    assert {"modality", "name", "library", "library_name", "family", "parameters", "input_size", "dimension"} <= set(
        rows[0]
    )
    few = json.loads(
        CliRunner().invoke(app, ["models", "dino", "--modality", "vision", "--family", "dinov2", "--json"]).stdout
    )
    assert [row["id"] for row in few] == [f"dinov2-vit-{size}14" for size in "sblg"]
    offline = json.loads(CliRunner().invoke(app, ["models", "--offline", "--json"]).stdout)
    assert {row["modality"] for row in offline} == {"vision", "language"}
    assert "convnext_xlarge" in CliRunner().invoke(app, ["models"], env={"COLUMNS": "120"}).stdout
    wrong = CliRunner().invoke(app, ["models", "--modality", "sound"])
    assert wrong.exit_code == 2


def test_identifiers_have_no_blank():
    assert all(" " not in model.id and "/" not in model.id for model in list_models())
    assert identifier("CLIP ViT-B/32") == "clip-vit-b32"


@pytest.mark.parametrize("modality", SMALL)
def test_the_hint_for_missing_torch_names_the_extra_of_the_default_models(modality, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # as if it were not installed
    load = {"vision": load_image_encoder, "language": load_text_encoder}[modality]
    with pytest.raises(ImportError, match="torch is not installed") as told:
        load(SMALL[modality])
    extra = re.search(r"pip install .*?\[([a-z-]+)\]'", str(told.value)).group(1)
    needed = [need for need in requires("blindmatch") if f'extra == "{extra}"' in need.replace("'", '"')]
    for package in ("torch", find_model(SMALL[modality]).package.partition("==")[0]):
        assert any(re.match(rf"{re.escape(package)}\b", need) for need in needed)
