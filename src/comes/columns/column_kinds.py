"""What every column of a table is taken for, and why."""

import difflib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
import pandas as pd

from comes.columns.id_columns import (
    NAMED_ID,
    find_id_numbers,
    find_id_words,
    is_named,
)
from comes.columns.parsed_words import N_LOOKED_AT, find_dates, find_decimal, find_numbers
from comes.columns.raw_cells import (
    FALSE_WORDS,
    TRUE_WORDS,
    Cells,
    is_of_objects,
    is_stored_as_dates,
    is_stored_as_numbers,
    is_stored_as_words,
    read_numbers,
    read_words,
)
from comes.errors import ComesError, listed

Kind = Literal[
    "number", "category", "boolean", "date", "text", "id", "constant", "empty", "ignored"
]
GIVEN_KINDS = ("number", "category", "boolean", "date", "text", "ignored")
LEFT_OUT = ("id", "constant", "empty", "ignored")

FEW_VALUES = 40  # words with no more different values are categories
MEAN_REPEATS = 5  # words that occur this often on average are categories, too


@dataclass(frozen=True)
class Column:
    """A column of a table, what it is taken for, and why.

    Parameters
    ----------
    name : str
    kind : {"number", "category", "boolean", "date", "text", "id", "constant", "empty", "ignored"}
        The last four are left out.
    why : str
        In words.
    n_missing : int
        How many of its cells are empty.
    form : str, optional
        The form of dates that are texts (``%Y-%m-%d``), or the decimal sign of numbers that are.
    n_features : int, optional
        How many features an encoder makes of it; None where none was fitted.

    Examples
    --------
    >>> Column("age", "number", "numbers", n_missing=3).becomes
    'a feature, standardised; missing values become the median, and a feature marks them'
    """

    name: str
    kind: Kind
    why: str
    n_missing: int = 0
    form: str | None = None
    n_features: int | None = None

    @property
    def is_used(self) -> bool:
        """Whether features are made of it."""
        return self.kind not in LEFT_OUT

    @property
    def becomes(self) -> str:
        """What becomes of it, in words."""
        if not self.is_used:
            return "left out"
        features = "features" if self.n_features is None else f"{self.n_features} features"
        said = {
            "number": "a feature, standardised",
            "boolean": "a feature, 0 or 1",
            "category": f"{features}, one for each value; rare values share one",
            "date": f"{features}: days since the first, the time of year and of the week",
            "text": f"{features} of its words (TF-IDF, or an embedding)",
        }[self.kind]
        if not self.n_missing or self.kind == "text":
            return said
        if self.kind == "category":
            return f"{said}; so do missing ones"
        middle = {"date": "the middle date", "boolean": "the commoner value"}
        filled = middle.get(self.kind, "the median")
        return f"{said}; missing values become {filled}, and a feature marks them"


def describe_columns(
    frame: pd.DataFrame, kinds: Mapping[str, str] | None = None
) -> tuple[Column, ...]:
    """Return what every column of a frame is taken for.

    Parameters
    ----------
    frame : DataFrame of shape (n_rows, n_columns)
    kinds : mapping of str to str, optional
        What columns are to be taken for: "number", "category", "boolean", "date", "text" or
        "ignored".

    Returns
    -------
    columns : tuple of Column, in the order of the frame

    Examples
    --------
    >>> frame = pd.DataFrame(
    ...     {"id": ["a1", "a2", "a3"], "size": [1.5, None, 2.0], "colour": ["red", "blue", "red"]}
    ... )
    >>> for column in describe_columns(frame, kinds={"colour": "category"}):
    ...     print(f"{column.name}: {column.kind} ({column.why})")
    id: id (its name says so and all values differ)
    size: number (numbers)
    colour: category (asked for)
    """
    kinds = {} if kinds is None else kinds
    _check_names([str(name) for name in frame.columns], kinds)
    found = []
    for place, name in enumerate(frame.columns):
        cells = frame.iloc[:, place]
        guess = _guess_kind(str(name), cells, kinds.get(str(name)))
        found.append(Column(str(name), guess.kind, guess.why, guess.n_missing, guess.form))
    return tuple(found)


