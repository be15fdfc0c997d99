"""Words that show numbers or dates: the form in which they do."""

import re
import warnings
from typing import NamedTuple

import numpy as np

from comes.columns.raw_cells import Cells, read_numbers
from comes.errors import listed

MOST_STRAY = 0.1  # share of cells that may be no numbers, or no dates, in a column of them
FEW_NUMBERS = 20  # different values with others among them, which may as well be codes
CODE = re.compile(r"0\d")  # as in 00123, which is no number
N_LOOKED_AT = 1000  # values that are looked at to find a form


class Parsed(NamedTuple):
    """The form in which texts show numbers or dates, and how many show none."""

    form: str
    n_stray: int
    why: str


def find_numbers(words: Cells) -> Parsed | None:
    """Return how texts show numbers; None if they are codes, too few, or too many show none."""
    if words.map(lambda word: CODE.match(str(word)) is not None).any():
        return None
    form = find_decimal(words)
    stray = np.isnan(read_numbers(words, form))
    n_stray = int(stray.sum())
    if not n_stray:
        return Parsed(form, 0, "texts that are numbers")
    is_few = n_stray <= MOST_STRAY * len(words) and words.nunique() > FEW_NUMBERS
    if not is_few:
        return None
    shown = listed([str(word) for word in words[stray].unique()], most=3)
    return Parsed(form, n_stray, f"numbers; {n_stray} other cells ({shown}) count as missing")


def find_decimal(words: Cells) -> str:
    """Return the decimal sign of texts that are numbers: the one that more of them can have."""
    seen = words[words.notna()]
    sample = seen.iloc[:: max(len(seen) // N_LOOKED_AT, 1)]
    parsed = {sign: int((~np.isnan(read_numbers(sample, sign))).sum()) for sign in ".,"}
    return "," if parsed[","] > parsed["."] else "."


def find_dates(words: Cells) -> Parsed | None:
    """Return the form of texts that are dates; None if they are not, or too few are."""
    from skrub import ToDatetime
    from skrub.core import RejectColumn

    known = words[words.notna()].astype("str")
    dated = known[known.str.contains(r"\d", regex=True)]
    n_stray = len(known) - len(dated)
    if not len(dated) or n_stray > MOST_STRAY * len(known):
        return None
    finder = ToDatetime()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            finder.fit_transform(dated)
    except RejectColumn:
        return None
    form = str(finder.format_)
    why = f"dates like {dated.iloc[0]!r}, read as {form}"
    if re.search(r"%m[/.-]%d[/.-]%[Yy]", form):
        why += " (the month first)"
    if n_stray:
        why += f"; {n_stray} other cells count as missing"
    return Parsed(form, n_stray, why)
