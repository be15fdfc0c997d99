"""Backbones by name: our own, and those of timm and torchvision."""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch import nn

from comes.errors import ComesError, first_line
from comes.models.backbones import Backbone
from comes.models.resnet import ResNet

DEPTHS = {"resnet50": (3, 4, 6, 3), "resnet101": (3, 4, 23, 3), "resnet152": (3, 8, 36, 3)}


def make_backbone(name: str | nn.Module, pretrained: bool = False) -> Backbone:
    """Return a backbone by name, or make one of your own network.

    Parameters
    ----------
    name : str or module
        "resnet50", "resnet101", "resnet152" (built in), "timm:NAME" or "torchvision:NAME"; or a
        module that maps normalised images to features.
    pretrained : bool
        Let timm or torchvision download weights. The built-in networks have none to download:
        use `load_weights`.

    Returns
    -------
    backbone : Backbone

    Examples
    --------
    >>> backbone = make_backbone(ResNet((1, 1, 1, 1), width=4))
    >>> backbone.count_features(size=32)
    128
    """
    if isinstance(name, nn.Module):
        return name if isinstance(name, Backbone) else Backbone(name)
    if name in DEPTHS:
        return Backbone(ResNet(DEPTHS[name]))
    library, _, model = name.partition(":")
    if library == "timm" and model:
        return _load_from_timm(model, pretrained)
    if library == "torchvision" and model:
        return _load_from_torchvision(model, pretrained)
    raise ComesError(
        f"backbone must be {', '.join(DEPTHS)}, timm:NAME, torchvision:NAME or a module; got "
        f"{name!r}."
    )


def _load_from_timm(name: str, pretrained: bool) -> Backbone:
    """Return a network of timm, its classifier apart."""
    import_torchvision(needed_by="timm")  # timm imports it
    try:
        import timm
    except ImportError:
        raise ComesError("timm is not installed: pip install 'comes[images]'.") from None
    if name not in timm.list_models() and name not in timm.list_pretrained():
        raise ComesError(f"timm has no model {name!r}; timm.list_models() names them.")
    network: Any = _download(lambda: timm.create_model(name, pretrained=pretrained))
    classifier = network.get_classifier()
    network.reset_classifier(0)
    config = network.pretrained_cfg
    return Backbone(
        network,
        classifier if isinstance(classifier, nn.Linear) else None,
        tuple(config["mean"]),
        tuple(config["std"]),
    )


def _load_from_torchvision(name: str, pretrained: bool) -> Backbone:
    """Return a network of torchvision, its last linear layer apart."""
    models = import_torchvision(needed_by="torchvision").models
    if name not in models.list_models(module=models):
        raise ComesError(f"torchvision has no model {name!r} that classifies images.")
    weights = "DEFAULT" if pretrained else None
    network = _download(lambda: models.get_model(name, weights=weights))
    layers = [(path, m) for path, m in network.named_modules() if isinstance(m, nn.Linear)]
    if not layers:  # convolutions alone: their scores are the features
        return Backbone(network)
    path, classifier = layers[-1]
    network.set_submodule(path, nn.Identity())
    return Backbone(network, classifier)


def _download(make: Callable[[], nn.Module]) -> nn.Module:
    """Return a network whose library may download its weights."""
    try:
        return make()
    except (OSError, RuntimeError) as error:
        raise ComesError(
            f"the weights could not be downloaded ({first_line(error)}). Name a file of weights "
            "(--weights)."
        ) from None


def import_torchvision(needed_by: str) -> ModuleType:
    """Import torchvision, even if its compiled operators do not fit this torch.

    If they do not, importing it raises RuntimeError, since it registers two operators that do not
    exist. Models and transforms do not use them, so we declare them without an implementation.
    """
    try:
        import torchvision
    except ImportError:
        raise ComesError(
            f"{needed_by} needs torchvision, which is not installed: pip install torchvision, in "
            "the version that fits your torch."
        ) from None
    except RuntimeError:
        for name in [m for m in sys.modules if m.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        global _declared  # must live as long as the process
        _declared = torch.library.Library("torchvision", "DEF")
        for operator in ("nms", "qnms"):
            _declared.define(
                f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            )
        import torchvision
    module: ModuleType = torchvision
    return module


_declared: torch.library.Library | None = None
