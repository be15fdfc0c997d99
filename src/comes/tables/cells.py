"""The cells of a column as words, numbers, dates and flags, whatever they are stored as.

How texts show numbers or dates is found once and stored with a model, as a form. That of numbers is
the decimal sign, then a blank and the unit if there is one (``. m2``); that of dates one or more
formats of strptime (``%Y-%m-%d|%d-%b-%y``).
"""

import re
import unicodedata
import warnings
from collections import Counter
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.errors import ComesError, counted, listed

Cells = Any  # a Series
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

MISSING_WORDS = ("", "na", "n/a", "nan", "null", "none", "<na>", "nat", "?", "-", "--")
TRUE_WORDS = ("true", "yes", "t", "y", "on", "1", "1.0")
FALSE_WORDS = ("false", "no", "f", "n", "off", "0", "0.0")
NESTED = (list, tuple, dict, set, frozenset, np.ndarray, bytes, bytearray, complex)
NUMBER_KINDS = ("integer", "floating", "mixed-integer-float", "decimal", "boolean")

MOST_STRAY = 0.1  # share of cells that may be no numbers, or no dates, in a column of them
FEW_NUMBERS = 20  # different values with others among them, which may as well be codes
N_LOOKED_AT = 1000  # values that are looked at to find a form


def find_storage(cells: Cells) -> Literal["numbers", "dates", "words", "nested"]:
    """Return what a column is stored as: bools are numbers, and ``nested`` has no text."""
    dtype, types = cells.dtype, pd.api.types
    if types.is_datetime64_any_dtype(dtype) or isinstance(dtype, pd.PeriodDtype):
        return "dates"
    if types.is_complex_dtype(dtype):
        return "nested"
    if types.is_numeric_dtype(dtype) or types.is_timedelta64_dtype(dtype):
        return "numbers"
    if isinstance(dtype, pd.ArrowDtype):
        return "nested" if issubclass(dtype.type, NESTED) else "words"
    if not types.is_object_dtype(dtype):
        return "words"
    inferred = types.infer_dtype(cells, skipna=True)
    if inferred in NUMBER_KINDS:
        return "numbers"
    if inferred in ("date", "datetime"):
        return "dates"
    kinds = set() if inferred == "string" else set(map(type, cells))
    return "nested" if any(issubclass(kind, NESTED) for kind in kinds) else "words"


def read_words(cells: Cells) -> Cells:
    """Return the cells as texts without outer blanks; None where there is none.

    A number that is whole has the same text whether it is stored as an integer or not.
    """
    if pd.api.types.is_object_dtype(cells.dtype):
        words = np.array(_write_words(cells), dtype=object)
    else:
        places, different = pd.factorize(cells)  # few words may fill many rows
        words = np.array([*_write_words(pd.Series(different)), None], dtype=object)[places]
    return pd.Series(words, index=cells.index, name=cells.name, dtype=object)


def _write_words(cells: Cells) -> list[str | None]:
    if find_storage(cells) == "numbers" and not pd.api.types.is_bool_dtype(cells.dtype):
        cells = cells.astype(object).map(_write_number, na_action="ignore")
    pairs = zip(cells.tolist(), cells.notna(), strict=True)
    words = [str(cell).strip() if is_known else "" for cell, is_known in pairs]
    return [None if word.casefold() in MISSING_WORDS else word for word in words]


def _write_number(number: Any) -> str:
    try:
        value = float(number)
    except (TypeError, ValueError, OverflowError):
        return str(number)
    is_whole = value.is_integer() and abs(value) < 2**53
    return str(int(value)) if is_whole else str(number)


def read_texts(cells: Cells) -> list[str]:
    """Return the cells as texts, empty where there is none."""
    return [str(cell) for cell in cells.astype(object).where(cells.notna(), "")]


def read_missing(cells: Cells) -> BoolArray:
    """Return which cells hold nothing, or a word for it."""
    is_parsed = find_storage(cells) in ("numbers", "dates")
    return np.asarray((cells if is_parsed else read_words(cells)).isna().to_numpy(), dtype=bool)


