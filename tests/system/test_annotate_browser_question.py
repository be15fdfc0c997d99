"""The question in a real browser: three answers, changes of class, guesses, the introduction."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from annotation_browser import (
    answer,
    card_of,
    open_page,
    scene_project,
    settle,
    stored,
    stored_pairs,
    text_project,
    wait,
    wait_for_item,
    wait_for_words,
)
from comes.annotate import serve_in_thread
from comes.annotate.asking import read_words
from comes.annotate.schema import answers, cards, items

pytestmark = pytest.mark.needs("chromium")

TEXTS, CLASSES = ["some words", "more words", "few words"], ["sport", "art"]

# Press a key that ends a class; at the moment of the change, before a person could look, press
# others and click. Return what was on the screen, and how long nothing was taken.
PRESS_AT_CHANGE = """(key) => new Promise((resolve) => {
  const find = (place) => document.querySelector(place);
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
      Object.assign(seen, {
        disabled: find("#no").getAttribute("aria-disabled"),
        notice: find("#notice").innerText,
        new: find("#class").innerText,
        colour: getComputedStyle(find(".question")).backgroundColor,
      });
    } else if (start !== null) {
      observer.disconnect();
      resolve({ ...seen, milliseconds: performance.now() - start });
    }
  }).observe(page, { attributeFilter: ["data-guarded", "data-state"] });
  press(key, "Key" + key.toUpperCase());
})"""


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
    project = text_project(
        tmp_path, TEXTS, CLASSES, asks_yes=False, question="Could it be {class}?"
    )
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
    project = text_project(tmp_path, TEXTS, CLASSES)
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        first = card_of(page)[1]
        for _ in range(2):
            answer(page, "x")
        guard = page.evaluate(PRESS_AT_CHANGE, "x")  # the last of this class
        assert guard["disabled"] == "true" and guard["milliseconds"] >= 499
        assert "One moment" in guard["notice"]
        wait(page)
        assert guard["new"] == card_of(page)[1] != first
        plain = "getComputedStyle(document.querySelector('.question')).backgroundColor"
        assert guard["colour"] != page.evaluate(plain)  # the question stood out
        settle(page)
        assert stored(project) == [("Ada", "no")] * 3
        answer(page, "y")
        settle(page)
        assert stored(project)[-1] == ("Ada", "yes")
        page.keyboard.press("z")
        page.keyboard.press("z")  # back over the change, which is one too
        page.wait_for_function("c => document.querySelector('#class').innerText === c", arg=first)
        wait_for_words(page, "#notice", f"Now the question is about {first}")


def test_the_last_answer_leaves_a_brief_trace(browser: Any, tmp_path: Path) -> None:
    with serve_in_thread(text_project(tmp_path, TEXTS, CLASSES)) as address:
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
    project = text_project(tmp_path, TEXTS, CLASSES)
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
    with serve_in_thread(text_project(tmp_path, TEXTS, CLASSES, asks_yes=False)) as address:
        page = open_page(browser, address, is_new=True)
        for key in ("x", "Space", "Space"):
            page.keyboard.press(key)
            assert "right" in page.inner_text("#intro-feedback")
            page.keyboard.press("Enter")
        assert page.inner_text("#intro-question") == "Ready"


def test_a_guess_of_a_model_is_shown_and_stored_and_answers_nothing(
    browser: Any, tmp_path: Path
) -> None:
    project = text_project(tmp_path, ["a", "b", "c", "d"], ["sport"], by="item")

    def add_guesses(route: Any) -> None:
        reply = route.fetch()
        cards = reply.json()["cards"]
        for card in cards:
            card["hint"] = {"0": 0.83, "1": 0.0, "2": None}.get(card["name"])
        route.fulfill(response=reply, json={**reply.json(), "cards": cards})

    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        page.route("**/api/cards", add_guesses)
        shown = {}
        for place in ("/", "/grid"):
            page.goto(address + place)
            for _ in range(2):
                wait(page)
                item = page.inner_text("#item-name")
                shown[item] = "".join(page.locator(".guess").all_inner_texts())
                assert page.locator('.choice[aria-pressed="true"], .before, .aimed').count() == 0
                page.keyboard.press("x")
                page.keyboard.press("Enter")
                if len(shown) < 4:
                    wait_for_item(page, item, gone=True)
            settle(page)
        wait(page, "finished")
    guess = read_words("en")["guess"]
    assert guess.endswith("guess: {percent} % yes")
    expected = {"0": guess.format(percent=83), "1": guess.format(percent=0), "2": "", "3": ""}
    assert shown == expected
    query = select(items.c.name, answers.c.hint).join_from(answers, cards).join(items)
    with project.reading() as connection:
        stored_hints = {row.name: row.hint for row in connection.execute(query)}
    assert stored_hints == {"0": 0.83, "1": 0.0, "2": None, "3": None}
