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
from comes.errors import ComesError, ComesWarning
from comes.priors import ClassPriorEstimate
from comes.selection.intervals import (
    OVER_LABELS,
    Drawn,
    Estimate,
    combine,
    find_interval,
    make_estimate,
)
from comes.selection.prior_draws import draw_priors, prior_error
from comes.selection.resampling import (
    Rows,
    Shares,
    bound_priors,
    compute_metrics,
    count_shares,
    draw_shares,
)

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class MetricEstimates:
    """The result of `estimate_metrics`; ``estimates["macro_f1"]`` is one of its metrics.

    Attributes
    ----------
    metrics : dict of str to Estimate
    per_label : DataFrame
        One row per label: n_excluded, class_prior, and error, recall, precision, f1, auc and
        ranking (what the label adds to the ranking risk), each with an interval, which is NaN if
        the label cannot be judged.
    prior_error : str
        Which uncertainty of the class prior the intervals include.
    left_out : list of int
        Labels that no row excludes, and that cannot be judged. A metric may be over fewer labels:
        see `Estimate`.

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
    class_prior_error: npt.ArrayLike | None = None,
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
        How often each label is relevant. With an estimate, the intervals include its error.
    class_prior_error : array of shape (n_labels,), optional
        Standard error of a class prior that was estimated, such as ``class_prior_error_`` of a
        classifier; NaN where it is not known. By default that of a ClassPriorEstimate; numbers are
        taken as known.
    predictions : array of shape (n_samples, n_labels), optional
        By default scores above 0.
    level : float
        Confidence level of the intervals.
    n_resamples : int
        How often rows are resampled for the intervals; with 0 there are none, and every metric is
        over all labels that some row excludes.
    seed : int

    Returns
    -------
    estimates : MetricEstimates
        ``hamming_loss``, ``macro_recall``, ``macro_precision``, ``macro_f1``, ``macro_auc`` and
        ``ranking_risk``, each over the labels that can be judged, or with the reason why it has no
        interval. Values may lie outside [0, 1], as unbiased estimates do.

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
    >>> unsure = estimate_metrics(scores, candidates, [0.3] * 3, class_prior_error=[0.05] * 3)
    >>> bool(unsure["hamming_loss"].high_with_prior > found["hamming_loss"].high)
    True
    """
    rows, prior = _check_rows(scores, candidates, class_prior, predictions)
    error = _find_error(class_prior, class_prior_error, len(prior))
    shares = count_shares(rows)
    values = {name: of_rows[0] for name, of_rows in compute_metrics(shares, prior).items()}
    drawn = draw_shares(rows, n_resamples, seed)
    known = unsure = compute_metrics(drawn, prior)
    if error is not None:
        priors = draw_priors(prior, error, bound_priors(shares), n_resamples, seed)
        unsure = compute_metrics(drawn, priors)
    n_excluded = rows.excluded.sum(axis=0)
    judged = {
        name: Drawn(
            name,
            values[of],
            known[of],
            unsure[of],
            n_excluded,
            error,
            _find_possible(name, shares, prior),
            level,
        )
        for name, of in OVER_LABELS.items()
    }
    return MetricEstimates(
        metrics={name: drawn_metric.summarise() for name, drawn_metric in judged.items()},
        per_label=_make_table(judged, prior),
        prior_error="none: the class prior is taken as known"
        if error is None
        else "the standard error of the estimated class prior",
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
    drawn, values = [], []
    both = (None, None) if predictions is None else predictions
    for own, predicted in zip((scores, others), both, strict=True):
        rows, prior = _check_rows(own, candidates, class_prior, predicted)
        values.append(compute_metrics(count_shares(rows), prior))
        drawn.append(draw_shares(rows, n_resamples, seed))  # the same rows for both
    error = np.zeros(len(prior))
    if isinstance(class_prior, ClassPriorEstimate):
        error = class_prior.standard_error
    bounds = np.zeros(len(prior)), 1 - rows.excluded.mean(axis=0)
    priors = draw_priors(prior, error, bounds, n_resamples, seed)
    known, unsure = ([compute_metrics(shares, pi) for shares in drawn] for pi in (prior, priors))
    judged = rows.excluded.any(axis=0)
    differences = {}
    for name, of in OVER_LABELS.items():
        labels = judged & np.isfinite(values[0][of][0] + values[1][of][0])
        here, fixed, moved = (
            combine(name, first[of] - second[of], labels)
            for first, second in (values, known, unsure)
        )
        ends = ([float(end) for end in find_interval(d, here[0], level)] for d in (fixed, moved))
        (low, high), (low_with_prior, high_with_prior) = ends
        differences[name] = make_estimate(
            float(here[0]), (low, high), (low_with_prior, high_with_prior), labels
        )
    return differences


def _find_error(
    class_prior: npt.ArrayLike | ClassPriorEstimate, error: npt.ArrayLike | None, q: int
) -> FloatArray | None:
    """Return the standard error of the class prior, None if the prior is known."""
    if error is None:
        return prior_error(class_prior)
    found = np.asarray(error, dtype=np.float64)
    if found.shape != (q,) or (found < 0).any() or np.isinf(found).any():
        raise ComesError(
            f"class_prior_error must hold a number of at least 0, or NaN, for each of {q} labels; "
            f"got {np.asarray(error).tolist()}."
        )
    return found


def _find_possible(name: str, shares: Shares, prior: FloatArray) -> FloatArray:
    """Return how much of a metric a label can be responsible for, (q,).

    A row is wrong about a label only if that is predicted or relevant. The ranking risk counts
    pairs of a relevant and an irrelevant label, apart from its constant.
    """
    if name == "hamming_loss":
        return np.asarray(shares.predicted[0] + prior)
    if name == "ranking_risk":
        return np.asarray((1 - prior) * (prior.sum() - prior))
    return np.ones(len(prior))


def _make_table(judged: dict[str, Drawn], prior: FloatArray) -> pd.DataFrame:
    """Return the metrics of every label, with intervals for those that can be judged."""
    n_excluded = judged["hamming_loss"].n_excluded
    table = {"n_excluded": n_excluded.astype(int), "class_prior": prior}
    for name, of in OVER_LABELS.items():
        metric = judged[name]
        ends = find_interval(metric.unsure, metric.values, metric.level)
        table[of] = metric.values
        table[f"{of}_low"], table[f"{of}_high"] = (
            np.where(metric.find_causes() == "", end, np.nan) for end in ends
        )
    return pd.DataFrame(table)


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
    if predictions is None:
        _warn_of_probabilities(values)
    predicted = values > 0 if predictions is None else np.asarray(predictions).astype(bool)
    if predicted.shape != S.shape:
        raise ComesError(
            f"predictions must have the shape of scores, {S.shape}; got {predicted.shape}."
        )
    below = rankdata(values, axis=1) - 1  # tied labels share their mean rank, so each counts half
    return Rows(values, predicted.astype(float), (~S).astype(float), below), prior


def _warn_of_probabilities(scores: FloatArray) -> None:
    """Warn of scores that are cut at 0, but look as if that were the least value."""
    if scores.size > 1 and scores.min() >= 0 and 0 < scores.max() <= 1:
        warnings.warn(
            "scores must be above 0 where a label is predicted; got only numbers in [0, 1], which "
            "look like probabilities. Pass predictions=, for example scores > 0.5.",
            ComesWarning,
            stacklevel=4,
        )


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
