"""What separates the label names in a cell: inferred where it is clear, else asked for.

Splitting by it leaves names that come back in other cells, unlike the town in "Rome, Italy".
"""

import ast
import json
import re
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

import pandas as pd

from comes.errors import ComesError, warn_user

SEPARATOR, SPACE, LIST = ";", " ", "list"
USUAL = (SEPARATOR, ",", "|", "\t", "\n")
UNUSUAL = (*"/+&:#~*.-_", SPACE)  # that names have, too
WORDS = {"tab": "\t", "space": SPACE, "comma": ",", "bar": "|", "semicolon": ";", "newline": "\n"}
NOTHING = "(none)"
FEW_ROWS = 1000
FEW = 10  # so many labels may each be alone in their cell
LARGE_SHARE = 0.2  # of cells that hold one name, all of them different
BRACKETS = re.compile(r"\[.*\]|\{.*\}|\(['\"].*\)", re.DOTALL)
QUOTED = re.compile(r"^'([^']+)'$|^\"([^\"]+)\"$")
NO_COMMAS = re.compile(r"'\s+'|\"\s+\"")  # as numpy writes lists; Python would join the names

Split = Sequence[Sequence[str]]  # the names in every cell


def find_separator(
    columns: Sequence["pd.Series[Any]"], wanted: Collection[str] | None = None
) -> str:
    """Return what separates names in columns of labels; raise an error that asks if it is unclear.

    If all labels are known (wanted), what splits every cell into them is the separator.
    """
    texts = [cell.strip() for column in columns for cell in column if isinstance(cell, str)]
    cells: list[str] = [text for text in texts if text and text.lower() != NOTHING]
    texts = list(dict.fromkeys(cells))
    if wanted is not None:
        return _find_among(texts, set(wanted))
    if any(map(BRACKETS.fullmatch, texts)):
        return LIST
    splits = _split_by(texts, USUAL)
    clear = [separator for separator, split in splits.items() if _is_clear(split)]
    if SEPARATOR in clear or (SEPARATOR in splits and not clear):
        clear = [SEPARATOR]
    if len(clear) == 1:
        _refuse_another(splits[clear[0]], clear[0])
        return clear[0]
    unclear = clear or [separator for separator, split in splits.items() if _find_shared(split)]
    if not unclear:
        splits = _split_by(texts, UNUSUAL)
        unclear = [separator for separator, split in splits.items() if _are_combined(split)]
    most = max(FEW, LARGE_SHARE * len(cells))
    if unclear == [SPACE] and _are_words(splits[SPACE], most):
        return SPACE
    if unclear:
        name = {"\t": "tab", "\n": "newline", SPACE: "space"}.get(unclear[0], unclear[0])
        split = splits[unclear[0]]
        shared = _find_shared(split)
        example = next(t for t, names in zip(texts, split, strict=True) if shared in names)
        raise ComesError(
            f"is {name!r} between label names, or a part of them? {shared!r} stands in several "
            f"cells, such as {_shorten(example)}. Say which (separator; --separator {name!r} on "
            f"the command line, or --separator {SEPARATOR!r} if each cell is one name)."
        )
    if len(columns) == 1 and len(texts) > most:
        raise ComesError(
            f"{len(texts)} labels stand in {len(cells)} cells of label names, never two in one "
            f"cell (such as {_shorten(texts[0])}). What separates the names? Say so (separator; "
            "--separator on the command line), or that each cell is one name (--separator "
            f"{SEPARATOR!r})."
        )
    return SEPARATOR


def _split_by(texts: Sequence[str], separators: Sequence[str]) -> dict[str, Split]:
    """Return the names in cells that are split by each separator that stands in one."""
    present = (s for s in separators if any(s in text.strip(s) for text in texts))
    return {s: [split_cell(text, s) for text in texts] for s in present}


def _is_clear(split: Split) -> bool:
    """Return whether most names, or as few as there are cells, come back in cells of many forms."""
    count = Counter(name for names in split for name in set(names))
    n_shared = sum(number > 1 for number in count.values())
    are_few = len(count) <= len(split) or 2 * n_shared >= len(count)
    return n_shared > 0 and are_few and not _is_one_form(split)


def _are_combined(split: Split) -> bool:
    """Return whether cells are combinations of fewer names, all of which come back."""
    count = Counter(name for names in split for name in set(names))
    return len(count) < len(split) and min(count.values()) > 1 and not _is_one_form(split)


def _are_words(split: Split, most: float) -> bool:
    """Return whether words are few and none only stands beside another, as in "Thai food"."""
    cells: dict[str, set[int]] = {}
    for number, words in enumerate(split):
        for word in words:
            cells.setdefault(word, set()).add(number)
    are_apart = len(set(map(frozenset, cells.values()))) == len(cells)
    return are_apart and len(cells) <= min(most, len(split) / 2)


