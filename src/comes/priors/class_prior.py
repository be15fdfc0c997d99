"""How often each label is relevant, estimated before training from X and candidates.

Label j is excluded where it is irrelevant, with probability p_j (the *exclude rate*), so that
P(j excluded) = (1 - pi_j) p_j. The left side is counted, so an estimate of p_j gives one of the
*class prior* pi_j. Among rows that are surely irrelevant to j, the share that excludes j is p_j;
`estimate_class_prior` looks for such rows among those that a classifier finds most like the
excluding ones.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from comes.labels import BoolMatrix, as_candidates, as_relevant
from comes.priors.scorer import check_rows, scores_out_of_fold

MIN_ROWS = 20  # fewer tell nothing
MIN_BIN_SHARE, MIN_BIN_EXCLUDED, MAX_MIN_BIN_SHARE = 0.1, 25, 0.3  # how small a bin may be
Z = 0.67  # of the lower bound that the best bin maximises
NEARLY_CERTAIN = 0.98  # above, a few relevant rows in the bin weigh more than what is left to 1


@dataclass(frozen=True)
class ClassPriorEstimate:
    """Estimates per label; ``np.asarray`` gives the class prior."""

    class_prior: npt.NDArray[np.float64]  # pi_j, (q,)
    exclude_rate: npt.NDArray[np.float64]  # p_j, (q,)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.class_prior, dtype=dtype)


def count_class_prior(relevant: npt.ArrayLike) -> npt.NDArray[np.float64]:
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


def estimate_class_prior(
    X: Any, candidates: npt.ArrayLike, random_state: int | np.random.RandomState | None = 0
) -> ClassPriorEstimate:
    """Estimate how often each label is relevant, from candidate labels alone.

    A linear classifier of the excluded labels scores every row out of fold. For each label, of
    all sets of the rows that look most like its excluding ones (at least a tenth of all rows),
    the one with the highest share of excluding rows, by a lower bound, gives the exclude rate p_j.
    Rates are drawn towards their mean over labels as far as their sampling error allows, and rates
    above 0.98 count as 1. The class prior is 1 - P(j excluded) / p_j: too low where no row is
    surely irrelevant to the label.

    A label that no row excludes gets prior 1 (nothing can be known), one that every row excludes
    prior 0. With fewer than 20 rows the estimate is the upper bound: the share of rows in which
    the label is a candidate.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
    candidates : bool array of shape (n_samples, n_labels)
        True where the label is still possible.
    random_state : int, RandomState or None

    Returns
    -------
    estimate : ClassPriorEstimate
        With `class_prior` and `exclude_rate`, each of shape (n_labels,).

    References
    ----------
    Appendix "Class Prior Estimation" of the COMES paper.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> relevant = X > 1
    >>> candidates = relevant | (rng.random(X.shape) < 0.5)
    >>> bool(abs(estimate_class_prior(X, candidates).class_prior - relevant.mean(0)).max() < 0.1)
    True
    """
    candidates = as_candidates(candidates)
    X = check_rows(X, candidates)
    excluded = ~candidates
    excluded_share = excluded.mean(axis=0)
    exclude_rate = np.where(excluded_share > 0, 1.0, 0.0)
    unknown = (excluded_share > 0) & (excluded_share < 1)
    if len(excluded) >= MIN_ROWS and unknown.any():
        seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
        likely_excluded = -scores_out_of_fold(X, candidates, seed)
        rate, n_bin = _best_bin_rate(excluded[:, unknown], likely_excluded[:, unknown])
        rate = _shrink(rate, n_bin)
        rate[rate > NEARLY_CERTAIN] = 1
        # At least the share over all rows, or the prior would be negative.
        exclude_rate[unknown] = np.maximum(rate, excluded_share[unknown])
    known_rate = np.where(exclude_rate > 0, exclude_rate, 1)
    class_prior = np.where(exclude_rate > 0, 1 - excluded_share / known_rate, 1.0)
    return ClassPriorEstimate(class_prior, exclude_rate)


def _best_bin_rate(
    excluded: BoolMatrix, likely_excluded: npt.NDArray[np.float32]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return, per label, the share of excluding rows in the best bin, and the rows in the bin.

    A bin is the k rows of highest score. The best has the highest Wilson lower bound.
    """
    n = len(excluded)
    k = np.arange(1, n + 1)[:, None]
    order = np.argsort(-likely_excluded, axis=0)
    rate = np.take_along_axis(excluded, order, axis=0).cumsum(axis=0) / k  # (n, q)
    spread = Z * np.sqrt(rate * (1 - rate) / k + Z**2 / (4 * k**2))
    lower = (rate + Z**2 / (2 * k) - spread) / (1 + Z**2 / k)
    smallest = np.maximum(MIN_BIN_SHARE * n, MIN_BIN_EXCLUDED / rate[-1])
    allowed = k >= np.minimum(smallest, MAX_MIN_BIN_SHARE * n)
    best = np.where(allowed, lower, -1).argmax(axis=0)
    return rate[best, np.arange(rate.shape[1])], best + 1


def _shrink(rate: npt.NDArray[np.float64], n_bin: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Draw rates towards their common mean: a DerSimonian-Laird random-effects model of logits."""
    rate = np.clip(rate, 0.5 / n_bin, 1 - 0.5 / n_bin)
    logit = np.log(rate / (1 - rate))
    variance = 1 / (n_bin * rate * (1 - rate))
    weight = 1 / variance
    mean = (weight * logit).sum() / weight.sum()
    excess = (weight * (logit - mean) ** 2).sum() - (len(rate) - 1)
    scale = weight.sum() - (weight**2).sum() / weight.sum()
    between = max(0.0, excess / scale) if scale > 0 else 0.0  # one label: its own mean
    weight = 1 / (variance + between)
    mean = (weight * logit).sum() / weight.sum()
    shrunk = (between * logit + variance * mean) / (between + variance)
    return np.asarray(1 / (1 + np.exp(-shrunk)))
