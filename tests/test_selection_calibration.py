"""The likelihood of answers, slopes and levels, reliability: against loops and the truth."""

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
from comes.selection import (
    candidate_scorer,
    check_reliability,
    fit_calibration,
    likelihood_losses,
)
from comes.selection.calibration import OWN_SPREAD, SHARED_SPREAD, negative_log_posterior
from comes.selection.thresholds import cut_as_expected

RNG = np.random.default_rng(0)
SHAPE = (5, 3)
SCORES = RNG.normal(size=SHAPE) * 2
EVIDENCE = RNG.choice([-1.0, -0.5, 0.0, 0.6, 1.0], size=SHAPE)
SPREAD = np.repeat([*SHARED_SPREAD, *OWN_SPREAD], [1, 1, 3, 3])


def plain_loss(parameters: Any) -> float:
    """Return minus log-likelihood and log prior, written as loops over pairs."""
    (s, c), own_s, own_c = parameters[:2], parameters[2:5], parameters[5:]
    total = 0.0
    for i in range(SHAPE[0]):
        for j in range(SHAPE[1]):
            eta = 1 / (1 + math.exp(-(math.exp(s + own_s[j]) * SCORES[i, j] + c + own_c[j])))
            r = EVIDENCE[i, j]
            said = 1 - r * (1 - eta) if r >= 0 else 1 + r * eta
            total -= math.log(said)
    for value, spread in zip(parameters, SPREAD, strict=True):
        total += 0.5 * (value / spread) ** 2
    return total


def test_the_loss_is_that_of_plain_loops_and_its_gradient_is_right() -> None:
    for seed in range(3):
        at = np.random.default_rng(seed).normal(size=8) / 2
        value, _ = negative_log_posterior(at, SCORES, EVIDENCE, SPREAD)
        assert value == pytest.approx(plain_loss(at), rel=1e-12)
        gap = check_grad(
            lambda x: negative_log_posterior(x, SCORES, EVIDENCE, SPREAD)[0],
            lambda x: negative_log_posterior(x, SCORES, EVIDENCE, SPREAD)[1],
            at,
        )
        assert gap < 1e-5


def test_the_least_loss_is_found() -> None:
    exact = minimize(plain_loss, np.zeros(8), method="BFGS")
    found = fit_calibration(SCORES, EVIDENCE)
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
    for name, evidence in known.items():
        found = fit_calibration(distorted, evidence).calibrate(distorted)
        assert np.abs(expit(found) - expit(log_odds)).mean() < 0.02, name


def test_few_rows_change_little_and_none_change_nothing() -> None:
    scores, evidence = RNG.normal(size=(400, 2)) * 5, RNG.choice([-1.0, 1.0], size=(400, 2))
    moved = [
        np.abs(np.log(fit_calibration(scores[:n], evidence[:n]).slope)).max() for n in (1, 5, 400)
    ]
    assert moved[0] < moved[1] < moved[2]
    nothing = fit_calibration(scores, np.zeros_like(scores))
    np.testing.assert_allclose(nothing.slope, 1)
    np.testing.assert_allclose(nothing.level, 0)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ComesError, match=r"got shapes \(5, 3\) and \(5, 2\)"):
        fit_calibration(SCORES, EVIDENCE[:, :2])
    with pytest.raises(ComesError, match="finite scores"):
        fit_calibration(np.full(SHAPE, np.nan), EVIDENCE)


# The likelihood of answers

LIKELIHOOD_RNG = np.random.default_rng(0)
N, Q = 1200, 3
LOG_ODDS = 2 * LIKELIHOOD_RNG.normal(size=(N, Q)) - 0.5
CHANCE = 1 / (1 + np.exp(-LOG_ODDS))
MARKED = LIKELIHOOD_RNG.random((N, Q)) < CHANCE
PRIOR = MARKED.mean(axis=0)
POSSIBLE = independent(MARKED, 0.4, seed=0)
ANSWERS = simulate_answers(MARKED, asked_rate=0.5, no_rate=0.7, yes_rate=0.6, seed=0)
LABELS: dict[str, Any] = {"candidates": POSSIBLE, "answers": ANSWERS}


