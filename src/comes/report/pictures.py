"""Pictures as a page holds them: small copies, and maps of evidence to lay over them."""

import base64
import io
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from PIL import Image

from comes.errors import ComesError

LONGEST_SIDE = 320  # of a picture, in pixels
LONGEST_SIDE_OF_MAP = 96  # the browser smoothes it
N_LEVELS = 16  # of evidence
MOST_OPAQUE = 0.8


class NamedImages(Protocol):
    """What `comes.datasets.Images` is: pictures that are opened one at a time, with names."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the files."""

    def __getitem__(self, row: int, /) -> npt.NDArray[np.uint8]: ...


class Picture(NamedTuple):
    """A small image as text, and its size."""

    uri: str
    width: int
    height: int


def shrink_image(images: NamedImages, row: int) -> Picture | None:
    """Return a small copy of an image, or None if it cannot be read."""
    try:
        pixels = images[row]
    except ComesError:
        return None
    if not pixels.size:
        return None
    image = Image.fromarray(pixels)
    image.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    return _as_picture(image, "JPEG", quality=80)


def draw_overlay(evidence: npt.NDArray[np.floating], size: tuple[int, int]) -> Picture | None:
    """Return evidence above 0, (height, width), in the proportions of a picture of this size.

    None where there is none.
    """
    from matplotlib import colormaps

    positive = np.maximum(np.nan_to_num(np.asarray(evidence, dtype=np.float64)), 0)
    if not positive.size or positive.max() <= 0:
        return None
    share = Image.fromarray((positive / positive.max()).astype(np.float32))
    factor = min(1, LONGEST_SIDE_OF_MAP / max(size))
    small = max(1, round(factor * size[0])), max(1, round(factor * size[1]))
    smooth = np.asarray(share.resize(small, Image.Resampling.BICUBIC))
    level = np.clip(np.rint(smooth * (N_LEVELS - 1)), 0, N_LEVELS - 1).astype(np.uint8)
    strength = np.linspace(0, 1, N_LEVELS)
    colours = np.rint(255 * colormaps["viridis"](strength)[:, :3]).astype(int)
    opacity = bytes(np.rint(255 * MOST_OPAQUE * strength).astype(int).tolist())
    image = Image.fromarray(level, mode="P")
    image.putpalette(colours.ravel().tolist())
    return _as_picture(image, "PNG", transparency=opacity, optimize=True)


def _as_picture(image: Image.Image, form: str, **options: Any) -> Picture:
    file = io.BytesIO()
    image.save(file, form, **options)
    uri = f"data:image/{form.lower()};base64,{base64.b64encode(file.getvalue()).decode()}"
    return Picture(uri, *image.size)
