r"""Label noise that the baselines must know: flip rates (CCMN) and transitions (MLCL).

The *flip rate* is how often an irrelevant label becomes a candidate, 1 - p_j. In a row that is
surely irrelevant to label j, an *anchor point*, j is a candidate with exactly this probability: the
lowest that P(j is a candidate | x) can be.

The *transition matrix* has, in row j and column k, the probability that label j is excluded if k is
relevant.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax

from comes.answers.convert import BoolMatrix, as_candidates
from comes.errors import ComesError
from comes.priors.rate_model import (
    check_features,
    draw_seed,
    scale_features,
    score_out_of_fold,
)

FloatArray = npt.NDArray[np.float64]

MAX_RATE = 0.95  # flip rates are cut here, since CCMN divides by 1 - rate
PENALTY = 1e-3  # of the squared weights of the softmax


def estimate_flip_rate(
    X: Any,
    candidates: npt.ArrayLike,
    *,
    anchor_share: float = 0.1,
    random_state: int | np.random.RandomState | None = 0,
) -> FloatArray:
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
    X = scale_features(check_features(X, len(candidates)))
    share = candidates.mean(axis=0)
    if len(candidates) < 3:  # too few to hold rows out
        return np.asarray(np.minimum(share, MAX_RATE))
    scores = score_out_of_fold(X, candidates, draw_seed(random_state))
    probability = expit(scores.astype(np.float64))
    if anchor_share > 0:
        anchors = np.argsort(probability, axis=0)[: math.ceil(anchor_share * len(candidates))]
        rate = np.take_along_axis(candidates, anchors, axis=0).mean(axis=0)
    else:
        rate = probability.min(axis=0)
    rate = np.where(share == 1, 1.0, rate)
    return np.asarray(np.clip(np.minimum(rate, share), 0, MAX_RATE))


def flip_rate_from_prior(class_prior: npt.ArrayLike, candidates: npt.ArrayLike) -> FloatArray:
    """Return the flip rates in [0, 0.95] that P(j excluded) = (1 - pi_j)(1 - rho_j) implies."""
    prior = np.asarray(class_prior, dtype=float)
    excluded_share = 1 - as_candidates(candidates).mean(axis=0)
    exclude_rate = excluded_share / np.where(prior < 1, 1 - prior, 1)
    return np.clip(np.where(prior < 1, 1 - exclude_rate, 1.0), 0, MAX_RATE)


def estimate_transition(
    X: Any,
    candidates: npt.ArrayLike,
    random_state: int | np.random.RandomState | None = 0,
) -> FloatArray:
    """Estimate the probability that a label is excluded if another is relevant, as MLCL does.

    A linear softmax classifier learns which label a row excludes. Column k of a first matrix is its
    mean over the rows in which k is a candidate. This matrix is multiplied by the correlation (phi
    coefficient) of excluded labels, of which only the positive part counts.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
    candidates : bool array of shape (n_samples, n_labels)
    random_state : int, RandomState or None
        Without effect: nothing here is drawn at random.

    Returns
    -------
    transition : array of shape (n_labels, n_labels)
        Entry (j, k) is for j excluded, k relevant. Columns sum to 1, the diagonal is 0 (with one
        label, the matrix is 0).

    Notes
    -----
    For its first matrix the released code uses the rows to which k is truly relevant, and it counts
    correlations also over test rows. This function sees only the candidates of the given rows. A
    row that excludes several labels has all of them as targets, with equal weights.

    References
    ----------
    Gao, Xu and Zhang, "Complementary to Multiple Labels: A Correlation-Aware Correction Approach",
    TPAMI 2024.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> candidates = rng.random((200, 3)) < 0.5
    >>> transition = estimate_transition(rng.normal(size=(200, 2)), candidates)
    >>> transition.sum(axis=0).round(6), transition.diagonal()
    (array([1., 1., 1.]), array([0., 0., 0.]))
    """
    candidates = as_candidates(candidates)
    X = scale_features(check_features(X, len(candidates)))
    weights = fit_softmax(X, ~candidates)
    return combine_transition(softmax(X @ weights[1:] + weights[0], axis=1), candidates)


def fit_softmax(X: Any, excluded: BoolMatrix) -> FloatArray:
    """Return intercepts and weights, (1 + d, q), by L-BFGS with a weak ridge penalty.

    What is minimised is the cross-entropy with the excluded labels of a row in equal parts. A row
    that excludes nothing does not count.
    """
    target = excluded / np.maximum(excluded.sum(axis=1, keepdims=True), 1)
    n, shape = max(target.sum(), 1.0), (X.shape[1] + 1, excluded.shape[1])

    def cost(flat: FloatArray) -> tuple[float, FloatArray]:
        weights = flat.reshape(shape)
        log_share = log_softmax(X @ weights[1:] + weights[0], axis=1)
        residual = target.sum(axis=1, keepdims=True) * np.exp(log_share) - target
        slope = np.vstack([residual.sum(axis=0), X.T @ residual]) / n + PENALTY * weights
        return -(target * log_share).sum() / n + PENALTY / 2 * (flat @ flat), slope.ravel()

    found = minimize(
        cost, np.zeros(np.prod(shape)), jac=True, method="L-BFGS-B", options={"maxiter": 100}
    )
    return np.asarray(found.x.reshape(shape), dtype=np.float64)


def combine_transition(probability: FloatArray, candidates: BoolMatrix) -> FloatArray:
    """Return the transition matrix, given the probability that each row excludes each label."""
    n_candidate = np.maximum(candidates.sum(axis=0), 1)
    first = _normalise_columns(probability.T @ candidates / n_candidate)
    return _normalise_columns(exclusion_correlation(~candidates) @ first)


def exclusion_correlation(excluded: BoolMatrix) -> FloatArray:
    """Return the positive part of the phi coefficients of excluded labels, rows summing to 1.

    The row of a label that is constant, or correlates with no other, is uniform over the others.
    """
    centred = excluded - excluded.mean(axis=0)
    spread = np.sqrt((centred**2).sum(axis=0))
    phi = centred.T @ centred / np.maximum(np.outer(spread, spread), 1e-300)
    phi = np.where(np.outer(spread, spread) > 0, phi, 0)
    return _normalise_columns(np.maximum(phi, 0).T).T


def _normalise_columns(matrix: FloatArray) -> FloatArray:
    """Set the diagonal to 0 and scale columns to sum to 1; columns of zeros become uniform."""
    q = len(matrix)
    matrix = matrix * (1 - np.eye(q))
    total = matrix.sum(axis=0)
    uniform = (1 - np.eye(q)) / max(q - 1, 1)
    return np.where(total > 0, matrix / np.where(total > 0, total, 1), uniform)
