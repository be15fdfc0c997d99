"""Backbones by name: our own, those of timm and torchvision, and those in a folder."""

from pathlib import Path
from typing import Any

from torch import nn

from comes.errors import ComesError
from comes.files import expanded
from comes.models.backbones import Backbone
from comes.models.libraries import load_from_timm, load_from_torchvision
from comes.models.local_networks import load_folder, restore_folder
from comes.models.resnet import ResNet

DEPTHS = {"resnet50": (3, 4, 6, 3), "resnet101": (3, 4, 23, 3), "resnet152": (3, 8, 36, 3)}


def make_backbone(
    name: str | nn.Module,
    pretrained: bool = False,
    *,
    size: int | None = None,
    centre_crop: bool = False,
    config: dict[str, Any] | None = None,
) -> Backbone:
    """Return a backbone by name, or make one of your own network.

    Parameters
    ----------
    name : str or module
        "resnet50", "resnet101", "resnet152" (built in), "timm:NAME", "torchvision:NAME" or
        "folder:PATH", a folder that timm or transformers saved; or a module that maps normalised
        images to features.
    pretrained : bool
        Let timm or torchvision download weights. The built-in networks have none to download:
        use `load_weights`. A folder brings its weights in any case.
    size : int, optional
        Height and width of the pictures; by default the network's own, 224 for built-in ones.
    centre_crop : bool
        Show the network the centre of a picture that it was trained on, rather than the whole
        picture, stretched. A `Backbone` keeps what it has.
    config : dict, optional
        The `config` of a backbone that came from a folder: it is made again, without its weights.

    Returns
    -------
    backbone : Backbone

    Examples
    --------
    >>> backbone = make_backbone(ResNet((1, 1, 1, 1), width=4), size=32)
    >>> backbone.count_features(), backbone.preprocessing.size
    (128, 32)
    """
    if isinstance(name, Backbone):
        name.preprocessing = name.preprocessing.sized(size)
        return name
    backbone = _find_backbone(name, pretrained, size, config)
    backbone.preprocessing = backbone.preprocessing.sized(size).cropped(centre_crop)
    return backbone


def _find_backbone(
    name: str | nn.Module, pretrained: bool, size: int | None, config: dict[str, Any] | None
) -> Backbone:
    """Return a backbone with the preprocessing of its library."""
    if isinstance(name, nn.Module):
        return Backbone(name)
    if name in DEPTHS:
        return Backbone(ResNet(DEPTHS[name]))
    library, _, model = name.partition(":")
    if library == "timm" and model:
        return load_from_timm(model, pretrained, size)
    if library == "torchvision" and model:
        return load_from_torchvision(model, pretrained)
    if library == "folder" and model:
        return (
            load_folder(expanded(model), size) if config is None else restore_folder(config, size)
        )
    hint = f" For a folder write folder:{name}." if Path(name).is_dir() else ""
    raise ComesError(
        f"backbone must be {', '.join(DEPTHS)}, timm:NAME, torchvision:NAME, folder:PATH or a "
        f"module; got {name!r}.{hint}"
    )
