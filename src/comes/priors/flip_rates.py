"""Flip rates: how often an irrelevant label becomes a candidate. CCMN needs them.

The flip rate is 1 - p_j, where p_j is the exclude rate. In a row that is surely irrelevant to label
j, an *anchor point*, j is a candidate with exactly this probability: the lowest that
P(j is a candidate | x) can be.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.utils import check_random_state

from comes.answers.convert import as_candidates
from comes.errors import ComesError
from comes.priors.small_models import check_rows, score_out_of_fold

MAX_RATE = 0.95  # flip rates are cut here, since CCMN divides by 1 - rate
ANCHOR_SHARE = 0.1


def estimate_flip_rate(
    X: Any,
    candidates: npt.ArrayLike,
    *,
    anchor_share: float = ANCHOR_SHARE,
    random_state: int | np.random.RandomState | None = 0,
    is_scaled: bool = False,
) -> npt.NDArray[np.float64]:
    """Estimate how often an irrelevant label becomes a candidate, by anchor points.

    Classifiers of the candidates give every row a probability out of fold. The rows with the lowest
    probability serve as anchor points, surely irrelevant to the label. The share of them in which
    the label is a candidate is its flip rate.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
    candidates : bool array of shape (n_samples, n_labels)
    anchor_share : float
        The share of rows that serve as anchor points, in [0, 1). 0 is CCMN's own rule, the lowest
        probability itself, which is far too low: it is the classifier's most extreme error.
    random_state : int, RandomState or None
    is_scaled : bool
        X is checked and standardised already, as in `CandidateClassifier`.

    Returns
    -------
    flip_rate : array of shape (n_labels,)
        In [0, 0.95]. Too high if not all anchor points are irrelevant.

    References
    ----------
    Xie and Huang, "CCMN: A General Framework for Learning with Class-Conditional Multi-Label
    Noise", TPAMI 2023; Li et al., "Estimating Noise Transition Matrix with Label Correlations for
    Noisy Multi-Label Learning", NeurIPS 2022.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = 3 * rng.normal(size=(1000, 2))
    >>> candidates = (X > 1) | (rng.random(X.shape) < 0.4)
    >>> bool(abs(estimate_flip_rate(X, candidates) - 0.4).max() < 0.1)
    True
    """
    if not 0 <= anchor_share < 1:
        raise ComesError(f"anchor_share must be in [0, 1); got {anchor_share}.")
    candidates = as_candidates(candidates)
    X = X if is_scaled else check_rows(X, candidates)
    share = candidates.mean(axis=0)
    if len(candidates) < 3:  # too few to hold rows out
        return np.asarray(np.minimum(share, MAX_RATE))
    seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    scores = score_out_of_fold(X, candidates, seed, is_scaled=is_scaled)
    probability = expit(scores.astype(np.float64))
    if anchor_share > 0:
        anchors = np.argsort(probability, axis=0)[: math.ceil(anchor_share * len(candidates))]
        rate = np.take_along_axis(candidates, anchors, axis=0).mean(axis=0)
    else:
        rate = probability.min(axis=0)
    rate = np.where(share == 1, 1.0, rate)
    return np.asarray(np.clip(np.minimum(rate, share), 0, MAX_RATE))


def flip_rate_from_prior(
    class_prior: npt.ArrayLike, candidates: npt.ArrayLike
) -> npt.NDArray[np.float64]:
    """Return the flip rates that a class prior implies.

    They follow from P(j excluded) = (1 - pi_j)(1 - rho_j), whose left side can be counted.

    Parameters
    ----------
    class_prior : array of shape (n_labels,)
    candidates : bool array of shape (n_samples, n_labels)

    Returns
    -------
    flip_rate : array of shape (n_labels,)
        In [0, 0.95].

    Examples
    --------
    >>> flip_rate_from_prior([0.5], [[True], [True], [True], [False]])
    array([0.5])
    """
    prior = np.asarray(class_prior, dtype=float)
    excluded_share = 1 - as_candidates(candidates).mean(axis=0)
    if prior.shape != excluded_share.shape or not ((prior >= 0) & (prior <= 1)).all():
        raise ComesError(
            f"candidates of {len(excluded_share)} labels need as many class priors in [0, 1]; got "
            f"{prior!r}."
        )
    exclude_rate = excluded_share / np.where(prior < 1, 1 - prior, 1)
    return np.clip(np.where(prior < 1, 1 - exclude_rate, 1.0), 0, MAX_RATE)
