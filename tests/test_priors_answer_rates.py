"""Rates of answers by label and by person, where the scores of rows are given."""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse
from scipy.special import expit

from comes.answers import Answers, LongAnswers, State
from comes.errors import ComesError, ComesWarning
from comes.priors import (
    RatesEstimate,
    answer_rates,
    answer_records,
    estimate_answer_rates,
    estimate_class_prior,
    small_models,
)

N, Q = 1500, 6
RNG = np.random.default_rng(0)
SCORES = 2.5 * RNG.normal(size=(N, Q)) + np.linspace(-3, 0, Q)
RELEVANT = RNG.random((N, Q)) < expit(SCORES)
X = np.zeros((N, 1))  # the scores are given


def answer(
    a: npt.ArrayLike, b: npt.ArrayLike, seed: int = 1, asked: float = 0.5
) -> npt.NDArray[Any]:
    """Return the states of pairs of which some are asked about."""
    rng = np.random.default_rng(seed)
    is_sure = rng.random((N, Q)) < np.where(RELEVANT, b, a)
    codes = np.where(is_sure, np.where(RELEVANT, State.YES, State.NO), State.MAYBE)
    return np.where(rng.random((N, Q)) < asked, codes, State.NOT_ASKED)


@pytest.fixture(autouse=True)
def known_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the true scores, up to their scale; higher for what is shown as YES."""

    def score(X: Any, states: Any, seed: int, *, is_scaled: bool) -> npt.NDArray[np.float32]:
        scores = SCORES[: len(states), : states.shape[1]]
        yes, no = (scores[states == state].mean() for state in (State.YES, State.NO))
        return np.float32(2 if yes > no else -2) * scores.astype(np.float32)

    monkeypatch.setattr(answer_records, "score_out_of_fold", score)


def estimate(codes: npt.NDArray[Any], **settings: Any) -> RatesEstimate:
    return estimate_answer_rates(X[: len(codes)], Answers.from_codes(codes), **settings)


def count(codes: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the shares of "no" and "yes" that know the truth."""
    no = (codes == State.NO).sum() / (~RELEVANT & (codes != State.NOT_ASKED)).sum()
    return np.array([no, (codes == State.YES).sum() / (RELEVANT & (codes != 0)).sum()])


def test_rates_and_priors_are_near_counts_that_know_the_truth() -> None:
    for a, b in ((0.8, 0.8), (0.9, 0.6), (0.7, 0.9)):
        distances = []
        for seed in range(8):
            case = f"rates {a} and {b}, seed {seed}"
            codes = answer(a, b, seed)
            found = estimate(codes)
            distances.append((found.overall - count(codes)) / found.overall_error)
            assert (found.overall_error < 0.025).all(), case
            asked = codes != State.NOT_ASKED
            prior = (RELEVANT & asked).sum(axis=0) / asked.sum(axis=0)
            assert abs(found.class_prior - prior).max() < 0.05, case
            assert (abs(found.class_prior - prior) < 3.5 * found.class_prior_error).all(), case
            assert found.flags == ("ok",) * Q, case
        assert (abs(np.mean(distances, axis=0)) < 0.6).all(), (a, b)
        assert (np.abs(distances) < 2).mean() > 0.9, (a, b)


def test_rates_that_differ_by_label_are_found_and_rates_that_agree_are_shared() -> None:
    a, b = np.linspace(0.5, 0.95, Q), np.linspace(0.95, 0.6, Q)
    found = estimate(answer(a, b, asked=1.0)).rates
    assert found.no_error is not None
    assert abs(found.no_rate - a).max() < 0.05
    assert (abs(found.no_rate - a) < 3 * found.no_error).all()
    assert abs(found.yes_rate - b).mean() < 0.08
    shared = estimate(answer(0.8, 0.7, asked=0.2)).rates
    assert shared.no_rate.std() < 0.015
    assert abs(shared.no_rate - 0.8).max() < 0.04


