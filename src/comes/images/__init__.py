"""Pictures: features by pretrained networks, heads on top, and where the evidence is."""

from comes.images.backbones import Backbone, make_backbone
from comes.images.classifier import ImageClassifier, load_model
from comes.images.features import compute_features
from comes.images.maps import evidence_maps

__all__ = [
    "Backbone",
    "ImageClassifier",
    "compute_features",
    "evidence_maps",
    "load_model",
    "make_backbone",
]
