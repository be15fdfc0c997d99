"""Rates that a user gives: whether they can be right, given the answers."""

from typing import Any

import numpy as np

from comes.answers import Answers, State
from comes.errors import ComesError
from comes.methods import Rates


def check_mistakes(found: Rates, label_names: list[str]) -> None:
    """Raise an error if mistakes would be as common as true answers about a label."""
    for name in ("no_rate", "yes_rate"):
        rate = getattr(found, name)
        if rate is None or not found.mistake_rate:
            continue
        wrong = np.flatnonzero((rate > 0) & (rate <= found.mistake_rate))
        if len(wrong):
            raise ComesError(
                f"mistake_rate must be below the {name} of every label; got "
                f"{found.mistake_rate:g}, and {rate[wrong[0]]:.3g} for label "
                f"{label_names[wrong[0]]!r}. Lower it."
            )


def check_rates(known: dict[str, Any], answers: Answers, label_names: list[str]) -> None:
    """Raise an error if a rate that is given says that an answer which was given cannot be."""
    for name, state in (("no_rate", State.NO), ("yes_rate", State.YES)):
        if name not in known:
            continue
        never = np.flatnonzero((known[name] == 0) & (answers.count_state(state) > 0))
        if len(never):
            raise ComesError(
                f"{name} must be above 0 where somebody said {state.word!r}; got 0 for label "
                f"{label_names[never[0]]!r}. Leave it out to have it estimated."
            )
