"""The annotation page in a real browser, by keyboard, as a person uses it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from annotation_browser import (
    PHONE,
    answer,
    card_of,
    digit_project,
    is_wide,
    open_page,
    say_name,
    scene_project,
    settle,
    skip_introduction,
    stored,
    wait,
    wait_for_item,
)
from comes.annotate import Project, create_project, export_answers, serve_in_thread
from comes.annotate.cards import Answer
from comes.annotate.web.server import find_links
from comes.cli import app
from comes.datasets import Dataset, open_dataset
from comes.datasets.matrices import write_npz
from projects import Desk, states

pytestmark = pytest.mark.needs("chromium")


@pytest.fixture
def scenes(tmp_path: Path) -> Iterator[tuple[Project, Dataset]]:
    project, truth = digit_project(tmp_path, 300)
    yield project, truth
    project.engine.dispose()


@pytest.mark.smoke
def test_a_person_joins_answers_by_keys_and_undoes_and_the_export_has_it(
    browser: Any, tmp_path: Path
) -> None:
    project, _ = scene_project(tmp_path, n=4, n_classes=2)
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        said = {answer(page, key): word for key, word in (("x", "no"), ("Space", "maybe"))}
        taken_back = answer(page, "y")
        page.keyboard.press("z")
        wait_for_item(page, taken_back[0])
        said[answer(page, "x")] = "no"
        said[answer(page, "y")] = "yes"
        settle(page)
        assert page.complaints == []
    assert list(said)[2] == taken_back and len(said) == 4
    export_answers(project, tmp_path / "answers.csv")
    assert states(open_dataset(tmp_path / "answers.csv")) == said


@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")  # of few exclusions
def test_twenty_cards_undo_reload_a_second_person_export_and_fit(
    browser: Any, scenes: tuple[Project, Dataset], tmp_path: Path
) -> None:
    project, truth = scenes
    relevant, items = truth.known_relevant(), truth.items
    assert items is not None

    def right(item: str, label: str) -> Answer:
        return "maybe" if relevant[items.index(item), int(label)] else "no"

    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        asked = []
        for _ in range(20):
            item, label = card_of(page)
            key = "Space" if right(item, label) == "maybe" else "x"
            asked.append(answer(page, key))
        assert len(set(asked)) == 20
        assert len({label for _, label in asked}) == 1  # one class in a row
        settle(page)
        assert stored(project) == [("Ada", right(*card)) for card in asked]
        assert "20 of 300 cards, 20 by you" in page.inner_text("#counts")
        assert "per minute" in page.inner_text("#pace")

        page.keyboard.press("z")
        wait_for_item(page, asked[-1][0])
        assert "You said" in page.inner_text("#previous")
        settle(page)
        assert len(stored(project)) == 19
        page.reload()
        wait(page)
        assert card_of(page) == asked[-1]  # the open card of this tab
        page.keyboard.press("z")  # undo reaches back over the reload
        wait_for_item(page, asked[-2][0])
        settle(page)
        assert len(stored(project)) == 18
        for _ in range(2):
            answer(page, "s")
        settle(page)
        assert stored(project)[-2:] == [("Ada", "skip")] * 2

        second = open_page(browser, address, "Grace")
        assert card_of(second) not in asked
        assert card_of(second) != card_of(page)
        theirs = [answer(second, "x") for _ in range(3)]
        settle(second)
        assert not set(theirs) & set(asked)
        assert [who for who, _ in stored(project)].count("Grace") == 3
        assert page.complaints == second.complaints == []

    # The rest by others, then into training.
    Desk(project, "Eva", "tab-of-Eva").answer_all(lambda card: right(card["name"], card["class"]))
    counts = export_answers(project, tmp_path / "answers.parquet")
    assert counts["asked"] >= 290 - 80  # but for what is skipped, or held by the open pages
    write_npz(truth, tmp_path / "X.npz")
    data = open_dataset(tmp_path / "answers.parquet", features=tmp_path / "X.npz")
    assert data.candidates is not None
    of_eva_and_ada = ~data.candidates & relevant
    assert of_eva_and_ada.sum() <= 3  # Grace said no without looking
    command = ["fit", str(tmp_path / "answers.parquet"), "--features", str(tmp_path / "X.npz")]
    result = CliRunner().invoke(app, [*command, "--epochs", "1", "-o", str(tmp_path / "model")])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "model").is_dir()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_all_without_scrolling_sideways(
    browser: Any, scenes: tuple[Project, Dataset], scheme: str
) -> None:
    project, _ = scenes
    options: dict[str, Any] = {
        "viewport": PHONE,
        "has_touch": True,
        "is_mobile": True,
        "color_scheme": scheme,
    }
    with serve_in_thread(project) as address:
        page = open_page(browser, address, **options)
        for path in ("/", "/grid", "/lead", "/join"):
            page.goto(address + path)
            if path in ("/", "/grid"):
                wait(page)
            assert not is_wide(page), path
        page.goto(address)
        wait(page)
        for button in ("#no", "#maybe", "#yes"):
            box = page.locator(button).bounding_box()
            assert box["height"] >= 48
            assert box["y"] + box["height"] <= PHONE["height"]
        assert not page.locator("#no kbd").is_visible()
        before = card_of(page)
        page.locator("#no").tap()
        wait_for_item(page, before[0], gone=True)
        settle(page)
        assert stored(project) == [("Ada", "no")]


def test_two_tabs_of_one_person_have_other_cards(
    browser: Any, scenes: tuple[Project, Dataset]
) -> None:
    project, _ = scenes
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        other = page.context.new_page()
        other.goto(address)
        wait(other)
        mine, theirs = ([answer(tab, "x") for _ in range(3)] for tab in (page, other))
        assert not set(mine) & set(theirs)
        settle(page)
        assert len(stored(project)) == 6


def test_a_tab_stops_when_another_takes_another_name(
    browser: Any, scenes: tuple[Project, Dataset]
) -> None:
    project, _ = scenes
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        other = page.context.new_page()
        other.goto(f"{address}/join")
        say_name(other, "Bob")
        skip_introduction(other)
        wait(other)
        page.keyboard.press("x")
        wait(page, "stopped")
        assert "reload" in page.inner_text("#alarm")
        assert stored(project) == []  # neither as Bob nor lost
        other.goto(f"{address}/join")
        say_name(other, "Ada")
        wait(other)
        page.reload()
        wait(page)
        settle(page)
        assert stored(project) == [("Ada", "no")]


def test_a_held_key_answers_once_and_a_focused_button_too(
    browser: Any, scenes: tuple[Project, Dataset]
) -> None:
    project, _ = scenes
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        page.keyboard.down("x")
        for _ in range(5):
            page.keyboard.down("x")  # the browser marks these as repeated
        page.keyboard.up("x")
        settle(page)
        wait(page)
        assert len(stored(project)) == 1
        page.locator("#no").focus()
        page.keyboard.press("Space")  # says what the button says, once
        settle(page)
        page.wait_for_timeout(200)
        assert len(stored(project)) == 2
        page.keyboard.press("Control+x")
        page.wait_for_timeout(100)
        settle(page)
        assert len(stored(project)) == 2


def test_a_link_with_the_token_on_another_site_lets_one_in(
    browser: Any, scenes: tuple[Project, Dataset]
) -> None:
    project, _ = scenes
    token = (find_links(project, "0.0.0.0") or {})["annotator"]
    with serve_in_thread(project, needs_token=True) as address:
        page = browser.new_context().new_page()
        page.goto(address)
        assert "A token is needed" in page.inner_text("h1")
        page.goto("about:blank")
        page.set_content(f'<a href="{address}/?token={token}">our annotation</a>')
        page.click("a")
        say_name(page, "Ada")
        assert token not in page.url
        skip_introduction(page)
        wait(page)
        assert not page.evaluate("document.cookie")  # no script can read the token


def test_names_and_texts_are_never_markup(browser: Any, tmp_path: Path) -> None:
    evil = "<script>document.title='owned'</script><img src=x onerror=alert(1)>"
    items, classes = tmp_path / "items.csv", tmp_path / "classes.csv"
    pd.DataFrame({"item": [evil], "text": [evil]}).to_csv(items, index=False)
    pd.DataFrame({"class": [evil], "description": [evil]}).to_csv(classes, index=False)
    project = create_project(tmp_path / "project", items, classes, rate=1)
    with serve_in_thread(project) as address:
        page = open_page(browser, address, name=evil[:60])
        page.on("dialog", lambda dialog: pytest.fail("a script ran"))
        assert page.inner_text("#class") == evil
        assert page.inner_text("#item") == evil
        page.goto(f"{address}/grid")
        wait(page)
        page.keyboard.press("1")
        page.keyboard.press("Enter")
        wait(page, "finished")
        page.goto(f"{address}/lead")
        assert evil in page.inner_text("main")
        assert "owned" not in page.title()
        assert page.locator("main img, main script").count() == 0
        assert page.complaints == []
