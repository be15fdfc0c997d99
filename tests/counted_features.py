"""Features of a folder of pictures by a network that counts them, and can stop on the way.

Run as a program, ``python counted_features.py FOLDER [STOP_AT]``, it computes the features, waits
before picture STOP_AT for a line on its standard input, and prints how many it computed.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from comes.datasets import Images, open_images
from comes.datasets.images import image_names
from comes.files import features
from comes.images import Backbone, compute_features
from comes.training.pixels import Preprocessing
from pictures import SIZE, tiny, write_pictures

CPU = torch.device("cpu")
N, AT_ONCE = 60, 8


class Counting(Backbone):
    """The tiny network; counts pictures, and calls something once so many are computed."""

    def __init__(
        self, stop_at: int | None = None, stop: Callable[[], object] | None = None
    ) -> None:
        super().__init__(tiny(), preprocessing=Preprocessing(SIZE))
        self.rows: list[int] = []
        self.stop_at, self.stop = stop_at, stop

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        if self.stop_at is not None and sum(self.rows) >= self.stop_at:
            if self.stop is None:
                raise KeyboardInterrupt
            self.stop()
            self.stop_at = None
        if pixels.any():  # zeros only tell the number of features
            self.rows.append(len(pixels))
        return super().forward(pixels)


def write_folder(folder: Path) -> Path:
    """Write pictures into a new folder below this one; return it."""
    return write_pictures(folder, N).parent / "photos"


def compute(folder: Path, backbone: Backbone | None = None, skip_broken: bool = False) -> Any:
    """Return the features of a folder."""
    images, _ = open_images(folder, image_names(folder), skip_broken)
    return compute_features(backbone or Counting(), images, CPU, at_once=AT_ONCE)


def compute_in_memory(folder: Path) -> Any:
    """Return the same, nothing from disk."""
    images = Images(folder, image_names(folder))
    return compute_features(Counting(), images, CPU, cache=False, at_once=AT_ONCE)


def wait_for_a_line() -> None:
    print("stopped", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    features.SECONDS = 0.0  # every batch is written
    backbone = Counting(int(sys.argv[2]) if len(sys.argv) > 2 else None, wait_for_a_line)
    compute(Path(sys.argv[1]), backbone)
    print(sum(backbone.rows), flush=True)
