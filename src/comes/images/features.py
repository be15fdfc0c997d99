"""Features of pictures, computed once: kept on disk by the hash of weights and pictures."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor

from comes.datasets import Images
from comes.errors import ComesError, warn_user
from comes.files import cache_folder
from comes.files.features import Features, grow_features, read_features
from comes.images.backbones import Backbone
from comes.progress import progress_bar
from comes.training.checkpoint import weights_hash
from comes.training.pixels import PixelRows
from comes.training.processes import count_processes
from comes.training.rows import choose_device

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
        for state in self.states():
            found.update(state)
        return found.hexdigest()

    def states(self) -> Iterator[bytes]:
        """Give size and pixels of each picture."""
        for array in self.arrays:
            yield repr(array.shape).encode() + np.ascontiguousarray(array).tobytes()


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


def compute_features(
    backbone: Backbone,
    images: Any,
    device: str | torch.device = "auto",
    precision: torch.dtype | None = None,
    *,
    cache: bool = True,
    at_once: int = AT_ONCE,
) -> Features:
    """Return the features of pictures, from disk if they are there.

    Parameters
    ----------
    backbone : Backbone
        From `make_backbone`; its ``preprocessing`` says how pictures become pixels.
    images : comes.datasets.Images, or sequence of n uint8 arrays of shape (height, width, 3)
    device : str or torch device
        ``auto`` is the GPU if torch sees one, else the CPU.
    precision : torch dtype, optional
        Of the network; by default that of its weights.
    cache : bool
        Keep features on disk, under a hash of weights, pictures, preprocessing and precision. They
        are written as they are computed: after a kill, the same call goes on. Not for a network of
        your own, whose code is in no hash. Without it nothing is hashed.
    at_once : int
        Pictures at a time.

    Returns
    -------
    features : float32 array of shape (n, n_features)
        Mapped into memory if it is large and kept on disk.

    Examples
    --------
    >>> from comes.images import make_backbone
    >>> from torch import nn
    >>> backbone = make_backbone(nn.Conv2d(3, 8, 5), size=16)
    >>> images = np.zeros((3, 16, 16, 3), dtype=np.uint8)
    >>> compute_features(backbone, images, cache=False).shape
    (3, 8)
    """
    images, device = as_pictures(images), choose_device(str(device))

    def compute(start: int) -> Iterator[Features]:
        for part in _stream(backbone, images, device, precision, at_once, start):
            yield part.cpu().numpy()

    if not cache:
        found = np.empty((len(images), backbone.to(device).count_features()), np.float32)
        done = 0
        for part in compute(0):
            found[done : (done := done + len(part))] = part
        return found
    temperature = None if backbone.classifier is None else backbone.temperature
    how = asdict(backbone.preprocessing), str(precision)
    network, pictures = [weights_hash(backbone), temperature, *how], images.fingerprint()
    folder = cache_folder().absolute() / "features"
    path = folder / f"{_hash_of([*network, pictures])}.npy"
    stored = read_features(path)
    if stored is None:
        # While it grows, changed pictures may follow the first one: what was computed before a
        # broken picture is still good after it is replaced or left out.
        if isinstance(images, Images):
            sources = sorted({str(source.absolute()) for source in images.sources})
            pictures = [*sources, images.names[0]]
        growing = folder / f"{_hash_of([*network, pictures])}.part"
        shape = len(images), backbone.to(device).count_features()
        stored = grow_features(path, growing, shape, images.states, compute, _warn_of_waiting)
    return stored


def stream_features(
    backbone: Backbone,
    images: Any,
    device: torch.device,
    precision: torch.dtype | None = None,
    *,
    cache: bool = False,
    at_once: int = AT_ONCE,
) -> Iterator[Tensor]:
    """Give what `compute_features` returns part by part, on the device."""
    if not cache:
        yield from _stream(backbone, images, device, precision, at_once)
        return
    found = compute_features(backbone, images, device, precision, at_once=at_once)
    for start in range(0, len(found), at_once):
        yield torch.from_numpy(found[start : start + at_once]).to(device)


def _stream(
    backbone: Backbone,
    images: Any,
    device: torch.device,
    precision: torch.dtype | None,
    at_once: int,
    start: int = 0,
) -> Iterator[Tensor]:
    """Put pictures through the network, from the one with number ``start``."""
    pixels = PixelRows(images, backbone.preprocessing, device, keep="nowhere")
    rows = torch.arange(start, len(pixels)).split(at_once) if start < len(pixels) else ()
    backbone.to(device).eval()
    with progress_bar(len(images), "features of images", start=start) as advance:
        for batch in pixels.batches(rows):
            with torch.no_grad(), torch.autocast(device.type, precision, enabled=bool(precision)):
                features = backbone(batch).float()
            yield features
            advance(steps=len(batch))


def _warn_of_waiting() -> None:
    """Warn that the same features are being computed elsewhere, unless by one of our group."""
    if count_processes() == 1:
        warn_user("another process computes features of these pictures; waiting for it.")


def _hash_of(spec: list[Any]) -> str:
    return hashlib.sha256(json.dumps(spec).encode()).hexdigest()[:32]
