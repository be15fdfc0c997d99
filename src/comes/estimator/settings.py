"""The parameters of the estimators: which values they may have."""

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from comes.errors import ComesError
from comes.methods import PAPER_TRAINING, find_method, settings_of
from comes.training import TrainedEpoch
from comes.training.options import Callback
from comes.training.pixels import AUGMENTATIONS
from comes.training.processes import gather_objects

NUMBER = (int, float, np.integer, np.floating)
STEPS = ("optimizer", "learning_rate", "epochs", "batch_size")
LEARNED_THRESHOLDS = ("prior", "risk", "f1")  # from rows that training did not see
THRESHOLDS = ("auto", "zero", *LEARNED_THRESHOLDS, "minmax")
FEATURES = ("auto", "all", "both", "classes", "clusters", "pooled")
PRECISIONS = ("auto", "bfloat16", "float32")
OUTPUTS = ("default", "pandas")
INSTANCE_REMOVED = (
    " Rates that depend on the instance were removed after version 1.0.0, since candidates cannot "
    "tell them from class priors. Leave exclude_rate out, and give class_prior or a clean sample "
    "(clean=): docs/explain/instance-rates.md."
)


def find_settings(classifier: Any, method: Any) -> dict[str, Any]:
    """Return how to train: what is given, else the method's own; epochs may be None.

    SGD brings the steps of the paper, and so does any network but the ``mlp`` and ``low_rank``:
    what was measured is too slow for smaller ones.
    """
    own = dict(settings_of(method))
    given = {name: getattr(classifier, name) for name in own}
    is_measured = isinstance(classifier.model, str) and classifier.model != "linear"
    if given["optimizer"] == PAPER_TRAINING["optimizer"] or (
        given["optimizer"] is None and not is_measured
    ):
        own |= {name: PAPER_TRAINING[name] for name in STEPS}
    return {name: own[name] if value is None else value for name, value in given.items()}


def check_row_settings(classifier: Any) -> None:
    """Raise an error unless numbers and names in a `CandidateClassifier`'s settings are valid.

    Its method, model and optimiser are checked where they are made.
    """
    for name in ("epochs", "batch_size", "n_networks"):
        if getattr(classifier, name) is not None:
            _check_count(name, getattr(classifier, name), 1)
    _check_count("hidden", classifier.hidden, 1)
    rate = classifier.learning_rate
    if rate is not None and (not isinstance(rate, NUMBER) or rate == 0):
        raise ComesError(
            f"learning_rate must be a finite number above 0, else nothing is learned; got {rate!r}."
        )
    _check_count("verbose", classifier.verbose, 0)
    _check_choice("output", classifier.output, OUTPUTS)
    find_callbacks(classifier)
    dropout = classifier.dropout
    if dropout is not None and not (
        isinstance(dropout, int | float | np.floating) and 0 <= dropout < 1
    ):
        raise ComesError(f"dropout must be at least 0 and below 1; got {dropout!r}.")
    _check_shared_settings(classifier)
    if classifier.patience is not None and not classifier.early_stopping:
        raise ComesError("patience needs early_stopping=True; leave it out, or stop early.")


def find_callbacks(classifier: Any) -> tuple[Callback, ...]:
    """Return what is called after every epoch: the callbacks, and what prints a line."""
    given = classifier.callbacks
    callbacks = () if given is None else (given,) if callable(given) else given
    if not isinstance(callbacks, tuple | list) or not all(map(callable, callbacks)):
        raise ComesError(
            "callbacks must be a function of a comes.training.TrainedEpoch, or a list of such; got "
            f"{given!r}."
        )
    return (*callbacks, *((print_epoch,) if classifier.verbose else ()))


def print_epoch(done: TrainedEpoch) -> None:
    """Print what an epoch did."""
    print(done, flush=True)


