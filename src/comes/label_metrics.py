"""How good a model is about each label, against the truth, with intervals.

Of the rows that have label j, recall is the share that is predicted; of those that are predicted,
precision is the share that has it. F1 is 2J / (1 + J), with J the share of rows that have the label
and are predicted among those of which either holds. All three are shares, and have Wilson's
interval; that of the average precision counts it as a share of the rows that have the label (Boyd,
Eng and Page, 2013), and that of the area under the ROC curve is Newcombe's (2006, method 5). None
of them has width 0 where a model is perfect on a few rows.

`LABEL_METRICS` names the metrics, in the order of tables, with their titles.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import norm, rankdata
from sklearn.metrics import average_precision_score

from comes.answers.convert import as_indicators, as_relevant
from comes.errors import ComesError, listed

__all__ = ["measure_labels"]
FloatArray = npt.NDArray[np.float64]
LABEL_METRICS = {
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
    "auc": "AUC",
    "average_precision": "average precision",
}
BISECTIONS = 40


class Interval(NamedTuple):
    """Values with the ends of their intervals, NaN where there are none."""

    value: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True)
class LabelMetric:
    """A metric of one label with its interval, or the reason why it cannot be estimated."""

    value: float | None = None  # None, as the ends, if there is a reason
    low: float | None = None
    high: float | None = None
    reason: str | None = None

    def __str__(self) -> str:
        if self.value is None:
            return "–"
        ends = "" if self.low is None else f" ({self.low:.2f}–{self.high:.2f})"
        return f"{self.value:.2f}{ends}"


@dataclass(frozen=True)
class LabelQuality:
    """How good a model is about one label."""

    label: str
    counts: dict[str, int | float]  # how many rows it is about
    metrics: dict[str, LabelMetric]

    def as_dict(self) -> dict[str, Any]:
        """Return it for json."""
        metrics = {name: asdict(metric) for name, metric in self.metrics.items()}
        return {"label": self.label, **self.counts, **metrics}


def list_qualities(
    table: pd.DataFrame, label_names: Sequence[str], counts: dict[str, str]
) -> list[LabelQuality]:
    """Return the quality of each label, the worst by F1 first; last what has none.

    The table has a row per label, as `measure_labels` returns it or `estimate_metrics` in
    ``per_label``; ``counts`` maps columns that count something to what they are called.
    """
    found = []
    for label, row in zip(label_names, table.to_dict("records"), strict=True):
        metrics = {}
        for name in (name for name in LABEL_METRICS if name in table):
            low, high = row[f"{name}_low"], row[f"{name}_high"]
            if row[f"{name}_reason"]:
                metrics[name] = LabelMetric(reason=row[f"{name}_reason"])
            elif math.isnan(low) or math.isnan(high):
                metrics[name] = LabelMetric(row[name])
            else:  # an estimate may reach beyond its range
                metrics[name] = LabelMetric(row[name], max(low, 0.0), min(high, 1.0))
        found.append(LabelQuality(label, {new: row[old] for old, new in counts.items()}, metrics))

    def order(quality: LabelQuality) -> tuple[bool, float, str]:
        f1 = quality.metrics["f1"].value
        return f1 is None, f1 or 0.0, quality.label

    return sorted(found, key=order)


def explain_missing(qualities: Sequence[LabelQuality]) -> list[str]:
    """Return a sentence for every reason why something cannot be estimated of labels."""
    missing: dict[tuple[str, str], list[str]] = {}
    for one in qualities:
        for name, metric in one.metrics.items():
            if metric.reason is not None:
                missing.setdefault((name, metric.reason), []).append(one.label)
    return [
        f"The {LABEL_METRICS[name]} of {listed(labels, 5)} cannot be estimated: {reason}."
        for (name, reason), labels in missing.items()
    ]


def bound_share(hits: npt.ArrayLike, of: npt.ArrayLike, level: float = 0.95) -> Interval:
    """Return shares hits / of with Wilson's interval; a share of nothing is NaN."""
    k, n = np.asarray(hits, dtype=np.float64), np.asarray(of, dtype=np.float64)
    if not 0 < level < 1:
        raise ComesError(f"level must be above 0 and below 1, such as 0.95; got {level!r}.")
    k = np.minimum(k, n)  # hits that are a share times a number are rounded
    n = np.where(n > 0, n, np.nan)
    z = norm.ppf((1 + level) / 2)
    share = k / n
    centre = (k + z**2 / 2) / (n + z**2)
    half = z * np.sqrt(n * share * (1 - share) + z**2 / 4) / (n + z**2)
    # Rounding must not leave the share outside.
    return Interval(share, np.clip(centre - half, 0, share), np.clip(centre + half, share, 1))


