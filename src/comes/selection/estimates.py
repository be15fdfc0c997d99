"""Metrics of scores, estimated from the candidates of rows that training did not see.

Rows that exclude label j are a sample of the rows it is irrelevant to (Lemma 1 of the paper), and
the class prior pi_j says which share of all rows that is. With f_j the share of rows predicted to
have label j, and FPR_j the same among rows that exclude it:

    error_j     = pi_j - f_j + 2 (1 - pi_j) FPR_j          (Theorem 1 with the 0-1 loss)
    recall_j    = (f_j - (1 - pi_j) FPR_j) / pi_j
    precision_j = (f_j - (1 - pi_j) FPR_j) / f_j
    F1_j        = 2 (f_j - (1 - pi_j) FPR_j) / (f_j + pi_j)
    AUC_j       = (A_j - (1 - pi_j) / 2) / pi_j     A_j: how often a row beats one that excludes j
    ranking     = sum_j (1 - pi_j) E[labels that score below j | j excluded]    (Theorem 4)

docs/selection.md derives them. Error, recall, AUC and the ranking risk are unbiased, precision and
F1 are consistent. The ranking risk is that of the paper's Equation 3 plus a constant that is the
same for all models, so only its differences have a meaning.
"""

import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import rankdata

from comes.answers import BoolMatrix, as_candidates
from comes.errors import ComesError
from comes.priors import ClassPriorEstimate
from comes.selection.resampling import OVER_LABELS, Rows, replicate

FloatArray = npt.NDArray[np.float64]

PER_LABEL = tuple(OVER_LABELS.values())
OVERALL = (*OVER_LABELS, "ranking_risk")


@dataclass(frozen=True)
class Estimate:
    """An estimated metric with a confidence interval.

    Attributes
    ----------
    value, low, high : float
    low_with_prior, high_with_prior : float
        The interval with the uncertainty of the class prior; low and high if the prior is known.

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

    def __str__(self) -> str:
        """Return the value and the wider interval."""
        return f"{self.value:.3f} ({self.low_with_prior:.3f} to {self.high_with_prior:.3f})"


@dataclass(frozen=True)
class MetricEstimates:
    """The result of `estimate_metrics`; ``estimates["macro_f1"]`` is one of its metrics.

    Attributes
    ----------
    metrics : dict of str to Estimate
    per_label : DataFrame
        One row per label: n_excluded, class_prior, estimates and intervals.
    prior_error : str
        Which uncertainty of the class prior the intervals include.
    left_out : list of int
        Labels that no row excludes, and that cannot be judged.

    Examples
    --------
    >>> found = estimate_metrics([[2.0], [1.0], [-1.0]], [[1], [1], [0]], [0.6], n_resamples=0)
    >>> round(found["macro_recall"].value, 2), found.left_out
    (1.11, [])
    """

    metrics: dict[str, Estimate]
    per_label: pd.DataFrame
    prior_error: str
    left_out: list[int]

    def __getitem__(self, name: str) -> Estimate:
        """Return a metric by name."""
        return self.metrics[name]


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
    """Estimate the quality of scores from candidates.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
        Scores of rows that training did not see.
    candidates : bool array of shape (n_samples, n_labels)
        Of the same rows: True where a label is still possible.
    class_prior : array of shape (n_labels,), or ClassPriorEstimate
        How often each label is relevant. With an estimate, the intervals include its sampling
        error, but not its bias.
    predictions : array of shape (n_samples, n_labels), optional
        By default scores above 0.
    level : float
        Confidence level of the intervals.
    n_resamples : int
        How often rows are resampled for the intervals; with 0 there are none.
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
    rows, prior = _check_rows(scores, candidates, class_prior, predictions)
    spread = class_prior.standard_error if isinstance(class_prior, ClassPriorEstimate) else None
    known = replicate(rows, prior, None, n_resamples, seed)
    unsure = known if spread is None else replicate(rows, prior, spread, n_resamples, seed)
    metrics = {name: _summarise(known[name], unsure[name], level) for name in OVERALL}
    n_excluded = rows.excluded.sum(axis=0)
    table = {"n_excluded": n_excluded.astype(int), "class_prior": prior}
    for name in PER_LABEL:
        table[name] = known[name][0]
        table[f"{name}_low"], table[f"{name}_high"] = _find_interval(unsure[name], level)
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
    """Estimate the differences of the metrics of two models on the same rows, first minus second.

    The intervals are much narrower than those of either model, since the rows are the same.

    Parameters
    ----------
    scores, others : arrays of shape (n_samples, n_labels)
        Scores of the two models.
    candidates, class_prior, level, n_resamples, seed
        As in `estimate_metrics`.
    predictions : pair of arrays of shape (n_samples, n_labels), optional
        Of the two models; by default scores above 0.

    Returns
    -------
    differences : dict of str to Estimate

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> relevant = rng.random((500, 2)) < 0.5
    >>> candidates = relevant | (rng.random((500, 2)) < 0.3)
    >>> good, bad = (2 * relevant - 1 + noise * rng.normal(size=(500, 2)) for noise in (0.5, 2))
    >>> difference = compare_metrics(good, bad, candidates, [0.5, 0.5])["hamming_loss"]
    >>> difference.high < 0  # the first has the smaller loss
    True
    """
    spread = class_prior.standard_error if isinstance(class_prior, ClassPriorEstimate) else None
    known, unsure = [], []
    both = (None, None) if predictions is None else predictions
    for own, predicted in zip((scores, others), both, strict=True):
        rows, prior = _check_rows(own, candidates, class_prior, predicted)
        known.append(replicate(rows, prior, None, n_resamples, seed))
        # The same seed draws the same rows and priors for both.
        unsure.append(
            known[-1] if spread is None else replicate(rows, prior, spread, n_resamples, seed)
        )
    return {
        name: _summarise(known[0][name] - known[1][name], unsure[0][name] - unsure[1][name], level)
        for name in OVERALL
    }