def test_is_the_likelihood_of_candidates_written_as_a_loop() -> None:
    found = likelihood_losses(LOG_ODDS[:20], POSSIBLE[:20], PRIOR, calibration="none")
    exclude_rate = np.minimum((~POSSIBLE[:20]).mean(axis=0) / (1 - PRIOR), 1)
    for i in range(20):
        total = 0.0
        for j in range(Q):
            excluded = exclude_rate[j] * (1 - CHANCE[i, j])
            # Of what is excluded the rate is left out: it is the same for all models.
            total -= math.log(1 - excluded if POSSIBLE[i, j] else 1 - CHANCE[i, j])
        assert found[i] == pytest.approx(total / Q)


def test_is_the_likelihood_of_answers_written_as_a_loop() -> None:
    codes, asked = ANSWERS.codes, ANSWERS.codes > 0
    found = likelihood_losses(LOG_ODDS, ANSWERS, PRIOR, calibration="none")
    a = ((codes == 1).sum(axis=0) / asked.sum(axis=0)) / (1 - PRIOR)
    b = ((codes == 2).sum(axis=0) / asked.sum(axis=0)) / PRIOR
    assert a == pytest.approx(0.7, abs=0.05) and b == pytest.approx(0.6, abs=0.06)
    total = 0.0
    for i in range(N):
        for j in range(Q):
            maybe = (1 - a[j]) * (1 - CHANCE[i, j]) + (1 - b[j]) * CHANCE[i, j]
            maybe /= max(1 - a[j], 1 - b[j])  # what is the same for all models
            said = {1: 1 - CHANCE[i, j], 2: CHANCE[i, j], 3: maybe}
            total -= math.log(said.get(int(codes[i, j]), 1.0))
    assert found.mean() == pytest.approx(total / asked.sum(), rel=1e-4)


def test_the_true_probabilities_are_the_most_likely() -> None:
    for kind, labels in LABELS.items():
        best = likelihood_losses(LOG_ODDS, labels, PRIOR, calibration="none").mean()
        for wrong in (0.5 * LOG_ODDS, 2 * LOG_ODDS, LOG_ODDS + 1, LOG_ODDS - 1, LOG_ODDS[:, ::-1]):
            assert likelihood_losses(wrong, labels, PRIOR, calibration="none").mean() > best, kind
        assert likelihood_losses(LOG_ODDS, labels, PRIOR).mean() == pytest.approx(best, rel=0.01), (
            kind
        )


def test_neither_the_level_nor_the_slope_of_scores_counts() -> None:
    """So scores of a risk over pairs, which have neither, are judged like others."""
    moved = 7 * LOG_ODDS + [5.0, -3.0, 100.0]
    noisy = LOG_ODDS + 2 * np.random.default_rng(1).normal(size=LOG_ODDS.shape)
    for kind, labels in LABELS.items():
        found, same = (likelihood_losses(scores, labels, PRIOR) for scores in (LOG_ODDS, moved))
        np.testing.assert_allclose(found, same, atol=1e-6, err_msg=kind)
        assert likelihood_losses(noisy, labels, PRIOR).mean() > found.mean(), kind


def test_with_the_slope_alone_calibrated_the_level_counts() -> None:
    found, same, moved = (
        likelihood_losses(scores, POSSIBLE, PRIOR, calibration="slope").mean()
        for scores in (LOG_ODDS, 7 * LOG_ODDS, LOG_ODDS + 3)
    )
    assert same == pytest.approx(found, rel=1e-6) and moved > 1.05 * found
    exact = likelihood_losses(LOG_ODDS, POSSIBLE, PRIOR, calibration="none").mean()
    assert found == pytest.approx(exact, rel=0.01)


