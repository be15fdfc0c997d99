"""How well scores foretell what was said about rows that training did not see: its likelihood.

Given the class prior, the shares of "no" and "yes" give their rates, which are the same for every
model. The likelihood of a pair is then that of `comes.risks.likelihood`.
"""

from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from comes.answers import AnswerRates, Answers, answer_evidence
from comes.answers.convert import as_candidates, check_paired
from comes.errors import ComesError
from comes.priors import ClassPriorEstimate
from comes.selection.judged_rows import check_scores, refuse_probabilities
from comes.selection.offsets import offset_matching_prior

Calibration = Literal["full", "slope", "none"]
FloatArray = npt.NDArray[np.float64]
# The logarithm of the slope of calibrated scores, once they have a standard deviation of 1: from
# scores that say nothing to scores that are sure of everything.
SLOPES = (-6.0, 6.0)
PRECISION = 0.02  # of that logarithm


def likelihood_losses(
    scores: npt.ArrayLike,
    candidates: npt.ArrayLike | Answers,
    class_prior: npt.ArrayLike | ClassPriorEstimate,
    *,
    calibration: Calibration = "full",
) -> FloatArray:
    """Return minus the log-likelihood of what was said about every row, up to a constant.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
        Scores of rows that training did not see.
    candidates : bool array of shape (n_samples, n_labels), or Answers
        Of the same rows. Answers to questions that a model chose are left out.
    class_prior : array of shape (n_labels,), or ClassPriorEstimate
        How often each label is relevant.
    calibration : {"full", "slope", "none"}
        "none" takes scores for log odds. "slope" gives all labels the one slope that is most
        likely, so that nobody is judged by how sure he is. "full" also gives each label the level
        at which its mean probability is the class prior, so that scores which are no log odds, as
        those of risks over pairs, can be compared with others; what a model says of the level of
        one label beside another is then not judged.

    Returns
    -------
    losses : array of shape (n_samples,)
        Their mean is a mean over the pairs that say something. Lower is better, also between
        methods.

    Examples
    --------
    >>> candidates, prior = [[1, 0], [0, 1], [1, 1]], [0.6, 0.6]
    >>> good = np.array([[2.0, -2.0], [-2.0, 2.0], [2.0, 2.0]])
    >>> losses = likelihood_losses(good, candidates, prior)
    >>> losses.shape, bool(losses.mean() < likelihood_losses(-good, candidates, prior).mean())
    ((3,), True)
    """
    check_paired(same_labels=True, scores=scores, candidates=candidates)
    g = np.asarray(scores, dtype=np.float64)
    said = _read_said(candidates)
    prior = check_scores(g, said.candidates, class_prior)
    refuse_probabilities(g, "Pass their log odds, as decision_function returns them.")
    leaning = answer_evidence(said, find_rates(said, prior)).astype(np.float64)
    if not leaning.any():
        raise ComesError(
            "the likelihood needs an answer that says something; got none about these rows. Hold "
            "out more rows, or take another criterion."
        )
    if calibration == "none":
        return _lose(g, leaning)
    return _lose(calibrate(g, leaning, prior if calibration == "full" else None), leaning)


def calibrate(scores: FloatArray, leaning: FloatArray, prior: FloatArray | None) -> FloatArray:
    """Return scores as log odds: the slope that is most likely, and levels by a prior, (n, q)."""
    width = float(scores.std(axis=0).mean())
    if width == 0:
        return _level(scores, prior)
    unit = scores / width
    found = minimize_scalar(
        lambda slope: _lose(_level(np.exp(slope) * unit, prior), leaning).mean(),
        bounds=SLOPES,
        method="bounded",
        options={"xatol": PRECISION},
    )
    return _level(np.exp(found.x) * unit, prior)


def _level(scores: FloatArray, prior: FloatArray | None) -> FloatArray:
    """Return scores whose mean probability is the prior for every label, if one is given."""
    return scores if prior is None else scores - offset_matching_prior(scores, prior)


def _read_said(candidates: npt.ArrayLike | Answers) -> Answers:
    """Return what was said in answer to questions that were drawn at random."""
    if isinstance(candidates, Answers):
        return candidates.without_chosen()
    return Answers.from_candidates(as_candidates(candidates))


def find_rates(said: Answers, prior: FloatArray) -> AnswerRates:
    """Return how often an irrelevant pair is called "no", and a relevant one "yes".

    P(no) = a (1 - pi) and P(yes) = b pi, among the pairs that were asked about.

    Parameters
    ----------
    said : Answers
    prior : array of shape (n_labels,)
        How often each label is relevant.

    Returns
    -------
    rates : AnswerRates

    Examples
    --------
    >>> find_rates(Answers.from_candidates([[True], [False]]), np.array([0.2])).no_rate
    array([0.625])
    """
    asked = np.full(said.shape[1], len(said)) if said.asked is None else said.asked.sum(axis=0)
    no, yes = (m.sum(axis=0) / np.maximum(asked, 1) for m in (said.excluded, said.confirmed))
    return AnswerRates(_divide(no, 1 - prior), _divide(yes, prior))


def _divide(share: FloatArray, of: FloatArray) -> FloatArray:
    """Return share / of, at most 1."""
    return np.asarray(share / np.maximum(of, np.maximum(share, np.finfo(float).tiny)))


def _lose(scores: FloatArray, leaning: FloatArray) -> FloatArray:
    """Return -log(1 - |r| sigmoid(-t)), t = sign(r) g, summed over labels, (n,).

    It is divided by the share of rows with something said about a label, on average over rows.
    """
    r, t = np.abs(leaning), np.sign(leaning) * scores
    with np.errstate(divide="ignore"):
        rest = np.log1p(-r)  # minus infinity where an answer is sure
    losses = np.where(r > 0, np.logaddexp(0, t) - np.logaddexp(rest, t), 0)
    return np.asarray(losses.sum(axis=1) * len(r) / np.count_nonzero(r))
