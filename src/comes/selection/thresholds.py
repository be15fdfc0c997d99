"""Where to cut the scores of each label, and how to move them, so that they fit a class prior.

`choose_thresholds` cuts by the estimates of `comes.selection.estimates`: with f the share of rows
above the cut and FPR the same among rows that exclude the label, "risk" takes the least

    error = pi - f + 2 (1 - pi) FPR

and "f1" the greatest 2 (f - (1 - pi) FPR) / (f + pi). The other functions need no answers:
`cut_as_expected` cuts where probabilities say, `cut_by_row` compares the labels of a row, and
`offset_matching_prior` solves, for every label, mean sigmoid(g - offset) = pi.
"""

from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from comes.answers import Answers
from comes.errors import ComesError
from comes.selection.estimates import MIN_CONFIRMED, read_rows

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]  # (n,)
By = Literal["risk", "f1", "prior"]

MOST_TIMES = 2.0  # the class prior: no label is expected on more rows
FAR_BELOW = -30.0  # scores below are so small that 1 - (1 - eta)^k is k eta


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
        Scores of held-out rows, or cross-fitted scores.
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
    values, answers, prior = read_rows(scores, candidates, class_prior)
    columns = zip(values.T, answers.excluded.T, answers.confirmed.T, prior, strict=True)
    return np.array([_choose_threshold(*column, by) for column in columns])


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
        false_positives = (1 - prior) * _share_above(excluded[order])
        if confirmed.sum() >= MIN_CONFIRMED:
            true_positives = prior * _share_above(confirmed[order])
            predicted = true_positives + false_positives
        else:
            true_positives = np.clip(predicted - false_positives, 0, np.minimum(predicted, prior))
        if by == "risk":
            loss = prior - predicted + 2 * false_positives
        else:
            loss = -2 * true_positives / np.maximum(predicted + prior, 1e-12)
    is_cut = np.concatenate([[True], ranked[1:] < ranked[:-1], [True]])
    cut = int(np.where(is_cut, loss, np.inf).argmin())
    if cut in (0, n):  # never, or always
        return np.inf if cut == 0 else -np.inf
    high, low = float(ranked[cut - 1]), float(ranked[cut])
    middle = low / 2 + high / 2
    return middle if middle < high else low


def _share_above(marked: BoolArray) -> FloatArray:
    """Return the share of the marked rows among the first 0 to n rows, (n + 1,)."""
    return np.asarray(np.concatenate([[0], marked.cumsum()]) / marked.sum())


def cut_as_expected(scores: npt.ArrayLike, class_prior: npt.ArrayLike | None = None) -> FloatArray:
    """Return the cut of every label that predicts it for as many rows as are expected, (q,).

    The scores are log odds, and so many are expected as their probabilities add up to, but at most
    twice as many as the class prior says. No cut is below that of the greatest expected F1, nor
    above a probability of one half, where the expected Hamming loss is least.
    """
    values = np.asarray(scores, dtype=np.float64)
    eta = expit(values)
    share = eta.mean(axis=0)
    if class_prior is not None:
        share = np.minimum(share, MOST_TIMES * np.asarray(class_prior))
    no_row = np.zeros(len(values), dtype=bool)  # excludes the label, or confirms it
    as_often = [
        _choose_threshold(column, no_row, no_row, own_share, "prior")
        for column, own_share in zip(values.T, share, strict=True)
    ]
    return np.clip(as_often, logit(cut_of_greatest_f1(eta)), 0)


def cut_of_greatest_f1(eta: FloatArray) -> FloatArray:
    """Return the cut of the probabilities of every label that has the greatest expected F1, (q,).

    With F(t) = 2 (sum of eta above t) / (sum of eta + rows above t), the best t is F(t) / 2, and
    for a lower t F(t) / 2 lies between the two.
    """
    cut = np.zeros(eta.shape[1])
    while True:
        above = eta > cut
        rows = eta.sum(axis=0) + above.sum(axis=0)
        half = np.where(above, eta, 0).sum(axis=0) / np.maximum(rows, np.finfo(float).tiny)
        if not (half > cut).any():
            return cut
        cut = np.maximum(cut, half)


def cut_by_row(scores: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Predict the labels whose probability is in the upper half of their row's range.

    Much of the field does this: the sigmoid of the scores is rescaled to [0, 1] within each row,
    unless all are equal, and cut at 0.5.
    """
    eta = expit(np.asarray(scores, dtype=np.float64))
    if np.isnan(eta).any():
        raise ComesError("scores must be numbers; got NaN. Look at the model's inputs.")
    low, high = eta.min(axis=1, keepdims=True), eta.max(axis=1, keepdims=True)
    width = np.where(high > low, high - low, 1)
    return np.asarray(np.where(high > low, (eta - low) / width, eta) > 0.5)


def offset_matching_prior(
    scores: npt.ArrayLike, class_prior: npt.ArrayLike, *, weight: npt.ArrayLike | None = None
) -> FloatArray:
    """Return, per label, the offset for which sigmoid(score - offset) has the prior as its mean.

    For a prior of 0 or 1 it lies far above or below every score. The weight of rows is (n,).
    """
    values, prior = (np.asarray(given, dtype=np.float64) for given in (scores, class_prior))
    if not np.isfinite(values).all():
        raise ComesError("scores must be finite; got NaN or infinity. Look at the model's inputs.")
    if not ((prior >= 0) & (prior <= 1)).all():
        raise ComesError(f"class_prior must hold numbers in [0, 1]; got {prior.tolist()}.")
    weights = None if weight is None else np.asarray(weight, dtype=np.float64)
    low, high = values.min(axis=0) - 40, values.max(axis=0) + 40
    for _ in range(60):  # bisection: the mean probability falls as the offset rises
        offset = (low + high) / 2
        too_many = np.average(expit(values - offset), axis=0, weights=weights) > prior
        low, high = np.where(too_many, offset, low), np.where(too_many, high, offset)
    return np.asarray((low + high) / 2)


def recalibrate_to_prior(scores: npt.ArrayLike, power: npt.ArrayLike) -> npt.NDArray[np.floating]:
    """Return the log odds of eta with 1 - eta = (1 - sigmoid(g))^power, in the scores' precision.

    Models of version 1.0.0 with rates by instance have such powers, (q,) and above 0.
    """
    g = np.asarray(scores)
    k = np.asarray(power, dtype=np.float64)
    far = k * np.logaddexp(0, np.maximum(g, FAR_BELOW))  # -log(1 - eta)
    bent = np.where(g < FAR_BELOW, g + np.log(k), far + np.log(-np.expm1(-far)))
    return bent.astype(np.result_type(g.dtype, np.float32))
