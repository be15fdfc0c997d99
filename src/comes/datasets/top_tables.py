"""The best labels of every item as files: a row per item and label, or a line of json per item."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.datasets.prediction_tables import DIGITS, JSON_LINES, check_prediction_name
from comes.datasets.tables import find_ending, write_blocks
from comes.errors import ComesError
from comes.files import replacing_file


def top_table(
    labels: npt.NDArray[np.integer],
    probabilities: npt.ArrayLike,
    label_names: npt.NDArray[np.object_],
    items: Sequence[Any],
    *,
    scores: npt.ArrayLike | None = None,
) -> pd.DataFrame:
    """Return one row per item and label, the best label of an item first.

    Parameters
    ----------
    labels : int array of shape (n_samples, k)
        Numbers of labels, from 0.
    probabilities : array of shape (n_samples, k)
    label_names : object array of shape (n_labels,)
    items : sequence of n_samples names or numbers
    scores : array of shape (n_samples, k), optional
        A column of scores to add.

    Returns
    -------
    table : DataFrame
        item, rank from 1, label, probability and, if given, score.

    Examples
    --------
    >>> names = np.array(["sea", "sky"], dtype=object)
    >>> top_table(np.array([[1, 0]]), [[0.9, 0.2]], names, ["photo 7"])
          item  rank label  probability
    0  photo 7     1   sky          0.9
    1  photo 7     2   sea          0.2
    """
    n, k = labels.shape
    columns = {
        "item": np.repeat(np.asarray(items), k),
        "rank": np.tile(np.arange(1, k + 1), n),
        "label": label_names[labels.ravel()],
        "probability": np.asarray(probabilities, dtype=np.float64).ravel().round(DIGITS),
    }
    if scores is not None:
        columns["score"] = np.asarray(scores).ravel()
    return pd.DataFrame(columns)


def write_top_tables(tables: Iterator[pd.DataFrame], path: str | Path) -> None:
    r"""Write tables of `top_table` one after the other to a file, as they come.

    In lines of json, each item is a line, its labels a list. The file is replaced if the whole of
    it could be written. Only .xlsx has to be held in memory.

    Parameters
    ----------
    tables : iterator of DataFrame
    path : path
        A table (.csv, .parquet and others), or lines of json (.jsonl).

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "top.jsonl"
    >>> names = np.array(["sea", "sky"], dtype=object)
    >>> write_top_tables(iter([top_table(np.array([[1]]), [[0.9]], names, ["photo 7"])]), path)
    >>> path.read_text()
    '{"item": "photo 7", "top": [{"label": "sky", "probability": 0.9}]}\n'
    """
    check_prediction_name(path)
    if find_ending(Path(path)) != JSON_LINES:
        write_blocks(tables, path)
        return
    with replacing_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for table in tables:
            for line in _nest_items(table):
                file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _nest_items(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Give each item with a list of its labels."""
    found: dict[str, Any] = {}
    for row in table.to_dict("records"):
        item, rank = row.pop("item"), row.pop("rank")
        if rank == 1 and found:
            yield found
        if rank == 1:
            found = {"item": item, "top": []}
        found["top"].append(row)
    yield found


def check_top(top: int, n_labels: int) -> None:
    """Raise unless so many labels can be listed.

    Examples
    --------
    >>> check_top(9, 3)
    Traceback (most recent call last):
    ...
    comes.errors.ComesError: top (--top) must be 1 to 3, the number of labels; got 9.
    """
    if not 1 <= top <= n_labels:
        raise ComesError(f"top (--top) must be 1 to {n_labels}, the number of labels; got {top}.")
