"""How often each label is relevant, estimated before training from X and candidates.

Label j is excluded where it is irrelevant, with probability p_j (the *exclude rate*), so that
P(j excluded) = (1 - pi_j) p_j. The left side is counted, so an estimate of p_j gives one of the
*class prior* pi_j. What can be known without further assumptions are bounds: pi_j is at most the
share of rows in which j is a candidate, and at least what would follow if the rows most like the
excluding ones were all irrelevant. docs/priors.md says when that is near the truth.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.utils import check_random_state

from comes.errors import ComesError, ComesWarning
from comes.files import expanded
from comes.labels import BoolMatrix, as_candidates, as_relevant, listed
from comes.priors.best_bin import best_bin_rate, prior_bounds, sampling_error, shrink
from comes.priors.mixtures import bbe, dedpul, km2
from comes.priors.scorer import check_rows, scores_out_of_fold

FloatArray = npt.NDArray[np.float64]
Mpe = Callable[[Any, Any], float]

MIN_ROWS = 20  # fewer tell nothing
FEW_EXCLUDED = 20
NEARLY_CERTAIN = 0.98  # above, a few relevant rows in the bin weigh more than what is left to 1
NO_ANCHOR_SHARE = 0.9  # a best bin of more rows than this is nearly everything
KM_POINTS = 400
ON_SCORES: dict[str, Mpe] = {"bbe": bbe, "dedpul": dedpul, "km2": km2}
METHODS = ("best-bin", *ON_SCORES, "candidate-rate")
FLAGS = {
    "never excluded": "no row excludes it, nothing can be known, and 1 is taken",
    "always excluded": "every row excludes it, and 0 is taken",
    "few excluded": f"fewer than {FEW_EXCLUDED} rows exclude it, and the estimate is unsure",
    "no anchor": "no rows stand out as irrelevant, and the estimate is only a lower bound",
}


@dataclass(frozen=True)
class ClassPriorEstimate:
    """Estimates per label; ``np.asarray`` gives the class prior.

    Attributes
    ----------
    class_prior, exclude_rate : arrays of shape (n_labels,)
        pi_j and p_j, with class_prior = 1 - (share of rows that exclude j) / exclude_rate.
    lower, upper : arrays of shape (n_labels,)
        Bounds of the class prior that hold, nine times in ten, if the exclude rate is constant;
        they are wide.
    sampling_se : array of shape (n_labels,)
        Spread over resampled rows. Not a confidence interval: it knows nothing of a bias.
    flags : tuple of str
        "ok", "never excluded", "always excluded", "few excluded" or "no anchor", per label.
    """

    class_prior: FloatArray
    exclude_rate: FloatArray
    lower: FloatArray
    upper: FloatArray
    sampling_se: FloatArray
    flags: tuple[str, ...]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.class_prior, dtype=dtype)


def count_class_prior(relevant: npt.ArrayLike) -> FloatArray:
    """Return the class prior counted on true labels, as the paper's experiments assume it known.

    Parameters
    ----------
    relevant : bool array of shape (n_samples, n_labels)

    Returns
    -------
    class_prior : array of shape (n_labels,)

    Examples
    --------
    >>> count_class_prior([[1, 0], [1, 1]])
    array([1. , 0.5])
    """
    return np.asarray(as_relevant(relevant).mean(axis=0))


def add_prior_noise(
    class_prior: npt.ArrayLike, sigma: float, seed: int | np.random.Generator = 0
) -> FloatArray:
    """Return the class prior with Gaussian noise, clipped to [0, 0.999], to see what errors cost.

    Parameters
    ----------
    class_prior : array of shape (n_labels,)
    sigma : float
        Standard deviation of the noise, before clipping.
    seed : int or numpy Generator

    Returns
    -------
    noisy : array of shape (n_labels,)

    Examples
    --------
    >>> add_prior_noise([0.5, 0.0], sigma=0.0)
    array([0.5, 0. ])
    """
    prior = np.asarray(class_prior, dtype=float)
    noise = np.random.default_rng(seed).normal(scale=sigma, size=prior.shape)
    return np.clip(prior + noise, 0, 1 - 1e-3)


def prior_table(
    estimate: ClassPriorEstimate,
    label_names: Sequence[str],
    relevant: npt.ArrayLike | None = None,
) -> pd.DataFrame:
    """Return one row per label, with the error where the truth is known.

    Parameters
    ----------
    estimate : ClassPriorEstimate
    label_names : sequence of n_labels str
    relevant : bool array of shape (n_samples, n_labels), optional

    Returns
    -------
    table : DataFrame
        label, class_prior, lower, upper, sampling_se, exclude_rate, flag; true_prior and error.
    """
    table = pd.DataFrame(
        {
            "label": list(label_names),
            "class_prior": estimate.class_prior,
            "lower": estimate.lower,
            "upper": estimate.upper,
            "sampling_se": estimate.sampling_se,
            "exclude_rate": estimate.exclude_rate,
            "flag": estimate.flags,
        }
    )
    if relevant is not None:
        table["true_prior"] = count_class_prior(relevant)
        table["error"] = table["class_prior"] - table["true_prior"]
    return table


def read_priors(path: str | Path) -> "pd.Series[float]":
    """Read class priors by label, from a csv or parquet file with columns label and class_prior."""
    from comes.datasets.tables import check_table_name, read_table

    path = expanded(path)
    check_table_name(path)
    table = read_table(path, ["label"])
    missing = [name for name in ("label", "class_prior") if name not in table.columns]
    if missing:
        raise ComesError(
            f"{path.name} has no column {missing[0]!r}; the columns label and class_prior were "
            f"wanted, as 'comes priors -o' writes them. It has {listed(list(table.columns))}."
        )
    return pd.Series(table["class_prior"].to_numpy(), index=table["label"].astype(str))


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
    label, of all sets of the rows that look most like its excluding ones (at least a tenth of all
    rows), the one with the highest share of excluding rows, by a lower bound, gives the exclude
    rate p_j. Rates are drawn towards their mean over labels as far as their sampling error allows,
    and rates above 0.98 count as 1. The class prior is 1 - P(j excluded) / p_j: too low where no
    row is surely irrelevant to the label.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
    candidates : bool array of shape (n_samples, n_labels)
        True where the label is still possible.
    method : {"best-bin", "bbe", "dedpul", "km2", "candidate-rate"} or callable
        "best-bin" is the above. "bbe", "dedpul" and "km2" (at most 400 + 400 rows) are two-sample
        estimators, on the same scores, label by label. "candidate-rate" takes the upper bound. A
        function ``mpe(component, mixture)`` of rows of X returns the share of the component in the
        mixture, 1 - pi_j.
    random_state : int, RandomState or None
    label_names : sequence of str, optional
        For warnings; by default the numbers of the labels.
    is_scaled : bool
        X is checked and standardised already, as in `CandidateClassifier`.

    Returns
    -------
    estimate : ClassPriorEstimate
        A label that no row excludes gets prior 1 (nothing can be known), one that every row
        excludes prior 0. With fewer than 20 rows the estimate is the upper bound. A warning names
        labels whose flag is not "ok".

    References
    ----------
    Appendix "Class Prior Estimation" of the COMES paper.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> relevant = X > 1
    >>> candidates = relevant | (rng.random(X.shape) < 0.5)
    >>> estimate = estimate_class_prior(X, candidates)
    >>> bool(abs(estimate.class_prior - relevant.mean(axis=0)).max() < 0.1)
    True
    >>> estimate.flags
    ('ok', 'ok')
    """
    if isinstance(method, str) and method not in METHODS:
        raise ComesError(
            f"method must be one of {', '.join(METHODS)}, or a function mpe(component, mixture); "
            f"got {method!r}."
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
        scores = -scores_out_of_fold(X, candidates, seed, is_scaled=is_scaled)[:, unknown]
        rate, n_bin[unknown] = _exclude_rates(method, X, excluded[:, unknown], scores, seed)
        # At least the share over all rows, or the prior would be negative.
        exclude_rate[unknown] = np.clip(rate, share[unknown], 1)
        lower[unknown], upper[unknown] = prior_bounds(excluded[:, unknown], scores)
        spread[unknown] = sampling_error(excluded[:, unknown], scores, seed)
    prior = np.where(exclude_rate > 0, 1 - share / np.where(exclude_rate > 0, exclude_rate, 1), 1.0)
    lower[share == 0] = 0.0
    upper[share == 0] = 1.0
    flags = _flags(excluded, n_bin, exclude_rate)
    _warn_of_flags(flags, label_names)
    return ClassPriorEstimate(prior, exclude_rate, lower, upper, spread, flags)


def _exclude_rates(
    method: str | Mpe, X: Any, excluded: BoolMatrix, scores: npt.NDArray[np.float32], seed: int
) -> tuple[FloatArray, FloatArray]:
    """Return the exclude rate of every label, and the rows that the best bin has."""
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
        if callable(method):
            share = method(X[excluded[:, j]], X)
        else:
            component, mixture = scores[excluded[:, j], j], scores[:, j]
            if method == "km2":
                component, mixture = (_some(x, rng) for x in (component, mixture))
            share = ON_SCORES[method](component, mixture)
        if not 0 <= share <= 1:
            raise ComesError(f"mpe must return a share in [0, 1]; got {share!r} for label {j}.")
        shares.append(max(float(share), 1e-6))
    return excluded.mean(axis=0) / np.array(shares), n_bin


def _some(values: npt.NDArray[Any], rng: np.random.Generator) -> npt.NDArray[Any]:
    return values if len(values) <= KM_POINTS else rng.choice(values, KM_POINTS, replace=False)


def _flags(excluded: BoolMatrix, n_bin: FloatArray, exclude_rate: FloatArray) -> tuple[str, ...]:
    n, n_excluded = len(excluded), excluded.sum(axis=0)
    conditions = [
        n_excluded == 0,
        n_excluded == n,
        n_excluded < FEW_EXCLUDED,
        (n_bin > NO_ANCHOR_SHARE * n) & (exclude_rate < NEARLY_CERTAIN),
    ]
    return tuple(str(flag) for flag in np.select(conditions, list(FLAGS), "ok"))


def _warn_of_flags(flags: Sequence[str], label_names: Sequence[str] | None) -> None:
    names = label_names or [str(j) for j in range(len(flags))]
    for flag, meaning in FLAGS.items():
        found = [name for name, other in zip(names, flags, strict=True) if other == flag]
        if found:
            warnings.warn(
                f"The class prior of label {listed(found)}: {meaning}.", ComesWarning, stacklevel=3
            )