def test_exchanging_yes_and_no_exchanges_everything() -> None:
    codes = answer(0.9, 0.6)
    found = estimate(codes)
    other = estimate(np.choose(codes, [0, State.YES, State.NO, State.MAYBE]))
    np.testing.assert_allclose(other.rates.no_rate, found.rates.yes_rate, rtol=1e-3)
    np.testing.assert_allclose(other.overall_error, found.overall_error[::-1], rtol=1e-2)
    np.testing.assert_allclose(other.class_prior, 1 - found.class_prior, atol=1e-3)


def test_where_nobody_says_yes_its_rate_is_zero_and_the_other_is_not_too_low() -> None:
    codes = answer(0.7, 0.0, asked=1.0)
    found = estimate(codes)
    assert (found.rates.yes_rate == 0).all()
    assert found.rates.yes_error is not None
    assert (found.rates.yes_error == 0).all()
    assert (found.rates.no_rate > 0.66).all()
    assert (found.rates.no_rate < 0.8).all()
    share = (codes == State.NO).mean(axis=0)
    np.testing.assert_allclose(found.class_prior, 1 - share / found.rates.no_rate, atol=0.02)


def test_where_nobody_says_no_it_is_the_mirror_image() -> None:
    codes = answer(0.7, 0.0, asked=1.0)
    found = estimate(codes)
    mirror = np.where(codes == State.NO, State.YES, codes)
    other = estimate(mirror)
    assert (other.rates.no_rate == 0).all()
    np.testing.assert_allclose(other.rates.yes_rate, found.rates.no_rate, rtol=1e-3)
    np.testing.assert_allclose(other.class_prior, 1 - found.class_prior, atol=1e-3)
    ticked = estimate_answer_rates(X, Answers.from_positives(mirror == State.YES))
    np.testing.assert_allclose(ticked.rates.yes_rate, other.rates.yes_rate)
    np.testing.assert_allclose(ticked.class_prior, other.class_prior)


def test_of_best_bins_the_lower_rates_are_raised() -> None:
    """As a label of which no row is surely irrelevant has a lower one."""
    codes = answer([0.9, 0.9, 0.9, 0.9, 0.9, 0.4], 0.0, asked=1.0)
    found = estimate(codes).rates.no_rate
    assert (abs(found[:5] - 0.9) < 0.06).all()
    assert 0.45 < found[5] < 0.8


def test_candidates_go_to_the_class_prior(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_models, "MIN_STEPS", 20)
    rows = np.random.default_rng(0).normal(size=(200, 3))
    candidates = (rows > 0.5) | (np.random.default_rng(1).random((200, 3)) < [0.3, 0.5, 0.7])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ComesWarning)
        found = estimate_answer_rates(rows, Answers.from_candidates(candidates))
        seed = int(np.random.RandomState(0).randint(np.iinfo(np.int32).max))
        expected = estimate_class_prior(rows, candidates, random_state=seed)
    np.testing.assert_array_equal(found.rates.no_rate, expected.exclude_rate)
    np.testing.assert_array_equal(found.class_prior, expected.class_prior)
    assert expected.exclude_rate_error is not None
    np.testing.assert_array_equal(found.rates.no_error, expected.exclude_rate_error)
    assert not found.rates.yes_rate.any()
    assert found.flags == expected.flags
    weight = 1 - expected.class_prior
    mean = (weight * expected.exclude_rate).sum() / weight.sum()
    error = np.sqrt(((weight * expected.exclude_rate_error) ** 2).sum()) / weight.sum()
    np.testing.assert_allclose(found.overall, [mean, 0])
    np.testing.assert_allclose(found.overall_error, [error, 0])


