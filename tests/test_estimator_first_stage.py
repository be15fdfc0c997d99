"""What the estimator finds out before it trains on answers: rates, class priors, a clean sample."""

import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from comes.answers import Answers, State
from comes.errors import ComesError, ComesWarning
from comes.estimator import CandidateClassifier
from comes.generation import independent, simulate_answers
from comes.priors import ClassPriorEstimate, estimate_class_prior
from comes.selection import candidate_scorer
from quick_priors import quick_priors

RNG = np.random.default_rng(0)
N, NAMES = 600, ["sea", "sky", "sun"]
X = RNG.normal(size=(N, 5))
RELEVANT = X[:, :3] + 0.3 * RNG.normal(size=(N, 3)) > np.array([0.0, 0.5, 1.0])
PRIOR = RELEVANT.mean(axis=0)
ANSWERS = simulate_answers(RELEVANT, asked_rate=0.5, no_rate=0.9, yes_rate=0.6, seed=1)
NO_YES = Answers(no=ANSWERS.excluded, maybe=ANSWERS.confirmed | ANSWERS.doubtful)
CANDIDATES = independent(RELEVANT, 0.5, seed=1)


@pytest.fixture(autouse=True, scope="module")
def quickly_estimated() -> Iterator[None]:
    with quick_priors(60):
        yield


def fit(answers: Any, *, clean: Any = None, **settings: Any) -> Any:
    settings = {"epochs": 1, "hidden": 8, "n_networks": 1, "random_state": 0} | settings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ComesWarning)
        return CandidateClassifier(**settings).fit(X, answers, clean=clean)


@pytest.fixture(scope="module")
def blind(quickly_estimated: None) -> Any:
    """A fit that estimated all it had to know from the answers."""
    return fit(ANSWERS)


def test_rates_and_priors_of_answers_are_estimated_with_an_error(blind: Any) -> None:
    assert abs(blind.no_rate_ - 0.9).max() < 0.1
    assert abs(blind.yes_rate_ - 0.6).max() < 0.15
    assert abs(blind.class_prior_ - PRIOR).max() < 0.1
    assert (blind.class_prior_error_ > 0).all()


def test_what_is_given_is_taken() -> None:
    fitted = fit(ANSWERS, no_rate=0.7, yes_rate=[0.5, 0.6, 0.7], class_prior=PRIOR)
    np.testing.assert_array_equal(fitted.no_rate_, [0.7] * 3)
    np.testing.assert_array_equal(fitted.yes_rate_, [0.5, 0.6, 0.7])
    np.testing.assert_array_equal(fitted.class_prior_, PRIOR)
    assert fitted.class_prior_error_ is None
    rates = pd.Series([0.9, 0.8, 0.7], NAMES[::-1])
    by_name = fit(ANSWERS.rename_labels(NAMES), no_rate=rates, yes_rate=0.6, class_prior=PRIOR)
    np.testing.assert_array_equal(by_name.no_rate_, [0.7, 0.8, 0.9])


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
    known = fit(NO_YES, class_prior=prior).decision_function(X)
    assert not np.array_equal(known, scores)


def test_where_somebody_said_yes_an_estimated_prior_counts_as_a_known_one(blind: Any) -> None:
    rates = {"no_rate": blind.no_rate_, "yes_rate": blind.yes_rate_}
    known = fit(ANSWERS, class_prior=blind.class_prior_, **rates)
    np.testing.assert_array_equal(known.decision_function(X), blind.decision_function(X))
    free = fit(ANSWERS, class_prior=blind.class_prior_, prior_weight=0.0, **rates)
    assert not np.array_equal(free.decision_function(X), blind.decision_function(X))


def test_a_known_exclude_rate_gives_the_class_prior_of_candidates() -> None:
    fitted = fit(CANDIDATES, method="likelihood", exclude_rate=0.5)
    np.testing.assert_array_equal(fitted.no_rate_, [0.5] * 3)
    np.testing.assert_array_equal(fitted.yes_rate_, [0.0] * 3)
    expected = estimate_class_prior(None, CANDIDATES, exclude_rate=0.5)
    np.testing.assert_allclose(fitted.class_prior_, expected.class_prior)
    comes = fit(CANDIDATES, method="comes-hl", exclude_rate=0.5)
    np.testing.assert_allclose(comes.class_prior_, expected.class_prior)


def test_a_class_prior_implies_the_exclude_rate_of_candidates() -> None:
    fitted = fit(CANDIDATES, method="likelihood", class_prior=PRIOR)
    np.testing.assert_allclose(fitted.no_rate_, (~CANDIDATES).mean(axis=0) / (1 - PRIOR))


def test_an_exclude_rate_in_words_is_refused_and_rates_by_instance_were_removed() -> None:
    removed = r"got 'instance'\. Rates that depend on the instance were removed .* give class_prior"
    wrong: list[tuple[Any, str]] = [
        ("instance", removed),
        ("row", r"in \(0, 1\] or None; got 'row'"),
    ]
    for rate, message in wrong:
        for method in ("likelihood", "comes-hl"):
            with pytest.raises(ComesError, match=message):
                fit(CANDIDATES, method=method, exclude_rate=rate, class_prior=PRIOR)