def read_flags(cells: Cells) -> FloatArray:
    """Return 1 for true, yes, on and 1, 0 for their opposites, NaN for anything else."""
    if pd.api.types.is_bool_dtype(cells.dtype):
        return np.asarray(cells.to_numpy(dtype=np.float64, na_value=np.nan))
    words = read_words(cells).map(lambda word: str(word).casefold())
    return np.where(words.isin(TRUE_WORDS), 1.0, np.where(words.isin(FALSE_WORDS), 0.0, np.nan))


def fold_word(word: str) -> str:
    """Return what words have in common that differ in case and blanks alone."""
    text = word if word.isascii() else unicodedata.normalize("NFKC", word)
    return " ".join(text.casefold().split())


class Found(NamedTuple):
    """The form in which texts show numbers or dates; None if they do not, and perhaps why not."""

    form: str | None
    why: str = ""
    n_stray: int = 0
    is_doubtful: bool = False


def _word_strays(words: Cells) -> str:
    if not len(words):
        return ""
    shown = listed([str(word) for word in words.unique()], most=3)
    return f"; {counted(len(words), 'other cell', 'count as missing')} ({shown})"


# Numbers ------------------------------------------------------------------------------------------

CODE = re.compile(r"0\d|\+[\d ]{9}")  # as in 00123 and +49 170 123456, which are no numbers
DIGITS = re.compile(r"\d*\.?\d+|\d+\.|\d{1,3}([,' ])\d{3}(\1\d{3})*(\.\d+)?")
SWAPPED = str.maketrans(".,", ",.")
SEPARATORS_OF_THOUSANDS = str.maketrans("", "", "', ")
TIMES = {"k": 1e3, "K": 1e3, "M": 1e6, "mn": 1e6, "Mio": 1e6, "bn": 1e9, "Mrd": 1e9}
CURRENCIES = "eur|usd|gbp|chf|jpy|cny|inr|cad|aud|nzd|sek|nok|dkk|pln|czk|huf|brl|mxn|krw|zar|rs"
SYMBOLS = {"€": "eur", "$": "usd", "£": "gbp", "¥": "jpy", "₹": "inr"}
SAME_UNIT = SYMBOLS | {"euro": "eur", "us$": "usd", "percent": "%", "pct": "%"}
SAME_UNIT |= {"sqm": "m2", "sq m": "m2", "sq ft": "sqft", "ft2": "sqft"}
NO_UNITS = ("st", "nd", "rd", "th", "am", "pm")
PLAIN_UNITS = ("", "%", "eur", "usd", "gbp")  # which numbers may have that had no unit in training
PLAIN_SIGNS = str.maketrans({"\N{MINUS SIGN}": "-", "\N{RIGHT SINGLE QUOTATION MARK}": "'"})
NUMBER = re.compile(
    rf"""(?P<open>\()?[~≈]?\s*(?P<sign>[-+])?\s*
    (?P<before>[{"".join(SYMBOLS)}]|US\$|(?i:{CURRENCIES})(?=[\s\d.]))?\s*(?P<minus>-)?
    (?P<digits>\d(?:[\d.,' ]*\d)?[.,]?|[.,]\d+)(?P<exponent>[eE][-+]?\d+)?
    \s*(?:(?P<times>{"|".join(TIMES)})\.?(?![^\W\d_]))?
    \s*(?P<after>(?:[^\W\d_]|[%‰°{"".join(SYMBOLS)}/"'])
    (?:[^\W\d_]|[%°{"".join(SYMBOLS)}/. ]){{0,14}}[23]?)?
    (?(open)\s*\))""",
    re.VERBOSE,
)


def read_numbers(cells: Cells, form: str = ".") -> FloatArray:
    """Return the cells as numbers; NaN where there is none. Infinite ones are an error."""
    if pd.api.types.is_timedelta64_dtype(cells.dtype):
        cells = cells / pd.Timedelta(days=1)
    if find_storage(cells) != "numbers":
        values = _parse_numbers(read_words(cells), form)
    elif pd.api.types.is_object_dtype(cells.dtype):
        values = np.array([_as_float(cell) for cell in cells], dtype=np.float64)
    else:
        values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
    infinite = np.isinf(values)
    if infinite.any():
        raise ComesError(
            f"column {str(cells.name)!r} must hold finite numbers; got "
            f"{values[infinite][0]} at row {int(infinite.argmax())}. Correct that cell, or leave "
            "it empty: it is then a missing value."
        )
    return np.asarray(values)


