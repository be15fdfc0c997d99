"""Features of pictures, computed once: kept on disk by the hash of weights and pictures."""

import hashlib
import json
from pathlib import Path
from typing import Any

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

Features = npt.NDArray[np.float32]


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
    """Return images of a data set as they are, and arrays as such."""
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
        raise ComesError("there are no pictures; at least one was wanted.")
    return Pictures(arrays)


def features_of(
    backbone: Backbone,
    images: Any,
    size: int,
    device: torch.device,
    precision: torch.dtype | None = None,
    *,
    cache: bool = True,
    at_once: int = 256,
) -> Features:
    """Return the features of pictures, shape (n, n_features), from disk if they are there.

    What is on disk is named by a hash of the weights, the pictures, their size and the precision.
    Without ``cache`` nothing is read or written: the code of a network of one's own is in no hash.
    """
    spec = [
        weights_hash(backbone),
        backbone.temperature,
        images.fingerprint(),
        size,
        str(precision),
    ]
    name = hashlib.sha256(json.dumps(spec).encode()).hexdigest()[:32]
    path = cache_folder() / "features" / f"{name}.npy" if cache else None
    found = None if path is None else _stored(path)
    if found is not None:
        return found
    pixels = PixelRows(images, size, device, keep="nowhere")
    rows = torch.arange(len(pixels)).split(at_once)
    autocast = torch.autocast(device.type, precision, enabled=precision is not None)
    parts = []
    with torch.no_grad(), autocast, progress_bar(len(rows), "features of images") as advance:
        backbone.to(device).eval()
        for batch in pixels.batches(rows):
            parts.append(backbone(batch).float().cpu())
            advance()
    found = torch.cat(parts).numpy()
    if path is not None and process_number() == 0:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing_file(path) as temporary:
            np.save(temporary, found)
    return found


def _stored(path: Path) -> Features | None:
    """Return stored features, or None if there are none, or damaged ones."""
    try:
        found: Features = np.load(path)
    except (OSError, ValueError, EOFError):
        return None
    return found


def weights_hash(module: nn.Module) -> str:
    """Return a hash of all weights, and of what places the strides of a ResNet."""
    found = hashlib.sha256(repr(module).encode())
    for name, tensor in module.state_dict().items():
        found.update(name.encode())
        found.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return found.hexdigest()
