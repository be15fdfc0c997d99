"""Answers as the input of the estimator: every way to give them, and what is refused."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from comes.answers import Answers
from comes.answers.convert import match_names
from comes.errors import ComesError, ComesWarning
from comes.estimator import CandidateClassifier, per_label
from comes.generation import simulate_answers
from quick_priors import quick_priors

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 5))
RELEVANT = X[:, :3] + 0.3 * RNG.normal(size=(300, 3)) > np.array([0.0, 0.5, 1.0])
ANSWERS = simulate_answers(RELEVANT, asked_rate=0.5, no_rate=0.8, yes_rate=0.8, seed=1)
PRIOR = RELEVANT.mean(axis=0)
NAMES = ["sea", "sky", "sun"]


def classifier(method: str | None = None, **settings: Any) -> CandidateClassifier:
    known: dict[str, Any] = {"epochs": 2, "hidden": 8, "random_state": 0}
    if method in (None, "likelihood"):
        known |= {"no_rate": 0.8, "yes_rate": 0.8, "class_prior": PRIOR, "n_networks": 1}
    return CandidateClassifier(method, **known | settings)


@pytest.fixture(autouse=True, scope="module")
def quickly_estimated() -> Iterator[None]:
    with quick_priors():
        yield


def test_answers_are_trained_on_by_the_likelihood_whichever_way_they_are_given() -> None:
    long: dict[str, Any] = {"epochs": 15, "hidden": 50, "learning_rate": 5e-3}
    fitted = [
        classifier(**long).fit(X, ANSWERS),
        classifier(**long).fit(X, answers=ANSWERS),
        classifier(**long).fit(X, RELEVANT, answers=ANSWERS),
        classifier("likelihood", **long).fit(X, ANSWERS),
    ]
    scores = [model.decision_function(X) for model in fitted]
    for model, same in zip(fitted, scores, strict=True):
        assert model.method_ == "likelihood"
        np.testing.assert_array_equal(same, scores[0])
    assert fitted[0].score(X, RELEVANT) > 0.85
    named = classifier().fit(X, ANSWERS.rename_labels(NAMES))
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
        classifier(epochs=20, hidden=50, require_candidates=True),
        X,
        RELEVANT,
        params={"answers": ANSWERS},
        cv=2,
        return_estimator=True,
    )
    assert result["test_score"].min() > 0.8
    assert {model.method_ for model in result["estimator"]} == {"likelihood"}


def test_grid_search_and_pipelines_take_answers() -> None:
    search = GridSearchCV(classifier(), {"learning_rate": [1e-6, 1e-2]}, cv=2)
    search.fit(X, RELEVANT, answers=ANSWERS)
    assert search.best_params_ == {"learning_rate": 1e-2}
    pipeline = make_pipeline(MinMaxScaler(), classifier())
    pipeline.fit(X, RELEVANT, candidateclassifier__answers=ANSWERS)
    assert pipeline[-1].method_ == "likelihood"
    with config_context(enable_metadata_routing=True):
        best = classifier(epochs=15, hidden=50).set_fit_request(answers=True)
        routed = make_pipeline(MinMaxScaler(), best)
        result = cross_validate(routed, X, RELEVANT, params={"answers": ANSWERS}, cv=2)
    assert result["test_score"].min() > 0.8


def test_wrong_answers_of_people_do_not_contradict_the_truth() -> None:
    wrong = Answers(no=RELEVANT, yes=~RELEVANT)
    classifier(epochs=1).fit(X, RELEVANT, answers=wrong)
    with pytest.raises(ComesError, match="relevant label outside their candidates"):
        classifier(epochs=1).fit(X, RELEVANT, answers=Answers(no=RELEVANT))


def test_what_does_not_fit_together_is_one_sentence() -> None:
    wrong: list[tuple[dict[str, Any], Answers, str]] = [
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
    ]
    for settings, answers, message in wrong:
        model = CandidateClassifier(**({"epochs": 1, "random_state": 0} | settings))
        with pytest.raises(ComesError, match=message) as raised:
            model.fit(X, answers)
        assert "\n" not in str(raised.value), message
        assert not hasattr(model, "module_"), message


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
        classifier(epochs=1, class_prior=[0.4] * 3).fit(
            X, Answers(no=no, yes=yes).rename_labels(NAMES)
        )
    text = " ".join(str(w.message) for w in caught)
    assert "Nobody was asked about label 'sky': nothing is learned about it." in text
    assert "Every sure answer about label 'sun' is 'no'" in text


def test_ticked_labels_are_learned_from() -> None:
    heard = RNG.random(RELEVANT.shape) < 0.5
    ticked = Answers.from_positives(RELEVANT & heard)
    quick: dict[str, Any] = {"epochs": 15, "hidden": 50, "learning_rate": 5e-3}
    fitted = CandidateClassifier(yes_rate=0.5, random_state=0, **quick).fit(X, ticked)
    assert fitted.method_ == "likelihood"
    assert fitted.score(X, RELEVANT) > 0.85
    assert abs(fitted.predict_proba(X).mean() - RELEVANT.mean()) < 0.1  # not that of the ticks


# Numbers by label


def test_a_bad_prior_names_its_label() -> None:
    wrong: list[tuple[Any, str]] = [
        (pd.Series({"a": 0.1}), "got none for 'b'. Add it."),
        (pd.Series({"a": 0.1, "c": 0.2}), "got none for 'b'. Add it."),
        (pd.Series({"b": 0.1, "a": 2.0}), "got 2.0 for label 'a'. Correct it."),
        (pd.Series({"a": 0.1, "b": "much"}), "got 'much' for label 'b'. Correct it."),
        ([0.1, np.nan], "got nan for label 'b'"),
        ([0.1, 0.2, 0.3], "got 3 numbers"),
        (0.5, "got 0.5"),
        ([0.0, 0.0], "class_prior must be above 0 for some label; got 0 for every one"),
    ]
    for values, message in wrong:
        with pytest.raises(ComesError, match=message):
            per_label(values, "class_prior", ["a", "b"])


def test_labels_that_do_not_match_are_named() -> None:
    names = [f"label {k}" for k in range(20)]
    with pytest.raises(ComesError, match=r"missing: 'label 19'; not among them: 'other'\)"):
        match_names([*names[:19], "other"], names)


def test_a_prior_of_0_is_told_and_priors_of_0_are_refused() -> None:
    with pytest.warns(ComesWarning, match="label '1' is 0: it is learned as never relevant"):
        classifier("comes-hl", class_prior=[0.3, 0.0, 0.1]).fit(X, RELEVANT)
    with pytest.raises(ComesError, match="got 0 for every one"):
        classifier("comes-hl", class_prior=[0, 0, 0]).fit(X, RELEVANT)
