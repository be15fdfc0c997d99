"""The question in a real browser: three answers, changes of class, long texts, the introduction."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from annotation_browser import (
    ON_PHONE,
    answer,
    card_of,
    open_page,
    scene_project,
    settle,
    stored,
    stored_pairs,
    wait,
    wait_for_item,
)
from browser import launch_browser
from comes.annotate import Project, create_project, serve_in_thread

pytestmark = pytest.mark.needs("chromium")

LONG = "A sentence that goes on. " * 300


# Press a key that ends a class; at the moment of the change, before a person could look, press
# others and click. Return what was on the screen, and how long nothing was taken.
PRESS_AT_CHANGE = """(key) => new Promise((resolve) => {
  const find = (place) => document.querySelector(place);
  const middle = (element) => {
    const box = element.getBoundingClientRect();
    return box.x + box.width / 2;
  };
  const press = (key, code) =>
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key, code, bubbles: true }));
  const page = find("#page");
  const seen = {};
  let start = null;
  new MutationObserver((_, observer) => {
    const { guarded, state } = page.dataset;
    if (guarded === "true") {
      start ??= performance.now();
      for (let k = 0; k < 5; k += 1) press("y", "KeyY");
      find("#maybe").click();
      if (state !== "shown") return;
      const now = find("#change .new");
      Object.assign(seen, {
        disabled: find("#no").getAttribute("aria-disabled"),
        notice: find("#notice").innerText,
        new: now.innerText,
        size: parseFloat(getComputedStyle(now).fontSize),
        offset: middle(now) - middle(find("#stage")),
      });
    } else if (start !== null) {
      observer.disconnect();
      resolve({ ...seen, milliseconds: performance.now() - start });
    }
  }).observe(page, { attributeFilter: ["data-guarded", "data-state"] });
  press(key, "Key" + key.toUpperCase());
})"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launch_browser() as opened:
        yield opened


def text_project(home: Path, n: int, text: str = "some words", **asking: Any) -> Project:
    """Return a project that asks about two classes of a few texts."""
    rows = "".join(f'{k},"{text} {k}"\n' for k in range(n))
    (home / "texts.csv").write_text(f"item,text\n{rows}")
    (home / "classes.txt").write_text("sport\nart\n")
    sources = home / "texts.csv", home / "classes.txt"
    return create_project(home / "project", *sources, rate=1, **asking)


def test_the_plain_question_is_answered_by_three_keys(browser: Any, tmp_path: Path) -> None:
    project, truth = scene_project(tmp_path, n=4)
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        asked = []
        for _ in range(15):
            item, thing = card_of(page)
            article = "an" if thing[0] in "aeiou" else "a"
            question = page.inner_text("#heading")
            assert question == f"Is there {article} {thing} in this picture?"
            asked.append(answer(page, "y" if thing in truth[item] else "x"))
        settle(page)
        expected = {card: "yes" if card[1] in truth[card[0]] else "no" for card in asked}
        assert stored_pairs(project) == expected
        item, thing = card_of(page)
        page.keyboard.press("Space")
        wait(page, "finished")
        assert stored_pairs(project)[(item, thing)] == "maybe"
        assert page.inner_text("#heading") == "All done, thank you!"
        assert "16\nanswers by you" in page.inner_text(".numbers")
        assert page.complaints == []


def test_without_yes_there_is_no_such_button_and_its_key_says_why(
    browser: Any, tmp_path: Path
) -> None:
    project = text_project(tmp_path, 3, asks_yes=False, question="Could it be {class}?")
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        assert page.inner_text("#heading") == f"Could it be {card_of(page)[1]}?"
        assert page.locator("#yes").count() == 0
        page.keyboard.press("y")
        page.wait_for_function("() => document.querySelector('#notice').innerText.includes('Yes')")
        assert stored(project) == []
        answer(page, "Space")
        settle(page)
        assert stored(project) == [("Ada", "maybe")]


def test_after_a_change_of_class_nothing_is_taken_for_half_a_second(
    browser: Any, tmp_path: Path
) -> None:
    project = text_project(tmp_path, 3)
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        first = card_of(page)[1]
        for _ in range(2):
            answer(page, "x")
        guard = page.evaluate(PRESS_AT_CHANGE, "x")  # the last of this class
        assert guard["disabled"] == "true" and guard["milliseconds"] >= 499
        assert "One moment" in guard["notice"]
        wait(page)
        assert guard["new"] != first and guard["size"] >= 32 and abs(guard["offset"]) < 5
        settle(page)
        assert stored(project) == [("Ada", "no")] * 3
        answer(page, "y")
        settle(page)
        assert stored(project)[-1] == ("Ada", "yes")
        page.keyboard.press("z")
        page.keyboard.press("z")  # back over the change, which is one too
        page.wait_for_function("c => document.querySelector('#class').innerText === c", arg=first)
        assert page.locator("#change").is_visible()


