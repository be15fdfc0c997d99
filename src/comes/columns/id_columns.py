"""Columns that name rows, as ids do: a model can only learn them by heart."""

import re
from typing import Any

import numpy as np

from comes.columns.raw_cells import Cells, is_of_objects, is_stored_as_numbers

# Below this many rows, numbers that count upwards or words that differ may well be chance.
FEW_ROWS = 20
MOST_DIFFERENT = 0.95  # share of different words, beyond which they are names
IDS = r"ids?|uuid|guid|index|idx|pk|row(num|number)?|rowid|nr"
NAMES = r"name|username|login|e?mail|phone|url|uri|link|file|filename|path|image|hash|doi|isbn"
NAMED_ID = re.compile(rf"(?:^|[^a-z])({IDS})$")
NAMED_NAME = re.compile(rf"(?:^|[^a-z])({IDS}|{NAMES})$")
NAMELESS = re.compile(r"unnamed: \d+|")


def find_id_numbers(name: str, cells: Cells) -> str | None:
    """Return why a column of numbers is an id, or None: all differ, and it says so or counts."""
    if not is_stored_as_numbers(cells) or is_of_objects(cells):
        return None
    kind = getattr(cells.dtype, "kind", "O")
    if kind not in "iuf" or len(cells) < 2:
        return None
    named = is_named(name, NAMED_ID) or NAMELESS.fullmatch(name.casefold()) is not None
    if not named and (len(cells) < FEW_ROWS or not _counts(cells.iloc[:3])):
        return None
    if cells.isna().any() or (kind == "f" and not _are_whole(cells)):
        return None
    if _counts(cells):
        return "it counts the rows"
    return "its name says so and all values differ" if named and cells.is_unique else None


def _counts(cells: Cells) -> bool:
    """Return whether every number is one more than that before it."""
    values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
    return bool((np.diff(values) == 1).all())


def _are_whole(cells: Cells) -> bool:
    values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
    return bool((values == np.floor(values)).all())


def find_id_words(name: str, words: Any, mean_words: float) -> str | None:
    """Return why a column of words is an id, or None: they differ, and are no texts."""
    n, n_different = len(words), words.nunique()
    if is_named(name, NAMED_NAME) and n_different == n >= 2 and mean_words < 4:
        return "its name says so and all values differ"
    if n >= FEW_ROWS and n_different >= MOST_DIFFERENT * n and mean_words < 1.5:
        return f"{n_different} different values in {n} rows, of one word each"
    return None


def is_named(name: str, pattern: re.Pattern[str]) -> bool:
    """Return whether a name ends in one of the words of a pattern, in any usual spelling."""
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)  # customerId
    return pattern.search(parts.casefold().strip()) is not None
