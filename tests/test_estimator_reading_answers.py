"""Answers as the input of the estimator: every way to give them, and what is refused."""

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from comes.answers import Answers
from comes.errors import ComesError, ComesWarning
from comes.estimator import CandidateClassifier
from comes.generation import simulate_answers

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 5))
RELEVANT = X[:, :3] + 0.3 * RNG.normal(size=(300, 3)) > np.array([0.0, 0.5, 1.0])
ANSWERS = simulate_answers(RELEVANT, asked_rate=0.5, no_rate=0.8, yes_rate=0.8, seed=1)
NAMES = ["sea", "sky", "sun"]


def classifier(method: str | None = None, **settings: Any) -> CandidateClassifier:
    known = {"no_rate": 0.8, "yes_rate": 0.8} if method in (None, "likelihood") else {}
    return CandidateClassifier(method, **({"epochs": 15, "random_state": 0} | known | settings))


def test_answers_are_trained_on_by_the_likelihood_whichever_way_they_are_given() -> None:
    fitted = [
        classifier().fit(X, ANSWERS),
        classifier().fit(X, answers=ANSWERS),
        classifier().fit(X, RELEVANT, answers=ANSWERS),
        classifier("likelihood").fit(X, ANSWERS),
    ]
    scores = [model.decision_function(X) for model in fitted]
    for model, same in zip(fitted, scores, strict=True):
        assert model.method_ == "likelihood"
        np.testing.assert_array_equal(same, scores[0])
    assert fitted[0].score(X, RELEVANT) > 0.85
    named = classifier().fit(X, ANSWERS.named(NAMES))
    assert named.label_names_ == NAMES


def test_what_was_not_asked_says_nothing() -> None:
    """Only rows with answers count: the likelihood adds up over them."""
    no, yes = (np.zeros_like(RELEVANT) for _ in range(2))
    no[:150], yes[:150] = ~RELEVANT[:150], RELEVANT[:150]
    model = classifier(no_rate=0.9, yes_rate=0.9, class_prior=[0.5, 0.3, 0.2], prior_weight=0.0)
    risk = model.fit(X, Answers(no=no, yes=yes)).risk
    moved = X.copy()
    moved[150:] = 100
    asked = Answers(no=no, yes=yes)
    assert risk(X, asked) == pytest.approx(risk(moved, asked))
    assert risk(X, asked) != pytest.approx(risk(X, Answers(no=yes, yes=no)))


def test_cross_validation_splits_answers_and_scores_on_the_truth() -> None:
    result = cross_validate(
        classifier(epochs=20, require_candidates=True),
        X,
        RELEVANT,
        params={"answers": ANSWERS},
        cv=3,
        return_estimator=True,
    )
    assert result["test_score"].min() > 0.8
    assert {model.method_ for model in result["estimator"]} == {"likelihood"}


def test_grid_search_and_pipelines_take_answers() -> None:
    search = GridSearchCV(classifier(epochs=3), {"learning_rate": [1e-6, 1e-2]}, cv=2)
    search.fit(X, RELEVANT, answers=ANSWERS)
    assert search.best_params_ == {"learning_rate": 1e-2}
    pipeline = make_pipeline(MinMaxScaler(), classifier())
    pipeline.fit(X, RELEVANT, candidateclassifier__answers=ANSWERS)
    assert pipeline[-1].method_ == "likelihood"
    with config_context(enable_metadata_routing=True):
        routed = make_pipeline(MinMaxScaler(), classifier().set_fit_request(answers=True))
        result = cross_validate(routed, X, RELEVANT, params={"answers": ANSWERS}, cv=2)
    assert result["test_score"].min() > 0.8


def test_wrong_answers_of_people_do_not_contradict_the_truth() -> None:
    wrong = Answers(no=RELEVANT, yes=~RELEVANT)
    classifier(epochs=1).fit(X, RELEVANT, answers=wrong)
    with pytest.raises(ComesError, match="relevant label outside their candidates"):
        classifier(epochs=1).fit(X, RELEVANT, answers=Answers(no=RELEVANT))


