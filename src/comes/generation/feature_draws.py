"""Candidates whose exclusion depends on the features, and how a probability comes to do so."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import expit

from comes.answers import BoolMatrix, as_relevant
from comes.columns import encode_table
from comes.errors import ComesError
from comes.generation.draw_rates import Rate, Seed, check_rate, make_generator

FloatArray = npt.NDArray[np.float64]


def instance_dependent(
    relevant: npt.ArrayLike,
    X: npt.ArrayLike,
    exclude_rate: Rate = 0.1,
    strength: float = 2.0,
    seed: Seed = 0,
) -> BoolMatrix:
    """Exclude an irrelevant label with a probability that depends on the features.

    Every label has a random direction w_j in the space of features. The probability for row x is
    sigmoid(a_j + strength * z_j(x)), with z_j the standardised projection of x on w_j, and a_j such
    that the mean over the rows irrelevant to j is ``exclude_rate``. A stress test: it breaks
    Lemma 1, on which most methods rely. With strength 0 it is `case_a`.

    Parameters
    ----------
    relevant : bool array of shape (n_samples, n_labels)
    X : array or CSR matrix of shape (n_samples, n_features)
    exclude_rate : float or array of shape (n_labels,)
        Mean probability over the irrelevant rows, in [0, 1].
    strength : float
        How strongly the probability depends on the features.
    seed : int or numpy Generator

    Returns
    -------
    candidates : bool array of shape (n_samples, n_labels)

    Examples
    --------
    >>> X = np.linspace(-1, 1, 1000)[:, None]
    >>> excluded = ~instance_dependent(np.zeros((1000, 1)), X, exclude_rate=0.5)
    >>> bool(abs(excluded[:500].mean() - excluded[500:].mean()) > 0.2)
    True
    """
    relevant = as_relevant(relevant)
    rate = check_rate(exclude_rate, relevant.shape[1], "exclude_rate")
    check_strength(strength, "strength")
    features = check_features(X, len(relevant))
    rng = make_generator(seed)
    z = project_rows(features, relevant.shape[1], rng)
    probability = depend_on(strength * z, ~relevant, rate)
    return np.asarray(relevant | (rng.random(relevant.shape) >= probability))


def check_strength(strength: float, name: str) -> None:
    """Raise an error if a strength is not a number."""
    if not np.isfinite(strength):
        raise ComesError(f"{name} must be a finite number; got {strength}.")


def project_rows(features: Any, n_directions: int, rng: np.random.Generator) -> FloatArray:
    """Return standardised projections of rows on random directions, (n_samples, n_directions)."""
    scale = _measure_columns(features)
    directions = rng.normal(size=(features.shape[1], n_directions)) / scale[:, None]
    projection = np.asarray(features @ directions)
    spread = projection.std(axis=0)
    return np.asarray((projection - projection.mean(axis=0)) / np.where(spread > 0, spread, 1))


def depend_on(slope: FloatArray, pairs: BoolMatrix, rate: FloatArray) -> FloatArray:
    """Return probabilities with this slope of their logit whose mean over the pairs is the rate.

    All arguments and the result are (n_samples, n_labels), but the rate is (n_labels,).
    """
    if not slope.any():
        return np.broadcast_to(rate, slope.shape)
    inside = expit(_find_level(slope, pairs, rate) + slope)
    return np.where(rate >= 1, 1.0, np.where(rate <= 0, 0.0, inside))


def _find_level(
    slope: npt.NDArray[np.float64], irrelevant: BoolMatrix, rate: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return a_j so that sigmoid(a_j + slope) has the rate as its mean over irrelevant rows."""
    n_irrelevant = np.maximum(irrelevant.sum(axis=0), 1)
    low = np.full(slope.shape[1], -50.0 - np.abs(slope).max())
    high = -low
    for _ in range(60):
        middle = (low + high) / 2
        mean = (expit(middle + slope) * irrelevant).sum(axis=0) / n_irrelevant
        low, high = np.where(mean < rate, middle, low), np.where(mean < rate, high, middle)
    return np.asarray((low + high) / 2)


def check_features(X: npt.ArrayLike, n: int) -> Any:
    """Return X as a finite float array or CSR matrix of n rows, or raise an error."""
    X = encode_table(X)
    features = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X, dtype=float)
    if not np.isfinite(features.data if sparse.issparse(features) else features).all():
        raise ComesError(
            "features must be finite; got NaN or infinity. Fill or drop those entries."
        )
    if features.ndim != 2 or features.shape[0] != n:
        raise ComesError(
            f"{n} rows of labels need as many rows of features; got shape {features.shape}."
        )
    return features


def _measure_columns(X: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the standard deviation of every feature, 1 if it is constant; X may be sparse."""
    mean = np.asarray(X.mean(axis=0)).ravel()
    square = np.asarray((X * X).mean(axis=0)).ravel()
    variance = np.maximum(square - mean**2, 0)
    return np.where(variance > 1e-12 * np.maximum(square, 1e-300), np.sqrt(variance), 1.0)
