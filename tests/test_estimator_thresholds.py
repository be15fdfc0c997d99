"""Thresholds and early stopping of the classifier: learned from candidates of unseen rows."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import f1_score

from comes import Answers, CandidateClassifier
from comes.errors import ComesWarning
from comes.estimator import base, cross_fit, fit_together, rates
from comes.generation import case_b, simulate_answers
from comes.methods import CCMN, COMESRL, Likelihood
from comes.metrics import hamming_loss
from comes.risks import bce_risk, hamming_risk
from comes.selection import choose_thresholds
from comes.selection.thresholds import cut_by_row, cut_of_greatest_f1
from refusals import refused

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 4))
RELEVANT = X[:, :3] + 0.5 * RNG.normal(size=(600, 3)) > np.array([0.5, 0.0, 1.0])
CANDIDATES = case_b(RELEVANT, exclude_rate=0.4)
PRIOR = RELEVANT.mean(axis=0)
SEED = int(np.random.RandomState(0).randint(np.iinfo(np.int32).max))  # of random_state=0


def classifier(method: Any = "comes-hl", **settings: Any) -> CandidateClassifier:
    defaults: dict[str, Any] = {"epochs": 4, "hidden": 16, "class_prior": PRIOR}
    return CandidateClassifier(method, random_state=0, **defaults | settings)


@pytest.mark.filterwarnings("ignore:.*predicted:comes.errors.ComesWarning")  # by BCE
@pytest.mark.parametrize("method", ["comes-hl", "comes-rl", "bce"])
def test_learned_thresholds_are_those_of_cross_fitted_scores(method: str) -> None:
    """Whose trainings start where that of the model does, whatever the cut must know."""
    settings: dict[str, Any] = {"learning_rate": 2e-2} if method == "bce" else {}
    (crossed,) = cross_fit([classifier(method, **settings)], X, CANDIDATES, seed=SEED)
    scores = classifier(method, **settings).fit(X, CANDIDATES).decision_function(X)
    thresholds: tuple[Any, ...] = ("prior", "risk", "f1")
    for threshold in thresholds if method == "comes-hl" else thresholds[1:2]:
        fitted = classifier(method, threshold=threshold, **settings).fit(X, CANDIDATES)
        chosen = choose_thresholds(crossed.scores - crossed.level, CANDIDATES, PRIOR, threshold)
        np.testing.assert_allclose(fitted.threshold_, chosen + fitted.score_offset_, atol=1e-4)
        np.testing.assert_array_equal(fitted.decision_function(X), scores, err_msg=threshold)
        np.testing.assert_array_equal(fitted.predict(X), scores > fitted.threshold_)


@pytest.mark.parametrize("said_yes", [True, False])
def test_thresholds_of_answers_are_learned_as_the_model_was_trained(said_yes: bool) -> None:
    """An estimated class prior has a weight of 1 where somebody said yes, else none."""
    answers = simulate_answers(RELEVANT, asked_rate=0.6)
    if not said_yes:
        answers = Answers(no=answers.excluded, maybe=answers.confirmed | answers.doubtful)
    known = {"no": 0.8, "yes": 0.8 if said_yes else 0.0}
    settings: dict[str, Any] = {"epochs": 1, "n_networks": 1, "rates": known}
    fitted = classifier("likelihood", class_prior=None, threshold="f1", **settings).fit(X, answers)
    prior = fitted.class_prior_
    assert prior is not None
    plain = classifier(Likelihood(prior_weight=float(said_yes)), class_prior=prior, **settings)
    (crossed,) = cross_fit([plain], X, answers, seed=SEED)
    expected = choose_thresholds(crossed.scores, answers, prior, "f1")
    np.testing.assert_allclose(fitted.threshold_, expected, atol=1e-4)


def test_thresholds_are_those_of_clean_rows_where_these_are_enough() -> None:
    """And of answers for a label that is relevant to too few of them."""
    clean_X, truth = X[:80], RELEVANT[:80].copy()
    truth[:, 2] = np.arange(80) < 4
    fitted = classifier(threshold="f1").fit(X, CANDIDATES, clean=(clean_X, truth))
    alone = classifier(threshold="f1").fit(X, CANDIDATES)
    scores = fitted.decision_function(clean_X)
    for label in (0, 1):
        cuts = np.concatenate([scores[:, label] - 1e-6, [np.inf]])
        f1 = [f1_score(truth[:, label], scores[:, label] > cut, zero_division=0) for cut in cuts]
        own = f1_score(truth[:, label], scores[:, label] > fitted.threshold_[label])
        assert own == pytest.approx(max(f1))
    assert fitted.threshold_[2] == alone.threshold_[2]


def test_a_threshold_mends_the_predictions_of_bce() -> None:
    """BCE predicts candidates; cut by the estimated risk, the same scores predict labels."""
    with pytest.warns(ComesWarning, match="of all labels are predicted as relevant"):
        plain = classifier("bce", epochs=20, n_networks=1, model="mlp").fit(X, CANDIDATES)
    with pytest.warns(ComesWarning, match="Label '0' will hardly ever be predicted"):
        cut = classifier("bce", epochs=20, n_networks=1, model="mlp", threshold="risk")
        cut.fit(X, CANDIDATES)
    before, after = (hamming_loss(c.predict(X), RELEVANT) for c in (plain, cut))
    assert after < 0.5 * before


def test_thresholds_that_need_no_learning() -> None:
    for method in ("comes-hl", "comes-rl"):
        half = classifier(method, threshold="half").fit(X, CANDIDATES)
        np.testing.assert_array_equal(half.threshold_, half.score_offset_, err_msg=method)
        zero = classifier(method, threshold="zero", epochs=1).fit(X, CANDIDATES)
        np.testing.assert_array_equal(zero.threshold_, 0, err_msg=method)
        rows = classifier(method, threshold="minmax", epochs=1).fit(X, CANDIDATES)
        np.testing.assert_array_equal(rows.predict(X), cut_by_row(rows.decision_function(X)))


@pytest.mark.parametrize("method", ["likelihood", "comes-hl", "comes-rl", "bce"])
def test_by_default_labels_are_predicted_as_often_as_probabilities_say(method: str) -> None:
    """Between the greatest expected F1 and one half; and nothing else depends on the cut."""
    settings: dict[str, Any] = {
        "batch_size": 300
    }  # all rows are looked at, by risks over pairs too
    auto, half = (
        classifier(method, threshold=threshold, **settings).fit(X, CANDIDATES)
        for threshold in ("auto", "half")
    )
    for name in ("decision_function", "predict_proba"):
        np.testing.assert_array_equal(getattr(auto, name)(X), getattr(half, name)(X))
    eta = auto.predict_proba(X).astype(np.float64)
    cut, level = auto.squash_scores(auto.threshold_[None])[0], cut_of_greatest_f1(eta)
    n_predicted, n_expected = auto.predict(X).sum(axis=0), eta.sum(axis=0)
    if method != "bce":  # which knows no class prior
        n_expected = np.minimum(n_expected, 2 * 600 * PRIOR)
    assert (n_predicted >= half.predict(X).sum(axis=0)).all()
    for label in range(3):
        is_bound = cut[label] == pytest.approx(0.5) or cut[label] == pytest.approx(level[label])
        assert is_bound or abs(n_predicted[label] - n_expected[label]) <= 1
        assert level[label] - 1e-6 <= cut[label] <= 0.5 + 1e-6


def test_a_class_prior_of_0_is_never_cut_below_one_half() -> None:
    prior = np.array([PRIOR[0], PRIOR[1], 0.0])
    with pytest.warns(ComesWarning, match="The class prior of label '2' is 0"):
        fitted = classifier("likelihood", class_prior=prior).fit(X, CANDIDATES)
    assert fitted.threshold_[2] == 0 > fitted.threshold_[:2].min()


def test_labels_that_will_never_be_predicted_are_named() -> None:
    """At one half; the default predicts them, and has nothing to say."""
    rare = X[:, :3] + RNG.normal(size=(600, 3)) > np.array([2.2, 0.0, 0.0])
    candidates = case_b(rare, exclude_rate=0.5)
    settings: dict[str, Any] = {"class_prior": rare.mean(axis=0), "epochs": 30}
    names = ["storm", "sea", "sky"]
    with pytest.warns(ComesWarning, match=r"^Label 'storm' will hardly .* threshold='auto' cuts"):
        half = classifier("likelihood", threshold="half", **settings)
        half.fit(X, candidates, label_names=names)
    assert not half.predict(X)[:, 0].any()
    auto = classifier("likelihood", **settings).fit(X, candidates, label_names=names)
    assert not any("hardly" in message for message in auto.history_.warnings)
    assert auto.predict(X)[:, 0].any()


def test_a_prior_is_estimated_where_only_the_threshold_needs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = PRIOR + 0.01
    estimate = SimpleNamespace(class_prior=found)
    monkeypatch.setattr(rates, "estimate_class_prior", lambda *_, **__: estimate)
    plain = classifier("bce", class_prior=None, epochs=1).fit(X, CANDIDATES)
    assert plain.class_prior_ is None
    cut = classifier("bce", class_prior=None, threshold="prior", epochs=1).fit(X, CANDIDATES)
    np.testing.assert_array_equal(cut.class_prior_, found)
    ccmn = classifier(CCMN(flip_rate=0.6), threshold="f1", epochs=1).fit(X, CANDIDATES)
    np.testing.assert_array_equal(ccmn.class_prior_, PRIOR)


def test_rates_by_name_are_those_of_their_labels_in_cross_fitting_too() -> None:
    """Whose rows come without the names of the labels."""
    rate = pd.Series([0.2, 0.6, 0.9], index=["sky", "sea", "sun"])
    framed = pd.DataFrame(CANDIDATES, columns=pd.Index(rate.index))
    by_place, by_name = (
        classifier(CCMN(flip_rate=given), threshold="risk", epochs=2).fit(X, framed)
        for given in (rate.to_numpy(), rate[::-1])
    )
    np.testing.assert_array_equal(by_name.threshold_, by_place.threshold_)


def test_early_stopping_keeps_the_weights_with_the_least_risk_on_held_out_rows() -> None:
    fitted = classifier(early_stopping=True, epochs=60, learning_rate=0.3).fit(X, CANDIDATES)
    history = fitted.history_
    assert len(history.validation) == len(history.risk) == 60
    assert history.best_epoch == 1 + int(np.argmin(history.validation)) < 60
    held_out = np.sort(np.random.default_rng(SEED).permutation(600)[:120])
    scores = torch.as_tensor(fitted.decision_function(X[held_out]))
    candidates = torch.as_tensor(CANDIDATES[held_out])
    risk = hamming_risk(
        scores, candidates, torch.as_tensor(PRIOR).float(), correction=torch.positive
    )
    assert float(risk) == pytest.approx(min(history.validation), rel=1e-5)


def test_held_out_rows_are_judged_without_corrections() -> None:
    """A flood or a clamp would call the best epochs equal, or worse."""
    settings: dict[str, Any] = {"early_stopping": True, "epochs": 8}
    flooded = classifier(COMESRL(flood_level=100.0), **settings).fit(X, CANDIDATES)
    assert min(flooded.history_.validation) < 100
    for method in (CCMN(flip_rate=0.6), "gdf"):
        fitted = classifier(method, **settings).fit(X, CANDIDATES)
        assert len(set(fitted.history_.validation)) == 8, method


def test_held_out_rows_show_that_exclusion_depends_on_the_row() -> None:
    """Where only what is far from relevant is excluded, the risk is impossibly low."""
    rng = np.random.default_rng(1)
    own = rng.normal(size=(800, 5))
    relevant = own > 1
    far = own == own.min(axis=1, keepdims=True)
    settings = {"class_prior": relevant.mean(axis=0), "early_stopping": True, "epochs": 30}
    with pytest.warns(ComesWarning, match="irrelevant labels are not excluded at a constant rate"):
        classifier("comes-rl", **settings).fit(own, ~far)
    at_random = case_b(relevant, exclude_rate=0.2)
    for method in ("comes-rl", "comes-hl"):
        classifier(method, **settings).fit(own, at_random)  # a warning would be an error


def test_an_interrupted_training_is_kept_though_its_threshold_was_not_learned() -> None:
    def interrupted(scores: Any, candidates: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return bce_risk(scores, candidates)

    calls: list[int] = []
    own = CandidateClassifier(
        interrupted, epochs=9, class_prior=PRIOR, threshold="risk", batch_size=600, verbose=-1
    )
    with pytest.warns(ComesWarning, match="Interrupted|The threshold was not learned"):
        own.fit(X, CANDIDATES)
    assert own.history_.interrupted
    np.testing.assert_array_equal(own.threshold_, own.score_offset_)


def test_patience_ends_a_training_early() -> None:
    settings: dict[str, Any] = {"early_stopping": True, "epochs": 60, "learning_rate": 0.3}
    fitted = classifier(patience=4, **settings).fit(X, CANDIDATES)
    history = fitted.history_
    assert history.best_epoch is not None
    assert len(history.risk) == history.best_epoch + 4 < 60


def test_thresholds_are_learned_on_the_rows_that_early_stopping_held_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = []

    def spy(scores: Any, candidates: Any, *rest: Any) -> Any:
        seen.append(candidates.shape)
        return choose_thresholds(scores, candidates, *rest)

    monkeypatch.setattr(base, "choose_thresholds", spy)
    for share in (0.25, True):  # True holds out a fifth
        classifier(threshold="risk", early_stopping=share).fit(X, CANDIDATES)
    assert seen == [(150, 3), (120, 3)]


def test_they_survive_saving_cloning_and_fitting_together(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"threshold": "risk", "early_stopping": True, "patience": 3}
    fitted = classifier(**settings).fit(X, CANDIDATES)
    fitted.save(tmp_path / "model")
    loaded = CandidateClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    assert loaded.history_.best_epoch == fitted.history_.best_epoch
    both = fit_together([clone(fitted)] * 2, X, CANDIDATES, [np.arange(600)] * 2, n_jobs=1)
    for other in both:
        np.testing.assert_array_equal(other.threshold_, fitted.threshold_)


def test_cross_fitted_scores_are_of_rows_that_were_not_seen() -> None:
    bce = classifier("bce", n_networks=1)
    both = cross_fit([classifier(), bce], X, CANDIDATES, folds=4, seed=1)
    again = cross_fit([bce], X, CANDIDATES, folds=4, seed=1)[0].scores
    np.testing.assert_allclose(both[1].scores, again, atol=1e-5)
    changed = CANDIDATES.copy()
    changed[0] = ~changed[0]  # the label of a row does not touch its own score
    other = cross_fit([bce], X, changed, folds=4, seed=1)[0].scores
    np.testing.assert_allclose(other[0], again[0], atol=1e-6)
    assert np.abs(other - again).max() > 1e-4


def test_what_makes_no_sense_is_refused() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"threshold": "best"}, "threshold must be one of auto, half, zero, .*; got 'best'"),
        (
            {"early_stopping": True, "patience": 0},
            "patience must be a whole number of at least 1; got 0",
        ),
        ({"patience": 3}, "patience needs early_stopping=True"),
        ({"early_stopping": 1.0}, "the share of the rows to hold out, between 0 and 1; got 1.0"),
        ({"early_stopping": "yes"}, "must be True, False, or the share .*; got 'yes'"),
        ({"early_stopping": 1e-4}, "which is 0 of 600; set"),
    ]
    for settings, message in wrong:
        with refused(message):
            classifier(**settings).fit(X, CANDIDATES)
