"""A classifier with other settings, to choose from."""

import itertools
from collections.abc import Sequence
from typing import Any

from sklearn.base import clone

from comes.answers import Answers
from comes.errors import ComesError
from comes.estimator.classifier import CandidateClassifier
from comes.estimator.settings import find_settings
from comes.estimator.training_length import PASSES, choose_epochs, count_sure
from comes.methods import DEFAULT, METHODS, table_rank

# What the learning rate and the number of epochs are multiplied by.
FACTORS = {"learning_rate": (0.2, 1.0, 5.0), "epochs": (0.1, 1.0)}
SHORT = {"lr": "learning_rate"}


def vary_settings(
    classifier: CandidateClassifier, names: Sequence[str], answers: Answers | None = None
) -> list[CandidateClassifier]:
    """Return the classifier with other methods, learning rates or numbers of epochs.

    Parameters
    ----------
    classifier : CandidateClassifier
    names : sequence of {"method", "lr", "epochs"}
        What varies; of several, all combinations. Of methods, the classifier's own and those that
        are worth trying on candidates.
    answers : Answers, optional
        What will be trained on, which decides how many epochs are usual.

    Returns
    -------
    classifiers : list of CandidateClassifier
        They are not fitted.

    Examples
    --------
    >>> [c.epochs for c in vary_settings(CandidateClassifier(epochs=100), ["epochs"])]
    [10, 100]
    """
    values = {SHORT.get(name, name): _values_to_try(classifier, name) for name in names}
    now = DEFAULT if classifier.method is None else classifier.method
    found: list[CandidateClassifier] = []
    tried: list[dict[str, Any]] = []
    for combination in itertools.product(*values.values()):
        settings: dict[str, Any] = dict(zip(values, combination, strict=True))
        usual = find_settings(classifier, settings.get("method", now))
        if usual["epochs"] is None and answers is not None:
            n_sure = count_sure(answers)
            usual["epochs"] = choose_epochs(*answers.shape, n_sure, usual["batch_size"])
            settings.setdefault("epochs", 1.0)
        usual["epochs"] = usual["epochs"] or PASSES
        settings |= {name: usual[name] * settings[name] for name in FACTORS if name in settings}
        if "epochs" in settings:
            settings["epochs"] = max(1, round(settings["epochs"]))
        if "method" in settings:
            known = METHODS[settings["method"]].settings_with_prior
            settings |= {"variant": None, "flip_rate": None, **known}
        if settings not in tried:
            tried.append(settings)
            found.append(clone(classifier).set_params(**settings))
    return found


def _values_to_try(classifier: CandidateClassifier, short: str) -> list[Any]:
    """Return the values of one setting that are tried, or the factors of a number."""
    name = SHORT.get(short, short)
    if name == "method":
        if classifier.variant is not None or classifier.flip_rate is not None:
            raise ComesError("variant and flip_rate belong to one method; leave them out.")
        names = {name for name, method in METHODS.items() if method.is_selectable}
        if isinstance(classifier.method, str):
            names.add(classifier.method)
        return sorted(names, key=table_rank)
    if name in FACTORS:
        return list(FACTORS[name])
    raise ComesError(f"what varies must be method, lr or epochs; got {short!r}.")
