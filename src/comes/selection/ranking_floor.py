"""A check that needs no true label: the ranking risk of held-out rows has a floor.

Where irrelevant labels are excluded at a constant rate and the class priors are right, Theorem 4 of
the paper gives, for any scores of rows that training did not see,

    R = sum_j (1 - pi_j) E[labels that score below j | j excluded]
      = (its ranking loss, at least 0) + sum_{j<k} p(y_j = 0, y_k = 0)
     >= sum_{j<k} max(0, 1 - pi_j - pi_k)

which the class priors alone give. A risk below it is impossible: the assumption or the priors are
wrong. A risk above it proves neither.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

from comes.answers import Answers
from comes.priors import ClassPriorEstimate
from comes.selection.intervals import MIN_ROWS
from comes.selection.judged_rows import check_rows
from comes.selection.prior_draws import prior_error

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RankingFloor:
    """The result of `check_ranking_risk`.

    Attributes
    ----------
    risk : float
        The ranking risk of the rows, with the 0-1 loss of pairs.
    high : float
        Its upper confidence limit. If the priors were estimated, it is wider by what their error
        does to the difference of risk and floor.
    floor : float
        What the class priors allow, at least.

    Examples
    --------
    >>> RankingFloor(risk=7.9, high=8.1, floor=10.6).is_possible
    False
    """

    risk: float
    high: float
    floor: float

    @property
    def is_possible(self) -> bool:
        """Whether the risk may lie at its floor or above."""
        return not self.high < self.floor

    @property
    def conclusion(self) -> str:
        """One sentence for a report."""
        found = (
            f"the estimated ranking risk of held-out rows is {self.risk:.4g} (at most "
            f"{self.high:.4g}), and the class priors allow {self.floor:.4g} or more"
        )
        if self.is_possible:
            return f"{found}: nothing speaks against the assumption or the priors."
        return (
            f"{found}: the class priors are wrong, or irrelevant labels are not excluded at a "
            "constant rate. Give priors that are known, or check the assumption on rows with true "
            "labels (comes check)."
        )


def check_ranking_risk(
    scores: npt.ArrayLike,
    candidates: npt.ArrayLike | Answers,
    class_prior: npt.ArrayLike | ClassPriorEstimate,
    *,
    class_prior_error: npt.ArrayLike | None = None,
    level: float = 0.95,
) -> RankingFloor:
    """Compare the ranking risk of rows that training did not see with what the priors allow.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
        Of any model; the better it is, the more the check can find.
    candidates : bool array of shape (n_samples, n_labels), or Answers
        Of the same rows. Answers to questions that a model chose are left out.
    class_prior : array of shape (n_labels,), or ClassPriorEstimate
    class_prior_error : array of shape (n_labels,), optional
        Standard error of a class prior that was estimated, NaN where it is not known; by default
        that of a ClassPriorEstimate. Labels without a known error are left out, as are those that
        fewer than 5 rows exclude.
    level : float
        Confidence level of the interval whose upper end is compared, by the normal approximation
        over rows.

    Returns
    -------
    floor : RankingFloor

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=(2000, 4))
    >>> relevant = scores == scores.max(axis=1, keepdims=True)  # one label per row
    >>> at_random = ~relevant & (rng.random((2000, 4)) < 0.5)
    >>> check_ranking_risk(scores, ~at_random, [0.25] * 4).is_possible
    True
    >>> only_the_last = scores == scores.min(axis=1, keepdims=True)  # what is easy to exclude
    >>> check_ranking_risk(scores, ~only_the_last, [0.25] * 4).is_possible
    False
    """
    rows, prior = check_rows(scores, candidates, class_prior, np.zeros(np.shape(scores)))
    given = prior_error(class_prior) if class_prior_error is None else class_prior_error
    error = np.zeros(len(prior)) if given is None else np.asarray(given, dtype=np.float64)
    labels = (rows.excluded.sum(axis=0) >= MIN_ROWS) & np.isfinite(error)
    excluded, below, prior, error = (
        of_labels[..., labels] for of_labels in (rows.excluded, rows.below, prior, error)
    )
    share = excluded.mean(axis=0)  # n_j / n
    mean_below = (excluded * below).mean(axis=0) / share  # E[labels below j | j excluded]
    # What each row adds to the risk, to first order: each mean is a ratio of two sums over rows.
    of_rows = (excluded * (below - mean_below)) @ ((1 - prior) / share)
    # One number moves the priors of all labels, as in `draw_priors`.
    up, down = (np.clip(prior + step, 0, 1) for step in (error, -error))
    of_prior = (down - up) @ mean_below - floor_of_prior(up) + floor_of_prior(down)
    deviation = np.sqrt(of_rows.var() / len(of_rows) + (of_prior / 2) ** 2)
    risk = float((1 - prior) @ mean_below)
    high = risk + float(norm.ppf((1 + level) / 2) * deviation)
    return RankingFloor(risk, high, floor_of_prior(prior))


def floor_of_prior(prior: FloatArray) -> float:
    """Return the sum over pairs j < k of max(0, 1 - pi_j - pi_k)."""
    both = np.maximum(0, 1 - prior[:, None] - prior[None, :])
    return float((both.sum() - np.trace(both)) / 2)
