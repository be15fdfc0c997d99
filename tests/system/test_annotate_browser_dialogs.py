"""Around the cards, in a real browser: joining, languages, keys, comments, guidelines."""

import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from sqlalchemy import select

from annotation_browser import (
    answer,
    card_of,
    open_page,
    say_name,
    settle,
    skip_introduction,
    stored,
    text_project,
    wait,
    wait_for_item,
)
from comes.annotate import serve_in_thread
from comes.annotate.asking import read_words
from comes.annotate.schema import notes

pytestmark = pytest.mark.needs("chromium")

EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>"


TEXTS = [f"Ein Tor {k}" for k in range(4)]
CLASSES = ["Sport", "Wetter"]


# Joining


def test_joining_shows_what_comes_and_no_tabs(browser: Any, tmp_path: Path) -> None:
    with serve_in_thread(text_project(tmp_path, TEXTS, CLASSES)) as address:
        page = browser.new_page()
        page.goto(address)
        assert "4 texts, 2 classes" in page.inner_text("main")
        assert "Is this text about Sport?" in page.inner_text(".sample")
        assert page.locator("nav a").count() == 0
        sample = page.locator(".sample li")  # words, which nobody would press
        assert sample.all_inner_texts() == ["✕ No", "? Cannot tell", "✓ Yes"]
        assert sample.evaluate_all(
            "all => all.every(one => getComputedStyle(one).borderStyle === 'none')"
        )
        page.close()


def test_a_name_that_differs_in_case_is_asked_about(browser: Any, tmp_path: Path) -> None:
    project = text_project(tmp_path, TEXTS, CLASSES)
    with serve_in_thread(project) as address:
        open_page(browser, address, "Ada").context.close()
        page = browser.new_context().new_page()
        page.goto(address)
        say_name(page, "ADA")
        page.wait_for_selector("#known:not([hidden])")
        assert "Ada has answered here before" in page.inner_text("#known")
        page.locator("#other").click()
        assert not page.locator("#known").is_visible()
        say_name(page, "ada")
        page.locator("#same").click()
        skip_introduction(page)
        wait(page)
        assert page.inner_text("#person") == "Ada"


# Languages


def seen_words(page: Any) -> set[str]:
    """Return the words that people see, hear or have read out on a page."""
    text = page.evaluate("""() => {
        const said = [];
        for (const element of document.querySelectorAll('*')) {
          if (element.closest('script, option, kbd, noscript')) continue;
          for (const node of element.childNodes) if (node.nodeType === 3) said.push(node.data);
          for (const name of ['aria-label', 'alt', 'title', 'placeholder']) {
            said.push(element.getAttribute(name) ?? '');
          }
        }
        return said.join(' ') + document.title;
    }""")
    return set(re.findall(r"[^\W\d_]{2,}", text.lower()))


def test_the_german_page_shows_no_english(browser: Any, tmp_path: Path) -> None:
    english, german = (
        set(re.findall(r"[^\W\d_]{2,}", " ".join(read_words(code).values()).lower()))
        for code in ("en", "de")
    )
    (tmp_path / "guide").mkdir()
    (tmp_path / "guide" / "Sport.md").write_text("Alles mit Ball")
    project = text_project(
        tmp_path, TEXTS, CLASSES, by="item", language="de", guidelines=tmp_path / "guide"
    )
    seen: set[str] = set()
    with serve_in_thread(project) as address:
        page = browser.new_context().new_page()
        page.goto(address)
        assert page.get_attribute("html", "lang") == "de"
        seen |= seen_words(page)
        say_name(page, "Eva")
        page.wait_for_selector("#introduction[open]")
        for key in ("y", "x", "Enter", "Space", "Enter", "y", "Enter"):
            page.keyboard.press(key)
            seen |= seen_words(page)
        page.keyboard.press("Enter")
        wait(page)
        for key in ("g", "?", "Escape", "c", "Escape", "x", "x", "z"):
            page.keyboard.press(key)
            page.wait_for_timeout(100)
            seen |= seen_words(page)
        page.goto(f"{address}/grid")
        wait(page)
        page.keyboard.press("Enter")
        seen |= seen_words(page)
        for number in range(4):
            wait(page)
            item = page.inner_text("#item-name")
            page.keyboard.press("n")
            page.keyboard.press("Enter")
            seen |= seen_words(page)
            if number < 3:
                wait_for_item(page, item, gone=True)
        wait(page, "finished")
        seen |= seen_words(page)
    assert {"sport", "tor", "alles", "ball", "danke", "unklar"} <= seen  # it was looked at
    assert seen & (english - german) == set()


