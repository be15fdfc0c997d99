"""Intervals of estimated metrics, and the reasons why some have none.

An estimate has two sources of error. Its rows are a sample: the metric is computed again on rows
drawn with replacement. Class priors may be estimates themselves: they are drawn from a normal
distribution with their standard error. The interval has the quantiles of these draws, and always
contains the estimate.

A metric is over the labels that can be judged. If they are too few, or if the interval would be
wrong or empty of meaning, there is none, and `Estimate.reason` says why.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from comes.errors import ComesError
from comes.priors import ClassPriorEstimate, RatesEstimate

FloatArray = npt.NDArray[np.float64]
Labels = npt.NDArray[np.bool_]

# Metrics over labels, and the metric of one label that each is the mean of; the last is a sum.
OVER_LABELS = {
    "hamming_loss": "error",
    "macro_recall": "recall",
    "macro_precision": "precision",
    "macro_f1": "f1",
    "macro_auc": "auc",
    "ranking_risk": "ranking",
}
RATIOS = ("recall", "precision", "f1", "auc")  # whose denominators may be near 0
MIN_ROWS = 5  # informative rows of a label; with fewer, many resamples have none
MIN_LABELS = 0.1  # share of the labels that a metric must be over
MIN_JUDGED = 2  # of several labels: the only one may look sure by chance
MAX_LABEL_WIDTH = 0.6  # of the interval of one label
MAX_WIDTH = 0.75  # of an interval, as a share of what is possible
MAX_RANKING_WIDTH = 1.0  # of the ranking risk: what is possible is known only roughly
MAX_FAILED = 0.1  # share of the resamples

UNKNOWN_ERROR = (
    "the class prior was estimated and its standard error is not known; fit the model again, or "
    "give class priors that are known"
)
CAUSES = {  # why a label cannot be judged
    "few": f"fewer than {MIN_ROWS} informative rows",
    "flagged": "nothing is known about the class prior",
    "undefined": "never predicted, or a class prior of 0",
    "unsure": "too uncertain (few informative rows, or an uncertain class prior)",
}
# With other flags the standard error means nothing: never excluded, never asked, a rate too low.
TRUSTED_FLAGS = (
    "ok",
    "known",
    "always excluded",
    "all no",
    "few excluded",
    "few asked",
    "uncertain",
)
LEAST_SHARE = 0.25  # of the prior: lower draws would divide by almost nothing


@dataclass(frozen=True)
class Estimate:
    """An estimated metric with a confidence interval.

    Attributes
    ----------
    value, low, high : float
    low_with_prior, high_with_prior : float
        The interval with the uncertainty of the class prior; low and high if the prior is known.
    labels : tuple of int
        The labels that the metric is over.
    reason : str, or None
        Why there is no interval; the ends are then NaN, and the value is not to be relied on.

    Examples
    --------
    >>> print(Estimate(0.25, 0.21, 0.29, 0.2, 0.3))
    0.250 (0.200 to 0.300)
    """

    value: float
    low: float
    high: float
    low_with_prior: float
    high_with_prior: float
    labels: tuple[int, ...] = ()
    reason: str | None = None

    def __str__(self) -> str:
        """Return the value and the wider interval, or why there is none."""
        if self.reason is not None:
            return f"not known: {self.reason}"
        return f"{self.value:.3f} ({self.low_with_prior:.3f} to {self.high_with_prior:.3f})"


@dataclass(frozen=True, eq=False)
class MetricDraws:
    """One metric: the estimates of every label, and draws that show how uncertain they are."""

    name: str  # a key of OVER_LABELS
    values: FloatArray  # (q,): estimates
    known: FloatArray  # (b, q): on resampled rows, with the class prior as it is
    unsure: FloatArray  # (b, q): on resampled rows, with drawn class priors
    n_rows: FloatArray  # (q,): rows whose answer is informative for the metric
    error: FloatArray | None  # (q,): of the class prior; NaN if unknown, None for a known prior
    possible: FloatArray  # (q,): the most that a label can add to the metric
    level: float

    @cached_property
    def causes(self) -> npt.NDArray[np.str_]:
        """Why each label cannot be judged, (q,): a key of CAUSES, or "" if it can."""
        causes = np.full(len(self.values), "", dtype="<U9")
        if len(self.unsure) and OVER_LABELS[self.name] in RATIOS:
            low, high = self.label_intervals
            causes[~(high - low <= MAX_LABEL_WIDTH)] = "unsure"
        causes[~np.isfinite(self.values)] = "undefined"
        if len(self.unsure) and self.error is not None:
            causes[np.isnan(self.error)] = "flagged"
        causes[self.n_rows < (MIN_ROWS if len(self.unsure) else 1)] = "few"
        return causes

    @cached_property
    def label_intervals(self) -> tuple[FloatArray, FloatArray]:
        """The ends of the interval of every label, (q,) each."""
        return interval(self.unsure, self.values, self.level)

    def explain_labels(self) -> list[str]:
        """Return in words why the metric of each label cannot be estimated, "" if it can."""
        reasons = [CAUSES.get(cause, "") for cause in self.causes.tolist()]
        if self.name == "ranking_risk":
            return reasons
        return [
            f"estimated as {value:.3g}, outside its range: too few rows, or its class prior is off"
            if not (reason or 0 <= value <= 1)
            else reason
            for reason, value in zip(reasons, self.values.tolist(), strict=True)
        ]

    def summarise(self) -> Estimate:
        """Return the metric over the labels that can be judged, with intervals or a reason."""
        labels = self.causes == ""
        value = float(over_labels(self.name, self.values[None], labels)[0])
        known, unsure = (
            over_labels(self.name, draws, labels) for draws in (self.known, self.unsure)
        )
        reason = self._refuse(value, unsure, labels)
        ends = (np.nan, np.nan, np.nan, np.nan)
        if reason is None:
            ends = (*self._ends(known, value), *self._ends(unsure, value))
        return Estimate(value, *ends, labels=tuple(np.flatnonzero(labels).tolist()), reason=reason)

    def _refuse(self, value: float, draws: FloatArray, labels: Labels) -> str | None:
        """Return why an interval would be wrong or empty of meaning, None if it would not."""
        if self.error is not None and np.isnan(self.error).all():
            return UNKNOWN_ERROR
        n_judged, q = int(labels.sum()), len(labels)
        n_least = min(MIN_JUDGED, q) if len(draws) else 1
        if n_judged < max(n_least, MIN_LABELS * q):
            cause, _ = Counter(self.causes[~labels].tolist()).most_common(1)[0]
            return f"only {n_judged} of {q} labels can be judged; most others: {CAUSES[cause]}"
        if len(draws) == 0:
            return None
        failed = int(np.isnan(draws).sum())
        if failed > MAX_FAILED * len(draws):
            return f"{failed} of {len(draws)} resamples have no informative row of a label"
        is_ranking = self.name == "ranking_risk"
        if not 0 <= value <= (np.inf if is_ranking else 1):
            return f"estimated as {value:.3g}, outside its range: the class priors do not fit"
        low, high = self._ends(draws, value)
        possible = self.possible[labels]
        if is_ranking:
            widest = MAX_RANKING_WIDTH * possible.sum()
        else:
            widest = MAX_WIDTH * min(1.0, possible.mean())
        if high - low > widest:
            return f"too uncertain: anything from {low:.3g} to {high:.3g}"
        return None

    def _ends(self, draws: FloatArray, value: float) -> tuple[float, float]:
        """Return the ends of an interval, within the range of the metric; NaN without draws."""
        low, high = interval(draws, np.float64(value), self.level)
        most = np.inf if self.name == "ranking_risk" else 1.0
        return max(float(low), 0.0), min(float(high), most)


def over_labels(name: str, values: FloatArray, labels: Labels) -> FloatArray:
    """Return a metric over labels from the metric of each, (b, q) to (b,); NaN without labels."""
    if not labels.any():
        return np.full(len(values), np.nan)
    chosen = values[:, labels]
    if name == "ranking_risk":
        return np.asarray(chosen.sum(axis=1))
    finite = np.isfinite(chosen)  # a resample may miss the few rows of a label
    n_finite = np.where(finite.any(axis=1), finite.sum(axis=1), np.nan)
    return np.asarray(np.where(finite, chosen, 0).sum(axis=1) / n_finite)


def interval(
    draws: FloatArray, value: FloatArray | np.float64, level: float
) -> tuple[FloatArray, FloatArray]:
    """Return quantiles of draws along the first axis, widened to the value; NaN without draws."""
    if len(draws) == 0:
        return np.full(draws.shape[1:], np.nan), np.full(draws.shape[1:], np.nan)
    if not 0 < level < 1:
        raise ComesError(f"level must be above 0 and below 1, such as 0.95; got {level!r}.")
    some = np.isfinite(draws).any(axis=0)
    tails = [(1 - level) / 2, (1 + level) / 2]
    low, high = np.nanquantile(np.where(some, draws, 0.0), tails, axis=0)
    return np.where(some, np.fmin(low, value), np.nan), np.where(some, np.fmax(high, value), np.nan)


def prior_error(class_prior: Any, error: npt.ArrayLike | None = None) -> FloatArray | None:
    """Return the standard error of a class prior, (q,), None for a prior that is known.

    Without ``error``, it is that of an estimate, and NaN for labels whose flag forbids trust.
    """
    if error is None:
        if isinstance(class_prior, ClassPriorEstimate):
            estimated = class_prior.standard_error
        elif isinstance(class_prior, RatesEstimate):
            estimated = class_prior.class_prior_error
        else:
            return None
        return np.where(np.isin(class_prior.flags, TRUSTED_FLAGS), estimated, np.nan)
    q, values = len(np.asarray(class_prior)), np.asarray(error, dtype=np.float64)
    if values.shape != (q,) or (values < 0).any() or np.isinf(values).any():
        raise ComesError(
            f"class_prior_error must hold a number of at least 0, or NaN, for each of {q} labels; "
            f"got {values.tolist()}."
        )
    return values


def draw_priors(
    prior: FloatArray,
    error: FloatArray,
    bounds: tuple[FloatArray, FloatArray],
    n_draws: int,
    seed: int,
) -> FloatArray:
    """Return priors around the estimated ones, (n_draws, q), within the bounds that rows set.

    One normal number moves the priors of all labels, since their errors go together: the estimated
    rates are pooled, and rows that look irrelevant but are not lower all priors at once. Drawn
    label by label, errors would cancel in the mean over labels, and intervals be too narrow.
    """
    normal = np.random.default_rng([seed, 1]).normal(size=(n_draws, 1))
    least = np.minimum(np.maximum(bounds[0], LEAST_SHARE * prior), prior)
    most = np.maximum(bounds[1], prior)
    return np.clip(prior + np.nan_to_num(error) * normal, least, most)
