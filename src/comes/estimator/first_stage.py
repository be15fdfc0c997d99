"""What a method must know before it trains: given by the user, or estimated from candidates."""

import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from comes.errors import ComesError, ComesWarning
from comes.estimator.checks import per_label, warn_of_impossible_prior
from comes.estimator.methods import Method
from comes.labels import BoolMatrix
from comes.priors import (
    MAX_RATE,
    estimate_class_prior,
    estimate_flip_rate,
    estimate_transition,
    flip_rate_from_prior,
)

Array = npt.NDArray[np.float64]


class Given(NamedTuple):
    """What the user says, as parameters of the estimator; None is to be estimated."""

    class_prior: npt.ArrayLike | None
    flip_rate: npt.ArrayLike | str | None


class Found(NamedTuple):
    """What is known after the first stage; None is not needed."""

    class_prior: Array | None = None  # (q,)
    flip_rate: Array | None = None  # (q,)
    transition: Array | None = None  # (q, q)


def run_first_stage(
    method: Method,
    X: Any,
    S: BoolMatrix,
    label_names: list[str],
    given: Given,
    seed: int,
    needs_prior: bool = False,
) -> Found:
    """Return what the method needs, and the prior that cutting its scores needs."""
    found = Found()
    if method.needs == "flip_rate":
        found = _flip_rate(method, X, S, label_names, given, seed)
    elif given.flip_rate is not None:
        raise ComesError("flip_rate is for method 'ccmn'; leave it out of others.")
    elif method.needs == "transition":
        found = Found(transition=estimate_transition(X, S, random_state=seed))
    needs_prior = needs_prior or method.needs == "class_prior" or method.unit == "pairs"
    if needs_prior and found.class_prior is None:
        found = found._replace(class_prior=_class_prior(X, S, label_names, given, seed))
    return found


def _class_prior(X: Any, S: BoolMatrix, label_names: list[str], given: Given, seed: int) -> Array:
    """Return the class prior given or estimated, 0 for labels that every row excludes."""
    if given.class_prior is None:
        with warnings.catch_warnings():  # of labels that `warn_of_idle_labels` has named
            warnings.filterwarnings("ignore", ".*(no|every) row excludes it", ComesWarning)
            estimate = estimate_class_prior(X, S, random_state=seed, label_names=label_names)
        return estimate.class_prior
    prior = per_label(given.class_prior, "class_prior", label_names)
    prior[~S.any(axis=0)] = 0
    warn_of_impossible_prior(prior, S, label_names)
    return prior


def _flip_rate(
    method: Method, X: Any, S: BoolMatrix, label_names: list[str], given: Given, seed: int
) -> Found:
    """Return the flip rate given, estimated, or implied by the class prior."""
    if isinstance(given.flip_rate, str):
        if given.flip_rate != "class_prior":
            raise ComesError(
                "flip_rate must be numbers in [0, 1), 'class_prior' or None; got "
                f"{given.flip_rate!r}."
            )
        prior = _class_prior(X, S, label_names, given, seed)
        return Found(prior, flip_rate_from_prior(prior, S))
    if given.flip_rate is None:
        rate = estimate_flip_rate(X, S, random_state=seed)
    else:
        rate = np.minimum(per_label(given.flip_rate, "flip_rate", label_names), MAX_RATE)
    if method.unit != "pairs":
        return Found(flip_rate=rate)
    if given.class_prior is not None:
        return Found(_class_prior(X, S, label_names, given, seed), rate)
    excluded_share = 1 - S.mean(axis=0)
    return Found(np.maximum(1 - excluded_share / (1 - rate), 0), rate)
