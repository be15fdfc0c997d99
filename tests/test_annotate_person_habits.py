"""What each person did, against plain loops; and who is pointed out, by the rules that are said."""

import math
from collections import Counter
from itertools import permutations

import numpy as np
import pytest

from comes.annotate import Project, summarise
from comes.annotate.cards import Answer
from comes.annotate.summary import PersonSummary
from projects import Desk, Projects, all_cards, new_answer, stored

WORDS: list[Answer] = ["no", "maybe", "yes", "skip"]


def person(project: Project, name: str) -> PersonSummary:
    return next(one for one in summarise(project).people if one.name == name)


def answer_as(
    project: Project, name: str, shares: list[float], seconds: float, most: int = 10**6
) -> None:
    rng = np.random.default_rng(len(name))
    desk = Desk(project, name, f"tab-of-{name}")
    while most > 0 and (cards := desk.ask()):
        given = cards[:most]
        words = rng.choice(np.array(WORDS), len(given), p=shares)
        desk.send(
            *(
                new_answer(card["card"], word, seconds * float(rng.uniform(0.5, 1.5)))
                for card, word in zip(given, words.tolist(), strict=True)
            )
        )
        most -= len(given)


def test_habits_and_agreement_are_what_plain_loops_count(projects: Projects) -> None:
    project = projects.make(60, ["sky", "sea", "sun"], rate=0.8, overlap=0.6)
    for name, shares in (
        ("Ann", [0.6, 0.1, 0.2, 0.1]),
        ("Bob", [0.3, 0.3, 0.3, 0.1]),
        ("Carol", [0.8, 0.1, 0.1, 0.0]),
    ):
        answer_as(project, name, shares, 1.0, 100)
    by_number = {card.id: card for card in all_cards(project)}
    said = [
        (row.annotator, by_number[row.card_id].item_id, by_number[row.card_id].class_id, row.answer)
        for row in stored(project)
        if row.answer != "skip"
    ]
    for name in ("Ann", "Bob", "Carol"):
        found = person(project, name)
        own = [row for row in said if row[0] == name]
        words = Counter(row[3] for row in own)
        assert found.n_answers == len(own)
        for word, share in (
            ("no", found.share_no),
            ("maybe", found.share_maybe),
            ("yes", found.share_yes),
        ):
            assert share == pytest.approx(words[word] / len(own))
        pairs = [
            (one[3] == "no") == (other[3] == "no")
            for one, other in permutations(said, 2)
            if one[0] == name and one[1:3] == other[1:3]
        ]
        assert found.n_pairs == len(pairs) > 0
        assert found.agreement == pytest.approx(sum(pairs) / len(pairs))
        others, weight = 0.0, 0
        for _, _, class_, _ in own:
            rest = [row[3] for row in said if row[0] != name and row[2] == class_]
            if rest:
                others += rest.count("no") / len(rest)
                weight += 1
        assert found.others_no == pytest.approx(others / weight)


def test_who_says_no_to_everything_at_once_is_pointed_out(projects: Projects) -> None:
    project = projects.make(150, ["sky", "sea"])
    answer_as(project, "Ann", [0.7, 0.1, 0.2, 0.0], 1.5, 120)
    answer_as(project, "Speedy", [1.0, 0.0, 0.0, 0.0], 0.15, 120)
    assert person(project, "Ann").warnings == ()
    quick, same = person(project, "Speedy").warnings
    assert quick == "more than half of the answers in under 0.3 s"
    assert same.startswith("100% no; others say it in ")


def test_a_few_answers_point_nobody_out(projects: Projects) -> None:
    project = projects.make(80, ["sky"])
    answer_as(project, "Ann", [0.5, 0.0, 0.5, 0.0], 1.5, 40)
    answer_as(project, "New", [1.0, 0.0, 0.0, 0.0], 0.1, 19)
    assert person(project, "New").warnings == ()


def test_who_says_no_where_all_do_is_not_pointed_out(projects: Projects) -> None:
    project = projects.make(120, ["rare"])
    answer_as(project, "Ann", [0.96, 0.02, 0.02, 0.0], 1.5, 60)
    answer_as(project, "Bob", [1.0, 0.0, 0.0, 0.0], 1.5, 60)
    assert person(project, "Bob").warnings == ()


def test_somebody_alone_is_compared_with_nobody(projects: Projects) -> None:
    project = projects.make(40, ["sky"])
    answer_as(project, "Ann", [1.0, 0.0, 0.0, 0.0], 1.5)
    found = person(project, "Ann")
    assert math.isnan(found.others_no) and found.n_pairs == 0 and found.warnings == ()
