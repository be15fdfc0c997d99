"""The grid in a real browser: three answers for every class, and none for what was not seen."""

from pathlib import Path
from typing import Any

import pytest

from annotation_browser import (
    ON_PHONE,
    THINGS,
    open_page,
    scene_project,
    settle,
    stored,
    stored_pairs,
    wait,
    wait_for_item,
)
from comes.annotate import Project, create_project, serve_in_thread
from comes.annotate.cards import By
from comes.annotate.schema import cards

pytestmark = pytest.mark.needs("chromium")


# Wait until classes have not moved for a quarter of a second.
SCROLLED = """() => new Promise((resolve) => {
  const classes = document.querySelector("#classes");
  let [top, since] = [null, 0];
  const look = () => {
    if (classes.scrollTop !== top) [top, since] = [classes.scrollTop, performance.now()];
    if (performance.now() - since > 250) resolve();
    else requestAnimationFrame(look);
  };
  look();
})"""


def open_grid(browser: Any, address: str, **options: Any) -> Any:
    page = open_page(browser, address, **options)
    page.goto(f"{address}/grid")
    wait(page)
    return page


def said_of(page: Any) -> dict[str, str]:
    """Return the answer of every class on the page; empty where it has none."""
    found: dict[str, str] = page.evaluate(
        "() => Object.fromEntries([...document.querySelectorAll('.row')].map(row => "
        "[row.querySelector('.name').innerText, row.dataset.said]))"
    )
    return found


def test_classes_by_keyboard(browser: Any, tmp_path: Path) -> None:
    project, _ = scene_project(tmp_path, n=4, n_classes=5, by="item")
    with serve_in_thread(project) as address:
        page = open_grid(browser, address)
        first = page.inner_text("#item-name")
        assert list(said_of(page)) == list(THINGS[:5])
        page.keyboard.press("Enter")  # not before every class has an answer
        assert "5 classes have no answer yet" in page.inner_text("#notice")
        assert stored(project) == []
        page.keyboard.press("3")  # yes
        for _ in range(3):
            page.keyboard.press("4")  # yes, cannot tell, no
        page.keyboard.press("5")
        page.keyboard.press("5")
        assert said_of(page) == {
            "boat": "",
            "house": "",
            "tree": "yes",
            "sun": "no",
            "car": "maybe",
        }
        for _ in range(4):
            page.keyboard.press("ArrowUp")
        page.keyboard.press("x")  # the class on top, and on to the next one without an answer
        page.keyboard.press("n")  # the rest
        expected = {"boat": "no", "house": "no", "tree": "yes", "sun": "no", "car": "maybe"}
        assert said_of(page) == expected
        page.keyboard.press("Enter")
        wait_for_item(page, first, gone=True)
        wait(page)
        settle(page)
        assert stored_pairs(project) == {(first, thing): said for thing, said in expected.items()}
        assert set(said_of(page).values()) == {""}
        page.keyboard.press("z")
        wait_for_item(page, first)
        settle(page)
        assert stored(project) == []
        assert said_of(page) == expected  # as it was
        page.keyboard.press("3")
        page.keyboard.press("s")  # what is answered counts, the rest is skipped
        wait_for_item(page, first, gone=True)
        settle(page)
        assert stored_pairs(project)[(first, "tree")] == "maybe"
        assert page.complaints == []


def test_keys_keep_their_meaning_where_classes_are_missing(browser: Any, tmp_path: Path) -> None:
    """A second person is asked about some classes of an item; key 4 is the fourth class still."""
    project, _ = scene_project(tmp_path, n=2, n_classes=5, by="item")
    with project.writing() as connection:
        connection.execute(cards.delete().where(cards.c.class_id.in_([1, 3])))
    with serve_in_thread(project) as address:
        page = open_grid(browser, address)
        assert list(said_of(page)) == ["house", "sun", "car"]
        page.keyboard.press("4")
        page.keyboard.press("1")  # boat is not asked about
        assert said_of(page) == {"house": "", "sun": "yes", "car": ""}
        hints = page.locator(".row kbd").all_inner_texts()
        assert hints == ["2", "4", "5"]


def test_on_a_phone_what_was_not_seen_has_no_answer(browser: Any, tmp_path: Path) -> None:
    project, _ = scene_project(tmp_path, n=3, n_classes=8, by="item")
    with serve_in_thread(project) as address:
        page = open_grid(browser, address, **ON_PHONE)
        more = page.locator("#more")
        assert "more class" in more.inner_text()  # a cue that there are more
        page.locator("#rest-no").tap()
        said = said_of(page)
        n_seen = sum(answer == "no" for answer in said.values())
        assert 1 <= n_seen < 8
        page.locator("#done").tap(force=True)
        page.wait_for_timeout(300)
        assert stored(project) == []
        while more.is_visible():
            more.tap()
            page.evaluate(SCROLLED)
        assert list(said_of(page)) == list(THINGS)
        last = page.locator(".row").last
        last.scroll_into_view_if_needed()
        for answer in ("no", "maybe", "yes"):
            button = last.locator(f".choice.{answer}")
            assert button.bounding_box()["height"] >= 40
            button.tap()
            assert said_of(page)["person"] == answer
        page.locator("#rest-no").tap()
        page.locator("#done").tap()
        settle(page)
        assert sorted(word for _, word in stored(project)) == ["no"] * 7 + ["yes"]


def test_the_tab_is_there_only_where_items_have_several_classes(
    browser: Any, tmp_path: Path
) -> None:
    ways: dict[By, int] = {"class": 0, "item": 1}
    for by, n_tabs in ways.items():
        project, _ = scene_project(tmp_path / by, n=3, by=by)
        with serve_in_thread(project) as address:
            page = open_page(browser, address)
            assert page.locator('nav a[href="/grid"]').count() == n_tabs
            page.goto(f"{address}/lead")
            assert page.locator('nav a[href="/grid"]').count() == n_tabs


def test_questions_of_their_own_are_shown_in_the_grid(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "texts.csv").write_text("item,text\n1,a goal\n")
    (tmp_path / "classes.csv").write_text("class,question\nsport,\nrain,Does it rain?\n")
    sources = tmp_path / "texts.csv", tmp_path / "classes.csv"
    project: Project = create_project(tmp_path / "project", *sources, rate=1, by="item")
    with serve_in_thread(project) as address:
        page = open_grid(browser, address)
        assert page.inner_text("#heading") == "What is this text about?"
        assert page.locator(".row .description").all_inner_texts() == ["Does it rain?"]
