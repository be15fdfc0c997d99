"""Annotation projects: report what was answered, and draw questions with a model."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.annotate.exchange import collect_answers
from comes.annotate.grow import (
    add_active_cards,
    count_new_answers,
    count_rounds,
    estimate_shares,
    find_open_pairs,
    set_hints,
)
from comes.annotate.project import Project
from comes.annotate.summary import Summary, summarise
from comes.annotate.web.lead import describe_summary, write_overview
from comes.answers import AnswerRates
from comes.answers.questions import draw_questions, expected_bits
from comes.datasets import Dataset, ReadOptions, join_features, read_features
from comes.errors import ComesError
from comes.files import check_file_target, refuse_inputs
from comes.workflows.data import read_project
from comes.workflows.fit import fit_model
from comes.workflows.predict import Classifier, as_model, rates_of_people, score_dataset

AUTO = "auto"  # a model trained on the answers of the project
UNKNOWN = 0.5  # relevance of a class that the model does not know: every answer tells as much


def report_project(
    project: Project,
    output: str | Path | None = None,
    *,
    features: str | Path | None = None,
    seed: int = 0,
) -> tuple[Summary, dict[str, Any]]:
    """Return the summary of a project, and the same with shares and priors as a dict for json."""
    if output is not None:
        if Path(output).suffix.lower() not in (".html", ".htm"):
            raise ComesError(f"{output} should end in .html; a page is written there.")
        check_file_target(output)
        refuse_inputs(output, features)
    priors = None
    if features is not None:
        from comes.workflows.priors import estimate_priors

        found = read_features(features)
        priors = estimate_priors(join_features(collect_answers(project), *found), seed=seed)
    if output is None:
        summary = summarise(project)
    else:
        summary = write_overview(project, output, priors=priors)
    shares = estimate_shares(project).to_dict("records")
    return summary, describe_summary(summary, priors) | {"shares": shares}


def draw_round(
    project: Project,
    count: int,
    *,
    model: Classifier | str | Path = AUTO,
    features: str | Path | None = None,
    settings: dict[str, Any] | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Draw questions with known probabilities, more of those whose answers tell much."""
    started, learned_at = time.perf_counter(), time.time()
    is_open = find_open_pairs(project)
    if not is_open.any():
        raise ComesError("nothing is left to ask: every pair has a question.")
    classifier, dataset = _find_model(project, model, features, settings, seed)
    eta, rates = score_pairs(project, classifier, dataset)
    drawn = draw_questions(eta, count, is_open=is_open, rates=rates, seed=seed)
    number = add_active_cards(project, drawn, eta, rates, seed=seed, learned_at=learned_at)
    bits = expected_bits(eta, rates)[drawn.row, drawn.label]
    return {
        "round": number,
        "learned_from": int((dataset.known_answers().codes != 0).sum()),
        "cards_added": len(drawn.row),
        "bits_per_answer": round(float(bits.mean()), 3),
        "seconds": round(time.perf_counter() - started, 1),
    }


def draw_hints(
    project: Project,
    *,
    model: Classifier | str | Path = AUTO,
    features: str | Path | None = None,
    settings: dict[str, Any] | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Show on open cards how likely a model thinks that the class is relevant."""
    classifier, dataset = _find_model(project, model, features, settings, seed)
    eta, _ = score_pairs(project, classifier, dataset)
    return {"hints_added": set_hints(project, eta)}


def _find_model(
    project: Project,
    model: Classifier | str | Path,
    features: str | Path | None,
    settings: dict[str, Any] | None,
    seed: int,
) -> tuple[Classifier, Dataset]:
    """Return a model, trained on the project where it is not given, and the project's data."""
    reading = None if features is None else ReadOptions(features=features)
    if model != AUTO:
        return as_model(model), read_project(project.folder, reading)
    fitted = fit_model(project.folder, {"random_state": seed} | (settings or {}), reading=reading)
    if fitted.history.interrupted:
        raise KeyboardInterrupt  # half a training draws nothing
    assert isinstance(fitted.dataset, Dataset)
    return fitted.classifier, fitted.dataset


def score_pairs(
    project: Project, classifier: Classifier, dataset: Dataset
) -> tuple[npt.NDArray[np.float64], AnswerRates | None]:
    """Return how relevant each class is to each item, (n_items, n_classes), and people's rates."""
    names, known, items = project.class_names, list(classifier.label_names_), dataset.items or []
    if set(names).isdisjoint(known) or set(project.item_names).isdisjoint(items):
        raise ComesError(
            "the model knows none of the project's classes, or none of its items. Train it on this "
            "project: comes fit PROJECT -o model/."
        )
    found = classifier.squash_scores(score_dataset(classifier, dataset))
    table = pd.DataFrame(np.asarray(found, dtype=np.float64), index=items, columns=known)
    eta = table.reindex(index=project.item_names, columns=names, fill_value=UNKNOWN).to_numpy()
    rates = rates_of_people(classifier, None)
    if rates is None:
        return eta, None
    no, yes = (
        np.asarray(pd.Series(own, index=known).reindex(names, fill_value=1.0), dtype=np.float64)
        for own in (rates.no_rate, rates.yes_rate)
    )
    return eta, AnswerRates(no, yes, rates.mistake_rate)


def learn_in_rounds(
    project: Project,
    every: int = 200,
    *,
    rounds: int | None = None,
    wait: float = 2.0,
    on_wait: Callable[[int], None] = lambda missing: None,
    seed: int = 0,
    **options: Any,
) -> Iterator[dict[str, Any]]:
    """Draw a round of questions whenever so many new answers are there, until nothing is left."""
    if every < 1:
        raise ComesError(f"every must be 1 or more answers; got {every}.")
    n_done = 0
    while rounds is None or n_done < rounds:
        missing = every - count_new_answers(project)
        if missing > 0:
            on_wait(missing)
        while missing > 0:
            time.sleep(wait)
            missing = every - count_new_answers(project)
        if not find_open_pairs(project).any():
            return
        yield draw_round(project, every, seed=seed + count_rounds(project), **options)
        n_done += 1
