"""What separates the label names in a cell: inferred where clear, and asked for where it is not.

A separator is clear if splitting by it leaves no more names than there were different cells, or if
most of its names stand in several of them; and if cells do not all have the same form, as in "Rome,
Italy". A list in brackets, as json or Python write it, is one whatever separates its names.
"""

import ast
import json
import re
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Any

import pandas as pd

from comes.errors import ComesError, warn_user

SEPARATOR = ";"
OTHERS = (",", "|", "\t", "\n")
UNUSUAL = ("/", "+", "&", ":", "#", "~", "*", ".", "-", "_")  # that names have, too: asked for
SPACE, LIST = " ", "list"
WORDS = {"tab": "\t", "space": SPACE, "comma": ",", "bar": "|", "semicolon": ";", "newline": "\n"}
NOTHING = "(none)"
FEW = 10  # so many labels may each be alone in their cell
LARGE_SHARE = 0.2  # of cells that hold one name, all of them different
PROSE = re.compile(r"[.!?:\"]")
BRACKETS = re.compile(r"\[.*\]|\{.*\}|\(['\"].*\)", re.DOTALL)
QUOTED = re.compile(r"'([^']+)'|\"([^\"]+)\"")
NO_COMMAS = re.compile(r"'\s+'|\"\s+\"")  # as numpy writes lists; Python would join the names


def find_separator(
    columns: Sequence["pd.Series[Any]"], wanted: Collection[str] | None = None
) -> str:
    """Return what separates names in columns of labels; raise an error that asks if it is unclear.

    If all labels are known (wanted), what splits every cell into them is the separator.
    """
    texts = [
        cell.strip()
        for column in columns
        for cell in column
        if isinstance(cell, str) and cell.strip() and cell.strip().lower() != NOTHING
    ]
    distinct = list(dict.fromkeys(texts))
    if wanted is not None:
        return _find_among(distinct, set(wanted))
    if any(BRACKETS.fullmatch(text) for text in distinct):
        return LIST
    present = [s for s in (SEPARATOR, *OTHERS) if any(s in text.strip(s) for text in distinct)]
    clear = [s for s in present if _is_clear(distinct, s)]
    if SEPARATOR in clear or (SEPARATOR in present and not clear):
        _refuse_another(distinct, SEPARATOR)
        return SEPARATOR
    if len(clear) == 1:
        _refuse_another(distinct, clear[0])
        return clear[0]
    unclear = clear or [s for s in present if _find_shared(distinct, s)]
    unclear = unclear or [s for s in UNUSUAL if _are_combined(distinct, s)]
    if unclear:
        raise _make_question(distinct, unclear[0])
    if len(columns) == 1:
        return _choose_spaces(distinct, len(texts))
    return SEPARATOR


def _refuse_another(texts: Sequence[str], separator: str) -> None:
    """Raise an error if another separator stands between names that other cells have."""
    names = {name for text in texts for name in split_cell(text, separator)}
    for other in {SEPARATOR, *OTHERS} - {separator}:
        for name in sorted(names):
            parts = split_cell(name, other)
            if len(parts) > 1 and names.issuperset(parts):
                raise ComesError(
                    f"label names are separated by {separator!r} in some cells and by {other!r} in "
                    f"others, such as {name!r}. Write one of them everywhere, or give the right "
                    "one (--separator)."
                )


def check_separator(separator: str, columns: Sequence["pd.Series[Any]"]) -> None:
    """Raise or warn if the separator that the user gave does not occur in columns of names."""
    if not columns:
        raise ComesError(
            f"separator {separator!r} is for a column of label names; here every label has a "
            "column of its own. Leave it out."
        )
    cells = [cell for column in columns for cell in column.unique() if isinstance(cell, str)]
    wanted = WORDS.get(separator, separator)
    is_usual = separator in (LIST, SEPARATOR)  # the latter is what a question advises
    if not is_usual and cells and not any(wanted in cell for cell in cells):
        warn_user(
            f"no cell has the separator {separator!r}: every cell is one label, such as "
            f"{cells[0]!r}. Is it the right one?"
        )


def split_cell(text: str, separator: str | None) -> list[str]:
    """Return the names in a cell of text, without blanks around them."""
    if text.strip().lower() == NOTHING:
        return [NOTHING]
    if separator == LIST:
        return _read_list(text) if text.strip() else []
    separator = WORDS.get(separator or SEPARATOR, separator or SEPARATOR)
    return [name for part in text.split(separator) if (name := _drop_quotes(part.strip()))]


def are_all_names(cells: "pd.Series[Any]", wanted: set[str]) -> bool:
    """Return whether cells hold at least two of the wanted names, and nothing else."""
    if pd.api.types.infer_dtype(cells, skipna=True) not in ("string", "empty"):
        return False
    known = [text for text in cells.dropna().unique() if text.strip()]
    separator = _find_among(known, wanted)
    try:
        found = {name for text in known for name in split_cell(text, separator)} - {NOTHING}
    except ComesError:
        return False
    return len(found) > 1 and found <= wanted


def _drop_quotes(name: str) -> str:
    """Return a name without quotes around it."""
    found = QUOTED.fullmatch(name) if name[:1] in ("'", '"') else None
    return name if found is None else (found[1] or found[2]).strip()


