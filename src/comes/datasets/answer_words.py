"""The words of answers: no, yes, maybe and not asked, and what other words mean.

`NO`, `YES`, `MAYBE` and `NOT_ASKED` are the words of the states.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.answers import State
from comes.errors import ComesError, listed

Codes = npt.NDArray[np.int8]

STATES = NO, YES, MAYBE, NOT_ASKED = tuple(
    state.word for state in (State.NO, State.YES, State.MAYBE, State.NOT_ASKED)
)
# Annotation tools accept what may be there: only those who ask for it know that it is a yes.
WORDS = {
    **dict.fromkeys(("no", "surely not", "reject"), NO),
    **dict.fromkeys(("yes",), YES),
    **dict.fromkeys(("maybe", "accept"), MAYBE),
    **dict.fromkeys(("not asked", "", "skip", "ignore"), NOT_ASKED),
}
ADVICE = "words; --answers 1=yes,0=no,-1=maybe on the command line"


def as_states(cells: "pd.Series[Any]", place: str, words: Mapping[str, str] | None = None) -> Codes:
    """Return the `State` number that each cell says, (n,); raise at the first unknown word."""
    codes, found = pd.factorize(cells, use_na_sentinel=False)
    texts = [as_text(cell).strip() for cell in found]
    states = [_find_state(text, words) for text in texts]
    unknown = np.array([state is None for state in states], dtype=bool)
    if unknown.any():
        row = int(unknown[codes].argmax())
        known = STATES[:-1] if words is None else sorted(words)
        raise ComesError(
            f"{place} has the answer {texts[codes[row]]!r} at row {row}; "
            f"expected {listed([word for word in known if word])} or nothing (not asked). Say "
            f"what other words mean ({ADVICE})."
        )
    return np.array([State.of_word(state or NOT_ASKED) for state in states], np.int8)[codes]


def _find_state(text: str, words: Mapping[str, str] | None) -> str | None:
    """Return what a word says; a number means the same however it is written, 0 or 0.0."""
    if words is None:
        return WORDS.get(text.lower())
    if text in words or not text:
        return words.get(text, NOT_ASKED)
    try:
        return {float(word): state for word, state in words.items()}.get(float(text))
    except ValueError:
        return None


def as_text(cell: Any) -> str:
    """Return a cell as a person would write it: 3.0 in a column with gaps is 3, a gap is "".

    Examples
    --------
    >>> as_text(3.0), as_text(float("nan"))
    ('3', '')
    """
    if pd.isna(cell):
        return ""
    return f"{cell:.15g}" if isinstance(cell, float) else str(cell)


def as_texts(cells: "pd.Series[Any]") -> npt.NDArray[Any]:
    """Return cells as text, each distinct one converted once."""
    codes, found = pd.factorize(cells, use_na_sentinel=False)
    return np.array([as_text(cell) for cell in found], dtype=object)[codes]