def measure_labels(
    scores: npt.ArrayLike,
    relevant: npt.ArrayLike,
    predictions: npt.ArrayLike | None = None,
    *,
    level: float = 0.95,
) -> pd.DataFrame:
    """Measure each label against the truth.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
    relevant : bool array of shape (n_samples, n_labels)
    predictions : bool array of shape (n_samples, n_labels), optional
        By default ``scores > 0``.
    level : float
        Confidence level of the intervals.

    Returns
    -------
    table : DataFrame
        One row per label: n_relevant, n_predicted and, for each metric of `LABEL_METRICS`, its
        value, its interval (``recall_low``, ``recall_high``), NaN where it cannot be estimated, and
        why not (``recall_reason``, "" where it can).

    Examples
    --------
    >>> scores = [[2.0, -1.0], [1.0, -2.0], [-1.0, -3.0]]
    >>> table = measure_labels(scores, [[1, 0], [0, 1], [0, 0]])
    >>> table[["n_relevant", "n_predicted", "precision", "recall"]].values.tolist()
    [[1.0, 2.0, 0.5, 1.0], [1.0, 0.0, nan, 0.0]]
    >>> table["precision_reason"].tolist()
    ['', 'the label is never predicted']
    """
    truth = as_relevant(relevant)
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != truth.shape:
        raise ComesError(
            f"scores must have the shape of the relevant labels, {truth.shape}; got {values.shape}."
        )
    predicted = values > 0 if predictions is None else as_indicators(predictions, "predictions")
    hits = (predicted & truth).sum(axis=0)
    n_relevant, n_predicted = truth.sum(axis=0), predicted.sum(axis=0)
    either = bound_share(hits, n_relevant + n_predicted - hits, level)
    precision = np.full(truth.shape[1], np.nan)
    for j in np.flatnonzero(n_relevant):
        precision[j] = average_precision_score(truth[:, j], values[:, j])
    measured = {
        "precision": bound_share(hits, n_predicted, level),
        "recall": bound_share(hits, n_relevant, level),
        "f1": Interval(*(2 * share / (1 + share) for share in either)),
        "auc": _bound_auc(values, truth, level),
        "average_precision": bound_share(precision * n_relevant, n_relevant, level),
    }
    is_absent, is_never = n_relevant == 0, n_predicted == 0
    absent = np.where(is_absent, "no row has the label", "")
    reasons = {
        "precision": np.where(is_never, "the label is never predicted", ""),
        "recall": absent,
        "f1": np.where(is_absent & is_never, "no row has the label, and it is never predicted", ""),
        "auc": np.where(n_relevant == len(truth), "every row has the label", absent),
        "average_precision": absent,
    }
    columns: dict[str, npt.ArrayLike] = {"n_relevant": n_relevant, "n_predicted": n_predicted}
    for name, found in measured.items():
        columns |= {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
        columns[f"{name}_reason"] = reasons[name]
    return pd.DataFrame(columns)


def _bound_auc(scores: FloatArray, truth: npt.NDArray[np.bool_], level: float) -> Interval:
    """Return how often a row with the label beats one without, where a tie counts half.

    With Newcombe's interval: |auc - t| = z sd(t), as Wilson's for shares.
    """
    n, m = len(truth), truth.sum(axis=0).astype(np.float64)
    pairs = np.where((m > 0) & (m < n), m * (n - m), np.nan)
    ranks = np.where(truth, rankdata(scores, axis=0), 0).sum(axis=0)
    auc = (ranks - m * (m + 1) / 2) / pairs
    z = norm.ppf((1 + level) / 2)
    n_others = n / 2 - 1

    def is_inside(t: FloatArray) -> npt.NDArray[np.bool_]:
        spread = 1 + n_others * (1 - t) / (2 - t) + n_others * t / (1 + t)
        return np.asarray((auc - t) ** 2 <= z**2 * t * (1 - t) * spread / pairs)

    ends = []
    for outer in (np.zeros_like(auc), np.ones_like(auc)):
        inside, outside = auc, outer
        for _ in range(BISECTIONS):
            middle = (inside + outside) / 2
            keep = is_inside(middle)
            inside, outside = np.where(keep, middle, inside), np.where(keep, outside, middle)
        ends.append(np.where(np.isnan(auc), np.nan, inside))
    return Interval(auc, ends[0], ends[1])
