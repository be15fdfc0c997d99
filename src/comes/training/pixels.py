"""Pictures on a device, decoded once if they fit into memory; augmented and mixed in training."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from comes.errors import ComesError

Interpolation = Literal["nearest", "bilinear", "bicubic", "lanczos"]  # names that Pillow knows
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of pixels in [0, 1]
AUGMENTATIONS = ("none", "flip", "crop", "mixup")
Augmentation = Literal["none", "flip", "crop", "mixup"]
SMALLEST_CROP = 0.6  # of the side, for "crop"
SHARE_OF_MEMORY = 0.4  # of the free memory, for decoded pictures
AHEAD = 2  # batches that are decoded during a step


@dataclass(frozen=True)
class Preprocessing:
    """What happens to a picture before a network sees it.

    The whole picture is stretched to a square: labels are about everything in it.

    Parameters
    ----------
    size : int
        Height and width that the network sees.
    interpolation : {"nearest", "bilinear", "bicubic", "lanczos"}
    short_side : int, optional
        Resize the shorter side to this length, keeping proportions, and cut out the square in the
        centre: for models that were trained so.
    mean, std : three floats
        Of the pixels, in [0, 1], that the network was trained on.

    Examples
    --------
    >>> wide = np.zeros((10, 40, 3), np.uint8)
    >>> wide[:, :10] = 255
    >>> Preprocessing(4, "nearest").apply(wide)[0, :, 0].tolist()
    [255, 0, 0, 0]
    """

    size: int = 224
    interpolation: Interpolation = "bilinear"
    short_side: int | None = None
    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD

    @property
    def least(self) -> int:
        """The length of a shorter side from which a picture is resized without a visible loss."""
        return 2 * max(self.size, self.short_side or 0)

    def sized(self, size: int | None) -> "Preprocessing":
        """Return the same for another size; None keeps it."""
        if size is None or size == self.size:
            return self
        short = None if self.short_side is None else round(self.short_side * size / self.size)
        return replace(self, size=int(size), short_side=short)

    def apply(self, picture: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Return a picture, uint8 of shape (height, width, 3), as (size, size, 3)."""
        from PIL import Image

        height, width = picture.shape[:2]
        if self.short_side is None and height == width == self.size:
            return picture
        resample = Image.Resampling[self.interpolation.upper()]
        square, box = (self.size, self.size), self.find_box(height, width)
        return np.asarray(Image.fromarray(picture).resize(square, resample, box))

    def find_box(self, height: int, width: int) -> tuple[float, float, float, float]:
        """Return the part of a picture that the network sees: left, top, right and bottom."""
        if self.short_side is None:
            return 0, 0, width, height
        starts, ends = [], []
        for side in (width, height):
            resized = int(self.short_side * side / min(width, height))
            start = round((resized - self.size) / 2) * side / resized
            starts.append(max(start, 0))
            ends.append(min(start + self.size * side / resized, side))
        return starts[0], starts[1], ends[0], ends[1]


