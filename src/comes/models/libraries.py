"""Networks of timm and torchvision by name, with the preprocessing that belongs to them."""

import math
import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import torch
from torch import nn

from comes.errors import ComesError, first_line
from comes.models.backbones import Backbone
from comes.models.preprocessing import INTERPOLATIONS, Interpolation, Preprocessing


def load_from_timm(name: str, pretrained: bool, size: int | None = None) -> Backbone:
    """Return a network of timm, its classifier apart; ``local-dir:PATH`` is one in a folder.

    A network that takes pictures of one size only is made for ``size``.
    """
    import_torchvision(needed_by="timm")  # timm imports it
    try:
        import timm
    except ImportError:
        raise ComesError(
            f"timm:{name} needs timm, which is not installed: pip install 'comes[images]'."
        ) from None
    is_folder = name.startswith("local-dir:")
    if not is_folder and name not in timm.list_models() and name not in timm.list_pretrained():
        raise ComesError(f"timm has no model {name!r}; timm.list_models() names them.")

    def create(**settings: Any) -> Any:
        make = partial(timm.create_model, name, pretrained=pretrained, **settings)
        return make() if is_folder else download_network(make)

    data: Any = timm.data
    network = create()
    own = network.pretrained_cfg
    if size is not None and own.get("fixed_input_size") and size != own["input_size"][1]:
        network = create(img_size=size)
    classifier = network.get_classifier()
    network.reset_classifier(0)
    return Backbone(
        network,
        classifier if isinstance(classifier, nn.Linear) else None,
        _read_timm(data.resolve_model_data_config(network, pretrained_cfg=own)),
    )


def _read_timm(own: dict[str, Any]) -> Preprocessing:
    """Return the preprocessing that a config of timm describes."""
    size = own["input_size"][1]
    return Preprocessing(
        size,
        as_interpolation(own["interpolation"]),
        math.floor(size / own["crop_pct"]),
        tuple(own["mean"]),
        tuple(own["std"]),
    )


def load_from_torchvision(name: str, pretrained: bool) -> Backbone:
    """Return a network of torchvision, its last linear layer apart."""
    models = import_torchvision(needed_by="torchvision").models
    if name not in models.list_models(module=models):
        raise ComesError(f"torchvision has no model {name!r} that classifies images.")
    weights = "DEFAULT" if pretrained else None
    network = download_network(lambda: models.get_model(name, weights=weights))
    own = models.get_model_weights(name).DEFAULT.transforms()
    preprocessing = Preprocessing(
        own.crop_size[0],
        as_interpolation(own.interpolation.value),
        own.resize_size[0],
        tuple(own.mean),
        tuple(own.std),
    )
    layers = [(path, m) for path, m in network.named_modules() if isinstance(m, nn.Linear)]
    if not layers:  # convolutions alone: their scores are the features
        return Backbone(network, preprocessing=preprocessing)
    path, classifier = layers[-1]
    network.set_submodule(path, nn.Identity())
    return Backbone(network, classifier, preprocessing)


def as_interpolation(name: str) -> Interpolation:
    """Return the name of an interpolation that we know; bicubic for others."""
    return name if name in INTERPOLATIONS else "bicubic"  # type: ignore[return-value]


def download_network(make: Callable[[], nn.Module]) -> nn.Module:
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
            f"{needed_by} needs torchvision, which is not installed: pip install 'comes[images]', "
            "with the torchvision that fits your torch."
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