def test_classifiers_of_sure_answers_give_the_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_records, "score_out_of_fold", small_models.score_out_of_fold)
    monkeypatch.setattr(small_models, "MIN_STEPS", 60)
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(700, 4))
    relevant = rows > 0.5
    is_sure = rng.random(relevant.shape) < np.where(relevant, 0.6, 0.9)
    codes = np.where(is_sure, np.where(relevant, State.YES, State.NO), State.MAYBE)
    codes = np.where(rng.random(relevant.shape) < 0.5, codes, State.NOT_ASKED)
    features = sparse.csr_array(rows)
    found = estimate_answer_rates(features, Answers.from_codes(codes))
    assert (abs(found.overall - [0.9, 0.6]) < 3 * found.overall_error).all()
    assert (found.overall_error < 0.1).all()


def test_questions_that_a_model_chose_are_left_out() -> None:
    codes = answer(0.8, 0.7)
    expected = estimate(codes)
    chosen = np.random.default_rng(5).random(codes.shape) < 0.3
    mixed = np.where(chosen, State.YES, codes)  # where the model is sure that it is yes
    answers = Answers.from_codes(mixed, chosen=chosen)
    found = estimate_answer_rates(X, answers)
    expected = estimate(np.where(chosen, State.NOT_ASKED, codes))
    np.testing.assert_array_equal(found.rates.no_rate, expected.rates.no_rate)
    np.testing.assert_array_equal(found.class_prior, expected.class_prior)


def say(
    rates: dict[str, tuple[float, float]], n_each: dict[str, int], seed: int = 0
) -> LongAnswers:
    """Return the answers of people, each about the first so many rows and all labels."""
    rng = np.random.default_rng(seed)
    rows, labels, words, people = [], [], [], []
    for name, (a, b) in rates.items():
        relevant = RELEVANT[: n_each[name]]
        is_sure = rng.random(relevant.shape) < np.where(relevant, b, a)
        codes = np.where(is_sure, np.where(relevant, State.YES, State.NO), State.MAYBE)
        row, label = np.indices(codes.shape)
        rows.append(row.ravel())
        labels.append(label.ravel())
        words += [State(code).word for code in codes.ravel()]
        people += [name] * codes.size
    return LongAnswers.read(np.concatenate(rows), np.concatenate(labels), words, people)


PEOPLE = {"ann": (0.95, 0.9), "bob": (0.6, 0.8), "cem": (0.8, 0.4), "dee": (0.8, 0.7)}


def test_people_have_their_own_rates() -> None:
    said = say(PEOPLE, dict.fromkeys(PEOPLE, 400))
    found = estimate_answer_rates(X, Answers.from_long(said, (N, Q)))
    for name, rates in PEOPLE.items():
        own = [rate.mean() for rate in found.rates.people[name]]
        np.testing.assert_allclose(own, rates, atol=0.05)
        assert found.rates.people[name][0].shape == (Q,)
    np.testing.assert_allclose(found.overall, np.mean(list(PEOPLE.values()), axis=0), atol=0.04)
    prior = RELEVANT[:400].mean(axis=0)
    assert abs(found.class_prior - prior).max() < 0.04


def test_a_person_with_few_answers_is_like_the_others() -> None:
    people = {**PEOPLE, "eve": (0.0, 0.0)}
    said = say(people, {**dict.fromkeys(PEOPLE, 300), "eve": 1})
    found = estimate_answer_rates(X, Answers.from_long(said, (N, Q)))
    assert 0.3 < found.rates.people["eve"][0].mean() < found.overall[0]
    many = say(people, dict.fromkeys(people, 300))
    found = estimate_answer_rates(X, Answers.from_long(many, (N, Q)))
    assert found.rates.people["eve"][0].mean() < 0.06


def test_people_who_agree_have_one_rate() -> None:
    alike = dict.fromkeys(PEOPLE, (0.8, 0.7))
    said = say(alike, dict.fromkeys(PEOPLE, 60))
    found = estimate_answer_rates(X, Answers.from_long(said, (N, Q)))
    rates = np.array([found.rates.people[name][0].mean() for name in PEOPLE])
    own = [(said.code[said.person == k] == State.NO).mean() for k in range(4)]
    assert rates.std() < 0.5 * np.std(own) / (1 - RELEVANT[:60].mean())


