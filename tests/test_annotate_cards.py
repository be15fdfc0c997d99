"""Which cards are drawn, who gets them, and what becomes of answers."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from sqlalchemy import Connection, func, insert, select

from comes.annotate import Project, collect_answers, export_answers, summarise
from comes.annotate.cards import (
    BLOCK,
    ITEMS_AT_ONCE,
    Answer,
    Cards,
    RefusedError,
    SentAnswer,
    lease_cards,
    sample_cards,
    sample_more,
    show_cards,
    store_answers,
)
from comes.annotate.grow import set_controls
from comes.annotate.schema import CONTROL, answers, cards
from comes.annotate.web.app import Writer
from comes.errors import ComesError
from projects import LEASE, Card, Desk, Projects, all_cards, new_answer, refusal, states, stored

# Drawing


def first_turns(cards: Cards) -> list[tuple[int, int]]:
    return list(zip(*(column[cards.turn == 0].tolist() for column in cards[:2]), strict=True))


def second_turns(cards: Cards) -> list[tuple[int, int]]:
    return list(zip(*(column[cards.turn == 1].tolist() for column in cards[:2]), strict=True))


@settings(max_examples=40, deadline=None)
@given(
    n_items=st.integers(1, 80),
    n_classes=st.integers(1, 5),
    rate=st.floats(0.01, 1),
    overlap=st.floats(0, 1),
    by=st.sampled_from(["class", "item"]),
    seed=st.integers(0, 100),
)
def test_counts_are_exact_and_nothing_is_asked_twice(
    n_items: int, n_classes: int, rate: float, overlap: float, by: Any, seed: int
) -> None:
    n_asked = round(rate * n_items)
    if not n_asked:
        return
    cards = sample_cards(n_items, n_classes, rate, seed=seed, overlap=overlap, by=by)
    first, second = first_turns(cards), second_turns(cards)
    assert len(first) == len(set(first)) == n_asked * n_classes
    assert [sum(class_ == j for _, class_ in first) for j in range(n_classes)] == (
        [n_asked] * n_classes
    )
    n_again = round(overlap * len(first)) if by == "class" else round(overlap * n_asked) * n_classes
    assert len(second) == len(set(second)) == n_again
    assert set(second) <= set(first)
    assert all(0 <= item < n_items and 0 <= class_ < n_classes for item, class_ in first)


def test_every_item_has_the_same_chance() -> None:
    """Each is asked about a class in 3 of 10 draws, five standard errors to either side."""
    n, rate, draws = 20, 0.3, 600
    ways: tuple[Literal["class", "item"], ...] = ("class", "item")
    for by in ways:
        counts = np.zeros((n, 2))
        for seed in range(draws):
            cards = sample_cards(n, 2, rate, seed=seed, by=by)
            np.add.at(counts, (cards.item, cards.class_), 1)
        error = np.sqrt(rate * (1 - rate) / draws)
        assert np.abs(counts / draws - rate).max() < 5 * error, by


def test_classes_are_drawn_independently() -> None:
    """Both questions of an item come together as often as chance wants."""
    n, rate, draws = 20, 0.5, 600
    together = 0
    for seed in range(draws):
        cards = sample_cards(n, 2, rate, seed=seed)
        together += len(set(cards.item[cards.class_ == 0]) & set(cards.item[cards.class_ == 1]))
    assert abs(together / (n * draws) - rate**2) < 0.01


def test_the_overlap_is_drawn_evenly_too() -> None:
    counts = np.zeros((10, 2))
    for seed in range(600):
        cards = sample_cards(10, 2, 1.0, seed=seed, overlap=0.3)
        np.add.at(counts, (cards.item[cards.turn == 1], cards.class_[cards.turn == 1]), 1)
    assert np.abs(counts / 600 - 0.3).max() < 5 * np.sqrt(0.3 * 0.7 / 600)


def test_by_item_asks_about_every_class_of_an_item_in_a_row() -> None:
    cards = sample_cards(50, 3, 0.2, by="item")
    assert cards.class_.tolist() == [0, 1, 2] * 10
    items = cards.item.reshape(10, 3)
    assert (items == items[:, :1]).all() and len(set(items[:, 0])) == 10


def test_by_item_overlaps_whole_items() -> None:
    cards = sample_cards(50, 3, 0.4, by="item", overlap=0.3)
    again = cards.item[cards.turn == 1].reshape(-1, 3)
    assert len(again) == len(set(again[:, 0])) == 6
    assert (again == again[:, :1]).all()
    assert cards.class_[cards.turn == 1].tolist() == [0, 1, 2] * 6


def test_more_than_two_opinions_are_of_the_same_questions() -> None:
    ways: tuple[Literal["class", "item"], ...] = ("class", "item")
    for by in ways:
        cards = sample_cards(100, 4, 0.5, by=by, overlap=0.1, opinions=4)
        asked = [
            set(zip(cards.item[cards.turn == k], cards.class_[cards.turn == k], strict=True))
            for k in range(4)
        ]
        assert [len(one) for one in asked] == [200, 20, 20, 20], by
        assert asked[1] == asked[2] == asked[3] < asked[0], by


def test_a_class_stays_for_a_block_and_not_for_ever() -> None:
    for overlap in (0.0, 0.5):
        cards = sample_cards(200, 4, 0.5, overlap=overlap)
        changes = np.flatnonzero(np.diff(cards.class_)) + 1
        runs = np.diff([0, *changes, len(cards.class_)])
        assert len(runs) <= 4 * (100 / BLOCK + np.ceil(len(cards.class_) / 400 * 100 / BLOCK) + 1)
        assert len(runs) >= 8  # not all of a class one after the other
        assert np.median(runs) <= 2 * BLOCK


def test_each_block_is_full_but_the_last_of_its_class() -> None:
    order = np.concatenate([sample_cards(90, 2, 0.5, seed=s).class_ for s in range(5)])
    runs = np.diff([0, *(np.flatnonzero(np.diff(order)) + 1), len(order)])
    assert all(run % 5 == 0 for run in runs)  # blocks of 20, 20 and 5


def test_the_order_is_mixed_within_a_block() -> None:
    cards = sample_cards(1000, 1, 1.0)
    assert abs(np.corrcoef(cards.item, np.arange(1000))[0, 1]) < 0.15


def test_a_seed_says_which() -> None:
    one, same, other = (sample_cards(50, 3, 0.5, seed=s, overlap=0.2) for s in (1, 1, 2))
    assert all((a == b).all() for a, b in zip(one, same, strict=True))
    assert (one.item != other.item).any()


def test_rates_overlaps_and_opinions_that_cannot_be_are_refused() -> None:
    for rate in (0.0, -0.1, 1.01, float("nan"), float("inf")):
        with pytest.raises(ComesError, match=r"rate must be in \(0, 1\]; got"):
            sample_cards(10, 2, rate)
    for overlap in (-0.1, 1.01, float("nan")):
        with pytest.raises(ComesError, match=r"overlap must be in \[0, 1\]; got"):
            sample_cards(10, 2, 0.5, overlap=overlap)
    with pytest.raises(ComesError, match="a rate of 0.01 asks about none of 10 items. Raise it"):
        sample_cards(10, 2, 0.01)
    with pytest.raises(ComesError, match="opinions must be at least 2; got 1"):
        sample_cards(100, 4, 0.5, opinions=1)


def test_more_is_drawn_evenly_among_what_is_left() -> None:
    asked = np.arange(20) < 8
    counts = np.zeros(20)
    for seed in range(600):
        more = sample_more(asked, 0.15, seed)
        assert len(set(more)) == 3
        counts[more] += 1
    assert counts[:8].sum() == 0
    assert np.abs(counts[8:] / 600 - 0.25).max() < 5 * np.sqrt(0.25 * 0.75 / 600)


# Leases and answers


THREADS = 8


@pytest.fixture
def project(projects: Projects) -> Project:
    """Six items, two classes, and every question is asked once."""
    return projects.make()


@pytest.fixture
def ann(project: Project) -> Desk:
    return Desk(project)


@pytest.fixture
def bob(project: Project) -> Desk:
    return Desk(project, "Bob", "tab-of-bob")


@pytest.fixture
def writer(project: Project) -> Iterator[Writer]:
    writer = Writer(project.engine)
    yield writer
    writer.close()


def numbers(asked: list[Card]) -> list[int]:
    return [card["card"] for card in asked]


def questions(asked: list[Card]) -> list[tuple[str, str]]:
    return [(card["name"], card["class"]) for card in asked]


# Leases


def test_a_card_says_what_a_browser_shows(projects: Projects) -> None:
    [card] = Desk(projects.make(["letter"], ["angry"])).ask()
    assert card == {
        "card": card["card"],
        "item": 1,
        "name": "letter",
        "text": "text of letter",
        "class": "angry",
        "class_number": 1,
        "description": "",
        "question": "Is this text about angry?",
        "class_at": 19,
    }


def test_cards_come_in_order_and_nobody_gets_what_another_person_or_tab_has(
    ann: Desk, bob: Desk
) -> None:
    order = [card.id for card in all_cards(ann.project)]
    first, second = ann.ask(), bob.ask()
    assert numbers(first + second) == order and len(first) == len(second) == 6
    assert replace(ann, tab="second").ask() == []
    ann.release()
    bob.release()
    # Whoever takes over a browser does not answer under the name of the last one.
    assert numbers(ann.ask() + replace(ann, annotator="Bob").ask()) == order
    assert replace(ann, tab="second").ask() == bob.ask() == []


def test_a_reload_gets_the_same_cards(ann: Desk, bob: Desk) -> None:
    first = ann.ask()
    bob.ask()
    ann.answer(first[0]["card"])
    assert ann.ask(now=LEASE / 2) == first[1:]
    assert ann.ask(now=LEASE * 1.2) == first[1:]
    carol = Desk(ann.project, "Carol", "tab-of-carol")
    assert not set(numbers(carol.ask(now=LEASE * 2))) & set(numbers(first))  # it was heard of


def test_expired_leases_come_back(ann: Desk, bob: Desk) -> None:
    anns = ann.ask(now=0)
    carol = Desk(ann.project, "Carol", "tab-of-carol")
    assert not set(numbers(bob.ask(now=LEASE))) & set(numbers(anns))
    assert carol.ask(now=LEASE) == []
    assert carol.ask(now=LEASE + 1) == anns


def test_an_answer_keeps_the_other_cards_of_the_tab(ann: Desk, bob: Desk) -> None:
    anns = ann.ask(now=0)
    ann.answer(anns[0]["card"], now=0.8 * LEASE)
    bobs = bob.ask(now=1.5 * LEASE)
    assert bobs and not set(numbers(bobs)) & set(numbers(anns))
    assert Desk(ann.project, "Carol", "tab-of-carol").ask(now=1.5 * LEASE) == []
    assert Desk(ann.project, "Carol", "tab-of-carol").ask(now=1.9 * LEASE) == anns[1:]


def test_a_late_answer_to_a_card_that_nobody_took_is_stored(ann: Desk) -> None:
    card = ann.ask(now=0)[0]["card"]
    ann.answer(card, now=50 * LEASE)
    assert [row.card_id for row in stored(ann.project)] == [card]


def test_a_late_answer_to_a_card_that_another_took_is_refused(ann: Desk, bob: Desk) -> None:
    first, second, *_ = numbers(ann.ask(now=0))
    assert {first, second} <= set(numbers(bob.ask(now=LEASE + 1)))
    bob.answer(second, "maybe", now=LEASE + 1)
    before = stored(ann.project), all_cards(ann.project)
    for card in (first, second):
        refused = refusal(partial(ann.answer, card, now=LEASE + 2))
        assert (refused.status, refused.card) == (409, card)
    assert (stored(ann.project), all_cards(ann.project)) == before


def test_what_was_never_leased_cannot_be_answered(ann: Desk, bob: Desk) -> None:
    anns = ann.ask()
    assert refusal(lambda: bob.answer(anns[0]["card"])).status == 409
    free = ({card.id for card in all_cards(ann.project)} - set(numbers(anns))).pop()
    assert refusal(lambda: ann.answer(free)).status == 409
    assert refusal(lambda: replace(ann, tab="other").answer(anns[0]["card"])).status == 409
    assert refusal(lambda: replace(ann, annotator="Bob").answer(anns[0]["card"])).status == 409
    assert refusal(lambda: ann.answer(10**9)).status == 404
    assert stored(ann.project) == []


def test_a_block_is_of_one_class_and_not_too_long(projects: Projects) -> None:
    project = projects.make(50, ["sky", "sea", "sun"], rate=0.9)
    sizes = []
    for k in range(100):
        asked = Desk(project, f"person {k}", f"tab-{k}").ask()
        if not asked:
            break
        assert len({card["class"] for card in asked}) == 1
        sizes.append(len(asked))
    assert sum(sizes) == 3 * 45 and max(sizes) == BLOCK
    assert len(sizes) <= 3 * 3 + 3  # 45 cards of a class are three blocks, seldom cut


def test_the_grid_has_a_few_items_with_all_their_classes_in_one_order(projects: Projects) -> None:
    project = projects.make(2 * ITEMS_AT_ONCE, ["sky", "sea", "sun"], by="item")
    seen = []
    for k in range(2):
        asked = Desk(project, "Ann", f"tab-{k}").ask(by_item=True)
        assert [card["class"] for card in asked] == ["sky", "sea", "sun"] * ITEMS_AT_ONCE
        assert [card["class_number"] for card in asked] == [1, 2, 3] * ITEMS_AT_ONCE
        items = [card["name"] for card in asked]
        assert items[0::3] == items[1::3] == items[2::3]
        seen += items[::3]
    assert sorted(seen) == [f"t{k}" for k in range(2 * ITEMS_AT_ONCE)]
    assert Desk(project, "Ann", "tab-9").ask(by_item=True) == []


def test_the_grid_gathers_the_classes_of_an_item_that_were_drawn_apart(
    projects: Projects,
) -> None:
    asked = Desk(projects.make(60, ["sky", "sea", "sun"])).ask(by_item=True)
    assert [card["class"] for card in asked] == ["sky", "sea", "sun"] * ITEMS_AT_ONCE
    assert len({card["name"] for card in asked}) == ITEMS_AT_ONCE


def test_an_item_of_many_classes_fills_the_grid_alone(projects: Projects) -> None:
    asked = Desk(projects.make(3, [f"c{k}" for k in range(150)], by="item")).ask(by_item=True)
    assert [card["class_number"] for card in asked] == list(range(1, 151))


def test_the_grid_leaves_what_another_person_has(ann: Desk, bob: Desk) -> None:
    anns = ann.ask()
    bobs = bob.ask(by_item=True)
    assert len(bobs) == ITEMS_AT_ONCE
    assert {card["class"] for card in bobs}.isdisjoint({card["class"] for card in anns})


def test_cards_of_a_project_by_item_come_class_by_class(projects: Projects) -> None:
    """Else a block would be of one or two cards, and the class would change all the time."""
    for n_classes in (1, 3, 40):
        classes = [f"c{k}" for k in range(n_classes)]
        ann = Desk(projects.make(50, classes, by="item", name=f"of-{n_classes}"))
        for k in range(min(n_classes, 4)):
            asked = replace(ann, tab=f"tab-{k}").ask()
            assert {card["class"] for card in asked} == {f"c{k}"}, n_classes
            assert BLOCK // 2 <= len({card["item"] for card in asked}) == len(asked) <= BLOCK


# Ahead, and a closed tab


def test_a_page_asks_ahead_for_what_it_lacks(ann: Desk, bob: Desk) -> None:
    first = ann.ask()
    ahead = ann.ask(has=numbers(first))
    assert len(ahead) == 6 and not set(numbers(ahead)) & set(numbers(first))
    assert ann.ask(has=numbers(first)) == ahead  # also if the reply was lost
    assert ann.ask(has=numbers(first + ahead)) == [] == bob.ask()
    ann.answer(first[0]["card"])
    assert ann.ask(has=numbers(first[1:])) == ahead
    assert ann.ask() == first[1:]  # after a reload


def test_a_tab_that_is_closed_gives_back_its_own_cards_at_once(ann: Desk, bob: Desk) -> None:
    mine = ann.ask()
    ann.ask(has=numbers(mine))
    assert bob.ask() == []
    assert replace(ann, annotator="Bob").release() == 0  # whoever took over the browser
    assert bob.release() == 0
    assert ann.release() == 12 and ann.release() == 0
    assert bob.ask() == mine


def test_who_closed_a_tab_finds_its_cards_first(projects: Projects) -> None:
    project = projects.make(60)
    bob, ann = Desk(project, "Bob", "tab-of-bob"), Desk(project)
    assert bob.ask()
    mine = ann.ask()
    ann.answer(mine[0]["card"])
    bob.release()
    ann.release()
    elsewhere = replace(ann, tab="elsewhere")
    assert elsewhere.ask() == mine[1:]  # though Bob's come before
    assert replace(ann, tab="third").ask()[0] not in mine


def test_what_another_took_from_a_closed_tab_is_theirs(ann: Desk, bob: Desk) -> None:
    mine = ann.ask()
    ann.release()
    assert bob.ask() == mine
    assert refusal(lambda: ann.answer(mine[0]["card"])).status == 409
    assert not set(numbers(ann.ask())) & set(numbers(mine))


def test_an_answer_that_arrives_after_its_tab_was_closed_is_stored(ann: Desk, bob: Desk) -> None:
    first, second, third, *_ = numbers(ann.ask())
    assert ann.release(first, second) == 4
    ann.answer(first)
    ann.answer(third)  # not kept for it, but nobody took it
    assert not {first, second} & set(numbers(bob.ask()))
    assert sorted(row.card_id for row in stored(ann.project)) == sorted([first, third])


def test_two_tabs_that_open_at_once_share_what_was_left(projects: Projects) -> None:
    ann = Desk(projects.make(60))
    left = ann.ask()
    ann.release()
    taken = at_once(lambda k: numbers(replace(ann, tab=f"tab-{k}").ask()))
    assert len([card for one in taken for card in one]) == len({c for one in taken for c in one})
    assert any(set(one) >= set(numbers(left)) for one in taken)


# The overlap


def test_the_overlap_is_asked_of_another_person(projects: Projects) -> None:
    project = projects.make(30, overlap=1.0)
    ann, bob = Desk(project), Desk(project, "Bob", "tab-of-bob")
    assert ann.answer_all() == 60
    assert Desk(project, "Ann", "another tab").ask() == []
    assert bob.answer_all() == 60
    by_person = Counter((row.card_id, row.annotator) for row in stored(project))
    assert len(by_person) == 120
    with project.reading() as connection:
        people = connection.execute(
            select(func.count(answers.c.annotator.distinct()))
            .join(cards, cards.c.id == answers.c.card_id)
            .group_by(cards.c.item_id, cards.c.class_id)
        ).scalars()
        assert set(people) == {2}


def test_a_second_person_gets_whole_items_of_a_project_by_item(projects: Projects) -> None:
    classes = ["sky", "sea", "sun"]
    project = projects.make(10, classes, by="item", overlap=0.4, opinions=3)
    assert Desk(project).answer_all() == 30
    for name in ("Bob", "Eve"):
        desk, seen = Desk(project, name, f"tab-of-{name}"), []
        while asked := desk.ask(by_item=True):
            assert [card["class"] for card in asked] == classes * (len(asked) // 3)
            desk.send(*(new_answer(card["card"], "no") for card in asked))
            seen += [card["name"] for card in asked[::3]]
        assert len(seen) == len(set(seen)) == 4
    assert all(card.is_done for card in all_cards(project))


def test_two_tabs_of_one_person_never_get_the_same_question(projects: Projects) -> None:
    project = projects.make(30, overlap=1.0)
    asked = [q for k in range(20) for q in questions(Desk(project, "Ann", f"tab-{k}").ask())]
    assert len(asked) == len(set(asked)) == 60


def test_what_one_skipped_another_is_asked_but_not_the_same(projects: Projects) -> None:
    project = projects.make(["only"], ["sky"], overlap=1.0)
    ann, bob = Desk(project), Desk(project, "Bob", "tab-of-bob")
    ann.answer(ann.ask()[0]["card"], "skip")
    assert ann.ask() == []
    assert len(bob.ask()) == 1


def test_an_expired_lease_does_not_lead_to_the_same_question_twice(projects: Projects) -> None:
    """Also if a forgotten tab wakes up after its owner answered in another."""
    project = projects.make(["only"], ["sky"], overlap=1.0)
    forgotten, other = Desk(project), Desk(project, tab="other")
    with project.writing() as connection:  # so that the two get one card each
        first, second = (card.id for card in all_cards(project))
        connection.execute(
            cards.update()
            .where(cards.c.id == second)
            .values(tab=forgotten.tab, annotator="Ann", leased_until=1.0)
        )
    assert numbers(other.ask(now=2)) == [first]
    assert forgotten.ask(now=2) == []
    other.answer(first, now=3)
    assert forgotten.ask(now=4) == []
    refused = refusal(lambda: forgotten.answer(second, now=4))
    assert (refused.status, refused.card) == (409, second)
    assert numbers(Desk(project, "Bob", "tab-of-bob").ask(now=4)) == [second]


# Answers


def test_an_answer_is_stored_as_it_was_given(ann: Desk) -> None:
    asked = ann.ask()
    words: list[Answer] = ["no", "maybe", "skip"]
    given = [
        SentAnswer(card["card"], word, f"key-of-{word}", 1.5)
        for card, word in zip(asked, words, strict=False)
    ]
    ann.send(*given, now=7.0)
    rows = stored(ann.project)
    assert [(row.card_id, row.answer, row.key, row.seconds) for row in rows] == [
        (one.card, one.answer, one.key, one.seconds) for one in given
    ]
    assert {(row.annotator, row.tab, row.answered_at, row.undone_at) for row in rows} == {
        ("Ann", ann.tab, 7.0, None)
    }


def test_an_answer_that_comes_twice_is_one(ann: Desk) -> None:
    one, other, *_ = (
        SentAnswer(card["card"], "no", f"key-{card['card']:04}", 1.0) for card in ann.ask()
    )
    ann.send(one, now=1)
    before = stored(ann.project), all_cards(ann.project)
    ann.send(one, now=2)
    ann.send(replace(one, seconds=9.0), now=3)
    assert (stored(ann.project), all_cards(ann.project)) == before
    ann.send(one, other)  # sent again with more, what is new is stored
    assert [row.key for row in stored(ann.project)] == [one.key, other.key]


def test_a_key_belongs_to_one_answer(ann: Desk, bob: Desk) -> None:
    first, second, *_ = numbers(ann.ask())
    ann.send(SentAnswer(first, "no", "key-of-one"))
    for desk, sent in (
        (ann, SentAnswer(first, "maybe", "key-of-one")),
        (ann, SentAnswer(second, "no", "key-of-one")),
        (bob, SentAnswer(first, "no", "key-of-one")),
    ):
        assert refusal(partial(desk.send, sent)).status == 409
    assert [row.answer for row in stored(ann.project)] == ["no"]


def test_a_card_is_answered_once(ann: Desk) -> None:
    card = ann.ask()[0]["card"]
    ann.answer(card)
    refused = refusal(lambda: ann.answer(card, "maybe"))
    assert (refused.status, refused.card) == (409, card)
    assert len(stored(ann.project)) == 1


def test_the_database_itself_has_one_answer_per_card_and_per_key(ann: Desk) -> None:
    first, second, *_ = numbers(ann.ask())
    ann.send(SentAnswer(first, "no", "key-of-one"))
    row = {"annotator": "Ann", "tab": "t", "answer": "no", "answered_at": 0.0}
    for more in ({"card_id": first, "key": "new"}, {"card_id": second, "key": "key-of-one"}):
        with pytest.raises(ComesError, match=r"(?i)unique"), ann.project.writing() as connection:
            connection.execute(insert(answers).values(**row, **more))


def test_a_request_is_stored_whole_or_not_at_all(ann: Desk, bob: Desk) -> None:
    first, second, *_ = numbers(ann.ask())
    foreign = bob.ask()[0]["card"]
    ann.send(SentAnswer(first, "no", "key-of-0"))
    before = stored(ann.project), all_cards(ann.project)
    good = SentAnswer(second, "no", "key-of-1")
    for bad, status in (
        (SentAnswer(foreign, "no", "key-of-2"), 409),
        (SentAnswer(first, "no", "key-of-2"), 409),
        (SentAnswer(first, "maybe", "key-of-0"), 409),
        (SentAnswer(10**9, "no", "key-of-2"), 404),
        (SentAnswer(second, "maybe", "key-of-2"), 422),
    ):
        assert refusal(partial(ann.send, good, bad)).status == status
        assert refusal(partial(ann.send, bad, good)).status == status
        assert (stored(ann.project), all_cards(ann.project)) == before
    assert refusal(lambda: ann.send(good, replace(good, card=foreign))).status == 422


# Undo, skip, progress


def test_what_is_taken_back_is_asked_again(ann: Desk) -> None:
    card = ann.ask()[0]
    key = ann.answer(card["card"])
    assert card not in ann.ask()
    assert ann.undo(key, now=5) == [card]
    assert card in ann.ask()
    ann.answer(card["card"], "maybe")
    rows = stored(ann.project)
    assert [(row.answer, row.undone_at) for row in rows] == [("no", 5.0), ("maybe", None)]


def test_taking_back_twice_is_taking_back_once_and_leaves_a_newer_answer(ann: Desk) -> None:
    card = ann.ask()[0]
    key = ann.answer(card["card"])
    assert ann.undo(key, now=1) == [card]
    before = stored(ann.project), all_cards(ann.project)
    assert ann.undo(key, now=2) == [card]
    assert (stored(ann.project), all_cards(ann.project)) == before
    ann.answer(card["card"], "maybe")
    ann.undo(key)
    assert [row.answer for row in stored(ann.project) if row.undone_at is None] == ["maybe"]
    assert next(row for row in all_cards(ann.project) if row.id == card["card"]).is_done


def test_taking_back_in_another_tab_brings_the_card_there(ann: Desk) -> None:
    """A page that was closed and opened again has a new tab, and still knows its keys."""
    card = ann.ask()[0]
    key = ann.answer(card["card"])
    reopened = replace(ann, tab="reopened")
    assert reopened.undo(key) == [card]
    assert reopened.ask() == [card]
    reopened.answer(card["card"], "maybe")
    assert refusal(lambda: ann.answer(card["card"])).status == 409


def test_what_is_taken_back_is_leased(ann: Desk, bob: Desk) -> None:
    card = ann.ask(now=0)[0]["card"]
    key = ann.answer(card, now=0)
    ann.undo(key, now=10 * LEASE)
    assert card not in numbers(bob.ask(now=11 * LEASE))
    everyone = Desk(ann.project, "Carol", "tab-of-carol").ask(now=11 * LEASE + 1)
    assert card in numbers(everyone)


def test_nobody_takes_back_what_another_said(ann: Desk, bob: Desk) -> None:
    first, second, *_ = numbers(ann.ask())
    key, foreign = ann.answer(first), ann.answer(second)
    own = bob.answer(bob.ask()[0]["card"])
    before = stored(ann.project), all_cards(ann.project)
    for keys in ((key,), (own, foreign), ("no-such-key",), (own, "no-such-key")):
        assert refusal(partial(bob.undo, *keys)).status == 404
    assert (stored(ann.project), all_cards(ann.project)) == before


def test_several_are_taken_back_at_once(ann: Desk) -> None:
    asked = ann.ask()
    keys = [ann.answer(card["card"]) for card in asked[:3]]
    ann.undo(keys[0], now=1)
    assert ann.undo(*keys, keys[0], now=2) == asked[:3]
    assert [row.undone_at for row in stored(ann.project)] == [1.0, 2.0, 2.0]
    assert ann.ask() == asked


def test_an_answer_sent_again_after_it_was_taken_back_stays_taken_back(ann: Desk) -> None:
    """The network may deliver an old copy of a request at any time."""
    card = ann.ask()[0]
    given = SentAnswer(card["card"], "no", "key-of-one")
    ann.send(given)
    ann.undo("key-of-one")
    ann.send(given)
    assert [row.undone_at is None for row in stored(ann.project)] == [False]
    assert card in ann.ask()


def test_a_skipped_card_is_done_for_all(ann: Desk, bob: Desk) -> None:
    card = ann.ask()[0]["card"]
    ann.answer(card, "skip")
    assert card not in numbers(ann.ask(now=2 * LEASE)) + numbers(bob.ask(now=4 * LEASE))


def test_progress_counts_what_stands(ann: Desk, bob: Desk) -> None:
    none = {"total": 12, "done": 0, "mine": 0, "seconds": 0.0, "left": 12}
    assert ann.progress() == none
    first, second, third, *_ = numbers(ann.ask())
    key = ann.answer(first, seconds=2.0)
    ann.answer(second, "skip")
    ann.answer(third, "maybe", seconds=0.5)
    bob.answer(bob.ask()[0]["card"], seconds=9.0)
    assert ann.progress() == {"total": 12, "done": 4, "mine": 3, "seconds": 2.5, "left": 8}
    ann.undo(key)
    assert ann.progress() == {"total": 12, "done": 3, "mine": 2, "seconds": 0.5, "left": 9}
    assert bob.progress() == {"total": 12, "done": 3, "mine": 1, "seconds": 9.0, "left": 9}


def test_what_is_left_for_a_person_leaves_out_second_opinions_on_own_answers(
    projects: Projects,
) -> None:
    project = projects.make(30, overlap=0.5, opinions=3)
    ann, bob = Desk(project), Desk(project, "Bob", "tab-of-bob")
    assert ann.progress()["left"] == 60 + 2 * 30
    while asked := ann.ask():
        ann.send(*(new_answer(card["card"], "no") for card in asked))
        left = ann.progress()["left"]
        everything = questions_left(project, "Ann")
        assert left == everything
    assert ann.progress()["left"] == 0
    assert bob.progress()["left"] == 60


def questions_left(project: Project, annotator: str) -> int:
    """Count open cards about what a person has not answered, by a plain loop."""
    answered = {row.card_id for row in stored(project) if row.annotator == annotator}
    asked = all_cards(project)
    known = {(card.item_id, card.class_id) for card in asked if card.id in answered}
    return sum(not card.is_done and (card.item_id, card.class_id) not in known for card in asked)


# Many at once


def at_once(work: Callable[[int], Any]) -> list[Any]:
    """Run the same in several threads that start together."""
    ready = threading.Barrier(THREADS)

    def started(number: int) -> Any:
        ready.wait()
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(started, range(THREADS)))


def test_no_card_is_leased_twice_from_several_connections(projects: Projects) -> None:
    """Several servers on one database: each has a connection, and nobody waits in a queue."""
    for people in (1, THREADS):
        project = projects.make(60, name=f"of-{people}")

        def work(number: int, people: int = people, project: Project = project) -> list[int]:
            tabs = (Desk(project, f"person {number % people}", f"t{number}-{k}") for k in range(3))
            return [card for tab in tabs for card in numbers(tab.ask())]

        taken = [card for found in at_once(work) for card in found]
        for k in range(20):  # what was locked for a moment
            taken += numbers(Desk(project, "last", f"last-{k}").ask())
        assert sorted(taken) == sorted(card.id for card in all_cards(project)), people


def test_no_question_is_asked_twice_of_a_person_through_the_writer(projects: Projects) -> None:
    for people, expected in ((1, 120), (THREADS, 240)):
        project = projects.make(60, overlap=1.0, name=f"of-{people}")
        writer = Writer(project.engine)

        def lease(desk: Desk, writer: Writer = writer) -> list[Card]:
            command = partial(lease_cards, asker=desk.asker, now=0.0, lease=LEASE)
            asked: list[Card] = writer.submit(command).result()
            return asked

        def work(
            number: int, people: int = people, project: Project = project, lease: Any = lease
        ) -> list[tuple[str, tuple[str, str]]]:
            name = f"person {number % people}"
            desks = [Desk(project, name, f"t{number}-{k}") for k in range(4)]
            return [(name, question) for desk in desks for question in questions(lease(desk))]

        asked = [pair for found in at_once(work) for pair in found]
        writer.close()
        assert len(asked) == len(set(asked)) == expected


def test_an_answer_sent_by_several_threads_is_stored_once(ann: Desk, writer: Writer) -> None:
    given = [SentAnswer(card["card"], "no", f"key-{card['card']:04}") for card in ann.ask()]

    def work(number: int) -> None:
        for one in given if number % 2 else reversed(given):

            def store(connection: Connection, one: SentAnswer = one) -> None:
                store_answers(connection, ann.asker, [one], now=0.0, lease=LEASE)

            writer.submit(store).result()

    at_once(work)
    assert Counter(row.key for row in stored(ann.project)) == Counter(one.key for one in given)


def test_an_answer_sent_over_several_connections_is_stored_once(ann: Desk) -> None:
    given = [SentAnswer(card["card"], "no", f"key-{card['card']:04}") for card in ann.ask()]

    def work(_: int) -> None:
        for one in given:
            try:
                ann.send(one)
            except RefusedError as refused:  # on another server at the same moment
                assert refused.status == 409

    at_once(work)
    assert Counter(row.key for row in stored(ann.project)) == Counter(one.key for one in given)


# Control cards


def with_controls(projects: Projects, share: float = 0.3, n_items: int = 200) -> Project:
    """Return a project that asks about half of its items; controls are among the others."""
    project = projects.make(n_items, ["sky", "sea"], rate=0.5, overlap=0.2)
    asked = {(card.item_id, card.class_id) for card in all_cards(project)}
    rows = [
        (f"t{k}", name, "yes" if k % 2 else "no")
        for j, name in enumerate(["sky", "sea"], 1)
        for k in range(n_items)
        if (k + 1, j) not in asked
    ]
    known = pd.DataFrame(rows, columns=["item", "label", "answer"])
    assert set_controls(project, known, share) == len(rows)
    return project


def right(card: Card) -> Answer:
    return "no" if card["item"] % 2 else "yes"  # t0 is item 1


def test_control_cards_are_mixed_in_and_look_like_others(projects: Projects) -> None:
    project = with_controls(projects)
    before = summarise(project)
    shown: list[Card] = []

    def note(card: Card) -> Answer:
        shown.append(card)
        return right(card)

    desks = [Desk(project, name, f"tab-of-{name}") for name in ("ann", "bob")]
    for desk in desks:
        desk.answer_all(note)
    made = [card for card in all_cards(project) if card.source == CONTROL]
    n_drawn = before.n_cards
    low, high = binom.ppf([1e-4, 1 - 1e-4], n_drawn, 0.3)
    assert low <= len(made) <= high
    assert all(card.is_done for card in made) and len(shown) == n_drawn + len(made)
    assert len({frozenset(card) for card in shown}) == 1  # the same fields, and none of them secret
    assert not {"source", "known", "turn"} & set(shown[0])
    for name in ("ann", "bob"):  # nobody gets one twice
        own = [(card.item_id, card.class_id) for card in made if card.annotator == name]
        assert len(own) == len(set(own))
    # They count for nothing but the person.
    summary = summarise(project)
    assert (summary.n_cards, summary.n_done, summary.n_saved) == (n_drawn, n_drawn, before.n_saved)
    assert summary.n_answers == n_drawn == len(stored(project)) - len(made)
    assert desks[0].progress()["total"] == desks[0].progress()["done"] == n_drawn
    for person in summary.people:
        own_made = sum(card.annotator == person.name for card in made)
        assert (person.n_controls, person.n_right) == (own_made, own_made)
    asked = {(f"t{card.item_id - 1}", ["sky", "sea"][card.class_id - 1]) for card in made}
    assert not asked & set(states(collect_answers(project)))


def test_control_answers_are_not_exported(projects: Projects, tmp_path: Path) -> None:
    project = with_controls(projects)
    Desk(project).answer_all(right)
    assert (
        export_answers(project, tmp_path / "answers.csv")["answers"] == summarise(project).n_answers
    )
    assert CONTROL not in set(pd.read_csv(tmp_path / "answers.csv")["source"])


def test_wrong_answers_are_counted(projects: Projects) -> None:
    project = with_controls(projects)
    Desk(project).answer_all(lambda _: "no")
    [ann] = summarise(project).people
    n_yes = sum(card.known == "yes" for card in all_cards(project))
    assert ann.n_controls - ann.n_right == n_yes > 5


def test_an_open_question_is_no_control_yet(projects: Projects) -> None:
    """Else who answered the control card could never answer the card that is open."""
    project = projects.make(40, ["sky"])
    known = pd.DataFrame({"item": [f"t{k}" for k in range(40)], "label": "sky", "answer": "no"})
    set_controls(project, known, 0.5)
    desk = Desk(project)
    assert len(desk.ask()) == 20
    desk.answer_all()
    assert summarise(project).n_done == 40


def test_what_is_held_gets_no_further_controls(projects: Projects) -> None:
    project = with_controls(projects)
    desk = Desk(project)
    first = desk.ask()
    n_cards = len(all_cards(project))
    assert desk.ask() == first and len(all_cards(project)) == n_cards
    with project.reading() as connection:
        assert show_cards(connection, [card["card"] for card in first]) == first


def test_by_item_controls_are_of_the_items(projects: Projects) -> None:
    project = projects.make(40, ["sky", "sea"], rate=0.5, by="item")
    asked = {card.item_id for card in all_cards(project)}
    rows = [(f"t{k}", name, "no") for k in range(40) for name in ("sky", "sea") if k + 1 in asked]
    set_controls(project, pd.DataFrame(rows, columns=["item", "label", "answer"]), 0.5)
    Desk(project).answer_all()
    assert summarise(project).n_done == 40  # every control is about an open card, or an own one


def test_no_share_is_no_control(projects: Projects) -> None:
    project = with_controls(projects, share=0.0)
    Desk(project).answer_all()
    assert CONTROL not in {card.source for card in all_cards(project)}


def test_wrong_controls_are_refused(projects: Projects, tmp_path: Path) -> None:
    project = projects.make(3, ["sky"])
    table = pd.DataFrame({"item": ["t0"], "label": ["sky"], "answer": ["maybe"]})
    with pytest.raises(ComesError, match="must be no or yes; got 'maybe'"):
        set_controls(project, table)
    with pytest.raises(ComesError, match=r"must be in \[0, 0.5\]; got 0.9"):
        set_controls(project, table.assign(answer="no"), 0.9)
