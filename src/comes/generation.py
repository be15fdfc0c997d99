"""Candidate labels generated from true ones: the paper's two processes, and three others.

====================  =======================================================  =======
process               an irrelevant label j of an instance x is excluded       Lemma 1
====================  =======================================================  =======
`case_a`              with probability 1 - flip_rate, independently            holds
`case_b`              on an exact share of the instances irrelevant to j       holds
`one_uniform`         if it is the one drawn among the irrelevant ones         fails
`random_size`         if it is in a random set of random size (CTL)            fails
`instance_dependent`  with a probability that depends on x                     fails
====================  =======================================================  =======

Lemma 1 says that the instances that exclude j are a fair sample of those irrelevant to j,
p(x | j excluded) = p(x | j irrelevant). It holds if the probability of excluding an irrelevant
label is one number per label. In `one_uniform` and `random_size` it depends on how many labels are
relevant: an instance with few irrelevant labels excludes each of them more often. There the lemma
holds only in special cases, such as when every instance has the same number of relevant labels.

`Case` names the processes for `generate`.
"""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import expit

from comes.answers import BoolMatrix, as_relevant
from comes.errors import ComesError

__all__ = [
    "Case",
    "case_a",
    "case_b",
    "generate",
    "instance_dependent",
    "one_uniform",
    "random_size",
]

Rate = float | npt.ArrayLike
Seed = int | np.random.Generator
Case = Literal["a", "b", "one", "size", "instance"]


def generate(
    case: Case,
    relevant: npt.ArrayLike,
    X: npt.ArrayLike | None = None,
    *,
    rate: Rate | None = None,
    strength: float | None = None,
    seed: Seed = 0,
) -> BoolMatrix:
    """Generate candidates by a named process; an option that is None takes the process's default.

    Parameters
    ----------
    case : {"a", "b", "one", "size", "instance"}
        For `case_a`, `case_b`, `one_uniform`, `random_size` and `instance_dependent`.
    relevant : bool array of shape (n_samples, n_labels)
    X : array or CSR matrix of shape (n_samples, n_features), optional
        Needed by "instance".
    rate : float or array of shape (n_labels,), optional
        The flip rate of "a", the exclude rate of "b" and "instance". The others have none.
    strength : float, optional
        Only for "instance".
    seed : int or numpy Generator

    Returns
    -------
    candidates : bool array of shape (n_samples, n_labels)

    Examples
    --------
    >>> (~generate("b", np.zeros((40, 1)), rate=0.25)).sum()
    np.int64(10)
    """
    if rate is not None and case in ("one", "size"):
        raise ComesError(f"case {case} has no rate; got {rate}. Leave it out.")
    if strength is not None and case != "instance":
        raise ComesError(f"case {case} has no strength; got {strength}. Leave it out.")
    if case == "a":
        return case_a(relevant, seed=seed) if rate is None else case_a(relevant, rate, seed)
    if case == "b":
        return case_b(relevant, seed=seed) if rate is None else case_b(relevant, rate, seed)
    if case == "one":
        return one_uniform(relevant, seed)
    if case == "size":
        return random_size(relevant, seed)
    if X is None:
        raise ComesError("case instance needs features; got none. Pass X, or take another case.")
    given = {"exclude_rate": rate, "strength": strength}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return instance_dependent(relevant, X, seed=seed, **options)


def case_a(relevant: npt.ArrayLike, flip_rate: Rate = 0.9, seed: Seed = 0) -> BoolMatrix:
    """Let every irrelevant label become a candidate with probability ``flip_rate``.

    Parameters
    ----------
    relevant : bool array of shape (n_samples, n_labels)
    flip_rate : float or array of shape (n_labels,)
        P(candidate | irrelevant), in [0, 1].
    seed : int or numpy Generator

    Returns
    -------
    candidates : bool array of shape (n_samples, n_labels)

    Examples
    --------
    >>> relevant = np.eye(3, dtype=bool)
    >>> case_a(relevant, flip_rate=1.0).all()
    np.True_
    """
    relevant = as_relevant(relevant)
    rate = _check_rate(flip_rate, relevant.shape[1], "flip_rate")
    draws = np.random.default_rng(seed).random(relevant.shape)
    return np.asarray(relevant | (draws < rate))


def case_b(relevant: npt.ArrayLike, exclude_rate: Rate = 0.1, seed: Seed = 0) -> BoolMatrix:
    """Exclude every label on an exact share of the rows it is irrelevant to.

    For label j, floor(exclude_rate * number of irrelevant rows) of those rows are drawn without
    replacement. The paper samples "a fraction of the training data" per class. Relevant rows
    cannot be drawn, so we take a fraction of the irrelevant rows.

    Parameters
    ----------
    relevant : bool array of shape (n_samples, n_labels)
    exclude_rate : float or array of shape (n_labels,)
        Share of the irrelevant rows, in [0, 1].
    seed : int or numpy Generator

    Returns
    -------
    candidates : bool array of shape (n_samples, n_labels)

    Examples
    --------
    >>> relevant = np.zeros((40, 2), dtype=bool)
    >>> (~case_b(relevant, exclude_rate=[0.1, 0.5])).sum(axis=0)
    array([ 4, 20])
    """
    relevant = as_relevant(relevant)
    rate = _check_rate(exclude_rate, relevant.shape[1], "exclude_rate")
    # The small addend keeps 0.29 * 100 = 28.999... from losing a row.
    n_excluded = np.floor(rate * (~relevant).sum(axis=0) + 1e-9).astype(int)
    draws = np.where(relevant, 2.0, np.random.default_rng(seed).random(relevant.shape))
    rank = draws.argsort(axis=0).argsort(axis=0)
    return np.asarray(rank >= n_excluded)


