"""What a page says of answers, against plain loops over who answered what."""

import numpy as np
import pytest

from comes.answers import Answers, LongAnswers, State
from comes.errors import ComesError
from comes.report.model_page import (
    count_answers,
    describe_row,
    find_agreement,
    summarise_answers,
)

# (row, label, person, answer): pair (0, 0) is disputed, (0, 1) agreed on, (1, 0) has one answer.
SAID = [
    (0, 0, "ann", "no"),
    (0, 0, "bob", "yes"),
    (0, 0, "cid", "yes"),
    (0, 1, "ann", "maybe"),
    (0, 1, "bob", "maybe"),
    (1, 0, "ann", "no"),
    (1, 2, "ann", "no"),
    (1, 2, "bob", "maybe"),
]


def of_people() -> Answers:
    row, label, person, word = zip(*SAID, strict=True)
    said = LongAnswers.read(row, label, word, person)
    return Answers.from_long(said, (2, 3), ["sky", "sea", "cat"])


def random_answers(seed: int) -> Answers:
    """Twenty rows, four labels, three people who answer about a third of the pairs each."""
    rng = np.random.default_rng(seed)
    rows = [
        (row, label, person, str(rng.choice(["no", "yes", "maybe"])))
        for row in range(20)
        for label in range(4)
        for person in "abc"
        if rng.random() < 1 / 3
    ]
    row, label, person, word = zip(*rows, strict=True)
    return Answers.from_long(LongAnswers.read(row, label, word, person), (20, 4))


def test_a_pair_is_said_with_its_voices_where_people_disagree() -> None:
    answers = of_people()
    assert describe_row(answers, 0) == [("maybe", "1 no, 2 yes"), ("maybe", ""), ("not asked", "")]
    assert describe_row(answers, 1) == [("no", ""), ("not asked", ""), ("maybe", "1 no, 1 maybe")]


def test_agreement_is_that_of_loops() -> None:
    answers = random_answers(seed=0)
    assert answers.annotations is not None
    heard: dict[tuple[int, int], list[int]] = {}
    said = answers.annotations
    for row, label, code in zip(said.row, said.label, said.code, strict=True):
        heard.setdefault((int(row), int(label)), []).append(int(code))
    n_several, n_disputed = [0] * 4, [0] * 4
    for (_, label), codes in heard.items():
        n_several[label] += len(codes) > 1
        n_disputed[label] += len(set(codes)) > 1
    agreement = find_agreement(answers)
    assert agreement is not None
    assert [counts.tolist() for counts in agreement] == [n_several, n_disputed]
    assert 0 < sum(n_disputed) < sum(n_several)


def test_one_person_cannot_disagree() -> None:
    said = LongAnswers.read([0, 1], [0, 0], ["no", "yes"], ["ann", "ann"])
    assert find_agreement(Answers.from_long(said, (2, 1))) is None
    assert find_agreement(Answers.from_codes([[1, 2]])) is None


def test_columns_count_what_was_said_and_show_the_rates() -> None:
    columns = count_answers(of_people(), {"no": [0.8, 0.75, 1.0], "yes": None})
    assert columns == {
        "asked": ["2", "1", "1"],
        "no": ["1", "0", "0"],
        "maybe": ["1", "1", "1"],
        "yes": ["0", "0", "0"],
        "disagree": ["1 of 1", "0 of 1", "1 of 1"],
        "no rate": ["0.80", "0.75", "1.00"],
    }


def test_what_a_model_chose_is_counted_apart() -> None:
    codes = np.array([[State.NO, State.YES], [State.NO, State.NOT_ASKED]])
    chosen = np.array([[True, False], [False, True]])  # the last was chosen, and is not answered
    columns = count_answers(Answers.from_codes(codes, chosen=chosen), {})
    assert columns["by model"] == ["1", "0"]
    assert "by model" not in count_answers(Answers.from_codes(codes), {})


def test_candidates_and_ticks_have_columns_of_their_own() -> None:
    rates = {"no": [0.1, 0.2], "yes": [0.3, 0.4]}
    candidates = count_answers(Answers.from_candidates([[1, 0], [1, 1]]), rates)
    assert candidates == {"candidate": ["100.0%", "50.0%"], "exclude rate": ["0.10", "0.20"]}
    ticked = count_answers(Answers.from_positives([[1, 0], [1, 1]]), rates)
    assert ticked == {"ticked": ["2", "1"], "tick rate": ["0.30", "0.40"]}
    with pytest.raises(ComesError, match="a number for each of 3 labels; got shape"):
        count_answers(of_people(), {"no": [0.8, 0.9]})


def test_a_sentence_says_how_much_was_asked() -> None:
    found = summarise_answers(of_people())
    assert "Of 6 pairs 4 were asked about: 1 no, 3 maybe, 0 yes." in found
    assert "2 were not asked." in found
    assert "Several people answered about 3 pairs, and disagree about 2 of them, 1 times" in found
    assert "1 are surely not; who was" in summarise_answers(Answers.from_candidates([[1, 0]]))
    assert "1 are ticked" in summarise_answers(Answers.from_positives([[1, 0]]))
