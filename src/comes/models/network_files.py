"""A network as a whole in a file, for other processes of the same user: layers and weights.

Unlike a model that is saved, the file is a pickle. It is read only by the workers that it was
written for.
"""

from importlib.util import find_spec
from pathlib import Path

import torch

from comes.files import replacing_file
from comes.models.backbones import Backbone
from comes.models.libraries import import_torchvision


def write_network(backbone: Backbone, path: Path) -> None:
    """Write a network for `read_network`.

    Examples
    --------
    >>> import tempfile
    >>> from comes.models import ResNet, read_network
    >>> path = Path(tempfile.mkdtemp()) / "network.pt"
    >>> write_network(Backbone(ResNet((1, 1, 1, 1), width=4)), path)
    >>> read_network(path).count_features(32)
    128
    """
    with replacing_file(path) as temporary:
        torch.save(backbone, temporary)


def read_network(path: Path) -> Backbone:
    """Return the network that `write_network` wrote, on the CPU. It runs code of the file.

    Examples
    --------
    >>> read_network(Path("no/such/network.pt"))
    Traceback (most recent call last):
    ...
    FileNotFoundError: [Errno 2] No such file or directory: 'no/such/network.pt'
    """
    if find_spec("torchvision") is not None:
        import_torchvision(needed_by="timm")  # even if it does not fit this torch
    found: Backbone = torch.load(path, map_location="cpu", weights_only=False)
    return found
