"""How a network wants its pictures: their size, how they are resized, mean and spread of pixels."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of pixels in [0, 1]
USUAL_CROP = 0.875  # of the shorter side, where a network does not say
INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos")  # names that Pillow knows
Interpolation = Literal["nearest", "bilinear", "bicubic", "lanczos"]


@dataclass(frozen=True)
class Preprocessing:
    """What happens to a picture before a network sees it.

    The whole picture is stretched to a square, or its centre is cut out. Networks of one object per
    picture were trained on centres; where labels are about everything in the picture, a centre
    loses the objects at the edge.

    Parameters
    ----------
    size : int
        Height and width that the network sees.
    interpolation : {"nearest", "bilinear", "bicubic", "lanczos"}
    short_side : int, optional
        Resize the shorter side to this length, keeping proportions, and cut out the square in the
        centre. None stretches the whole picture.
    mean, std : three floats
        Of the pixels, in [0, 1], that the network was trained on.

    Examples
    --------
    >>> wide = np.zeros((10, 40, 3), np.uint8)
    >>> wide[:, :10] = 255
    >>> Preprocessing(4, "nearest").apply(wide)[0, :, 0].tolist()
    [255, 0, 0, 0]
    >>> Preprocessing(4, "nearest", short_side=4).apply(wide)[0, :, 0].tolist()
    [0, 0, 0, 0]
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

    def cropped(self, centre_crop: bool) -> "Preprocessing":
        """Return the same with the centre cut out, or with the whole picture stretched."""
        short = self.short_side or round(self.size / USUAL_CROP)
        return replace(self, short_side=short if centre_crop else None)

    def apply(self, picture: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Return a picture, uint8 of shape (height, width, 3), as (size, size, 3)."""
        from PIL import Image

        height, width = picture.shape[:2]
        if self.short_side is None and height == width == self.size:
            return picture
        how = Image.Resampling[self.interpolation.upper()]
        square, box = (self.size, self.size), self.find_box(height, width)
        return np.asarray(Image.fromarray(picture).resize(square, how, box))

    def find_box(self, height: int, width: int) -> tuple[float, float, float, float]:
        """Return what is shown of a picture: left, top, right and bottom."""
        if self.short_side is None:
            return 0, 0, width, height
        starts, ends = [], []
        for side in (width, height):
            resized = int(self.short_side * side / min(width, height))
            start = round((resized - self.size) / 2) * side / resized
            starts.append(max(start, 0))
            ends.append(min(start + self.size * side / resized, side))
        return starts[0], starts[1], ends[0], ends[1]


def stored_preprocessing(stored: dict[str, Any]) -> Preprocessing:
    """Return what `dataclasses.asdict` wrote into json.

    Examples
    --------
    >>> stored_preprocessing({"size": 32, "mean": [0.5, 0.5, 0.5]}).mean
    (0.5, 0.5, 0.5)
    """
    tuples: Any = {name: tuple(stored[name]) for name in ("mean", "std") if name in stored}
    return Preprocessing(**(stored | tuples))