def test_a_browser_may_choose_another_language(browser: Any, tmp_path: Path) -> None:
    with serve_in_thread(text_project(tmp_path, TEXTS, CLASSES)) as address:
        page = open_page(browser, address)
        name = card_of(page)[1]
        assert page.inner_text("#heading") == f"Is this text about {name}?"
        page.keyboard.press("?")
        page.locator("#language").select_option("de")
        page.wait_for_selector('html[lang="de"]')
        wait(page)
        assert page.inner_text("#heading") == f"Geht es in diesem Text um {name}?"
        assert "Unklar" in page.inner_text("#maybe")


# Keys


def test_keys_are_chosen_kept_and_refused_where_they_clash(browser: Any, tmp_path: Path) -> None:
    project = text_project(tmp_path, TEXTS, CLASSES)
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        page.keyboard.press("?")
        no = page.locator("#key-list button").first
        assert no.inner_text() == "x"
        no.focus()
        page.keyboard.press("Enter")
        page.keyboard.press("y")
        assert "The key y is taken: Yes" in page.inner_text("#key-alarm")
        assert no.inner_text() == "x"
        page.keyboard.press("Enter")
        page.keyboard.press("5")
        assert "taken: a class of the grid" in page.inner_text("#key-alarm")
        page.keyboard.press("Enter")
        page.keyboard.press("j")
        assert no.inner_text() == "j" and page.inner_text("#key-alarm") == ""
        page.keyboard.press("Escape")
        assert not page.locator("#help-dialog").is_visible()
        assert page.inner_text("#no kbd") == "j"
        page.keyboard.press("x")  # means nothing now
        answer(page, "j")
        settle(page)
        assert stored(project) == [("Ada", "no")]
        page.reload()
        wait(page)
        assert page.inner_text("#no kbd") == "j"
        page.keyboard.press("?")
        page.locator("#keys-reset").click()
        page.keyboard.press("Escape")
        assert page.inner_text("#no kbd") == "x"


# Comments


def test_a_comment_and_a_flag_reach_the_lead(browser: Any, tmp_path: Path) -> None:
    project = text_project(tmp_path, TEXTS, CLASSES)
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        page.keyboard.press("c")
        page.keyboard.type("x y: cut off?")  # words, not answers
        page.keyboard.press("Enter")  # another line
        page.keyboard.type("or blurred")
        assert page.inner_text("#note-about").startswith(card_of(page)[1])
        assert "Ctrl+Enter sends" in page.inner_text("#note-dialog")
        page.keyboard.press("Control+Enter")
        page.wait_for_selector("#note-dialog:not([open])", state="attached")
        assert "the lead will see it" in page.inner_text("#notice")
        answer(page, "x")
        page.locator("#note").click()
        page.locator("#note-form .main").click()
        page.wait_for_selector("#note-dialog:not([open])", state="attached")
        settle(page)
        with project.reading() as connection:
            rows = connection.execute(select(notes).order_by(notes.c.id)).all()
        assert [(row.annotator, row.text) for row in rows] == [
            ("Ada", "x y: cut off?\nor blurred"),
            ("Ada", ""),
        ]
        assert stored(project) == [("Ada", "no")]


# Guidelines


def test_guidelines_are_shown_beside_the_item_and_are_never_markup(
    browser: Any, tmp_path: Path
) -> None:
    guide = tmp_path / "guide"
    guide.mkdir()
    text = f"# Rules\n\nWhat **counts** and {EVIL}\ngoes on.\n\n- one\n- *two*\n\n[a](javascript:b)"
    for name in ("Sport", "Wetter"):
        (guide / f"{name}.md").write_text(text)
        Image.new("RGB", (300, 200), (40, 90, 160)).save(guide / f"{name}-1.jpg")
    with serve_in_thread(text_project(tmp_path, TEXTS, CLASSES, guidelines=guide)) as address:
        page = open_page(browser, address)
        page.on("dialog", lambda dialog: pytest.fail("a script ran"))
        assert not page.locator("#guide").is_visible()
        page.keyboard.press("g")
        page.wait_for_selector("#guide-text img")
        shown = page.locator("#guide-text")
        assert page.inner_text("#guide-class") == card_of(page)[1]
        assert EVIL in shown.inner_text() and "[a](javascript:b)" in shown.inner_text()
        assert shown.locator("h3").inner_text() == "Rules"
        assert shown.locator("li").all_inner_texts() == ["one", "two"]
        assert shown.locator("b").inner_text() == "counts"
        assert shown.locator("a, script").count() == 0
        loaded = "() => document.querySelector('#guide-text img').naturalWidth === 300"
        page.wait_for_function(loaded)
        answer(page, "x")  # with the panel open
        assert page.locator("#guide").is_visible()
        page.reload()
        wait(page)
        assert page.locator("#guide").is_visible()  # as it was left
        page.keyboard.press("g")
        assert not page.locator("#guide").is_visible()
        assert page.complaints == []