def needs_encoding(frame: pd.DataFrame) -> bool:
    """Return whether a frame is more than complete numbers: it must be encoded before training.

    A column that is an id is left out by the encoding, so it is a reason for it, too.

    Examples
    --------
    >>> needs_encoding(pd.DataFrame({"red": [0.1, 0.5], "sharp": [True, False]}))
    False
    >>> needs_encoding(pd.DataFrame({"red": [0.1, None]}))
    True
    """
    for place, dtype in enumerate(frame.dtypes):
        if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
            continue
        cells = frame.iloc[:, place]
        if not is_stored_as_numbers(cells) or pd.api.types.is_timedelta64_dtype(dtype):
            return True
    if frame.isna().to_numpy().any():
        return True
    return any(
        find_id_numbers(str(name), frame.iloc[:, place]) is not None
        for place, name in enumerate(frame.columns)
    )


def find_item_column(frame: pd.DataFrame) -> str | None:
    """Return the first column whose name says that it is an id, and whose values all differ.

    Examples
    --------
    >>> find_item_column(pd.DataFrame({"size": [1.5, 2.0], "customer_id": ["c7", "c9"]}))
    'customer_id'
    """
    for place, name in enumerate(frame.columns):
        cells = frame.iloc[:, place]
        if is_named(str(name), NAMED_ID) and is_stored_as_words(cells):
            guess = _guess_kind(str(name), cells, None)
            if guess.kind == "id" and not guess.n_missing and read_words(cells).is_unique:
                return str(name)
    return None


