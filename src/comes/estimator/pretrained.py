"""A backbone by its name or as a module, with its weights, from the net or from a file."""

import copy
from pathlib import Path
from typing import Any

import torch
from torch import nn

from comes.errors import ComesError, first_line
from comes.files import cache_folder, data_folder, download, expanded
from comes.models import Backbone, make_backbone
from comes.models.backbones import choose_strides, load_weights, place_network
from comes.training.pixels import PixelRows
from comes.training.seeding import RANDOM_LOCK

# Address and checksum of the weights of our own networks; timm and torchvision know theirs.
IMAGENET = {
    "resnet50": (
        "https://download.pytorch.org/models/resnet50-0676ba61.pth",
        "sha256:0676ba61b6795bbe1773cffd859882e5e297624d384b6993f7c9e683e722fb8a",
    )
}
LOOKED_AT = 32  # pictures that show which strides the weights of a ResNet belong to


def pretrained_backbone(
    backbone: str | nn.Module,
    weights: str | Path | None,
    images: Any,
    size: int | None,
    device: torch.device,
    *,
    centre_crop: bool = False,
) -> Backbone:
    """Return a network with its weights, and with the strides that belong to them.

    Parameters
    ----------
    backbone, weights : as in `ImageClassifier`
        A module is copied.
    images : sequence of uint8 arrays of shape (height, width, 3)
        The first ones tell which strides the weights of a ResNet were trained with.
    size : int, optional
        Height and width of images; by default the network's own.
    device : torch device
    centre_crop : bool
        Whether the network sees the centre of a picture, rather than all of it.

    Returns
    -------
    backbone : Backbone

    Examples
    --------
    >>> from comes.models import ResNet
    >>> own = ResNet((1, 1, 1, 1), width=4)
    >>> backbone = pretrained_backbone(own, None, [], 32, torch.device("cpu"))
    >>> backbone.count_features(32)
    128
    """
    given: Any = {"size": size, "centre_crop": centre_crop}
    if isinstance(backbone, nn.Module):
        with RANDOM_LOCK:  # weights that are not given are drawn
            network = make_backbone(copy.deepcopy(backbone), **given)
        if weights not in (None, "imagenet"):
            load_weights(network, _find_weights(weights))
        return place_network(_check_size(network, size), device)
    is_ours = ":" not in backbone
    with RANDOM_LOCK:
        network = make_backbone(backbone, weights == "imagenet" and not is_ours, **given)
    _check_size(network, size)
    if weights == "imagenet":
        if is_ours:
            load_weights(network, _download_weights(backbone))
    elif weights is not None:
        load_weights(network, _find_weights(weights))
        if is_ours:
            some = PixelRows(images[:LOOKED_AT], network.preprocessing, device)
            pixels = next(some.batches([torch.arange(len(some))]))
            choose_strides(network.to(device), pixels)
    return place_network(network, device)


def _check_size(backbone: Backbone, size: int | None) -> Backbone:
    """Return a network that takes pictures of a size that was asked for; refuse another."""
    if size is not None:
        try:
            backbone.count_features()
        except (RuntimeError, ValueError, AssertionError) as error:
            raise ComesError(
                f"the network does not take pictures of {size} x {size} ({first_line(error)}). "
                "Leave image_size out, or choose another."
            ) from None
    return backbone


def _find_weights(path: str | Path | None) -> Path:
    """Return a file of weights; its path may start below $COMES_DATA."""
    assert path is not None
    folder = data_folder()
    if not expanded(path).exists() and folder is not None and (folder / path).exists():
        return folder / path
    return expanded(path)


def _download_weights(name: str) -> Path:
    """Return the file of weights of a network by name, downloaded if it is not there."""
    if name not in IMAGENET:
        raise ComesError(
            f"no address is known for weights of {name}: name a file (--weights), or take "
            f"timm:{name} or torchvision:{name}."
        )
    address, checksum = IMAGENET[name]
    folder = cache_folder() / "weights"
    folder.mkdir(parents=True, exist_ok=True)
    return download(address, checksum, folder / address.rpartition("/")[2])
