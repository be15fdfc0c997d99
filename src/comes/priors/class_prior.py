"""How often each label is relevant, estimated before training from X and candidates.

An irrelevant label j is excluded with probability p_j (the *exclude rate*), so that
P(j excluded) = (1 - pi_j) p_j. The left side can be counted, so an estimate of p_j gives one of the
*class prior* pi_j. Without further assumptions only bounds are known: pi_j is at most the share of
rows in which j is a candidate, and at least the value that follows if the rows most like the
excluding ones are all irrelevant. docs/guide/priors.md says when that is near the truth.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from comes.answers.convert import BoolMatrix, as_candidates, check_paired
from comes.errors import ComesError
from comes.priors.best_bin import best_bin_rate, prior_bounds, share_bounds, shrink
from comes.priors.known_rates import check_exclude_rate, exceeds_rate, shrink_priors
from comes.priors.mixtures import bbe, dedpul, km2
from comes.priors.prior_flags import warn_of_flags
from comes.priors.rate_model import RatePosterior, count_bins, fit_rates
from comes.priors.small_models import check_rows, score_out_of_fold

FloatArray = npt.NDArray[np.float64]
Mpe = Callable[[Any, Any], float]

MIN_ROWS = 20  # with fewer, the estimate is the upper bound
FEW_EXCLUDED = 20
# Rates above are set to 1: a few relevant rows in the bins explain the rest.
NEARLY_CERTAIN, NEARLY_CERTAIN_BIN = 0.97, 0.98  # of all bins together, of the best bin
UNCERTAIN = 0.15  # a standard error of the class prior that is too large to trust it
NOTHING_KNOWN = 0.5  # standard error of a number between 0 and 1 of which nothing is known
DEFAULT_METHOD = "hierarchical"
KM_POINTS = 400
ON_SCORES: dict[str, Mpe] = {"bbe": bbe, "dedpul": dedpul, "km2": km2}
PRIOR_METHODS = (DEFAULT_METHOD, "best-bin", *ON_SCORES, "candidate-rate")  # what `method` may be
FLAGS = {
    "never excluded": "no row excludes it, so it cannot be estimated and is set to 1",
    "always excluded": "every row excludes it, so it is set to 0",
    "few excluded": f"fewer than {FEW_EXCLUDED} rows exclude it, so the estimate is uncertain",
    "rate too low": "more rows exclude it than exclude_rate allows, so it is set to 0 or near",
    "uncertain": f"its standard error is above {UNCERTAIN}, so it is not to be trusted",
}


@dataclass(frozen=True)
class ClassPriorEstimate:
    """Class priors estimated for every label; ``np.asarray`` gives ``class_prior``.

    Attributes
    ----------
    class_prior, exclude_rate : arrays of shape (n_labels,)
        pi_j and p_j. (Share of rows that exclude j) = (1 - class_prior) exclude_rate holds up to
        sampling error; where that is large, both are shrunk towards what other labels have.
    lower, upper : arrays of shape (n_labels,)
        Bounds of the class prior that hold nine times in ten if the exclude rate is constant.
        They are wide.
    standard_error : array of shape (n_labels,)
        Of the class prior. It includes the error of the exclude rate, and what labels with known
        truth show of the bias: about nineteen in twenty are within two standard errors.
    flags : tuple of str
        "ok", "never excluded", "always excluded", "few excluded", "rate too low" or "uncertain",
        per label; "known" where `fill_class_prior` put a number that is known.
    exclude_rate_error : array of shape (n_labels,), optional
        Standard error of the exclude rate, in the same sense; 0 where it was given.

    Examples
    --------
    >>> prior, rate, error = np.array([0.2]), np.array([0.5]), np.array([0.01])
    >>> estimate = ClassPriorEstimate(prior, rate, prior - 0.1, prior + 0.3, error, ("ok",))
    >>> np.asarray(estimate), estimate.flags
    (array([0.2]), ('ok',))
    """

    class_prior: FloatArray
    exclude_rate: FloatArray
    lower: FloatArray
    upper: FloatArray
    standard_error: FloatArray
    flags: tuple[str, ...]
    exclude_rate_error: FloatArray | None = None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.class_prior, dtype=dtype)


def estimate_class_prior(
    X: Any,
    candidates: npt.ArrayLike,
    method: str | Mpe = DEFAULT_METHOD,
    random_state: int | np.random.RandomState | None = 0,
    label_names: Sequence[str] | None = None,
    *,
    exclude_rate: npt.ArrayLike | None = None,
    is_scaled: bool = False,
) -> ClassPriorEstimate:
    """Estimate how often each label is relevant, from candidate labels alone.

    Classifiers of the excluded labels score every row out of fold, all labels at once. For each
    label, the rows are sorted by how much they look like excluding it, and cut into ten bins. All
    bins of all labels are explained together: by exclude rates p_j whose spread over labels is
    estimated (none at all, if one rate explains the bins), by class priors, and by how well scores
    tell relevant rows. Rates above 0.97 count as 1.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        May be None if ``exclude_rate`` is given.
    candidates : bool array of shape (n_samples, n_labels)
        True where the label is still possible.
    method : {"hierarchical", "best-bin", "bbe", "dedpul", "km2", "candidate-rate"} or callable
        "hierarchical" is described above. "best-bin" takes the highest share of excluding rows
        among the first k rows, for every k of at least a tenth of all rows (by a lower bound), as
        p_j, shrinks p_j towards the mean over labels, and takes 1 - P(j excluded) / p_j. "bbe",
        "dedpul" and "km2" (at most 400 + 400 rows) are two-sample estimators on the same scores,
        label by label. "candidate-rate" is the upper bound. A function ``mpe(component, mixture)``
        takes rows of X and returns the share of the component in the mixture, 1 - pi_j.
    random_state : int, RandomState or None
    label_names : sequence of str, optional
        For warnings; by default the numbers of the labels.
    exclude_rate : float or array of shape (n_labels,), optional
        P(j excluded | j irrelevant) where it is known, in (0, 1]: then nothing else is estimated
        than the class prior, from counts alone, shrunk over labels.
    is_scaled : bool
        X is checked and standardised already, as in `CandidateClassifier`.

    Returns
    -------
    estimate : ClassPriorEstimate
        A label that no row excludes gets prior 1 (it cannot be estimated), one that every row
        excludes prior 0. With fewer than 20 rows the estimate is the upper bound. A warning names
        the labels whose flag is not "ok".

    References
    ----------
    Appendix "Class Prior Estimation" of the COMES paper.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> relevant = X > 1
    >>> candidates = relevant | (rng.random(X.shape) < 0.5)
    >>> estimate = estimate_class_prior(X, candidates)
    >>> bool(abs(estimate.class_prior - relevant.mean(axis=0)).max() < 0.1)
    True
    >>> estimate.flags
    ('ok', 'ok')
    >>> known = estimate_class_prior(None, candidates, exclude_rate=0.5)
    >>> bool(abs(known.class_prior - relevant.mean(axis=0)).max() < 0.1)
    True
    """
    if isinstance(method, str) and method not in PRIOR_METHODS:
        raise ComesError(
            f"method must be one of {', '.join(PRIOR_METHODS)}, or a function mpe(component, "
            f"mixture); got {method!r}."
        )
    check_paired(X=X, candidates=candidates)
    candidates = as_candidates(candidates)
    if exclude_rate is not None:
        if method != DEFAULT_METHOD:
            raise ComesError("exclude_rate leaves nothing to method. Give one of them.")
        estimate = _use_rate(candidates, check_exclude_rate(exclude_rate, candidates.shape[1]))
    else:
        X = X if is_scaled else check_rows(X, candidates)
        seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
        estimate = _estimate_all(method, X, candidates, seed, is_scaled=is_scaled)
    warn_of_flags("The class prior of label", estimate.flags, FLAGS, label_names)
    return estimate


def _use_rate(candidates: BoolMatrix, rate: FloatArray) -> ClassPriorEstimate:
    """Return the estimate where the exclude rate is known."""
    excluded = ~candidates
    n, n_excluded = len(excluded), excluded.sum(axis=0)
    prior, error = shrink_priors(n_excluded, n, rate)
    lowest, highest = share_bounds(n_excluded, n)
    lower, upper = np.clip([1 - highest / rate, 1 - lowest / rate], 0, 1)
    too_low = exceeds_rate(n_excluded / n, n, rate)
    flags = _choose_flags(excluded, error, too_low)
    prior = np.clip(prior, lower, upper)
    return ClassPriorEstimate(prior, rate.copy(), lower, upper, error, flags, np.zeros_like(rate))


def _estimate_all(
    method: str | Mpe, X: Any, candidates: BoolMatrix, seed: int, *, is_scaled: bool
) -> ClassPriorEstimate:
    """Return the estimate where the exclude rate is not known."""
    excluded = ~candidates
    n, share = len(excluded), excluded.mean(axis=0)
    # Labels of which there is nothing to estimate, and all labels of too few rows.
    rate, prior = np.where(share > 0, 1.0, 0.0), 1 - share
    lower, upper = np.zeros(len(share)), np.where(share > 0, 1 - share, 1.0)
    error = np.where(share == 0, NOTHING_KNOWN, (1 - share) / math.sqrt(3) + 1 / n)
    rate_error, doubt = error.copy(), error.copy()
    unknown = (share > 0) & (share < 1)
    if n >= MIN_ROWS and unknown.any():
        scores = -score_out_of_fold(X, candidates, seed, is_scaled=is_scaled)[:, unknown]
        some = excluded[:, unknown]
        lower[unknown], upper[unknown] = prior_bounds(some, scores)
        found = _round_up(fit_rates(*count_bins(some, scores)), share[unknown])
        doubt[unknown] = found.standard_error
        if method != DEFAULT_METHOD:
            found = _replace(found, _estimate_rates(method, X, some, scores, seed), some)
        rate[unknown], rate_error[unknown] = found.exclude_rate, found.exclude_rate_error
        prior[unknown] = np.clip(found.class_prior, lower[unknown], upper[unknown])
        error[unknown] = found.standard_error
    flags = _choose_flags(excluded, doubt)  # a method that is far off is no doubt about the label
    return ClassPriorEstimate(prior, rate, lower, upper, error, flags, rate_error)


def _round_up(found: RatePosterior, share: FloatArray) -> RatePosterior:
    """Return 1 for exclude rates that are near it, with the priors that follow."""
    is_certain = found.exclude_rate > NEARLY_CERTAIN
    return replace(
        found,
        exclude_rate=np.where(is_certain, 1.0, found.exclude_rate),
        class_prior=np.where(is_certain, 1 - share, found.class_prior),
    )


def _replace(found: RatePosterior, rate: FloatArray, excluded: BoolMatrix) -> RatePosterior:
    """Return other rates and the priors that they imply, with errors that count the difference."""
    share = excluded.mean(axis=0)
    rate = np.clip(rate, share, 1)  # the prior would be negative below the share
    prior = 1 - share / rate
    return RatePosterior(
        rate,
        np.hypot(found.exclude_rate_error, rate - found.exclude_rate),
        prior,
        np.hypot(found.standard_error, prior - found.class_prior),
    )


def _estimate_rates(
    method: str | Mpe, X: Any, excluded: BoolMatrix, scores: npt.NDArray[np.float32], seed: int
) -> FloatArray:
    """Return the exclude rate of every label by another method."""
    if method == "candidate-rate":
        return np.ones(excluded.shape[1])
    if method == "best-bin":
        rate = shrink(*best_bin_rate(excluded, scores))
        return np.where(rate > NEARLY_CERTAIN_BIN, 1.0, rate)
    rng = np.random.default_rng(seed)
    shares = []
    for j in range(excluded.shape[1]):
        rows = X if callable(method) else scores[:, j]
        share = _estimate_share(method, rows[excluded[:, j]], rows, rng)
        if not 0 <= share <= 1:
            raise ComesError(f"mpe must return a share in [0, 1]; got {share!r} for label {j}.")
        shares.append(max(float(share), 1e-6))
    return np.asarray(excluded.mean(axis=0) / np.array(shares))


def _estimate_share(
    method: str | Mpe, component: Any, mixture: Any, rng: np.random.Generator
) -> float:
    """Return the share of the component in the mixture by a two-sample estimator."""
    if callable(method):
        return method(component, mixture)
    if method == "km2":
        component, mixture = (_draw_points(values, rng) for values in (component, mixture))
    return ON_SCORES[method](component, mixture)


def _draw_points(values: npt.NDArray[Any], rng: np.random.Generator) -> npt.NDArray[Any]:
    """Return at most as many values as KM2 can take."""
    return values if len(values) <= KM_POINTS else rng.choice(values, KM_POINTS, replace=False)


def _choose_flags(
    excluded: BoolMatrix, error: FloatArray, is_too_low: npt.NDArray[np.bool_] | None = None
) -> tuple[str, ...]:
    """Return the flag of every label: the first condition that holds, else "ok"."""
    n, n_excluded = len(excluded), excluded.sum(axis=0)
    no_label = np.zeros(len(error), dtype=bool)
    is_unknown = is_too_low is None  # with a known rate, counts of 0 and n say something too
    conditions = {
        "never excluded": (n_excluded == 0) & is_unknown,
        "always excluded": (n_excluded == n) & is_unknown,
        "few excluded": n_excluded < FEW_EXCLUDED,
        "rate too low": no_label if is_too_low is None else is_too_low,
        "uncertain": error > UNCERTAIN,
    }
    return tuple(str(flag) for flag in np.select(list(conditions.values()), list(conditions), "ok"))
