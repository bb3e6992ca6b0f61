"""Names of models and classes, and the prompts that are made of them."""

from blindmatch.encoders.prompts import class_names, disambiguate, fill
from blindmatch.encoders.registry import identifier, list_models


def test_names_of_models():
    assert identifier("DINOv2 ViT-G/14") == "dinov2-vit-g14"
    assert identifier("ConvNeXt L-22k-ft-1k@384") == "convnext-l-22k-ft-1k-384"
    paper = [model.modality for model in list_models() if model.paper]
    assert (paper.count("vision"), paper.count("language")) == (32, 27)


def test_names_of_classes():
    assert class_names("cifar10")[:3] == ("airplane", "automobile", "bird")
    assert fill(["cat"], ["a {}.", "{}: {definition}"], ["a feline"]) == [["a cat.", "cat: a feline"]]
    unique = disambiguate(["crane", "crane", "tabby"], ["n02012849", "n03126707", "n02123045"])
    assert unique == ("crane (n02012849)", "crane (n03126707)", "tabby")
