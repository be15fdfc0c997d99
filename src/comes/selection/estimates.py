"""Metrics of scores estimated from candidates of rows that training did not see.

Rows that exclude label j are a sample of the rows it is irrelevant to (Lemma 1 of the paper), all
rows are one of everything, and the class prior pi_j says how the two mix. With f_j the share of
rows predicted to have label j, and FPR_j the same among rows that exclude it:

    error_j     = pi_j - f_j + 2 (1 - pi_j) FPR_j          (Theorem 1 with the 0-1 loss)
    recall_j    = (f_j - (1 - pi_j) FPR_j) / pi_j
    precision_j = (f_j - (1 - pi_j) FPR_j) / f_j
    F1_j        = 2 (f_j - (1 - pi_j) FPR_j) / (f_j + pi_j)
    AUC_j       = (A_j - (1 - pi_j) / 2) / pi_j            A_j: a row beats one that excludes j
    ranking     = sum_j (1 - pi_j) E[labels that score below j | j excluded]    (Theorem 4)

docs/selection.md derives them. Error, recall, AUC and the ranking risk are unbiased, precision and
F1 consistent. The ranking risk is that of the paper's Equation 3 plus a constant that no model
changes, so only differences of it mean something.
"""

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import expit, logit
from scipy.stats import rankdata

from comes.errors import ComesError
from comes.labels import BoolMatrix, as_candidates
from comes.priors import ClassPriorEstimate

FloatArray = npt.NDArray[np.float64]

PER_LABEL = ("error", "recall", "precision", "f1", "auc")
# What a metric of all labels is called, and which of the above it is the mean of.
OVER_LABELS = {
    "hamming_loss": "error",
    "macro_recall": "recall",
    "macro_precision": "precision",
    "macro_f1": "f1",
    "macro_auc": "auc",
}
WEIGHTS_AT_ONCE = 2**24


@dataclass(frozen=True)
class Estimate:
    """A metric with an interval for what other rows would have given."""

    value: float
    low: float
    high: float
    # The same with the uncertainty of the class prior; equal to low and high if it is known.
    low_with_prior: float
    high_with_prior: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low_with_prior:.3f} to {self.high_with_prior:.3f})"


@dataclass(frozen=True)
class MetricEstimates:
    """What `estimate_metrics` found."""

    metrics: dict[str, Estimate]
    per_label: pd.DataFrame  # a row per label: n_excluded, class_prior, estimates and intervals
    prior_error: str  # where the uncertainty of the class prior comes from
    left_out: list[int]  # labels that nothing excludes, of which nothing can be said

    def __getitem__(self, name: str) -> Estimate:
        return self.metrics[name]


class _Rows(NamedTuple):
    """What every resampling of the rows needs, computed once."""

    scores: FloatArray  # (n, q)
    predicted: FloatArray  # (n, q), 0 or 1
    excluded: FloatArray  # (n, q), 0 or 1
    below: FloatArray  # (n, q), labels of the row that score below, ties counted half


def estimate_metrics(
    scores: npt.ArrayLike,
    candidates: npt.ArrayLike,
    class_prior: npt.ArrayLike | ClassPriorEstimate,
    *,
    predictions: npt.ArrayLike | None = None,
    level: float = 0.95,
    n_resamples: int = 400,
    seed: int = 0,
) -> MetricEstimates:
    """Estimate how good scores are, from candidates.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
        Of rows that training did not see.
    candidates : bool array of shape (n_samples, n_labels)
        Of the same rows: True where a label is still possible.
    class_prior : array of shape (n_labels,), or ClassPriorEstimate
        How often each label is relevant. Of an estimate the intervals also know the sampling
        error, but not a bias.
    predictions : array of shape (n_samples, n_labels), optional
        By default scores above 0.
    level : float
        Of the intervals.
    n_resamples : int
        Rows are resampled so many times; with 0 there are no intervals.
    seed : int

    Returns
    -------
    estimates : MetricEstimates
        ``hamming_loss``, ``macro_recall``, ``macro_precision``, ``macro_f1``, ``macro_auc`` and
        ``ranking_risk``. They may lie outside [0, 1], as unbiased estimates do.

    Examples
    --------
    >>> from comes.generation import case_b
    >>> rng = np.random.default_rng(0)
    >>> relevant = rng.random((2000, 3)) < 0.3
    >>> scores = np.where(relevant, 1.0, -1.0) + rng.normal(size=(2000, 3))
    >>> candidates = case_b(relevant, exclude_rate=0.5)
    >>> found = estimate_metrics(scores, candidates, [0.3, 0.3, 0.3])
    >>> truth = np.mean((scores > 0) != relevant)
    >>> bool(found["hamming_loss"].low < truth < found["hamming_loss"].high)
    True
    """
    rows, prior = _check(scores, candidates, class_prior, predictions)
    spread = class_prior.sampling_se if isinstance(class_prior, ClassPriorEstimate) else None
    known = _replicates(rows, prior, None, n_resamples, seed)
    unsure = known if spread is None else _replicates(rows, prior, spread, n_resamples, seed)
    metrics = {}
    for name in known:
        if name not in PER_LABEL:
            ends = (*_interval(known[name], level), *_interval(unsure[name], level))
            metrics[name] = Estimate(float(known[name][0]), *map(float, ends))
    n_excluded = rows.excluded.sum(axis=0)
    table = {"n_excluded": n_excluded.astype(int), "class_prior": prior}
    for name in PER_LABEL:
        table[name] = known[name][0]
        table[f"{name}_low"], table[f"{name}_high"] = _interval(unsure[name], level)
    return MetricEstimates(
        metrics=metrics,
        per_label=pd.DataFrame(table),
        prior_error="none: the class prior is taken as known"
        if spread is None
        else "the sampling error of the estimated class prior",
        left_out=[int(label) for label in np.flatnonzero(n_excluded == 0)],
    )


