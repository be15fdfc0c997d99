"""Train the classifiers of a task, with the settings that are given or that a search finds."""

import importlib.util
import itertools
from pathlib import Path
from typing import Any, NamedTuple

from sklearn.model_selection import train_test_split

from comes.datasets import Dataset
from comes.errors import ComesError
from comes.estimator import (
    CandidateClassifier,
    Contest,
    ImageClassifier,
    choose_each,
    fit_together,
)
from comes.experiment.judging import Classifier, risk_floor
from comes.experiment.protocols import true_rates
from comes.experiment.repeats import Repeat
from comes.methods import family_of
from comes.priors import add_prior_noise, count_class_prior
from comes.results import TaskSpec

CHECKPOINT = ".checkpoint"  # ending of the state of one repeat


class Trial(NamedTuple):
    """One training: the number of its repeat, its rows, and its settings."""

    number: int
    repeat: Repeat
    settings: dict[str, Any]


def fit_trials(
    spec: TaskSpec, dataset: Dataset, trials: list[Trial], folder: Path | None = None
) -> list[Classifier]:
    """Return a classifier for every trial; the folder keeps states of long trainings."""
    classifiers = [_make_classifier(spec, dataset, trial) for trial in trials]
    if spec.images:
        return [
            classifier.fit(
                dataset.X[repeat.train],
                repeat.labels[repeat.train],
                checkpoint=None if folder is None else folder / f"{k}{CHECKPOINT}",
            )
            for classifier, (k, repeat, _) in zip(classifiers, trials, strict=True)
        ]
    labels, rows = zip(*((t.repeat.labels, t.repeat.train) for t in trials), strict=True)
    return fit_together(classifiers, dataset.X, list(labels), rows, n_jobs=1)


def _make_classifier(spec: TaskSpec, dataset: Dataset, trial: Trial) -> Any:
    """Return the classifier of a trial, which knows what the spec lets it know; not fitted."""
    relevant = dataset.known_relevant()[trial.repeat.train]
    seed = spec.seed + trial.number
    known: dict[str, Any] = {"random_state": seed, "progress": False}
    if spec.class_prior == "true":
        prior = count_class_prior(relevant)
        known["class_prior"] = add_prior_noise(prior, spec.prior_noise, seed=seed)
        family = family_of(spec.method)
        known |= {} if family is None else family.settings_with_prior  # the same for all methods
    if spec.answer_rates == "true":
        known |= true_rates(spec)
    if spec.flood is not None:
        known["flood_level"] = spec.flood * risk_floor(relevant)
    settings = known | dict(spec.settings) | trial.settings
    method = load_method(spec.method)
    # What a spec leaves out keeps the paper's value, so that stored results keep their meaning.
    if spec.images:
        return ImageClassifier(method, **{"flood_level": 0.0} | settings)
    if spec.training == "default":
        return CandidateClassifier(method, **settings)
    return CandidateClassifier.as_published(method, **settings)


def choose_settings(
    spec: TaskSpec, dataset: Dataset, repeats: list[Repeat]
) -> list[dict[str, Any]]:
    """Return the settings of each repeat that have the least risk on held-out candidates."""
    search = spec.search
    if search is None:
        return [{} for _ in repeats]
    grid: list[dict[str, Any]] = [
        {"learning_rate": learning_rate, "epochs": epochs}
        for learning_rate, epochs in itertools.product(search.learning_rate, search.epochs)
    ]
    contests = []
    for k, repeat in enumerate(repeats):
        rows, held = train_test_split(
            repeat.train, test_size=search.held_out, random_state=spec.seed + k
        )
        shorter = repeat._replace(train=rows)
        classifiers = [_make_classifier(spec, dataset, Trial(k, shorter, own)) for own in grid]
        contests.append(Contest(classifiers, repeat.labels, [(rows, held)]))
    choices = choose_each(contests, dataset.X, criterion="own_risk", n_jobs=1)
    return [grid[choice.best] for choice in choices]


def load_method(name: str) -> Any:
    """Return the name of a method, or the user's own risk that FILE.py:FUNCTION names."""
    file, colon, function = name.rpartition(":")
    if not colon:
        return name
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    if spec is None or spec.loader is None or not Path(file).exists():
        raise ComesError(f"{file} is not a Python file; a method is a name or FILE.py:FUNCTION.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, function):
        raise ComesError(f"{file} has no {function}.")
    return getattr(module, function)
