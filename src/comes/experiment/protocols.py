"""What a method sees of what was drawn, and what it is told of the rates."""

from dataclasses import asdict, replace

import numpy as np
import numpy.typing as npt

from comes.answers import Answers, State
from comes.answers.convert import BoolMatrix
from comes.datasets import Dataset
from comes.datasets.dataset import take_rows
from comes.errors import ComesError
from comes.generation import generate, simulate_answers
from comes.results import AnswerSpec, DataSpec, Sees, TaskSpec

Rows = npt.NDArray[np.intp]
PAPER_EXCLUDE_RATE = 0.1  # of the cases that have a rate, where none is given


def draw_labels(spec: TaskSpec, dataset: Dataset, rows: Rows, seed: int) -> BoolMatrix | Answers:
    """Return what a method sees of the labels, (n_samples, n_labels); drawn for these rows."""
    if spec.sees == "truth":  # all that is irrelevant is excluded
        return _place(dataset.known_relevant()[rows], rows, len(dataset))
    if spec.data.case is not None:
        relevant = dataset.known_relevant()[rows]
        X = take_rows(dataset.X, rows) if spec.data.case == "instance" else None
        drawn = generate(spec.data.case, relevant, X, rate=spec.data.rate, seed=seed)
        return _place(drawn, rows, len(dataset))
    if spec.data.answers is not None:
        return _show(_draw_answers(spec.data.answers, dataset, rows, seed), spec.sees)
    if spec.sees in ("all", "no_maybe"):
        return _show(_known_answers(dataset, spec.data.name), spec.sees)
    assert dataset.candidates is not None
    return dataset.candidates


def true_rates(spec: TaskSpec) -> dict[str, float]:
    """Return the settings of a classifier that say at which rates its labels were drawn."""
    if spec.sees == "truth":
        return {"exclude_rate": 1.0}
    answers = spec.data.answers
    if answers is None:
        return {"exclude_rate": _exclude_rate_of(spec.data)}
    if answers.people is not None:
        raise ComesError("people have their own rates, which are estimated; got answer_rates true.")
    if spec.sees == "candidates":
        return {"exclude_rate": answers.asked_rate * answers.no_rate}
    yes_rate = 0.0 if spec.sees == "no_maybe" else answers.yes_rate
    return {"no_rate": answers.no_rate, "yes_rate": yes_rate}


def _place(drawn: BoolMatrix, rows: Rows, n: int) -> BoolMatrix:
    """Return candidates of n rows, of which only these exclude anything."""
    candidates = np.ones((n, drawn.shape[1]), dtype=bool)
    candidates[rows] = drawn
    return candidates


def _draw_answers(spec: AnswerSpec, dataset: Dataset, rows: Rows, seed: int) -> Answers:
    """Return answers about these rows, with nobody asked about the others."""
    given = {name: value for name, value in asdict(spec).items() if value is not None}
    X = take_rows(dataset.X, rows) if spec.doubt_strength or spec.asked_strength else None
    relevant = dataset.known_relevant()
    drawn = simulate_answers(relevant[rows], X, **given, seed=seed)
    if drawn.annotations is not None:
        return Answers.from_long(
            replace(drawn.annotations, row=rows[drawn.annotations.row]), relevant.shape
        )
    codes = np.zeros(relevant.shape, dtype=np.int8)
    codes[rows] = drawn.codes
    return Answers.from_codes(codes)


def _show(answers: Answers, sees: Sees | None) -> BoolMatrix | Answers:
    """Return what a method sees: all, yes as maybe, or what is still possible."""
    if sees == "candidates":
        return answers.candidates
    if sees == "all":
        return answers
    if answers.annotations is not None:
        said = replace(answers.annotations, code=_hide_yes(answers.annotations.code))
        return Answers.from_long(said, answers.shape, answers.label_names, chosen=answers.chosen)
    codes = _hide_yes(answers.codes)
    return Answers.from_codes(codes, label_names=answers.label_names, chosen=answers.chosen)


def _hide_yes(codes: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    return np.where(codes == State.YES, np.int8(State.MAYBE), codes)


def _known_answers(dataset: Dataset, name: str) -> Answers:
    """Return the data set's own answers, where it is known who was asked."""
    if dataset.answers is None or dataset.answers.kind != "answers":
        raise ComesError(f"{name} does not say who was asked; let methods see candidates.")
    return dataset.answers


def _exclude_rate_of(data: DataSpec) -> float:
    """Return the rate at which a case excludes irrelevant labels."""
    if data.case is None or data.case in ("one", "size"):
        raise ComesError(
            f"the exclude rate of {data.name} is not known; got answer_rates true. Leave it out."
        )
    if data.rate is None:
        return PAPER_EXCLUDE_RATE
    return 1 - data.rate if data.case == "a" else data.rate