def test_scores_that_say_nothing_and_extreme_ones_have_a_loss() -> None:
    level = likelihood_losses(np.zeros((N, Q)), POSSIBLE, PRIOR).mean()
    assert likelihood_losses(LOG_ODDS, POSSIBLE, PRIOR).mean() < level
    assert likelihood_losses(-LOG_ODDS, POSSIBLE, PRIOR).mean() == pytest.approx(level, rel=0.01)
    for prior in (np.zeros(Q), np.ones(Q)):
        assert np.isfinite(likelihood_losses(1e6 * LOG_ODDS, POSSIBLE, prior)).all()


def test_questions_that_a_model_chose_do_not_count() -> None:
    chosen = np.zeros((N, Q), bool)
    chosen[: N // 2] = True
    marked = Answers.from_codes(ANSWERS.codes, chosen=chosen)
    found = likelihood_losses(LOG_ODDS, marked, PRIOR, calibration="none")
    assert (found[: N // 2] == 0).all()
    expected = likelihood_losses(
        LOG_ODDS[N // 2 :], ANSWERS[np.arange(N // 2, N)], PRIOR, calibration="none"
    )
    assert found.mean() == pytest.approx(expected.mean())


def test_no_informative_answer_is_an_error() -> None:
    with pytest.raises(ComesError, match="needs an informative answer; got none"):
        likelihood_losses(LOG_ODDS, np.ones((N, Q), bool), PRIOR)


def test_a_scorer_takes_it() -> None:
    class Model:
        class_prior_ = PRIOR

        def __init__(self, sign: int) -> None:
            self.sign = sign

        def decision_function(self, X: object) -> Any:
            return self.sign * LOG_ODDS

    scorer = candidate_scorer("log_likelihood")
    good = scorer(Model(1), None, POSSIBLE)
    assert (
        good
        == -likelihood_losses(LOG_ODDS, POSSIBLE, PRIOR).mean()
        > scorer(Model(-1), None, POSSIBLE)
    )


# Reliability

RELIABILITY_RNG = np.random.default_rng(0)
PREDICTED = RELIABILITY_RNG.beta(1, 2, size=(3000, 4))
TRUE = RELIABILITY_RNG.random(PREDICTED.shape) < PREDICTED
NO_RATE, YES_RATE = np.array([0.9, 0.6, 0.8, 0.5]), np.array([0.7, 0.9, 0.4, 0.6])


def answers_of(kind: str) -> tuple[Answers, np.ndarray, np.ndarray]:
    """Return what was said about the pairs, and the rates with which."""
    none = np.zeros(4)
    if kind == "truth":
        return Answers(no=~TRUE, yes=TRUE), none + 1, none + 1
    if kind == "candidates":
        return (
            Answers.from_candidates(TRUE | (RELIABILITY_RNG.random(PREDICTED.shape) > NO_RATE)),
            NO_RATE,
            YES_RATE,
        )
    if kind == "positives":
        return (
            Answers.from_positives(TRUE & (RELIABILITY_RNG.random(PREDICTED.shape) < YES_RATE)),
            NO_RATE,
            YES_RATE,
        )
    drawn = simulate_answers(TRUE, asked_rate=0.4, no_rate=NO_RATE, yes_rate=YES_RATE, seed=1)
    return drawn, NO_RATE, YES_RATE


def test_the_truth_gives_the_share_of_relevant_pairs() -> None:
    found = check_reliability(PREDICTED, *answers_of("truth"))
    for k, row in enumerate(found.to_dict("records")):
        here = (k / 10 <= PREDICTED) & ((k + 1) / 10 > PREDICTED)
        assert row["n_pairs"] == here.sum()
        assert row["predicted"] == pytest.approx(PREDICTED[here].mean())
        assert row["relevant"] == pytest.approx(TRUE[here].mean(), abs=0.001)


def test_right_probabilities_are_found_right_and_wrong_ones_wrong() -> None:
    for kind in ("truth", "answers", "candidates", "positives"):
        said, a, b = answers_of(kind)
        right = check_reliability(PREDICTED, said, a, b)
        assert right["predicted"].between(right["low"], right["high"]).sum() >= len(right) - 2, kind
        low, share = right["low"], right["relevant"]
        assert ((low <= share) | share.isna()).all(), kind
        wrong = check_reliability(PREDICTED**3, said, a, b)
        assert wrong["predicted"].between(wrong["low"], wrong["high"]).sum() <= len(wrong) / 2, kind


def test_the_estimate_is_the_greatest_likelihood() -> None:
    codes = np.array([[1, 2], [1, 1], [2, 3], [3, 0]])
    said = Answers.from_codes(codes.astype(np.int8), "answers")
    found = check_reliability(np.full((4, 2), 0.5), said, NO_RATE[:2], YES_RATE[:2]).iloc[0]
    assert found["n_pairs"] == 7  # one pair was not asked about

    def likelihood(eta: float) -> float:
        total = 0.0
        for row in range(4):
            for j in range(2):
                no, yes = NO_RATE[j] * (1 - eta), YES_RATE[j] * eta
                state = said.codes[row, j]
                is_no, is_yes = bool(said.excluded[row, j]), bool(said.confirmed[row, j])
                if state:
                    total += math.log(no if is_no else yes if is_yes else 1 - no - yes)
        return total

    grid = np.arange(1, 1000) / 1000
    values = np.array([likelihood(eta) for eta in grid])
    assert found["relevant"] == pytest.approx(grid[values.argmax()], abs=1e-9)
    inside = grid[values >= values.max() - 1.9207]
    assert (found["low"], found["high"]) == pytest.approx((inside.min(), inside.max()), abs=0.0011)


def test_intervals_hold_the_share_in_95_of_100_draws() -> None:
    held = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        relevant = rng.random((60, 4)) < 0.3
        said = simulate_answers(relevant, asked_rate=0.8, no_rate=0.7, yes_rate=0.6, seed=seed)
        row = check_reliability(np.full((60, 4), 0.35), said, 0.7, 0.6).iloc[0]
        held += bool(row["low"] <= 0.3 <= row["high"])
    assert 90 <= held <= 99


def test_what_was_chosen_by_a_model_is_left_out_and_nothing_says_nothing() -> None:
    codes = np.array([[1], [2]], dtype=np.int8)
    chosen = np.array([[False], [True]])
    said = Answers.from_codes(codes, "answers", chosen=chosen)
    assert check_reliability([[0.5], [0.5]], said, 1.0, 1.0)["n_pairs"].tolist() == [1]
    silent = Answers.from_candidates(np.ones((5, 1), dtype=bool))
    row = check_reliability(np.full((5, 1), 0.5), silent, 0.0, 0.0).iloc[0]
    assert np.isnan(row["relevant"]) and (row["low"], row["high"]) == (0, 1)


def test_scores_are_refused() -> None:
    with pytest.raises(ComesError, match=r"must lie in \[0, 1\].*predict_proba"):
        check_reliability([[2.0]], Answers(no=[[1]]), 1.0, 1.0)


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
        verbose=-1,
        model="mlp",
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
        clf = fitted(method, threshold="half")
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
    half = fitted("likelihood", threshold="half").calibrate(X[REST], relevant=RELEVANT[REST])
    at_cut = half.squash_scores(half.threshold_[None])
    np.testing.assert_allclose(logit(at_cut), 0, atol=1e-9)


def test_the_default_cuts_the_calibrated_probabilities_of_these_rows() -> None:
    for method in ("likelihood", "comes-rl"):
        clf = fitted(method).calibrate(X[REST], relevant=RELEVANT[REST])
        at_cut = logit(clf.squash_scores(clf.threshold_[None]))[0]
        eta = clf.predict_proba(X[REST])
        np.testing.assert_allclose(at_cut, cut_as_expected(logit(eta)), atol=1e-5)
        assert (at_cut < 0).any(), method
