r"""Scores made log odds again, by what is known about rows that training did not see.

Label j gets a slope and a level, :math:`\operatorname{logit} \eta_j = e^{s + s_j} g_j + c + c_j`,
so that what was said about the rows is most likely. Normal priors around 0 keep s and c, which all
labels share, and s_j and c_j, which are a label's own, near what the scores say themselves: with
few rows nothing changes, with more all labels move together, and with many each goes its own way.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit

from comes.errors import ComesError

FloatArray = npt.NDArray[np.float64]
# Standard deviations of what all labels share, and of a label's own: of the logarithm of the slope,
# and of the level. The best of five by log loss on three sets: experiments/calibration.py.
SHARED_SPREAD = (1.0, 1.0)
OWN_SPREAD = (0.25, 0.5)
FAR = 60.0  # log odds beyond which a probability is 0 or 1


@dataclass(frozen=True, eq=False)
class Calibration:
    """A slope and a level for the scores of every label.

    Attributes
    ----------
    slope, level : arrays of shape (n_labels,)

    Examples
    --------
    >>> Calibration(np.array([0.5]), np.array([1.0])).calibrate([[4.0]])
    array([[3.]])
    """

    slope: FloatArray
    level: FloatArray

    def calibrate(self, scores: npt.ArrayLike) -> FloatArray:
        """Return log odds of relevance, (n_samples, n_labels)."""
        return np.asarray(np.asarray(scores) * self.slope + self.level)


def fit_calibration(
    scores: npt.ArrayLike,
    leaning: npt.ArrayLike,
    *,
    shared_spread: tuple[float, float] = SHARED_SPREAD,
    own_spread: tuple[float, float] = OWN_SPREAD,
) -> Calibration:
    """Return the slopes and levels that make what is known about rows most likely.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
        Log odds, as far as they are, of rows that training did not see.
    leaning : array of shape (n_samples, n_labels)
        What is known, from `comes.answers.answer_evidence`; of true labels, 1 for relevant and -1
        for irrelevant. 0 says nothing.
    shared_spread, own_spread : pairs of float
        How far the logarithm of the slope, and the level, are expected to be from 0: in common,
        and of each label apart.

    Returns
    -------
    calibration : Calibration

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(size=(5000, 2))
    >>> relevant = rng.random((5000, 2)) < expit(log_odds)
    >>> found = fit_calibration(3 * log_odds - 1, np.where(relevant, 1, -1))
    >>> bool(np.abs(found.calibrate(3 * log_odds - 1) - log_odds).mean() < 0.1)
    True
    """
    g, r = (np.asarray(values, dtype=np.float64) for values in (scores, leaning))
    if g.ndim != 2 or g.shape != r.shape or not np.isfinite(g).all():
        raise ComesError(
            "calibration needs finite scores, and as many leanings; got shapes "
            f"{g.shape} and {r.shape}."
        )
    q = g.shape[1]
    spread = np.repeat([*shared_spread, *own_spread], [1, 1, q, q])
    found = minimize(_lose, np.zeros(2 * q + 2), args=(g, r, spread), jac=True, method="L-BFGS-B")
    log_slope, level = _split(found.x, q)
    return Calibration(np.exp(log_slope), level)


def _split(parameters: FloatArray, q: int) -> tuple[FloatArray, FloatArray]:
    """Return the logarithm of the slope, and the level, of every label."""
    shared_slope, shared_level = parameters[:2]
    return shared_slope + parameters[2 : q + 2], shared_level + parameters[q + 2 :]


def _lose(
    parameters: FloatArray, g: FloatArray, r: FloatArray, spread: FloatArray
) -> tuple[float, Any]:
    """Return minus the log-likelihood and log prior, up to a constant, and its gradient."""
    log_slope, level = _split(parameters, g.shape[1])
    steep = np.exp(log_slope) * g
    t = np.clip(np.sign(r) * (steep + level), -FAR, FAR)
    odds = np.abs(r) / (1 - np.abs(r) + np.exp(t))  # the loss is log(1 + odds)
    value = np.log1p(odds).sum() + 0.5 * np.square(parameters / spread).sum()
    slope_of_loss = -np.sign(r) * expit(t) * odds
    by_slope, by_level = (slope_of_loss * steep).sum(axis=0), slope_of_loss.sum(axis=0)
    shared = [by_slope.sum(), by_level.sum()]
    return float(value), np.concatenate([shared, by_slope, by_level]) + parameters / spread**2
