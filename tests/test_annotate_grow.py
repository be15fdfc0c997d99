"""Projects that grow: items, classes, and questions drawn at random or by a model."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sqlalchemy import update

from comes.annotate import (
    Project,
    add_classes,
    add_items,
    collect_answers,
    create_project,
    estimate_shares,
    export_answers,
    open_project,
    summarise,
)
from comes.annotate.grow import (
    _estimate,
    add_active_cards,
    add_chosen_cards,
    add_random_cards,
    count_new_answers,
    count_rounds,
    find_open_pairs,
    read_batches,
    reopen_skipped_cards,
)
from comes.annotate.schema import answers, cards, people
from comes.answers import AnswerRates
from comes.answers.questions import Round, draw_questions, estimate_share
from comes.datasets import open_dataset
from comes.errors import ComesError
from projects import Card, Desk, Projects, all_cards, chosen_pairs

# Items and classes


def write_items(folder: Path, names: list[str]) -> Path:
    path = folder / "more.csv"
    pd.DataFrame({"item": names, "text": [f"text of {name}" for name in names]}).to_csv(path)
    return path


def write_classes(folder: Path, text: str) -> Path:
    path = folder / "more.txt"
    path.write_text(text, encoding="utf-8")
    return path


def counts_by_class(project: Project, first: int = 1) -> list[int]:
    numbers = [card.class_id for card in all_cards(project) if card.item_id >= first]
    return [numbers.count(k) for k in range(1, len(project.class_names) + 1)]


def test_new_items_are_asked_about_at_the_rate_of_each_class(
    projects: Projects, tmp_path: Path
) -> None:
    project = projects.make(50, ["sky", "sea"], rate=0.2)
    add_random_cards(project, ["sea"], 0.3, seed=1)  # half of the items
    before = [(card.id, card.item_id, card.class_id, card.position) for card in all_cards(project)]
    more = write_items(tmp_path, [f"n{k}" for k in range(100)])
    assert add_items(project, more) == {"items_added": 100, "left_out": 0, "cards_added": 70}
    assert counts_by_class(project, first=51) == [20, 50]
    after = [(card.id, card.item_id, card.class_id, card.position) for card in all_cards(project)]
    assert after[: len(before)] == before  # what was drawn stays as it was
    assert project.item_names[50:53] == ["n0", "n1", "n2"]
    Desk(project).answer_all()
    assert len(collect_answers(project).items or []) == 150


def test_few_new_items_keep_the_rate_on_average(projects: Projects, tmp_path: Path) -> None:
    project = projects.make(40, ["sky"], rate=0.25)
    for number in range(60):
        add_items(project, write_items(tmp_path, [f"new {number}"]), seed=number)
    (n_asked,) = counts_by_class(project, first=41)
    assert abs(n_asked / 60 - 0.25) < 4 * (0.25 * 0.75 / 60) ** 0.5


def test_known_names_are_left_out_and_a_rate_may_be_given(
    projects: Projects, tmp_path: Path
) -> None:
    project = projects.make(10, rate=0.5)
    more = write_items(tmp_path, ["t3", "new", "t4"])
    counts = {"items_added": 1, "left_out": 2, "cards_added": 2}
    assert add_items(project, more, rate=1) == counts
    assert add_items(project, more) == {"items_added": 0, "left_out": 3, "cards_added": 0}
    with pytest.raises(ComesError, match=r"rate must be in \(0, 1\]; got 2"):
        add_items(project, more, rate=2)


def test_a_project_by_item_asks_all_classes_of_new_items(
    projects: Projects, tmp_path: Path
) -> None:
    project = projects.make(10, ["sky", "sea", "sun"], rate=0.5, by="item")
    add_items(project, write_items(tmp_path, [f"n{k}" for k in range(20)]))
    new = [card for card in all_cards(project) if card.item_id > 10]
    assert len(new) == 30 and len({card.item_id for card in new}) == 10


def test_another_open_project_notices(projects: Projects, tmp_path: Path) -> None:
    """As a server that runs has the project open, in another process."""
    project = projects.make(5)
    served = projects.keep(open_project(project.folder))
    assert (len(served.item_names), len(served.class_names)) == (5, 2)
    add_items(project, write_items(tmp_path, ["new"]))
    add_classes(project, write_classes(tmp_path, "zebra\n"))
    assert served.item_names[-1] == "new" and served.class_names[-1] == "zebra"
    assert any(card["class"] == "zebra" for card in Desk(served).ask(size=1000)) or any(
        card.class_id == 3 for card in all_cards(served)
    )


def test_new_classes_are_asked_about_at_the_projects_rate(
    projects: Projects, tmp_path: Path
) -> None:
    project = projects.make(50, ["sky", "sea"], rate=0.2)
    more = write_classes(tmp_path, "zebra\nsea\nokapi\n")
    assert add_classes(project, more) == {"classes_added": 2, "left_out": 1, "cards_added": 20}
    assert project.class_names == ["sky", "sea", "zebra", "okapi"]
    assert counts_by_class(project) == [10, 10, 10, 10]
    add_classes(project, write_classes(tmp_path, "lynx\n"), rate=0.5)
    assert counts_by_class(project)[-1] == 25
    Desk(project).answer_all()
    assert collect_answers(project).label_names == ["sky", "sea", "zebra", "okapi", "lynx"]


def test_images_may_come_from_another_folder(tmp_path: Path, projects: Projects) -> None:
    for folder, colours in (("photos", ["red", "blue"]), ("more", ["green", "red"])):
        (tmp_path / folder).mkdir()
        for colour in colours:
            Image.new("RGB", (4, 4), colour).save(tmp_path / folder / f"{colour}.png")
    classes = write_classes(tmp_path, "warm\n")
    sources = tmp_path / "photos", classes
    project = projects.keep(create_project(tmp_path / "project", *sources, rate=1))
    assert project.images is not None and len(project.images) == 2
    assert add_items(project, tmp_path / "more") == {
        "items_added": 1,
        "left_out": 1,
        "cards_added": 1,
    }
    again = projects.keep(open_project(tmp_path / "project"))
    for one in (project, again):
        assert one.images is not None and one.item_names == ["blue.png", "red.png", "green.png"]
        assert one.images[2][0, 0].tolist() == [0, 128, 0]


def test_texts_do_not_go_into_a_project_of_images(tmp_path: Path, projects: Projects) -> None:
    (tmp_path / "photos").mkdir()
    Image.new("RGB", (4, 4), "red").save(tmp_path / "photos" / "red.png")
    sources = tmp_path / "photos", write_classes(tmp_path, "warm\n")
    project = projects.keep(create_project(tmp_path / "project", *sources, rate=1))
    with pytest.raises(ComesError, match="holds texts, and project is a project of images"):
        add_items(project, write_items(tmp_path, ["a"]))


def test_items_that_earlier_rounds_could_not_draw_are_a_batch_of_their_own(
    projects: Projects, tmp_path: Path
) -> None:
    project = projects.make(10, rate=0.2)
    add_items(project, write_items(tmp_path, ["a", "b"]))  # the first draw reaches these, too
    add_random_cards(project, ["sky"], 0.25, seed=0)
    add_items(project, write_items(tmp_path, ["c", "d", "e"]))
    with project.reading() as connection:
        assert read_batches(connection, 15) == [(1, 12), (13, 15)]


def test_a_class_that_is_not_there_is_told_how_to_add(projects: Projects) -> None:
    project = projects.make(10, rate=0.2)
    with pytest.raises(ComesError, match=r"no class 'zebra'.*--new-classes FILE"):
        add_random_cards(project, ["zebra"], 0.1, seed=0)


# Questions


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
        (
            [("t1", "sky")],
            ["item", "class"],
            "must have the columns 'item', 'label'; 'label' is missing",
        ),
        (
            [("t1", "sky")],
            ["name", "label"],
            "must have the columns 'item', 'label'; 'item' is missing",
        ),
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


# Questions drawn by a model


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
    (project.folder / "more.csv").write_text("item,text\nnew,news\n")
    add_items(project, project.folder / "more.csv")
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
