"""GoEmotions: comments and the emotions that people read in them.

A line is ``text <tab> 4,27 <tab> id``: the numbers of the relevant labels, which ``labels.txt``
names, one a line.
"""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from comes.answers.convert import BoolMatrix
from comes.datasets.dataset import Dataset
from comes.errors import ComesError

TEXT = "text"  # the one column of features


def read_go_emotions(tables: Sequence[Path], names: Path) -> Dataset:
    """Read the comments of one or more tables, one after the other, with their true labels."""
    try:
        label_names = names.read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        raise ComesError(f"{names} cannot be read: {error}.") from None
    parts = [_read_lines(path) for path in tables]
    relevant = [
        _mark_labels(part["labels"], len(label_names), path)
        for part, path in zip(parts, tables, strict=True)
    ]
    table = pd.concat(parts, ignore_index=True)
    X = table[[TEXT]]
    return Dataset(X, label_names, relevant=np.concatenate(relevant), items=table["id"].tolist())


def _read_lines(path: Path) -> pd.DataFrame:
    """Return text, labels and id of every line; quotes are part of a text."""
    try:
        return pd.read_csv(
            path,
            sep="\t",
            header=None,
            names=[TEXT, "labels", "id"],
            quoting=csv.QUOTE_NONE,
            dtype=str,
            keep_default_na=False,
        )
    except (OSError, ValueError) as error:
        raise ComesError(f"{path} cannot be read: {error}.") from None


def _mark_labels(numbers: "pd.Series[str]", q: int, path: Path) -> BoolMatrix:
    """Return where a label is relevant, (n, q)."""
    relevant = np.zeros((len(numbers), q), dtype=bool)
    for row, cell in enumerate(numbers):
        try:
            found = [int(number) for number in cell.split(",")]
        except ValueError:
            found = [-1]
        if min(found) < 0 or max(found) >= q:
            raise ComesError(
                f"{path}: line {row + 1} should be a text, numbers of labels below {q} such as "
                f"'4,27', and an id, with tabs between them; got {cell!r} for the numbers."
            )
        relevant[row, found] = True
    return relevant