def compare_metrics(
    scores: npt.ArrayLike,
    others: npt.ArrayLike,
    candidates: npt.ArrayLike,
    class_prior: npt.ArrayLike | ClassPriorEstimate,
    *,
    predictions: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    level: float = 0.95,
    n_resamples: int = 400,
    seed: int = 0,
) -> dict[str, Estimate]:
    """Estimate by how much the metrics of two scorers differ on the same rows, first minus second.

    The intervals are much narrower than those of either, since the rows are the same. Parameters
    are those of `estimate_metrics`, with predictions of both.
    """
    spread = class_prior.sampling_se if isinstance(class_prior, ClassPriorEstimate) else None
    found, unsure = [], []
    for own, predicted in zip((scores, others), predictions or (None, None), strict=True):
        rows, prior = _check(own, candidates, class_prior, predicted)
        found.append(_replicates(rows, prior, None, n_resamples, seed))
        # The same seed draws the same rows and priors for both.
        unsure.append(
            found[-1] if spread is None else _replicates(rows, prior, spread, n_resamples, seed)
        )
    differences = {}
    for name in (*OVER_LABELS, "ranking_risk"):
        values = found[0][name] - found[1][name]
        ends = (*_interval(values, level), *_interval(unsure[0][name] - unsure[1][name], level))
        differences[name] = Estimate(float(values[0]), *map(float, ends))
    return differences


def _interval(values: FloatArray, level: float) -> FloatArray:
    """Return the middle share of resampled values; the first are those of the rows as they are."""
    if len(values) == 1:
        return np.full((2, *values.shape[1:]), np.nan)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN")  # labels of which nothing can be said
        tail = [(1 - level) / 2, (1 + level) / 2]
        return np.asarray(np.nanquantile(values[1:], tail, axis=0))


def _check(
    scores: npt.ArrayLike,
    candidates: npt.ArrayLike,
    class_prior: npt.ArrayLike | ClassPriorEstimate,
    predictions: npt.ArrayLike | None,
) -> tuple[_Rows, FloatArray]:
    values = np.asarray(scores, dtype=np.float64)
    S: BoolMatrix = as_candidates(candidates)
    prior = check_scores(values, S, class_prior)
    predicted = values > 0 if predictions is None else np.asarray(predictions).astype(bool)
    if predicted.shape != S.shape:
        raise ComesError(
            f"predictions must have the shape of scores, {S.shape}; got {predicted.shape}."
        )
    below = rankdata(values, axis=1) - 1  # ties have the mean rank, so each counts half
    return _Rows(values, predicted.astype(float), (~S).astype(float), below), prior


def check_scores(
    scores: FloatArray, candidates: BoolMatrix, class_prior: npt.ArrayLike | ClassPriorEstimate
) -> FloatArray:
    """Return the class prior as an array, if scores, candidates and it fit together."""
    prior = np.asarray(class_prior, dtype=np.float64)
    if scores.shape != candidates.shape:
        raise ComesError(
            f"scores and candidates must have one shape; got {scores.shape} and {candidates.shape}."
        )
    if prior.shape != scores.shape[1:]:
        raise ComesError(
            f"class_prior must have a number for each of {scores.shape[1]} labels; got shape "
            f"{prior.shape}."
        )
    if not np.isfinite(scores).all():
        raise ComesError("scores must be finite; some are not.")
    if not ((prior >= 0) & (prior <= 1)).all():
        raise ComesError("class_prior must lie in [0, 1] for every label; some do not.")
    return prior