def _as_float(cell: Any) -> float:
    try:
        return np.nan if pd.isna(cell) else float(cell)
    except OverflowError:
        return np.inf


def _parse_numbers(words: Cells, form: str) -> FloatArray:
    """Return the numbers that texts show in a form, NaN where they show none."""
    places, different = pd.factorize(words)
    decimal, unit = form[0], form[2:]
    units = ("", unit) if unit else PLAIN_UNITS
    plain = pd.Series(different, dtype="str")
    plain = plain.str.translate(SWAPPED) if decimal == "," else plain
    numbers: Any = pd.to_numeric(plain, errors="coerce")
    values = numbers.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
    for place in np.flatnonzero(np.isnan(values)):
        match = _match_number(different[place])
        digits = None if match is None else _fit_digits(match["digits"], decimal)
        if digits is not None and _find_unit(match) in units:
            is_negative = match["open"] or "-" in (match["sign"], match["minus"])
            factor = TIMES.get(match["times"], 1.0) * (-1.0 if is_negative else 1.0)
            values[place] = factor * float(digits + (match["exponent"] or ""))
    return np.append(values, np.nan)[places]


def _match_number(word: str) -> Any:
    if not word.isascii():
        word = unicodedata.normalize("NFKC", word).translate(PLAIN_SIGNS)
    return NUMBER.fullmatch(word)


def _fit_digits(digits: str, decimal: str) -> str | None:
    """Return digits with a decimal point and nothing else, None if they cannot be read so."""
    digits = digits.translate(SWAPPED) if decimal == "," else digits
    return digits.translate(SEPARATORS_OF_THOUSANDS) if DIGITS.fullmatch(digits) else None


def _find_unit(match: Any) -> str:
    return _name_unit(match["before"] or match["after"] or "")


@cache
def _name_unit(written: str) -> str:
    """Return the name of a unit, alike for all spellings of it."""
    written = fold_word(written).strip(". ")
    single = written[:-1] if len(written) > 3 and written.endswith("s") else written
    return SAME_UNIT.get(single, single)


