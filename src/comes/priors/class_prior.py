"""How often each label is relevant, estimated before training from X and candidates.

An irrelevant label j is excluded with probability p_j (the *exclude rate*), so that
P(j excluded) = (1 - pi_j) p_j. The left side can be counted, so an estimate of p_j gives one of the
*class prior* pi_j. Without further assumptions only bounds are known: pi_j is at most the share of
rows in which j is a candidate, and at least the value that follows if the rows most like the
excluding ones are all irrelevant. docs/priors.md says when that is near the truth.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from comes.answers import BoolMatrix, as_candidates
from comes.errors import ComesError, ComesWarning, listed
from comes.priors.best_bin import best_bin_rate, prior_bounds, sampling_error, shrink
from comes.priors.mixtures import bbe, dedpul, km2
from comes.priors.small_models import check_rows, score_out_of_fold

FloatArray = npt.NDArray[np.float64]
Mpe = Callable[[Any, Any], float]

MIN_ROWS = 20  # with fewer, the estimate is the upper bound
FEW_EXCLUDED = 20
NEARLY_CERTAIN = 0.98  # rates above are set to 1: a few relevant rows in the bin explain the rest
NO_ANCHOR_SHARE = 0.9  # a best bin with a larger share of the rows is nearly all rows
KM_POINTS = 400
ON_SCORES: dict[str, Mpe] = {"bbe": bbe, "dedpul": dedpul, "km2": km2}
PRIOR_METHODS = ("best-bin", *ON_SCORES, "candidate-rate")  # what `method` may be
FLAGS = {
    "never excluded": "no row excludes it, so it cannot be estimated and is set to 1",
    "always excluded": "every row excludes it, so it is set to 0",
    "few excluded": f"fewer than {FEW_EXCLUDED} rows exclude it, so the estimate is uncertain",
    "no anchor": "no rows stand out as irrelevant, so the estimate is only a lower bound",
}


@dataclass(frozen=True)
class ClassPriorEstimate:
    """Class priors estimated for every label; ``np.asarray`` gives ``class_prior``.

    Attributes
    ----------
    class_prior, exclude_rate : arrays of shape (n_labels,)
        pi_j and p_j, with class_prior = 1 - (share of rows that exclude j) / exclude_rate.
    lower, upper : arrays of shape (n_labels,)
        Bounds of the class prior that hold nine times in ten if the exclude rate is constant.
        They are wide.
    standard_error : array of shape (n_labels,)
        Of the class prior, with the error of the exclude rate.
    flags : tuple of str
        "ok", "never excluded", "always excluded", "few excluded" or "no anchor", per label.
    exclude_rate_error : array of shape (n_labels,), optional
        Standard error of the exclude rate.

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
    method: str | Mpe = "best-bin",
    random_state: int | np.random.RandomState | None = 0,
    label_names: Sequence[str] | None = None,
    *,
    is_scaled: bool = False,
) -> ClassPriorEstimate:
    """Estimate how often each label is relevant, from candidate labels alone.

    Classifiers of the excluded labels score every row out of fold, all labels at once. For each
    label, the rows are sorted by how much they look like excluding it. Among the first k rows, for
    every k of at least a tenth of all rows, the highest share of excluding rows (by a lower bound)
    is the exclude rate p_j. Rates are shrunk towards their mean over labels as far as their
    sampling error suggests, and rates above 0.98 count as 1. The class prior is
    1 - P(j excluded) / p_j: too low if no row is surely irrelevant to the label.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
    candidates : bool array of shape (n_samples, n_labels)
        True where the label is still possible.
    method : {"best-bin", "bbe", "dedpul", "km2", "candidate-rate"} or callable
        "best-bin" is described above. "bbe", "dedpul" and "km2" (at most 400 + 400 rows) are
        two-sample estimators on the same scores, label by label. "candidate-rate" is the upper
        bound. A function ``mpe(component, mixture)`` takes rows of X and returns the share of the
        component in the mixture, 1 - pi_j.
    random_state : int, RandomState or None
    label_names : sequence of str, optional
        For warnings; by default the numbers of the labels.
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
    """
    if isinstance(method, str) and method not in PRIOR_METHODS:
        raise ComesError(
            f"method must be one of {', '.join(PRIOR_METHODS)}, or a function mpe(component, "
            f"mixture); got {method!r}."
        )
    candidates = as_candidates(candidates)
    X = X if is_scaled else check_rows(X, candidates)
    excluded = ~candidates
    share = excluded.mean(axis=0)
    q = len(share)
    exclude_rate = np.where(share > 0, 1.0, 0.0)
    lower, upper, spread = np.zeros(q), 1 - share, np.zeros(q)
    n_bin = np.zeros(q)
    unknown = (share > 0) & (share < 1)
    if len(excluded) >= MIN_ROWS and unknown.any():
        seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
        scores = -score_out_of_fold(X, candidates, seed, is_scaled=is_scaled)[:, unknown]
        rate, n_bin[unknown] = _estimate_rates(method, X, excluded[:, unknown], scores, seed)
        # At least the share over all rows, since the prior would be negative otherwise.
        exclude_rate[unknown] = np.clip(rate, share[unknown], 1)
        lower[unknown], upper[unknown] = prior_bounds(excluded[:, unknown], scores)
        spread[unknown] = 2 * sampling_error(excluded[:, unknown], scores, seed)
    prior = np.where(exclude_rate > 0, 1 - share / np.where(exclude_rate > 0, exclude_rate, 1), 1.0)
    lower[share == 0] = 0.0
    upper[share == 0] = 1.0
    flags = _choose_flags(excluded, n_bin, exclude_rate)
    _warn_of_flags(flags, label_names)
    rate_error = spread * exclude_rate / np.where(share > 0, 1 - prior, 1)
    return ClassPriorEstimate(prior, exclude_rate, lower, upper, spread, flags, rate_error)


