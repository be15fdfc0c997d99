"""Features of many pictures by the workers of a cluster: parts in files, joined in their order.

The network and the parts lie in one folder of the cache, which all machines see. A part is named
after its pictures and grows in its file, so that neither a lost worker nor a stopped run costs more
than a second of work on each part.
"""

import functools
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import torch

from comes.clusters import Cluster
from comes.errors import ComesError
from comes.files import Features, GrowingFile, read_features, replacing_file
from comes.models import Backbone, Preprocessing
from comes.models.backbones import import_torchvision
from comes.progress import progress_bar
from comes.training.rows import choose_device

BATCHES = 4  # of pictures in a part


class Recipe(NamedTuple):
    """How features of pictures are computed, as a worker must know it."""

    compute: Callable[..., Iterator[Features]]  # as `comes.estimator.features` does here
    folder: Path  # of the network and the parts
    n_features: int
    shown: Preprocessing
    device: str
    precision: torch.dtype | None
    at_once: int


class Part(NamedTuple):
    """Pictures that one worker computes the features of."""

    recipe: Recipe
    first: int  # number of its first picture
    images: Any


def compute_in_parts(
    cluster: Cluster, recipe: Recipe, backbone: Backbone, images: Any, start: int
) -> Iterator[Features]:
    """Give features in the order of the pictures, from the one with number ``start``."""
    recipe.folder.mkdir(parents=True, exist_ok=True)
    with replacing_file(_network_file(recipe.folder)) as temporary:
        torch.save(backbone.cpu(), temporary)  # a pickle, for the workers of this run alone
    size = BATCHES * recipe.at_once
    firsts = range(start - start % size, len(images), size)
    parts = (Part(recipe, first, images[first : first + size]) for first in firsts)
    arrived: dict[int, Path] = {}
    following = iter(firsts)
    first = next(following, None)
    with progress_bar(len(images), "features of images", start=start) as advance:
        for part, found in cluster.run(_compute_part, parts):
            if isinstance(found, ComesError):
                raise found
            arrived[part.first] = found
            advance(steps=len(part.images))
            while first in arrived:
                rows = read_features(arrived.pop(first))
                assert rows is not None
                yield rows[max(start - first, 0) :]
                first = next(following, None)


def _compute_part(part: Part) -> Path:
    """Write the features of a part, unless they are there; return their file."""
    recipe, images = part.recipe, part.images
    path = recipe.folder / f"{images.fingerprint()[:32]}.npy"
    if read_features(path) is None:
        how = recipe.shown, choose_device(recipe.device), recipe.precision, recipe.at_once
        compute = functools.partial(
            recipe.compute, _load_network(_network_file(recipe.folder)), images, *how, show=False
        )
        growing = GrowingFile(path, path.with_suffix(".part"), (len(images), recipe.n_features))
        growing.fill(images.states, compute)
    return path


def _network_file(folder: Path) -> Path:
    return folder / "network.pt"


@functools.lru_cache(maxsize=1)
def _load_network(path: Path) -> Backbone:
    """Return the network of a folder; a worker keeps it for the next part."""
    if find_spec("torchvision") is not None:
        import_torchvision(needed_by="timm")  # even if it does not fit this torch
    network: Backbone = torch.load(path, map_location="cpu", weights_only=False)
    return network
