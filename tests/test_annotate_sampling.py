"""Which questions are asked, and in what order."""

from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comes.annotate import (
    sample_cards,
)
from comes.annotate.cards import BLOCK, Cards, sample_more
from comes.errors import ComesError


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
