"""Candidates that are drawn without a look at the features."""

import numpy as np
import numpy.typing as npt

from comes.answers import BoolMatrix, as_relevant
from comes.errors import ComesError
from comes.generation.draw_rates import Rate, Seed, check_rate, make_generator


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
    rate = check_rate(flip_rate, relevant.shape[1], "flip_rate")
    draws = make_generator(seed).random(relevant.shape)
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
    rate = check_rate(exclude_rate, relevant.shape[1], "exclude_rate")
    # The small addend keeps 0.29 * 100 = 28.999... from losing a row.
    n_excluded = np.floor(rate * (~relevant).sum(axis=0) + 1e-9).astype(int)
    draws = np.where(relevant, 2.0, make_generator(seed).random(relevant.shape))
    rank = draws.argsort(axis=0).argsort(axis=0)
    return np.asarray(rank >= n_excluded)


def independent(relevant: npt.ArrayLike, exclude_rate: Rate = 0.1, seed: Seed = 0) -> BoolMatrix:
    """Exclude every irrelevant label with probability ``exclude_rate``.

    As if pairs were drawn and asked about at that rate, and every irrelevant one were called so.
    It is `case_a` named by the other rate. Unlike the exact counts of `case_b`, the number of
    excluded rows does not reveal how many are irrelevant, even where the rate is known.

    Parameters
    ----------
    relevant : bool array of shape (n_samples, n_labels)
    exclude_rate : float or array of shape (n_labels,)
        P(excluded | irrelevant), in [0, 1].
    seed : int or numpy Generator

    Returns
    -------
    candidates : bool array of shape (n_samples, n_labels)

    Examples
    --------
    >>> (~independent(np.zeros((40, 3)), exclude_rate=0.25)).sum(axis=0)  # 10 in expectation
    array([12, 13, 12])
    """
    rate = check_rate(exclude_rate, as_relevant(relevant).shape[1], "exclude_rate")
    return case_a(relevant, 1 - rate, seed)


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
    return _exclude_drawn(relevant, np.ones(len(relevant), dtype=int), make_generator(seed))


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
    rng = make_generator(seed)
    sizes = np.asarray(rng.binomial(q, 0.5, size=n))
    while (redraw := (sizes == 0) | (sizes == q)).any():
        sizes[redraw] = rng.binomial(q, 0.5, size=int(redraw.sum()))
    return _exclude_drawn(relevant, sizes, rng)


def _exclude_drawn(
    relevant: BoolMatrix, sizes: npt.NDArray[np.int64], rng: np.random.Generator
) -> BoolMatrix:
    """Exclude ``sizes[i]`` of the irrelevant labels of row i, drawn uniformly."""
    draws = np.where(relevant, 2.0, rng.random(relevant.shape))
    rank = draws.argsort(axis=1).argsort(axis=1)
    return np.asarray(relevant | (rank >= sizes[:, None]))
