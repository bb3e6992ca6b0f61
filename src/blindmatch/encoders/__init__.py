"""From raw images and texts to embeddings: models, datasets, prompts (``pip install 'blindmatch[encoders]'``)."""

from blindmatch.encoders.datasets import load_images, load_texts
from blindmatch.encoders.extract import embed_images, embed_texts
from blindmatch.encoders.item_sets import ImageItem, ImageSet, TextSet
from blindmatch.encoders.language import load_text_encoder
from blindmatch.encoders.registry import Encoder, Model, find_model, list_models
from blindmatch.encoders.vision import load_image_encoder

__all__ = [
    "Encoder",
    "ImageItem",
    "ImageSet",
    "Model",
    "TextSet",
    "embed_images",
    "embed_texts",
    "find_model",
    "list_models",
    "load_image_encoder",
    "load_images",
    "load_text_encoder",
    "load_texts",
]
