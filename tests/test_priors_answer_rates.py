"""Rates of answers by label and by person: the estimate, its records, its model, class priors."""

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse
from scipy.special import expit, logit

from comes.answers import Answers, LongAnswers, State
from comes.errors import ComesError, ComesWarning
from comes.priors import (
    RatesEstimate,
    answer_rates,
    estimate_answer_rates,
    estimate_class_prior,
    rate_model,
)
from comes.priors.answer_rates import (
    OTHER_PERSON,
    choose_spread,
    count_answers,
    estimate_priors,
    fit_beta,
    fit_rate_effects,
    in_best_bins,
    read_records,
    sum_moments,
    yes_evidence,
)
from drawn_records import draw_records, mistake_evidence

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

    def score(X: Any, states: Any, seed: int) -> npt.NDArray[np.float32]:
        scores = SCORES[: len(states), : states.shape[1]]
        yes, no = (scores[states == state].mean() for state in (State.YES, State.NO))
        return np.float32(2 if yes > no else -2) * scores.astype(np.float32)

    monkeypatch.setattr(answer_rates, "score_out_of_fold", score)


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
    rate = found.overall[0]
    assert found.overall_error[0] > 0.2 * rate * (1 - rate)  # the bins are not free of relevant
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
    monkeypatch.setattr(answer_rates, "score_out_of_fold", rate_model.score_out_of_fold)
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
    monkeypatch.setattr(answer_rates, "score_out_of_fold", lambda *args, **kwargs: noise)
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

    def score(X: Any, states: Any, seed: int) -> npt.NDArray[np.float32]:
        rows.extend(X[:, 0])
        assert len(X) == len(states)
        return np.asarray(SCORES[X[:, 0].astype(int)], dtype=np.float32)

    monkeypatch.setattr(answer_rates, "score_out_of_fold", score)
    monkeypatch.setattr(answer_rates, "scale_features", np.asarray)
    monkeypatch.setattr(answer_rates, "MOST_RECORDS", N * Q // 3)
    numbers = np.arange(N)[:, None]
    found = estimate_answer_rates(numbers, Answers.from_codes(codes))
    assert len(rows) == len(set(rows)) == N // 3
    assert rows == sorted(rows) and rows[-1] > N / 2
    np.testing.assert_allclose(found.overall, [0.8, 0.7], atol=0.05)
    assert abs(found.class_prior - RELEVANT.mean(axis=0)).max() < 0.03


def test_features_are_scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []

    def score(X: Any, states: Any, seed: int) -> npt.NDArray[np.float32]:
        shown.append(X)
        return SCORES.astype(np.float32)

    monkeypatch.setattr(answer_rates, "score_out_of_fold", score)
    features = np.arange(2.0 * N).reshape(N, 2)
    estimate_answer_rates(features, Answers.from_codes(answer(0.8, 0.7)))
    np.testing.assert_allclose(shown[0], (features - features.mean(axis=0)) / features.std(axis=0))


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
        answer_rates, "score_out_of_fold", lambda X, states, *_, **__: np.zeros(states.shape)
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


# Answers one by one

NO_FEATURES = np.zeros((40, 1))


def give_scores(monkeypatch: pytest.MonkeyPatch, scores: npt.NDArray[Any]) -> list[Any]:
    """Make the classifiers return these scores; return the list of what they are shown."""
    shown: list[Any] = []

    def score(X: Any, states: Any, seed: int) -> npt.NDArray[np.float32]:
        shown.append(states)
        return scores.astype(np.float32)

    monkeypatch.setattr(answer_rates, "score_out_of_fold", score)
    return shown


def test_records_are_the_answers_one_by_one() -> None:
    records = read_records(Answers.from_codes([[0, 1], [3, 2]]))
    assert records.row.tolist() == [0, 1, 1]
    assert records.label.tolist() == [1, 0, 1]
    assert records.code.tolist() == [State.NO, State.MAYBE, State.YES]
    ticked = read_records(Answers.from_positives([[1, 0]]))
    assert ticked.code.tolist() == [State.YES, State.MAYBE]
    said = LongAnswers.read([0, 0], [0, 0], ["no", "yes"], ["ann", "bob"])
    assert read_records(Answers.from_long(said, (1, 1))) is said


def test_evidence_is_calibrated_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(3000, 2)) - 1
    give_scores(monkeypatch, 3 * truth + 2)  # too sure, and shifted
    codes = np.where(rng.random(truth.shape) < expit(truth), State.YES, State.NO)
    codes[rng.random(truth.shape) < 0.2] = State.MAYBE
    records = read_records(Answers.from_codes(codes))
    evidence = yes_evidence(np.zeros((3000, 1)), records, 2, 0)
    np.testing.assert_allclose(evidence, truth[records.row, records.label], atol=0.25)


