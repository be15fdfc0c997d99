"""Control cards: mixed in, never twice, never exported; and what people did with them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from typer.testing import CliRunner

from comes.annotate import Project, collect_answers, export_answers, set_controls, summarise
from comes.annotate.cards import Answer, show_cards
from comes.annotate.schema import CONTROL
from comes.annotate.summary import bound_both_sides
from comes.cli import app
from comes.errors import ComesError
from projects import Card, Desk, Projects, all_cards, states, stored


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


def test_wrong_answers_are_counted_with_an_interval(projects: Projects) -> None:
    project = with_controls(projects)
    Desk(project).answer_all(lambda _: "no")
    [ann] = summarise(project).people
    n_yes = sum(card.known == "yes" for card in all_cards(project))
    assert ann.n_controls - ann.n_right == n_yes > 5
    assert (ann.right_lower, ann.right_upper) == bound_both_sides(ann.n_right, ann.n_controls)
    assert ann.right_lower < ann.n_right / ann.n_controls < ann.right_upper
    assert "many control cards wrong" in ann.warnings


def test_the_interval_holds_nineteen_times_in_twenty() -> None:
    for share, n in ((0.9, 30), (0.5, 12), (0.99, 200)):
        weights = binom.pmf(np.arange(n + 1), n, share)
        bounds = [bound_both_sides(k, n) for k in range(n + 1)]
        held = [lower <= share <= upper for lower, upper in bounds]
        assert weights[held].sum() >= 0.95
    assert bound_both_sides(0, 0) == (0.0, 1.0)


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


def test_the_command(projects: Projects, tmp_path: Path) -> None:
    project = projects.make(3, ["sky"])
    (tmp_path / "known.csv").write_text("item,label,answer\nt0,sky,yes\n")
    words = ["annotate", "control", str(project.folder), str(tmp_path / "known.csv")]
    result = CliRunner().invoke(app, [*words, "--share", "0.1"])
    assert result.exit_code == 0 and "control cards: 1" in result.stdout
