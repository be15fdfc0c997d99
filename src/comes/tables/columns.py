"""What every column of a table is taken for, and why."""

import difflib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from comes.errors import ComesError, listed
from comes.tables.cells import (
    FALSE_WORDS,
    N_LOOKED_AT,
    TRUE_WORDS,
    Cells,
    find_dates,
    find_numbers,
    find_storage,
    find_zones,
    fold_word,
    read_flags,
    read_numbers,
    read_words,
)

Kind = Literal[
    "number", "category", "boolean", "date", "text", "id", "constant", "empty", "ignored"
]
GIVEN_KINDS = ("number", "category", "boolean", "date", "text", "ignored")
LEFT_OUT = ("id", "constant", "empty", "ignored")

FEW_VALUES = 40  # words with no more different values are categories
MEAN_REPEATS = 5  # words that occur this often on average are categories, too
FEW_ROWS = 20  # in fewer, numbers that count upwards or words that differ may well be chance
MOST_DIFFERENT = 0.95  # share of different words, beyond which they are names

IDS = r"ids?|uuid|guid|index|idx|pk|row(num|number)?|rowid|nr"
NAMES = r"name|username|login|e?mail|phone|url|uri|link|file|filename|path|image|hash|doi|isbn"
CODES = r"phone|telephone|tel|mobile|fax|zip|zip ?code|post ?code|postal ?code|plz|isbn|ean|iban"
ID_NAME = re.compile(rf"(?:^|[^a-z])({IDS})$")
ID_OR_PERSON = re.compile(rf"(?:^|[^a-z])({IDS}|{NAMES})$")
CODE_NAME = re.compile(rf"(?:^|[^a-z])({CODES}|version)$")
DATE_NAME = re.compile(r"(?:^|[^a-z])(date|datum|day|dt|dob|birthday|birthdate)(?:$|[^a-z])")
NAMELESS = re.compile(r"unnamed: \d+|")
LOOKS_LIKE_ID = "looks like an ID"


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
        The form of texts that are dates (``%Y-%m-%d``, several with ``|`` between them), or the
        decimal sign and the unit of texts that are numbers (``. m2``).
    n_features : int, optional
        How many features an encoder makes of it; None where none was fitted.
    is_doubtful : bool
        Whether a fit warns of it: cells are lost, or may be meant otherwise.

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
    is_doubtful: bool = False

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
        made = {
            "number": "a feature, standardised",
            "boolean": "a feature, 0 or 1",
            "category": f"{features}, one for each value; rare values share one",
            "date": f"{features}: days since the first, the time of year and of the week",
            "text": f"{features} of its words (TF-IDF, or an embedding)",
        }[self.kind]
        if not self.n_missing or self.kind == "text":
            return made
        if self.kind == "category":
            return f"{made}; so do missing ones"
        middle = {"date": "the middle date", "boolean": "the commoner value"}
        filled = middle.get(self.kind, "the median")
        return f"{made}; missing values become {filled}, and a feature marks them"


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
    ...     {"id": ["a1", "a2", "a3"], "size": ["26 m2", "", "31.5 m2"], "colour": list("rbr")}
    ... )
    >>> for column in describe_columns(frame, kinds={"colour": "category"}):
    ...     print(f"{column.name}: {column.kind} ({column.why})")
    id: id (looks like an ID)
    size: number (numbers with 'm2', such as '26 m2')
    colour: category (asked for)
    """
    kinds = {} if kinds is None else kinds
    names = [str(name) for name in frame.columns]
    _check_names(names, kinds)
    cells = {name: frame.iloc[:, place] for place, name in enumerate(names)}
    found = {name: _describe(name, cells[name], kinds.get(name)) for name in names}
    numbers = [column for column in found.values() if column.kind == "number"]
    if any((c.form or "").startswith(",") and not c.is_doubtful for c in numbers):
        for column in numbers:  # 1,234 has a decimal comma where another column surely has one
            if column.is_doubtful:
                given = kinds.get(column.name)
                found[column.name] = _describe(column.name, cells[column.name], given, ",")
    return tuple(found.values())


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


def _describe(name: str, cells: Cells, given: str | None, decimal: str | None = None) -> Column:
    """Return what a column is taken for; ``decimal`` is the sign that other columns have."""
    if given == "ignored":
        return Column(name, "ignored", "asked for")
    storage = find_storage(cells)
    if storage == "nested":
        cell = next((cell for cell in cells if not pd.api.types.is_scalar(cell)), cells.iloc[0])
        if given is not None:
            raise ComesError(
                f"column {name!r} must hold a {given} in every cell; got {type(cell).__name__}. "
                "Turn it into texts or numbers, or ignore the column (--ignore)."
            )
        why = f"cells of type {type(cell).__name__} are no features"
        return Column(name, "ignored", why, is_doubtful=True)
    if storage == "words" or given is not None:
        words = read_words(cells)
        if words.isna().all():
            return Column(name, "empty", "no cell holds a value", len(words))
        if given is not None:
            return _describe_given(name, cells, words, given, decimal)
        return _describe_words(name, cells, words, decimal)
    return _describe_dates(name, cells) if storage == "dates" else _describe_numbers(name, cells)


def _describe_given(
    name: str, cells: Cells, words: Cells, given: str, decimal: str | None
) -> Column:
    """Return what the user says that a column is; what does not fit counts as missing."""
    known, storage = words[words.notna()], find_storage(cells)
    n_missing = len(words) - len(known)
    if given == "number" and storage != "numbers":
        found = find_numbers(known, decimal, is_asked=True)
        example = "1234.5 or '26 m2', and no dates or ranges"
    elif given == "date" and storage != "dates":
        found = find_dates(known, is_asked=True)
        example = "2026-01-31, or take the column for something else"
    elif given == "boolean":
        n_other = int(np.isnan(read_flags(cells)).sum()) - n_missing
        why = "asked for" if not n_other else f"asked for; {n_other} other cells count as missing"
        return Column(name, "boolean", why, n_missing + n_other, is_doubtful=n_other > 0)
    else:
        kind: Kind = given  # type: ignore[assignment]
        return Column(name, kind, "asked for", n_missing)
    if found.form is None:
        raise ComesError(
            f"column {name!r} must hold {given}s; got {listed(list(map(str, known[:3])))}. Write "
            f"them as {example}."
        )
    why = f"asked for; {found.why}" if found.is_doubtful else "asked for"
    n_missing += found.n_stray
    kind = "number" if given == "number" else "date"
    return Column(name, kind, why, n_missing, found.form, is_doubtful=found.is_doubtful)


def _describe_dates(name: str, cells: Cells) -> Column:
    n_missing, n_different = int(cells.isna().sum()), cells.nunique()
    if n_different == 0:
        return Column(name, "empty", "no cell holds a value", n_missing)
    if n_different == 1 and not n_missing:
        return Column(name, "constant", "every cell holds the same date", n_missing)
    if len(find_zones(cells, None)) > 1:
        why = "dates; some have a time zone, and the others are taken for UTC"
        return Column(name, "date", why, n_missing, is_doubtful=True)
    return Column(name, "date", "dates", n_missing)


def _describe_numbers(name: str, cells: Cells) -> Column:
    """Return what a column of numbers or bools is taken for."""
    values = read_numbers(cells, name=name)
    missing = np.isnan(values)
    n_missing, different = int(missing.sum()), np.unique(values[~missing])
    if not len(different):
        return Column(name, "empty", "no cell holds a value", n_missing)
    if len(different) == 1 and not n_missing:
        if pd.api.types.is_object_dtype(cells.dtype) and cells.nunique() > 1:
            return Column(name, "id", "its numbers are too large to be told apart")
        return Column(name, "constant", f"every cell is {different[0]:g}", n_missing)
    is_bool = pd.api.types.is_bool_dtype(cells.dtype)
    if is_bool or different.tolist() == [0.0, 1.0]:
        return Column(name, "boolean", "true and false" if is_bool else "0 and 1", n_missing)
    reason = find_id_numbers(name, cells)
    if reason is not None:
        return Column(name, "id", reason, n_missing)
    if are_dates(name, cells):
        return Column(name, "date", "dates written as numbers, by its name", n_missing, "%Y%m%d")
    return Column(name, "number", "numbers", n_missing)


def _describe_words(name: str, cells: Cells, words: Cells, decimal: str | None) -> Column:
    """Return what a column of words is taken for, missing ones as None."""
    known = words[words.notna()]
    n_missing, different = len(words) - len(known), known.unique()
    folded = {fold_word(str(word)) for word in different}
    more = len(different) - len(folded)
    alike = f"; {more} more differ in case or blanks alone" if more else ""
    if len(folded) == 1 and not n_missing:
        return Column(name, "constant", f"every cell is {str(known.iloc[0])[:30]!r}{alike}")
    if isinstance(cells.dtype, pd.CategoricalDtype) and len(folded) > 1:
        return Column(name, "category", f"{len(folded)} categories{alike}", n_missing)
    if any(folded == set(pair) for pair in zip(TRUE_WORDS, FALSE_WORDS, strict=True)):
        return Column(name, "boolean", " and ".join(sorted(map(str, different))), n_missing)
    if are_dates(name, known):
        return Column(name, "date", "dates written as numbers, by its name", n_missing, "%Y%m%d")
    numbers = None if _is_named(name, CODE_NAME) else find_numbers(known, decimal)
    for kind, found in (("number", numbers), ("date", find_dates(known))):
        if found is not None and found.form is not None:
            kind_found: Kind = "number" if kind == "number" else "date"
            lost = n_missing + found.n_stray
            form, is_doubtful = found.form, found.is_doubtful
            return Column(name, kind_found, found.why, lost, form, is_doubtful=is_doubtful)
    sample = pd.Series(different[:N_LOOKED_AT])
    mean_words = float(sample.map(lambda text: len(text.split())).mean())
    reason = _find_id_words(name, len(known), len(different), mean_words)
    if reason is not None:
        return Column(name, "id", reason, n_missing)
    n_different = len(different)
    few = n_different <= FEW_VALUES and not (n_different > len(known) / 2 and mean_words >= 3)
    repeat = n_different * MEAN_REPEATS <= len(known) and mean_words < 5
    is_category = few or repeat or mean_words < 1.5
    if is_category:
        why = f"{len(folded)} different values{alike}"
    else:
        why = f"{n_different} different texts of {mean_words:.0f} words"
    is_doubtful = numbers is not None and numbers.is_doubtful
    if numbers is not None and is_doubtful:
        why += f": {numbers.why}, or take the column for numbers (kinds; --number)"
    kind_of_words: Kind = "category" if is_category else "text"
    return Column(name, kind_of_words, why, n_missing, is_doubtful=is_doubtful)


def are_dates(name: str, cells: Cells) -> bool:
    """Return whether numbers such as 20251012 are dates: all can be, and the name says so."""
    if not DATE_NAME.search(_spell_out(name)):
        return False
    words = read_words(cells).dropna()
    if not words.map(lambda word: re.fullmatch(r"(19|20)\d{6}", str(word)) is not None).all():
        return False
    found = find_dates(words)
    return words.nunique() > 1 and found.form is not None and not found.n_stray


def find_id_numbers(name: str, cells: Cells) -> str | None:
    """Return why a column of numbers is an id, or None: all differ, and it says so or counts."""
    kind = getattr(cells.dtype, "kind", "O")
    if kind not in "iuf" or len(cells) < 2:
        return None
    named = _is_named(name, ID_NAME) or NAMELESS.fullmatch(name.casefold()) is not None
    if not named and (len(cells) < FEW_ROWS or not _count_up(cells.iloc[:3])):
        return None
    values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
    if not (values == np.floor(values)).all():  # or one is missing
        return None
    if _count_up(cells):
        return "it counts the rows"
    return LOOKS_LIKE_ID if named and cells.is_unique else None


def _count_up(cells: Cells) -> bool:
    values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
    return bool((np.diff(values) == 1).all())


def _find_id_words(name: str, n: int, n_different: int, mean_words: float) -> str | None:
    """Return why a column of words is an id, or None: they differ, and are no texts."""
    if _is_named(name, ID_OR_PERSON) and n_different == n >= 2 and mean_words < 4:
        return LOOKS_LIKE_ID
    if n >= FEW_ROWS and n_different >= MOST_DIFFERENT * n and mean_words < 1.5:
        return f"{LOOKS_LIKE_ID}: {n_different} different values in {n} rows"
    return None


def _is_named(name: str, pattern: re.Pattern[str]) -> bool:
    return pattern.search(_spell_out(name)) is not None


def _spell_out(name: str) -> str:
    """Return a name in lower case, with a mark between the words of customerId."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).casefold().strip()


def needs_encoding(frame: pd.DataFrame) -> bool:
    """Return whether a frame is more than complete numbers: an id, or a date, is more."""
    for place, dtype in enumerate(frame.dtypes):
        if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
            continue
        is_number = find_storage(frame.iloc[:, place]) == "numbers"
        if not is_number or pd.api.types.is_timedelta64_dtype(dtype):
            return True
    if frame.isna().to_numpy().any():
        return True
    columns = ((str(name), frame.iloc[:, place]) for place, name in enumerate(frame.columns))
    return any(find_id_numbers(*one) is not None or are_dates(*one) for one in columns)


def find_item_column(frame: pd.DataFrame) -> str | None:
    """Return the first column whose name says that it is an id, and whose values all differ."""
    for place, name in enumerate(frame.columns):
        cells = frame.iloc[:, place]
        if _is_named(str(name), ID_NAME) and find_storage(cells) != "nested":
            column = _describe(str(name), cells, None)
            if column.kind == "id" and not column.n_missing and read_words(cells).is_unique:
                return str(name)
    return None
