"""Small pictures with coloured bars, and a small network: images that train in a second."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from PIL import Image
from torch import Tensor, nn

from comes import ImageClassifier
from comes.generation import case_b
from comes.models import ResNet
from comes.priors import count_class_prior

SIZE = 32
LABELS = ["left", "middle", "right"]
Pixels = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]


def tiny() -> ResNet:
    """Return a ResNet of four bottlenecks, the same each time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return ResNet((1, 1, 1, 1), width=8)


def pictures(n: int = 120, seed: int = 0) -> tuple[Pixels, Bools]:
    """Return pictures, and where each has a bar of the colour of its place."""
    rng = np.random.default_rng(seed)
    relevant = rng.random((n, 3)) < 0.4
    pixels = rng.integers(0, 60, (n, SIZE, SIZE, 3)).astype(np.uint8)
    for label in range(3):
        pixels[relevant[:, label], :, 10 * label : 10 * label + 10, label] += 150
    return pixels, relevant


def small_classifier(**settings: Any) -> ImageClassifier:
    """Return a classifier of these pictures that knows their class prior."""
    known: dict[str, Any] = {
        "backbone": tiny(),
        "weights": None,
        "image_size": SIZE,
        "class_prior": count_class_prior(pictures()[1]),
        "random_state": 0,
        "progress": False,
    }
    return ImageClassifier(**known | settings)


def write_pictures(folder: Path, n: int = 120, seed: int = 0) -> Path:
    """Write pictures and a table of candidates and true labels; return the table's path."""
    pixels, relevant = pictures(n, seed)
    candidates = case_b(relevant, exclude_rate=0.7, seed=seed)
    (folder / "photos").mkdir()
    names = [f"{row:03}.png" for row in range(n)]
    for name, picture in zip(names, pixels, strict=True):
        Image.fromarray(picture).save(folder / "photos" / name)
    table = pd.DataFrame({"image": names})
    for label, name in enumerate(LABELS):
        table[f"has_{name}"] = candidates[:, label].astype(int)
        table[f"is_{name}"] = relevant[:, label].astype(int)
    table.to_csv(folder / "photos.csv", index=False)
    return folder / "photos.csv"


def some_pixels(n: int = 8) -> Tensor:
    """Return pictures as a network takes them."""
    return torch.from_numpy(pictures(n)[0]).permute(0, 3, 1, 2)


def randomised(network: nn.Module, seed: int = 0) -> nn.Module:
    """Draw every scale, bias and statistic of a network; return it."""
    generator = torch.Generator().manual_seed(seed)
    for name, tensor in network.state_dict().items():
        if tensor.ndim == 1 and "num_batches" not in name:
            tensor.uniform_(0.5, 1.5, generator=generator)
    return network
