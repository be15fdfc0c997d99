"""The cells of a column as numbers, dates, words and texts, whatever they are stored as."""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.errors import ComesError

Cells = Any  # a Series
FloatArray = npt.NDArray[np.float64]

MISSING_WORDS = ("", "na", "n/a", "nan", "null", "none", "<na>", "nat", "?", "-", "--")
TRUE_WORDS = ("true", "yes", "t", "y", "on", "1", "1.0")
FALSE_WORDS = ("false", "no", "f", "n", "off", "0", "0.0")
SIGNS = r"[\s\u00a0\u202f%$€£]"  # beside a number
THOUSANDS = {".": r"^[-+]?\d{1,3}(,\d{3})+(\.\d+)?$", ",": r"^[-+]?\d{1,3}(\.\d{3})+(,\d+)?$"}


def is_stored_as_numbers(cells: Cells) -> bool:
    """Return whether a column holds numbers or bools, and nothing has to be parsed."""
    dtype = cells.dtype
    if pd.api.types.is_complex_dtype(dtype):
        return False
    if pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_timedelta64_dtype(dtype):
        return True
    kinds = ("integer", "floating", "mixed-integer-float", "decimal", "boolean")
    return is_of_objects(cells) and pd.api.types.infer_dtype(cells, skipna=True) in kinds


def is_of_objects(cells: Cells) -> bool:
    """Return whether the cells are Python objects of any kind."""
    return pd.api.types.is_object_dtype(cells.dtype)


def is_stored_as_dates(cells: Cells) -> bool:
    """Return whether a column holds dates or times, and nothing has to be parsed."""
    dtype = cells.dtype
    if pd.api.types.is_datetime64_any_dtype(dtype) or isinstance(dtype, pd.PeriodDtype):
        return True
    kinds = ("date", "datetime")
    return is_of_objects(cells) and pd.api.types.infer_dtype(cells, skipna=True) in kinds


def is_stored_as_words(cells: Cells) -> bool:
    """Return whether every cell is a text, a number or another single value that has a text."""
    if not is_of_objects(cells):
        return not pd.api.types.is_complex_dtype(cells.dtype)
    nested = (list, tuple, dict, set, frozenset, np.ndarray, bytes, complex)
    return not any(issubclass(kind, nested) for kind in {type(cell) for cell in cells})


def read_words(cells: Cells) -> Cells:
    """Return the cells as texts without outer blanks; None where there is none.

    A number that is whole has the same text whether it is stored as an integer or not.
    """
    if is_of_objects(cells):
        return _write_words(cells)
    places, different = pd.factorize(cells)  # few words may fill many rows
    words = np.array([*_write_words(pd.Series(different)), None], dtype=object)
    return pd.Series(words[places], index=cells.index, name=cells.name, dtype=object)


def _write_words(cells: Cells) -> Cells:
    """Return the texts of cells, one by one."""
    if is_stored_as_numbers(cells) and not pd.api.types.is_bool_dtype(cells.dtype):
        cells = cells.astype(object).map(_write_number, na_action="ignore")
    known = cells.notna()
    words = [str(cell).strip() if here else None for cell, here in zip(cells, known, strict=True)]
    words = [None if word is None or word.casefold() in MISSING_WORDS else word for word in words]
    return pd.Series(words, index=cells.index, name=cells.name, dtype=object)


def _write_number(number: Any) -> str:
    """Return the shortest text of a number."""
    try:
        value = float(number)
    except (TypeError, ValueError, OverflowError):
        return str(number)
    is_whole = value.is_integer() and abs(value) < 2**53
    return str(int(value)) if is_whole else str(number)


def read_texts(cells: Cells) -> list[str]:
    """Return the cells as texts, empty where there is none."""
    words = cells.astype(object).map(str, na_action="ignore")
    return [word if isinstance(word, str) else "" for word in words]


def read_numbers(cells: Cells, decimal: str = ".", name: str | None = None) -> FloatArray:
    """Return the cells as numbers; NaN where there is none, or where a cell is none.

    ``decimal`` is the sign before the decimals in texts. Texts may have separators of thousands, a
    percent sign or that of a currency. Infinite numbers are an error.
    """
    if pd.api.types.is_timedelta64_dtype(cells.dtype):
        values = (cells / pd.Timedelta(days=1)).to_numpy(dtype=np.float64)
    elif is_stored_as_numbers(cells) and not is_of_objects(cells):
        values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
    elif is_stored_as_numbers(cells):
        values = np.array([_as_float(cell) for cell in cells], dtype=np.float64)
    else:
        values = _parse_numbers(read_words(cells), decimal)
    infinite = np.isinf(values)
    if infinite.any():
        raise ComesError(
            f"column {str(cells.name if name is None else name)!r} must hold finite numbers; got "
            f"{values[infinite][0]} at row {int(infinite.argmax())}. Correct that cell, or leave "
            "it empty: it is then a missing value."
        )
    return np.asarray(values)


def _as_float(cell: Any) -> float:
    """Return a Python number as a float, NaN if it is missing; too large ones are infinite."""
    if pd.isna(cell):
        return np.nan
    try:
        return float(cell)
    except OverflowError:
        return np.inf


def _parse_numbers(words: Cells, decimal: str) -> FloatArray:
    """Return the numbers that texts show, NaN where they show none."""
    words = words.astype("str").str.replace(SIGNS, "", regex=True)
    grouped = words.str.match(THOUSANDS[decimal]).fillna(False).astype(bool)
    other = "," if decimal == "." else "."
    words = words.where(~grouped, words.str.replace(other, "", regex=False))
    if decimal == ",":
        words = words.str.replace(",", ".", regex=False)
    numbers: Any = pd.to_numeric(words, errors="coerce")
    return np.asarray(numbers.to_numpy(dtype=np.float64, na_value=np.nan))


def read_flags(cells: Cells) -> FloatArray:
    """Return 1 for true, yes, on and 1, 0 for their opposites, NaN for anything else."""
    if pd.api.types.is_bool_dtype(cells.dtype):
        return np.asarray(cells.to_numpy(dtype=np.float64, na_value=np.nan))
    words = read_words(cells).map(lambda word: str(word).casefold())
    return np.where(words.isin(TRUE_WORDS), 1.0, np.where(words.isin(FALSE_WORDS), 0.0, np.nan))


def read_dates(cells: Cells, form: str | None) -> Cells:
    """Return the cells as moments in UTC without a time zone; NaT where there is none.

    ``form`` is that of texts, such as ``%Y-%m-%d``; None for dates.
    """
    if isinstance(cells.dtype, pd.PeriodDtype):
        cells = cells.dt.to_timestamp()
    moments: Any
    if is_stored_as_dates(cells) or form is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # texts of several forms
            moments = pd.to_datetime(cells, errors="coerce", utc=True)
    else:
        words = read_words(cells).astype("str")
        moments = pd.to_datetime(words, format=form, errors="coerce", utc=True)
    return moments.dt.tz_localize(None).dt.as_unit("us")  # nanoseconds end in 2262
