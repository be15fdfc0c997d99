"""Intervals of estimated metrics, and why some cannot be given.

A metric is taken over the labels that can be judged. An interval is refused where it would not be
honest or would say nothing; `Estimate.reason` then says why.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from comes.errors import ComesError

FloatArray = npt.NDArray[np.float64]
Labels = npt.NDArray[np.bool_]

# Metrics of all labels, and the metric per label that each is the mean of; the last is a sum.
OVER_LABELS = {
    "hamming_loss": "error",
    "macro_recall": "recall",
    "macro_precision": "precision",
    "macro_f1": "f1",
    "macro_auc": "auc",
    "ranking_risk": "ranking",
}
RATIOS = ("recall", "precision", "f1", "auc")  # whose denominators may be near 0
MIN_ROWS = 5  # that exclude a label; with fewer, many drawings of rows have none
MIN_LABELS = 0.1  # share of the labels that a metric must be over
MAX_LABEL_WIDTH = 0.6  # of the interval of one label
MAX_WIDTH = 0.75  # of an interval, as a share of what is possible
MAX_RANKING_WIDTH = 1.0  # of the ranking risk: of what is possible only a rough number is known
MAX_FAILED = 0.1  # share of the drawings of rows

UNKNOWN_ERROR = (
    "the class prior was estimated and its standard error is not known; fit the model again, or "
    "give class priors that are known"
)
CAUSES = {  # why a label cannot be judged
    "few": f"fewer than {MIN_ROWS} rows tell about the others",
    "flagged": "nothing is known of the class priors of the others",
    "undefined": "the others are never predicted, or have a class prior of 0",
    "unsure": "too little is known of the others, or of their class priors",
}

LABEL_CAUSES = {  # the same, said of the label
    "few": f"fewer than {MIN_ROWS} rows tell about it",
    "flagged": "nothing is known of its class prior",
    "undefined": "it is never predicted, or has a class prior of 0",
    "unsure": "too little is known of it, or of its class prior",
}


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
class Drawn:
    """A metric per label on the given rows and on drawings of rows, without and with the priors'.

    ``error`` is the standard error of the class prior, NaN where it is not known, None if there is
    none.
    """

    name: str  # of the metric over labels
    values: FloatArray  # (q,)
    known: FloatArray  # (b, q), with the class prior as it is
    unsure: FloatArray  # (b, q), with class priors drawn
    n_rows: FloatArray  # (q,): rows with an answer that tells about the metric
    error: FloatArray | None  # (q,)
    possible: FloatArray  # (q,): what a label can add to the metric, at most
    level: float

    def summarise(self) -> Estimate:
        """Return the metric over the labels that can be judged, or why it is not known."""
        causes = self.find_causes()
        labels = causes == ""
        known, unsure = (
            combine(self.name, self.known, labels),
            combine(self.name, self.unsure, labels),
        )
        value = float(combine(self.name, self.values[None], labels)[0])
        reason = self._refuse_labels(causes)
        if reason is None and len(known) > 0:
            reason = self._refuse_draws(value, unsure, labels)
        if reason is not None or len(known) == 0:
            return make_estimate(value, (np.nan, np.nan), (np.nan, np.nan), labels, reason)
        ends, wider = (self._find_ends(draws, value) for draws in (known, unsure))
        return make_estimate(value, ends, wider, labels)

    def find_causes(self) -> npt.NDArray[np.str_]:
        """Return why each label cannot be judged, (q,), "" if it can."""
        causes = np.full(len(self.values), "", dtype="<U9")
        if len(self.unsure) and OVER_LABELS[self.name] in RATIOS:
            low, high = find_interval(self.unsure, self.values, self.level)
            causes[~(high - low <= MAX_LABEL_WIDTH)] = "unsure"
        causes[~np.isfinite(self.values)] = "undefined"
        if len(self.unsure) and self.error is not None:
            causes[np.isnan(self.error)] = "flagged"
        causes[self.n_rows < (MIN_ROWS if len(self.unsure) else 1)] = "few"
        return causes

    def explain_labels(self) -> list[str]:
        """Return in words why the metric of each label cannot be estimated, (q,), "" if it can."""
        reasons = [LABEL_CAUSES.get(str(cause), "") for cause in self.find_causes()]
        if OVER_LABELS[self.name] == "ranking":
            return reasons
        return [
            f"estimated as {value:.3g}, outside its range: too few rows, or its class prior is off"
            if not (reason or 0 <= value <= 1)
            else reason
            for reason, value in zip(reasons, self.values.tolist(), strict=True)
        ]

    def _refuse_labels(self, causes: npt.NDArray[np.str_]) -> str | None:
        """Return why there are too few labels, None if there are enough."""
        if self.error is not None and np.isnan(self.error).all():
            return UNKNOWN_ERROR
        n_judged, q = int((causes == "").sum()), len(causes)
        if n_judged >= max(1, MIN_LABELS * q):
            return None
        cause, _ = Counter(causes[causes != ""].tolist()).most_common(1)[0]
        return f"only {n_judged} of {q} labels can be judged; {CAUSES[cause]}"

    def _refuse_draws(self, value: float, draws: FloatArray, labels: Labels) -> str | None:
        """Return why the interval would not be honest or say nothing, None if neither is so."""
        failed = int(np.isnan(draws).sum())
        if failed > MAX_FAILED * len(draws):
            return f"{failed} of {len(draws)} drawings of rows have no row that tells about a label"
        most = np.inf if self.name == "ranking_risk" else 1.0
        if not 0 <= value <= most:
            return f"estimated as {value:.3g}, outside its range: the class priors do not fit"
        low, high = self._find_ends(draws, value)
        chosen = self.possible[labels]
        if self.name == "ranking_risk":
            widest = MAX_RANKING_WIDTH * chosen.sum()
        else:
            widest = MAX_WIDTH * min(1.0, chosen.mean())
        if high - low > widest:
            return f"too uncertain: anything from {low:.3g} to {high:.3g}"
        return None

    def _find_ends(self, draws: FloatArray, value: float) -> tuple[float, float]:
        """Return the ends of an interval, moved into the range of the metric."""
        most = np.inf if self.name == "ranking_risk" else 1.0
        low, high = find_interval(draws, np.float64(value), self.level)
        return max(float(low), 0.0), min(float(high), most)


def make_estimate(
    value: float,
    known: tuple[float, float],
    unsure: tuple[float, float],
    labels: Labels,
    reason: str | None = None,
) -> Estimate:
    """Return an estimate over labels, with the ends of its two intervals."""
    which = tuple(int(label) for label in np.flatnonzero(labels))
    return Estimate(value, known[0], known[1], unsure[0], unsure[1], which, reason)


def combine(name: str, values: FloatArray, labels: Labels) -> FloatArray:
    """Return a metric over labels from the metric of each, (b, q) to (b,); NaN without any."""
    if not labels.any():
        return np.full(len(values), np.nan)
    chosen = values[:, labels]
    if name == "ranking_risk":
        return np.asarray(chosen.sum(axis=1))
    known = np.isfinite(chosen)  # a drawing may miss the few rows of a label
    n_known = np.where(known.any(axis=1), known.sum(axis=1), np.nan)
    return np.asarray(np.where(known, chosen, 0).sum(axis=1) / n_known)


def find_interval(
    draws: FloatArray, value: FloatArray | np.float64, level: float
) -> tuple[FloatArray, FloatArray]:
    """Return the interval of draws along their first axis, which contains the value.

    NaN where no draw is a number.
    """
    if len(draws) == 0:
        return np.full(draws.shape[1:], np.nan), np.full(draws.shape[1:], np.nan)
    if not 0 < level < 1:
        raise ComesError(f"level must be above 0 and below 1, such as 0.95; got {level!r}.")
    tail = [(1 - level) / 2, (1 + level) / 2]
    some = np.isfinite(draws).any(axis=0)
    low, high = np.nanquantile(np.where(some, draws, 0.0), tail, axis=0)
    return np.where(some, np.fmin(low, value), np.nan), np.where(some, np.fmax(high, value), np.nan)
