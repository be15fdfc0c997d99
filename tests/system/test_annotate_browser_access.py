"""Every page of the annotation for people who see, hear or move otherwise: checked by axe-core."""

from collections.abc import Iterator
from importlib.resources import files
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from annotation_browser import (
    DESKTOP,
    ON_PHONE,
    draw_scenes,
    open_page,
    scene_project,
    skip_introduction,
    wait,
    wait_until_free,
)
from comes.annotate import create_project, serve_in_thread
from comes.annotate.cards import Answer
from comes.annotate.schema import cards
from comes.annotate.summary import AnswerCache, find_disagreements
from projects import Desk

pytestmark = pytest.mark.needs("chromium")

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
ANIMATED = "Promise.allSettled(document.getAnimations().map(({ finished }) => finished))"
WAYS: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": DESKTOP},
    "dark phone": {**ON_PHONE, "color_scheme": "dark"},
}


def find_faults(page: Any) -> list[str]:
    """Return what axe-core finds serious or critical on a page."""
    page.evaluate(ANIMATED)  # until what fades in is there
    page.evaluate(AXE)
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{fault['id']}: {node['target']} {node.get('failureSummary', '')}"
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"]
    ]


@pytest.mark.parametrize("way", WAYS)
def test_no_page_has_a_serious_fault(browser: Any, tmp_path: Path, way: str) -> None:
    (tmp_path / "guide").mkdir()
    (tmp_path / "guide" / "boat.md").write_text("# Boats\n\n- what **floats**\n- *not* toys\n")
    options: dict[str, Any] = {
        "n": 3,
        "n_classes": 8,
        "by": "item",
        "guidelines": tmp_path / "guide",
    }
    project, _ = scene_project(tmp_path, **options)
    faults: dict[str, list[str]] = {}
    with serve_in_thread(project) as address:
        joining = browser.new_context(**WAYS[way]).new_page()
        joining.goto(f"{address}/join")
        faults["join"] = find_faults(joining)
        page = open_page(browser, address, is_new=True, **WAYS[way])
        faults["introduction"] = find_faults(page)
        page.keyboard.press("x")
        faults["introduction, answered"] = find_faults(page)
        skip_introduction(page)
        wait(page)
        faults["cards"] = find_faults(page)
        for name, key in (("help", "?"), ("note", "c")):
            page.keyboard.press(key)
            faults[name] = find_faults(page)
            page.keyboard.press("Escape")
        page.keyboard.press("g")
        page.wait_for_function("() => document.querySelector('#guide-text').innerText")
        faults["guidelines"] = find_faults(page)
        page.keyboard.press("g")
        page.keyboard.press("x")
        faults["trace or change"] = find_faults(page)
        page.goto(f"{address}/grid")
        wait(page)
        faults["grid"] = find_faults(page)
        page.keyboard.press("1")
        page.keyboard.press("2")
        page.keyboard.press("2")
        page.keyboard.press("x")
        faults["grid, answered"] = find_faults(page)
        page.goto(f"{address}/nowhere")
        faults["not found"] = find_faults(page)
        with project.writing() as connection:
            connection.execute(cards.update().values(is_done=True))
        page.goto(address)
        wait(page, "finished")
        faults["finished"] = find_faults(page)
    assert {name: found for name, found in faults.items() if found} == {}


@pytest.mark.parametrize("way", WAYS)
def test_no_page_of_the_lead_has_a_serious_fault(browser: Any, tmp_path: Path, way: str) -> None:
    draw_scenes(tmp_path / "pictures", 6)
    (tmp_path / "classes.txt").write_text("boat\nhouse\n")
    sources = tmp_path / "pictures", tmp_path / "classes.txt"
    project = create_project(tmp_path / "photos", *sources, rate=1, overlap=1)
    words: Iterator[Answer] = cycle(["no", "yes", "maybe"])
    faults: dict[str, list[str]] = {}
    with serve_in_thread(project) as address:
        page = open_page(browser, address, **WAYS[way])
        page.keyboard.press("c")
        page.locator("#note-form .main").click()
        page.wait_for_selector("#note-dialog:not([open])", state="attached")
        page.goto("about:blank")
        wait_until_free(project)
        Desk(project, "Bob", "tab-of-Bob").answer_all(lambda _: next(words))
        Desk(project, "Eva", "tab-of-Eva").answer_all(lambda _: "yes")
        assert find_disagreements(AnswerCache(project).read())
        for place in ("lead", "lead/disagreements", "lead/notes"):
            page.goto(f"{address}/{place}")
            faults[place] = find_faults(page)
    assert {place: found for place, found in faults.items() if found} == {}


def test_axe_finds_what_is_wrong(browser: Any) -> None:
    page = browser.new_page()
    page.set_content('<p style="color: #bbb; background: #fff">pale</p><input><img src="x">')
    found = " ".join(find_faults(page))
    assert "color-contrast" in found and "label" in found and "image-alt" in found
