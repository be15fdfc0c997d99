r"""Probabilities judged and corrected by how likely they make the answers of held-out rows.

If label j is relevant to a row with probability eta, an asked pair gets, by docs/guide/answers.md,

    no with a_j (1 - eta),   yes with b_j eta,   neither with 1 - a_j (1 - eta) - b_j eta

with a_j and b_j the rates of "no" and "yes". Candidates have b = 0 and ticked labels a = 0; with
a = b = 1 (the truth) nothing is left unsaid. Three functions maximise this likelihood, or compare
it:

`likelihood_losses`  is minus its logarithm, row by row, to compare models
`fit_calibration`    gives label j a slope and a level, logit eta_j = e^(s + s_j) g_j + c + c_j
`check_reliability`  finds the share eta of relevant pairs in each range of probabilities

The first two take answers as evidence r in [-1, 1] (`comes.answers.answer_evidence`): with t =
sign(r) g, the likelihood of a pair is 1 - |r| sigmoid(-t), up to a factor that is the same for all
scores g.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, xlogy
from scipy.stats import chi2

from comes.answers import AnswerRates, Answers, answer_evidence
from comes.errors import ComesError
from comes.priors import ClassPriorEstimate
from comes.selection.estimates import read_rows, refuse_probabilities
from comes.selection.thresholds import offset_matching_prior

FloatArray = npt.NDArray[np.float64]

# The logarithm of the slope of scores with a standard deviation of 1: from scores that say nothing
# to scores that are sure of everything.
LOG_SLOPES = (-6.0, 6.0)
PRECISION = 0.02  # of that logarithm
# Standard deviations of what all labels share, and of a label's own: of the logarithm of the slope,
# and of the level. The best of five by log loss on three sets: experiments/calibration.py.
SHARED_SPREAD = (1.0, 1.0)
OWN_SPREAD = (0.25, 0.5)
FAR = 60.0  # log odds beyond which a probability is 0 or 1
ETA = np.linspace(0, 1, 1001)


def likelihood_losses(
    scores: npt.ArrayLike,
    candidates: npt.ArrayLike | Answers,
    class_prior: npt.ArrayLike | ClassPriorEstimate,
    *,
    calibration: Literal["full", "slope", "none"] = "full",
) -> FloatArray:
    """Return minus the log-likelihood of the answers of every row, up to a constant.

    The shares of "no" and "yes", and the class prior, give the rates of answers, which are the same
    for every model.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
        Scores of held-out rows.
    candidates : bool array of shape (n_samples, n_labels), or Answers
        Of the same rows. Answers to questions that a model chose are left out.
    class_prior : array of shape (n_labels,), or ClassPriorEstimate
        How often each label is relevant.
    calibration : {"full", "slope", "none"}
        "none" takes scores for log odds. "slope" gives all labels the one slope that is most
        likely, so that no model is judged by how confident it is. "full" also gives each label the
        level at which its mean probability is the class prior, so that scores which are no log
        odds, as those of risks over pairs, can be compared with others; the level of one label
        beside another is then not judged.

    Returns
    -------
    losses : array of shape (n_samples,)
        Their mean is a mean over the informative pairs. Lower is better, also between methods.

    Examples
    --------
    >>> candidates, prior = [[1, 0], [0, 1], [1, 1]], [0.6, 0.6]
    >>> good = np.array([[2.0, -2.0], [-2.0, 2.0], [2.0, 2.0]])
    >>> losses = likelihood_losses(good, candidates, prior)
    >>> losses.shape, bool(losses.mean() < likelihood_losses(-good, candidates, prior).mean())
    ((3,), True)
    """
    values, answers, prior = read_rows(scores, candidates, class_prior)
    refuse_probabilities(values, "Pass their log odds, as decision_function returns them.")
    evidence = answer_evidence(answers, rates_given_prior(answers, prior)).astype(np.float64)
    if not evidence.any():
        raise ComesError(
            "the likelihood needs an informative answer; got none about these rows. Hold out more "
            "rows, or take another criterion."
        )
    if calibration != "none":
        values = _calibrate(values, evidence, prior if calibration == "full" else None)
    return _row_losses(values, evidence)


def _calibrate(scores: FloatArray, evidence: FloatArray, prior: FloatArray | None) -> FloatArray:
    """Return log odds with the most likely slope, and levels at which the mean is the prior."""

    def at_level(log_odds: FloatArray) -> FloatArray:
        return log_odds if prior is None else log_odds - offset_matching_prior(log_odds, prior)

    def mean_loss(log_slope: float) -> float:
        return float(_row_losses(at_level(np.exp(log_slope) * unit), evidence).mean())

    width = float(scores.std(axis=0).mean())
    if width == 0:
        return at_level(scores)
    unit = scores / width
    options = {"xatol": PRECISION}
    best = minimize_scalar(mean_loss, bounds=LOG_SLOPES, method="bounded", options=options)
    return at_level(np.exp(best.x) * unit)


def rates_given_prior(answers: Answers, prior: FloatArray) -> AnswerRates:
    """Return the rates with P(no) = a (1 - pi) and P(yes) = b pi, among the pairs asked about."""
    asked = answers.asked
    n_asked = len(answers) if asked is None else asked.sum(axis=0)
    rates = []
    for called, share in ((answers.excluded, 1 - prior), (answers.confirmed, prior)):
        of_asked = called.sum(axis=0) / np.maximum(n_asked, 1)
        rates.append(of_asked / np.maximum(share, np.maximum(of_asked, np.finfo(float).tiny)))
    return AnswerRates(*rates)


def _row_losses(log_odds: FloatArray, evidence: FloatArray) -> FloatArray:
    """Return -log(1 - |r| sigmoid(-t)) summed over labels, (n,).

    It is divided by the mean number of informative pairs of a row.
    """
    r, t = np.abs(evidence), np.sign(evidence) * log_odds
    with np.errstate(divide="ignore"):
        rest = np.log1p(-r)  # minus infinity where an answer is sure
    losses = np.where(r > 0, np.logaddexp(0, t) - np.logaddexp(rest, t), 0)
    return np.asarray(losses.sum(axis=1) * len(r) / np.count_nonzero(r))


@dataclass(frozen=True, eq=False)
class Calibration:
    """The result of `fit_calibration`: a slope and a level for the scores of every label."""

    slope: FloatArray
    level: FloatArray

    def calibrate(self, scores: npt.ArrayLike) -> FloatArray:
        """Return log odds of relevance, (n_samples, n_labels)."""
        return np.asarray(np.asarray(scores) * self.slope + self.level)


def fit_calibration(
    scores: npt.ArrayLike,
    evidence: npt.ArrayLike,
    *,
    shared_spread: tuple[float, float] = SHARED_SPREAD,
    own_spread: tuple[float, float] = OWN_SPREAD,
) -> Calibration:
    r"""Return the slopes and levels that make the evidence about held-out rows most likely.

    Label j gets :math:`\operatorname{logit} \eta_j = e^{s + s_j} g_j + c + c_j`. Normal priors
    around 0 keep s and c, which all labels share, and s_j and c_j, which are a label's own, small:
    with few rows nothing changes, with more all labels move together, and with many each on its
    own.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
        Scores of held-out rows, log odds as far as they are.
    evidence : array of shape (n_samples, n_labels)
        From `comes.answers.answer_evidence`; of true labels, 1 for relevant and -1 for irrelevant.
        0 says nothing.
    shared_spread, own_spread : pairs of float
        How far the logarithm of the slope, and the level, are expected to be from 0: in common,
        and of each label apart.

    Returns
    -------
    calibration : Calibration
        ``slope`` and ``level``, arrays of shape (n_labels,); ``calibrate(scores)`` returns log odds
        of relevance.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> log_odds = rng.normal(size=(5000, 2))
    >>> relevant = rng.random((5000, 2)) < expit(log_odds)
    >>> calibration = fit_calibration(3 * log_odds - 1, np.where(relevant, 1, -1))
    >>> bool(np.abs(calibration.calibrate(3 * log_odds - 1) - log_odds).mean() < 0.1)
    True
    """
    g, r = (np.asarray(values, dtype=np.float64) for values in (scores, evidence))
    if g.ndim != 2 or g.shape != r.shape or not np.isfinite(g).all():
        raise ComesError(
            "calibration needs finite scores, and evidence of the same shape; got shapes "
            f"{g.shape} and {r.shape}."
        )
    q = g.shape[1]
    spread = np.repeat([*shared_spread, *own_spread], [1, 1, q, q])
    best = minimize(
        negative_log_posterior,
        np.zeros(2 * q + 2),
        args=(g, r, spread),
        jac=True,
        method="L-BFGS-B",
    )
    log_slope, level = _slopes_and_levels(best.x)
    return Calibration(np.exp(log_slope), level)


def negative_log_posterior(
    parameters: FloatArray, g: FloatArray, r: FloatArray, spread: FloatArray
) -> tuple[float, Any]:
    """Return minus the log posterior of (s, c, s_j, c_j), up to a constant, and its gradient."""
    log_slope, level = _slopes_and_levels(parameters)
    steep = np.exp(log_slope) * g
    t = np.clip(np.sign(r) * (steep + level), -FAR, FAR)
    odds = np.abs(r) / (1 - np.abs(r) + np.exp(t))  # -log(1 - |r| sigmoid(-t)) = log(1 + odds)
    value = np.log1p(odds).sum() + 0.5 * np.square(parameters / spread).sum()
    by_score = -np.sign(r) * expit(t) * odds
    by_slope, by_level = (by_score * steep).sum(axis=0), by_score.sum(axis=0)
    shared = [by_slope.sum(), by_level.sum()]
    return float(value), np.concatenate([shared, by_slope, by_level]) + parameters / spread**2


def _slopes_and_levels(parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the logarithm of the slope, s + s_j, and the level, c + c_j, of every label."""
    own_slope, own_level = np.split(parameters[2:], 2)
    return parameters[0] + own_slope, parameters[1] + own_level


