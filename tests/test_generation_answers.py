"""Promises of `simulate_answers`, checked against counts that know the truth."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from comes.answers import State
from comes.errors import ComesError
from comes.generation import instance_dependent, simulate_answers

N, Q = 30000, 4
PRIOR = np.array([0.05, 0.2, 0.5, 0.8])
RELEVANT = np.random.default_rng(0).random((N, Q)) < PRIOR
FEATURES = np.random.default_rng(1).normal(size=(N, 3)) + RELEVANT[:, :3]


def count_share(said: Any, among: Any) -> Any:
    """Return by label the share of pairs that were answered so, and how many there were."""
    return (said & among).sum(axis=0) / among.sum(axis=0), among.sum(axis=0)


def assert_rate(said: Any, among: Any, rate: Any) -> None:
    """Assert that the share of an answer is the rate, within binomial bounds."""
    share, n = count_share(said, among)
    rate = np.broadcast_to(np.asarray(rate, dtype=float), share.shape)
    assert (abs(share - rate) <= 4.5 * np.sqrt(rate * (1 - rate) / n)).all(), (share, rate)


def test_every_rate_holds_on_average() -> None:
    for strength in (0.0, 3.0):
        assert_every_rate(strength)


def assert_every_rate(strength: float) -> None:
    asked_rate, no_rate = np.array([0.2, 0.4, 0.6, 1.0]), np.array([0.3, 0.5, 0.7, 1.0])
    yes_rate, mistake = np.array([0.9, 0.4, 0.6, 0.2]), 0.0
    answers = simulate_answers(
        RELEVANT,
        FEATURES,
        asked_rate=asked_rate,
        no_rate=no_rate,
        yes_rate=yes_rate,
        mistake_rate=mistake,
        doubt_strength=strength,
        seed=1,
    )
    assert answers.kind == "answers" and answers.annotations is None and answers.asked is not None
    assert_rate(answers.asked, np.ones_like(RELEVANT), asked_rate)
    assert_rate(answers.excluded, answers.asked & ~RELEVANT, no_rate)
    assert_rate(answers.confirmed, answers.asked & RELEVANT, yes_rate)
    assert not (answers.excluded & RELEVANT).any()
    assert not (answers.confirmed & ~RELEVANT).any()


def test_being_asked_does_not_depend_on_the_truth() -> None:
    asked = simulate_answers(RELEVANT, asked_rate=0.3).asked
    assert_rate(asked, RELEVANT, 0.3)
    assert_rate(asked, ~RELEVANT, 0.3)


def test_mistakes_have_their_rate_and_leave_the_others() -> None:
    answers = simulate_answers(
        RELEVANT, asked_rate=0.7, no_rate=0.6, yes_rate=0.97, mistake_rate=0.1
    )
    asked = answers.asked
    assert asked is not None
    assert_rate(answers.excluded, asked & ~RELEVANT, 0.6)
    assert_rate(answers.confirmed, asked & ~RELEVANT, 0.1)
    assert_rate(answers.doubtful, asked & ~RELEVANT, 0.3)
    assert_rate(answers.excluded, asked & RELEVANT, 0.1)
    assert_rate(answers.confirmed, asked & RELEVANT, 0.9)  # 0.97 leaves no room for mistakes
    assert not (answers.doubtful & RELEVANT).any()


def test_what_cannot_be_said_is_not_said_by_mistake() -> None:
    answers = simulate_answers(RELEVANT, asked_rate=0.5, yes_rate=0, mistake_rate=0.2)
    assert not answers.confirmed.any()
    assert answers.asked is not None
    assert_rate(answers.excluded, answers.asked & RELEVANT, 0.2)
    positives = simulate_answers(RELEVANT, asked_rate=0.5, no_rate=0, mistake_rate=0.2)
    assert not positives.excluded.any() and positives.confirmed.any()


def test_without_yes_the_same_pairs_are_asked_and_called_no() -> None:
    full, without = (simulate_answers(RELEVANT, yes_rate=b, seed=3) for b in (0.8, 0.0))
    np.testing.assert_array_equal(full.asked, without.asked)
    np.testing.assert_array_equal(full.excluded, without.excluded)
    np.testing.assert_array_equal(without.doubtful, full.doubtful | full.confirmed)


def test_the_seed_decides_and_is_a_stream_of_its_own() -> None:
    first, again, other = (simulate_answers(RELEVANT, seed=seed).codes for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    drawn = np.random.default_rng(0).random((N, Q)) < 0.5
    answers = simulate_answers(drawn, asked_rate=0.5, seed=0)  # the seed of the labels
    assert_rate(answers.asked, drawn, 0.5)
    generator = np.random.default_rng(3)
    one, two = (simulate_answers(RELEVANT, seed=generator).codes for _ in range(2))
    assert (one != two).any()


def test_some_items_are_hard_for_all_labels() -> None:
    answers = simulate_answers(RELEVANT, FEATURES, asked_rate=1, doubt_strength=4.0, seed=2)
    doubt = answers.doubtful.astype(float)
    assert np.corrcoef(doubt.T)[np.triu_indices(Q, 1)].min() > 0.2
    even = simulate_answers(RELEVANT, FEATURES, asked_rate=1, seed=2).doubtful.astype(float)
    assert abs(np.corrcoef(even.T)[np.triu_indices(Q, 1)]).max() < 0.05


def test_which_rows_are_asked_depends_on_the_features_at_the_same_rate() -> None:
    options: dict[str, Any] = {"asked_rate": 0.3, "asked_strength": 3.0, "seed": 5}
    answers = simulate_answers(RELEVANT, FEATURES, **options)
    of_sparse = simulate_answers(RELEVANT, sparse.csr_array(FEATURES), **options)
    np.testing.assert_array_equal(of_sparse.codes, answers.codes)
    assert answers.asked is not None
    assert_rate(answers.asked, np.ones_like(RELEVANT), 0.3)
    moved = [
        max(abs(FEATURES[asked].mean(axis=0) - FEATURES.mean(axis=0))) for asked in answers.asked.T
    ]
    assert min(moved) > 0.3
    assert_rate(answers.excluded, answers.asked & ~RELEVANT, 0.8)


def test_people_answer_with_their_own_rates() -> None:
    people: dict[str, tuple[Any, Any]] = {
        "zoe": (0.9, 0.5),
        "ann": (0.4, np.array([0.2, 0.4, 0.6, 0.8])),
        "bob": (1.0, 1.0),
    }
    answers = simulate_answers(RELEVANT, asked_rate=0.5, people=people, people_per_pair=2, seed=1)
    said = answers.annotations
    assert said is not None and said.people == ("zoe", "ann", "bob")
    pairs = said.row * Q + said.label
    assert (np.unique(pairs, return_counts=True)[1] == 2).all()  # of two people each
    assert len(np.unique(pairs * 3 + said.person)) == len(said)
    np.testing.assert_array_equal(answers.codes, said.combine((N, Q)))
    truth = RELEVANT[said.row, said.label]
    for number, (a, b) in enumerate(people.values()):
        for label in range(Q):
            mine = (said.person == number) & (said.label == label)
            no = (said.code == State.NO)[mine & ~truth]
            yes = (said.code == State.YES)[mine & truth]
            for share, rate in ((no, np.broadcast_to(a, Q)), (yes, np.broadcast_to(b, Q))):
                bound = 4.5 * np.sqrt(rate[label] * (1 - rate[label]) / len(share))
                assert abs(share.mean() - rate[label]) <= bound
    assert np.bincount(said.person).min() > 0.32 * len(said)


def test_names_come_from_a_table_and_extreme_rates_ask_nothing_or_everything() -> None:
    table = pd.DataFrame(RELEVANT[:50], columns=list("abcd"))
    everything = simulate_answers(table, asked_rate=1, no_rate=1, yes_rate=1)
    assert everything.label_names == list("abcd")
    np.testing.assert_array_equal(everything.confirmed, RELEVANT[:50])
    np.testing.assert_array_equal(everything.excluded, ~RELEVANT[:50])
    assert not simulate_answers(table, asked_rate=0).codes.any()
    nobody = simulate_answers(table, asked_rate=0, people={"ann": (1, 1)})
    assert nobody.annotations is not None and len(nobody.annotations) == 0


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"asked_rate": 1.2}, "asked_rate must be one number in"),
    ({"no_rate": [0.1, 0.2]}, "no_rate must be one number in"),
    ({"yes_rate": -1}, "yes_rate must be one number in"),
    ({"mistake_rate": 2}, "mistake_rate must be one number in"),
    ({"doubt_strength": 1.0, "X": None}, "doubt_strength needs features"),
    ({"asked_strength": 1.0, "X": None}, "asked_strength needs features"),
    ({"asked_strength": np.nan}, "asked_strength must be a finite number"),
    ({"people_per_pair": 2}, "people_per_pair needs people"),
    ({"people": {"ann": (1, 1)}, "people_per_pair": 2}, "people_per_pair must be 1 to 1"),
    ({"people": {"ann": (1, 2)}}, "yes_rate must be one number in"),
]


def test_a_wrong_argument_is_named() -> None:
    for wrong, message in REFUSED:
        with pytest.raises(ComesError, match=message):
            simulate_answers(RELEVANT, **{"X": FEATURES} | wrong)


def test_features_in_another_order_are_refused() -> None:
    relevant, X = pd.DataFrame(RELEVANT[:50]), pd.DataFrame(FEATURES[:50])
    simulate_answers(relevant, X, doubt_strength=1.0)
    instance_dependent(relevant, X)
    for draw in (simulate_answers, instance_dependent):
        with pytest.raises(ComesError, match="X and relevant must have their rows in the same"):
            draw(relevant, X[::-1])
