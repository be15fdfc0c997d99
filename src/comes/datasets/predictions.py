"""Files that models write: predictions of all labels, the best labels of every item, features."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.answers import from_sets
from comes.answers.convert import BoolMatrix, as_indicators, to_sets
from comes.datasets.separators import NOTHING, SEPARATOR
from comes.datasets.table import (
    TABLE_ENDINGS,
    Table,
    as_texts,
    explain_errors,
    find_ending,
    is_table_name,
    no_column,
    read_table,
    write_blocks,
)
from comes.errors import ComesError
from comes.files import check_file_target, expanded, replacing_file

PREDICTED, PROBABILITY, SCORE = "predicted", "probability:", "score:"
DIGITS = 6  # of a probability
JSON_LINES = ".jsonl"
FEATURE_ENDINGS = (".npz", ".parquet", ".npy")
ROWS_AT_ONCE = 4096


class Predictions(NamedTuple):
    """What a file of predictions holds.

    Examples
    --------
    >>> Predictions(["a"], ["sky"], np.array([[True]]), np.array([[0.9]])).label_names
    ['sky']
    """

    items: list[str]
    label_names: list[str]
    predictions: BoolMatrix  # (n, q)
    probabilities: npt.NDArray[np.float64]  # (n, q)


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
    if any(SEPARATOR in name or name != name.strip() or name[:1] in "[({" for name in label_names):
        predicted = [json.dumps(list(names), ensure_ascii=False) for names in sets]
    else:
        predicted = [SEPARATOR.join(names) or NOTHING for names in sets]
    head = {"item": range(len(values)) if items is None else list(items), PREDICTED: predicted}
    numbers = {PROBABILITY: values}
    if scores is not None:
        numbers[SCORE] = np.asarray(scores)
    parts = [
        pd.DataFrame(part, columns=[prefix + name for name in label_names])
        for prefix, part in numbers.items()
    ]
    return pd.concat([pd.DataFrame(head), *parts], axis=1)


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


def check_top(top: int, n_labels: int) -> None:
    """Raise unless so many labels can be listed."""
    if not 1 <= top <= n_labels:
        raise ComesError(f"top (--top) must be 1 to {n_labels}, the number of labels; got {top}.")


def check_prediction_name(path: str | Path) -> None:
    """Raise unless predictions can be written to a file of that name."""
    if not is_table_name(path) and find_ending(Path(path)) != JSON_LINES:
        raise ComesError(
            f"{Path(path).name} should end in {', '.join(TABLE_ENDINGS)} or {JSON_LINES}; got "
            f"{Path(path).suffix or 'no ending'}."
        )


def write_prediction_table(table: pd.DataFrame | Iterable[pd.DataFrame], path: str | Path) -> None:
    r"""Write a table of `prediction_table` or `top_table`, or several of them as they come.

    In lines of json, each item is a line and its labels are a list. The file is replaced if the
    whole of it could be written. Only .xlsx has to be held in memory.

    Parameters
    ----------
    table : DataFrame, or iterable of DataFrame
    path : path
        A table (.csv, .parquet and others), or lines of json (.jsonl).

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "predictions.jsonl"
    >>> write_prediction_table(prediction_table([[0.8, 0.4]], [[1, 0]], ["sky", "sea"]), path)
    >>> path.read_text()
    '{"item": 0, "predicted": ["sky"], "probability": {"sky": 0.8, "sea": 0.4}}\n'
    >>> names = np.array(["sea", "sky"], dtype=object)
    >>> write_prediction_table([top_table(np.array([[1]]), [[0.9]], names, ["photo 7"])], path)
    >>> path.read_text()
    '{"item": "photo 7", "top": [{"label": "sky", "probability": 0.9}]}\n'
    """
    check_prediction_name(path)
    blocks = iter([table] if isinstance(table, pd.DataFrame) else table)
    if find_ending(Path(path)) != JSON_LINES:
        write_blocks(blocks, path)
        return
    with replacing_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for block in blocks:
            for line in _nest_top(block) if "rank" in block.columns else _nest_labels(block):
                file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _nest_labels(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Give each row of a `prediction_table` with the numbers of its labels in objects."""
    numbers = {}
    for prefix in (PROBABILITY, SCORE):
        columns = [name for name in table.columns if name.startswith(prefix)]
        if columns:
            names = [name.removeprefix(prefix) for name in columns]
            numbers[prefix[:-1]] = names, table[columns].to_numpy()
    for row, (item, cell) in enumerate(zip(table["item"].tolist(), table[PREDICTED], strict=True)):
        line = {"item": item, PREDICTED: _read_set(cell)}
        for key, (names, values) in numbers.items():
            line[key] = dict(zip(names, values[row].tolist(), strict=True))
        yield line