def _estimate_rates(
    method: str | Mpe, X: Any, excluded: BoolMatrix, scores: npt.NDArray[np.float32], seed: int
) -> tuple[FloatArray, FloatArray]:
    """Return the exclude rate of every label, and the number of rows in its best bin."""
    best_rate, n_bin = best_bin_rate(excluded, scores)
    if method == "candidate-rate":
        return np.ones(excluded.shape[1]), n_bin
    if method == "best-bin":
        rate = shrink(best_rate, n_bin)
        rate[rate > NEARLY_CERTAIN] = 1
        return rate, n_bin
    rng = np.random.default_rng(seed)
    shares = []
    for j in range(excluded.shape[1]):
        rows = X if callable(method) else scores[:, j]
        share = _estimate_share(method, rows[excluded[:, j]], rows, rng)
        if not 0 <= share <= 1:
            raise ComesError(f"mpe must return a share in [0, 1]; got {share!r} for label {j}.")
        shares.append(max(float(share), 1e-6))
    return excluded.mean(axis=0) / np.array(shares), n_bin


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
    excluded: BoolMatrix, n_bin: FloatArray, exclude_rate: FloatArray
) -> tuple[str, ...]:
    """Return the flag of every label: the first condition that holds, else "ok"."""
    n, n_excluded = len(excluded), excluded.sum(axis=0)
    conditions = [
        n_excluded == 0,
        n_excluded == n,
        n_excluded < FEW_EXCLUDED,
        (n_bin > NO_ANCHOR_SHARE * n) & (exclude_rate < NEARLY_CERTAIN),
    ]
    return tuple(str(flag) for flag in np.select(conditions, list(FLAGS), "ok"))


def _warn_of_flags(flags: Sequence[str], label_names: Sequence[str] | None) -> None:
    """Warn of every flag that is not "ok", with the names of its labels."""
    names = [str(j) for j in range(len(flags))] if label_names is None else label_names
    for flag, meaning in FLAGS.items():
        found = [name for name, other in zip(names, flags, strict=True) if other == flag]
        if found:
            warnings.warn(
                f"The class prior of label {listed(found)}: {meaning}.", ComesWarning, stacklevel=3
            )
