"""Names of labels that differ in case, blanks or the way a letter is written alone."""

import unicodedata
from collections.abc import Sequence
from warnings import warn

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.errors import ComesWarning, listed


def find_similar(names: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Return which names differ from another in case or blanks alone, (n_labels,)."""
    plain = ["".join(unicodedata.normalize("NFKC", name).casefold().split()) for name in names]
    return np.asarray(pd.Series(plain, dtype=object).duplicated(keep=False), dtype=bool)


def warn_of_similar(names: Sequence[str]) -> None:
    """Warn if what may be one label has two names, each of which is learned on its own."""
    similar = [name for name, hit in zip(names, find_similar(names), strict=True) if hit]
    if similar:
        similar.sort(key=str.casefold)
        warn(
            f"{len(similar)} labels differ from another in case or blanks alone: {listed(similar)}."
            " They are learned as different labels. If they are the same, correct the file.",
            ComesWarning,
            stacklevel=2,
        )
