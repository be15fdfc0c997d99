"""Files that models write: predictions of all labels, the best labels of every item, features."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.answers.convert import as_indicators, to_sets
from comes.datasets.separators import NOTHING, SEPARATOR
from comes.datasets.table import TABLE_ENDINGS, check_ending, write_blocks
from comes.errors import ComesError
from comes.files import check_file_target, replacing_file

PREDICTED, PROBABILITY, SCORE = "predicted", "probability:", "score:"
DIGITS = 6  # of a probability
JSON_LINES = ".jsonl"
FEATURE_ENDINGS = (".npz", ".parquet", ".npy")
ROWS_AT_ONCE = 4096


def prediction_table(
    probabilities: npt.ArrayLike,
    predictions: npt.ArrayLike,
    label_names: Sequence[str],
    items: Sequence[str] | None = None,
    *,
    scores: npt.ArrayLike | None = None,
) -> pd.DataFrame:
    """Return one row per item: its name, the predicted labels, and the probability of each label.

    Predicted names are joined by ";", or written as json where one of them would not be read again.
    """
    values = np.asarray(probabilities, dtype=np.float64).round(DIGITS)
    sets = to_sets(as_indicators(predictions, "predictions"), label_names)
    if any(SEPARATOR in name or name != name.strip() or name[:1] in "[({" for name in label_names):
        predicted = [json.dumps(list(names), ensure_ascii=False) for names in sets]
    else:
        predicted = [SEPARATOR.join(names) or NOTHING for names in sets]
    head = {"item": range(len(values)) if items is None else list(items), PREDICTED: predicted}
    numbers = {PROBABILITY: values} | ({} if scores is None else {SCORE: np.asarray(scores)})
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
    """Return one row per item and label, (n, k) of them by number, the best of an item first."""
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


def check_prediction_name(path: str | Path) -> str:
    """Return the ending; raise unless predictions can be written to a file of that name."""
    return check_ending(path, (*TABLE_ENDINGS, JSON_LINES))


def write_prediction_table(table: pd.DataFrame | Iterable[pd.DataFrame], path: str | Path) -> None:
    """Write a `prediction_table` or `top_table`, or blocks of one; only .xlsx needs all at once.

    In lines of json, each item is a line and its labels are a list.
    """
    ending = check_prediction_name(path)
    blocks = iter([table] if isinstance(table, pd.DataFrame) else table)
    if ending != JSON_LINES:
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
        part = table.filter(regex=f"^{prefix}")
        if not part.empty:
            names = [name.removeprefix(prefix) for name in part.columns]
            numbers[prefix[:-1]] = names, part.to_numpy()
    for row, (item, cell) in enumerate(zip(table["item"].tolist(), table[PREDICTED], strict=True)):
        predicted = json.loads(cell) if cell.startswith("[") else cell.split(SEPARATOR)
        line = {"item": item, PREDICTED: [] if cell == NOTHING else predicted}
        for key, (names, values) in numbers.items():
            line[key] = dict(zip(names, values[row].tolist(), strict=True))
        yield line


def _nest_top(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Give each item of a `top_table` with a list of its labels."""
    k = int(table["rank"].max())
    records = table.drop(columns=["item", "rank"]).to_dict("records")
    for number, item in enumerate(table["item"].tolist()[::k]):
        yield {"item": item, "top": records[number * k : (number + 1) * k]}


def check_feature_target(path: str | Path) -> Path:
    """Return the path if features can be written there, else raise; call it before a long run."""
    check_ending(path, FEATURE_ENDINGS)
    return check_file_target(Path(path))


def write_features(X: npt.NDArray[np.floating], items: Sequence[str], path: str | Path) -> None:
    """Write features, which may be mapped into memory, in the form that the ending says.

    .npz holds ``X`` and ``items``, .parquet the columns ``item``, ``x0``, ``x1``, ..., .npy X.
    """
    path = check_feature_target(path)
    ending = path.suffix.lower()
    if ending == ".parquet":
        names = [f"x{j}" for j in range(X.shape[1])]
        parts = (slice(k, k + ROWS_AT_ONCE) for k in range(0, len(X), ROWS_AT_ONCE))
        write_blocks(
            (
                pd.DataFrame({"item": items[rows]}).join(pd.DataFrame(X[rows], columns=names))
                for rows in parts
            ),
            path,
        )
        return
    with replacing_file(path) as temporary, temporary.open("wb") as file:
        if ending == ".npy":
            np.save(file, X)
        else:
            np.savez(file, X=X, items=np.array(items))
