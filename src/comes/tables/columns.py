"""What every column of a table is taken for, and why."""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from comes.errors import ComesError, listed, warn_user
from comes.tables.cells import (
    FALSE_WORDS,
    N_LOOKED_AT,
    TRUE_WORDS,
    Cells,
    Found,
    find_dates,
    find_numbers,
    find_storage,
    find_zones,
    fold_word,
    read_dates,
    read_flags,
    read_numbers,
    read_words,
)

KINDS = ("number", "category", "boolean", "date", "text", "ignored")  # that can be asked for
LEFT_OUT = ("id", "constant", "empty", "ignored")
# What becomes of a column, and of its missing values.
MADE: dict[str, tuple[str, str | None]] = {
    "number": ("a feature, standardised", "the median"),
    "boolean": ("a feature, 0 or 1", "the commoner value"),
    "category": ("{}, one for each value; rare values share one", None),
    "date": ("{}: days since the first, the time of year and of the week", "the middle date"),
    "text": ("{} of its words (TF-IDF, or an embedding)", None),
}

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
    kind: str
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
        made, filled = MADE[self.kind]
        n = "features" if self.n_features is None else f"{self.n_features} features"
        gaps = f"; missing values become {filled}, and a feature marks them"
        return made.format(n) + (gaps if self.n_missing and filled else "")


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
    cells = {str(name): column for name, column in _name_uniquely(frame).items()}
    for name, kind in kinds.items():
        if name not in cells:
            raise ComesError(
                f"there is no column {name!r}; there are {listed(list(cells))}."
                + _suggest(name, list(cells))
            )
        if kind not in KINDS:
            raise ComesError(
                f"column {name!r} must be taken for one of {', '.join(KINDS)}; got {kind!r}."
            )
    columns = {name: _describe(name, cells[name], kinds.get(name)) for name in cells}
    numbers = [column for column in columns.values() if column.kind == "number"]
    if any((c.form or "").startswith(",") and not c.is_doubtful for c in numbers):
        for name in (c.name for c in numbers if c.is_doubtful):
            # 1,234 has a decimal comma where another column surely has one.
            columns[name] = _describe(name, cells[name], kinds.get(name), ",")
    return tuple(columns.values())


