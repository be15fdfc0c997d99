"""PASCAL VOC folders: ``ImageSets/Main/<class>_<split>.txt`` and ``JPEGImages/``.

A line says whether an image shows the class: 1 yes, -1 no, 0 only in a form that is difficult to
see. By default a difficult object counts as irrelevant, as in most work on multi-label VOC;
``difficult="relevant"`` counts it as there.
"""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.answers.convert import BoolMatrix
from comes.datasets.dataset import Dataset
from comes.datasets.joining import join_images
from comes.datasets.reading import Reading
from comes.errors import ComesError

CLASSES = [
    "aeroplane",
    "bicycle",
    "bird",
    "boat",
    "bottle",
    "bus",
    "car",
    "cat",
    "chair",
    "cow",
    "diningtable",
    "dog",
    "horse",
    "motorbike",
    "person",
    "pottedplant",
    "sheep",
    "sofa",
    "train",
    "tvmonitor",
]


def read_voc(folder: Path, split: str, reading: Reading) -> Dataset:
    """Read the images and true labels of one split of a VOC folder.

    Parameters
    ----------
    folder : Path
        The folder of the year, such as ``VOCdevkit/VOC2007``.
    split : str
        "train", "val", "trainval" or, for 2007, "test".
    reading : Reading
        ``difficult`` and ``skip_broken`` apply to VOC.
    """
    lists = [folder / "ImageSets" / "Main" / f"{name}_{split}.txt" for name in CLASSES]
    flags = pd.concat([_read_flags(path) for path in lists], axis=1)
    if flags.isna().to_numpy().any():
        path = lists[int(flags.isna().any().to_numpy().argmax())]
        raise ComesError(f"{path.name} does not list the same images as the other classes.")
    files = [f"{name}.jpg" for name in flags.index]
    dataset = Dataset(
        None, CLASSES, relevant=_find_relevant(flags.to_numpy(), reading), items=files
    )
    return join_images(dataset, folder / "JPEGImages", reading.skip_broken)


def read_voc_archive(labels: Path, archive: Path, split: str, reading: Reading) -> Dataset:
    """Read a copy of VOC that is a zip of images and one table of the flags."""
    try:
        table = pd.read_csv(labels)
    except (OSError, ValueError) as error:
        raise ComesError(f"{labels} cannot be read: {error}.") from None
    missing = [name for name in ("image", "split", *CLASSES) if name not in table.columns]
    if missing:
        raise ComesError(f"{labels} has no column {missing[0]!r}; it should be VOC's flags.")
    table = table[table["split"] == split]
    if not table[CLASSES].isin((-1, 0, 1)).to_numpy().all():
        raise ComesError(f"the flags in {labels} should be 1, 0 and -1, and some are not.")
    relevant = _find_relevant(table[CLASSES].to_numpy(), reading)
    dataset = Dataset(None, CLASSES, relevant=relevant, items=table["image"].tolist())
    return join_images(dataset, archive, reading.skip_broken)


def _find_relevant(flags: npt.NDArray[Any], reading: Reading) -> BoolMatrix:
    """Return where a class is there; 0 marks an object that is difficult to see."""
    return np.asarray(flags >= 0 if reading.difficult == "relevant" else flags == 1)


def _read_flags(path: Path) -> "pd.Series[Any]":
    """Return the flag of every image in a list, by its name."""
    try:
        table = pd.read_csv(path, sep=r"\s+", header=None, names=["image", "flag"], dtype=str)
        flags = table.set_index("image")["flag"].astype(int)
    except (OSError, ValueError) as error:
        raise ComesError(f"{path} cannot be read: {error}.") from None
    wrong = ~flags.isin((-1, 0, 1))
    if wrong.any() or flags.index.has_duplicates or flags.empty:
        where = f" at line {int(wrong.to_numpy().argmax()) + 1}" if wrong.any() else ""
        raise ComesError(f"{path}: expected lines such as '000005 -1', each image once{where}.")
    return flags
