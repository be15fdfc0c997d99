"""MLCL's transition matrix: which label is excluded if another is relevant."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import softmax
from sklearn.utils import check_random_state
from torch import Tensor

from comes.answers.convert import BoolMatrix, as_candidates
from comes.priors.small_models import check_rows, fit_small_model, scale_features, score_rows

FloatMatrix = npt.NDArray[np.float64]


def estimate_transition(
    X: Any,
    candidates: npt.ArrayLike,
    random_state: int | np.random.RandomState | None = 0,
    *,
    is_scaled: bool = False,
) -> FloatMatrix:
    """Estimate the probability that a label is excluded if another is relevant, as MLCL does.

    A linear softmax classifier learns which label a row excludes. Column k of a first matrix is its
    mean over the rows in which k is a candidate. This matrix is multiplied by the correlation (phi
    coefficient) of excluded labels, of which only the positive part counts.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
    candidates : bool array of shape (n_samples, n_labels)
    random_state : int, RandomState or None
    is_scaled : bool
        X is checked and standardised already, as in `CandidateClassifier`.

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
    X = X if is_scaled else scale_features(check_rows(X, candidates))
    excluded = ~candidates
    seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    excludes = excluded.any(axis=1)
    if excludes.any():
        model = fit_small_model(X[excludes], candidates[excludes], excluded_entropy, seed)
        probability = softmax(score_rows(model, X).astype(np.float64), axis=1)
    else:
        probability = np.full(candidates.shape, 1 / candidates.shape[1])
    return combine_transition(probability, candidates)


def combine_transition(probability: FloatMatrix, candidates: BoolMatrix) -> FloatMatrix:
    """Return the transition matrix, given the probability that each row excludes each label."""
    n_candidate = np.maximum(candidates.sum(axis=0), 1)
    first = _normalise_columns(probability.T @ candidates / n_candidate)
    return _normalise_columns(exclusion_correlation(~candidates) @ first)


def excluded_entropy(scores: Tensor, candidates: Tensor) -> Tensor:
    """Return the cross-entropy of a softmax with the excluded labels, equally weighted."""
    excluded = (~candidates).to(scores.dtype)
    target = excluded / excluded.sum(dim=1, keepdim=True).clamp(min=1)
    return -(target * torch.log_softmax(scores, dim=1)).sum(dim=1).mean()


def exclusion_correlation(excluded: BoolMatrix) -> FloatMatrix:
    """Return the positive part of the phi coefficients of excluded labels, rows summing to 1.

    The row of a label that is constant, or correlates with no other, is uniform over the others.
    """
    centred = excluded - excluded.mean(axis=0)
    spread = np.sqrt((centred**2).sum(axis=0))
    phi = centred.T @ centred / np.maximum(np.outer(spread, spread), 1e-300)
    phi = np.where(np.outer(spread, spread) > 0, phi, 0)
    return _normalise_columns(np.maximum(phi, 0).T).T


def _normalise_columns(matrix: FloatMatrix) -> FloatMatrix:
    """Set the diagonal to 0 and scale columns to sum to 1; columns of zeros become uniform."""
    q = len(matrix)
    matrix = matrix * (1 - np.eye(q))
    total = matrix.sum(axis=0)
    uniform = (1 - np.eye(q)) / max(q - 1, 1)
    return np.where(total > 0, matrix / np.where(total > 0, total, 1), uniform)
