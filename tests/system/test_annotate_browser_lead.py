"""The lead's pages and the setup in a real browser: each promise as a person would try it."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import insert

from annotation_browser import ON_PHONE, draw_scenes, is_wide, scene_project, take_picture
from browser import launch_browser
from comes.annotate import Project, open_project, serve_in_thread, summarise
from comes.annotate.cards import Answer, append_cards
from comes.annotate.grow import set_controls
from comes.annotate.lead import browse_answers
from comes.annotate.links import list_links, make_link
from comes.annotate.schema import RANDOM, notes
from comes.annotate.web.server import _make_server, open_port
from comes.annotate.web.setup import Setup
from projects import Desk, all_cards, new_answer, stored
from system.test_annotate_browser_access import find_faults

pytestmark = pytest.mark.needs("chromium")

TABS = ("", "/answers", "/disagreements", "/notes", "/people", "/settings")
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
def test_no_tab_is_wider_than_the_screen_or_shuts_anybody_out(
    browser: Any, team: tuple[Project, str], way: str
) -> None:
    page = open_lead(browser, team[1], **WAYS[way])
    for tab in TABS:
        page.goto(f"{team[1]}/lead{tab}")
        assert not is_wide(page), tab
        assert find_faults(page) == [], tab
        name = tab.strip("/") or "lead"
        take_picture(page, f"annotate-{name}" if way == "desktop" else f"annotate-{name}-{way}")
    assert page.complaints == []


def test_the_overview_shows_progress_in_counts_and_charts(
    browser: Any, team: tuple[Project, str]
) -> None:
    project, address = team
    page = open_lead(browser, address, **WAYS["desktop"])
    summary = summarise(project)
    text = page.inner_text("main")
    assert f"{summary.n_done} of {summary.n_cards} cards are done." in text
    assert "one person's work" in text and "Last updated" in text
    for widths in page.locator("svg.bar").evaluate_all(
        "bars => bars.map(bar => [...bar.children].map(part => Number(part.getAttribute('width'))))"
    ):
        assert sum(widths) == pytest.approx(100)
    assert page.locator("svg.timeline").count() == 4  # all together, and three people
    page.get_by_role("img", name="Speedy: ").wait_for()
    page.locator(".classes summary", has_text="boat").click()  # more about one class
    page.get_by_text("chosen by a model").first.wait_for()
    assert page.locator(".examples img:visible").count() > 0
    table = page.locator("#table-classes")
    assert table.evaluate("box => box.scrollWidth <= box.clientWidth")  # nothing is cut


@pytest.mark.parametrize("by", ["pointer", "keyboard", "tap"])
def test_what_a_column_means_is_one_step_away(
    browser: Any, team: tuple[Project, str], by: str
) -> None:
    page = open_lead(browser, team[1], **WAYS["phone" if by == "tap" else "desktop"])
    column = page.get_by_role("button", name="open: what this means")
    shown = page.locator(".help:popover-open")
    if by == "pointer":
        column.hover()
        shown.wait_for()
        column.click()  # does not hide it again
    elif by == "keyboard":
        page.get_by_role("button", name="yes: what this means").focus()
        page.keyboard.press("Tab")
    else:
        column.tap()
    assert shown.inner_text() == "Cards that wait for an answer."
    page.mouse.move(5, 5)
    if by != "pointer":
        page.keyboard.press("Escape")
    shown.wait_for(state="hidden")


@pytest.mark.parametrize(
    "name", [f"answers.{end}" for end in ("csv", "parquet", "jsonl", "npz", "xlsx")] + ["raw.csv"]
)
def test_each_format_is_downloaded(browser: Any, team: tuple[Project, str], name: str) -> None:
    page = open_lead(browser, team[1])
    with page.expect_download() as downloading:
        page.locator(f'a[href="/lead/export/{name}"]').click()
    download = downloading.value
    assert download.suggested_filename == f"photos-{name}"
    assert Path(download.path()).stat().st_size > 200
    assert page.url.endswith("/lead")


def decided(project: Project) -> list[Any]:
    """Return what the lead said and has not taken back."""
    return [row for row in stored(project) if row.tab == "lead" and row.undone_at is None]


def test_an_answer_is_found_corrected_in_place_and_taken_back(browser: Any, tmp_path: Path) -> None:
    project = team_project(tmp_path)
    with project.reading() as connection:
        class_ = browse_answers(connection, {"person": "Speedy", "state": "no"})[-1]["class"]
    with serve_in_thread(project) as address:
        page = open_lead(browser, address, "/lead/answers")
        page.get_by_label("Person").select_option("Speedy")
        page.get_by_label("Class").select_option(class_)
        page.get_by_role("button", name="Show").click()
        rows = page.locator(".given")
        assert all("Speedy" in text and class_ in text for text in rows.all_inner_texts())
        row = rows.first
        before = row.bounding_box()
        row.get_by_role("button", name="Yes", exact=True).click()
        row.get_by_text("Corrected: Yes, by the lead").wait_for()
        assert row.bounding_box() == before  # nothing moves
        assert [answer.answer for answer in decided(project)] == ["yes"]
        row.locator("summary").click()  # the history keeps both
        row.locator(".history", has_text="the lead").wait_for()
        assert "Speedy" in row.locator(".history").inner_text()
        row.get_by_role("button", name="Take back").click()
        row.get_by_text("Taken back", exact=True).wait_for()
        assert decided(project) == []
        page.goto(f"{address}/lead/answers?state=undone")
        assert "the lead" in rows.first.inner_text()
        assert page.complaints == []


def test_two_quick_clicks_in_one_place_decide_one_pair(browser: Any, tmp_path: Path) -> None:
    """What is decided stays where it was, and is taken back there; the refresh moves nothing."""
    project = team_project(tmp_path)
    n_open = summarise(project).n_disagreements
    with serve_in_thread(project) as address:
        page = open_lead(browser, address, "/lead/disagreements", **WAYS["desktop"])
        page.clock.install()
        cases = page.locator(".case")
        names = cases.evaluate_all("cases => cases.map(({ id }) => id)")
        yes = cases.first.get_by_role("button", name="Yes", exact=True)
        place = yes.bounding_box()
        at = place["x"] + place["width"] / 2, place["y"] + place["height"] / 2
        page.mouse.dblclick(*at)
        cases.first.get_by_text("Decided: Yes").wait_for()
        page.mouse.click(*at)  # and once more when it is stored
        page.get_by_label("Pages of the lead").get_by_text(str(n_open - 1), exact=True).wait_for()
        page.clock.fast_forward(11_000)
        page.wait_for_function("() => document.querySelector('.case .decided')")
        assert [row.answer for row in decided(project)] == ["yes"]
        assert cases.evaluate_all("cases => cases.map(({ id }) => id)") == names
        assert yes.bounding_box() == place and yes.get_attribute("aria-pressed") == "true"
        cases.nth(1).get_by_role("button", name="No", exact=True).click()
        cases.nth(1).get_by_text("Decided: No").wait_for()
        cases.first.get_by_role("button", name="Take back").click()
        cases.first.get_by_text("Taken back", exact=True).wait_for()
        assert [row.answer for row in decided(project)] == ["no"]
        page.get_by_role("link", name="Show the next ones").click()
        page.wait_for_url("**?from=*")
        page.goto(f"{address}/lead/disagreements")
        assert cases.evaluate_all("cases => cases.map(({ id }) => id)")[0] == names[0]
        assert page.locator(f"#{names[1]}").count() == 0
        assert page.complaints == []


def test_the_lead_decides_by_keyboard_alone(browser: Any, tmp_path: Path) -> None:
    project = team_project(tmp_path)
    with serve_in_thread(project) as address:
        page = open_lead(browser, address, "/lead/disagreements")
        case = page.locator(".case").first
        case.get_by_role("button", name="Cannot tell").focus()
        page.keyboard.press("Enter")
        case.get_by_text("Decided: Cannot tell").wait_for()
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.keyboard.press("Space")  # Take back
        case.get_by_text("Taken back", exact=True).wait_for()
    assert decided(project) == []


def test_a_person_is_left_out_and_taken_in_again(browser: Any, tmp_path: Path) -> None:
    project = team_project(tmp_path)
    before = summarise(project).n_answers
    with serve_in_thread(project) as address:
        page = open_lead(browser, address, "/lead/people")
        out = page.get_by_role("button", name="leave out Speedy")
        page.once("dialog", lambda dialog: dialog.dismiss())
        out.click()
        assert summarise(project).n_answers == before
        page.once("dialog", lambda dialog: dialog.accept())
        out.click()
        again = page.get_by_role("button", name="take in again Speedy")
        again.wait_for()
        assert summarise(project).n_answers < before
        again.click()
        out.wait_for()
        assert summarise(project).n_answers == before


def test_a_link_is_made_shown_once_opens_the_page_and_is_revoked(
    browser: Any, tmp_path: Path
) -> None:
    project, _ = scene_project(tmp_path, n=3)
    token = make_link(project, "lead", "Lea")
    with serve_in_thread(project, needs_token=True) as address:
        page = open_lead(browser, address, f"/?token={token}")
        page.wait_for_url(f"{address}/lead")
        page.goto(f"{address}/lead/people")
        page.get_by_label("For whom").fill("Ada")
        page.get_by_role("button", name="Make a link").click()
        link = page.get_by_label("The link").input_value()
        page.get_by_role("button", name="Copy").click()
        page.get_by_text("Copied").wait_for()
        assert {(one.role, one.label) for one in list_links(project)} == {
            ("lead", "Lea"),
            ("annotator", "Ada"),
        }
        page.wait_for_timeout(1100)  # until the server reads its links again
        ada = open_lead(browser, link, "")
        ada.wait_for_url(f"{address}/join")
        ada.goto(f"{address}/lead/people")
        assert "This page is for the lead" in ada.inner_text("main")
        page.reload()
        assert page.get_by_label("The link").count() == 0
        page.once("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="revoke the link for Ada").click()
        page.locator("#links-table .left-out", has_text="Ada").wait_for()
        page.wait_for_timeout(1100)
        ada.goto(f"{address}/join")
        assert "A token is needed" in ada.inner_text("main")


def test_settings_are_changed_on_the_page(browser: Any, tmp_path: Path) -> None:
    project, _ = scene_project(tmp_path, n=3)
    (tmp_path / "known.csv").write_text("item,label,answer\nscene-00.png,boat,yes\n")
    with serve_in_thread(project) as address:
        page = open_lead(browser, address, "/lead/settings")
        page.get_by_label("Question", exact=True).fill("Do you see {a} {class}?")
        assert page.inner_text("#preview") == "People read: Do you see a boat?"
        page.get_by_label("Guidelines").fill("/nowhere")
        page.get_by_role("button", name="Save").click()
        page.get_by_text("The guidelines must be in a folder").wait_for()
        assert page.get_by_label("Question", exact=True).input_value() == "Do you see {a} {class}?"
        page.get_by_label("Guidelines").fill("")
        page.get_by_role("button", name="Save").click()
        page.get_by_text("Saved.").wait_for()
        assert project.question == "Do you see a boat?"
        page.get_by_label("or a file").first.set_input_files(tmp_path / "known.csv")
        page.get_by_role("button", name="Store known answers").click()
        page.get_by_text("Stored 1 known answers.").wait_for()
        page.get_by_label("Decisions", exact=True).fill(
            "item\tlabel\tanswer\nscene-01.png\tboat\tno"
        )
        page.get_by_role("button", name="Store decisions").click()
        page.get_by_text("Stored 1 decisions.").wait_for()
        assert [row.answer for row in decided(project)] == ["no"]
        page.get_by_role("button", name="Show hints").click()
        page.get_by_role("button", name="Hide hints").wait_for()
        page.get_by_role("button", name="Freeze the project").click()
        page.get_by_role("button", name="Give cards again").wait_for()
        assert summarise(project).frozen_at is not None
        assert [text for text in page.complaints if "422" not in text] == []


def test_a_note_is_dealt_with_where_it_stands(browser: Any, tmp_path: Path) -> None:
    project = team_project(tmp_path)
    with serve_in_thread(project) as address:
        page = open_lead(browser, address, "/lead/notes")
        assert "Half of it is cut off." in page.inner_text("main")
        page.get_by_role("button", name="Mark as dealt with").click()
        page.get_by_role("button", name="open again").wait_for()


def test_what_is_new_comes_by_itself_and_offline_is_said(browser: Any, tmp_path: Path) -> None:
    project = team_project(tmp_path)
    with serve_in_thread(project) as address:
        page = open_lead(browser, address)
        page.locator(".classes summary").first.click()
        page.clock.install()
        Desk(project, "Dora", "tab-of-dora").answer_all(now=time.time() + 1000)
        page.clock.fast_forward(11_000)
        page.locator(".sparks", has_text="Dora").wait_for()
        assert page.locator(".classes details[open]").count() == 1  # what was opened stays so
        page.context.set_offline(True)
        page.clock.fast_forward(11_000)
        page.get_by_text("The server cannot be reached; this is how things were").wait_for()
        assert "cards are done" in page.inner_text("main")
        page.context.set_offline(False)
        page.clock.fast_forward(11_000)
        page.get_by_text("Last updated").wait_for()


# ---- a new project


@contextmanager
def serving_setup(folder: Path) -> Iterator[str]:
    """Serve a folder that has no project yet; give the address."""
    with open_port("127.0.0.1", 0) as listener:
        server = _make_server(Setup(folder), None, None, ())
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


DROP = """async (area, files) => {
  const dropped = new DataTransfer();
  for (const [name, bytes] of files) dropped.items.add(new File([new Uint8Array(bytes)], name));
  const how = { dataTransfer: dropped, bubbles: true, cancelable: true };
  area.dispatchEvent(new DragEvent("drop", how));
}"""


@pytest.mark.parametrize("way", ["desktop", "phone"])
def test_a_project_is_made_of_files_that_are_dropped(
    browser: Any, tmp_path: Path, way: str
) -> None:
    draw_scenes(tmp_path / "pictures", 6)
    pictures = sorted((tmp_path / "pictures").iterdir())
    with serving_setup(tmp_path / "photos") as address:
        page = open_lead(browser, address, "/", **WAYS[way])
        page.wait_for_url(f"{address}/setup")
        files = [[path.name, list(path.read_bytes())] for path in pictures]
        page.locator("#drop").evaluate(DROP, [*files, ["notes.exe", [1]]])
        page.get_by_text("6 pictures found.").wait_for()
        assert "notes.exe: this is no picture" in page.inner_text("#refused")
        page.get_by_label("Classes, one on each line").fill("boat: what floats\nhouse")
        page.get_by_label("Question", exact=True).fill("Do you see {a} {klass}?")
        page.get_by_role("button", name="Make the project").click()
        page.get_by_text("A question may hold {class} and {a}; got '{klass}'.").wait_for()
        page.get_by_label("Question", exact=True).fill("Do you see {a} {class}?")
        page.get_by_label("Share of the items").fill("0.5")
        assert page.inner_text("#preview") == "People read: Do you see a boat?"
        assert "6 items \u00d7 2 classes \u00d7 0.5 = 6 cards" in page.inner_text("#cards")
        assert not is_wide(page) and find_faults(page) == []
        take_picture(page, f"annotate-setup-{way}")
        page.reload()  # nothing that was typed or sent is lost
        page.get_by_text("6 pictures found.").wait_for()
        assert "Do you see a boat?" in page.inner_text("#preview")
        page.get_by_role("button", name="Make the project").click()
        page.wait_for_url(f"{address}/lead/people")  # served by the same server
        page.get_by_role("button", name="Make a link").wait_for()
        page.goto(f"{address}/join")
        assert "Do you see a boat?" in page.inner_text("main")
    project = open_project(tmp_path / "photos")
    assert project.item_names == [path.name for path in pictures]
    assert project.class_names == ["boat", "house"] and project.count_cards() >= 6
    project.engine.dispose()


def test_a_project_is_made_of_a_folder_on_the_server(browser: Any, tmp_path: Path) -> None:
    draw_scenes(tmp_path / "pictures", 4)
    with serving_setup(tmp_path / "photos") as address:
        page = open_lead(browser, address, "/setup")
        page.get_by_label("or a folder on the server").fill(str(tmp_path / "pictures"))
        page.get_by_text("4 pictures found.").wait_for()
        page.get_by_label("Classes, one on each line").fill("boat")
        page.get_by_label("Share of the items").fill("1")
        page.get_by_label("Once, and asked about all classes").check()
        page.get_by_label("Language").select_option("de")
        page.get_by_role("button", name="Make the project").click()
        page.wait_for_url(f"{address}/lead/people")
        assert page.complaints == []
    project = open_project(tmp_path / "photos")
    assert project.source == tmp_path / "pictures" and project.read_setting("by") == "item"
    assert project.question == "Ist auf diesem Bild boat zu sehen?"
    project.engine.dispose()