def _check_names(names: list[str], kinds: Mapping[str, str]) -> None:
    """Raise if a name occurs twice, or a kind is given to no column, or is none."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ComesError(
            f"columns must have different names; {repeated[0]!r} occurs more than once. Rename or "
            "drop one of them."
        )
    for name, kind in kinds.items():
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ComesError(f"there is no column {name!r}; there are {listed(names)}.{hint}")
        if kind not in GIVEN_KINDS:
            raise ComesError(
                f"column {name!r} must be taken for one of {', '.join(GIVEN_KINDS)}; got {kind!r}."
            )


class _Guess(NamedTuple):
    kind: Kind
    why: str
    n_missing: int = 0
    form: str | None = None


def _guess_kind(name: str, cells: Cells, given: str | None) -> _Guess:
    """Return what a column is taken for, and why."""
    if given == "ignored":
        return _Guess("ignored", "asked for")
    if not is_stored_as_words(cells):
        if given is not None:
            raise ComesError(
                f"column {name!r} holds lists or other values that are no {given}. Turn them into "
                "texts or numbers, or ignore the column (--ignore)."
            )
        return _Guess("ignored", "it holds lists or other values that are no features")
    if given is not None:
        return _guess_given(name, cells, given)
    if is_stored_as_dates(cells):
        return _guess_dates(cells)
    if is_stored_as_numbers(cells):
        return _guess_numbers(name, cells)
    words = read_words(cells)
    if isinstance(cells.dtype, pd.CategoricalDtype) and words.nunique() > 1:
        return _Guess("category", f"{words.nunique()} categories", int(words.isna().sum()))
    return _guess_words(name, words)


def _guess_given(name: str, cells: Cells, given: str) -> _Guess:
    """Return what a column is taken for that the user knows; only its form is to be found."""
    n_missing = int(cells.isna().sum())
    if n_missing == len(cells):
        return _Guess("empty", "no cell holds a value", n_missing)
    if given == "date":
        form = None
        if not is_stored_as_dates(cells):
            found = find_dates(read_words(cells))
            if found is None:
                raise ComesError(
                    f"column {name!r} must hold dates of one form; got "
                    f"{listed([str(cell) for cell in cells.dropna()[:3]])}. Write them as "
                    "2026-01-31, or take the column for something else."
                )
            form = found.form
        return _Guess("date", "asked for", n_missing, form)
    if given == "number":
        form = find_decimal(read_words(cells)) if not is_stored_as_numbers(cells) else None
        return _Guess("number", "asked for", n_missing, form)
    if given == "category":
        return _Guess("category", "asked for", int(read_words(cells).isna().sum()))
    return _Guess("boolean" if given == "boolean" else "text", "asked for", n_missing)


def _guess_dates(cells: Cells) -> _Guess:
    n_missing, n_different = int(cells.isna().sum()), cells.nunique()
    if n_different == 0:
        return _Guess("empty", "no cell holds a value", n_missing)
    if n_different == 1 and not n_missing:
        return _Guess("constant", "every cell holds the same date", n_missing)
    return _Guess("date", "dates", n_missing)


def _guess_numbers(name: str, cells: Cells) -> _Guess:
    """Return what a column of numbers or bools is taken for."""
    values = read_numbers(cells, name=name)
    missing = np.isnan(values)
    n_missing, different = int(missing.sum()), np.unique(values[~missing])
    if not len(different):
        return _Guess("empty", "no cell holds a value", n_missing)
    if len(different) == 1 and not n_missing:
        if is_of_objects(cells) and cells.nunique() > 1:
            return _Guess("id", "its numbers are too large to be told apart")
        return _Guess("constant", f"every cell is {different[0]:g}", n_missing)
    is_bool = pd.api.types.is_bool_dtype(cells.dtype)
    if is_bool or different.tolist() == [0.0, 1.0]:
        return _Guess("boolean", "true and false" if is_bool else "0 and 1", n_missing)
    reason = find_id_numbers(name, cells)
    if reason is not None:
        return _Guess("id", reason, n_missing)
    return _Guess("number", "numbers", n_missing)


def _guess_words(name: str, words: Cells) -> _Guess:
    """Return what a column of words is taken for, missing ones as None."""
    known = words[words.notna()]
    n_missing, n_different = len(words) - len(known), known.nunique()
    if not n_different:
        return _Guess("empty", "no cell holds a value", n_missing)
    if n_different == 1 and not n_missing:
        return _Guess("constant", f"every cell is {str(known.iloc[0])[:30]!r}", n_missing)
    if n_different == 2 and _are_flags(known):
        return _Guess("boolean", " and ".join(sorted(map(str, known.unique()))), n_missing)
    numbers = find_numbers(known)
    if numbers is not None:
        return _Guess("number", numbers.why, n_missing + numbers.n_stray, numbers.form)
    dates = find_dates(known)
    if dates is not None:
        return _Guess("date", dates.why, n_missing + dates.n_stray, dates.form)
    sample = pd.Series(known.unique()[:N_LOOKED_AT])
    mean_words = float(sample.map(lambda text: len(text.split())).mean())
    reason = find_id_words(name, known, mean_words)
    if reason is not None:
        return _Guess("id", reason, n_missing)
    differ = n_different > len(known) / 2
    few = n_different <= FEW_VALUES and not (differ and mean_words >= 3)
    repeat = n_different * MEAN_REPEATS <= len(known) and mean_words < 5
    if few or repeat or mean_words < 1.5:
        return _Guess("category", f"{n_different} different values", n_missing)
    return _Guess("text", f"{n_different} different texts of {mean_words:.0f} words", n_missing)


def _are_flags(words: Cells) -> bool:
    """Return whether two words are a pair such as yes and no."""
    low, high = sorted({str(word).casefold() for word in words.unique()} | {""})[-2:]
    pairs = zip(TRUE_WORDS, FALSE_WORDS, strict=True)
    return any({low, high} == set(pair) for pair in pairs)


assert set(GIVEN_KINDS) | set(LEFT_OUT) == set(get_args(Kind))