def test_scores_that_mislead_or_few_rows_leave_the_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for n in (19, 40):
        codes = np.where(np.arange(n) % 4 == 0, State.YES, State.NO)[:, None]
        shown = give_scores(monkeypatch, np.where(codes == State.YES, -1.0, 1.0))
        records = read_records(Answers.from_codes(codes))
        evidence = yes_evidence(NO_FEATURES[:n], records, 1, 0)
        n_yes = int((codes == State.YES).sum())
        np.testing.assert_allclose(expit(evidence), (n_yes + 0.5) / (n + 1), err_msg=f"{n} rows")
        assert len(shown) == (n == 40)


def test_sure_answers_about_a_pair_count_where_they_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [0, 0, 1, 1, 2, 2, 3, 4]
    words = ["no", "yes", "yes", "maybe", "no", "no", "maybe", "no"]
    said = LongAnswers.read(rows, [0] * 8, words, list("abababab"))
    shown = give_scores(monkeypatch, np.zeros((40, 1)))
    yes_evidence(NO_FEATURES, said, 1, 0)
    expected = [State.NOT_ASKED, State.YES, State.NO, State.NOT_ASKED, State.NO]
    assert shown[0][:5, 0].tolist() == expected
    assert not shown[0][5:].any()


def test_what_others_said_about_the_pair_is_heard() -> None:
    """And neither what oneself said, even twice, nor what was said about other pairs."""
    rows, labels = [0, 0, 0, 0, 1, 1], [1, 1, 1, 1, 1, 0]
    words = ["yes", "yes", "no", "maybe", "no", "yes"]
    people = ["ann", "ann", "bob", "cem", "ann", "bob"]
    said = LongAnswers.read(rows, labels, words, people)
    evidence = yes_evidence(NO_FEATURES[:2], said, 2, 0)
    heard = []
    for i in range(6):
        word = 0
        for k in range(6):
            same = (rows[k], labels[k]) == (rows[i], labels[i])
            if same and people[k] != people[i]:
                word += {"yes": 1, "no": -1, "maybe": 0}[words[k]]
        heard.append(word)
    assert heard == [-1, -1, 2, 1, 0, 0]
    np.testing.assert_allclose(evidence - evidence[4], OTHER_PERSON * np.array(heard))