class PixelRows:
    """Pictures of one size, uint8 of shape (n, 3, size, size), in batches on a device.

    Pictures are decoded once and kept on the device if they take less than 0.4 of its free memory,
    else in main memory by the same rule. Where they fit into neither, threads decode them again in
    every epoch, ahead of the steps.

    ``augment`` applies in training: mirror half of the pictures ("flip"), and also cut out a random
    part ("crop"). "mixup" is "crop" here; see `TrainOptions` for the mixing.
    """

    def __init__(
        self,
        images: Sequence[npt.NDArray[np.uint8]],  # (height, width, 3), read one at a time
        size: int | Preprocessing,  # that pictures are stretched to, or how a network wants them
        device: torch.device,
        augment: Augmentation = "none",
        keep: str | None = None,  # "device", "memory" or "nowhere"; by default where they fit
    ) -> None:
        if augment not in AUGMENTATIONS:
            raise ComesError(f"augment must be one of {', '.join(AUGMENTATIONS)}; got {augment!r}.")
        self.preprocessing = size if isinstance(size, Preprocessing) else Preprocessing(int(size))
        self.images, self.device, self.augment = images, device, augment
        self.keep = keep or _choose_memory(3 * len(images) * self.size**2, device)
        self.kept: Tensor | None = None

    def __len__(self) -> int:
        return len(self.images)

    @property
    def size(self) -> int:
        """Height and width of every picture."""
        return self.preprocessing.size

    def decode(self) -> str:
        """Decode the pictures that are to be kept, unless they are; return where they are kept."""
        if self.kept is None and self.keep != "nowhere":
            device = self.device if self.keep == "device" else torch.device("cpu")
            shape = (len(self), 3, self.size, self.size)
            kept = torch.empty(shape, dtype=torch.uint8, device=device)
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                for rows in torch.arange(len(self)).split(256):
                    kept[rows[0] : rows[-1] + 1] = self._decode_batch(rows, pool).to(device)
            self.kept = kept
        return self.keep

    def select_to_train(self, rows: Tensor) -> Tensor:
        """Return a batch of the pictures that are kept on the device, augmented."""
        assert self.kept is not None
        return augment_pixels(self.kept.index_select(0, rows), self.augment)

    def batches(self, rows: Sequence[Tensor], training: bool = False) -> Iterator[Tensor]:
        """Yield the pixels of each batch of rows, on the device, augmented in training."""
        self.decode()
        augment = self.augment if training else "none"
        if self.kept is not None:
            for batch in rows:
                pixels = self.kept.index_select(0, batch.to(self.kept.device))
                yield augment_pixels(pixels.to(self.device), augment)
            return
        with ThreadPoolExecutor(os.cpu_count()) as pool, ThreadPoolExecutor(AHEAD) as ahead:
            waiting: list[Future[Tensor]] = []
            for batch in rows:
                waiting.append(ahead.submit(self._decode_batch, batch, pool))
                if len(waiting) > AHEAD:
                    yield augment_pixels(waiting.pop(0).result().to(self.device), augment)
            for decoded in waiting:
                yield augment_pixels(decoded.result().to(self.device), augment)

    def _decode_batch(self, rows: Tensor, pool: ThreadPoolExecutor) -> Tensor:
        """Return the pixels of a batch, decoded by the threads of the pool."""
        pictures = pool.map(self._decode_picture, rows.tolist())
        return torch.from_numpy(np.stack(list(pictures))).permute(0, 3, 1, 2)

    def _decode_picture(self, row: int) -> npt.NDArray[np.uint8]:
        """Return one picture in its final size; a photo of many pixels is not decoded whole."""
        if hasattr(self.images, "read_reduced"):
            return self.preprocessing.apply(self.images.read_reduced(row, self.preprocessing.least))
        return self.preprocessing.apply(self.images[row])


def augment_pixels(pixels: Tensor, augment: Augmentation) -> Tensor:
    """Return pictures mirrored and cut at random, with torch's random numbers."""
    if augment == "none":
        return pixels
    n, device = len(pixels), pixels.device
    is_mirrored = torch.rand(n, device=device) < 0.5
    if augment == "flip":
        return torch.where(is_mirrored[:, None, None, None], pixels.flip(3), pixels)
    side = SMALLEST_CROP + (1 - SMALLEST_CROP) * torch.rand(n, device=device)
    centre = (2 * torch.rand(n, 2, device=device) - 1) * (1 - side)[:, None]  # in [-1, 1]
    to_source = torch.zeros(n, 2, 3, device=device)  # from the result to the picture
    to_source[:, 0, 0] = torch.where(is_mirrored, -side, side)
    to_source[:, 1, 1] = side
    to_source[:, :, 2] = centre
    grid = F.affine_grid(to_source, list(pixels.shape), align_corners=False)
    return F.grid_sample(pixels.float(), grid, padding_mode="border", align_corners=False)


def mix_pairs(x: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return every row mixed with the row before it, by a share that is drawn, and its targets.

    Between two pictures a network should then predict what lies between their targets, which are
    probabilities, so that it cannot learn single pictures by heart.
    """
    share = 1 - torch.rand(len(x), device=x.device) / 2  # the larger share of an even division

    def mix(values: Tensor) -> Tensor:
        weight = share.to(values.dtype).view(-1, *[1] * (values.ndim - 1))
        return values.roll(1, 0).lerp(values, weight)

    return mix(x.float()), mix(targets)


def _choose_memory(n_bytes: int, device: torch.device) -> str:
    """Return where this many bytes fit: "device", "memory" or "nowhere"."""
    n_bytes *= int(os.environ.get("LOCAL_WORLD_SIZE", "1"))  # every process keeps as many
    if device.type == "cuda" and n_bytes < SHARE_OF_MEMORY * torch.cuda.mem_get_info(device)[0]:
        return "device"
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # the system does not tell
        free = 2**32
    return "memory" if n_bytes < SHARE_OF_MEMORY * free else "nowhere"