def one_uniform(relevant: npt.ArrayLike, seed: Seed = 0) -> BoolMatrix:
    """Exclude one label per row, drawn uniformly from the irrelevant ones (GDF, MLCL).

    A row without an irrelevant label excludes nothing.

    Parameters
    ----------
    relevant : bool array of shape (n_samples, n_labels)
    seed : int or numpy Generator

    Returns
    -------
    candidates : bool array of shape (n_samples, n_labels)

    Examples
    --------
    >>> (~one_uniform(np.zeros((3, 5)))).sum(axis=1)
    array([1, 1, 1])
    """
    relevant = as_relevant(relevant)
    return _exclude_drawn(relevant, np.ones(len(relevant), dtype=int), np.random.default_rng(seed))


def random_size(relevant: npt.ArrayLike, seed: Seed = 0) -> BoolMatrix:
    """Exclude a random number of labels per row, drawn from the irrelevant ones (CTL).

    The number is s with probability C(q, s) / (2^q - 2), for s = 1 to q - 1: the size of a random
    set of labels that is neither empty nor full. A row with fewer irrelevant labels excludes all of
    them.

    Parameters
    ----------
    relevant : bool array of shape (n_samples, n_labels)
        At least two labels.
    seed : int or numpy Generator

    Returns
    -------
    candidates : bool array of shape (n_samples, n_labels)

    Examples
    --------
    >>> excluded = ~random_size(np.zeros((1000, 2)))
    >>> excluded.sum(axis=1).min(), excluded.sum(axis=1).max()
    (np.int64(1), np.int64(1))
    """
    relevant = as_relevant(relevant)
    n, q = relevant.shape
    if q < 2:
        raise ComesError(
            f"a set that is neither empty nor full needs two labels; got {q}. Take case_b."
        )
    rng = np.random.default_rng(seed)
    sizes = np.asarray(rng.binomial(q, 0.5, size=n))
    while (redraw := (sizes == 0) | (sizes == q)).any():
        sizes[redraw] = rng.binomial(q, 0.5, size=int(redraw.sum()))
    return _exclude_drawn(relevant, sizes, rng)


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
    rate = _check_rate(exclude_rate, relevant.shape[1], "exclude_rate")
    if not np.isfinite(strength):
        raise ComesError(f"strength must be a finite number; got {strength}.")
    features = _check_features(X, len(relevant))
    rng = np.random.default_rng(seed)
    scale = _measure_columns(features)
    directions = rng.normal(size=(features.shape[1], relevant.shape[1])) / scale[:, None]
    projection = np.asarray(features @ directions)
    spread = projection.std(axis=0)
    z = (projection - projection.mean(axis=0)) / np.where(spread > 0, spread, 1)
    level = _find_level(strength * z, ~relevant, rate)
    probability = np.where(rate >= 1, 1.0, np.where(rate <= 0, 0.0, expit(level + strength * z)))
    return np.asarray(relevant | (rng.random(relevant.shape) >= probability))


def _check_features(X: npt.ArrayLike, n: int) -> Any:
    """Return X as a finite float array or CSR matrix of n rows, or raise an error."""
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


def _exclude_drawn(
    relevant: BoolMatrix, sizes: npt.NDArray[np.int64], rng: np.random.Generator
) -> BoolMatrix:
    """Exclude ``sizes[i]`` of the irrelevant labels of row i, drawn uniformly."""
    draws = np.where(relevant, 2.0, rng.random(relevant.shape))
    rank = draws.argsort(axis=1).argsort(axis=1)
    return np.asarray(relevant | (rank >= sizes[:, None]))


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


def _measure_columns(X: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the standard deviation of every feature, 1 if it is constant; X may be sparse."""
    mean = np.asarray(X.mean(axis=0)).ravel()
    square = np.asarray((X * X).mean(axis=0)).ravel()
    variance = np.maximum(square - mean**2, 0)
    return np.where(variance > 1e-12 * np.maximum(square, 1e-300), np.sqrt(variance), 1.0)


def _check_rate(rate: Rate, q: int, name: str) -> npt.NDArray[np.float64]:
    """Return one rate per label, or raise an error."""
    rates = np.asarray(rate, dtype=float)
    if rates.shape not in ((), (q,)) or not ((rates >= 0) & (rates <= 1)).all():
        raise ComesError(
            f"{name} must be one number in [0, 1], or one for each of the {q} labels; got {rate!r}."
        )
    return np.broadcast_to(rates, (q,))
