"""Rounds of questions that a model draws: train on the answers so far, score what is open, draw.

These jobs run in a process of their own, beside the server; it notices the new cards.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from comes.annotate import (
    Project,
    add_active_cards,
    count_new_answers,
    count_rounds,
    find_open_pairs,
    open_project,
)
from comes.answers import AnswerRates
from comes.answers.questions import draw_questions, expected_bits
from comes.datasets import Dataset, ReadOptions
from comes.errors import ComesError
from comes.jobs.fit_jobs import fit_model
from comes.jobs.fitted_models import Classifier, as_model, score_dataset
from comes.jobs.project_data import read_project
from comes.jobs.question_jobs import rates_of_people

AUTO = "auto"  # a model trained on the answers of the project
UNKNOWN = 0.5  # relevance of a class that the model does not know: every answer tells as much


class ActiveRound(NamedTuple):
    """A round of questions that a model drew.

    Examples
    --------
    >>> ActiveRound(2, 400, 200, 0.31, 12.5).cards
    200
    """

    round: int
    answers: int  # that the model learned from
    cards: int
    bits: float  # that an answer is expected to tell, on average
    seconds: float


def draw_round(
    project: Project | str | Path,
    count: int,
    *,
    model: Classifier | str | Path = AUTO,
    features: str | Path | None = None,
    floor: float = 0.2,
    settings: dict[str, Any] | None = None,
    seed: int = 0,
) -> ActiveRound:
    r"""Draw questions with known probabilities, more of those whose answers tell much.

    Parameters
    ----------
    project : Project, or the folder of one
        With answers.
    count : int
        How many questions.
    model : classifier, folder of one, or "auto"
        "auto" trains one on the answers of the project, by likelihood.
    features : path, optional
        Features of the items, to train on in place of the texts or images.
    floor : float
        Share of the questions that is drawn as if there were no model, in (0, 1].
    settings : dict, optional
        Of the classifier that is trained.
    seed : int
        Of the draw and of the training. The same answers and seed draw the same questions.

    Returns
    -------
    drawn : ActiveRound

    Examples
    --------
    >>> import tempfile
    >>> from comes.annotate import create_project, import_answers
    >>> home = Path(tempfile.mkdtemp())
    >>> lines = [f"{k},{'rain' if k % 2 else 'goal'} {k}" for k in range(40)]
    >>> _ = (home / "texts.csv").write_text("item,text\n" + "\n".join(lines))
    >>> _ = (home / "classes.txt").write_text("weather\n")
    >>> project = create_project(home / "news", home / "texts.csv", home / "classes.txt", rate=0.5)
    >>> said = [f"{k},weather,{'yes' if k % 2 else 'no'}" for k in range(20)]
    >>> _ = (home / "said.csv").write_text("item,label,answer\n" + "\n".join(said))
    >>> _ = import_answers(project, home / "said.csv")
    >>> import warnings
    >>> warnings.simplefilter("ignore")  # so few answers teach little
    >>> drawn = draw_round(project, 5, settings={"epochs": 1})
    >>> drawn.cards, drawn.answers
    (5, 20)
    >>> project.engine.dispose()
    """
    started, learned_at = time.perf_counter(), time.time()
    project = open_project(project) if isinstance(project, str | Path) else project
    is_open = find_open_pairs(project)
    if not is_open.any():
        raise ComesError("nothing is left to ask: every pair has a question.")
    reading = None if features is None else ReadOptions(features=features)
    if isinstance(model, str) and model == AUTO:
        chosen = {"random_state": seed, "progress": False} | (settings or {})
        fitted = fit_model(project.folder, chosen, reading=reading)
        if fitted.history.interrupted:
            raise KeyboardInterrupt  # half a training draws nothing
        classifier, dataset = fitted.classifier, fitted.dataset
    else:
        classifier, dataset = as_model(model), read_project(project.folder, reading)
    eta, rates = score_pairs(project, classifier, dataset)
    drawn = draw_questions(eta, count, is_open=is_open, rates=rates, floor=floor, seed=seed)
    number = add_active_cards(project, drawn, eta, rates, seed=seed, learned_at=learned_at)
    bits = expected_bits(eta, rates)[drawn.row, drawn.label]
    n_answers = int((dataset.known_answers().codes != 0).sum())
    seconds = time.perf_counter() - started
    return ActiveRound(number, n_answers, len(drawn.row), float(bits.mean()), seconds)


def score_pairs(
    project: Project, classifier: Classifier, dataset: Dataset
) -> tuple[npt.NDArray[np.float64], AnswerRates | None]:
    """Return how relevant each class is to each item, (n_items, n_classes), and people's rates."""
    scores = score_dataset(classifier, dataset)
    found = np.asarray(classifier.squash_scores(scores), dtype=np.float64)
    names, known = project.class_names, list(classifier.label_names_)
    row_of = {name: row for row, name in enumerate(dataset.items or [])}
    rows = [row_of.get(name, -1) for name in project.item_names]
    columns = [known.index(name) if name in known else -1 for name in names]
    if max(columns, default=-1) < 0 or max(rows, default=-1) < 0:
        raise ComesError(
            "the model knows none of the project's classes, or none of its items. Train it on this "
            "project: comes fit PROJECT -o model/."
        )
    eta = found[np.ix_(rows, columns)]
    eta[np.array(rows) < 0] = UNKNOWN
    eta[:, np.array(columns) < 0] = UNKNOWN
    rates = rates_of_people(classifier, None)
    if rates is None:
        return eta, None
    a, b = (
        np.where(np.array(columns) < 0, 1.0, own[columns])
        for own in (rates.no_rate, rates.yes_rate)
    )
    return eta, AnswerRates(a, b, rates.mistake_rate)


def learn_in_rounds(
    project: Project | str | Path,
    every: int = 200,
    *,
    rounds: int | None = None,
    wait: float = 2.0,
    on_round: Callable[[ActiveRound], None] = lambda drawn: None,
    on_wait: Callable[[int], None] = lambda missing: None,
    seed: int = 0,
    **options: Any,
) -> list[ActiveRound]:
    """Draw a round of questions whenever so many new answers are there, until it is interrupted.

    What was learned lies in the project, so a loop that was interrupted goes on where it was.

    Parameters
    ----------
    project : Project, or the folder of one
    every : int
        New answers before each round, and questions in it.
    rounds : int, optional
        How many rounds; by default until it is interrupted, or nothing is left to ask.
    wait : float
        Seconds between two looks for new answers.
    on_round : callable (drawn) -> None
        Called after each round.
    on_wait : callable (missing) -> None
        Called when a round must wait, with how many answers are missing.
    seed : int
        Of the first round; every round adds its number.
    **options
        As in `draw_round`: model, features, floor, settings.

    Returns
    -------
    drawn : list of ActiveRound

    Examples
    --------
    >>> learn_in_rounds("news", every=200)  # doctest: +SKIP
    """
    if every < 1:
        raise ComesError(f"every must be 1 or more answers; got {every}.")
    project = open_project(project) if isinstance(project, str | Path) else project
    done: list[ActiveRound] = []
    while rounds is None or len(done) < rounds:
        missing = every - count_new_answers(project)
        if missing > 0:
            on_wait(missing)
        while missing > 0:
            time.sleep(wait)
            missing = every - count_new_answers(project)
        if not find_open_pairs(project).any():
            break
        done.append(draw_round(project, every, seed=seed + count_rounds(project), **options))
        on_round(done[-1])
    return done
