"""The lead's pages in a real browser: numbers, help, decisions; phone, dark, keyboard alone."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import insert

from annotation_browser import ON_PHONE, is_wide, scene_project, take_picture
from browser import launch_browser
from comes.annotate import Project, serve_in_thread, set_controls, summarise
from comes.annotate.cards import Answer, append_cards
from comes.annotate.links import make_link
from comes.annotate.schema import RANDOM, notes
from projects import Desk, all_cards, new_answer, stored
from system.test_annotate_browser_access import find_faults

pytestmark = pytest.mark.needs("chromium")

WAYS: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1280, "height": 900}},
    "phone": ON_PHONE,
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launch_browser() as opened:
        yield opened


def team_project(home: Path) -> Project:
    """Return a project of pictures where three people answered, one of them carelessly."""
    project, truth = scene_project(home, n=48)
    names, kinds = project.item_names, project.class_names
    rng = np.random.default_rng(0)
    with project.writing() as connection:
        places = [(card.item_id, card.class_id, 1) for card in all_cards(project)]
        append_cards(connection, [place for place in places if rng.random() < 0.5], RANDOM)
    people = {"Ada": (1.4, 0.03), "Grace": (2.1, 0.08), "Speedy": (0.15, 1.0)}
    known = pd.DataFrame(
        [
            (names[card.item_id - 1], kinds[card.class_id - 1])
            for card in all_cards(project)
            if card.turn == 0 and card.item_id <= 20
        ],
        columns=["item", "label"],
    )
    pairs = zip(known["item"], known["label"], strict=True)
    right = ["yes" if label in truth[item] else "no" for item, label in pairs]
    set_controls(project, known.assign(answer=right), 0.3)
    for _ in range(5):
        for name, (seconds, wrong) in people.items():
            desk = Desk(project, name, f"tab-of-{name.lower()}")
            given = []
            for card in desk.ask():
                is_there = card["class"] in truth[card["name"]]
                word: Answer = "yes" if is_there else "no"
                if name == "Speedy":
                    word = "no"
                elif rng.random() < wrong:
                    word = "maybe" if rng.random() < 0.5 else "no" if is_there else "yes"
                given.append(new_answer(card["card"], word, seconds * float(rng.uniform(0.5, 1.5))))
            if given:
                desk.send(*given, now=time.time())
    with project.writing() as connection:
        row = {"card_id": all_cards(project)[0].id, "annotator": "Ada", "written_at": time.time()}
        connection.execute(insert(notes).values(text="Half of it is cut off.", **row))
    return project


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Project, str]]:
    """A project that is served, and its address; tests leave its answers as they are."""
    project = team_project(tmp_path_factory.mktemp("team"))
    with serve_in_thread(project) as address:
        yield project, address
    project.engine.dispose()


def open_lead(browser: Any, address: str, path: str = "/lead", **options: Any) -> Any:
    page = browser.new_context(**options).new_page()
    page.set_default_timeout(60_000)
    page.complaints = []
    page.on("console", lambda message: page.complaints.append(message.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.goto(f"{address}{path}")
    return page


@pytest.mark.parametrize("way", WAYS)
def test_the_pages_of_the_lead(browser: Any, team: tuple[Project, str], way: str) -> None:
    project, address = team
    page = open_lead(browser, address, **WAYS[way])
    summary = summarise(project)
    text = page.inner_text("main")
    assert f"{summary.n_done} of {summary.n_cards} cards are done." in text
    assert "one person's work" in text and "Last updated" in text
    assert page.locator("#table-classes svg.bar").count() == 4
    assert page.locator("#table-classes .examples img").count() > 0
    for widths in page.locator("svg.bar").evaluate_all(
        "bars => bars.map(bar => [...bar.children].map(part => Number(part.getAttribute('width'))))"
    ):
        assert sum(widths) == pytest.approx(100)
    assert "more than half of the answers in under 0.3 s" in text
    assert "right (" in text  # control cards
    assert not is_wide(page) and find_faults(page) == []
    page.wait_for_function("() => [...document.images].some(image => image.naturalWidth)")
    take_picture(page, "annotate-lead" if way == "desktop" else f"annotate-lead-{way}")
    for path in ("/lead/disagreements", "/lead/notes"):
        page.goto(f"{address}{path}")
        assert not is_wide(page) and find_faults(page) == []
        take_picture(page, f"annotate-{path.rpartition('/')[2]}-{way}")
    assert page.complaints == []


def test_a_table_that_scrolls_says_so_on_a_phone(browser: Any, team: tuple[Project, str]) -> None:
    page = open_lead(browser, team[1], **ON_PHONE)
    cue = "getComputedStyle(document.querySelector('#table-classes'), '::before').content"
    assert "Swipe the table" in page.evaluate(cue)
    table = page.locator("#table-classes")
    assert table.evaluate("box => box.scrollWidth > box.clientWidth")
    table.evaluate("box => box.scrollTo({ left: 400 })")
    assert table.evaluate("box => box.scrollLeft") > 0


@pytest.mark.parametrize("way", ["desktop", "phone"])
def test_every_column_explains_itself(browser: Any, team: tuple[Project, str], way: str) -> None:
    """By keyboard on a desk, by touch on a phone; the refresh waits until the help is closed."""
    page = open_lead(browser, team[1], **WAYS[way])
    buttons = page.locator("th button.about")
    tables = page.locator("#table-classes thead th, #table-people thead th")
    assert buttons.count() == tables.count() > 20
    relevant = page.get_by_role("button", name="relevant: what this means")
    if way == "phone":
        relevant.tap()
    else:
        relevant.focus()
        page.keyboard.press("Enter")
    shown = page.locator(".help:popover-open")
    assert "nobody should say yes about one that is not" in shown.inner_text()
    page.keyboard.press("Escape")
    assert shown.count() == 0
    assert all(len(text) > 10 for text in page.locator(".help").all_text_contents())


def test_the_lead_decides_by_keyboard_alone(browser: Any, tmp_path: Path) -> None:
    project = team_project(tmp_path)
    n_disagreements = summarise(project).n_disagreements
    assert n_disagreements > 3
    with serve_in_thread(project) as address:
        page = open_lead(browser, address, "/lead/disagreements")
        case = page.locator(".case").first
        assert case.locator(".opinions li").count() >= 2
        case.get_by_role("button", name="Yes", exact=True).focus()
        page.keyboard.press("Enter")
        page.wait_for_function(
            "n => document.querySelector('.count')?.textContent === String(n)",
            arg=n_disagreements - 1,
        )
        [own] = [row for row in stored(project) if row.tab == "lead"]
        assert own.answer == "yes" and own.undone_at is None
        page.goto(f"{address}/lead/disagreements?decided")
        pressed = page.locator('.decide button[aria-pressed="true"]')
        assert pressed.inner_text() == "Yes"
        pressed.focus()
        page.keyboard.press("Space")  # takes it back
        page.wait_for_function(
            "n => document.querySelector('.count')?.textContent === String(n)", arg=n_disagreements
        )
        assert page.complaints == []
    assert summarise(project).n_disagreements == n_disagreements


def test_a_person_is_left_out_and_taken_in_again(browser: Any, tmp_path: Path) -> None:
    project = team_project(tmp_path)
    before = summarise(project).n_answers
    with serve_in_thread(project) as address:
        page = open_lead(browser, address)
        page.once("dialog", lambda dialog: dialog.dismiss())
        page.get_by_role("button", name="leave out Speedy").click()
        assert summarise(project).n_answers == before
        page.once("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="leave out Speedy").click()
        again = page.get_by_role("button", name="take in again Speedy")
        again.wait_for()
        assert summarise(project).n_answers < before
        again.click()
        page.get_by_role("button", name="leave out Speedy").wait_for()
        assert summarise(project).n_answers == before
        page.get_by_role("button", name="Freeze the project").click()
        page.get_by_text("Frozen since").wait_for()
        page.get_by_role("button", name="Give cards again").click()
        page.get_by_role("button", name="Freeze the project").wait_for()


def test_a_note_is_dealt_with(browser: Any, tmp_path: Path) -> None:
    project = team_project(tmp_path)
    with serve_in_thread(project) as address:
        page = open_lead(browser, address, "/lead/notes")
        assert "Half of it is cut off." in page.inner_text("main")
        page.get_by_role("button", name="dealt with").click()
        page.get_by_role("button", name="open again").wait_for()


def test_what_is_new_comes_by_itself_and_offline_is_said(browser: Any, tmp_path: Path) -> None:
    project = team_project(tmp_path)
    with serve_in_thread(project) as address:
        page = open_lead(browser, address)
        page.evaluate("document.querySelector('#table-classes').scrollTop = 20")
        page.clock.install()
        Desk(project, "Dora", "tab-of-dora").answer_all(now=time.time() + 1000)
        page.clock.fast_forward(11_000)
        page.locator("#table-people", has_text="Dora").wait_for()
        page.context.set_offline(True)
        page.clock.fast_forward(11_000)
        page.get_by_text("The server cannot be reached; this is how things were").wait_for()
        assert "cards are done" in page.inner_text("main")
        page.get_by_role("button", name="Freeze the project").click()
        page.get_by_text("This did not work: the server cannot be reached").wait_for()
        page.context.set_offline(False)
        page.clock.fast_forward(11_000)
        page.get_by_text("Last updated").wait_for()


def test_an_annotators_link_does_not_open_the_pages_of_the_lead(
    browser: Any, tmp_path: Path
) -> None:
    project, _ = scene_project(tmp_path, n=3)
    tokens = {role: make_link(project, role, role) for role in ("annotator", "lead")}
    with serve_in_thread(project, needs_token=True) as address:
        for role, token in tokens.items():
            page = open_lead(browser, address, f"/?token={token}")
            page.wait_for_url(f"{address}/lead" if role == "lead" else f"{address}/join")
            page.goto(f"{address}/lead/disagreements")
            is_shown = "What people disagree on" in page.inner_text("body")
            assert is_shown == (role == "lead")
            assert is_shown or "This page is for the lead" in page.inner_text("main")