def _name_uniquely(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame whose columns have names that are texts; raise if two are the same."""
    names = frame.columns.map(str)
    if not names.is_unique:
        raise ComesError(
            f"columns must have different names; {names[names.duplicated()][0]!r} occurs more than "
            "once. Rename or drop one of them."
        )
    return frame.set_axis(names, axis=1)


def _suggest(name: str, names: Sequence[str]) -> str:
    known = {name.casefold(): name for name in names}
    near = difflib.get_close_matches(name.casefold(), known, n=1)
    return f" Did you mean {known[near[0]]!r}?" if near else ""


def _describe(
    name: str, cells: Cells, kind: str | None = None, decimal: str | None = None
) -> Column:
    """Return what a column is taken for; ``decimal`` is the sign that other columns have."""
    if kind == "ignored":
        return Column(name, kind, "asked for")
    storage = find_storage(cells)
    if storage == "nested":
        cell = next((cell for cell in cells if not pd.api.types.is_scalar(cell)), cells.iloc[0])
        if kind is not None:
            raise ComesError(
                f"column {name!r} must hold a {kind} in every cell; got {type(cell).__name__}. "
                "Turn it into texts or numbers, or ignore the column (--ignore)."
            )
        why = f"cells of type {type(cell).__name__} are no features"
        return Column(name, "ignored", why, is_doubtful=True)
    known = (cells if kind is None and storage != "words" else read_words(cells)).dropna()
    n_missing = len(cells) - len(known)
    if not len(known):
        return Column(name, "empty", "no cell holds a value", n_missing)
    if kind is not None:
        return _describe_asked(name, cells, known, kind, decimal)
    if known.nunique() == 1 and not n_missing:
        return Column(name, "constant", f"every cell is {str(known.iloc[0])[:30]!r}")
    if storage == "numbers":
        return _describe_numbers(name, cells, n_missing)
    if storage == "words":
        return _describe_words(name, cells, known, decimal)
    are_mixed = len(find_zones(cells, None)) > 1
    why = "dates; some have a time zone, and the others are taken for UTC" if are_mixed else "dates"
    return Column(name, "date", why, n_missing, is_doubtful=are_mixed)


def _describe_asked(
    name: str, cells: Cells, known: Cells, kind: str, decimal: str | None
) -> Column:
    """Return a column of the kind that is asked for; what does not fit counts as missing."""
    n_missing = len(cells) - len(known)
    if kind == "boolean":
        n_stray = int(np.isnan(read_flags(cells)).sum()) - n_missing
        found = Found("", f"{n_stray} other cells count as missing", n_stray, n_stray > 0)
    elif kind == "number" and find_storage(cells) != "numbers":
        found = find_numbers(known, decimal, is_asked=True)
    elif kind == "date" and find_storage(cells) != "dates":
        found = find_dates(known, is_asked=True)
    else:
        found = Found("")
    if found.form is None:
        examples = {"number": "1234.5 or '26 m2', and no dates or ranges", "date": "2026-01-31"}
        raise ComesError(
            f"column {name!r} must hold {kind}s; got {listed(list(map(str, known[:3])))}. Write "
            f"them as {examples[kind]}, or take the column for something else."
        )
    why = f"asked for; {found.why}" if found.is_doubtful else "asked for"
    return _as_column(name, kind, found._replace(why=why), n_missing)


def _as_column(name: str, kind: str, found: Found, n_missing: int) -> Column:
    n_missing += found.n_stray
    return Column(name, kind, found.why, n_missing, found.form or None, None, found.is_doubtful)


def _describe_numbers(name: str, cells: Cells, n_missing: int) -> Column:
    """Return what a column of numbers or bools is taken for."""
    values = read_numbers(cells)
    different = np.unique(values[~np.isnan(values)])
    if len(different) == 1 and not n_missing:
        return Column(name, "id", "its numbers are too large to be told apart")
    is_bool = pd.api.types.is_bool_dtype(cells.dtype)
    if is_bool or different.tolist() == [0.0, 1.0]:
        return Column(name, "boolean", "true and false" if is_bool else "0 and 1", n_missing)
    reason = _find_id_numbers(name, cells)
    if reason is not None:
        return Column(name, "id", reason, n_missing)
    if _are_dates(name, cells):
        return Column(name, "date", "dates written as numbers, by its name", n_missing, "%Y%m%d")
    return Column(name, "number", "numbers", n_missing)


def _describe_words(name: str, cells: Cells, known: Cells, decimal: str | None) -> Column:
    """Return what a column is taken for whose known cells are words."""
    n, n_missing, different = len(known), len(cells) - len(known), known.unique()
    n_different, folded = len(different), {fold_word(str(word)) for word in different}
    more = n_different - len(folded)
    alike = f"; {more} more differ in case or blanks alone" if more else ""
    if len(folded) == 1 and not n_missing:
        return Column(name, "constant", f"every cell is {str(known.iloc[0])[:30]!r}{alike}")
    if isinstance(cells.dtype, pd.CategoricalDtype) and len(folded) > 1:
        return Column(name, "category", f"{len(folded)} categories{alike}", n_missing)
    if any(folded == set(pair) for pair in zip(TRUE_WORDS, FALSE_WORDS, strict=True)):
        return Column(name, "boolean", " and ".join(sorted(map(str, different))), n_missing)
    if _are_dates(name, known):
        return Column(name, "date", "dates written as numbers, by its name", n_missing, "%Y%m%d")
    numbers = Found(None) if _is_named(name, CODE_NAME) else find_numbers(known, decimal)
    if numbers.form is not None:
        return _as_column(name, "number", numbers, n_missing)
    dates = find_dates(known)
    if dates.form is not None:
        return _as_column(name, "date", dates, n_missing)
    mean_words = float(np.mean([len(text.split()) for text in different[:N_LOOKED_AT]]))
    if _is_named(name, ID_OR_PERSON) and n_different == n >= 2 and mean_words < 4:
        return Column(name, "id", LOOKS_LIKE_ID, n_missing)
    if n >= FEW_ROWS and n_different >= MOST_DIFFERENT * n and mean_words < 1.5:
        why = f"{LOOKS_LIKE_ID}: {n_different} different values in {n} rows"
        return Column(name, "id", why, n_missing)
    are_few = n_different <= FEW_VALUES and not (n_different > n / 2 and mean_words >= 3)
    are_repeated = n_different * MEAN_REPEATS <= n and mean_words < 5
    kind, why = "text", f"{n_different} different texts of {mean_words:.0f} words"
    if are_few or are_repeated or mean_words < 1.5:
        kind, why = "category", f"{len(folded)} different values{alike}"
    if numbers.is_doubtful:
        why += f": {numbers.why}, or take the column for numbers (kinds; --number)"
    return Column(name, kind, why, n_missing, is_doubtful=numbers.is_doubtful)


def _are_dates(name: str, cells: Cells) -> bool:
    """Return whether numbers such as 20251012 are dates: all can be, and the name says so."""
    if not _is_named(name, DATE_NAME):
        return False
    words = read_words(cells).dropna()
    are_digits = words.nunique() > 1 and words.str.fullmatch(r"(19|20)\d{6}").all()
    return bool(are_digits and read_dates(words, "%Y%m%d").notna().all())


def _find_id_numbers(name: str, cells: Cells) -> str | None:
    """Return why a column of numbers is an id, or None: all differ, and it says so or counts."""
    if getattr(cells.dtype, "kind", "O") not in "iuf" or len(cells) < 2:
        return None
    is_named = _is_named(name, ID_NAME) or NAMELESS.fullmatch(name.casefold()) is not None
    if not is_named and (len(cells) < FEW_ROWS or not _count_up(cells.iloc[:3])):
        return None
    values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
    if not (values == np.floor(values)).all():  # or one is missing
        return None
    if _count_up(cells):
        return "it counts the rows"
    return LOOKS_LIKE_ID if is_named and cells.is_unique else None


def _count_up(cells: Cells) -> bool:
    return bool((np.diff(cells.to_numpy(dtype=np.float64, na_value=np.nan)) == 1).all())


def _is_named(name: str, pattern: re.Pattern[str]) -> bool:
    """Return whether a pattern fits a name in lower case, and customerId as customer_id."""
    spelled = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).casefold().strip()
    return pattern.search(spelled) is not None


def needs_encoding(frame: pd.DataFrame) -> bool:
    """Return whether a frame is more than complete numbers: an id, or a date, is more."""
    columns = ((str(name), cells) for name, cells in frame.items())
    is_more = any(
        find_storage(cells) != "numbers"
        or pd.api.types.is_timedelta64_dtype(cells.dtype)
        or _find_id_numbers(name, cells) is not None
        or _are_dates(name, cells)
        for name, cells in columns
    )
    return is_more or bool(frame.isna().to_numpy().any())


def find_item_column(frame: pd.DataFrame) -> str | None:
    """Return the first column whose name says that it is an id, and whose values all differ."""
    for name, cells in frame.items():
        if _is_named(str(name), ID_NAME):
            column = _describe(str(name), cells)
            if column.kind == "id" and not column.n_missing and read_words(cells).is_unique:
                return str(name)
    return None


def match_by_name(
    frame: pd.DataFrame, wanted: Sequence[str], known: Sequence[str] = ()
) -> pd.DataFrame:
    """Return the wanted columns of a frame, in their order; warn of those that are not known.

    A missing one is more often misspelt than unknown for every row, so it is not filled in.
    """
    frame = _name_uniquely(frame)
    names = list(frame.columns)
    missing = [name for name in wanted if name not in frame]
    if missing:
        raise ComesError(
            f"{_name_columns(missing)} missing; there are {listed(names)}."
            f"{_suggest(missing[0], names)} If nothing is known of it, add it with empty cells."
        )
    expected = {*wanted, *known}
    extra = [name for name in names if name not in expected]
    if extra:
        warn_user(f"{_name_columns(extra)} not known to the model and ignored.")
    return frame[list(wanted)]


def _name_columns(names: Sequence[str]) -> str:
    return f"column {names[0]!r} is" if len(names) == 1 else f"columns {listed(names)} are"
