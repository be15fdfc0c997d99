"""Metrics of scores, estimated from candidates or answers of rows that training did not see.

Rows that exclude label j are a sample of the rows it is irrelevant to (Lemma 1 of the paper), and
the class prior pi_j says which share of all rows that is. With f_j the share of rows predicted to
have label j, and FPR_j the same among rows that exclude it:

    error_j     = pi_j - f_j + 2 (1 - pi_j) FPR_j          (Theorem 1 with the 0-1 loss)
    recall_j    = (f_j - (1 - pi_j) FPR_j) / pi_j
    precision_j = (f_j - (1 - pi_j) FPR_j) / f_j
    F1_j        = 2 (f_j - (1 - pi_j) FPR_j) / (f_j + pi_j)
    AUC_j       = (A_j - (1 - pi_j) / 2) / pi_j     A_j: how often a row beats one that excludes j
    ranking     = sum_j (1 - pi_j) E[labels that score below j | j excluded]    (Theorem 4)

Where rows with a "yes" for j are known, the share of them that is predicted estimates the recall
itself, and their wins against rows with a "no" the AUC; the class prior is then needed for less.

docs/guide/selection.md derives them. Error, recall, AUC and the ranking risk are unbiased,
precision and F1 are consistent. The ranking risk is that of the paper's Equation 3 plus a constant
that is the same for all models, so only its differences have a meaning.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.answers import Answers
from comes.errors import ComesError
from comes.priors import ClassPriorEstimate
from comes.selection.intervals import (
    OVER_LABELS,
    Drawn,
    Estimate,
    combine,
    find_interval,
    make_estimate,
)
from comes.selection.judged_rows import check_rows
from comes.selection.prior_draws import draw_priors, prior_error
from comes.selection.resampling import (
    MIN_CONFIRMED,
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
        ranking (what the label adds to the ranking risk), each with an interval (``recall_low``,
        ``recall_high``), which is NaN if the label cannot be judged, and why it cannot be
        estimated (``recall_reason``, "" if it can).
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
    candidates: npt.ArrayLike | Answers,
    class_prior: npt.ArrayLike | ClassPriorEstimate,
    *,
    class_prior_error: npt.ArrayLike | None = None,
    predictions: npt.ArrayLike | None = None,
    probabilities: bool = False,
    level: float = 0.95,
    n_resamples: int = 400,
    seed: int = 0,
) -> MetricEstimates:
    """Estimate the quality of scores from candidates or answers.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
        Scores of rows that training did not see.
    candidates : bool array of shape (n_samples, n_labels), or Answers
        Of the same rows: True where a label is still possible. Of answers, "yes" counts too: where
        at least 5 rows have it, recall and AUC are counted and need no class prior, and the others
        depend less on it. Answers to questions that a model chose are left out.
    class_prior : array of shape (n_labels,), or ClassPriorEstimate
        How often each label is relevant. With an estimate, the intervals include its error.
    class_prior_error : array of shape (n_labels,), optional
        Standard error of a class prior that was estimated, such as ``class_prior_error_`` of a
        classifier; NaN where it is not known. By default that of a ClassPriorEstimate; numbers are
        taken as known.
    predictions : array of shape (n_samples, n_labels), optional
        By default scores above 0, or probabilities above 1/2.
    probabilities : bool
        The scores are probabilities, as ``predict_proba`` returns them. Without it, numbers that
        look like probabilities are refused, unless predictions are given.
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
    rows, prior = check_rows(
        scores, candidates, class_prior, predictions, probabilities=probabilities
    )
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
            *_find_evidence(of, rows, error),
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
    candidates: npt.ArrayLike | Answers,
    class_prior: npt.ArrayLike | ClassPriorEstimate,
    *,
    predictions: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    probabilities: bool = False,
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
        Of the two models; by default scores above 0, or probabilities above 1/2.
    probabilities : bool
        The scores of both are probabilities.

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
        rows, prior = check_rows(
            own, candidates, class_prior, predicted, probabilities=probabilities
        )
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


def _find_evidence(
    of: str, rows: Rows, error: FloatArray | None
) -> tuple[FloatArray, FloatArray | None]:
    """Return how many rows tell about every label, and the error of the class prior if it counts.

    Recall and AUC of a label with enough "yes" are counted without the class prior.
    """
    n_excluded, n_confirmed = rows.excluded.sum(axis=0), rows.confirmed.sum(axis=0)
    if of not in ("recall", "auc"):
        return n_excluded, error
    counted = n_confirmed >= MIN_CONFIRMED
    n_rows = np.where(counted, n_confirmed, n_excluded) if of == "recall" else n_excluded
    return n_rows, None if error is None else np.where(counted, 0.0, error)


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
    n_excluded = judged["hamming_loss"].n_rows
    table: dict[str, npt.ArrayLike] = {
        "n_excluded": n_excluded.astype(int),
        "class_prior": prior,
    }
    for name, of in OVER_LABELS.items():
        metric = judged[name]
        ends = find_interval(metric.unsure, metric.values, metric.level)
        table[of] = metric.values
        table[f"{of}_low"], table[f"{of}_high"] = (
            np.where(metric.find_causes() == "", end, np.nan) for end in ends
        )
        table[f"{of}_reason"] = metric.explain_labels()
    return pd.DataFrame(table)
