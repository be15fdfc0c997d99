"""Scenes of handwritten digits: a multi-label data set that needs no download.

Every scene is a canvas with a few of scikit-learn's bundled 8 x 8 digits in cells of a grid; its
label set is the digits present. Training and test scenes are made of different handwritten digits.
"""

from typing import Literal

import numpy as np

from comes.datasets.dataset import Dataset
from comes.errors import ComesError

CELL = 8  # pixels along a digit
GRID = (2, 2)  # cells
N_TRAINING_DIGITS = 1200  # of 1797; the others make the test scenes


def make_scenes(split: Literal["train", "test"] = "train", n: int = 5000, seed: int = 0) -> Dataset:
    """Compose scenes of one to four digits.

    Parameters
    ----------
    split : {"train", "test"}
        Which handwritten digits to use.
    n : int
        Number of scenes.
    seed : int

    Returns
    -------
    scenes : Dataset
        X of shape (n, 256), grey values in [0, 1]; ten labels; `relevant`, and no candidates:
        `comes.generation` makes them.

    Examples
    --------
    >>> print(make_scenes("train", n=50))
    50 rows, 256 features, 10 labels, 2.20 relevant per row, 0 rows without a relevant label
    """
    if split not in ("train", "test"):
        raise ComesError(f"split must be train or test; got {split!r}.")
    from sklearn.datasets import load_digits  # takes a second to import

    images, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(images))
    pool = order[:N_TRAINING_DIGITS] if split == "train" else order[N_TRAINING_DIGITS:]
    rng = np.random.default_rng([seed, split == "test"])

    rows, columns = GRID
    n_cells = rows * columns
    n_digits = rng.integers(1, n_cells + 1, size=n)
    filled = rng.random((n, n_cells)).argsort(axis=1) < n_digits[:, None]  # (n, cells)
    chosen = rng.choice(pool, size=(n, n_cells))
    cells = np.where(filled[:, :, None], images[chosen] / 16, 0)  # (n, cells, 64)
    canvas = cells.reshape(n, rows, columns, CELL, CELL).swapaxes(2, 3)

    relevant = np.zeros((n, 10), dtype=bool)
    scene, cell = np.nonzero(filled)
    relevant[scene, digits[chosen[scene, cell]]] = True
    X = canvas.reshape(n, n_cells * CELL * CELL).astype(np.float32)
    return Dataset(X, [str(digit) for digit in range(10)], relevant=relevant)
