"""Columns of a table that give the labels away: cells of label names that nobody asked to use."""

from collections.abc import Collection, Sequence
from warnings import warn

import pandas as pd

from comes.datasets.separators import are_all_names
from comes.errors import ComesWarning, listed


def find_telling(
    table: pd.DataFrame, features: Sequence[str], label_names: Collection[str]
) -> list[str]:
    """Return the columns whose every cell holds label names, two of them at least.

    Parameters
    ----------
    table : DataFrame
    features : sequence of str
        Columns that would become features.
    label_names : collection of str

    Examples
    --------
    >>> table = pd.DataFrame({"truth": ["sea; sky", None, "sky"], "place": ["sea", "hill", "sea"]})
    >>> find_telling(table, ["truth", "place"], ["sea", "sky"])
    ['truth']
    """
    words = [name for name in features if not pd.api.types.is_numeric_dtype(table[name].dtype)]
    return [name for name in words if are_all_names(table[name], set(label_names))]


def warn_of_telling(names: Sequence[str]) -> None:
    """Warn that columns were left out, and say how to use them."""
    if names:
        held = "holds" if len(names) == 1 else "hold"
        which = f"column {names[0]!r}" if len(names) == 1 else f"columns {listed(names)}"
        warn(
            f"{which} {held} nothing but label names, which would give the labels away, and is no "
            f"feature. To judge with it, name it as the truth (--relevant {names[0]}); to learn "
            f"from it all the same, say what it is (--category {names[0]}).",
            ComesWarning,
            stacklevel=2,
        )
