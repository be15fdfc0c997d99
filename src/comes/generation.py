"""Candidate labels made from true ones, as in the experiments of the paper.

Both cases exclude every irrelevant label j with one constant probability, whatever the
instance, so that the instances that exclude j are a fair sample of those irrelevant to j
(Lemma 1 of the paper). They have the same marginals; case b also fixes the count per label.
"""

import numpy as np
import numpy.typing as npt

from comes.errors import ComesError
from comes.labels import BoolMatrix, as_relevant

Rate = float | npt.ArrayLike


def case_a(
    relevant: npt.ArrayLike, flip_rate: Rate = 0.9, seed: int | np.random.Generator = 0
) -> BoolMatrix:
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
    rate = _checked_rate(flip_rate, relevant.shape[1], "flip_rate")
    draws = np.random.default_rng(seed).random(relevant.shape)
    return np.asarray(relevant | (draws < rate))


def case_b(
    relevant: npt.ArrayLike, exclude_rate: Rate = 0.1, seed: int | np.random.Generator = 0
) -> BoolMatrix:
    """Exclude every label on an exact share of the rows it is irrelevant to.

    For label j, floor(exclude_rate * number of irrelevant rows) of those rows are drawn without
    replacement. The paper samples "a fraction of the training data" per class; relevant rows
    cannot be drawn, so the fraction is read as one of the irrelevant rows.

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
    rate = _checked_rate(exclude_rate, relevant.shape[1], "exclude_rate")
    # The small addend keeps 0.29 * 100 = 28.999... from losing a row.
    n_excluded = np.floor(rate * (~relevant).sum(axis=0) + 1e-9).astype(int)
    draws = np.where(relevant, 2.0, np.random.default_rng(seed).random(relevant.shape))
    rank = draws.argsort(axis=0).argsort(axis=0)
    return np.asarray(rank >= n_excluded)


def _checked_rate(rate: Rate, q: int, name: str) -> npt.NDArray[np.float64]:
    """Return one rate per label."""
    rates = np.asarray(rate, dtype=float)
    if rates.shape not in ((), (q,)) or not ((rates >= 0) & (rates <= 1)).all():
        raise ComesError(
            f"{name} must be one number in [0, 1], or one for each of the {q} labels; got {rate!r}."
        )
    return np.broadcast_to(rates, (q,))
