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
from comes.images.backbones import import_torchvision
from comes.priors import count_class_prior

SIZE = 32
LABELS = ["left", "middle", "right"]
Pixels = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]


class SmallResNet(nn.Module):
    """A ResNet with one bottleneck in each of four stages, and the names of torchvision."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        make_block = import_torchvision("a test").models.resnet.Bottleneck
        self.conv1 = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
        self.bn1, self.relu = nn.BatchNorm2d(width), nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        for stage in range(4):
            n_inputs, n_inside = 2 * width * 2**stage if stage else width, width * 2**stage
            stride = 2 if stage else 1
            shortcut = nn.Sequential(
                nn.Conv2d(n_inputs, 4 * n_inside, 1, stride, bias=False),
                nn.BatchNorm2d(4 * n_inside),
            )
            block = make_block(n_inputs, n_inside, stride, shortcut)
            self.add_module(f"layer{stage + 1}", nn.Sequential(block))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for stage in range(4):
            x = self.get_submodule(f"layer{stage + 1}")(x)
        return x.mean(dim=(2, 3))


def tiny(width: int = 8) -> SmallResNet:
    """Return a small ResNet, the same each time."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return SmallResNet(width)


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
        "verbose": -1,
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
