"""More cards: drawn at random, chosen by a model, or skipped before."""

from typing import Any

import pandas as pd
import pytest

from comes.annotate import (
    add_chosen_cards,
    add_random_cards,
    reopen_skipped_cards,
    summarise,
)
from comes.errors import ComesError
from projects import Desk, Projects, all_cards


def pairs(project: Any, source: str) -> list[tuple[str, str]]:
    return [
        (project.item_names[row.item_id - 1], project.class_names[row.class_id - 1])
        for row in all_cards(project)
        if row.source == source
    ]


def test_more_cards_ask_nothing_twice(projects: Projects) -> None:
    project = projects.make(20, ["sky", "sea", "sun"], rate=0.2, overlap=0.5)
    before = all_cards(project)
    assert add_random_cards(project, ["sky", "sun"], 0.3, 0) == 12
    assert add_random_cards(project, ["sky", "sky"], 0.5, 0) == 10
    after = all_cards(project)
    assert after[: len(before)] == before  # and they come after what waits already
    assert {row.source for row in after} == {"random"}
    first = [(row.item_id, row.class_id) for row in after if row.turn == 0]
    assert len(first) == len(set(first))
    assert [sum(class_ == j for _, class_ in first) for j in (1, 2, 3)] == [20, 4, 10]
    with pytest.raises(ComesError, match="asks about 2 more items, but only 0 are left. Lower it"):
        add_random_cards(project, ["sea", "sky"], 0.1, 0)
    assert all_cards(project) == after


def test_seeds_and_classes_draw_differently(projects: Projects) -> None:
    drawn = []
    for number, seed in enumerate((0, 0, 1)):
        project = projects.make(200, name=f"p{number}", rate=0.005)
        before = set(pairs(project, "random"))
        add_random_cards(project, ["sky", "sea"], 0.1, seed)
        new = set(pairs(project, "random")) - before
        drawn.append([{item for item, name in new if name == c} for c in ("sky", "sea")])
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[0][0] != drawn[0][1]


def test_cards_that_a_model_chose(projects: Projects) -> None:
    project = projects.make(10, rate=0.3)
    known = pairs(project, "random")
    new = [(f"t{k}", c) for k in range(10) for c in ("sky", "sea")]
    new = [pair for pair in new if pair not in known][:5]
    table = pd.DataFrame([*new, *known[:2], new[0]], columns=["item", "label"])
    assert add_chosen_cards(project, table) == 5
    assert pairs(project, "model") == new
    assert pairs(project, "random") == known
    assert add_chosen_cards(project, table) == 0


def test_what_a_model_chose_has_the_same_chance_of_being_drawn(projects: Projects) -> None:
    project = projects.make(10, ["sky"], rate=0.1)
    chosen = [f"t{k}" for k in range(10)]
    table = pd.DataFrame({"item": chosen, "label": "sky"})
    assert add_chosen_cards(project, table) == 9
    assert add_random_cards(project, ["sky"], 0.5, 0) == 5
    assert len(all_cards(project)) == 10  # all had a card already
    assert len(pairs(project, "random")) == 6
    assert len(pairs(project, "model")) == 4


def test_what_was_skipped_can_be_asked_again(projects: Projects) -> None:
    project = projects.make(3, ["sky"])
    desk = Desk(project)
    first, second, third = (card["card"] for card in desk.ask())
    desk.answer(first, "skip")
    desk.answer(second, "no")
    assert reopen_skipped_cards(project) == 1
    assert {card["card"] for card in desk.ask()} == {third}  # its own come first
    desk.answer(third, "skip")
    assert [card["card"] for card in desk.ask()] == [first]
    assert reopen_skipped_cards(project) == 1
    assert summarise(project).n_done == 1


def test_cards_that_a_model_chose_wrongly(projects: Projects) -> None:
    project = projects.make(10, rate=0.3)
    before = all_cards(project)
    for rows, columns, message in (
        ([("t1", "sky")], ["item", "class"], "need the columns item and label; label is missing"),
        ([("t1", "sky")], ["name", "label"], "need the columns item and label; item is missing"),
        ([("t1", "sky"), ("z", "sky")], ["item", "label"], "the project has no item 'z'"),
        ([("t1", "moon")], ["item", "label"], "no class 'moon'; it has 'sky', 'sea'"),
    ):
        with pytest.raises(ComesError, match=message):
            add_chosen_cards(project, pd.DataFrame(rows, columns=columns))
    with pytest.raises(ComesError, match="the project has no class 'moon'; it has 'sky', 'sea'"):
        add_random_cards(project, ["sky", "moon"], 0.1, 0)
    with pytest.raises(ComesError, match=r"rate must be in \(0, 1\]"):
        add_random_cards(project, ["sky"], 1.5, 0)
    assert all_cards(project) == before