def test_a_clean_sample_sharpens_class_prior_and_rates(blind: Any) -> None:
    rows = slice(0, 400)
    prior_only = fit(ANSWERS, clean=(X[rows], RELEVANT[rows]))
    both = fit(ANSWERS, clean=(X[rows], RELEVANT[rows], ANSWERS[rows]))
    for sharp in (prior_only, both):
        assert blind.class_prior_error_ is not None and sharp.class_prior_error_ is not None
        assert (sharp.class_prior_error_ < blind.class_prior_error_).all()
        ends = np.stack([blind.class_prior_, RELEVANT[rows].mean(axis=0)])
        assert (ends.min(axis=0) - 0.01 < sharp.class_prior_).all()
        assert (sharp.class_prior_ < ends.max(axis=0) + 0.01).all()
    np.testing.assert_array_equal(prior_only.no_rate_, blind.no_rate_)
    assert not np.array_equal(both.no_rate_, blind.no_rate_)
    asked = ANSWERS[rows].codes != State.NOT_ASKED
    counted = ANSWERS[rows].excluded.sum() / (asked & ~RELEVANT[rows]).sum()
    assert abs(both.no_rate_ - counted).mean() <= abs(blind.no_rate_ - counted).mean() + 1e-3
    known: dict[str, Any] = {"no_rate": 0.9, "yes_rate": 0.6, "class_prior": [0.1] * 3}
    given = fit(ANSWERS, clean=(X[rows], RELEVANT[rows]), **known)
    np.testing.assert_array_equal(given.class_prior_, [0.1] * 3)


def test_a_clean_sample_of_candidates_moves_the_exclude_rate_with_the_prior() -> None:
    fitted = fit(CANDIDATES, method="likelihood", clean=(X[:300], RELEVANT[:300]))
    share = (~CANDIDATES).mean(axis=0)
    np.testing.assert_allclose(fitted.no_rate_, np.minimum(share / (1 - fitted.class_prior_), 1))


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
        with pytest.raises(ComesError, match=message):
            fit(ANSWERS, clean=clean)


def test_maybe_may_be_left_out() -> None:
    known: dict[str, Any] = {"no_rate": 0.9, "yes_rate": 0.6, "class_prior": PRIOR}
    known |= {"prior_weight": 0.0}
    model, without = (fit(ANSWERS, uses_maybe=uses, **known) for uses in (True, False))
    sure = Answers(no=ANSWERS.excluded, yes=ANSWERS.confirmed)
    assert not np.array_equal(without.decision_function(X), model.decision_function(X))
    weight = (
        sure.codes.astype(bool).mean() / ANSWERS.codes.astype(bool).mean()
    )  # what the risk is divided by
    assert without.risk(X, ANSWERS) == pytest.approx(without.risk(X, sure) * weight)
    assert model.risk(X, ANSWERS) != pytest.approx(model.risk(X, sure) * weight)


def test_mistakes_bound_what_one_answer_costs() -> None:
    known: dict[str, Any] = {"no_rate": 0.9, "yes_rate": 0.6, "class_prior": PRIOR}
    strict, lenient = (fit(ANSWERS, mistake_rate=m, epochs=20, **known) for m in (0.0, 0.05))
    wrong = Answers(no=RELEVANT, yes=~RELEVANT)
    assert lenient.risk(X, wrong) < strict.risk(X, wrong)
    assert lenient.score(X, RELEVANT) > 0.8


def test_a_model_of_answers_is_saved_with_its_rates(blind: Any, tmp_path: Path) -> None:
    blind.save(tmp_path / "model")
    loaded = CandidateClassifier.load(tmp_path / "model")
    assert loaded.method_ == "likelihood"
    for name in ("class_prior_", "class_prior_error_", "no_rate_", "yes_rate_", "threshold_"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(blind, name), err_msg=name)
    np.testing.assert_array_equal(loaded.decision_function(X), blind.decision_function(X))
    assert loaded.risk(X, ANSWERS) == pytest.approx(blind.risk(X, ANSWERS))
    known: dict[str, Any] = {"no_rate": 0.9, "yes_rate": 0.6, "class_prior": PRIOR}
    fit(ANSWERS, uses_maybe=False, mistake_rate=0.01, **known).save(tmp_path / "model")
    loaded = CandidateClassifier.load(tmp_path / "model")
    assert (loaded.mistake_rate, loaded.uses_maybe) == (0.01, False)


def test_a_clean_sample_is_matched_by_the_names_of_its_labels() -> None:
    rows, order = slice(0, 300), ["sun", "sea", "sky"]
    named, truth = ANSWERS.rename_labels(NAMES), pd.DataFrame(RELEVANT, columns=NAMES)
    in_order = fit(named, clean=(X[rows], RELEVANT[rows], named[rows]))
    moved = fit(named, clean=(X[rows], truth[order].iloc[rows], named.select_labels(order)[rows]))
    np.testing.assert_array_equal(moved.class_prior_, in_order.class_prior_)
    np.testing.assert_array_equal(moved.no_rate_, in_order.no_rate_)


