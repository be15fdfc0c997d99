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
    wait_for_words,
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
        wait(page)
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


def refuse_first(route: Any) -> None:
    card = route.request.post_data_json["answers"][0]["card"]
    route.fulfill(status=409, json={"error": "too late", "card": card})


def test_the_grid_goes_on_after_its_cards_were_fetched_again(browser: Any, tmp_path: Path) -> None:
    project, _ = scene_project(tmp_path, n=6, n_classes=2, by="item")
    with serve_in_thread(project) as address:
        page = open_grid(browser, address)
        page.route("**/api/answers", refuse_first, times=1)
        with page.expect_response("**/api/cards"):
            page.keyboard.press("n")
            page.keyboard.press("Enter")
        wait(page)
        page.wait_for_timeout(300)  # until the reply is taken over
        item = page.inner_text("#item-name")
        page.keyboard.press("n")
        page.keyboard.press("Enter")
        wait_for_item(page, item, gone=True)
        settle(page)
        assert {(item, thing): "no" for thing in THINGS[:2]}.items() <= stored_pairs(
            project
        ).items()


def test_a_class_that_is_off_the_screen_is_shown_before_it_is_answered(
    browser: Any, tmp_path: Path
) -> None:
    project, _ = scene_project(tmp_path, n=2, n_classes=8, by="item")
    with serve_in_thread(project) as address:
        page = open_grid(browser, address, **ON_PHONE)
        item = page.inner_text("#item-name")
        for key in "1234567s":
            page.keyboard.press(key)
        wait_for_item(page, item, gone=True)
        wait(page)
        page.keyboard.press("z")
        wait_for_item(page, item)
        wait(page)
        last = page.locator(".row").last
        page.keyboard.press("x")
        page.evaluate(SCROLLED)
        assert said_of(page)["person"] == ""
        assert last.evaluate("row => row.getBoundingClientRect().bottom <= innerHeight")
        page.keyboard.press("x")
        assert said_of(page)["person"] == "no"


def test_comments_and_guidelines_are_about_the_marked_class(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "guide").mkdir()
    (tmp_path / "guide" / "tree.md").write_text("with leaves")
    guide = tmp_path / "guide"
    project, _ = scene_project(tmp_path, n=2, by="item", guidelines=guide)
    with serve_in_thread(project) as address:
        page = open_grid(browser, address)
        page.keyboard.press("g")
        wait_for_words(page, "#guide-text", "no guidelines for this class")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        wait_for_words(page, "#guide", "with leaves")
        page.keyboard.press("c")
        assert page.inner_text("#note-about").startswith("tree")


WINDOWS = {"tablet": (800, 1000), "phone on its side": (844, 390), "large one": (932, 430)}


@pytest.mark.parametrize("path", ["/", "/grid"])
@pytest.mark.parametrize("window", WINDOWS)
def test_open_guidelines_leave_all_in_its_place(
    browser: Any, tmp_path: Path, window: str, path: str
) -> None:
    (tmp_path / "guide").mkdir()
    (tmp_path / "guide" / "boat.md").write_text("what floats")
    project, _ = scene_project(tmp_path, n=2, by="item", guidelines=tmp_path / "guide")
    width, height = WINDOWS[window]
    with serve_in_thread(project) as address:
        page = open_page(browser, address, viewport={"width": width, "height": height})
        page.goto(address + path)
        wait(page)
        parts = page.locator(".view, .side, .actions, .tools, .progress")
        places = "parts => parts.map((part) => JSON.stringify(part.getBoundingClientRect()))"
        before = parts.evaluate_all(places)
        page.keyboard.press("g")
        guide = page.locator("#guide").bounding_box()
        assert guide["x"] + guide["width"] <= width and guide["width"] >= 200
        if (window, path) == ("tablet", "/"):  # where there is room for a column
            assert page.locator(".view").bounding_box()["width"] > 300
        else:
            assert parts.evaluate_all(places) == before
