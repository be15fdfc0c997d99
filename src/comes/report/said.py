"""What was asked and said about the pictures of a page: words by pair, counts by label."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from comes.answers import Answers, State
from comes.errors import ComesError

Counts = npt.NDArray[np.int64]

# How a page writes a state, by kind of answers: where only candidates or ticks are known, silence
# is no answer.
WORDS = {
    "answers": {state: state.word for state in State},
    "candidates": {state: "surely not" if state == State.NO else "candidate" for state in State},
    "positives": {state: "ticked" if state == State.YES else "not ticked" for state in State},
}
# What the rates of "no" and of "yes" are called.
RATES = {
    "answers": {"no": "no rate", "yes": "yes rate"},
    "candidates": {"no": "exclude rate"},
    "positives": {"yes": "tick rate"},
}


class Agreement(NamedTuple):
    """How far people agree about pairs that several of them answered, by label."""

    n_several: Counts  # (q,)
    n_disputed: Counts  # (q,)


def say_pairs(answers: Answers, row: int) -> list[tuple[str, str]]:
    """Return, for every label of a row, what was said, and how many said what if they disagree."""
    words = [WORDS[answers.kind][State(code)] for code in answers.codes[row]]
    voices = [""] * len(words)
    if answers.annotations is not None:
        own = answers.annotations.row == row
        heard: dict[int, Counter[State]] = {}
        for label, code in zip(
            answers.annotations.label[own], answers.annotations.code[own], strict=True
        ):
            heard.setdefault(int(label), Counter())[State(code)] += 1
        for label, counts in heard.items():
            if len(counts) > 1:
                voices[label] = ", ".join(
                    f"{counts[state]} {state.word}" for state in sorted(counts)
                )
    return list(zip(words, voices, strict=True))


def find_agreement(answers: Answers) -> Agreement | None:
    """Return how far people agree; None if no pair has several answers."""
    if answers.annotations is None:
        return None
    q = answers.shape[1]
    pair, place = np.unique(
        answers.annotations.row * q + answers.annotations.label, return_inverse=True
    )
    several = np.bincount(place, minlength=len(pair)) > 1
    lowest = np.full(len(pair), np.iinfo(np.int8).max, dtype=np.int8)
    highest = np.zeros(len(pair), dtype=np.int8)
    np.minimum.at(lowest, place, answers.annotations.code)
    np.maximum.at(highest, place, answers.annotations.code)
    label = pair % q
    if not several.any():
        return None
    return Agreement(
        np.bincount(label[several], minlength=q),
        np.bincount(label[lowest != highest], minlength=q),
    )


def count_answers(answers: Answers, rates: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return columns about what was said of every label, and the rates that a model found."""
    columns: dict[str, Any] = {}
    if answers.kind == "answers":
        counts = answers.count()
        columns = {name: counts[name] for name in ("asked", "no", "maybe", "yes")}
        agreement = find_agreement(answers)
        if agreement is not None:
            of_several = zip(agreement.n_disputed, agreement.n_several, strict=True)
            columns["disagree"] = [f"{k} of {n}" if n else "–" for k, n in of_several]
        if answers.chosen is not None and answers.chosen.any():
            columns["by model"] = (answers.chosen & (answers.codes != State.NOT_ASKED)).sum(axis=0)
    elif answers.kind == "candidates":
        columns["candidate"] = [f"{share:.1%}" for share in answers.candidates.mean(axis=0)]
    else:
        columns["ticked"] = answers.confirmed.sum(axis=0)
    for word, title in RATES[answers.kind].items():
        if rates.get(word) is not None:
            columns[title] = [f"{rate:.2f}" for rate in check_rates(rates[word], answers.shape[1])]
    return {name: [str(value) for value in values] for name, values in columns.items()}


def check_rates(rates: npt.ArrayLike, q: int) -> npt.NDArray[np.float64]:
    """Return one rate per label, or raise an error."""
    values = np.asarray(rates, dtype=float)
    if values.shape != (q,):
        raise ComesError(
            f"rates must hold a number for each of {q} labels; got shape {values.shape}. Pass "
            "no_rate_ and yes_rate_ of a fitted model."
        )
    return values


def summarise_answers(answers: Answers, item: str = "picture") -> str:
    """Return in a sentence or two how much was asked, and what was said."""
    n, q = answers.shape
    no, yes, maybe = (
        int((answers.codes == state).sum()) for state in (State.NO, State.YES, State.MAYBE)
    )
    if answers.kind == "candidates":
        return f"Of {n * q} pairs, {no} are surely not; who was asked is not known."
    if answers.kind == "positives":
        return f"Of {n * q} pairs, {yes} are ticked; nobody says no."
    asked = no + yes + maybe
    found = (
        f"Of {n * q} pairs of {item} and label {asked} were asked about: {no} no, {maybe} maybe, "
        f"{yes} yes. {n * q - asked} were not asked."
    )
    agreement = find_agreement(answers)
    if agreement is not None:
        found += (
            f" Several people answered about {agreement.n_several.sum()} pairs, and disagree about "
            f"{agreement.n_disputed.sum()} of them, {_count_disagreements(answers)} times yes "
            "against no."
        )
    return found


def _count_disagreements(answers: Answers) -> int:
    """Return about how many pairs somebody said yes and somebody no."""
    return (
        0 if answers.annotations is None else answers.annotations.count_disagreements(answers.shape)
    )