def check_image_settings(classifier: Any) -> None:
    """Raise an error unless all settings of an `ImageClassifier` are valid; this is quick."""
    counts = {"epochs": 0, "batch_size": 1, "image_size": 8, "probe_epochs": 0, "part_size": 1}
    for name, least in counts.items():
        may_be_none = name in ("image_size", "probe_epochs", "part_size")
        if not (may_be_none and getattr(classifier, name) is None):
            _check_count(name, getattr(classifier, name), least)
    if classifier.probe_epochs == classifier.epochs == 0:
        raise ComesError("probe_epochs and epochs are both 0: nothing would be learned.")
    choices = {"features": FEATURES, "precision": PRECISIONS, "augment": AUGMENTATIONS}
    for name, allowed in choices.items():
        _check_choice(name, getattr(classifier, name), allowed)
    temperature, errors = classifier.temperature, classifier.standard_errors
    are_numbers = all(isinstance(value, Real) for value in (temperature, errors))
    if not (are_numbers and 0 < temperature < np.inf and 0 <= errors < np.inf):
        raise ComesError(
            "temperature must be above 0 and standard_errors at least 0; got "
            f"{temperature!r} and {errors!r}."
        )
    if classifier.soft_targets not in (None, True, False):
        raise ComesError(
            f"soft_targets must be True, False or None; got {classifier.soft_targets!r}."
        )
    _check_shared_settings(classifier)
    if classifier.method is not None:
        find_method(classifier.method, classifier.variant)
    learns = classifier.threshold in LEARNED_THRESHOLDS
    if learns and classifier.epochs and not classifier.early_stopping:
        raise ComesError(
            f"threshold={classifier.threshold!r} of a fine-tuned network is learned on held-out "
            "pictures: set early_stopping=True."
        )


def _check_shared_settings(classifier: Any) -> None:
    """Raise an error unless the settings that both estimators have are valid."""
    level = classifier.flood_level
    if level != "auto" and not (
        isinstance(level, int | float | np.floating) and 0 <= float(level) < np.inf
    ):
        raise ComesError(f"flood_level must be 'auto', or a number of 0 or more; got {level!r}.")
    if classifier.normaliser not in ("batch", "dataset"):
        raise ComesError(f"normaliser must be 'batch' or 'dataset'; got {classifier.normaliser!r}.")
    if not 0 <= classifier.mistake_rate < 0.5:
        raise ComesError(
            f"mistake_rate must be at least 0 and below 0.5; got {classifier.mistake_rate!r}."
        )
    if classifier.prior_weight is not None and not 0 <= classifier.prior_weight < np.inf:
        raise ComesError(f"prior_weight must be 0 or more; got {classifier.prior_weight!r}.")
    if isinstance(classifier.exclude_rate, str):
        removed = classifier.exclude_rate == "instance"
        raise ComesError(
            f"exclude_rate must be numbers in (0, 1] or None; got {classifier.exclude_rate!r}."
            + (INSTANCE_REMOVED if removed else "")
        )
    _check_choice("threshold", classifier.threshold, THRESHOLDS)
    for name in ("uses_maybe", "early_stopping", "cosine"):
        if getattr(classifier, name) not in (True, False):
            raise ComesError(f"{name} must be True or False; got {getattr(classifier, name)!r}.")
    if classifier.patience is not None:
        _check_count("patience", classifier.patience, 1, "at least 1, or None")
    if not 0 < classifier.validation_share < 1:
        raise ComesError(
            f"validation_share must lie between 0 and 1; got {classifier.validation_share!r}."
        )


def _check_choice(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    """Raise an error unless a setting is one of the allowed names."""
    if value not in allowed:
        raise ComesError(f"{name} must be one of {', '.join(allowed)}; got {value!r}.")


def _check_count(name: str, count: Any, least: int, wanted: str | None = None) -> None:
    """Raise an error unless a setting is a whole number that is large enough."""
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < least:
        wanted = wanted or f"at least {least}"
        raise ComesError(f"{name} must be a whole number of {wanted}; got {count!r}.")


def draw_seed(random_state: int | np.random.RandomState | None) -> int:
    """Return a seed drawn from the parameter ``random_state``."""
    try:
        return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    except ValueError as error:
        raise ComesError(
            f"random_state must be a whole number, a RandomState or None; got {random_state!r}."
        ) from error


def share_seed(random_state: int | np.random.RandomState | None) -> int:
    """Return a seed shared by all processes: the one given, or one drawn by the first."""
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(gather_objects(draw_seed(random_state))[0])
