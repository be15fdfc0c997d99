"""The CUB-200-2011 folder: 11788 photos of birds with 312 binary attributes.

An attribute is relevant where ``is_present`` is 1, whatever the certainty.
"""

from pathlib import Path

import numpy as np

from comes.answers.convert import BoolMatrix
from comes.datasets.dataset import Dataset
from comes.datasets.joining import join_images
from comes.datasets.reading import Reading
from comes.errors import ComesError


def read_cub(folder: Path, split: str | None, reading: Reading) -> Dataset:
    """Read the images and attributes of ``CUB_200_2011``, all or the split "train" or "test"."""
    names = _read_names(folder / "images.txt")
    attributes = _read_names(_find_attribute_list(folder))
    relevant = _read_present(
        folder / "attributes" / "image_attribute_labels.txt", len(names), len(attributes)
    )
    dataset = Dataset(None, attributes, relevant=relevant, items=names)
    if split is not None:
        is_training = _read_names(folder / "train_test_split.txt")
        if len(is_training) != len(names):
            raise ComesError(
                f"train_test_split.txt has {len(is_training)} lines for {len(names)} images."
            )
        wanted = "1" if split == "train" else "0"
        dataset = dataset.take([flag == wanted for flag in is_training])
    return join_images(dataset, folder / "images", reading.skip_broken)


def _find_attribute_list(folder: Path) -> Path:
    """Return attributes.txt, which the archive holds beside the folder rather than inside."""
    places = (folder / "attributes", folder, folder.parent)
    found = [place / "attributes.txt" for place in places if (place / "attributes.txt").is_file()]
    if not found:
        raise ComesError(f"attributes.txt is neither in {folder} nor beside it; put it there.")
    return found[0]


def _read_names(path: Path) -> list[str]:
    """Return the second words of lines "1 name", numbered from 1."""
    try:
        words = [line.split(maxsplit=1) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise ComesError(f"{path} cannot be read: {error}.") from None
    for number, pair in enumerate(words, start=1):
        if len(pair) != 2 or pair[0] != str(number):
            raise ComesError(f"{path}: line {number} should be '{number} NAME'; got {pair}.")
    return [name.strip() for _, name in words]


def _read_present(path: Path, n: int, q: int) -> BoolMatrix:
    """Return where an attribute is present; some lines have more columns than the five named."""
    try:
        table = np.loadtxt(path, dtype=np.int64, usecols=(0, 1, 2), ndmin=2)
    except (OSError, ValueError) as error:
        raise ComesError(f"{path} cannot be read: {error}.") from None
    image, attribute, present = table.T
    if len(table) != n * q or not (
        np.isin(present, (0, 1)).all()
        and ((image >= 1) & (image <= n) & (attribute >= 1) & (attribute <= q)).all()
    ):
        raise ComesError(
            f"{path} should have a line 'image attribute 0|1 certainty time' for each of {n} images"
            f" and {q} attributes; it has {len(table)} lines."
        )
    relevant = np.zeros((n, q), dtype=bool)
    relevant[image - 1, attribute - 1] = present == 1
    return relevant
