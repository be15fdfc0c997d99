"""Slopes and levels that make scores log odds: against plain loops, the truth, and few rows."""

import copy
import math
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import check_grad, minimize
from scipy.special import expit, logit

from comes import Answers, CandidateClassifier
from comes.answers import AnswerRates, answer_evidence
from comes.errors import ComesError, ComesWarning
from comes.generation import independent, simulate_answers
from comes.selection import fit_calibration
from comes.selection.calibration import OWN_SPREAD, SHARED_SPREAD, _lose

RNG = np.random.default_rng(0)
SHAPE = (5, 3)
SCORES = RNG.normal(size=SHAPE) * 2
LEANING = RNG.choice([-1.0, -0.5, 0.0, 0.6, 1.0], size=SHAPE)
SPREAD = np.repeat([*SHARED_SPREAD, *OWN_SPREAD], [1, 1, 3, 3])


def plain_loss(parameters: Any) -> float:
    """Return minus log-likelihood and log prior, written as loops over pairs."""
    (s, c), own_s, own_c = parameters[:2], parameters[2:5], parameters[5:]
    total = 0.0
    for i in range(SHAPE[0]):
        for j in range(SHAPE[1]):
            eta = 1 / (1 + math.exp(-(math.exp(s + own_s[j]) * SCORES[i, j] + c + own_c[j])))
            r = LEANING[i, j]
            said = 1 - r * (1 - eta) if r >= 0 else 1 + r * eta
            total -= math.log(said)
    for value, spread in zip(parameters, SPREAD, strict=True):
        total += 0.5 * (value / spread) ** 2
    return total


def test_the_loss_is_that_of_plain_loops_and_its_gradient_is_right() -> None:
    for seed in range(3):
        at = np.random.default_rng(seed).normal(size=8) / 2
        value, _ = _lose(at, SCORES, LEANING, SPREAD)
        assert value == pytest.approx(plain_loss(at), rel=1e-12)
        gap = check_grad(
            lambda x: _lose(x, SCORES, LEANING, SPREAD)[0],
            lambda x: _lose(x, SCORES, LEANING, SPREAD)[1],
            at,
        )
        assert gap < 1e-5


def test_the_least_loss_is_found() -> None:
    exact = minimize(plain_loss, np.zeros(8), method="BFGS")
    found = fit_calibration(SCORES, LEANING)
    (s, c), own_s, own_c = exact.x[:2], exact.x[2:5], exact.x[5:]
    np.testing.assert_allclose(found.slope, np.exp(s + own_s), atol=0.02)
    np.testing.assert_allclose(found.level, c + own_c, atol=0.02)


def test_distorted_scores_are_made_log_odds_again() -> None:
    rng = np.random.default_rng(1)
    log_odds = rng.normal(size=(10_000, 3)) - 1
    relevant = rng.random(log_odds.shape) < expit(log_odds)
    distorted = np.array([2.0, 3.0, 4.0]) * log_odds + [1.0, 0.0, 2.0]
    assert np.abs(expit(distorted) - expit(log_odds)).mean() > 0.1
    answers = simulate_answers(relevant, asked_rate=0.6, no_rate=0.8, yes_rate=0.7, seed=0)
    candidates = Answers.from_candidates(independent(relevant, 0.6, seed=0))
    known: dict[str, Any] = {
        "truth": np.where(relevant, 1.0, -1.0),
        "answers": answer_evidence(answers, AnswerRates(np.full(3, 0.8), np.full(3, 0.7))),
        "candidates": answer_evidence(candidates, AnswerRates(np.full(3, 0.6), np.zeros(3))),
    }
    for name, leaning in known.items():
        found = fit_calibration(distorted, leaning).calibrate(distorted)
        assert np.abs(expit(found) - expit(log_odds)).mean() < 0.02, name


def test_few_rows_change_little_and_none_change_nothing() -> None:
    scores, leaning = RNG.normal(size=(400, 2)) * 5, RNG.choice([-1.0, 1.0], size=(400, 2))
    moved = [
        np.abs(np.log(fit_calibration(scores[:n], leaning[:n]).slope)).max() for n in (1, 5, 400)
    ]
    assert moved[0] < moved[1] < moved[2]
    nothing = fit_calibration(scores, np.zeros_like(scores))
    np.testing.assert_allclose(nothing.slope, 1)
    np.testing.assert_allclose(nothing.level, 0)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ComesError, match=r"got shapes \(5, 3\) and \(5, 2\)"):
        fit_calibration(SCORES, LEANING[:, :2])
    with pytest.raises(ComesError, match="finite scores"):
        fit_calibration(np.full(SHAPE, np.nan), LEANING)


