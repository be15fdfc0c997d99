"""Rounds that a model draws: trained in a process of its own, beside the server."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import delete

from comes.annotate import Project, add_classes, create_project, open_project
from comes.annotate.grow import count_rounds
from comes.annotate.schema import cards, rounds
from comes.errors import ComesError
from comes.workflows.annotate import draw_round, learn_in_rounds
from comes.workflows.fit import fit_model
from projects import Desk, Projects, all_cards

pytestmark = pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")  # few answers
SHORT = {"epochs": 1, "hidden": 8, "n_networks": 1, "no_rate": 0.9, "yes_rate": 0.9}
WORDS = {"rain": "wet clouds and an umbrella", "goal": "a team that scored in the cup"}


@pytest.fixture
def project(tmp_path: Path, projects: Projects) -> Project:
    """A project of 120 short texts about two things, a quarter of the questions asked."""
    rng = np.random.default_rng(0)
    kinds = rng.choice(list(WORDS), 120).tolist()
    texts = [f"{WORDS[kind]} number {rng.integers(9)}" for kind in kinds]
    table = pd.DataFrame({"item": [f"{kind} {k}" for k, kind in enumerate(kinds)], "text": texts})
    table.to_csv(tmp_path / "texts.csv", index=False)
    (tmp_path / "classes.txt").write_text("rain\ngoal\n")
    sources = tmp_path / "texts.csv", tmp_path / "classes.txt"
    made = create_project(tmp_path / "news", *sources, rate=0.25)
    return projects.keep(made)


def say(card: dict[str, Any]) -> Any:
    return "yes" if card["name"].startswith(card["class"]) else "no"


def test_a_round_is_drawn_by_a_model_of_the_answers(project: Project) -> None:
    Desk(project).answer_all(say)
    drawn = draw_round(project, 20, settings=SHORT, seed=4)
    assert (drawn["round"], drawn["learned_from"], drawn["cards_added"]) == (1, 60, 20)
    assert 0 < drawn["bits_per_answer"] <= 1
    active = [card for card in all_cards(project) if card.source == "active"]
    assert len(active) == 20
    assert all(0 < card.probability <= 1 and 0 <= card.expected <= 1 for card in active)
    assert [card.class_id for card in active].count(1) == 10  # every class has its share
    assert draw_round(project, 20, settings=SHORT)["round"] == 2


def test_the_same_answers_and_seed_draw_the_same(project: Project) -> None:
    Desk(project).answer_all(say)
    drawn = []
    for seed in (1, 1, 2):
        draw_round(project, 10, settings=SHORT, seed=seed)
        drawn.append({(c.item_id, c.class_id) for c in all_cards(project) if c.round == 1})
        with project.writing() as connection:  # take it back
            connection.execute(delete(cards).where(cards.c.round == 1))
            connection.execute(delete(rounds))
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_model_may_be_given_and_need_not_know_every_class(
    project: Project, tmp_path: Path
) -> None:
    Desk(project).answer_all(say)
    fit_model(project.folder, {**SHORT, "progress": False}, output=tmp_path / "model")
    (tmp_path / "more.txt").write_text("travel\n")
    add_classes(project, tmp_path / "more.txt")
    drawn = draw_round(project, 30, model=tmp_path / "model")
    own = [card for card in all_cards(project) if card.round == drawn["round"]]
    assert [card.class_id for card in own].count(3) == 10
    unknown = {card.expected for card in own if card.class_id == 3}
    assert unknown == {0.5}  # without a model, every answer tells as much


def test_features_may_be_given(project: Project, tmp_path: Path) -> None:
    Desk(project).answer_all(say)
    X = np.random.default_rng(0).normal(size=(120, 3)).astype(np.float32)
    np.savez(tmp_path / "X.npz", X=X, items=np.array(project.item_names))
    drawn = draw_round(project, 10, features=tmp_path / "X.npz", settings=SHORT)
    assert drawn["cards_added"] == 10


def test_without_answers_or_open_pairs_there_is_no_round(
    project: Project, projects: Projects
) -> None:
    with pytest.raises(ComesError, match="has no answers yet"):
        draw_round(project, 10)
    full = projects.make(4, name="full")
    Desk(full).answer_all()
    with pytest.raises(ComesError, match="nothing is left to ask"):
        draw_round(full, 10)


def test_the_loop_waits_for_answers_and_goes_on_where_it_was(
    project: Project, projects: Projects, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing: list[int] = []

    def answer(seconds: float) -> None:  # what people do while the loop waits
        assert seconds == 0.5
        Desk(project).answer_all(say, now=1.0e12)

    monkeypatch.setattr("comes.workflows.annotate.time.sleep", answer)
    options: dict[str, Any] = {"settings": SHORT, "wait": 0.5}
    options |= {"on_wait": missing.append}
    told = list(learn_in_rounds(project, 15, rounds=1, **options))
    assert count_rounds(project) == 1
    again = projects.keep(open_project(project.folder))
    told += learn_in_rounds(again, 15, rounds=2, **options)  # started again
    assert [one["round"] for one in told] == [1, 2, 3] and count_rounds(project) == 3
    assert told[0]["learned_from"] == 60 and missing == [15]
    assert [one["cards_added"] for one in told] == [15, 15, 15]


def test_a_loop_that_is_interrupted_leaves_the_project_as_it_is(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("comes.workflows.annotate.time.sleep", interrupt)
    before = len(all_cards(project))
    with pytest.raises(KeyboardInterrupt):
        next(learn_in_rounds(project, 15))
    assert len(all_cards(project)) == before and count_rounds(project) == 0