def test_a_clean_sample_leaves_a_given_exclude_rate_as_it_is() -> None:
    about = Answers.from_candidates(CANDIDATES)
    clean = (X[:300], RELEVANT[:300], about[:300])
    fitted = fit(CANDIDATES, method="likelihood", exclude_rate=0.4, clean=clean)
    np.testing.assert_array_equal(fitted.no_rate_, [0.4] * 3)


def test_rates_that_are_given_are_those_of_everybody() -> None:
    people = {"ann": (0.9, 0.9), "bob": (0.3, 0.9)}
    answers = simulate_answers(RELEVANT, asked_rate=0.5, people=people, people_per_pair=2)
    found = fit(answers, no_rate=0.7).rates_.people
    assert set(found) == set(people)
    for own_no, own_yes in found.values():
        np.testing.assert_array_equal(own_no, [0.7] * 3)
        assert abs(own_yes - 0.9).max() < 0.15


def test_answers_that_a_model_chose_need_what_is_known() -> None:
    chosen = np.ones_like(RELEVANT)
    answers = Answers(ANSWERS.excluded, ANSWERS.confirmed, ANSWERS.doubtful, chosen=chosen)
    with pytest.raises(ComesError, match="Give no_rate, yes_rate and class_prior"):
        fit(answers, no_rate=0.9, yes_rate=0.6)
    fitted = fit(answers, no_rate=0.9, yes_rate=0.6, class_prior=PRIOR)
    np.testing.assert_array_equal(fitted.class_prior_, PRIOR)
    with pytest.raises(ComesError, match="no answer to a question drawn at random is 'no'"):
        fit(answers, method="comes-hl", class_prior=PRIOR)
    with pytest.raises(ComesError, match="learns from labels that somebody said 'no' to"):
        fit(Answers(np.zeros_like(RELEVANT), yes=RELEVANT), method="comes-rl", class_prior=PRIOR)


def test_rates_that_do_not_fit_the_answers_are_refused() -> None:
    wrong: list[tuple[dict[str, Any], Answers, str]] = [
        ({"no_rate": 0.0}, ANSWERS, "no_rate must be above 0 where somebody said 'no'; got 0"),
        ({"yes_rate": [0.5, 0, 0.5]}, ANSWERS, "above 0 where .* 'yes'; got 0 for label '1'"),
        ({"no_rate": 0.5}, Answers.from_positives(RELEVANT), "for ticked labels give yes_rate"),
        ({"exclude_rate": 0.5}, Answers.from_positives(RELEVANT), "ticked labels give yes_rate"),
        (
            {"class_prior": pd.Series({"0": 0.5})},
            ANSWERS,
            r"of the 3 labels; got none for '1', '2'",
        ),
        ({"exclude_rate": 0.5}, ANSWERS, "known who was asked, give no_rate"),
    ]
    for settings, answers, message in wrong:
        with pytest.raises(ComesError, match=message):
            fit(answers, **settings)


def test_rows_in_another_order_are_refused() -> None:
    frame, labels = pd.DataFrame(X).add_prefix("x"), pd.DataFrame(CANDIDATES).add_prefix("l")
    classifier = CandidateClassifier(epochs=1, hidden=4, n_networks=1, class_prior=PRIOR)
    with pytest.raises(ComesError, match="rows in the same order; got DataFrames"):
        classifier.fit(frame.iloc[::-1], labels)
    with pytest.raises(ComesError, match=r"different indexes, 0 and .* at row 0\. .*set_index"):
        classifier.fit(frame, labels.set_axis(range(N, 2 * N)))
    with pytest.raises(ComesError, match="different indexes"):
        classifier.fit(frame, candidates=labels.set_axis([f"p{k}" for k in range(N)]))
    classifier.fit(
        frame, labels.set_axis(range(N, 2 * N)).to_numpy(), label_names=list(map(str, labels))
    )
    with pytest.raises(ComesError, match="different indexes"):
        classifier.calibrate(frame, relevant=labels.set_axis(range(N, 2 * N)))
    for use in (
        classifier.risk,
        classifier.score,
        partial(candidate_scorer("hamming"), classifier),
    ):
        with pytest.raises(ComesError, match="different indexes|same order"):
            use(frame, labels.set_axis(range(N, 2 * N)))
        reordered = labels[labels.columns[::-1]]
        assert use(frame, reordered) == pytest.approx(use(frame, labels))


def test_answers_are_not_taken_for_the_truth(blind: Any) -> None:
    with pytest.raises(ComesError, match="relevant labels must be a matrix of 0 and 1; got Ans"):
        blind.score(X, Answers(~CANDIDATES))
    with pytest.raises(ComesError, match="got Answers. Pass them as answers=, or take"):
        CandidateClassifier().fit(X, candidates=Answers(~CANDIDATES))
