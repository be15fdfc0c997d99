"""The formulas of `comes.selection.estimates` on the rows, and on rows drawn with replacement."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

FloatArray = npt.NDArray[np.float64]

# Metrics of all labels, and the metric per label that each is the mean of.
OVER_LABELS = {
    "hamming_loss": "error",
    "macro_recall": "recall",
    "macro_precision": "precision",
    "macro_f1": "f1",
    "macro_auc": "auc",
}
WEIGHTS_AT_ONCE = 2**24


class Rows(NamedTuple):
    """What every resample of the rows needs, computed once; all arrays are (n, q)."""

    scores: FloatArray
    predicted: FloatArray  # 0 or 1
    excluded: FloatArray  # 0 or 1
    below: FloatArray  # number of labels of the row that score below; ties count half


def replicate(
    rows: Rows, prior: FloatArray, spread: FloatArray | None, n_resamples: int, seed: int
) -> dict[str, FloatArray]:
    """Return every metric on the given rows, then on rows drawn with replacement.

    With a ``spread`` the prior is drawn too, with this standard deviation.
    """
    n, q = rows.scores.shape
    rng = np.random.default_rng(seed)
    at_once = max(1, WEIGHTS_AT_ONCE // n)
    orders = [_Order.of(rows.scores[:, j], rows.excluded[:, j]) for j in range(q)]
    parts = [_compute_metrics(rows, orders, np.ones((1, n)), prior)]
    for start in range(0, n_resamples, at_once):
        size = min(at_once, n_resamples - start)
        weights = rng.multinomial(n, np.full(n, 1 / n), size=size).astype(np.float64)
        drawn = prior
        if spread is not None:
            drawn = _draw_priors(prior, spread, rng.normal(size=(size, q)))
        parts.append(_compute_metrics(rows, orders, weights, drawn))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _draw_priors(prior: FloatArray, spread: FloatArray, normal: FloatArray) -> FloatArray:
    """Return priors drawn around the estimated ones on the scale of log odds, so none is 0 or 1."""
    middle = np.clip(prior, 1e-3, 1 - 1e-3)
    return np.asarray(expit(logit(middle) + spread / (middle * (1 - middle)) * normal))


def _compute_metrics(
    rows: Rows, orders: list["_Order"], weights: FloatArray, prior: FloatArray
) -> dict[str, FloatArray]:
    """Return the metrics of weighted rows: (b, q) per label, (b,) over labels.

    Weights are (b, n); the prior is (q,) or (b, q).
    """
    total = weights.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):  # labels that cannot be judged
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
        # Over labels that some row excludes; a resample without such a row gives NaN.
        judged = rows.excluded.any(axis=0)
        has_all = np.where((n_excluded[:, judged] > 0).all(axis=1), 1.0, np.nan)
        found |= {
            name: has_all * _average_known(found[of][:, judged]) for name, of in OVER_LABELS.items()
        }
        risk = ((1 - prior) * below)[:, judged].sum(axis=1)
        found["ranking_risk"] = has_all * risk if judged.any() else np.full(len(weights), np.nan)
    return found


def _average_known(values: FloatArray) -> FloatArray:
    """Return the mean over labels that can be judged, NaN if there are none."""
    known = np.isfinite(values)
    n_known = np.where(known.any(axis=1), known.sum(axis=1), np.nan)
    return np.asarray(np.where(known, values, 0).sum(axis=1) / n_known)


class _Order(NamedTuple):
    """The rows sorted by the score of one label, with the ties of each row that excludes it."""

    rows: npt.NDArray[np.intp]  # by score, ascending
    excluded: npt.NDArray[np.intp]  # rows that exclude the label
    first: npt.NDArray[np.intp]  # for each of these, the position of the first row with its score
    after: npt.NDArray[np.intp]  # and the position after the last

    @classmethod
    def of(cls, scores: FloatArray, excluded: FloatArray) -> "_Order":
        """Sort the rows by the scores of one label, (n,)."""
        rows = np.argsort(scores, kind="stable")
        which = np.flatnonzero(excluded)
        first = np.searchsorted(scores[rows], scores[which], side="left")
        after = np.searchsorted(scores[rows], scores[which], side="right")
        return cls(rows, which, first, after)

    def share_above(self, weights: FloatArray) -> FloatArray:
        """Return how often a row scores higher than a row that excludes the label, (b,).

        Ties count half, and so does the tie of a row with itself: otherwise the rows would not mix
        relevant and irrelevant ones as the prior says.
        """
        start = np.zeros((len(weights), 1))
        cumulative = np.concatenate([start, weights[:, self.rows].cumsum(axis=1)], axis=1)
        total = cumulative[:, -1:]
        above = total - (cumulative[:, self.after] + cumulative[:, self.first]) / 2
        own = weights[:, self.excluded]
        return np.asarray((own * above).sum(axis=1) / (own.sum(axis=1) * total[:, 0]))
