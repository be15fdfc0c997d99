"""Label names in a cell that something else separates than expected."""

from collections import Counter
from collections.abc import Sequence
from typing import Any
from warnings import warn

import pandas as pd

from comes.errors import ComesError, ComesWarning

SEPARATOR = ";"
OTHERS = (",", "|", "\t")
FEW = 10  # so many labels may each be alone in their cell
LARGE_SHARE = 0.2  # of cells that hold one name, all of them different


def check_separator(columns: Sequence["pd.Series[Any]"]) -> None:
    """Raise or warn if columns of label names seem to have another separator than ``;``.

    A comma, a bar or a tab is one if no cell has a ``;``, and something between two of them occurs
    in different cells. A name of its own in most cells of a column deserves a warning.
    """
    cells = [[c.strip() for c in column if isinstance(c, str) and c.strip()] for column in columns]
    texts = [text for column in cells for text in column]
    if any(SEPARATOR in text for text in texts):
        return
    distinct = list(dict.fromkeys(texts))
    lists = [text for text in distinct if text.startswith("[") and text.endswith("]")]
    if lists:
        raise ComesError(
            f"a cell of label names holds a list written as text, {lists[0]!r}; expected names "
            "such as 'apple;plate'. Write them so, or as lists in a parquet file."
        )
    for other in OTHERS:
        if found := _find_shared_name(distinct, other):
            raise ComesError(
                f"label names are separated by {SEPARATOR!r}, which no cell has; {found!r} stands "
                f"beside {other!r} in several cells. Say what separates them (separator; "
                f"--separator {other!r} on the command line), or that it is {SEPARATOR!r}."
            )
    if len(columns) == 1 and len(distinct) > max(FEW, LARGE_SHARE * len(texts)):
        warn(
            f"{len(distinct)} labels stand in {len(texts)} cells of label names, never two in one "
            f"cell. If something else than {SEPARATOR!r} separates them, say so (separator; "
            "--separator on the command line).",
            ComesWarning,
            stacklevel=2,
        )


def _find_shared_name(texts: Sequence[str], separator: str) -> str | None:
    """Return a name that different cells share, if they are split so; else None."""
    count = Counter(
        name for text in texts for name in {part.strip() for part in text.split(separator)} if name
    )
    split = {part.strip() for text in texts if separator in text for part in text.split(separator)}
    return next((name for name in count if name in split and count[name] > 1), None)
