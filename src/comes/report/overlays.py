"""Maps of evidence as pictures to lay over others: the stronger, the brighter and less transparent.

The colours are those of viridis, whose brightness rises evenly, so that people who see few colours
read the same order.
"""

import numpy as np
import numpy.typing as npt
from PIL import Image

from comes.report.cards import Picture, as_picture

N_LEVELS = 16
LONGEST_SIDE = 96  # of a map, in pixels; the browser smoothes it
MOST_OPAQUE = 0.8


def draw_overlay(evidence: npt.NDArray[np.floating], size: tuple[int, int]) -> Picture | None:
    """Return evidence above 0, (height, width), in the proportions of a picture of this size.

    None where there is none.
    """
    positive = np.maximum(np.nan_to_num(np.asarray(evidence, dtype=np.float64)), 0)
    if not positive.size or positive.max() <= 0:
        return None
    share = Image.fromarray((positive / positive.max()).astype(np.float32))
    factor = min(1, LONGEST_SIDE / max(size))
    small = max(1, round(factor * size[0])), max(1, round(factor * size[1]))
    smooth = np.asarray(share.resize(small, Image.Resampling.BICUBIC))
    level = np.clip(np.rint(smooth * (N_LEVELS - 1)), 0, N_LEVELS - 1).astype(np.uint8)
    image = Image.fromarray(level, mode="P")
    colours, opacity = _make_palette()
    image.putpalette(colours)
    return as_picture(image, "PNG", transparency=opacity, optimize=True)


def _make_palette() -> tuple[list[int], bytes]:
    """Return the colours of all levels, one after another, and how opaque each is."""
    from matplotlib import colormaps

    strength = np.linspace(0, 1, N_LEVELS)
    colours = np.rint(255 * colormaps["viridis"](strength)[:, :3]).astype(int)
    return colours.ravel().tolist(), bytes(
        np.rint(255 * MOST_OPAQUE * strength).astype(int).tolist()
    )
