"""How often each label is relevant, from answers of any kind, and what is known of it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from comes.answers import Answers
from comes.errors import ComesError
from comes.priors.answer_rates import RatesEstimate, estimate_answer_rates
from comes.priors.class_prior import DEFAULT_METHOD, ClassPriorEstimate, estimate_class_prior

KNOWN = "known"  # the flag of a class prior that was given


def find_class_prior(
    X: Any,
    answers: Answers,
    *,
    method: str = DEFAULT_METHOD,
    exclude_rate: npt.ArrayLike | None = None,
    no_rate: npt.ArrayLike | None = None,
    yes_rate: npt.ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = 0,
    label_names: Sequence[str] | None = None,
    is_scaled: bool = False,
) -> ClassPriorEstimate | RatesEstimate:
    """Estimate how often each label is relevant, from candidates or from answers.

    Answers to questions that a model chose are left out.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
    answers : Answers
    method : str
        As in `estimate_class_prior`, for candidates.
    exclude_rate : float or array of shape (n_labels,), optional
        For candidates: how often an irrelevant label is excluded, where that is known.
    no_rate, yes_rate : arrays of shape (n_labels,), optional
        For answers: the rates of "no" and "yes", where both are known.
    random_state : int, RandomState or None
    label_names : sequence of str, optional
        For warnings; by default those of the answers, or numbers.
    is_scaled : bool
        X is checked and standardised already, as in `CandidateClassifier`.

    Returns
    -------
    estimate : ClassPriorEstimate for candidates, RatesEstimate for answers and ticked labels

    Examples
    --------
    >>> from comes.generation import case_b
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> candidates = case_b(X > 1, exclude_rate=0.5)
    >>> found = find_class_prior(X, Answers.from_candidates(candidates), exclude_rate=0.5)
    >>> bool(abs(found.class_prior - (X > 1).mean(axis=0)).max() < 0.05)
    True
    """
    names = answers.label_names if label_names is None else label_names
    options: dict[str, Any] = {"random_state": random_state, "is_scaled": is_scaled}
    if answers.kind == "candidates":
        candidates = answers.without_chosen().candidates
        return estimate_class_prior(
            X, candidates, method, label_names=names, exclude_rate=exclude_rate, **options
        )
    return estimate_answer_rates(
        X, answers, label_names=names, no_rate=no_rate, yes_rate=yes_rate, **options
    )


def fill_class_prior(
    known: npt.ArrayLike, estimate: ClassPriorEstimate | RatesEstimate
) -> ClassPriorEstimate:
    """Return an estimate with what is known of some labels in its place.

    Parameters
    ----------
    known : array of shape (n_labels,)
        Class priors; NaN where they are not known.
    estimate : ClassPriorEstimate or RatesEstimate
        Of all labels.

    Returns
    -------
    filled : ClassPriorEstimate
        Labels that are known have a standard error of 0 and the flag "known".

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> estimate = ClassPriorEstimate(half, half, half, half, half / 10, ("ok", "ok"))
    >>> filled = fill_class_prior([0.2, np.nan], estimate)
    >>> filled.class_prior, filled.standard_error, filled.flags
    (array([0.2, 0.5]), array([0.  , 0.05]), ('known', 'ok'))
    """
    given = np.asarray(known, dtype=float)
    q, is_known = len(estimate.class_prior), np.isfinite(given)
    if given.shape != (q,) or not ((given >= 0) & (given <= 1) | ~is_known).all():
        raise ComesError(
            f"known class priors must be one number in [0, 1] for each of {q} labels, or NaN where "
            f"they are not known; got {known!r}."
        )
    if isinstance(estimate, RatesEstimate):
        estimate = _as_prior_estimate(estimate)
    flags = np.where(is_known, KNOWN, estimate.flags)
    return replace(
        estimate,
        class_prior=np.where(is_known, given, estimate.class_prior),
        # The exclude rate is what the class prior implies, together with the data.
        exclude_rate=np.where(is_known, np.nan, estimate.exclude_rate),
        lower=np.where(is_known, given, estimate.lower),
        upper=np.where(is_known, given, estimate.upper),
        standard_error=np.where(is_known, 0.0, estimate.standard_error),
        flags=tuple(str(flag) for flag in flags),
        exclude_rate_error=None,
    )


def _as_prior_estimate(estimate: RatesEstimate) -> ClassPriorEstimate:
    """Return the class priors of an estimate from answers."""
    prior, error = estimate.class_prior, estimate.class_prior_error
    unknown = np.full(len(prior), np.nan)
    return ClassPriorEstimate(prior, unknown, unknown, unknown, error, estimate.flags)
