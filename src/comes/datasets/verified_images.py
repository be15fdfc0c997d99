"""Open Images' tables of image-level labels that people verified.

A row is an answer: ``ImageID,Source,LabelName,Confidence``, 1 where the class is there (yes), 0
where it is not (no). Classes without a row were not asked about. A second table names the classes.
Where two sources differ about a pair, it is maybe.
"""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.answers import Answers, State
from comes.datasets.dataset import Dataset
from comes.datasets.joining import join_images
from comes.datasets.reading import Reading
from comes.errors import ComesError

COLUMNS = ("ImageID", "Source", "LabelName", "Confidence")


def read_open_images(path: Path, classes: Path, reading: Reading) -> Dataset:
    """Read the verified labels of a split, and its pictures, where their folder lies beside them.

    The folder has the name of the split, the first word of the table's name.
    """
    names = _read_classes(classes)
    try:
        table = pd.read_csv(path, dtype={"ImageID": str, "LabelName": str})
    except (OSError, ValueError) as error:
        raise ComesError(f"{path} cannot be read as csv: {error}.") from None
    missing = [name for name in COLUMNS if name not in table.columns]
    if missing:
        raise ComesError(
            f"{path} should have the columns {', '.join(COLUMNS)}; {missing[0]} is missing."
        )
    confidence = table["Confidence"].to_numpy()
    if not np.isin(confidence, (0, 1)).all():
        first = int((~np.isin(confidence, (0, 1))).argmax())
        raise ComesError(
            f"{path}: Confidence should be 1 or 0, as people verified it; got "
            f"{confidence[first]} at row {first}. Take the table of human labels."
        )
    label = pd.Index(names.index).get_indexer(table["LabelName"])
    if (label < 0).any():
        unknown = table["LabelName"].iloc[int((label < 0).argmax())]
        raise ComesError(f"{path} has the class {unknown!r}, which {classes.name} does not name.")
    row, found = pd.factorize(table["ImageID"])
    codes = _combine(row, label, confidence == 1, (len(found), len(names)))
    answers = Answers.from_codes(codes, label_names=names.tolist())
    dataset = Dataset(None, names.tolist(), answers=answers, items=[f"{key}.jpg" for key in found])
    folder = path.parent / path.name.partition("-")[0]
    if folder.is_dir() and not reading.has_labels_alone:
        return join_images(dataset, folder, reading.skip_broken)
    return dataset


def _combine(
    row: npt.NDArray[np.intp],
    label: npt.NDArray[np.intp],
    is_yes: npt.NDArray[np.bool_],
    shape: tuple[int, int],
) -> npt.NDArray[np.int8]:
    """Return the state of every pair; no and yes together are maybe, bit for bit."""
    codes = np.zeros(shape, dtype=np.int8)
    for state, own in ((State.NO, ~is_yes), (State.YES, is_yes)):
        codes[row[own], label[own]] |= np.int8(state)
    return codes


def _read_classes(path: Path) -> "pd.Series[str]":
    """Return the names of the classes by their key, ``/m/...``; the table may have a header."""
    try:
        table = pd.read_csv(path, header=None, names=["key", "name"], dtype=str)
    except (OSError, ValueError) as error:
        raise ComesError(f"{path} cannot be read as csv: {error}.") from None
    table = table[table["key"].str.startswith("/", na=False)]
    if table.empty or table["key"].duplicated().any() or table["name"].isna().any():
        raise ComesError(f"{path}: expected lines such as '/m/011k07,Tortoise', each class once.")
    repeated = table["name"].duplicated(keep=False)
    names = table["name"].where(~repeated, table["name"] + " (" + table["key"] + ")")
    return pd.Series(names.to_numpy(), index=table["key"].to_numpy())
