"""Thresholds of scores, label by label, from candidates or answers and class priors."""

from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from comes.answers import Answers
from comes.errors import ComesError
from comes.selection.judged_rows import check_scores, read_answers
from comes.selection.resampling import MIN_CONFIRMED

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]  # (n,)
By = Literal["risk", "f1", "prior"]


def choose_thresholds(
    scores: npt.ArrayLike,
    candidates: npt.ArrayLike | Answers,
    class_prior: npt.ArrayLike,
    by: By = "risk",
) -> FloatArray:
    """Return the threshold of every label; scores above it predict relevant.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
        Scores of rows that training did not see, or cross-fitted scores.
    candidates : bool array of shape (n_samples, n_labels), or Answers
        Of answers, "yes" counts too, as in `estimate_metrics`.
    class_prior : array of shape (n_labels,)
    by : {"risk", "f1", "prior"}
        "risk" minimises the estimated error of the label, pi - f + 2 (1 - pi) FPR, and so the
        Hamming loss; "f1" maximises the estimated F1; "prior" predicts the label for a share of
        rows equal to its prior.

    Returns
    -------
    thresholds : array of shape (n_labels,)
        Midway between two scores; inf never predicts the label, -inf always does. A label that no
        row excludes is cut by its prior.

    Examples
    --------
    >>> scores = [[4.0], [3.0], [2.0], [1.0]]
    >>> candidates = [[1], [1], [0], [0]]
    >>> choose_thresholds(scores, candidates, [0.5])
    array([2.5])
    """
    if by not in ("risk", "f1", "prior"):
        raise ComesError(f"by must be 'risk', 'f1' or 'prior'; got {by!r}.")
    values = np.asarray(scores, dtype=np.float64)
    possible, confirmed = read_answers(candidates)
    prior = check_scores(values, possible, class_prior)
    columns = zip(values.T, ~possible.T, confirmed.T, prior, strict=True)
    return np.array([_choose_threshold(*column, by) for column in columns])


def cut_by_row(scores: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Predict the labels whose probability is in the upper half of their row's range.

    The sigmoid of the scores is rescaled to [0, 1] within each row, unless all are equal, and cut
    at 0.5. Much of the field does this.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)

    Returns
    -------
    predictions : bool array of shape (n_samples, n_labels)

    Examples
    --------
    >>> cut_by_row([[-3.0, -2.0, -9.0]])
    array([[False,  True, False]])
    """
    squashed = expit(np.asarray(scores, dtype=np.float64))
    if np.isnan(squashed).any():
        raise ComesError("scores must be numbers; got NaN. Look at the model's inputs.")
    low, high = squashed.min(axis=1, keepdims=True), squashed.max(axis=1, keepdims=True)
    width = np.where(high > low, high - low, 1)
    return np.asarray(np.where(high > low, (squashed - low) / width, squashed) > 0.5)


def _choose_threshold(
    scores: FloatArray, excluded: BoolArray, confirmed: BoolArray, prior: float, by: By
) -> float:
    """Return the best threshold of one label, among those between two distinct scores."""
    order = np.argsort(-scores, kind="stable")
    ranked, n = scores[order], len(scores)
    predicted = np.arange(n + 1) / n  # f, with 0 to n rows above the cut
    if by == "prior" or not excluded.any():
        loss = np.abs(predicted - prior)
    else:
        false_positives = (1 - prior) * _count_above(excluded[order])
        if confirmed.sum() >= MIN_CONFIRMED:
            true_positives = prior * _count_above(confirmed[order])
            predicted = true_positives + false_positives
        else:
            true_positives = np.clip(predicted - false_positives, 0, np.minimum(predicted, prior))
        if by == "risk":
            loss = prior - predicted + 2 * false_positives
        else:
            loss = -2 * true_positives / np.maximum(predicted + prior, 1e-12)
    possible = np.concatenate([[True], ranked[1:] < ranked[:-1], [True]])
    cut = int(np.where(possible, loss, np.inf).argmin())
    if cut in (0, n):  # never, or always
        return np.inf if cut == 0 else -np.inf
    high, low = float(ranked[cut - 1]), float(ranked[cut])
    middle = low / 2 + high / 2
    return middle if middle < high else low


def _count_above(marked: BoolArray) -> FloatArray:
    """Return the share of the marked rows among the first 0 to n rows, (n + 1,)."""
    return np.asarray(np.concatenate([[0], marked.cumsum()]) / marked.sum())