def test_space_scrolls_a_long_text_before_it_answers(browser: Any, tmp_path: Path) -> None:
    project = text_project(tmp_path, 3, LONG)
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        before = card_of(page)
        assert page.locator("#below").is_visible()
        more_below = (
            "(({ scrollHeight, clientHeight, scrollTop }) => "
            "scrollHeight - clientHeight - scrollTop > 8)(document.querySelector('#stage'))"
        )
        n_presses = 0
        while page.evaluate(more_below):
            page.keyboard.press("Space")
            n_presses += 1
            assert card_of(page) == before and stored(project) == []
        page.wait_for_selector("#below", state="hidden")
        assert n_presses >= 2
        answer(page, "Space")
        settle(page)
        assert stored(project) == [("Ada", "maybe")]
        assert page.locator("#below").is_visible()  # the next text begins at its top
        answer(page, "x")  # an answer that is no scrolling is taken at once


def test_the_last_answer_leaves_a_brief_trace(browser: Any, tmp_path: Path) -> None:
    with serve_in_thread(text_project(tmp_path, 4)) as address:
        page = open_page(browser, address)
        page.evaluate("""() => {
            window.traces = [];
            const trace = document.querySelector("#trace");
            new MutationObserver(() => window.traces.push(trace.innerText))
              .observe(trace, { childList: true, characterData: true, subtree: true });
        }""")
        answer(page, "y")
        page.wait_for_function(
            "() => window.traces.includes('✓ Yes') && window.traces.at(-1) === ''"
        )


def test_the_introduction_practises_and_stores_nothing(browser: Any, tmp_path: Path) -> None:
    project = text_project(tmp_path, 3)
    with serve_in_thread(project) as address:
        page = open_page(browser, address, is_new=True)
        said = page.locator("#intro-feedback")
        page.keyboard.press("y")
        assert "look again" in said.inner_text()
        assert not page.locator("#intro-next").is_visible()
        for key, word in (("x", "No: right"), ("Space", "Cannot tell: right"), ("y", "Yes: right")):
            page.keyboard.press(key)
            assert word in said.inner_text()
            page.keyboard.press("Enter")
        assert "Several classes may be true" in page.inner_text("#introduction")
        page.keyboard.press("Enter")
        wait(page)
        assert stored(project) == []
        page.reload()
        wait(page)
        assert not page.locator("#introduction").is_visible()  # once
        page.keyboard.press("?")
        page.locator("#introduce").click()
        assert page.locator("#introduction").is_visible()
        page.keyboard.press("Escape")
        answer(page, "x")
        settle(page)
        assert stored(project) == [("Ada", "no")]


def test_the_introduction_of_a_project_without_yes(browser: Any, tmp_path: Path) -> None:
    with serve_in_thread(text_project(tmp_path, 3, asks_yes=False)) as address:
        page = open_page(browser, address, is_new=True)
        for key in ("x", "Space", "Space"):
            page.keyboard.press(key)
            assert "right" in page.inner_text("#intro-feedback")
            page.keyboard.press("Enter")
        assert page.inner_text("#intro-question") == "Ready"


@pytest.mark.parametrize(
    ("way", "said"), [((-150, 0), "no"), ((150, 0), "yes"), ((0, -150), "maybe"), ((40, 0), None)]
)
def test_a_swipe_answers_on_a_phone(
    browser: Any, tmp_path: Path, way: tuple[int, int], said: str | None
) -> None:
    project, _ = scene_project(tmp_path, n=3)
    with serve_in_thread(project) as address:
        page = open_page(browser, address, **ON_PHONE)
        assert "← No" in page.inner_text(".swipes")
        name = page.inner_text("#item-name")
        touch = page.context.new_cdp_session(page)
        points = [(200 + way[0] * k / 5, 380 + way[1] * k / 5) for k in range(6)]
        for k, (x, y) in enumerate(points):
            kind = "touchStart" if k == 0 else "touchMove"
            touch.send(
                "Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]}
            )
        assert page.locator("#swipe").is_visible() == (said is not None)
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        if said:
            wait_for_item(page, name, gone=True)
        settle(page)
        assert [word for _, word in stored(project)] == ([said] if said else [])


def test_a_picture_is_zoomed_moved_and_shown_whole_again(browser: Any, tmp_path: Path) -> None:
    project, _ = scene_project(tmp_path, n=3)
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        scale = "new DOMMatrix(getComputedStyle(document.querySelector('#item img')).transform)"
        page.keyboard.press("+")
        page.keyboard.press("+")
        assert page.evaluate(f"{scale}.a") == pytest.approx(2.25)
        page.mouse.move(600, 400)
        page.mouse.down()
        page.mouse.move(560, 380, steps=4)
        page.mouse.up()
        before = page.evaluate(f"{scale}.e")
        page.mouse.wheel(0, -400)
        page.wait_for_function(f"() => {scale}.a > 5")
        assert page.evaluate(f"{scale}.e") < before
        page.locator("#whole").click()
        assert page.evaluate(f"{scale}.a") == 1
        page.mouse.dblclick(600, 400)
        assert page.evaluate(f"{scale}.a") == pytest.approx(2.5)
        answer(page, "x")
        assert page.evaluate(f"{scale}.a") == 1  # of the next picture
        assert page.complaints == []
