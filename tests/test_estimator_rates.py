"""What the estimator finds out before it trains on answers: rates, class priors, a clean sample."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from comes.answers import AnswerRates, Answers, LongAnswers, State
from comes.errors import ComesWarning
from comes.estimator import CandidateClassifier
from comes.generation import independent, simulate_answers
from comes.methods import Likelihood
from comes.priors import ClassPriorEstimate, estimate_answer_rates, estimate_class_prior
from refusals import refused

RNG = np.random.default_rng(0)
N, NAMES = 600, ["sea", "sky", "sun"]
X = RNG.normal(size=(N, 5))
RELEVANT = X[:, :3] + 0.3 * RNG.normal(size=(N, 3)) > np.array([0.0, 0.5, 1.0])
PRIOR = RELEVANT.mean(axis=0)
ANSWERS = simulate_answers(RELEVANT, asked_rate=0.5, no_rate=0.9, yes_rate=0.6, seed=1)
NO_YES = Answers(no=ANSWERS.excluded, maybe=ANSWERS.confirmed | ANSWERS.doubtful)
CANDIDATES = independent(RELEVANT, 0.5, seed=1)
TICKS = Answers.from_positives(RELEVANT & (RNG.random(RELEVANT.shape) < 0.5))
RATES = {"no": 0.9, "yes": 0.6}
KNOWN: dict[str, Any] = {"rates": RATES, "class_prior": PRIOR}


def fit(answers: Any, *, clean: Any = None, **settings: Any) -> Any:
    settings = {"epochs": 1, "hidden": 8, "n_networks": 1, "random_state": 0} | settings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ComesWarning)
        return CandidateClassifier(**settings).fit(X, answers, clean=clean)


@pytest.fixture(scope="module")
def blind() -> Any:
    """A fit that estimated all it had to know from the answers."""
    return fit(ANSWERS)


def test_rates_and_priors_of_answers_are_estimated_with_an_error(blind: Any) -> None:
    assert abs(blind.no_rate_ - 0.9).max() < 0.1
    assert abs(blind.yes_rate_ - 0.6).max() < 0.15
    assert abs(blind.class_prior_ - PRIOR).max() < 0.1
    assert (blind.class_prior_error_ > 0).all()


def test_what_is_given_is_taken() -> None:
    rates = {"no": 0.7, "yes": [0.5, 0.6, 0.7], "mistake": 0.01}
    fitted = fit(ANSWERS, rates=rates, class_prior=PRIOR)
    np.testing.assert_array_equal(fitted.no_rate_, [0.7] * 3)
    np.testing.assert_array_equal(fitted.yes_rate_, [0.5, 0.6, 0.7])
    np.testing.assert_array_equal(fitted.class_prior_, PRIOR)
    assert fitted.class_prior_error_ is None and fitted.rates_.mistake_rate == 0.01
    rate = pd.Series([0.9, 0.8, 0.7], NAMES[::-1])
    by_name = fit(ANSWERS.rename_labels(NAMES), rates={"no": rate, "yes": 0.6}, class_prior=PRIOR)
    np.testing.assert_array_equal(by_name.no_rate_, [0.7, 0.8, 0.9])


def test_rates_may_be_an_object_or_an_estimate() -> None:
    no, yes = np.array([0.7, 0.8, 0.9]), np.array([0.5, 0.6, 0.7])
    people = {"ann": (no, yes), "bob": (yes, no)}
    for answers in (ANSWERS, simulate_answers(RELEVANT, people={"ann": (0.8, 0.8)})):
        given = AnswerRates(no, yes, mistake_rate=0.01, people=people)
        fitted = fit(answers, rates=given, class_prior=PRIOR)
        np.testing.assert_array_equal([fitted.no_rate_, fitted.yes_rate_], [no, yes])
        assert fitted.rates_.mistake_rate == 0.01
        for name, pair in people.items():
            np.testing.assert_array_equal(fitted.people_rates_[name], pair)
    candidates = fit(CANDIDATES, rates=AnswerRates(no, 0 * no), class_prior=PRIOR)
    np.testing.assert_array_equal(candidates.no_rate_, no)
    estimate = estimate_answer_rates(X, ANSWERS, random_state=0)
    passed = fit(ANSWERS, rates=estimate, class_prior=PRIOR)
    np.testing.assert_array_equal(passed.no_rate_, estimate.rates.no_rate)


def test_an_estimate_that_is_given_keeps_its_error() -> None:
    error = np.array([0.01, 0.02, 0.03])
    flags = ("ok", "ok", "never excluded")
    prior = ClassPriorEstimate(PRIOR, PRIOR, PRIOR, PRIOR, error, flags)
    fitted = fit(CANDIDATES, class_prior=prior)
    np.testing.assert_array_equal(fitted.class_prior_, PRIOR)
    np.testing.assert_array_equal(fitted.class_prior_error_, [0.01, 0.02, np.nan])


def test_an_estimate_of_ones_own_is_worth_what_ours_is() -> None:
    """Where nobody said yes, a prior that is known keeps mean probabilities near it."""
    own = fit(NO_YES)
    prior, error = own.class_prior_, own.class_prior_error_
    passed = ClassPriorEstimate(prior, prior, prior, prior, error, ("ok",) * 3)
    scores = own.decision_function(X)
    np.testing.assert_array_equal(fit(NO_YES, class_prior=passed).decision_function(X), scores)
    known = fit(NO_YES, class_prior=prior)
    assert not np.array_equal(known.decision_function(X), scores)
    assert (own.rates_.prior_weight, known.rates_.prior_weight) == (0.0, 0.3)


def test_where_somebody_said_yes_an_estimated_prior_counts_as_a_known_one(blind: Any) -> None:
    settings = {"rates": {"no": blind.no_rate_, "yes": blind.yes_rate_}}
    settings["class_prior"] = blind.class_prior_
    known = fit(ANSWERS, **settings)
    np.testing.assert_array_equal(known.decision_function(X), blind.decision_function(X))
    assert known.rates_.prior_weight == blind.rates_.prior_weight == 1.0
    free = fit(ANSWERS, method=Likelihood(prior_weight=0.0), **settings)
    assert not np.array_equal(free.decision_function(X), blind.decision_function(X))


def test_exclude_rate_and_class_prior_of_candidates_imply_each_other() -> None:
    fitted = fit(CANDIDATES, rates={"exclude": 0.5})
    np.testing.assert_array_equal(fitted.no_rate_, [0.5] * 3)
    np.testing.assert_array_equal(fitted.yes_rate_, [0.0] * 3)
    expected = estimate_class_prior(None, CANDIDATES, exclude_rate=0.5)
    np.testing.assert_allclose(fitted.class_prior_, expected.class_prior)
    comes = fit(CANDIDATES, method="comes-hl", rates={"exclude": 0.5})
    np.testing.assert_allclose(comes.class_prior_, expected.class_prior)
    implied = fit(CANDIDATES, class_prior=PRIOR)
    np.testing.assert_allclose(implied.no_rate_, (~CANDIDATES).mean(axis=0) / (1 - PRIOR))


# A clean sample


def test_a_clean_sample_sharpens_class_prior_and_rates(blind: Any) -> None:
    rows = slice(0, 400)
    prior_only = fit(ANSWERS, clean=(X[rows], RELEVANT[rows]))
    both = fit(ANSWERS, clean=(X[rows], RELEVANT[rows], ANSWERS[rows]))
    for sharp in (prior_only, both):
        assert (sharp.class_prior_error_ < blind.class_prior_error_).all()
        ends = np.stack([blind.class_prior_, RELEVANT[rows].mean(axis=0)])
        assert (ends.min(axis=0) - 0.01 < sharp.class_prior_).all()
        assert (sharp.class_prior_ < ends.max(axis=0) + 0.01).all()
    np.testing.assert_array_equal(prior_only.no_rate_, blind.no_rate_)
    assert not np.array_equal(both.no_rate_, blind.no_rate_)
    asked = ANSWERS[rows].codes != State.NOT_ASKED
    counted = ANSWERS[rows].excluded.sum() / (asked & ~RELEVANT[rows]).sum()
    assert abs(both.no_rate_ - counted).mean() <= abs(blind.no_rate_ - counted).mean() + 1e-3
    given = fit(ANSWERS, clean=(X[rows], RELEVANT[rows]), rates=RATES, class_prior=[0.1] * 3)
    np.testing.assert_array_equal(given.class_prior_, [0.1] * 3)


def test_a_clean_sample_of_candidates_moves_the_exclude_rate_unless_it_is_given() -> None:
    fitted = fit(CANDIDATES, clean=(X[:300], RELEVANT[:300]))
    share = (~CANDIDATES).mean(axis=0)
    np.testing.assert_allclose(fitted.no_rate_, np.minimum(share / (1 - fitted.class_prior_), 1))
    clean = (X[:300], RELEVANT[:300], Answers.from_candidates(CANDIDATES)[:300])
    given = fit(CANDIDATES, rates={"exclude": 0.4}, clean=clean)
    np.testing.assert_array_equal(given.no_rate_, [0.4] * 3)


def test_a_clean_sample_is_matched_by_the_names_of_its_labels() -> None:
    rows, order = slice(0, 300), ["sun", "sea", "sky"]
    named, truth = ANSWERS.rename_labels(NAMES), pd.DataFrame(RELEVANT, columns=NAMES)
    in_order = fit(named, clean=(X[rows], RELEVANT[rows], named[rows]))
    moved = fit(named, clean=(X[rows], truth[order].iloc[rows], named.select_labels(order)[rows]))
    np.testing.assert_array_equal(moved.class_prior_, in_order.class_prior_)
    np.testing.assert_array_equal(moved.no_rate_, in_order.no_rate_)


def test_a_clean_sample_that_does_not_fit_is_refused() -> None:
    wrong: list[tuple[Any, str]] = [
        (RELEVANT, "clean must be a tuple .X, relevant."),
        ((X[:3], RELEVANT[:4]), "same rows in X, relevant and answers; got 3, 4"),
        ((X[:4], RELEVANT[:4], ANSWERS[:3]), "same rows in X, relevant and answers; got 4, 4, 3"),
        ((X, RELEVANT[:, :2]), "clean must have the 3 labels of the answers; got 2"),
        ((X, RELEVANT[:, :2], ANSWERS), "must be about the labels of relevant; got 3 and 2"),
        ((X, RELEVANT, RELEVANT), "answers of clean must be a comes.Answers; got ndarray"),
        (
            (X, RELEVANT, Answers.from_candidates(CANDIDATES)),
            "must be of the kind that is trained on, 'answers'.* got 'candidates'",
        ),
        ((X[:, :2], RELEVANT), "X has 2 features, but CandidateClassifier is expecting 5"),
    ]
    for clean, message in wrong:
        with refused(message):
            fit(ANSWERS, clean=clean)


# Answers of other kinds


def test_maybe_may_be_left_out() -> None:
    model, without = (
        fit(ANSWERS, method=Likelihood(uses_maybe=uses, prior_weight=0.0), **KNOWN)
        for uses in (True, False)
    )
    sure = Answers(no=ANSWERS.excluded, yes=ANSWERS.confirmed)
    assert not np.array_equal(without.decision_function(X), model.decision_function(X))
    # What the risk is divided by.
    weight = sure.codes.astype(bool).mean() / ANSWERS.codes.astype(bool).mean()
    assert without.risk(X, ANSWERS) == pytest.approx(without.risk(X, sure) * weight)
    assert model.risk(X, ANSWERS) != pytest.approx(model.risk(X, sure) * weight)


def test_what_was_not_asked_says_nothing() -> None:
    """Only rows with answers count: the likelihood adds up over them."""
    no, yes = (np.where(np.arange(N)[:, None] < 300, given, 0) for given in (~RELEVANT, RELEVANT))
    asked, moved = Answers(no=no, yes=yes), X.copy()
    moved[300:] = 100
    risk = fit(asked, method=Likelihood(prior_weight=0.0), **KNOWN).risk
    assert risk(X, asked) == pytest.approx(risk(moved, asked))
    assert risk(X, asked) != pytest.approx(risk(X, Answers(no=yes, yes=no)))


def test_mistakes_bound_what_one_answer_costs() -> None:
    strict, lenient = (
        fit(ANSWERS, rates=RATES | {"mistake": mistake}, class_prior=PRIOR, epochs=20)
        for mistake in (0.0, 0.05)
    )
    wrong = Answers(no=RELEVANT, yes=~RELEVANT)
    assert lenient.risk(X, wrong) < strict.risk(X, wrong)
    assert lenient.score(X, RELEVANT) > 0.8


def test_ticked_labels_are_learned_from() -> None:
    quick: dict[str, Any] = {"epochs": 15, "hidden": 50, "learning_rate": 5e-3}
    fitted = fit(TICKS, rates={"yes": 0.5}, **quick)
    assert fitted.score(X, RELEVANT) > 0.85
    assert abs(fitted.predict_proba(X).mean() - RELEVANT.mean()) < 0.1  # not that of the ticks
    np.testing.assert_allclose(fitted.class_prior_, TICKS.confirmed.mean(axis=0) / 0.5)
    np.testing.assert_array_equal([fitted.no_rate_, fitted.yes_rate_], [[0.0] * 3, [0.5] * 3])


def test_every_annotator_has_rates_but_a_rate_that_is_given_is_that_of_everybody(
    tmp_path: Path,
) -> None:
    people = {"ann": (0.9, 0.9), "bob": (0.3, 0.9)}
    answers = simulate_answers(RELEVANT, asked_rate=0.5, people=people, people_per_pair=2)
    own, given = fit(answers), fit(answers, rates={"no": 0.7})
    assert list(own.people_rates_) == list(given.people_rates_) == list(people)
    for name, (no, yes) in people.items():
        assert abs(own.people_rates_[name][0] - no).max() < 0.15
        assert abs(own.people_rates_[name][1] - yes).max() < 0.15
        np.testing.assert_array_equal(given.people_rates_[name][0], [0.7] * 3)
        assert abs(given.people_rates_[name][1] - yes).max() < 0.15
    own.save(tmp_path / "model")
    loaded = CandidateClassifier.load(tmp_path / "model")
    assert list(loaded.people_rates_) == list(people)
    for name in people:
        np.testing.assert_array_equal(loaded.people_rates_[name], own.people_rates_[name])
    assert loaded.score(X, answers) == own.score(X, answers)
    assert fit(ANSWERS, **KNOWN).people_rates_ == {}


def test_answers_that_a_model_chose_need_what_is_known() -> None:
    chosen = np.ones_like(RELEVANT)
    answers = Answers(ANSWERS.excluded, ANSWERS.confirmed, ANSWERS.doubtful, chosen=chosen)
    np.testing.assert_array_equal(fit(answers, **KNOWN).class_prior_, PRIOR)
    nobody = Answers(np.zeros_like(RELEVANT), yes=RELEVANT)
    wrong: list[tuple[Answers, dict[str, Any], str]] = [
        (answers, {"rates": RATES}, "Give no_rate, yes_rate and class_prior"),
        (answers, {"method": "comes-hl"}, "no answer to a question drawn at random is 'no'"),
        (nobody, {"method": "comes-rl"}, "learns from labels that somebody said 'no' to"),
    ]
    for given, settings, message in wrong:
        prior = None if "rates" in settings else PRIOR
        with refused(message):
            fit(given, class_prior=prior, **settings)


def test_a_model_of_answers_is_saved_with_its_rates(blind: Any, tmp_path: Path) -> None:
    blind.save(tmp_path / "model")
    loaded = CandidateClassifier.load(tmp_path / "model")
    assert loaded.method_.name == loaded.method == "likelihood"
    for name in ("class_prior_", "class_prior_error_", "no_rate_", "yes_rate_", "threshold_"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(blind, name), err_msg=name)
    np.testing.assert_array_equal(loaded.decision_function(X), blind.decision_function(X))
    assert loaded.risk(X, ANSWERS) == pytest.approx(blind.risk(X, ANSWERS))
    settings = {"rates": RATES | {"mistake": 0.01}, "class_prior": PRIOR}
    fit(ANSWERS, method=Likelihood(uses_maybe=False), **settings).save(tmp_path / "model")
    loaded = CandidateClassifier.load(tmp_path / "model")
    assert loaded.rates == RATES | {"mistake": 0.01} and loaded.rates_.mistake_rate == 0.01
    assert repr(loaded.method) == "Likelihood(uses_maybe=False)"


def test_rates_that_do_not_fit_the_answers_are_refused_in_one_sentence() -> None:
    removed = r"got 'instance'\. Rates that depend on the instance were removed .* give class_prior"
    yes, candidates = "the rate of 'yes'", Answers(no=ANSWERS.excluded)
    nothing, everything = np.zeros_like(RELEVANT), np.ones_like(RELEVANT)
    people = Answers.from_long(LongAnswers.read([0], [0], ["maybe"], ["ann"]), (N, 3))
    wrong: list[tuple[Any, Any, str]] = [
        ({"no": 0.0}, ANSWERS, "rate of 'no' must be above 0 where somebody said 'no'; got 0"),
        ({"yes": [0.5, 0, 0.5]}, ANSWERS, "above 0 where .* 'yes'; got 0 for label '1'"),
        ({"no": [0.5, 0.5]}, ANSWERS, "'no' must hold one number .* each of the 3 labels"),
        ({"no": 0.5}, TICKS, f"'no' is for answers; for ticked labels give {yes}"),
        ({"exclude": 0.5}, TICKS, f"'exclude' is for candidates; for ticked labels give {yes}"),
        ({"exclude": 0.5}, ANSWERS, "for candidates; where it is known who was asked, give .*'no'"),
        ({"no": 0.5}, candidates, "is for answers; for candidates give the rate of 'exclude'"),
        ({"yes": 0.5}, candidates, "'yes' is for answers, and candidates do not say yes. Leave"),
        ({"exclude": "instance"}, CANDIDATES, removed),
        ({"exclude": "row"}, CANDIDATES, r"in \(0, 1\]; got 'row'"),
        ({"mistake": 0.3, "no": 0.2, "yes": 0.8}, ANSWERS, "must be below that of .no. .* Lower"),
        ({"mistake": -0.1}, ANSWERS, "'mistake' must be at least 0 and below 0.5; got -0.1"),
        ({"mistake": [0.1] * 3}, ANSWERS, "'mistake' must be at least 0 and below 0.5"),
        ({"never": 0.1}, ANSWERS, "some of exclude, no, yes, mistake, such as .*; got {'never'"),
        (0.5, ANSWERS, "rates must be a comes.answers.AnswerRates, or a dict .*; got 0.5"),
        (None, Answers(no=nothing, yes=nothing), "no answer about any pair"),
        (None, Answers.from_positives(nothing), "no answer about any pair"),
        (None, Answers(no=nothing, maybe=everything), "every answer is 'maybe'"),
        (None, people, "every answer is 'maybe'"),
        (None, ANSWERS[:200], "same number of rows; got 600 and 200"),
    ]
    for rates, answers, message in wrong:
        for method in ("likelihood", "comes-hl") if answers is CANDIDATES else ("likelihood",):
            model = CandidateClassifier(method, rates=rates, epochs=1, random_state=0)
            with refused(message):
                model.fit(X, answers)
            assert not hasattr(model, "module_"), message
    with refused(r"of the 3 labels; got none for '1', '2'"):
        fit(ANSWERS, class_prior=pd.Series({"0": 0.5}))
    with refused("'comes-hl' learns from excluded labels, and ticked .* method='likelihood'"):
        fit(TICKS, method="comes-hl")
