"""A project that grows: new items and classes get cards at the rates the project has."""

from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from comes.annotate import (
    Project,
    add_classes,
    add_items,
    add_random_cards,
    collect_answers,
    collect_data,
    create_project,
    open_project,
)
from comes.annotate.grow import read_batches
from comes.errors import ComesError
from projects import Desk, Projects, all_cards


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
    assert collect_data(project).label_names == ["sky", "sea", "zebra", "okapi", "lynx"]


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
