"""What to ask next: pairs of item and label, for ``comes annotate add --cards``."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.answers import AnswerRates, Answers, State, choose_questions
from comes.datasets import Dataset, ReadOptions, open_dataset
from comes.errors import ComesError, listed
from comes.jobs.fitted_models import Classifier


def read_asked(
    asked: Dataset | str | Path | None, label_names: Sequence[str], items: Sequence[str] | None
) -> Answers | None:
    """Return what was said already about these items, (n_items, n_labels); None if not given.

    What was said about other items is left out.
    """
    if items is None:
        raise ComesError(
            "questions name their items, and these have no names. Add a column 'item' to the data."
        )
    if asked is None:
        return None
    if isinstance(asked, Dataset):
        said = asked.align_labels(label_names)
    else:
        said = _open_asked(asked, list(label_names))
    if said.items is None:
        raise ComesError(
            "what was asked is matched by the names of the items, and the answers have none. Give "
            "the table that 'comes annotate export' wrote."
        )
    place = {name: row for row, name in enumerate(said.items)}
    known = [row for row, name in enumerate(items) if name in place]
    if not known:
        raise ComesError(
            f"none of the items was asked about: the answers are about {listed(said.items, 3)}, "
            f"the items are {listed(items, 3)}. Name both in the same way."
        )
    answers = said.known_answers()
    codes = np.full((len(items), len(label_names)), State.NOT_ASKED, dtype=np.int8)
    codes[known] = answers.codes[[place[items[row]] for row in known]]
    return Answers.from_codes(codes, answers.kind, label_names)


def _open_asked(asked: str | Path, label_names: list[str]) -> Dataset:
    """Return answers from a file: one row per answer, or a column for each label of the model."""
    try:
        return open_dataset(asked, ReadOptions(label_names=label_names))
    except ComesError:
        try:
            return open_dataset(asked, ReadOptions(labels=label_names))
        except ComesError:
            pass  # the first error says more
        raise


def ask_next(
    classifier: Classifier,
    scores: npt.NDArray[np.floating],
    items: Sequence[str],
    count: int,
    asked: Answers | None,
) -> pd.DataFrame:
    """Return a table of the pairs whose answers are expected to tell most."""
    probabilities = classifier.squash_scores(scores)
    questions = choose_questions(
        probabilities, count, answers=asked, rates=rates_of_people(classifier, asked)
    )
    if not len(questions.row):
        raise ComesError("nothing is left to ask: there is an answer about every pair.")
    return pd.DataFrame(
        {
            "item": [items[row] for row in questions.row],
            "label": [classifier.label_names_[label] for label in questions.label],
            "probability": probabilities[questions.row, questions.label].round(4),
            "bits": questions.bits.round(4),
        }
    )


def rates_of_people(classifier: Classifier, asked: Answers | None) -> AnswerRates | None:
    """Return how often people dare to answer, if the model learned it from answers of people.

    Rates of candidates and of ticked labels are not those of somebody who is asked: one of the two
    is 0 everywhere.
    """
    a, b = classifier.no_rate_, classifier.yes_rate_
    if a is None or b is None:
        return None
    is_of_people = a.any() and b.any() if asked is None else asked.kind == "answers"
    if not is_of_people:
        return None
    return AnswerRates(a, b, classifier.rates_.mistake_rate)
