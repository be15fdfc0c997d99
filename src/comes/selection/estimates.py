"""Metrics of scores, estimated from candidates or answers of held-out rows: no true label is used.

Rows that exclude label j are a sample of the rows it is irrelevant to (Lemma 1 of the paper), and
the class prior pi_j says which share of all rows that is. With f_j the share of rows predicted to
have label j, and FPR_j the same among rows that exclude it:

    error_j     = pi_j - f_j + 2 (1 - pi_j) FPR_j          (Theorem 1 with the 0-1 loss)
    recall_j    = (f_j - (1 - pi_j) FPR_j) / pi_j
    precision_j = (f_j - (1 - pi_j) FPR_j) / f_j
    F1_j        = 2 (f_j - (1 - pi_j) FPR_j) / (f_j + pi_j)
    AUC_j       = (A_j - (1 - pi_j) / 2) / pi_j     A_j: how often a row beats one that excludes j
    ranking     = sum_j (1 - pi_j) E[labels that score below j | j excluded]    (Theorem 4)

Where enough rows have a "yes" for j, the share of them that is predicted is the recall itself, and
how often they beat rows with a "no" the AUC; the other metrics then depend less on the class prior.

docs/guide/selection.md derives the formulas. Error, recall, AUC and the ranking risk are unbiased,
precision and F1 are consistent. The ranking risk is that of the paper's Equation 3 plus a constant
that is the same for all models, so only its differences have a meaning.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import rankdata

from comes.answers import Answers
from comes.answers.convert import check_paired
from comes.errors import ComesError
from comes.priors import ClassPriorEstimate
from comes.selection.intervals import (
    OVER_LABELS,
    Estimate,
    MetricDraws,
    draw_priors,
    interval,
    over_labels,
    prior_error,
)

FloatArray = npt.NDArray[np.float64]

MIN_CONFIRMED = 5  # rows with a "yes" that recall and AUC can be counted on
WEIGHTS_AT_ONCE = 2**24


@dataclass(frozen=True)
class MetricEstimates:
    """The result of `estimate_metrics`, which documents it."""

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
        Scores of held-out rows.
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
        ``estimates["macro_f1"]`` is an `Estimate`, and so are ``hamming_loss``, ``macro_recall``,
        ``macro_precision``, ``macro_auc`` and ``ranking_risk`` (all: ``estimates.metrics``), each
        over the labels that can be judged, or with the reason why it has no interval. Values may
        lie outside [0, 1], as unbiased estimates do.

        ``per_label`` is a DataFrame with n_excluded, class_prior, and error, recall, precision, f1,
        auc and ranking (what the label adds to the ranking risk), each with an interval
        (``recall_low``, ``recall_high``), which is NaN if the label cannot be judged, and why it
        cannot be estimated (``recall_reason``, "" if it can). ``left_out`` lists the labels that no
        row excludes, and ``prior_error`` says which uncertainty of the class prior intervals
        include.

    Examples
    --------
    >>> from comes.generation import case_b
    >>> rng = np.random.default_rng(0)
    >>> relevant = rng.random((2000, 3)) < 0.3
    >>> scores = np.where(relevant, 1.0, -1.0) + rng.normal(size=(2000, 3))
    >>> candidates = case_b(relevant, exclude_rate=0.5)
    >>> result = estimate_metrics(scores, candidates, [0.3, 0.3, 0.3])
    >>> truth = np.mean((scores > 0) != relevant)
    >>> bool(result["hamming_loss"].low < truth < result["hamming_loss"].high)
    True
    >>> unsure = estimate_metrics(scores, candidates, [0.3] * 3, class_prior_error=[0.05] * 3)
    >>> bool(unsure["hamming_loss"].high_with_prior > result["hamming_loss"].high)
    True
    """
    rows, prior = _read_predicted(scores, candidates, class_prior, predictions, probabilities)
    error = prior_error(class_prior, class_prior_error)
    shares, resampled = rows.count(), rows.resample(n_resamples, seed)
    values = metrics_by_label(shares, prior)
    known = unsure = metrics_by_label(resampled, prior)
    if error is not None:
        priors = draw_priors(prior, error, prior_bounds(shares), n_resamples, seed)
        unsure = metrics_by_label(resampled, priors)

    # Where "yes" are counted, recall and AUC do not depend on the class prior, nor on its error.
    n_excluded, n_confirmed = rows.excluded.sum(axis=0), rows.confirmed.sum(axis=0)
    counted = n_confirmed >= MIN_CONFIRMED
    n_rows = {"recall": np.where(counted, n_confirmed, n_excluded)}
    without_yes = None if error is None else np.where(counted, 0.0, error)
    errors = {"recall": without_yes, "auc": without_yes}
    # A row is wrong about a label only if it is predicted or relevant. The ranking risk counts
    # pairs of a relevant and an irrelevant label, apart from its constant.
    possible = {
        "hamming_loss": shares.predicted[0] + prior,
        "ranking_risk": (1 - prior) * (prior.sum() - prior),
    }
    metrics, columns = {}, {"n_excluded": n_excluded.astype(int), "class_prior": prior}
    for name, of_label in OVER_LABELS.items():
        draws = MetricDraws(
            name,
            values[of_label][0],
            known[of_label],
            unsure[of_label],
            n_rows.get(of_label, n_excluded),
            errors.get(of_label, error),
            possible.get(name, np.ones(len(prior))),
            level,
        )
        metrics[name] = draws.summarise()
        columns[of_label] = draws.values
        for end, limits in zip(("low", "high"), draws.label_intervals, strict=True):
            columns[f"{of_label}_{end}"] = np.where(draws.causes == "", limits, np.nan)
        columns[f"{of_label}_reason"] = draws.explain_labels()
    return MetricEstimates(
        metrics,
        pd.DataFrame(columns),
        prior_error="none: the class prior is taken as known"
        if error is None
        else "the standard error of the estimated class prior",
        left_out=np.flatnonzero(n_excluded == 0).tolist(),
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
    cuts = (None, None) if predictions is None else predictions
    values, resampled = [], []
    for model, cut in zip((scores, others), cuts, strict=True):
        rows, prior = _read_predicted(model, candidates, class_prior, cut, probabilities)
        values.append(metrics_by_label(rows.count(), prior))
        resampled.append(rows.resample(n_resamples, seed))  # the same rows for both
    error = np.zeros(len(prior))
    if isinstance(class_prior, ClassPriorEstimate):
        error = class_prior.standard_error
    bounds = np.zeros(len(prior)), 1 - rows.excluded.mean(axis=0)
    priors = draw_priors(prior, error, bounds, n_resamples, seed)
    known = [metrics_by_label(shares, prior) for shares in resampled]
    unsure = [metrics_by_label(shares, priors) for shares in resampled]
    differences = {}
    for name, of_label in OVER_LABELS.items():
        labels = rows.excluded.any(axis=0)
        labels &= np.isfinite(values[0][of_label][0] + values[1][of_label][0])
        difference, *draws = (
            over_labels(name, first[of_label] - second[of_label], labels)
            for first, second in (values, known, unsure)
        )
        (low, high), (wide_low, wide_high) = (interval(d, difference[0], level) for d in draws)
        differences[name] = Estimate(
            float(difference[0]),
            float(low),
            float(high),
            float(wide_low),
            float(wide_high),
            labels=tuple(np.flatnonzero(labels).tolist()),
        )
    return differences


class Shares(NamedTuple):
    """What the metrics of every label are made of; arrays are (b, q), for b samples of rows."""

    excluded: FloatArray  # share of rows that exclude j
    predicted: FloatArray  # f_j
    false_positives: FloatArray  # FPR_j: share predicted among rows that exclude j
    below: FloatArray  # E[labels that score below j | j excluded]
    beaten: FloatArray  # A_j: how often a row scores above one that excludes j
    confirmed: FloatArray  # share of rows with a "yes" for j
    true_positives: FloatArray  # TPR_j: share predicted among them; NaN if they are too few
    won: FloatArray  # how often one of them scores above a row that excludes j; NaN likewise


def metrics_by_label(shares: Shares, prior: FloatArray) -> dict[str, FloatArray]:
    """Return the metrics of every label, (b, q), NaN where they are not defined.

    The prior is (q,) or (b, q). Without "yes", true positives are the predicted rows that are not
    false positives.
    """
    counted, f = np.isfinite(shares.true_positives), shares.predicted
    with np.errstate(divide="ignore", invalid="ignore"):
        false = (1 - prior) * shares.false_positives
        true = np.where(counted, prior * shares.true_positives, f - false)
        predicted = np.where(counted, true + false, f)
        auc = (shares.beaten - (1 - prior) / 2) / prior
        metrics = {
            "error": prior - true + false,
            "recall": np.where(counted, shares.true_positives, true / prior),
            "precision": true / predicted,
            "f1": 2 * true / (predicted + prior),
            "auc": np.where(np.isfinite(shares.won), shares.won, auc),
            "ranking": (1 - prior) * shares.below,
        }
    return {name: np.where(np.isfinite(v), v, np.nan) for name, v in metrics.items()}


def prior_bounds(shares: Shares) -> tuple[FloatArray, FloatArray]:
    """Return the least and the greatest class priors that the rows allow, (q,) each.

    True positives are at most pi_j, and the AUC at most 1. An excluded label is irrelevant, and one
    with a "yes" relevant.
    """
    f, rate, beaten = shares.predicted[0], shares.false_positives[0], shares.beaten[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.fmax((f - rate) / (1 - rate), 2 * beaten - 1)
    least = np.fmax(np.where(np.isfinite(least), least, 0.0), shares.confirmed[0])
    return least, 1 - shares.excluded[0]


class HeldOutRows:
    """Scores, predictions and answers of held-out rows, to be counted with weights."""

    def __init__(self, scores: FloatArray, predicted: npt.NDArray[np.bool_], answers: Answers):
        self.predicted, self.excluded, self.confirmed = (
            mask.astype(float) for mask in (predicted, answers.excluded, answers.confirmed)
        )
        self.below = labels_below(scores)
        columns = zip(scores.T, self.excluded.T, strict=True)
        self.orders = [_ScoreOrder(*column) for column in columns]

    def count(self) -> Shares:
        """Return the shares of the rows as they are, (1, q)."""
        n, q = self.predicted.shape
        return self._weigh(np.ones((1, n)), np.zeros((2, 1, q)))

    def resample(self, n_resamples: int, seed: int) -> Shares:
        """Return the shares of rows drawn with replacement, (n_resamples, q).

        A count of 0 would be 0 in every resample, as if it were certain. So the numbers of false
        and of true positives are moved by a number with mean 0 and variance 1/2; that hardly
        matters for other counts.
        """
        if n_resamples < 0:
            raise ComesError(f"n_resamples must be 0 or more; got {n_resamples!r}.")
        n, q = self.predicted.shape
        rng, rng_counts = np.random.default_rng(seed), np.random.default_rng([seed, 2])
        at_once = max(1, WEIGHTS_AT_ONCE // n)
        parts = [Shares(*[np.empty((0, q))] * len(Shares._fields))]
        for start in range(0, n_resamples, at_once):
            size = min(at_once, n_resamples - start)
            weights = rng.multinomial(n, np.full(n, 1 / n), size=size).astype(np.float64)
            moved = (rng_counts.gamma(0.5, size=(size, 2, q)) - 0.5).swapaxes(0, 1)
            parts.append(self._weigh(weights, moved))
        return Shares(*(np.concatenate(shares) for shares in zip(*parts, strict=True)))

    def _weigh(self, weights: FloatArray, moved: FloatArray) -> Shares:
        """Return the shares of rows with weights (b, n); ``moved`` (2, b, q) is added to counts."""
        n_excluded, n_confirmed = weights @ self.excluded, weights @ self.confirmed
        total = weights.sum(axis=1, keepdims=True)
        enough = self.confirmed.sum(axis=0) >= MIN_CONFIRMED
        won = np.full(n_excluded.shape, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):  # labels that no row excludes
            for j in np.flatnonzero(enough):
                won[:, j] = self.orders[j].share_above(weights, self.confirmed[:, j])
            true_positives = weights @ (self.confirmed * self.predicted) + moved[1]
            false_positives = weights @ (self.excluded * self.predicted) + moved[0]
            return Shares(
                excluded=n_excluded / total,
                predicted=weights @ self.predicted / total,
                false_positives=false_positives / n_excluded,
                below=weights @ (self.excluded * self.below) / n_excluded,
                beaten=np.stack([order.share_above(weights) for order in self.orders], axis=1),
                confirmed=n_confirmed / total,
                true_positives=np.where(enough, true_positives / n_confirmed, np.nan),
                won=won,
            )


class _ScoreOrder:
    """The rows sorted by the score of one label, and where rows that exclude it stand."""

    def __init__(self, scores: FloatArray, excluded: FloatArray):
        self.ascending = np.argsort(scores, kind="stable")
        self.excluded = np.flatnonzero(excluded)
        ranked, of_excluded = scores[self.ascending], scores[self.excluded]
        self.first = np.searchsorted(ranked, of_excluded, side="left")  # row with the same score
        self.after = np.searchsorted(ranked, of_excluded, side="right")  # the last such row

    def share_above(self, weights: FloatArray, among: FloatArray | None = None) -> FloatArray:
        """Return how often a row scores higher than a row that excludes the label, (b,).

        ``among``, 0 or 1 for every row, chooses the rows that may win. Ties count half, and so does
        the tie of a row with itself: otherwise the rows would not mix relevant and irrelevant ones
        as the prior says.
        """
        winners = weights if among is None else weights * among
        start = np.zeros((len(weights), 1))
        cumulative = np.concatenate([start, winners[:, self.ascending].cumsum(axis=1)], axis=1)
        total = cumulative[:, -1:]
        above = total - (cumulative[:, self.after] + cumulative[:, self.first]) / 2
        losers = weights[:, self.excluded]
        return np.asarray((losers * above).sum(axis=1) / (losers.sum(axis=1) * total[:, 0]))


def labels_below(scores: FloatArray) -> FloatArray:
    """Return how many labels of the row score below each, (n, q); tied labels count half."""
    return np.asarray(rankdata(scores, axis=1) - 1)


def _read_predicted(
    scores: npt.ArrayLike,
    candidates: npt.ArrayLike | Answers,
    class_prior: npt.ArrayLike | ClassPriorEstimate,
    predictions: npt.ArrayLike | None,
    probabilities: bool,
) -> tuple[HeldOutRows, FloatArray]:
    """Return rows with their predictions, by default the scores cut at 0 or 1/2, and the prior."""
    values, answers, prior = read_rows(scores, candidates, class_prior, predictions)
    if probabilities and not ((values >= 0) & (values <= 1)).all():
        raise ComesError(
            f"probabilities must lie in [0, 1]; got {values.min():.3g} to {values.max():.3g}. If "
            "these are scores, leave out probabilities=True."
        )
    if predictions is not None:
        predicted = np.asarray(predictions).astype(bool)
    elif probabilities:
        predicted = values > 0.5
    else:
        refuse_probabilities(values, "Pass probabilities=True, or predictions=.")
        predicted = values > 0
    return HeldOutRows(values, predicted, answers), prior


def read_rows(
    scores: npt.ArrayLike,
    candidates: npt.ArrayLike | Answers,
    class_prior: npt.ArrayLike | ClassPriorEstimate,
    predictions: npt.ArrayLike | None = None,
) -> tuple[FloatArray, Answers, FloatArray]:
    """Return scores, answers to questions drawn at random, and the prior; check that they fit."""
    check_paired(same_labels=True, scores=scores, candidates=candidates, predictions=predictions)
    values, prior = (np.asarray(given, dtype=np.float64) for given in (scores, class_prior))
    if isinstance(candidates, Answers):
        answers = candidates.without_chosen()
    else:
        answers = Answers.from_candidates(candidates)
    if values.shape != answers.shape:
        raise ComesError(
            f"scores and candidates must have one shape; got {values.shape} and {answers.shape}."
        )
    if prior.shape != values.shape[1:]:
        raise ComesError(
            f"class_prior must have a number for each of {values.shape[1]} labels; got shape "
            f"{prior.shape}."
        )
    if not np.isfinite(values).all():
        raise ComesError("scores must be finite; some are NaN or infinite. Leave out those rows.")
    if not ((prior >= 0) & (prior <= 1)).all():
        raise ComesError(f"class_prior must lie in [0, 1] for every label; got {prior.tolist()}.")
    if predictions is not None and np.shape(predictions) != values.shape:
        raise ComesError(
            f"predictions must have the shape of scores, {values.shape}; got "
            f"{np.shape(predictions)}."
        )
    return values, answers, prior


def refuse_probabilities(scores: FloatArray, advice: str) -> None:
    """Raise an error if scores, which predict a label above 0, all lie in [0, 1]."""
    if scores.size > 1 and scores.min() >= 0 and 0 < scores.max() <= 1:
        raise ComesError(
            "scores must be above 0 where a label is predicted; got only numbers in [0, 1], which "
            f"look like probabilities. {advice}"
        )
