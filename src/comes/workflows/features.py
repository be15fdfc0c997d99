"""The job that puts images through a network once, for whatever is to be learned on top."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from comes.datasets import Dataset, read_images
from comes.datasets.predictions import check_feature_target, write_features
from comes.errors import ComesError
from comes.files import refuse_inputs
from comes.images import compute_features as put_through
from comes.images import make_backbone
from comes.training.rows import choose_device

KINDS = ("pooled", "classes")
AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class ImageFeatures:
    """Features of images, with their names.

    Parameters
    ----------
    X : float32 array of shape (n, n_features)
        Mapped into memory if it is large.
    items : list of n str
        File names inside the folder or archive.

    Examples
    --------
    >>> len(ImageFeatures(np.zeros((2, 3), np.float32), ["a.jpg", "b.jpg"]))
    2
    """

    X: npt.NDArray[np.float32]
    items: list[str]

    def __len__(self) -> int:
        return len(self.items)


def compute_features(
    data: Dataset | str | Path,
    output: str | Path | None = None,
    *,
    images: str | Path | None = None,
    backbone: str | nn.Module = "resnet50",
    weights: str | Path | None = "imagenet",
    features: str = "pooled",
    image_size: int | None = None,
    skip_broken: bool = False,
    part_size: int | None = None,
    device: str = "auto",
) -> ImageFeatures:
    """Return the features of images by a frozen network; write them if asked.

    They are written to the cache as they are computed: after a kill, the same call goes on where it
    stopped, and `ImageClassifier` finds them there. Memory holds a few parts at a time.

    Parameters
    ----------
    data : Dataset, path or name
        A folder or .zip of images, or a table that names images.
    output : path, optional
        A .npz, .parquet or .npy file.
    images : path, optional
        The folder or .zip of the images that a table names.
    backbone, weights, image_size, device
        As in `ImageClassifier`. Features of a module are not kept in the cache.
    features : {"pooled", "classes"}
        The last layer, or square roots of class probabilities.
    skip_broken : bool
        Leave out images that cannot be read, with a warning.
    part_size : int, optional
        Images at a time; by default 256.

    Returns
    -------
    features : ImageFeatures

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> folder = Path(tempfile.mkdtemp())
    >>> Image.new("RGB", (32, 32), "red").save(folder / "red.png")
    >>> network = nn.Conv2d(3, 8, 5)
    >>> found = compute_features(folder, backbone=network, weights=None, image_size=32)
    >>> found.X.shape, found.items
    ((1, 8), ['red.png'])
    """
    if output is not None:
        check_feature_target(output)
        refuse_inputs(output, data, images, weights)
    if features not in KINDS:
        raise ComesError(f"features must be {' or '.join(KINDS)}; got {features!r}.")
    where = choose_device(device)
    pictures = (
        data.known_images() if isinstance(data, Dataset) else read_images(data, images, skip_broken)
    )
    network = make_backbone(backbone, weights, pictures, size=image_size, device=where)
    if features == "pooled":
        network.classifier = None
    elif network.classifier is None:
        raise ComesError("this network has no classes of its own. Take features='pooled'.")
    X = put_through(
        network,
        pictures,
        where,
        torch.bfloat16 if where.type == "cuda" else None,
        cache=isinstance(backbone, str),
        at_once=part_size or AT_ONCE,
    )
    if output is not None:
        write_features(X, pictures.names, output)
    return ImageFeatures(X, pictures.names)