# Of a classifier

X = RNG.normal(size=(2000, 4))
TRUE_ODDS = 2 * X[:, :3] - [0.0, 0.5, 1.0]
RELEVANT = RNG.random(TRUE_ODDS.shape) < expit(TRUE_ODDS)
CANDIDATES = independent(RELEVANT, 0.5, seed=0)
FIT, REST = slice(0, 1000), slice(1000, 2000)


@cache
def fit_once(method: str, **options: Any) -> CandidateClassifier:
    prior = None if method == "bce" else tuple(RELEVANT.mean(axis=0))
    clf = CandidateClassifier(
        method,
        class_prior=prior,
        epochs=20,
        learning_rate=0.01,
        hidden=16,
        n_networks=1,
        random_state=0,
        progress=False,
        **options,
    )
    return clf.fit(X[FIT], CANDIDATES[FIT])


def fitted(method: str, **options: Any) -> CandidateClassifier:
    """Return a fitted classifier that nobody has calibrated."""
    return copy.deepcopy(fit_once(method, **options))


def off(clf: CandidateClassifier) -> float:
    """Return the mean distance of probabilities from the true ones."""
    return float(np.abs(clf.predict_proba(X[REST]) - expit(TRUE_ODDS[REST])).mean())


def test_answers_and_true_labels_calibrate_a_classifier() -> None:
    """What is left is the error of a small network, whose scores are no line of the log odds."""
    for method, left in (("comes-rl", 0.255), ("likelihood", 0.055), ("comes-hl", 0.09)):
        clf = fitted(method)
        before, scores = off(clf), clf.decision_function(X[REST])
        clf.calibrate(X[REST], CANDIDATES[REST])
        by_answers = off(clf)
        clf.calibrate(X[REST], relevant=RELEVANT[REST])
        assert off(clf) < min(left, before) and by_answers < min(left + 0.01, before), method
        np.testing.assert_array_equal(clf.decision_function(X[REST]), scores, err_msg=method)
        above_half = clf.predict_proba(X[REST]) > 0.5
        np.testing.assert_array_equal(clf.predict(X[REST]) == 1, above_half, err_msg=method)


@pytest.mark.filterwarnings("ignore:.* of all labels are predicted:comes.errors.ComesWarning")
def test_probabilities_of_candidates_become_those_of_relevance() -> None:
    clf = fitted("bce")  # whose probabilities are those of being a candidate
    before = off(clf)
    clf.calibrate(X[REST], relevant=RELEVANT[REST])
    assert before > 0.2 and off(clf) < 0.08
    with pytest.raises(ComesError, match="model of 'bce' has neither. Give true labels"):
        clf.calibrate(X[REST], CANDIDATES[REST])


def test_labels_are_matched_by_name_and_counted() -> None:
    clf = fitted("likelihood")
    names = clf.label_names_
    frame = pd.DataFrame(RELEVANT[REST], columns=names)
    first = clf.calibrate(X[REST], relevant=frame).calibration_
    again = clf.calibrate(X[REST], relevant=frame[names[::-1]]).calibration_
    assert first is not None and again is not None
    np.testing.assert_allclose(first.level, again.level)
    with pytest.raises(ComesError, match="3 labels of the model; got 2"):
        clf.calibrate(X[REST], relevant=RELEVANT[REST][:, :2])
    with pytest.raises(ComesError, match="same rows; got 1000 and 5"):
        clf.calibrate(X[REST], relevant=RELEVANT[:5])
    for wrong in ({}, {"answers": CANDIDATES[REST], "relevant": RELEVANT[REST]}):
        with pytest.raises(ComesError, match="takes either answers"):
            clf.calibrate(X[REST], **wrong)


def test_rows_that_were_trained_on_are_noticed() -> None:
    with pytest.warns(ComesWarning, match="1000 of the rows were trained on"):
        fitted("likelihood").calibrate(X, relevant=RELEVANT)


def test_thresholds_that_somebody_chose_stay() -> None:
    clf = fitted("likelihood", threshold="zero")
    clf.calibrate(X[REST], relevant=RELEVANT[REST])
    np.testing.assert_array_equal(clf.threshold_, 0)
    auto = fitted("likelihood").calibrate(X[REST], relevant=RELEVANT[REST])
    assert auto.calibration_ is not None
    at_cut = auto.squash_scores(auto.threshold_[None])
    np.testing.assert_allclose(logit(at_cut), 0, atol=1e-9)