def test_what_people_say_about_one_pair_is_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the rows say nothing, other people do."""
    noise = np.random.default_rng(9).normal(size=(N, Q)).astype(np.float32)
    monkeypatch.setattr(answer_records, "score_out_of_fold", lambda *args, **kwargs: noise)
    said = say(PEOPLE, dict.fromkeys(PEOPLE, 300))
    found = estimate_answer_rates(X, Answers.from_long(said, (N, Q)))
    np.testing.assert_allclose(found.overall, np.mean(list(PEOPLE.values()), axis=0), atol=0.05)
    assert (found.overall_error < 0.04).all()


def test_people_who_only_say_no() -> None:
    people = {"ann": (0.95, 0.0), "bob": (0.5, 0.0)}
    said = say(people, dict.fromkeys(people, 600))
    found = estimate_answer_rates(X, Answers.from_long(said, (N, Q))).rates
    for name, (rate, _) in people.items():
        assert found.people[name][0].mean() == pytest.approx(rate, abs=0.07)
        assert not found.people[name][1].any()


def test_one_person_is_everybody() -> None:
    said = say({"ann": (0.8, 0.7)}, {"ann": 300})
    found = estimate_answer_rates(X, Answers.from_long(said, (N, Q)))
    assert found.rates.people == {}
    np.testing.assert_allclose(found.overall, [0.8, 0.7], atol=0.05)


def test_of_very_many_answers_some_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = answer(0.8, 0.7, asked=1.0)
    rows: list[int] = []

    def score(X: Any, states: Any, seed: int, *, is_scaled: bool) -> npt.NDArray[np.float32]:
        rows.append(len(states))
        assert len(X) == len(states)
        return np.asarray(SCORES[X[:, 0].astype(int)], dtype=np.float32)

    monkeypatch.setattr(answer_records, "score_out_of_fold", score)
    monkeypatch.setattr(answer_rates, "MOST_RECORDS", N * Q // 3)
    found = estimate_answer_rates(np.arange(N)[:, None], Answers.from_codes(codes))
    assert rows == [N // 3]
    np.testing.assert_allclose(found.overall, [0.8, 0.7], atol=0.05)
    assert abs(found.class_prior - RELEVANT.mean(axis=0)).max() < 0.03


def test_labels_of_which_little_is_known_are_named() -> None:
    codes = answer(0.8, 0.7, asked=1.0)
    codes[:, 0], codes[:, 1] = State.NOT_ASKED, State.MAYBE
    codes[:, 2], codes[:, 3] = State.NO, State.YES
    codes[10:, 4] = State.NOT_ASKED
    names = [f"label {j}" for j in range(Q)]
    with pytest.warns(ComesWarning) as caught:
        found = estimate(codes, label_names=names)
    said = [str(warning.message) for warning in caught]
    assert found.flags == ("never asked", "all maybe", "all no", "all yes", "few asked", "ok")
    usual = "so it gets what is usual for the other labels."
    assert f"The answers about label 'label 0': nobody was asked about it, {usual}" in said
    assert f"The answers about label 'label 1': every answer is maybe, {usual}" in said
    assert any("'label 2': every answer is no" in message for message in said)
    assert any("'label 3': every answer is yes" in message for message in said)
    assert any("'label 4': there are fewer than 20 answers" in message for message in said)
    assert found.class_prior[2] < 0.01
    assert found.class_prior[3] > 0.99
    assert found.class_prior_error[0] > 0.2
    np.testing.assert_allclose(found.rates.no_rate[0], found.rates.no_rate[1])
    np.testing.assert_allclose(found.class_prior[0], found.class_prior[1])
    assert abs(found.class_prior[5] - RELEVANT[:, 5].mean()) < 0.08
    assert all(np.isfinite(values).all() for values in (found.rates.no_rate, found.overall))


def test_names_are_those_of_the_answers() -> None:
    codes = answer(0.8, 0.7)
    codes[:, 1] = State.NOT_ASKED
    answers = Answers.from_codes(codes, label_names=list("abcdef"))
    with pytest.warns(ComesWarning, match="about label 'b': nobody"):
        estimate_answer_rates(X, answers)


def test_one_answer_to_everything() -> None:
    for state, rates, prior in (
        (State.NO, [1, 0], 0),
        (State.YES, [0, 1], 1),
        (State.MAYBE, [0, 0], 0.5),
    ):
        with pytest.warns(ComesWarning, match=f"every answer is {state.word}"):
            found = estimate(np.full((200, 3), state))
        np.testing.assert_allclose(found.overall, rates, atol=0.01)
        np.testing.assert_allclose(found.class_prior, prior, atol=0.01)
    np.testing.assert_allclose(found.class_prior_error, 0.5)
    assert (found.rates.no_rate == found.rates.yes_rate).all()
    assert (found.rates.no_rate > 0).all()


def test_nobody_is_ever_in_doubt() -> None:
    found = estimate(answer(1.0, 1.0))
    assert (found.rates.no_rate > 0.99).all()
    assert (found.rates.yes_rate > 0.99).all()


def test_few_rows_give_the_share_of_sure_answers() -> None:
    codes = np.array([[1, 2, 3], [1, 1, 1], [2, 3, 1], [1, 2, 1], [3, 1, 1], [1, 2, 2]])
    with pytest.warns(ComesWarning) as caught:
        found = estimate(codes)
    assert "The rates of answers are uncertain" in str(caught[0].message)
    assert abs(found.overall - 15 / 18).max() < 0.12
    assert found.overall_error.max() > 0.1
    with pytest.warns(ComesWarning):
        alone = estimate(codes[:1])
    assert np.isfinite(alone.class_prior).all()
    assert (alone.class_prior_error > 0.2).all()


def test_scores_that_say_nothing_are_seen_in_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        answer_records, "score_out_of_fold", lambda X, states, *_, **__: np.zeros(states.shape)
    )
    codes = answer(0.9, 0.6, asked=1.0)[:, 5:]
    with pytest.warns(ComesWarning, match="rates of answers are uncertain .* Give no_rate"):
        found = estimate(codes)
    sure = ((codes == State.NO) | (codes == State.YES)).mean()
    assert abs(found.overall - sure).max() < 0.06
    assert found.overall_error.max() > 0.1


def test_labels_that_nobody_ticks() -> None:
    ticked = answer(0.0, 0.8, asked=1.0) == State.YES
    ticked[:, 2] = False
    with pytest.warns(ComesWarning, match="label '2': no row has it"):
        found = estimate_answer_rates(X, Answers.from_positives(ticked))
    assert found.flags[2] == "never ticked"
    assert found.class_prior[2] < 0.01


def test_without_answers_nothing_can_be_estimated_and_rows_must_match() -> None:
    for answers in (
        Answers.from_codes(np.zeros((30, 2))),
        Answers.from_codes(np.ones((30, 2)), chosen=np.ones((30, 2), dtype=bool)),
        Answers.from_positives(np.zeros((30, 2))),
    ):
        with pytest.raises(ComesError, match="got none. Give no_rate, yes_rate and class_prior"):
            estimate_answer_rates(np.zeros((30, 1)), answers)
    with pytest.raises(ComesError, match="the same rows; got 3 and 30"):
        estimate_answer_rates(np.zeros((3, 1)), Answers.from_codes(np.ones((30, 2))))
    candidates: Any = np.ones((30, 2), dtype=bool)
    with pytest.raises(ComesError, match="takes comes.Answers; got ndarray"):
        estimate_answer_rates(np.zeros((30, 1)), candidates)
