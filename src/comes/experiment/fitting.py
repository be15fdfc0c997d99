"""Train the classifiers of a task, with the settings that are given or that a search finds."""

import importlib.util
import itertools
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split

from comes.datasets import Dataset
from comes.datasets.dataset import take_rows
from comes.errors import ComesError
from comes.estimator import CandidateClassifier
from comes.estimator.choose import Choice, Contest, choose_each, estimate_shared_prior
from comes.estimator.together import fit_together
from comes.experiment.judging import Classifier, Found, risk_floor
from comes.experiment.protocols import true_rates
from comes.experiment.repeats import Repeat
from comes.flat_settings import from_flat, frozen_settings
from comes.images import ImageClassifier
from comes.methods import method_of_label
from comes.priors import count_class_prior
from comes.results import SearchSpec, TaskSpec

CHECKPOINT = ".checkpoint"  # ending of the state of one repeat


class Trial(NamedTuple):
    """One training: the number of its repeat, its rows, and the settings found for it."""

    number: int
    repeat: Repeat
    found: Found


def fit_trials(
    spec: TaskSpec, dataset: Dataset, trials: list[Trial], folder: Path | None = None
) -> list[Classifier]:
    """Return a classifier for every trial; the folder keeps states of long trainings."""
    classifiers = [_make_classifier(spec, dataset, trial) for trial in trials]
    if spec.images:
        return [
            classifier.fit(
                take_rows(dataset.X, repeat.train),
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
        noise = np.random.default_rng(seed).normal(scale=spec.prior_noise, size=prior.shape)
        known["class_prior"] = np.clip(prior + noise, 0, 0.999)
        named = method_of_label(spec.method)
        known |= {} if named is None else named.settings_with_prior  # the same for all methods
    if spec.answer_rates == "true":
        known |= true_rates(spec)
    if spec.flood is not None:
        known["flood_level"] = spec.flood * risk_floor(relevant)
    settings = known | dict(spec.settings) | dict(trial.found.settings)
    settings = frozen_settings(spec.method, spec.training, spec.images, settings)
    make = ImageClassifier if spec.images else CandidateClassifier
    return make(**from_flat({"method": load_method(spec.method), **settings}))


def choose_settings(spec: TaskSpec, dataset: Dataset, repeats: list[Repeat]) -> list[Found]:
    """Return the settings of each repeat that are best by what was said about held-out rows."""
    search = spec.search
    if search is None:
        return [Found() for _ in repeats]
    contests = [_make_contest(spec, search, dataset, k, own) for k, own in enumerate(repeats)]
    if search.criterion is None:
        choices = choose_each(contests, dataset.X, criterion="trained_risk", n_jobs=1)
        return [Found(_settings_of(choice)) for choice in choices]
    extend = bool(search.extend)
    choices = choose_each(contests, dataset.X, criterion=search.criterion, extend=extend, n_jobs=1)
    return [Found(_settings_of(choice), len(choice.tied), choice.edges) for choice in choices]


def _make_contest(
    spec: TaskSpec, search: SearchSpec, dataset: Dataset, k: int, repeat: Repeat
) -> Contest:
    """Return the grid of a search, with the rows of a repeat that it is judged on."""
    rows, held = train_test_split(
        repeat.train, test_size=search.held_out, random_state=spec.seed + k
    )
    grid: list[dict[str, Any]] = [
        {"learning_rate": learning_rate, "epochs": epochs}
        for learning_rate, epochs in itertools.product(search.learning_rate, search.epochs)
    ]
    shorter = repeat._replace(train=rows)
    classifiers = [_make_classifier(spec, dataset, Trial(k, shorter, Found(own))) for own in grid]
    prior = None
    if search.criterion not in (None, "own_risk"):  # one that all are judged with
        prior = classifiers[0].class_prior
        if prior is None:
            own_X, said = take_rows(dataset.X, repeat.train), repeat.labels[repeat.train]
            prior = estimate_shared_prior(own_X, said, spec.seed + k)
    return Contest(classifiers, repeat.labels, [(rows, held)], prior)


def _settings_of(choice: Choice) -> dict[str, Any]:
    """Return what a search varies, of the classifier that it chose."""
    return {name: getattr(choice.classifier, name) for name in ("learning_rate", "epochs")}


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