def _summarise(known: FloatArray, unsure: FloatArray, level: float) -> Estimate:
    """Return an estimate from resampled values, without and with the error of the prior."""
    ends = (*_find_interval(known, level), *_find_interval(unsure, level))
    return Estimate(float(known[0]), *map(float, ends))


def _find_interval(values: FloatArray, level: float) -> FloatArray:
    """Return the interval of resampled values; the first value is that of the given rows."""
    if len(values) == 1:
        return np.full((2, *values.shape[1:]), np.nan)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN")  # labels that cannot be judged
        tail = [(1 - level) / 2, (1 + level) / 2]
        return np.asarray(np.nanquantile(values[1:], tail, axis=0))


def _check_rows(
    scores: npt.ArrayLike,
    candidates: npt.ArrayLike,
    class_prior: npt.ArrayLike | ClassPriorEstimate,
    predictions: npt.ArrayLike | None,
) -> tuple[Rows, FloatArray]:
    """Return the rows and the class prior, or raise an error if they do not fit together."""
    values = np.asarray(scores, dtype=np.float64)
    S: BoolMatrix = as_candidates(candidates)
    prior = check_scores(values, S, class_prior)
    predicted = values > 0 if predictions is None else np.asarray(predictions).astype(bool)
    if predicted.shape != S.shape:
        raise ComesError(
            f"predictions must have the shape of scores, {S.shape}; got {predicted.shape}."
        )
    below = rankdata(values, axis=1) - 1  # tied labels share their mean rank, so each counts half
    return Rows(values, predicted.astype(float), (~S).astype(float), below), prior


def check_scores(
    scores: FloatArray, candidates: BoolMatrix, class_prior: npt.ArrayLike | ClassPriorEstimate
) -> FloatArray:
    """Return the class prior as an array; raise an error unless it fits scores and candidates."""
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
        raise ComesError("scores must be finite; some are NaN or infinite. Leave out those rows.")
    if not ((prior >= 0) & (prior <= 1)).all():
        raise ComesError(f"class_prior must lie in [0, 1] for every label; got {prior.tolist()}.")
    return prior