def _is_one_form(split: Split) -> bool:
    """Return whether all cells have as many parts, and none of them stands in two places."""
    if len({len(names) for names in split}) > 1:
        return False
    places = [set(place) for place in zip(*split, strict=True)]
    return sum(map(len, places)) == len(set().union(*places))


def _find_shared(split: Split) -> str | None:
    """Return a name that stands in several cells, in one of them beside others; else None."""
    count = Counter(name for names in split for name in set(names))
    return next((n for names in split if len(names) > 1 for n in names if count[n] > 1), None)


def _refuse_another(split: Split, separator: str) -> None:
    """Raise an error if another separator stands between names that other cells have."""
    names = {name for cell in split for name in cell}
    for name in sorted(names):
        for other in set(USUAL) - {separator}:
            parts = split_cell(name, other)
            if len(parts) > 1 and names.issuperset(parts):
                raise ComesError(
                    f"label names are separated by {separator!r} in some cells and by {other!r} in "
                    f"others, such as {name!r}. Write one of them everywhere, or give the right "
                    "one (--separator)."
                )


def _find_among(texts: Sequence[str], wanted: set[str]) -> str:
    """Return what splits cells into wanted names, or most of their parts; the usual one first."""
    if any(map(BRACKETS.fullmatch, texts)) and not wanted >= set(texts):
        return LIST
    shares = {}
    for separator in (*USUAL, SPACE):
        names = [name for text in texts for name in split_cell(text, separator)]
        shares[separator] = sum(name in wanted for name in names) / max(len(names), 1)
    return max(shares, key=lambda separator: shares[separator])


def are_all_names(cells: "pd.Series[Any]", wanted: set[str]) -> bool:
    """Return whether cells hold at least two of the wanted names, and nothing else."""
    if pd.api.types.infer_dtype(cells, skipna=True) not in ("string", "empty"):
        return False
    names = set[str]()
    for part in (cells.iloc[:FEW_ROWS], cells):  # most columns need not be looked at any further
        texts = [text for text in part.dropna().unique() if text.strip()]
        separator = _find_among(texts, wanted)
        try:
            names = {name for text in texts for name in split_cell(text, separator)} - {NOTHING}
        except ComesError:
            return False
        if not names <= wanted:
            return False
    return len(names) > 1


def check_separator(separator: str, columns: Sequence["pd.Series[Any]"]) -> None:
    """Raise or warn if the separator that the user gave does not occur in columns of names."""
    if not columns:
        raise ComesError(
            f"separator {separator!r} is for a column of label names; here every label has a "
            "column of its own. Leave it out."
        )
    cells = [cell for column in columns for cell in column.unique() if isinstance(cell, str)]
    is_usual = separator in (LIST, SEPARATOR)  # the latter is what a question advises
    if not is_usual and cells and not any(WORDS.get(separator, separator) in c for c in cells):
        warn_user(
            f"no cell has the separator {separator!r}: every cell is one label, such as "
            f"{cells[0]!r}. Is it the right one?"
        )


def split_cell(text: str, separator: str | None) -> list[str]:
    """Return the names in a cell of text, without blanks and quotes around them."""
    if text.strip().lower() == NOTHING:
        return [NOTHING]
    if separator == LIST:
        return _read_list(text) if text.strip() else []
    separator = WORDS.get(separator or SEPARATOR, separator or SEPARATOR)
    names = [part.strip() for part in text.split(separator)]
    if "'" in text or '"' in text:
        names = [QUOTED.sub(r"\1\2", name).strip() for name in names]
    return [name for name in names if name]


def _read_list(text: str) -> list[str]:
    """Return the names in a list that is written as text."""
    names: Any = None
    text = text.strip()
    for parse in (ast.literal_eval, json.loads):
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            names = parse(text)
    if names is None and not re.search(r"['\"\[\]{}]", text[1:-1]):
        names = text[1:-1].split(",")  # without quotes
    is_list = isinstance(names, (list, tuple, set)) or names == {}
    are_names = is_list and all(type(name) in (str, int, float) for name in names)
    if not are_names or not BRACKETS.fullmatch(text) or NO_COMMAS.search(text):
        raise ComesError(
            f"expected a list of label names, such as ['sky', 'sea']; got {_shorten(text)}. Write "
            "all cells in one form."
        )
    return [stripped for name in names if (stripped := str(name).strip())]


def _shorten(text: str, most: int = 60) -> str:
    return repr(text if len(text) <= most else text[: most - 3] + "...")
