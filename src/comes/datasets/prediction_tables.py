"""Predictions as files: tables, or lines of json, that can be read again."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.answers import from_sets
from comes.answers.convert import BoolMatrix, as_indicators, to_sets
from comes.datasets.separators import NOTHING, SEPARATOR
from comes.datasets.tables import (
    TABLE_ENDINGS,
    find_ending,
    is_table_name,
    item_names,
    no_column,
    read_columns,
    read_table,
    write_table,
)
from comes.errors import ComesError
from comes.files import expanded, replacing_file

FloatArray = npt.NDArray[np.float64]

PREDICTED, PROBABILITY, SCORE = "predicted", "probability:", "score:"
DIGITS = 6  # of a probability
JSON_LINES = ".jsonl"


class Predictions(NamedTuple):
    """What a file of predictions says.

    Examples
    --------
    >>> Predictions(["a"], ["sky"], np.array([[True]]), np.array([[0.9]])).label_names
    ['sky']
    """

    items: list[str]
    label_names: list[str]
    predictions: BoolMatrix  # (n, q)
    probabilities: FloatArray  # (n, q)


def prediction_table(
    probabilities: npt.ArrayLike,
    predictions: npt.ArrayLike,
    label_names: Sequence[str],
    items: Sequence[str] | None = None,
    *,
    scores: npt.ArrayLike | None = None,
) -> pd.DataFrame:
    """Return one row per item: its name, the predicted labels, and the probability of each label.

    Parameters
    ----------
    probabilities : array of shape (n_samples, n_labels)
    predictions : bool array of shape (n_samples, n_labels)
    label_names : sequence of n_labels str
    items : sequence of n_samples str, optional
        By default the numbers of the rows, from 0.
    scores : array of shape (n_samples, n_labels), optional
        Columns of scores to add.

    Returns
    -------
    table : DataFrame
        item, predicted (names joined by ";", "(none)" for none; lists where names hold a ";"), and
        ``probability:NAME``.

    Examples
    --------
    >>> prediction_table([[0.8, 0.4]], [[1, 0]], ["apple", "plate"])
       item predicted  probability:apple  probability:plate
    0     0     apple                0.8                0.4
    """
    values = np.asarray(probabilities, dtype=np.float64).round(DIGITS)
    sets = to_sets(as_indicators(predictions, "predictions"), label_names)
    head = {
        "item": range(len(values)) if items is None else list(items),
        PREDICTED: _write_sets(sets, label_names),
    }
    numbers = {PROBABILITY: values}
    if scores is not None:
        numbers[SCORE] = np.asarray(scores)
    parts = [
        pd.DataFrame(part, columns=[prefix + name for name in label_names])
        for prefix, part in numbers.items()
    ]
    return pd.concat([pd.DataFrame(head), *parts], axis=1)


def _write_sets(sets: Sequence[Sequence[str]], label_names: Sequence[str]) -> list[str]:
    """Return the names of each row in one cell: joined, or as lists where names are not plain."""
    if any(SEPARATOR in name or name != name.strip() or name[:1] in "[({" for name in label_names):
        return [json.dumps(list(names), ensure_ascii=False) for names in sets]
    return [SEPARATOR.join(names) or NOTHING for names in sets]


def _read_set(cell: Any) -> list[str]:
    """Return the names that `_write_sets` wrote, or a list of them as it is."""
    if not isinstance(cell, str):
        return list(cell)
    if cell.startswith("["):
        return list(json.loads(cell))
    return [] if cell in ("", NOTHING) else cell.split(SEPARATOR)


def check_prediction_name(path: str | Path) -> None:
    """Raise unless predictions can be written to a file of that name.

    Examples
    --------
    >>> check_prediction_name("predictions.jsonl")
    >>> check_prediction_name("predictions.json")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    comes.errors.ComesError: predictions.json should end in .csv, ... or .jsonl; got .json.
    """
    if not is_table_name(path) and find_ending(Path(path)) != JSON_LINES:
        raise ComesError(
            f"{Path(path).name} should end in {', '.join(TABLE_ENDINGS)} or {JSON_LINES}; got "
            f"{Path(path).suffix or 'no ending'}."
        )


def write_prediction_table(table: pd.DataFrame, path: str | Path) -> None:
    r"""Write a table of predictions; in lines of json, the labels are a list.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "predictions.jsonl"
    >>> write_prediction_table(prediction_table([[0.8, 0.4]], [[1, 0]], ["sky", "sea"]), path)
    >>> path.read_text()
    '{"item": 0, "predicted": ["sky"], "probability": {"sky": 0.8, "sea": 0.4}}\n'
    """
    check_prediction_name(path)
    if find_ending(Path(path)) != JSON_LINES:
        write_table(table, path)
        return
    with replacing_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for row in table.to_dict("records"):
            file.write(json.dumps(_nest_row(row), ensure_ascii=False) + "\n")


def _nest_row(row: dict[Any, Any]) -> dict[str, Any]:
    """Return a row with the numbers of labels in objects, as json has them."""
    found: dict[str, Any] = {"item": row["item"], PREDICTED: _read_set(row[PREDICTED])}
    for column, value in row.items():
        for prefix in (PROBABILITY, SCORE):
            if column.startswith(prefix):
                found.setdefault(prefix[:-1], {})[column.removeprefix(prefix)] = value
    return found


def read_predictions(path: str | Path) -> Predictions:
    """Read a file of predictions with a probability for each label.

    Parameters
    ----------
    path : path
        What ``comes predict`` wrote, without ``--top``.

    Returns
    -------
    predictions : Predictions

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "predictions.csv"
    >>> write_prediction_table(prediction_table([[0.8, 0.4]], [[1, 0]], ["sky", "sea"]), path)
    >>> found = read_predictions(path)
    >>> found.items, found.label_names, found.predictions.tolist()
    (['0'], ['sky', 'sea'], [[True, False]])
    """
    path = expanded(path)
    check_prediction_name(path)
    if find_ending(path) == JSON_LINES:
        lines = path.read_text(encoding="utf-8").splitlines()
        table = pd.DataFrame([_flatten_row(json.loads(line)) for line in lines])
    else:
        table = read_table(path, ["item", PREDICTED])
    columns = [name for name in table.columns if name.startswith(PROBABILITY)]
    if not columns or not {"item", PREDICTED} <= set(table.columns):
        raise ComesError(
            f"{path.name} should have the columns item, {PREDICTED} and {PROBABILITY}NAME; got "
            f"{', '.join(map(str, table.columns[:5]))}. Write it with 'comes predict'."
        )
    names = [name.removeprefix(PROBABILITY) for name in columns]
    sets = [_read_set(cell) for cell in table[PREDICTED]]
    return Predictions(
        item_names(table, "item"),
        names,
        from_sets(sets, names)[0],
        table[columns].to_numpy(dtype=np.float64),
    )


def _flatten_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return a line of json as a row of a table."""
    flat = {name: value for name, value in row.items() if name in ("item", PREDICTED)}
    return flat | {PROBABILITY + name: value for name, value in row.get("probability", {}).items()}


def check_item_column(which: str | Path, item: str) -> None:
    r"""Raise if a table has no column of that name, or there is no table.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "new.csv"
    >>> _ = path.write_text("photo,red\np1,0.1\n")
    >>> check_item_column(path, "photo")
    >>> check_item_column(path, "name")
    Traceback (most recent call last):
    ...
    comes.errors.ComesError: there is no column 'name'; there are 'photo', 'red'.
    """
    path = expanded(which)
    if not path.is_file() or not is_table_name(path):
        raise ComesError(
            f"item (--item) names a column of a table, and {path.name} is none. Leave it out."
        )
    columns = read_columns(path)
    if item not in columns:
        raise no_column(item, columns)