def find_numbers(words: Cells, decimal: str | None = None, is_asked: bool = False) -> Found:
    """Return how texts that are not missing show numbers, if they do.

    ``decimal`` is the sign of other columns, for texts such as 1,234 that do not tell. Who asked
    for numbers gets those that are there, whatever else is.
    """
    different = pd.Series(words.unique(), dtype="str")
    if not is_asked and different.str.match(CODE).any():
        return Found(None)
    sample = different.iloc[:: max(len(different) // N_LOOKED_AT, 1)]
    matches = [match for match in map(_match_number, sample) if match is not None]
    if not matches:
        return Found(None)
    units = Counter(map(_find_unit, matches))
    n_plain = units.pop("", 0)
    unit, n_unit = units.most_common(1)[0] if units else ("", 0)
    if not is_asked and n_plain + n_unit < (1 - MOST_STRAY) * len(matches):
        return _refuse_units(units) if len(matches) == len(sample) else Found(None)
    sign, example = _find_decimal(matches, unit, decimal)
    if example is not None and len(sample) < len(different):  # another may tell
        every = [match for match in map(_match_number, different) if match is not None]
        sign, example = _find_decimal(every, unit, decimal)
    shown = [m for m in matches if _find_unit(m) == unit and (unit or m["times"] or m["open"])]
    form = f"{sign} {unit}" if shown else sign
    is_stray = words.isin(different[np.isnan(_parse_numbers(different, form))])
    n_stray = int(is_stray.sum())
    is_few = n_stray <= MOST_STRAY * len(words) and len(different) > FEW_NUMBERS
    if n_stray == len(words) or (n_stray and not is_asked and not is_few):
        return Found(None)
    why = "numbers" if n_stray else "texts that are numbers"
    if unit:
        written = (shown[0]["before"] or shown[0]["after"]).strip()
        why = f"numbers with {written!r}, such as {shown[0][0]!r}"
    elif shown:
        (value,) = _parse_numbers(pd.Series([shown[0][0]]), form)
        why = f"numbers such as {shown[0][0]!r}, read as {value:g}"
    if example is not None:
        (value,) = _parse_numbers(pd.Series([example]), sign)
        why += (
            f"; {example!r} is read as {value:g}. If that is wrong, write numbers with a decimal "
            "point and nothing between thousands"
        )
    why += _word_strays(words[is_stray])
    return Found(form, why, n_stray, n_stray > 0 or example is not None)


def _refuse_units(units: Counter[str]) -> Found:
    """Return why numbers of several units are none, if they are units: not as in 12a and 12b."""
    is_letter = all(len(unit) == 1 for unit in units)
    if len(units) > 5 or is_letter or any(" " in unit or unit in NO_UNITS for unit in units):
        return Found(None)
    why = f"numbers with different units ({listed(list(units))}). Write all in one unit"
    return Found(None, why, is_doubtful=True)


def _find_decimal(matches: list[Any], unit: str, decimal: str | None) -> tuple[str, str | None]:
    """Return the decimal sign that more numbers can have, and one of them if none tells."""
    digits = [match["digits"] for match in matches]
    points, commas = (sum(_fit_digits(one, sign) is not None for one in digits) for sign in ".,")
    if points != commas:
        return "." if points > commas else ",", None
    comma = next((one for one in digits if "," in one), None)
    point = next((one for one in digits if "." in one), None)
    is_price = unit in CURRENCIES.split("|")  # nobody writes 154.607 € for tenths of cents
    if comma is None and (point is None or not is_price):
        return ".", None
    if is_price:
        return "." if comma is not None else ",", None
    return decimal or ".", comma if decimal != "," else None


# Dates --------------------------------------------------------------------------------------------

MONTHS = "january february march april may june july august september october november december"
DAYS = "monday tuesday wednesday thursday friday saturday sunday"
NAMES = {month: "B" for month in MONTHS.split()} | {day: "A" for day in DAYS.split()}
NAMES |= {name[:3]: kind.lower() for name, kind in NAMES.items()}
CLOCK = re.compile(
    r"T?\d{1,2}:\d{2}(?P<seconds>:\d{2}(?P<fraction>\.\d{1,9})?)?(?P<half>\s?[AaPp][Mm])?"
    r"(?P<zone>\s?(?:Z|[-+]\d{2}:?\d{2})|\s(?:UTC|GMT))?(?![\w:])"
)
TOKEN = re.compile(r"[^\W\d_]+|\d+")
DIGIT_KINDS = {1: "n", 2: "n", 4: "Y", 8: "D"}
# What numbers may be, by their places among years (Y), names (b), others (n) and 20251012 (D).
ORDERS = {"Ynn": "Ymd", "nnY": "mdY dmY", "nnn": "mdy dmy ymd", "Yn": "Ym", "nY": "mY", "D": "D"}
ORDERS |= {"nbY": "dY", "nbn": "dy", "bnY": "dY", "Ybn": "Yd", "bY": "Y"}
ORDERS |= {"b-n": "y"}  # Oct-25, as spreadsheets write October 2025
MOST_FORMS = 4


def read_dates(cells: Cells, form: str | None) -> Cells:
    """Return the cells as moments in UTC without a time zone; NaT where there is none."""
    if isinstance(cells.dtype, pd.PeriodDtype):
        cells = cells.dt.to_timestamp()
    if find_storage(cells) == "dates" or form is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # texts of several forms
            moments: Any = pd.to_datetime(cells, errors="coerce", utc=True)
    else:
        places, different = pd.factorize(read_words(cells))
        known = _parse_dates(pd.Series(different, dtype="str"), form)
        moments = known.reindex(places).set_axis(cells.index)
    return moments.dt.tz_localize(None).dt.as_unit("us")  # nanoseconds end in 2262


def _parse_dates(words: Cells, form: str) -> Cells:
    """Return the moments of different texts, each read by the first form that fits."""
    moments: Any = pd.Series(pd.NaT, index=words.index, dtype="datetime64[us, UTC]")
    for one in form.split("|"):
        left = words[moments.isna()]
        more: Any = pd.to_datetime(left, format=one, errors="coerce", utc=True)
        moments = moments.fillna(more.dt.as_unit("us"))
    return moments


def find_zones(cells: Cells, form: str | None) -> set[bool]:
    """Return whether dates have a time zone: both, where some have one and some have none."""
    storage = find_storage(cells)
    if storage != "dates" and form is not None:
        return {"%z" in one.casefold() for one in form.split("|")}
    if storage == "dates" and not pd.api.types.is_object_dtype(cells.dtype):
        dtype = getattr(cells.dtype, "pyarrow_dtype", cells.dtype)
        return {getattr(dtype, "tz", None) is not None}
    clocks = [CLOCK.search(cell) for cell in cells if isinstance(cell, str)]
    zones = {clock is not None and clock["zone"] is not None for clock in clocks}
    dates = [cell for cell in cells[cells.notna()] if not isinstance(cell, str)]
    return zones | {getattr(date, "tzinfo", None) is not None for date in dates}


def find_dates(words: Cells, is_asked: bool = False) -> Found:
    """Return the forms of texts that are dates, if they are.

    Whether the month comes before the day is told by cells where only one of them can; by none,
    the month is first.
    """
    different = pd.Series(words.unique(), dtype="str")
    sample = different.iloc[:: max(len(different) // N_LOOKED_AT, 1)]
    shapes = Counter(_guess_formats(word) for word in sample)
    shapes.pop((), None)
    if not shapes or (not is_asked and shapes.total() < len(sample) / 2):
        return Found(None)
    chosen: list[str] = []
    undecided: list[str] = []
    for formats, _ in shapes.most_common(MOST_FORMS):
        fits = [int(_parse_dates(different, one).notna().sum()) for one in formats]
        chosen.append(formats[int(np.argmax(fits))])
        if len(fits) > 1 and fits[0] == fits[1] == max(fits) > 0:
            undecided.append(formats[0])
    if undecided and any(one.startswith("%d") for one in chosen):
        swapped = {one: re.sub("%m(.*?)%d", r"%d\1%m", one) for one in undecided}
        chosen, undecided = [swapped.get(one, one) for one in chosen], []
    form = "|".join(dict.fromkeys(chosen))
    is_stray = words.isin(different[_parse_dates(different, form).isna().to_numpy()])
    n_stray = int(is_stray.sum())
    if n_stray == len(words) or (n_stray > MOST_STRAY * len(words) and not is_asked):
        return Found(None)
    why = f"dates like {words[~is_stray].iloc[0]!r}, read as {form.replace('|', ' or ')}"
    why += " (the month first, as no cell tells)" if undecided else ""
    are_mixed = len(find_zones(words, form)) > 1
    why += "; some have a time zone, and the others are taken for UTC" if are_mixed else ""
    why += _word_strays(words[is_stray])
    return Found(form, why, n_stray, bool(n_stray or undecided or are_mixed))


def _guess_formats(word: str) -> tuple[str, ...]:
    """Return the formats that a text may be a date of, the month first where that is open."""
    clock = CLOCK.search(word)
    date = word if clock is None else f"{word[: clock.start()]}\0{word[clock.end() :]}"
    kinds = []
    for token in TOKEN.findall(date):
        kind = DIGIT_KINDS.get(len(token)) if token.isdigit() else NAMES.get(token.casefold())
        kinds.append(kind or "?")
    key = "".join(kind.replace("B", "b") for kind in kinds if kind not in "aA")
    orders = ORDERS.get("b-n" if key == "bn" and "-" in date else key, "").split()
    if TOKEN.sub("", date).strip("-/., \0"):
        return ()
    time = "" if clock is None else _write_clock(clock)
    formats = []
    for order in orders:
        left = iter(order)
        codes = [kind if kind in "aAbB" else next(left) for kind in kinds]
        written = TOKEN.sub("{}", date).format(*(f"%{code}" for code in codes))
        formats.append(written.replace("%D", "%Y%m%d").replace("\0", time))
    return tuple(formats)


def _write_clock(clock: re.Match[str]) -> str:
    half, zone = clock["half"] or "", clock["zone"] or ""
    written = ("T" if clock[0].startswith("T") else "") + ("%I:%M" if half else "%H:%M")
    written += ":%S" if clock["seconds"] else ""
    written += ".%f" if clock["fraction"] else ""
    written += f"{half[:-2]}%p" if half else ""
    if zone:
        written += (" " if zone.startswith(" ") else "") + ("%Z" if "T" in zone else "%z")
    return written
