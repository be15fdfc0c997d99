"""Answers of several people, against plain loops."""

import itertools
from typing import Any

import numpy as np
import pytest

from comes.answers import Answers, LongAnswers, State
from comes.errors import ComesError

N, Q, MANY = 7, 5, 60
RNG = np.random.default_rng(0)
ROWS, LABELS = RNG.integers(N - 1, size=MANY), RNG.integers(Q, size=MANY)  # nothing on the last row
WORDS = RNG.choice(["no", "yes", "maybe", "not asked"], size=MANY).tolist()
PEOPLE = RNG.choice(["ann", "bob", "eve"], size=MANY).tolist()
SAID = LongAnswers.read(ROWS, LABELS, WORDS, PEOPLE)

Spoken = list[tuple[int, int, str, str]]


def plain(said: LongAnswers) -> Spoken:
    """Return (row, label, person, word) of every answer, in order."""
    return sorted(
        (int(row), int(label), said.people[person], State(code).word)
        for row, label, person, code in zip(
            said.row, said.label, said.person, said.code, strict=True
        )
    )


EVERYTHING: Spoken = sorted(
    spoken
    for spoken in zip(ROWS.tolist(), LABELS.tolist(), PEOPLE, WORDS, strict=True)
    if spoken[3] != "not asked"
)


def test_columns_are_read_without_what_was_not_asked() -> None:
    assert plain(SAID) == EVERYTHING
    assert len(SAID) == len(EVERYTHING) < MANY
    assert SAID.people == ("ann", "bob", "eve")


def test_a_disagreement_is_maybe() -> None:
    expected = np.zeros((N, Q), dtype=np.int8)
    disagreements = 0
    for i, j in itertools.product(range(N), range(Q)):
        words = {word for row, label, _, word in EVERYTHING if (row, label) == (i, j)}
        if len(words) == 1:
            expected[i, j] = State.of_word(words.pop())
        elif words:
            expected[i, j] = State.MAYBE
            disagreements += {"no", "yes"} <= words
    np.testing.assert_array_equal(SAID.combine((N, Q)), expected)
    assert SAID.count_disagreements((N, Q)) == disagreements > 1
    assert set(expected.flatten()) == {0, 1, 2, 3}
    np.testing.assert_array_equal(Answers.from_long(SAID, (N, Q)).codes, expected)


def test_rows_may_repeat_and_are_numbered_anew() -> None:
    for rows in ([3, 0], [2, 2, 5, 2], [N - 1], list(range(N)), [N - 1, 4, 4]):
        expected = sorted(
            (new, label, person, word)
            for new, old in enumerate(rows)
            for row, label, person, word in EVERYTHING
            if row == old
        )
        assert plain(SAID.take(np.array(rows), N)) == expected, rows


def test_labels_are_numbered_anew() -> None:
    for labels in ([4, 0], [2], list(range(Q))):
        expected = sorted(
            (row, labels.index(label), person, word)
            for row, label, person, word in EVERYTHING
            if label in labels
        )
        assert plain(SAID.take_labels(np.array(labels), Q)) == expected, labels


def test_answers_are_selected_by_a_mask() -> None:
    kept = np.random.default_rng(1).random((N, Q)) < 0.5
    expected = [spoken for spoken in EVERYTHING if kept[spoken[0], spoken[1]]]
    assert 0 < len(expected) < len(EVERYTHING)
    assert plain(SAID.select(kept[SAID.row, SAID.label])) == expected


def test_nothing_said_is_nothing_asked() -> None:
    nothing = LongAnswers.read([], [], [], [])
    assert len(nothing) == 0
    assert not nothing.combine((2, 3)).any()
    assert len(nothing.take(np.array([1, 0, 1]), 2)) == 0
    assert nothing.count_disagreements((2, 3)) == 0


def test_wrong_columns_are_refused() -> None:
    cases: list[tuple[Any, str]] = [
        (([0, 1], [2, 3], ["no", "nope"], ["a", "b"]), "got 'nope' about row 1, label 3"),
        (([0], [0], [""], ["a"]), "no, yes, maybe or not asked; got ''"),
        (([0, 1], [0], ["no"], ["a"]), "must have one length; got 2, 1, 1, 1"),
        (([0.5], [0], ["no"], ["a"]), r"rows must be whole numbers, from 0; got \[0.5\]"),
        (([0], ["sea"], ["no"], ["a"]), r"labels must be whole .* got \['sea'\]. Number names"),
        (([0], [0], ["no"], []), "must have one length; got 1, 1, 1, 0"),
    ]
    for columns, message in cases:
        with pytest.raises(ComesError, match=message):
            LongAnswers.read(*columns)


def test_words_are_those_of_the_states() -> None:
    assert [state.word for state in State] == ["not asked", "no", "yes", "maybe"]
    assert [State.of_word(state.word) for state in State] == list(State)
