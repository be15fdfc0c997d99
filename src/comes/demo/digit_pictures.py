"""Digit scenes as pictures: dark digits on tiles of light colours."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

SIDE = 16  # pixels along a scene, as it is stored
CELL = SIDE // 2  # along a digit
INK = (38, 40, 56)
TILES = (
    (255, 236, 209),
    (214, 236, 250),
    (222, 243, 219),
    (250, 222, 228),
    (238, 228, 250),
    (254, 246, 200),
)


def save_digit_pictures(
    folder: Path, names: list[str], scenes: npt.NDArray[np.floating], side: int, seed: int
) -> None:
    """Write a picture of each scene, (n, 256) in [0, 1], with so many pixels along a side."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    tiles, ink = np.array(TILES, dtype=np.float32), np.array(INK, dtype=np.float32)
    for name, scene in zip(names, scenes, strict=True):
        cells = np.asarray(scene, dtype=np.float32).reshape(2, CELL, 2, CELL).swapaxes(1, 2)
        apart = np.pad(cells, ((0, 0), (0, 0), (1, 1), (1, 1))).swapaxes(1, 2)
        grey = Image.fromarray(apart.reshape(SIDE + 4, SIDE + 4))
        shade = np.asarray(grey.resize((side, side), Image.Resampling.BICUBIC))
        # A steep step makes edges crisp that enlarging has blurred.
        shade = np.clip((shade - 0.35) / 0.25, 0, 1)[:, :, None]
        colours = tiles[rng.choice(len(tiles), 4, replace=False)].reshape(2, 2, 3)
        ground = colours.repeat(side // 2, axis=0).repeat(side // 2, axis=1)
        picture = ground * (1 - shade) + ink * shade
        Image.fromarray(np.rint(picture).astype(np.uint8)).save(folder / name, compress_level=1)