def check_reliability(
    probabilities: npt.ArrayLike,
    answers: Answers,
    no_rate: npt.ArrayLike,
    yes_rate: npt.ArrayLike,
    *,
    n_bins: int = 10,
    level: float = 0.95,
) -> pd.DataFrame:
    """Compare predicted probabilities with the answers of held-out rows.

    Parameters
    ----------
    probabilities : array of shape (n_samples, n_labels)
        Of held-out rows.
    answers : Answers of shape (n_samples, n_labels)
        Of the same rows. The truth is ``Answers(no=~relevant, yes=relevant)`` with rates of 1.
        Answers to questions that a model chose are left out, and so are pairs that nobody was
        asked about.
    no_rate, yes_rate : arrays of shape (n_labels,), or floats
        How often an irrelevant pair is called so (or excluded), and a relevant one (or ticked).
        Only one of them counts for candidates and for ticked labels.
    n_bins : int
        Ranges of equal width.
    level : float
        Confidence level of the intervals, which take pairs as independent.

    Returns
    -------
    reliability : DataFrame
        One row for every range of probabilities that has pairs: n_pairs, predicted (their mean
        probability), relevant (the share of relevant pairs that answers speak for), low and high.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> eta = rng.random((4000, 1))
    >>> relevant = rng.random((4000, 1)) < eta
    >>> truth = Answers(no=~relevant, yes=relevant)
    >>> reliability = check_reliability(eta, truth, 1.0, 1.0, n_bins=4)
    >>> reliability[["predicted", "relevant"]].round(2).values.tolist()
    [[0.12, 0.14], [0.38, 0.39], [0.62, 0.64], [0.87, 0.86]]
    """
    eta = np.asarray(probabilities, dtype=np.float64)
    drawn = answers.without_chosen()
    if eta.shape != drawn.shape or not ((eta >= 0) & (eta <= 1)).all():
        raise ComesError(
            f"probabilities must lie in [0, 1] and have the shape of the answers, {drawn.shape}; "
            f"got {eta.shape}. Pass what predict_proba returns."
        )
    a = np.asarray(0.0 if drawn.kind == "positives" else no_rate, dtype=np.float64)
    b = np.asarray(0.0 if drawn.kind == "candidates" else yes_rate, dtype=np.float64)
    asked = drawn.asked
    counts = np.ones(drawn.shape, dtype=bool) if asked is None else asked
    bin_of_pair = np.minimum((eta * n_bins).astype(int), n_bins - 1)
    rows = []
    for k in range(n_bins):
        inside = counts & (bin_of_pair == k)
        n_pairs = inside.sum(axis=0)
        if n_pairs.any():
            no, yes = ((inside & m).sum(axis=0) for m in (drawn.excluded, drawn.confirmed))
            share = _fit_share(no, yes, n_pairs - no - yes, a, b, level)
            rows.append((int(n_pairs.sum()), float(eta[inside].mean()), *share))
    return pd.DataFrame(rows, columns=["n_pairs", "predicted", "relevant", "low", "high"])


def _fit_share(
    no: npt.ArrayLike,
    yes: npt.ArrayLike,
    neither: npt.ArrayLike,
    a: FloatArray,
    b: FloatArray,
    level: float,
) -> tuple[float, float, float]:
    """Return the most likely share of relevant pairs and its interval, from counts by label.

    The interval has the shares whose log-likelihood is less than half a quantile of chi squared
    below the greatest.
    """
    eta = ETA[:, None]
    by_label = xlogy(no, a * (1 - eta)) + xlogy(yes, b * eta)
    by_label += xlogy(neither, np.clip(1 - a * (1 - eta) - b * eta, 0, None))
    log_likelihood = by_label.sum(axis=1)
    best = log_likelihood.max()
    if not np.isfinite(best) or best - log_likelihood.min() < 1e-9:  # nothing is informative
        return np.nan, 0.0, 1.0
    inside = ETA[log_likelihood >= best - chi2.ppf(level, 1) / 2]
    return float(ETA[log_likelihood.argmax()]), float(inside.min()), float(inside.max())
