"""CheXpert's tables: findings in reports of chest radiographs.

A row is a picture, named in ``Path``. About each of 14 findings a report says 1 (yes), 0 (no), -1
(uncertain: maybe), or nothing (not asked). In the validation table experts answered everything:
its labels are the truth.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from comes.answers import Answers, State
from comes.datasets.dataset import Dataset
from comes.datasets.joining import join_images
from comes.datasets.reading import Reading
from comes.errors import ComesError

FINDINGS = [
    "No Finding",
    "Enlarged Cardiomediastinum",
    "Cardiomegaly",
    "Lung Opacity",
    "Lung Lesion",
    "Edema",
    "Consolidation",
    "Pneumonia",
    "Atelectasis",
    "Pneumothorax",
    "Pleural Effusion",
    "Pleural Other",
    "Fracture",
    "Support Devices",
]


def read_chexpert(path: Path, reading: Reading) -> Dataset:
    """Read train.csv or valid.csv, and the pictures, where their folder lies beside it."""
    try:
        table = pd.read_csv(path, dtype={"Path": str})
    except (OSError, ValueError) as error:
        raise ComesError(f"{path} cannot be read as csv: {error}.") from None
    missing = [name for name in ("Path", *FINDINGS) if name not in table.columns]
    if missing:
        raise ComesError(f"{path} has no column {missing[0]!r}; it should be a table of CheXpert.")
    said = table[FINDINGS].apply(pd.to_numeric, errors="coerce").to_numpy(dtype=float)
    wrong = ~np.isin(said, (-1, 0, 1)) & table[FINDINGS].notna().to_numpy()
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ComesError(
            f"{path}: {FINDINGS[column]!r} should be 1, 0, -1 (uncertain) or empty; got "
            f"{table[FINDINGS].iat[row, column]!s} at row {row}."
        )
    # The folder of the release comes first, "CheXpert-v1.0-small/train/...", and is often renamed.
    items = [name.partition("/")[2] or name for name in table["Path"]]
    if np.isin(said, (0, 1)).all():
        dataset = Dataset(None, FINDINGS, relevant=said == 1, items=items)
    else:
        dataset = Dataset(None, FINDINGS, answers=_as_answers(said), items=items)
    has_pictures = (path.parent / items[0].partition("/")[0]).is_dir()
    if has_pictures and not reading.has_labels_alone:
        return join_images(dataset, path.parent, reading.skip_broken)
    return dataset


def _as_answers(said: np.ndarray) -> Answers:
    """Return what reports say, (n_pictures, 14)."""
    states = {1: State.YES, 0: State.NO, -1: State.MAYBE}
    codes = np.full(said.shape, State.NOT_ASKED, dtype=np.int8)
    for number, state in states.items():
        codes[said == number] = state
    return Answers.from_codes(codes, label_names=FINDINGS)
