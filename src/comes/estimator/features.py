"""Features of pictures, computed once: kept on disk by the hash of weights and pictures."""

import hashlib
import json
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from comes.clusters import Cluster
from comes.datasets import Images
from comes.errors import ComesError, ComesWarning
from comes.estimator.feature_parts import Recipe, compute_in_parts
from comes.files import Features, GrowingFile, cache_folder, read_features
from comes.models import Backbone, Preprocessing
from comes.progress import progress_bar
from comes.training.pixels import PixelRows
from comes.training.processes import count_processes

if TYPE_CHECKING:
    from comes.estimator.image_classifier import ImageClassifier

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


def features_of(
    backbone: Backbone,
    images: Any,
    size: int | None,
    device: torch.device,
    precision: torch.dtype | None = None,
    *,
    cache: bool = True,
    at_once: int = AT_ONCE,
    cluster: Cluster | None = None,
) -> Features:
    """Return the features of pictures, from disk if they are there.

    Parameters
    ----------
    backbone : Backbone
        Its ``preprocessing`` says how pictures become pixels.
    images : comes.datasets.Images, or sequence of n uint8 arrays of shape (height, width, 3)
    size : int, optional
        Height and width of what the network sees; by default its own.
    device : torch device
    precision : torch dtype, optional
        Of the network; by default that of its weights.
    cache : bool
        Keep features on disk, under a hash of weights, pictures, preprocessing and precision. They
        are written as they are computed: after a kill, the same call goes on. Not for a network of
        your own, whose code is in no hash. Without it nothing is hashed.
    at_once : int
        Pictures at a time.
    cluster : Cluster, optional
        Computes them on the device, in parts, which are kept until all are there. Its machines see
        the pictures and the cache (``COMES_CACHE``) under the same paths. Not without the cache.

    Returns
    -------
    features : float32 array of shape (n, n_features)
        Mapped into memory if it is large and kept on disk.

    Examples
    --------
    >>> from comes.models import ResNet, make_backbone
    >>> backbone = make_backbone(ResNet((1, 1, 1, 1), width=4))
    >>> images = np.zeros((3, 16, 16, 3), dtype=np.uint8)
    >>> features_of(backbone, images, 16, torch.device("cpu"), cache=False).shape
    (3, 128)
    """
    images = as_pictures(images)
    shown = backbone.preprocessing.sized(size)
    compute = partial(_compute_features, backbone, images, shown, device, precision, at_once)
    if not cache:
        found = np.empty((len(images), backbone.to(device).count_features(shown.size)), np.float32)
        done = 0
        for part in compute(0):
            found[done : (done := done + len(part))] = part
        return found
    path, growing = _cached_files(backbone, images, shown, precision)
    stored = read_features(path)
    if stored is None:
        here = device if cluster is None else torch.device("cpu")
        shape = len(images), backbone.to(here).count_features(shown.size)
        parts = growing.with_suffix(".parts")
        if cluster is not None:
            how = shown, str(device), precision, at_once
            recipe = Recipe(_compute_features, parts, shape[1], *how)
            compute = partial(compute_in_parts, cluster, recipe, backbone, images)
        GrowingFile(path, growing, shape).fill(images.states, compute, _say_waiting)
        shutil.rmtree(parts, ignore_errors=True)
        stored = read_features(path)
        assert stored is not None
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
    """Give the features of pictures part by part, on the device; parameters as in `features_of`."""
    if not cache:
        shown = backbone.preprocessing
        yield from _stream_parts(backbone, images, shown, device, precision, at_once, 0)
        return
    found = features_of(backbone, images, None, device, precision, at_once=at_once)
    for start in range(0, len(found), at_once):
        yield torch.from_numpy(found[start : start + at_once]).to(device)


def _cached_files(
    backbone: Backbone, images: Any, shown: Preprocessing, precision: torch.dtype | None
) -> tuple[Path, Path]:
    """Return the file that features are kept in, named by a hash of everything they depend on.

    And its name while it grows, where changed pictures may follow the first one: what was computed
    before a broken picture is still good after it is replaced or left out.
    """
    temperature = None if backbone.classifier is None else backbone.temperature
    network = [weights_hash(backbone), temperature, asdict(shown), str(precision)]
    pictures: Any = images.fingerprint()
    names = [_hash_of([*network, pictures])]
    if isinstance(images, Images):
        pictures = [*sorted({str(source.absolute()) for source in images.sources}), images.names[0]]
    names.append(_hash_of([*network, pictures]))
    folder = cache_folder().absolute() / "features"
    return folder / f"{names[0]}.npy", folder / f"{names[1]}.part"


def _say_waiting() -> None:
    """Warn that the same features are being computed elsewhere, unless by one of our group."""
    if count_processes() == 1:
        warnings.warn(
            "another process computes features of these pictures; waiting for it.",
            ComesWarning,
            stacklevel=2,
        )


def _hash_of(spec: list[Any]) -> str:
    """Return a short hash of something that json can hold."""
    return hashlib.sha256(json.dumps(spec).encode()).hexdigest()[:32]


def _compute_features(*arguments: Any, **options: Any) -> Iterator[Features]:
    """Give features in parts, as arrays."""
    for part in _stream_parts(*arguments, **options):
        yield part.cpu().numpy()


def _stream_parts(
    backbone: Backbone,
    images: Any,
    shown: Preprocessing,
    device: torch.device,
    precision: torch.dtype | None,
    at_once: int,
    start: int,
    show: bool | None = None,
) -> Iterator[Tensor]:
    """Put pictures through the network, from the one with number ``start``."""
    pixels = PixelRows(images, shown, device, keep="nowhere")
    rows = torch.arange(start, len(pixels)).split(at_once) if start < len(pixels) else ()
    backbone.to(device).eval()
    with progress_bar(len(images), "features of images", start=start, show=show) as advance:
        for batch in pixels.batches(rows):
            with torch.no_grad(), torch.autocast(device.type, precision, enabled=bool(precision)):
                features = backbone(batch).float()
            yield features
            advance(steps=len(batch))


def weights_hash(module: nn.Module) -> str:
    """Return a hash of all weights, and of the layers, which tell the strides of a ResNet."""
    found = hashlib.sha256(repr(module).encode())
    for name, tensor in module.state_dict().items():
        found.update(name.encode())
        found.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return found.hexdigest()


def choose_precision(classifier: "ImageClassifier", device: torch.device) -> torch.dtype | None:
    """Return the precision of the network; None is that of its weights."""
    by_itself = classifier.precision == "auto" and device.type == "cuda"
    return torch.bfloat16 if classifier.precision == "bfloat16" or by_itself else None


def in_parts(classifier: "ImageClassifier", device: torch.device, cache: bool) -> dict[str, Any]:
    """Return how features are computed; those of a network of one's own are not kept."""
    return {
        "precision": choose_precision(classifier, device),
        "cache": cache and isinstance(classifier.backbone, str),
        "at_once": classifier.part_size or AT_ONCE,
    }


@contextmanager
def explaining_memory(classifier: "ImageClassifier") -> Iterator[None]:
    """Turn an error for lack of memory into one that says what to do."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError):
        at_once = classifier.part_size or max(classifier.batch_size, AT_ONCE)
        size = classifier.image_size
        of_size = "" if size is None else f" of {size} x {size}"
        raise ComesError(
            f"there is not enough memory for {at_once} pictures{of_size} at once. Set part_size "
            "(--part-size) to a quarter of that, or lower image_size."
        ) from None