def test_best_bins_are_the_pairs_most_like_the_sure_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first label is said of every row above 60, the second of all above 20; half are asked."""
    n = 400
    for sure in (State.NO, State.YES):
        rng = np.random.default_rng(0)
        scores = rng.permuted(np.tile(np.linspace(0, 100, n), (2, 1)), axis=1).T
        codes = np.where(scores > [60, 20], sure, State.MAYBE)
        codes[rng.random(codes.shape) < 0.5] = State.NOT_ASKED
        records = read_records(Answers.from_codes(codes))
        shown = give_scores(monkeypatch, scores)
        inside = in_best_bins(np.zeros((n, 1)), records, sure, 2, 0)
        score = scores[records.row, records.label]
        for label, cut in enumerate((60, 20)):
            mine = records.label == label
            assert score[mine & inside].min() > cut - 2, sure
            assert score[mine & inside].min() < cut + 5, sure
            assert score[mine & ~inside].max() < score[mine & inside].min(), sure
        assert ((shown[0] == State.YES) == (codes == sure)).all(), sure
        assert ((shown[0] == State.NO) == (codes == State.MAYBE)).all(), sure


def test_without_doubt_or_with_few_rows_everything_is_in_the_bin() -> None:
    for codes in (np.full((40, 1), State.NO), np.full((19, 1), State.MAYBE)):
        records = read_records(Answers.from_codes(codes))
        n = len(codes)
        assert in_best_bins(NO_FEATURES[:n], records, State.NO, 1, 0).all()


# Rates by group

START = np.array([1.0, 1.0])


def test_moments_are_the_formulas_written_as_loops() -> None:
    records = draw_records(0, [0.8, 0.6], [0.7, 0.9], n=15)
    rng = np.random.default_rng(1)
    records = replace(records, offset=rng.normal(size=records.offset.shape))
    at = np.array([[1.0, 0.5], [0.2, 1.5]])
    moments, slopes = np.zeros((2, 2)), np.zeros((2, 2, 2))
    for i, g in enumerate(records.group):
        a, b = (1 / (1 + math.exp(-at[g, k] - records.offset[i, k])) for k in range(2))
        odds = math.exp(records.evidence[i]) * a / b
        eta = odds / (1 + odds)
        variance = (1 - eta) * (1 / a - 1) + eta * (1 / b - 1)
        direction = [(1 - eta) * (1 - a), eta * (1 - b)]
        rho = (1 / a if records.is_no[i] else 1 / b if records.is_yes[i] else 0) - 1
        for k in range(2):
            moments[g, k] += direction[k] * rho / variance
            for m in range(2):
                slopes[g, k, m] += direction[k] * direction[m] / variance
    found_moments, found_slopes = sum_moments(records, at)
    np.testing.assert_allclose(found_moments, moments)
    np.testing.assert_allclose(found_slopes, slopes)


def test_moments_have_mean_zero_at_the_true_rates_even_with_a_wrong_eta() -> None:
    at = logit([[0.9, 0.6]])
    for wrong in (0.0, 1.5):
        records = draw_records(2, 0.9, 0.6, n=200_000)
        records = replace(records, evidence=0.5 * records.evidence + wrong)
        moment, slope = sum_moments(records, at)
        # The slope is about the variance of the moment; four standard errors.
        assert (abs(moment[0]) < 4 * np.sqrt(2 * np.diag(slope[0]))).all()


def test_slopes_are_the_information_of_the_moments() -> None:
    """With the true eta, both the variance of a moment and how it moves with the logits."""
    at, moments = logit([[0.9, 0.6]]), []
    slope = sum_moments(draw_records(0, 0.9, 0.6, n=500), at)[1][0]
    for seed in range(250):
        moments.append(sum_moments(draw_records(seed, 0.9, 0.6, n=500), at)[0][0])
    np.testing.assert_allclose(np.cov(np.array(moments).T), slope, atol=0.25 * slope.max())
    many = draw_records(1, 0.9, 0.6, n=200_000)
    low, high = (sum_moments(many, at + np.array([step, 0]))[0][0] for step in (-0.05, 0.05))
    expected = sum_moments(many, at)[1][0][:, 0]
    np.testing.assert_allclose((low - high) / 0.1, expected, rtol=0.1)


def test_one_group_is_the_closed_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """E[h (no / a + yes / b - 1)] = 0 is linear in 1 / a and 1 / b, whatever the weights h."""
    nothing = (np.zeros(2), np.zeros((2, 2)))
    monkeypatch.setattr(answer_rates, "prior_of_mean", lambda mean: nothing)
    records = draw_records(3, 0.85, 0.7)
    a, b = expit(fit_rate_effects(records, START).logit[0])
    matrix, total = np.zeros((2, 2)), np.zeros(2)
    for no, yes, evidence in zip(records.is_no, records.is_yes, records.evidence, strict=True):
        eta = expit(evidence + math.log(a / b))
        variance = (1 - eta) * (1 / a - 1) + eta * (1 / b - 1)
        h = np.array([(1 - eta) * (1 - a), eta * (1 - b)]) / variance
        matrix += np.outer(h, [no, yes])
        total += h
    np.testing.assert_allclose(1 / np.linalg.solve(matrix, total), [a, b], rtol=1e-4)


def test_estimates_are_unbiased_and_errors_are_honest() -> None:
    """Also where eta is off; more draws are in tests/system."""
    for a, b, is_eta_right in ((0.95, 0.6, True), (0.6, 0.9, False)):
        distances = []
        for seed in range(25):
            records = draw_records(seed, a, b, n=1000)
            found = fit_rate_effects(records if is_eta_right else mistake_evidence(records), START)
            error = np.sqrt(np.diag(found.mean_covariance))
            distances.append((found.mean - logit([a, b])) / error)
        assert (abs(np.mean(distances, axis=0)) < 0.6).all(), (a, b)
        assert (abs(np.std(distances, axis=0) - 1) < 0.4).all(), (a, b)


def test_where_the_truth_is_known_rates_are_shares() -> None:
    """Of surely irrelevant pairs; half an answer of each kind is the prior."""
    records = draw_records(0, 0.8, 0.8, n=500)
    irrelevant = replace(
        records,
        evidence=np.full(500, -np.inf),
        is_yes=np.zeros(500, bool),
        is_no=np.arange(500) < 350,
    )
    a, b = expit(fit_rate_effects(irrelevant, START).logit[0])
    assert a == pytest.approx((350 + 0.5) / 501, abs=0.001)
    error = np.sqrt(fit_rate_effects(irrelevant, START).mean_covariance[0, 0]) * a * (1 - a)
    assert error == pytest.approx(math.sqrt(0.7 * 0.3 / 500), rel=0.02)
    relevant = replace(irrelevant, evidence=-irrelevant.evidence, is_yes=irrelevant.is_no)
    relevant = replace(relevant, is_no=np.zeros(500, bool))
    np.testing.assert_allclose(expit(fit_rate_effects(relevant, START).logit[0]), [b, a], rtol=1e-6)


def test_exchanging_yes_and_no_exchanges_the_rates() -> None:
    records = draw_records(5, [0.9, 0.7, 0.6], [0.6, 0.7, 0.9], n=400)
    mirror = replace(
        records, is_no=records.is_yes, is_yes=records.is_no, evidence=-records.evidence
    )
    found, other = fit_rate_effects(records, START), fit_rate_effects(mirror, START)
    np.testing.assert_allclose(other.logit, found.logit[:, ::-1], rtol=1e-4)
    np.testing.assert_allclose(other.mean_covariance, found.mean_covariance[::-1, ::-1], rtol=1e-3)
    np.testing.assert_allclose(other.spread, found.spread[::-1])


def test_groups_that_agree_share_one_rate() -> None:
    found = fit_rate_effects(draw_records(6, [0.8] * 10, [0.7] * 10, n=300), START)
    own = [
        fit_rate_effects(draw_records(60 + g, 0.8, 0.7, n=300), START).logit[0, 0]
        for g in range(10)
    ]
    assert found.logit[:, 0].std() < 0.3 * np.std(own)
    np.testing.assert_allclose(expit(found.mean), [0.8, 0.7], atol=0.05)


def test_groups_that_differ_have_their_own() -> None:
    a, b = np.linspace(0.4, 0.95, 8), np.linspace(0.9, 0.5, 8)
    found = fit_rate_effects(draw_records(7, a, b, n=4000), START)
    np.testing.assert_allclose(expit(found.logit), np.stack([a, b], axis=1), atol=0.06)
    assert (found.spread > 0.3).all()
    error = np.sqrt(np.diagonal(found.covariance, axis1=1, axis2=2))
    distance = (found.logit - logit(np.stack([a, b], axis=1))) / error
    assert 0.5 < np.sqrt((distance**2).mean()) < 1.5


def test_only_a_may_differ() -> None:
    found = fit_rate_effects(draw_records(8, np.linspace(0.4, 0.95, 8), 0.7, n=3000), START)
    assert found.spread[0] > 0.4
    assert found.spread[1] < 0.3


def test_a_group_with_few_records_gets_the_mean_and_a_large_error() -> None:
    records = draw_records(9, [0.5, 0.6, 0.7, 0.8, 0.9, 0.9], 0.8, n=2000)
    few = (records.group < 5) | (records.row < 3)
    columns = ("is_no", "is_yes", "evidence", "group", "row", "offset")
    records = replace(records, **{name: getattr(records, name)[few] for name in columns})
    found = fit_rate_effects(records, START)
    error = np.sqrt(found.covariance[:, 0, 0])
    assert abs(found.logit[5, 0] - found.mean[0]) < 0.7 * found.spread[0]
    assert error[5] > 0.7 * found.spread[0]
    assert error[5] > 4 * error[0]


def test_scores_that_say_nothing_give_the_share_of_sure_answers_and_a_large_error() -> None:
    records = draw_records(10, 0.9, 0.6, n=4000, signal=0)
    records = replace(records, evidence=np.full_like(records.evidence, records.evidence.mean()))
    found = fit_rate_effects(records, START)
    sure = (records.is_no | records.is_yes).mean()
    np.testing.assert_allclose(expit(found.mean), [sure, sure], atol=0.05)
    difference = np.array([1, -1])
    assert difference @ found.mean_covariance @ difference == pytest.approx(4, rel=0.1)


def test_answers_about_one_row_may_depend_on_each_other() -> None:
    records = draw_records(11, 0.8, 0.7)
    columns = ("is_no", "is_yes", "evidence", "group", "row", "offset")
    twice: dict[str, Any] = {name: np.concatenate([getattr(records, name)] * 2) for name in columns}
    once, same = (
        fit_rate_effects(records, START),
        fit_rate_effects(replace(records, **twice), START),
    )
    np.testing.assert_allclose(same.mean_covariance, once.mean_covariance, rtol=0.05)
    twice["row"] = np.arange(len(twice["row"]))
    other = fit_rate_effects(replace(records, **twice), START)
    np.testing.assert_allclose(other.mean_covariance, once.mean_covariance / 2, rtol=0.05)


def test_offsets_are_added_to_the_logits() -> None:
    records = draw_records(12, 0.8, 0.7)
    moved = replace(records, offset=np.tile([0.5, -0.3], (len(records.row), 1)))
    found = fit_rate_effects(moved, START).logit[0] - fit_rate_effects(records, START).logit[0]
    np.testing.assert_allclose(found, [-0.5, 0.3], atol=0.01)


def test_without_doubt_rates_are_nearly_one() -> None:
    few = draw_records(13, 1.0, 1.0, n=10)
    assert (expit(fit_rate_effects(few, START).logit) < 0.97).all()
    assert (expit(fit_rate_effects(draw_records(13, 1.0, 1.0), START).logit) > 0.995).all()


def test_averages_are_those_of_the_rates() -> None:
    found = fit_rate_effects(draw_records(14, [0.5, 0.7, 0.9], 0.8, n=1000), START)
    weights = np.array([[0.2, 1.0], [0.3, 0.0], [0.5, 0.0]])
    mean, error = found.average(weights)
    rates = expit(found.logit)
    np.testing.assert_allclose(mean, [[0.2, 0.3, 0.5] @ rates[:, 0], rates[0, 1]])
    scale = rates[0, 1] * (1 - rates[0, 1])
    assert error[1] == pytest.approx(scale * math.sqrt(found.covariance[0, 1, 1]))
    assert error[0] < 0.02


def test_the_spread_is_that_of_highest_restricted_likelihood() -> None:
    """Against normal densities written out, for estimates with known errors."""
    rng = np.random.default_rng(0)
    values = np.stack([rng.normal(0, 0.7, 12), np.zeros(12)], axis=1)
    slope = np.tile(np.diag([25.0, 1e-9]), (12, 1, 1))
    pull = np.einsum("gab,gb->ga", slope, values)
    deviances = []
    for spread in answer_rates.SPREADS:
        variance = spread**2 + 1 / 25
        precision = 12 / variance + 0.01 * (0.25 + 0.0625)
        mean = values[:, 0].sum() / variance / precision
        deviance = 12 * math.log(variance) + (values[:, 0] ** 2).sum() / variance
        deviances.append(deviance - precision * mean**2 + math.log(precision) + spread)
    best = answer_rates.SPREADS[int(np.argmin(deviances))]
    assert choose_spread(slope, pull, np.zeros(2)).tolist() == [best, 0]
    assert best > 0.3


# Class priors

CERTAIN = np.zeros((1, 2, 2))


def log_likelihood(
    prior: float, counts: list[float], a: float, b: float, alpha: float, beta: float
) -> float:
    no, yes, maybe = counts
    doubt = (1 - a) * (1 - prior) + (1 - b) * prior
    sure = (no + beta) * math.log(1 - prior) + (yes + alpha) * math.log(prior)
    return sure + maybe * math.log(doubt)


def test_the_prior_is_where_the_likelihood_is_highest() -> None:
    grid = np.linspace(0.0005, 0.9995, 2000)
    cases: list[tuple[list[float], float, float]] = [
        ([60, 20, 20], 0.8, 0.8),
        ([60, 5, 35], 0.9, 0.3),
        ([40, 0, 60], 0.7, 0.0),
        ([0, 9, 3], 0, 0.8),
    ]
    for counts, a, b in cases:
        values = [log_likelihood(float(pi), counts, a, b, 0.3, 0.7) for pi in grid]
        found = estimate_priors(
            np.array([counts]), np.array([[a, b]]), CERTAIN, np.array([0.3, 0.7])
        )[0]
        assert found[0] == pytest.approx(grid[int(np.argmax(values))], abs=0.001), counts


def test_known_cases() -> None:
    nearly_nothing = np.full(2, 1e-9)
    counts = np.array([[60.0, 20, 20], [40, 0, 60], [0, 40, 60]])
    rates = np.array([[0.7, 0.7], [0.8, 0.0], [0.0, 0.8]])
    # a = b: "maybe" says nothing. b = 0: 1 - share / a. a = 0: share / b.
    expected = [20 / 80, 1 - 0.4 / 0.8, 0.4 / 0.8]
    prior, _ = estimate_priors(counts, rates, np.zeros((3, 2, 2)), nearly_nothing)
    np.testing.assert_allclose(prior, expected, atol=1e-6)


def test_the_error_is_that_of_drawn_counts_and_of_the_rates() -> None:
    rng = np.random.default_rng(0)
    a, b, pi, n = 0.9, 0.5, 0.3, 400
    p = [a * (1 - pi), b * pi, (1 - a) * (1 - pi) + (1 - b) * pi]
    drawn = rng.multinomial(n, p, size=2000).astype(float)
    rates = np.tile([a, b], (2000, 1))
    exact, half = np.zeros((2000, 2, 2)), np.full(2, 0.5)
    spread = estimate_priors(drawn, rates, exact, half)[0].std()
    counts = n * np.array([p])
    _, error = estimate_priors(counts, rates[:1], CERTAIN)
    assert error[0] == pytest.approx(spread, rel=0.06)
    covariance = np.array([[0.0009, -0.0012], [-0.0012, 0.0064]])
    uncertain = rng.multivariate_normal([a, b], covariance, size=2000)
    both = estimate_priors(drawn, uncertain, exact, half)[0].std()
    _, error = estimate_priors(counts, rates[:1], covariance[None])
    assert error[0] == pytest.approx(both, rel=0.1)
    assert both > 1.2 * spread


def test_labels_that_agree_are_shrunk_and_labels_that_differ_are_not() -> None:
    rng = np.random.default_rng(1)
    rates, certain = np.full((40, 2), 0.8), np.zeros((40, 2, 2))

    def draw(prior: np.ndarray) -> np.ndarray:
        yes = rng.binomial(40, prior)
        return np.stack([40 - yes, yes, np.full(40, 10)], axis=1).astype(float)

    alike = np.full(40, 0.2)
    counts = draw(alike)
    prior, _ = estimate_priors(counts, rates, certain)
    own = counts[:, 1] / 40
    assert abs(prior - alike).mean() < 0.5 * abs(own - alike).mean()
    different = np.linspace(0.02, 0.98, 40)
    counts = draw(different)
    prior, error = estimate_priors(counts, rates, certain)
    assert abs(prior - counts[:, 1] / 40).max() < 0.03
    assert (abs(prior - different) < 3 * error).all()


def test_a_label_without_answers_gets_the_mean_and_a_large_error() -> None:
    counts = np.array([[30.0, 10, 5], [20, 20, 5], [10, 30, 5], [0, 0, 0]])
    prior, error = estimate_priors(counts, np.full((4, 2), 0.8), np.zeros((4, 2, 2)))
    assert prior[3] == pytest.approx(0.5, abs=0.01)
    assert error[3] > 2 * error[:3].max()


def test_the_beta_distribution_has_the_mean_and_the_spread_of_the_labels() -> None:
    rng = np.random.default_rng(2)
    truth = rng.beta(2, 6, size=5000)
    alpha, beta = fit_beta(truth + rng.normal(0, 0.05, 5000), np.full(5000, 0.05))
    assert (alpha, beta) == (pytest.approx(2, rel=0.1), pytest.approx(6, rel=0.1))


def test_few_labels_do_not_know_that_they_agree() -> None:
    same, error = np.full(3, 0.5), np.full(3, 0.1)
    assert fit_beta(same, error).sum() == pytest.approx(0.25 / 0.01 - 1)
    many = fit_beta(np.full(201, 0.5), np.full(201, 0.1)).sum()
    assert many == pytest.approx(0.25 / (0.01 / 10) - 1)
    assert fit_beta(same[:1], error[:1]).tolist() == [0.5, 0.5]


def test_an_answer_is_a_part_of_its_pair() -> None:
    words = ["no", "yes", "maybe", "no", "no"]
    said = LongAnswers.read([0, 0, 0, 1, 1], [0, 0, 0, 0, 2], words, list("abcab"))
    third = pytest.approx(1 / 3)
    assert count_answers(said, 3).tolist() == [
        [pytest.approx(4 / 3), third, third],
        [0, 0, 0],
        [1, 0, 0],
    ]
