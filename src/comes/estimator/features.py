"""Features of pictures, computed once: kept on disk by the hash of weights and pictures."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from comes.datasets import Images
from comes.errors import ComesError
from comes.files import cache_folder, replacing_file
from comes.models import Backbone
from comes.progress import progress_bar
from comes.training import PixelRows, process_number

if TYPE_CHECKING:
    from comes.estimator.image_classifier import ImageClassifier

Features = npt.NDArray[np.float32]
AT_ONCE = 256  # pictures, where no gradient is needed


class Pictures:
    """Arrays of uint8, shape (height, width, 3), as the images of a data set."""

    def __init__(self, arrays: Any) -> None:
        self.arrays = arrays
        self.names = [str(row) for row in range(len(arrays))]

    def __len__(self) -> int:
        return len(self.arrays)

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, (int, np.integer)):
            return self.arrays[rows]
        return Pictures([self.arrays[row] for row in np.arange(len(self))[rows]])

    def fingerprint(self) -> str:
        """Return a hash of sizes and pixels."""
        found = hashlib.sha256()
        for array in self.arrays:
            found.update(repr(array.shape).encode() + np.ascontiguousarray(array).tobytes())
        return found.hexdigest()


def as_pictures(images: Any) -> Any:
    """Return images of a data set unchanged, and arrays as `Pictures`."""
    if isinstance(images, (Images, Pictures)):
        return images
    arrays = [np.asarray(image) for image in images]
    for row, array in enumerate(arrays):
        if array.ndim != 3 or array.shape[2] != 3 or array.dtype != np.uint8:
            raise ComesError(
                "pictures must be uint8 arrays of shape (height, width, 3), or "
                f"comes.datasets.Images; picture {row} is {array.dtype} of shape {array.shape}."
            )
    if not arrays:
        raise ComesError("at least one picture is needed; got none. Pass some images.")
    return Pictures(arrays)


def features_of(
    backbone: Backbone,
    images: Any,
    size: int,
    device: torch.device,
    precision: torch.dtype | None = None,
    *,
    cache: bool = True,
    at_once: int = AT_ONCE,
) -> Features:
    """Return the features of pictures, from disk if they are there.

    Parameters
    ----------
    backbone : Backbone
    images : comes.datasets.Images, or sequence of n uint8 arrays of shape (height, width, 3)
    size : int
        Height and width that pictures are stretched to.
    device : torch device
    precision : torch dtype, optional
        Of the network; by default that of its weights.
    cache : bool
        Keep features on disk, under a hash of weights, pictures, size and precision. Not for a
        network of your own, whose code is in no hash. Without it nothing is hashed.
    at_once : int
        Pictures at a time.

    Returns
    -------
    features : float32 array of shape (n, n_features)

    Examples
    --------
    >>> from comes.models import ResNet, make_backbone
    >>> backbone = make_backbone(ResNet((1, 1, 1, 1), width=4))
    >>> images = np.zeros((3, 16, 16, 3), dtype=np.uint8)
    >>> features_of(backbone, images, 16, torch.device("cpu"), cache=False).shape
    (3, 128)
    """
    images = as_pictures(images)
    path = _cached_file(backbone, images, size, precision) if cache else None
    found = None if path is None else _read_features(path)
    if found is None:
        found = _compute_features(backbone, images, size, device, precision, at_once)
        if path is not None and process_number() == 0:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing_file(path) as temporary:
                np.save(temporary, found)
    return found


def _cached_file(backbone: Backbone, images: Any, size: int, precision: torch.dtype | None) -> Path:
    """Return the file that features are kept in, named by a hash of everything they depend on."""
    weights, pictures = weights_hash(backbone), images.fingerprint()
    spec = [weights, backbone.temperature, pictures, size, str(precision)]
    name = hashlib.sha256(json.dumps(spec).encode()).hexdigest()[:32]
    return cache_folder() / "features" / f"{name}.npy"


def _compute_features(
    backbone: Backbone,
    images: Any,
    size: int,
    device: torch.device,
    precision: torch.dtype | None,
    at_once: int,
) -> Features:
    """Put all pictures through the network."""
    pixels = PixelRows(images, size, device, keep="nowhere")
    rows = torch.arange(len(pixels)).split(at_once)
    autocast = torch.autocast(device.type, precision, enabled=precision is not None)
    parts = []
    with torch.no_grad(), autocast, progress_bar(len(rows), "features of images") as advance:
        backbone.to(device).eval()
        for batch in pixels.batches(rows):
            parts.append(backbone(batch).float().cpu())
            advance()
    found: Features = torch.cat(parts).numpy()
    return found


def _read_features(path: Path) -> Features | None:
    """Return stored features, or None if the file is missing or damaged."""
    try:
        found: Features = np.load(path)
    except (OSError, ValueError, EOFError):
        return None
    return found


def weights_hash(module: nn.Module) -> str:
    """Return a hash of all weights, and of the layers, which tell the strides of a ResNet."""
    found = hashlib.sha256(repr(module).encode())
    for name, tensor in module.state_dict().items():
        found.update(name.encode())
        found.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return found.hexdigest()


@contextmanager
def explaining_memory(classifier: "ImageClassifier") -> Iterator[None]:
    """Turn an error for lack of memory into one that says what to do."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError):
        at_once = classifier.part_size or max(classifier.batch_size, AT_ONCE)
        size = classifier.image_size
        raise ComesError(
            f"there is not enough memory for {at_once} pictures of {size} x {size} at once. Set "
            "part_size (--part-size) to a quarter of that, or lower image_size."
        ) from None