@pytest.mark.parametrize(
    ("settings", "answers", "message"),
    [
        ({"exclude_rate": 0.5}, ANSWERS, "exclude_rate is for candidates; .* give no_rate"),
        (
            {"method": "likelihood", "no_rate": 0.5},
            Answers(no=ANSWERS.excluded),
            "no_rate is for answers; for candidates give exclude_rate",
        ),
        (
            {"method": "likelihood", "yes_rate": 0.5},
            Answers(no=ANSWERS.excluded),
            "yes_rate is for answers, and candidates do not say yes",
        ),
        (
            {"method": "comes-hl"},
            Answers.from_positives(ANSWERS.confirmed),
            "'comes-hl' learns from excluded labels, and ticked .* method='likelihood'",
        ),
        (
            {},
            Answers(no=np.zeros_like(RELEVANT), yes=np.zeros_like(RELEVANT)),
            "no answer about any pair",
        ),
        ({}, Answers.from_positives(np.zeros_like(RELEVANT)), "no answer about any pair"),
        (
            {},
            Answers(no=np.zeros_like(RELEVANT), maybe=np.ones_like(RELEVANT)),
            "every answer is 'maybe'",
        ),
        ({}, ANSWERS[:200], "same number of rows; got 300 and 200"),
        ({"mistake_rate": 0.3, "no_rate": 0.2, "yes_rate": 0.8}, ANSWERS, "must be below the no_"),
        ({"mistake_rate": -0.1}, ANSWERS, "mistake_rate must be"),
        ({"no_rate": [0.5, 0.5]}, ANSWERS, "no_rate must hold one number .* each of the 3 labels"),
    ],
)
def test_what_does_not_fit_together_is_one_sentence(
    settings: dict[str, Any], answers: Answers, message: str
) -> None:
    model = CandidateClassifier(**({"epochs": 1, "random_state": 0} | settings))
    with pytest.raises(ComesError, match=message) as raised:
        model.fit(X, answers)
    assert "\n" not in str(raised.value)
    assert not hasattr(model, "module_")


def test_answers_must_be_answers_and_come_once() -> None:
    with pytest.raises(ComesError, match=r"must be a comes.Answers; got ndarray. Make one"):
        classifier().fit(X, RELEVANT, answers=ANSWERS.codes)  # type: ignore[arg-type]
    with pytest.raises(ComesError, match="got candidates and answers"):
        classifier().fit(X, candidates=RELEVANT, answers=ANSWERS)


@pytest.mark.parametrize("method", ["ccmn", "gdf", "ctl", "mlcl", "comrank"])
def test_methods_of_candidates_say_that_they_take_nothing_else(method: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = classifier(method, epochs=1).fit(X, ANSWERS)
        same = classifier(method, epochs=1).fit(X, Answers(no=ANSWERS.excluded))
    told = [str(w.message) for w in caught if "takes candidates only" in str(w.message)]
    assert told == [
        f"Method {method!r} takes candidates only: who was asked, and yes, are not used."
    ]
    np.testing.assert_array_equal(fitted.decision_function(X), same.decision_function(X))


def test_a_label_that_nobody_was_asked_about_is_a_warning_with_its_name() -> None:
    no, yes = ANSWERS.excluded.copy(), ANSWERS.confirmed.copy()
    no[:, 1] = yes[:, 1] = yes[:, 2] = False
    with pytest.warns(ComesWarning) as caught:
        classifier(epochs=1, class_prior=[0.4] * 3).fit(X, Answers(no=no, yes=yes).named(NAMES))
    text = " ".join(str(w.message) for w in caught)
    assert "Nobody was asked about label 'sky': nothing is learned about it." in text
    assert "Every sure answer about label 'sun' is 'no'" in text


def test_ticked_labels_are_learned_from() -> None:
    heard = RNG.random(RELEVANT.shape) < 0.5
    ticked = Answers.from_positives(RELEVANT & heard)
    fitted = CandidateClassifier(yes_rate=0.5, epochs=30, random_state=0).fit(X, ticked)
    assert fitted.method_ == "likelihood"
    assert fitted.score(X, RELEVANT) > 0.85
    assert abs(fitted.predict_proba(X).mean() - RELEVANT.mean()) < 0.1  # not that of the ticks
