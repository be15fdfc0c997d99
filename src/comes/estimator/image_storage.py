"""A fitted image classifier as a folder: ``model.json`` and ``model.safetensors``, no pickle."""

import copy
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch import nn

from comes.errors import ComesError
from comes.estimator.storage import (
    DESCRIPTION,
    OWN,
    calibration_arrays,
    plain,
    rate_arrays,
    read_model,
    stored_array,
    stored_calibration,
    stored_rates,
    write_model,
)
from comes.models import Backbone, Preprocessing, ResNet, make_backbone
from comes.models.views import Clusters, ImageNetwork, Views, zero_linear
from comes.training import History
from comes.training.seeding import seeded

if TYPE_CHECKING:
    from comes.estimator.image_classifier import ImageClassifier

    C = TypeVar("C", bound=ImageClassifier)


def save(classifier: "ImageClassifier", path: str | Path) -> None:
    """Write a fitted classifier to a folder."""
    network = classifier.network_
    arrays = {
        **rate_arrays(classifier.rates_),
        "score_offset": classifier.score_offset_,
        "threshold": classifier.threshold_,
        **calibration_arrays(classifier),
    }
    tensors = {name: torch.as_tensor(a) for name, a in arrays.items() if a is not None}
    for name, tensor in network.state_dict().items():
        tensors[f"network.{name}"] = tensor.cpu().clone().contiguous()
    settings = classifier.get_params(deep=False)
    parameters = {k: plain(v) for k, v in settings.items() if k != "weights"}
    weights = classifier.weights
    parameters |= {
        "method": classifier.method_,
        "device": "auto",
        "weights": None if weights is None else str(weights),
    }
    resnet, classes = network.backbone.network, network.backbone.classifier
    assert isinstance(network.head, nn.Linear)
    description = {
        "images": {
            "strides": resnet.strides if isinstance(resnet, ResNet) else None,
            "n_classes": None if classes is None else classes.out_features,
            "n_features": network.head.in_features,
            "power": network.power,
            "views": None if network.views is None else {"pooled": network.views.pooled},
            "is_frozen": classifier.is_frozen_,
            "preprocessing": asdict(network.backbone.preprocessing),
            "config": network.backbone.config,
        },
        "parameters": parameters,
        "label_names": classifier.label_names_,
        "history": vars(classifier.history_),
        "trained_on": classifier.trained_on_,
    }
    write_model(path, description, tensors)


def load(cls: "type[C]", path: str | Path, backbone: nn.Module | None) -> "C":
    """Read a fitted classifier from a folder."""
    description, tensors = read_model(path)
    try:
        about, parameters = description["images"], description["parameters"]
        if parameters["backbone"] == OWN:
            if backbone is None:
                raise ComesError(
                    f"{path} holds weights of a network of your own: pass it, "
                    "load(path, backbone=...)."
                )
            parameters["backbone"] = backbone
        classifier = cls(**parameters)
        classifier.label_names_ = description["label_names"]
        classifier.method_ = classifier.method
        classifier.classes_ = np.arange(len(classifier.label_names_))
        classifier.history_ = History(**description["history"])
        classifier.trained_on_ = description.get("trained_on")
        classifier.is_frozen_ = about["is_frozen"]
        classifier.rates_ = stored_rates(tensors, classifier.mistake_rate)
        classifier.score_offset_ = stored_array(tensors, "score_offset")
        classifier.threshold_ = stored_array(tensors, "threshold")
        classifier.calibration_ = stored_calibration(tensors)
        with seeded(0, torch.device("cpu")):  # initial weights, to be replaced
            classifier.network_ = _restore_network(classifier, about, tensors)
    except (KeyError, TypeError, AttributeError) as error:
        raise ComesError(f"{Path(path) / DESCRIPTION} is damaged: {error!r}.") from error
    return classifier


def _restore_backbone(
    classifier: "ImageClassifier", about: dict[str, Any], tensors: dict[str, torch.Tensor]
) -> Backbone:
    """Return the network below the head; before it said how, pictures were stretched."""
    numbers = {
        name: tensors[f"network.backbone.{name}"].flatten() / 255 for name in ("mean", "std")
    }
    plain_way = {"size": classifier.image_size, **{k: v.tolist() for k, v in numbers.items()}}
    stored = about.get("preprocessing", plain_way)
    preprocessing = Preprocessing(**stored | {k: tuple(stored[k]) for k in ("mean", "std")})
    own: Any = copy.deepcopy(classifier.backbone)
    backbone = make_backbone(own, size=preprocessing.size, config=about.get("config"))
    backbone.preprocessing = preprocessing
    return backbone


def _restore_network(
    classifier: "ImageClassifier", about: dict[str, Any], tensors: dict[str, torch.Tensor]
) -> ImageNetwork:
    """Return the network with the weights of a file."""
    backbone = _restore_backbone(classifier, about, tensors)
    backbone.temperature = classifier.temperature
    if isinstance(backbone.network, ResNet) and about["strides"] is not None:
        backbone.network.set_strides(about["strides"])
    if about["n_classes"] is None:
        backbone.classifier = None
    else:
        n_inputs = tensors["network.backbone.classifier.weight"].shape[1]
        backbone.classifier = nn.Linear(n_inputs, about["n_classes"])
    network = ImageNetwork(
        backbone,
        zero_linear(about["n_features"], len(classifier.label_names_)),
        tensors.get("network.shift"),
        tensors.get("network.scale"),
        power=about["power"],
        freezes_statistics=classifier.freezes_statistics,
        views=_restore_views(classifier, about.get("views"), tensors),
    )
    weights = {
        name.removeprefix("network."): tensor
        for name, tensor in tensors.items()
        if name.startswith("network.")
    }
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise ComesError(f"the saved weights do not fit the network: {reason}") from None
    return network.eval()


def _restore_views(
    classifier: "ImageClassifier", about: dict[str, Any] | None, tensors: dict[str, torch.Tensor]
) -> Views | None:
    """Return what the head reads of the features; None where it is one thing alone."""
    if about is None:
        return None
    start = "network.views."
    own = {k.removeprefix(start): t for k, t in tensors.items() if k.startswith(start)}
    clusters = classes = None
    if "clusters.centres" in own:
        names = ("mean", "directions", "centres", "width")
        clusters = Clusters(*(own[f"clusters.{name}"] for name in names))
    if "classifier.weight" in own:
        n_classes, n_features = own["classifier.weight"].shape
        classes = nn.Linear(n_features, n_classes)
    return Views(clusters, classes, classifier.temperature, pooled=about["pooled"])