def _find_among(texts: Sequence[str], wanted: set[str]) -> str:
    """Return what splits cells into wanted names, or most of their parts; the usual one first."""
    if any(BRACKETS.fullmatch(text) for text in texts) and not wanted >= set(texts):
        return LIST
    shares = {
        separator: _share_known(texts, separator, wanted)
        for separator in (SEPARATOR, *OTHERS, SPACE)
    }
    return max(shares, key=lambda separator: shares[separator])


def _share_known(texts: Sequence[str], separator: str, wanted: set[str]) -> float:
    """Return how many of the parts of cells are wanted names, of all parts."""
    parts = [name for text in texts for name in split_cell(text, separator)]
    return sum(name in wanted for name in parts) / max(len(parts), 1)


def _is_clear(texts: Sequence[str], separator: str) -> bool:
    """Return whether names that are split so stand in several cells, in more than one form."""
    split = [split_cell(text, separator) for text in texts]
    count = Counter(name for names in split for name in set(names))
    n_shared = sum(number > 1 for number in count.values())
    if not n_shared or _is_one_form(split):
        return False
    return len(count) <= len(texts) or 2 * n_shared >= len(count)


def _are_combined(texts: Sequence[str], separator: str) -> bool:
    """Return whether cells are combinations of half as many names, each of which comes back."""
    split = [split_cell(text, separator) for text in texts]
    count = Counter(name for names in split for name in set(names))
    comes_back = all(number > 1 for number in count.values())
    return comes_back and 2 * len(count) <= len(texts) and not _is_one_form(split)


def _is_one_form(split: Sequence[Sequence[str]]) -> bool:
    """Return whether all cells have as many parts, and none of them stands in two places."""
    if len({len(names) for names in split}) > 1:
        return False
    places = [set(place) for place in zip(*split, strict=True)]
    return sum(map(len, places)) == len(set().union(*places))


def _find_shared(texts: Sequence[str], separator: str) -> str | None:
    """Return a name that different cells share, if they are split so; else None."""
    split = [set(split_cell(text, separator)) for text in texts]
    count = Counter(name for names in split for name in names)
    return next((n for names in split if len(names) > 1 for n in names if count[n] > 1), None)


def _choose_spaces(texts: Sequence[str], n_cells: int) -> str:
    """Return whether cells are single names or words; raise if they seem to be neither."""
    most = max(FEW, LARGE_SHARE * n_cells)
    split = [text.split() for text in texts]
    count = Counter(word for words in split for word in words)
    are_words = len(count) < len(texts) and all(number > 1 for number in count.values())
    is_prose = any(len(set(words)) < len(words) for words in split) or any(map(PROSE.search, count))
    if are_words and not is_prose and not _is_one_form(split):
        if len(count) <= min(most, len(texts) / 2) and not _find_pair(split):
            return SPACE
        raise _make_question(texts, SPACE)
    if len(texts) > most:
        raise ComesError(
            f"{len(texts)} labels stand in {n_cells} cells of label names, never two in one cell "
            f"(such as {_shorten(texts[0])}). What separates the names? Say so (separator; "
            f"--separator on the command line), or that each cell is one name (--separator "
            f"{SEPARATOR!r})."
        )
    return SEPARATOR


def _find_pair(split: Sequence[Sequence[str]]) -> tuple[str, str] | None:
    """Return two words that only stand beside each other, as in "Thai food"; else None."""
    count = Counter(word for words in split for word in words)
    pairs = Counter(pair for words in split for pair in pairwise(words))
    return next((p for p, n in pairs.items() if n > 1 and count[p[0]] == count[p[1]] == n), None)


def _make_question(texts: Sequence[str], separator: str) -> ComesError:
    """Return an error that asks whether this is the separator."""
    shared = _find_shared(texts, separator)
    example = next((t for t in texts if shared in split_cell(t, separator)), texts[0])
    name = {"\t": "tab", "\n": "newline", SPACE: "space"}.get(separator, separator)
    return ComesError(
        f"is {name!r} between label names, or a part of them? {shared!r} stands in several cells, "
        f"such as {_shorten(example)}. Say which (separator; --separator {name!r} on the command "
        f"line, or --separator {SEPARATOR!r} if each cell is one name)."
    )


def _shorten(text: str, most: int = 60) -> str:
    return repr(text if len(text) <= most else text[: most - 3] + "...")


def _read_list(text: str) -> list[str]:
    """Return the names in a list that is written as text."""
    text = text.strip()
    error = ComesError(
        f"expected a list of label names, such as ['sky', 'sea']; got {_shorten(text)}. Write all "
        "cells in one form."
    )
    if not BRACKETS.fullmatch(text) or NO_COMMAS.search(text):
        raise error
    names: Any
    try:
        names = json.loads(text)
    except ValueError:
        try:
            names = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            if re.search(r"['\"\[\]{}]", text[1:-1]):
                raise error from None
            names = text[1:-1].split(",")  # without quotes
    if isinstance(names, dict) and not names:
        names = []
    if not isinstance(names, (list, tuple, set)) or not all(
        isinstance(name, (str, int, float)) and not isinstance(name, bool) for name in names
    ):
        raise error
    return [stripped for name in names if (stripped := str(name).strip())]