def _nest_top(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Give each item of a `top_table` with a list of its labels."""
    k = int(table["rank"].max())
    records = table.drop(columns=["item", "rank"]).to_dict("records")
    for number, item in enumerate(table["item"].tolist()[::k]):
        yield {"item": item, "top": records[number * k : (number + 1) * k]}


def _read_set(cell: Any) -> list[str]:
    """Return the predicted labels of a cell that `prediction_table` made, or of a json list."""
    if not isinstance(cell, str):
        return list(cell)
    if cell.startswith("["):
        return list(json.loads(cell))
    return [] if cell in ("", NOTHING) else cell.split(SEPARATOR)


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
        table = _read_json_lines(path)
    else:
        table = read_table(path, ["item", PREDICTED])
    columns = [name for name in table.columns if name.startswith(PROBABILITY)]
    if not columns or not {"item", PREDICTED} <= set(table.columns):
        raise ComesError(
            f"{path.name} should have the columns item, {PREDICTED} and {PROBABILITY}NAME; got "
            f"{', '.join(table.columns[:5]) or 'none'}. Write it with 'comes predict'."
        )
    items = [str(name) for name in as_texts(table["item"])]
    if "" in items:
        row = table.index[items.index("")]
        raise ComesError(f"column 'item' is empty at row {row}; expected the name of an item.")
    names = [name.removeprefix(PROBABILITY) for name in columns]
    predictions, _ = from_sets([_read_set(cell) for cell in table[PREDICTED]], names)
    return Predictions(items, names, predictions, table[columns].to_numpy(dtype=np.float64))


def _read_json_lines(path: Path) -> pd.DataFrame:
    """Return lines that `_nest_labels` made as a table."""
    rows = []
    with explain_errors(path), path.open(encoding="utf-8") as file:
        for number, text in enumerate(filter(str.strip, file), start=1):
            line = json.loads(text)
            if not isinstance(line, dict):
                raise ValueError(f"line {number} is not an object")
            row = {name: line[name] for name in ("item", PREDICTED) if name in line}
            chances = line.get(PROBABILITY[:-1], {})
            rows.append(row | {PROBABILITY + name: value for name, value in chances.items()})
    return pd.DataFrame(rows, index=range(1, len(rows) + 1))


def check_item_column(path: str | Path, item: str) -> None:
    """Raise if a table has no column of that name, or there is no table."""
    path = expanded(path)
    if not path.is_file() or not is_table_name(path):
        raise ComesError(
            f"item (--item) names a column of a table, and {path.name} is none. Leave it out."
        )
    with Table(path) as table:
        if item not in table.columns:
            raise no_column(item, table.columns)


def check_feature_target(path: str | Path) -> Path:
    """Return the path if features can be written there, else raise; call it before a long run."""
    path = Path(path)
    if path.suffix.lower() not in FEATURE_ENDINGS:
        got = path.suffix or "no ending"
        raise ComesError(f"{path.name} should end in .npz, .parquet or .npy; got {got}.")
    return check_file_target(path)


def write_features(X: npt.NDArray[np.floating], items: Sequence[str], path: str | Path) -> None:
    """Write features in the form that the ending of the name says.

    Parameters
    ----------
    X : float array of shape (n, d)
        May be mapped into memory.
    items : sequence of n str
    path : str or Path
        .npz holds arrays ``X`` and ``items``, .parquet a column ``item`` and columns ``x0``,
        ``x1``, ...; both are read as features of a file of labels. .npy holds X alone.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "features.npz"
    >>> write_features(np.eye(2), ["a.jpg", "b.jpg"], path)
    >>> np.load(path)["items"].tolist()
    ['a.jpg', 'b.jpg']
    """
    path = check_feature_target(path)
    ending = path.suffix.lower()
    if ending == ".parquet":
        write_blocks(_feature_blocks(X, items), path)
        return
    with replacing_file(path) as temporary, temporary.open("wb") as file:
        if ending == ".npy":
            np.save(file, X)
        else:
            np.savez(file, X=X, items=np.array(items))


def _feature_blocks(X: npt.NDArray[np.floating], items: Sequence[str]) -> Iterator[pd.DataFrame]:
    names = [f"x{j}" for j in range(X.shape[1])]
    for start in range(0, len(X), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        block = pd.DataFrame(np.asarray(X[rows]), columns=names)
        block.insert(0, "item", list(items[rows]))
        yield block
