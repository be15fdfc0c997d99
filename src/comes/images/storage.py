"""A fitted image classifier as a folder: ``model.json`` and ``model.safetensors``, no pickle."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import nn

from comes.errors import ComesError
from comes.estimator.storage import (
    DESCRIPTION,
    describe,
    read_model,
    read_parameters,
    restore,
    restore_weights,
    take_tensors,
    write_model,
)
from comes.files import expanded
from comes.images.backbones import Backbone, get_strides, make_backbone, set_strides
from comes.images.network import Clusters, ImageNetwork, Views, zero_linear
from comes.training.pixels import Preprocessing
from comes.training.seeding import seeded

if TYPE_CHECKING:
    from comes.images.classifier import ImageClassifier

    C = TypeVar("C", bound=ImageClassifier)

REMOVED = ("centre_crop", "standard_errors")  # parameters of 1.0.0 that act only in training


def holds_images(path: str | Path) -> bool:
    """Return whether the model in a folder is one of images; loading says if it is damaged."""
    file = expanded(path) / DESCRIPTION
    try:
        return file.is_file() and "images" in json.loads(file.read_text(encoding="utf-8"))
    except (OSError, RecursionError, TypeError, ValueError):
        return False


def save(classifier: "ImageClassifier", path: str | Path) -> None:
    """Write a fitted classifier to a folder."""
    network = classifier.network_
    description, tensors = describe(classifier, network, "network.", leave="weights")
    weights, classes = classifier.weights, network.backbone.classifier
    description["parameters"]["weights"] = None if weights is None else str(weights)
    description["images"] = {
        "strides": get_strides(network.backbone.network),
        "n_classes": None if classes is None else classes.out_features,
        "n_features": network.head.in_features,
        "power": network.power,
        "views": None if network.views is None else {"pooled": network.views.pooled},
        "is_frozen": classifier.is_frozen_,
        "preprocessing": asdict(network.backbone.preprocessing),
        "temperature": network.backbone.temperature,
    }
    write_model(path, description, tensors)


def load(cls: "type[C]", path: str | Path, backbone: nn.Module | None) -> "C":
    """Read a fitted classifier from a folder."""
    description, tensors = read_model(path)
    try:
        about, flat = dict(description["images"]), description["parameters"]
        about.setdefault("temperature", flat.pop("temperature", 2.0))
        for name in REMOVED:
            flat.pop(name, None)
        classifier = cls(**read_parameters(description, path, "backbone", backbone))
        restore(classifier, description, tensors)
        classifier.is_frozen_ = about["is_frozen"]
        with seeded(0, torch.device("cpu")):  # initial weights, to be replaced
            network = _make_network(classifier, about, tensors)
        classifier.network_ = restore_weights(network, take_tensors(tensors, "network."))  # type: ignore[assignment]
    except (KeyError, TypeError, AttributeError) as error:
        raise ComesError(f"{Path(path) / DESCRIPTION} is damaged: {error!r}.") from error
    return classifier


def _make_network(
    classifier: "ImageClassifier", about: dict[str, Any], tensors: dict[str, torch.Tensor]
) -> ImageNetwork:
    """Return the network of a stored classifier, without its weights."""
    own = take_tensors(tensors, "network.")
    n_classes, how = about["n_classes"], classifier.optimizer or {}
    backbone = _make_backbone(classifier, about, own)
    backbone.classifier = None
    if n_classes is not None:
        backbone.classifier = nn.Linear(own["backbone.classifier.weight"].shape[1], n_classes)
    views = None
    if about.get("views") is not None:
        shown, clusters, classes = take_tensors(own, "views."), None, None
        if "clusters.centres" in shown:
            names = ("mean", "directions", "centres", "width")
            clusters = Clusters(*(shown[f"clusters.{name}"] for name in names))
        if "classifier.weight" in shown:
            n_outputs, n_inputs = shown["classifier.weight"].shape
            classes = nn.Linear(n_inputs, n_outputs)
        views = Views(clusters, classes, about["temperature"], pooled=about["views"]["pooled"])
    return ImageNetwork(
        backbone,
        zero_linear(about["n_features"], len(classifier.label_names_)),
        own.get("shift"),
        own.get("scale"),
        power=about["power"],
        freezes_statistics=how.get("freezes_statistics", True),
        views=views,
    )


def _make_backbone(
    classifier: "ImageClassifier", about: dict[str, Any], own: dict[str, torch.Tensor]
) -> Backbone:
    """Return the network below the head; before a model said how, pictures were stretched."""
    numbers = {name: own[f"backbone.{name}"].flatten() / 255 for name in ("mean", "std")}
    stretched = {"size": classifier.image_size, **{k: v.tolist() for k, v in numbers.items()}}
    stored = about.get("preprocessing", stretched)
    preprocessing = Preprocessing(**stored | {k: tuple(stored[k]) for k in ("mean", "std")})
    backbone = make_backbone(classifier.backbone, size=preprocessing.size)
    backbone.preprocessing, backbone.temperature = preprocessing, about["temperature"]
    if about["strides"] is not None:
        set_strides(backbone.network, about["strides"])
    return backbone
