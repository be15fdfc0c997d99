"""Columns of answers that are read once: what is added later, undone, or comes late is seen."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import insert

from comes.annotate import Project, add_chosen_cards, add_random_cards, reopen_skipped_cards
from comes.annotate import summary as ledger_module
from comes.annotate.schema import answers, cards, people
from comes.annotate.summary import WORDS, Ledger, Said
from projects import Desk, Projects, all_cards, new_answer, stored


def as_values(said: Said) -> dict[str, Any]:
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in vars(said).items()
        if name != "question"  # only which are the same matters
    }


def check(ledger: Ledger, project: Project) -> Said:
    """Return what a ledger knows, after comparing it with plain loops."""
    said = ledger.read()
    by_number = {card.id: card for card in all_cards(project)}
    expected = [row for row in stored(project) if row.undone_at is None]
    assert said.id.tolist() == [row.id for row in expected]
    for k, row in enumerate(expected):
        card = by_number[row.card_id]
        assert (said.item[k] + 1, said.class_[k] + 1) == (card.item_id, card.class_id)
        assert ledger_module.SOURCES[said.source[k]] == card.source
        assert (said.people[said.person[k]], WORDS[said.word[k]]) == (row.annotator, row.answer)
        assert said.at[k] == row.answered_at
        assert np.isnan(said.seconds[k]) if row.seconds is None else said.seconds[k] == row.seconds
    same: dict[int, tuple[int, int]] = {}
    for k, number in enumerate(said.question.tolist()):
        assert same.setdefault(number, (said.item[k], said.class_[k])) == (
            said.item[k],
            said.class_[k],
        )
    assert len(same) == len(set(zip(said.item.tolist(), said.class_.tolist(), strict=True)))
    np.testing.assert_equal(as_values(said), as_values(Ledger(project).read()))
    return said


def test_what_is_new_undone_or_changed_is_seen(projects: Projects) -> None:
    project = projects.make(30, rate=0.5, overlap=0.3)
    ledger, ann, bob = Ledger(project), Desk(project), Desk(project, "Bob", "tab-of-bob")
    assert len(check(ledger, project).id) == 0
    first = ann.ask()
    keys = [ann.answer(card["card"], "no", now=1.0, seconds=2.0) for card in first[:3]]
    assert len(check(ledger, project).id) == 3
    ann.undo(keys[1])
    assert len(check(ledger, project).id) == 2
    bob.send(*(new_answer(card["card"], "skip") for card in bob.ask()), now=5.0)
    check(ledger, project)
    reopen_skipped_cards(project)
    check(ledger, project)
    asked = {(card.item_id, card.class_id) for card in all_cards(project)}
    free = [f"t{k}" for k in range(30) if (k + 1, 1) not in asked]
    add_chosen_cards(project, pd.DataFrame({"item": free, "label": "sky"}))
    check(ledger, project)
    ann.answer_all(lambda card: "yes" if card["item"] % 2 else "maybe")
    check(ledger, project)
    add_random_cards(project, ["sky"], 0.5, seed=0)  # what a model chose now counts as drawn
    check(ledger, project)
    with project.writing() as connection:
        row = {"name": "Bob", "joined_at": 0.0, "left_out_at": 1.0}
        connection.execute(insert(people).values(row))
    said = check(ledger, project)
    assert [name for name, out in zip(said.people, said.left_out, strict=True) if out] in (
        ["Bob"],
        [],
    )


def test_a_commit_that_comes_late_is_seen(
    projects: Projects, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server took a smaller number, and stored its answer after a larger one."""
    monkeypatch.setattr(ledger_module, "LATE", 5)
    for late in (1, 10_000):
        project = projects.make(20, ["sky"], name=f"late-{late}")
        ledger = Ledger(project)
        free = [card.id for card in all_cards(project)]
        order = (20_000, 20_001, 20_000 - late, 20_003)
        for number, card in zip(order, free, strict=False):
            row: dict[str, Any] = {"id": number, "card_id": card, "key": f"k{number}"}
            row |= {"annotator": "Ann", "tab": "t", "answer": "no", "answered_at": 1.0}
            with project.writing() as connection:
                connection.execute(insert(answers).values(**row))
                connection.execute(cards.update().where(cards.c.id == card).values(is_done=True))
            check(ledger, project)


def test_only_what_is_new_is_read(projects: Projects, monkeypatch: pytest.MonkeyPatch) -> None:
    project = projects.make(40, ["sky"])
    desk, ledger = Desk(project), Ledger(project)
    ledger.read()
    read: list[int] = []
    real = ledger_module._fetch_all

    def fetch(*arguments: Any) -> list[Any]:
        rows = real(*arguments)
        read.append(len(rows))
        return rows

    monkeypatch.setattr(ledger_module, "_fetch_all", fetch)
    for card in desk.ask()[:5]:
        desk.answer(card["card"])
        ledger.read()
    assert read == [1] * 5
    ledger.read()
    assert read == [1] * 5


def test_all_is_read_in_blocks(projects: Projects, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "ROWS_AT_ONCE", 7)
    project = projects.make(20)
    Desk(project).answer_all()
    said = check(Ledger(project), project)
    assert len(said.id) == 40 and said.n_cards_of.tolist() == [20, 20]
