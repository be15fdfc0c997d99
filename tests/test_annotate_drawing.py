"""Cards that a model draws: stored with their probabilities, so that estimates stay right."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import update

from comes.annotate import (
    Project,
    add_active_cards,
    add_chosen_cards,
    add_items,
    add_random_cards,
    collect_answers,
    count_new_answers,
    count_rounds,
    estimate_shares,
    export_answers,
    find_open_pairs,
)
from comes.annotate.grow import _estimate
from comes.annotate.schema import answers, cards, people
from comes.answers import AnswerRates
from comes.answers.questions import Round, draw_questions, estimate_share
from comes.datasets import open_dataset
from comes.errors import ComesError
from projects import Card, Desk, Projects, all_cards, chosen_pairs

N = 80


def relevance(n: int = N) -> Any:
    """Return how a model sees two classes: doubtful about the sky in the first quarter."""
    return np.stack([np.where(np.arange(n) < N // 4, 0.6, 0.05), np.full(n, 0.3)], axis=1)


def draw(project: Project, count: int = 16, seed: int = 0, n: int = N) -> int:
    eta = relevance(n)
    drawn = draw_questions(eta, count, is_open=find_open_pairs(project), seed=seed)
    return add_active_cards(project, drawn, eta, AnswerRates(np.full(2, 0.8), np.full(2, 0.8)))


def shares(project: Project) -> Any:
    """Return the estimates by class."""
    return {row["class"]: row for row in estimate_shares(project).to_dict("records")}


def truth(card: Card) -> Any:
    """Say yes about the sky in the first quarter of the items, and no elsewhere."""
    is_sky = card["class"] == "sky" and int(card["name"][1:]) < N // 4
    return "yes" if is_sky else "no"


def test_cards_keep_how_they_were_drawn_and_come_next(projects: Projects) -> None:
    project = projects.make(N, rate=0.1)
    is_open = find_open_pairs(project)
    assert is_open.sum() == 2 * N - 16
    eta = relevance()
    drawn = draw_questions(eta, 16, is_open=is_open, seed=3)
    assert add_active_cards(project, drawn, eta) == 1
    active = [card for card in all_cards(project) if card.source == "active"]
    assert len(active) == 16 and all(card.round == 1 for card in active)
    assert all_cards(project)[:16] == active  # they are asked before the others
    for card in active:
        place = card.item_id - 1, card.class_id - 1
        assert card.probability == pytest.approx(drawn.inclusion[place])
        assert card.expected == pytest.approx(eta[place])
    assert {(c.item_id - 1, c.class_id - 1) for c in active} == set(
        zip(drawn.row.tolist(), drawn.label.tolist(), strict=True)
    )
    assert not find_open_pairs(project)[drawn.row, drawn.label].any()
    assert count_rounds(project) == 1


def test_a_draw_that_others_have_overtaken_is_refused(projects: Projects) -> None:
    project = projects.make(N, rate=0.1)
    eta, is_open = relevance(), find_open_pairs(project)
    drawn = draw_questions(eta, 16, is_open=is_open)
    add_random_cards(project, ["sky"], 0.1, seed=1)
    with pytest.raises(ComesError, match=r"questions were added while these were drawn.*again"):
        add_active_cards(project, drawn, eta)


def test_what_a_model_drew_is_no_fair_sample_and_exported_with_its_probability(
    projects: Projects, tmp_path: Any
) -> None:
    project = projects.make(N, rate=0.1)
    draw(project)
    Desk(project).answer_all(truth)
    active = {
        (project.item_names[c.item_id - 1], project.class_names[c.class_id - 1]): c.probability
        for c in all_cards(project)
        if c.source == "active"
    }
    assert chosen_pairs(collect_answers(project)) == set(active)
    for ending in (".csv", ".parquet", ".npz", ".jsonl"):
        path = tmp_path / f"answers{ending}"
        assert export_answers(project, path)["chosen_by_model"] == 16
        assert chosen_pairs(open_dataset(path)) == set(active)
    table = pd.read_csv(tmp_path / "answers.csv").query("source == 'active'")
    pairs = zip(table["item"], table["label"], strict=True)
    written = dict(zip(pairs, table["probability"], strict=True))
    assert written == pytest.approx(active, abs=1e-6)


def test_shares_of_the_first_draw_are_plain(projects: Projects) -> None:
    project = projects.make(N, rate=0.5)
    Desk(project).answer_all(truth)
    table = shares(project)
    asked = [card for card in all_cards(project) if card.class_id == 1]
    share = np.mean([card.item_id <= N // 4 for card in asked])
    assert table["sky"]["yes"] == pytest.approx(share)
    assert table["sky"]["no"] == pytest.approx(1 - share)
    assert table["sky"]["yes_lower"] < 0.25 < table["sky"]["yes_upper"]
    assert table["sea"]["yes"] == 0 and table["sea"]["yes_upper"] < 0.1
    assert [row["asked"] for row in table.values()] == [40, 40]


def check_estimates(projects: Projects, count: int, held: float) -> None:
    """Estimates of many projects are right on average, though the plain share is not.

    At least a share ``held`` of the intervals holds the truth.
    """
    found, plain = [], []
    for seed in range(count):
        project = projects.make(N, rate=0.1, seed=seed, name=f"p{seed}")
        draw(project, seed=seed)
        if seed % 2:  # a random round later, and one more by the model
            add_random_cards(project, ["sky"], 0.1, seed=seed)
            draw(project, seed=100 + seed)
        Desk(project).answer_all(truth)
        found.append(shares(project)["sky"])
        asked = [card.item_id <= N // 4 for card in all_cards(project) if card.class_id == 1]
        plain.append(np.mean(asked))
    yes = np.array([row["yes"] for row in found])
    assert abs(yes.mean() - 0.25) < 3 * yes.std() / count**0.5
    inside = [row["yes_lower"] <= 0.25 <= row["yes_upper"] for row in found]
    assert np.mean(inside) >= held
    assert np.mean(plain) > 0.25 + 3 * np.std(plain) / count**0.5  # the doubtful ones are first


@pytest.mark.long
def test_estimates_are_right_on_average_where_the_plain_share_is_not(projects: Projects) -> None:
    check_estimates(projects, 12, held=0.75)


def test_a_random_draw_may_meet_what_a_model_drew(projects: Projects) -> None:
    """Such a card becomes a part of the fair sample, and keeps how it was first drawn."""
    project = projects.make(N, rate=0.1)
    draw(project, count=60)
    before = {(c.item_id, c.class_id): c for c in all_cards(project) if c.source == "active"}
    add_random_cards(project, ["sky"], 0.7, seed=0)
    met = [c for c in all_cards(project) if c.source == "random" and c.expected is not None]
    assert met
    for card in met:
        first = before[card.item_id, card.class_id]
        assert (card.round, card.probability) == (1, first.probability)
    new = [c for c in all_cards(project) if c.round == 2]
    n_open = N - 8 - sum(key[1] == 1 for key in before)
    assert [c.probability for c in new] == pytest.approx([len(new) / n_open] * len(new))


def test_new_items_are_estimated_apart_from_rounds_that_could_not_draw_them(
    projects: Projects, tmp_path: Any
) -> None:
    project = projects.make(N, rate=0.5)
    draw(project)
    names = [f"t{k}" for k in range(N, N + 20)]
    file = tmp_path / "more.csv"
    pd.DataFrame({"item": names, "text": "new"}).to_csv(file)
    add_items(project, file, rate=1)
    draw(project, n=N + 20)
    Desk(project).answer_all(lambda card: "yes" if int(card["name"][1:]) >= N else "no")
    table = shares(project)
    assert table["sky"]["yes"] == pytest.approx(0.2, abs=0.03)  # the new ones, and no other
    assert table["sky"]["yes_lower"] <= 0.2 <= table["sky"]["yes_upper"]


def test_missing_answers_of_people_left_out_and_controls_do_not_count(projects: Projects) -> None:
    project = projects.make(N, rate=0.5)
    ann, bob = Desk(project), Desk(project, "Bob", "tab-of-bob")
    for desk, word in ((ann, "no"), (bob, "yes")):
        asked = desk.ask()
        for card in asked:
            desk.answer(card["card"], word)  # type: ignore[arg-type]
    with project.writing() as connection:
        connection.execute(people.insert().values(name="Bob", joined_at=0.0, left_out_at=1.0))
    table = shares(project).values()
    assert sum(row["asked"] for row in table) == 20
    assert {row["yes"] for row in table if row["asked"]} == {0.0}
    said = collect_answers(project).known_answers()
    assert said.excluded.sum() == 20 and not said.confirmed.any()
    with project.writing() as connection:
        connection.execute(update(cards).values(source="control", known="no"))
    with pytest.raises(ComesError, match="has no answers yet"):
        export_answers(project, project.folder / "answers.csv")


def test_the_lead_decides(projects: Projects) -> None:
    project = projects.make(4, ["sky"], overlap=1.0)
    Desk(project).answer_all(lambda _: "no")
    Desk(project, "Bob", "tab-of-bob").answer_all(lambda _: "yes")
    assert collect_answers(project).known_answers().doubtful.sum() == 4
    with project.writing() as connection:
        card = connection.execute(
            cards.insert().values(
                item_id=1, class_id=1, turn=2, source="random", position=99, is_done=True
            )
        ).inserted_primary_key
        assert card is not None
        connection.execute(
            answers.insert().values(
                card_id=card[0], annotator="Lee", tab="lead", key="k", answer="yes", answered_at=1.0
            )
        )
    said = collect_answers(project).known_answers()
    assert said.confirmed.sum() == 1 and said.doubtful.sum() == 3
    assert said.annotations is not None and len(said.annotations) == 7


def test_new_answers_are_counted_from_the_last_round(projects: Projects) -> None:
    project = projects.make(N, rate=0.1)
    desk = Desk(project)
    for card in desk.ask()[:3]:
        desk.answer(card["card"], "no", now=50.0)
    assert count_new_answers(project) == 3
    eta = relevance()
    drawn = draw_questions(eta, 4, is_open=find_open_pairs(project))
    add_active_cards(project, drawn, eta, learned_at=60.0)
    assert count_new_answers(project) == 0
    for number, card in enumerate(desk.ask()[:4]):
        desk.answer(card["card"], "skip" if number else "maybe", now=70.0)
    assert count_new_answers(project) == 1


def test_what_a_model_chose_without_chance_estimates_nothing(projects: Projects) -> None:
    project = projects.make(N, ["sky"], rate=0.25)
    first = {project.item_names[card.item_id - 1] for card in all_cards(project)}
    left = [name for name in project.item_names[: N // 4] if name not in first]
    add_chosen_cards(project, pd.DataFrame({"item": left, "label": "sky"}))
    Desk(project).answer_all(truth)
    share = np.mean([int(name[1:]) < N // 4 for name in first])
    table = shares(project)
    assert table["sky"]["yes"] == pytest.approx(max(share, 0.25))  # all yes are known now
    assert table["sky"]["yes_lower"] >= 0.25


def test_a_round_draws_among_the_items_that_no_earlier_round_asked_about() -> None:
    """By hand: of 20 items one is a control, three were drawn first, then two by a model."""
    table = {
        "answer": ["no", "yes", "no", None, "no", "yes"],
        "round": [-1.0, 0.0, 0.0, 0.0, 1.0, 1.0],
        "probability": [np.nan] * 4 + [0.5, 0.25],
        "expected": [np.nan] * 4 + [0.1, 0.6],
    }
    kept = [SimpleNamespace(round=1, spread=30.0, relevance=4.0, no_rate=0.5, yes_rate=0.75)]
    values = np.array([1.0, 0.0, 1.0, np.nan, 1.0, 0.0])  # 1 where the answer is no
    rounds = [
        Round(values[:1], np.full(1, np.nan)),
        Round(values[1:4], np.full(3, 3 / 19)),
        Round(values[4:], np.array([0.5, 0.25]), np.array([0.45, 0.2]), 0.5 * (16 - 4), 30.0),
    ]
    found = _estimate(pd.DataFrame(table), 20, kept, "no")
    assert found == pytest.approx(estimate_share(rounds, 20))
