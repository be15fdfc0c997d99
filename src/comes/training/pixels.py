"""Pictures on a device, decoded once if they fit into memory."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from comes.errors import ComesError
from comes.models import Preprocessing

AUGMENTATIONS = ("none", "flip", "crop", "mixup")  # names that `PixelRows` knows
Augmentation = Literal["none", "flip", "crop", "mixup"]
SMALLEST_CROP = 0.6  # of the side, for "crop"
SHARE_OF_MEMORY = 0.4  # of the free memory, for decoded pictures
AHEAD = 2  # batches that are decoded during a step
Share = Callable[[Callable[[int], Tensor]], Tensor]  # draws for a whole batch, takes own rows


class PixelRows:
    """Pictures of one size, uint8 of shape (n, 3, size, size), in batches on a device.

    Pictures are decoded once and kept on the device if they take less than 0.4 of its free memory,
    else in main memory by the same rule. Where they fit into neither, threads decode them again in
    every epoch, ahead of the steps.

    Parameters
    ----------
    images : sequence of uint8 arrays of shape (height, width, 3)
        Read one at a time, like those of `comes.datasets.Images`, which decode a large JPEG at half
        of its size or less, but not below twice what is shown.
    size : int or Preprocessing
        Height and width that every picture is stretched to, or how a network wants its pictures.
    device : torch device
    augment : {"none", "flip", "crop", "mixup"}
        In training, mirror half of the pictures ("flip"), and also cut out a random part ("crop").
        "mixup" is "crop" here; see `TrainOptions` for the mixing.
    keep : {"device", "memory", "nowhere"}, optional
        Where decoded pictures are kept; by default where they fit.

    Examples
    --------
    >>> black = np.zeros((4, 6, 3), np.uint8)
    >>> pixels = PixelRows([black, black + 255], 2, torch.device("cpu"))
    >>> [batch.shape for batch in pixels.batches([torch.tensor([1])])]
    [torch.Size([1, 3, 2, 2])]
    """

    def __init__(
        self,
        images: Sequence[npt.NDArray[np.uint8]],
        size: int | Preprocessing,
        device: torch.device,
        augment: Augmentation = "none",
        keep: str | None = None,
    ) -> None:
        if augment not in AUGMENTATIONS:
            raise ComesError(f"augment must be one of {', '.join(AUGMENTATIONS)}; got {augment!r}.")
        if keep not in (None, "device", "memory", "nowhere"):
            raise ComesError(f"keep must be device, memory or nowhere; got {keep!r}.")
        self.preprocessing = size if isinstance(size, Preprocessing) else Preprocessing(int(size))
        self.images, self.device, self.augment = images, device, augment
        self.keep = keep or _find_place(3 * len(images) * self.size**2, device)
        self.kept: Tensor | None = None
        self.share: Share | None = None  # where several processes share every batch

    def __len__(self) -> int:
        return len(self.images)

    @property
    def size(self) -> int:
        """Height and width of every picture."""
        return self.preprocessing.size

    def decode(self) -> str:
        """Decode the pictures that are to be kept, unless they are; return where they are kept."""
        if self.kept is not None or self.keep == "nowhere":
            return self.keep
        rows = torch.arange(len(self)).split(256)
        where = self.device if self.keep == "device" else torch.device("cpu")
        shape = (len(self), 3, self.size, self.size)
        kept = torch.empty(shape, dtype=torch.uint8, device=where)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for batch in rows:
                kept[batch[0] : batch[-1] + 1] = self._decode_batch(batch, pool).to(where)
        self.kept = kept
        return self.keep

    def select_to_train(self, rows: Tensor) -> Tensor:
        """Return a batch of the pictures that are kept on the device, augmented."""
        assert self.kept is not None
        return augment_pixels(self.kept.index_select(0, rows), self.augment, self.share)

    def batches(self, rows: Sequence[Tensor], training: bool = False) -> Iterator[Tensor]:
        """Give the pixels of each batch of rows, on the device, augmented in training."""
        self.decode()
        for pixels in self._bring_batches(rows):
            yield augment_pixels(pixels, self.augment, self.share) if training else pixels

    def _bring_batches(self, rows: Sequence[Tensor]) -> Iterator[Tensor]:
        """Give the pixels of each batch, from where they are kept or decoded ahead."""
        if self.kept is not None:
            for batch in rows:
                pixels = self.kept.index_select(0, batch.to(self.kept.device))
                yield pixels.to(self.device)
            return
        with ThreadPoolExecutor(os.cpu_count()) as pool, ThreadPoolExecutor(AHEAD) as ahead:
            waiting: list[Future[Tensor]] = []
            for batch in rows:
                waiting.append(ahead.submit(self._decode_batch, batch, pool))
                if len(waiting) > AHEAD:
                    yield waiting.pop(0).result().to(self.device)
            for decoded in waiting:
                yield decoded.result().to(self.device)

    def _decode_batch(self, rows: Tensor, pool: ThreadPoolExecutor) -> Tensor:
        """Return the pixels of a batch, decoded by the threads of the pool."""
        pictures = pool.map(self._decode_picture, rows.tolist())
        return torch.from_numpy(np.stack(list(pictures))).permute(0, 3, 1, 2)

    def _decode_picture(self, row: int) -> npt.NDArray[np.uint8]:
        """Return one picture in its final size."""
        if hasattr(self.images, "read_reduced"):  # a photo of many pixels need not be decoded whole
            return self.preprocessing.apply(self.images.read_reduced(row, self.preprocessing.least))
        return self.preprocessing.apply(self.images[row])


def augment_pixels(pixels: Tensor, augment: Augmentation, share: Share | None = None) -> Tensor:
    """Return pictures mirrored and cut at random, with torch's random numbers."""
    if augment == "none":
        return pixels
    n, device = len(pixels), pixels.device
    draw: Share = share or (lambda make: make(n))
    is_mirrored = draw(lambda n: torch.rand(n, device=device)) < 0.5
    if augment == "flip":
        return torch.where(is_mirrored[:, None, None, None], pixels.flip(3), pixels)
    side = SMALLEST_CROP + (1 - SMALLEST_CROP) * draw(lambda n: torch.rand(n, device=device))
    places = draw(lambda n: torch.rand(n, 2, device=device))
    centre = (2 * places - 1) * (1 - side)[:, None]  # in [-1, 1]
    to_source = torch.zeros(n, 2, 3, device=device)  # from places in the result to the picture
    to_source[:, 0, 0] = torch.where(is_mirrored, -side, side)
    to_source[:, 1, 1] = side
    to_source[:, :, 2] = centre
    grid = F.affine_grid(to_source, list(pixels.shape), align_corners=False)
    return F.grid_sample(pixels.float(), grid, padding_mode="border", align_corners=False)


@contextmanager
def fastest_convolutions() -> Iterator[None]:
    """Let cuDNN use the fastest of its algorithms inside the block, found on the first batch."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = True
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


def _find_place(n_bytes: int, device: torch.device) -> str:
    """Return where this many bytes fit: "device", "memory" or "nowhere"."""
    n_bytes *= int(os.environ.get("LOCAL_WORLD_SIZE", "1"))  # every process keeps as many
    if device.type == "cpu":
        return "memory" if n_bytes < SHARE_OF_MEMORY * _count_free_memory() else "nowhere"
    free, _ = torch.cuda.mem_get_info(device) if device.type == "cuda" else (0, 0)
    if n_bytes < SHARE_OF_MEMORY * free:
        return "device"
    return "memory" if n_bytes < SHARE_OF_MEMORY * _count_free_memory() else "nowhere"


def _count_free_memory() -> int:
    """Return the free bytes of main memory, or 4 GiB where the system does not tell."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 2**32