def _replicates(
    rows: _Rows, prior: FloatArray, spread: FloatArray | None, n_resamples: int, seed: int
) -> dict[str, FloatArray]:
    """Return every metric on the rows as they are, then on rows drawn with replacement.

    ``spread`` also draws the prior, with this standard deviation.
    """
    n, q = rows.scores.shape
    rng = np.random.default_rng(seed)
    at_once = max(1, WEIGHTS_AT_ONCE // n)
    orders = [_Order.of(rows.scores[:, j], rows.excluded[:, j]) for j in range(q)]
    parts = [_statistics(rows, orders, np.ones((1, n)), prior)]
    for start in range(0, n_resamples, at_once):
        size = min(at_once, n_resamples - start)
        weights = rng.multinomial(n, np.full(n, 1 / n), size=size).astype(np.float64)
        drawn = prior
        if spread is not None:
            drawn = _draw_priors(prior, spread, rng.normal(size=(size, q)))
        parts.append(_statistics(rows, orders, weights, drawn))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _draw_priors(prior: FloatArray, spread: FloatArray, normal: FloatArray) -> FloatArray:
    """Return priors around the estimated ones, on the scale of log odds, so that none is 0 or 1."""
    middle = np.clip(prior, 1e-3, 1 - 1e-3)
    return np.asarray(expit(logit(middle) + spread / (middle * (1 - middle)) * normal))


def _statistics(
    rows: _Rows, orders: list["_Order"], weights: FloatArray, prior: FloatArray
) -> dict[str, FloatArray]:
    """Return the formulas at the top of this file for weighted rows: (b, q) or, over labels, (b,).

    Weights are (b, n); the prior is (q,) or (b, q).
    """
    total = weights.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):  # labels of which nothing can be said
        n_excluded = weights @ rows.excluded
        predicted = weights @ rows.predicted / total
        false_positive_rate = weights @ (rows.excluded * rows.predicted) / n_excluded
        below = weights @ (rows.excluded * rows.below) / n_excluded
        beaten = np.stack([order.share_above(weights) for order in orders], axis=1)
        true_positives = predicted - (1 - prior) * false_positive_rate
        found = {
            "error": prior - predicted + 2 * (1 - prior) * false_positive_rate,
            "recall": true_positives / prior,
            "precision": true_positives / predicted,
            "f1": 2 * true_positives / (predicted + prior),
            "auc": (beaten - (1 - prior) / 2) / prior,
        }
        found = {name: np.where(np.isfinite(v), v, np.nan) for name, v in found.items()}
        # Over labels that some row excludes; a drawing that misses one of them says nothing.
        judged = rows.excluded.any(axis=0)
        has_all = np.where((n_excluded[:, judged] > 0).all(axis=1), 1.0, np.nan)
        found |= {name: has_all * _mean(found[of][:, judged]) for name, of in OVER_LABELS.items()}
        risk = ((1 - prior) * below)[:, judged].sum(axis=1)
        found["ranking_risk"] = has_all * risk if judged.any() else np.full(len(weights), np.nan)
    return found


def _mean(values: FloatArray) -> FloatArray:
    """Return the mean over labels of which something can be said, NaN where there are none."""
    known = np.isfinite(values)
    n_known = np.where(known.any(axis=1), known.sum(axis=1), np.nan)
    return np.asarray(np.where(known, values, 0).sum(axis=1) / n_known)


class _Order(NamedTuple):
    """The rows by the score of one label, and for each that excludes it where its ties begin."""

    rows: npt.NDArray[np.intp]  # by score, ascending
    excluded: npt.NDArray[np.intp]  # rows that exclude the label
    first: npt.NDArray[np.intp]  # of each such row, the place of the first row with its score
    after: npt.NDArray[np.intp]  # and that behind the last

    @classmethod
    def of(cls, scores: FloatArray, excluded: FloatArray) -> "_Order":
        rows = np.argsort(scores, kind="stable")
        which = np.flatnonzero(excluded)
        first = np.searchsorted(scores[rows], scores[which], side="left")
        after = np.searchsorted(scores[rows], scores[which], side="right")
        return cls(rows, which, first, after)

    def share_above(self, weights: FloatArray) -> FloatArray:
        """Return how often a row has a greater score than one that excludes the label.

        Ties count half, also that of a row with itself: all rows are as many relevant and
        irrelevant ones as the prior says only with it. (b,) for weights of shape (b, n).
        """
        start = np.zeros((len(weights), 1))
        cumulative = np.concatenate([start, weights[:, self.rows].cumsum(axis=1)], axis=1)
        total = cumulative[:, -1:]
        above = total - (cumulative[:, self.after] + cumulative[:, self.first]) / 2
        own = weights[:, self.excluded]
        return np.asarray((own * above).sum(axis=1) / (own.sum(axis=1) * total[:, 0]))
