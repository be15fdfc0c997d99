"""The annotation page in a real browser, by keyboard, as a person uses it.

With ``COMES_SCREENSHOTS=docs/images`` the pictures of the documents are taken anew.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from PIL import Image
from sqlalchemy import select
from typer.testing import CliRunner

from browser import launch_browser
from comes.annotate import (
    Project,
    create_project,
    export_answers,
    find_links,
    run_robots,
    serve_in_thread,
    summarise,
)
from comes.annotate.schema import answers
from comes.cli import app
from comes.datasets import Dataset, read_dataset, write_npz
from comes.demo import make_project

DESKTOP, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 780}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launch_browser() as opened:
        yield opened


@pytest.fixture
def scenes(tmp_path: Path, database: str | None) -> Iterator[tuple[Project, Dataset]]:
    project, truth = make_project(tmp_path, 300, database=database)
    yield project, truth
    project.engine.dispose()


def open_page(browser: Any, address: str, name: str = "Ada", **options: Any) -> Any:
    """Open the page in a browser of its own, as a person who says who she is."""
    context = browser.new_context(**{"viewport": DESKTOP, **options})
    page = context.new_page()
    page.set_default_timeout(15_000)
    page.complaints = []
    page.on("console", lambda message: page.complaints.append(message.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.goto(address)
    say_name(page, name)
    wait(page)
    return page


def say_name(page: Any, name: str) -> None:
    page.get_by_label("Name").fill(name)
    page.keyboard.press("Enter")


def wait(page: Any, state: str = "shown") -> None:
    page.wait_for_selector(f'#page[data-state="{state}"]')


def card_of(page: Any) -> tuple[str, str]:
    return page.inner_text("#item-name"), page.inner_text("#class")


def answer(page: Any, key: str) -> tuple[str, str]:
    """Press a key, and return the card that it was for, when another is shown."""
    before = card_of(page)
    page.keyboard.press(key)
    page.wait_for_function(
        "before => document.querySelector('#page').dataset.state === 'shown' && "
        "document.querySelector('#item-name').innerText + "
        "document.querySelector('#class').innerText !== before",
        arg="".join(before),
    )
    return before


def wait_for_item(page: Any, name: str, gone: bool = False) -> None:
    """Wait until an item is shown, or no longer."""
    sign = "!==" if gone else "==="
    shown = "document.querySelector('#item-name').innerText"
    page.wait_for_function(f"item => {shown} {sign} item", arg=name)


def settle(page: Any) -> None:
    """Wait until the server has all answers."""
    page.wait_for_function("() => !Object.keys(localStorage).some(k => k.includes('queue'))")


def stored(project: Project) -> list[tuple[str, str]]:
    """Return who said what, in order, of what stands."""
    with project.reading() as connection:
        query = select(answers.c.annotator, answers.c.answer).where(answers.c.undone_at.is_(None))
        return [(row.annotator, row.answer) for row in connection.execute(query.order_by("id"))]


def take_picture(page: Any, name: str) -> None:
    folder = os.environ.get("COMES_SCREENSHOTS")
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png")


def is_wide(page: Any) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth > innerWidth"))


@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")  # of few exclusions
def test_twenty_cards_undo_reload_a_second_person_export_and_fit(
    browser: Any, scenes: tuple[Project, Dataset], tmp_path: Path
) -> None:
    project, truth = scenes
    relevant, items = truth.known_relevant(), truth.items
    assert items is not None

    def right(item: str, label: str) -> str:
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
        take_picture(page, "annotate-card")

        # The rest by robots, then into training.
        reports = run_robots(address, 2, right)
        assert not any(report.error or report.refused for report in reports)
    counts = export_answers(project, tmp_path / "answers.parquet")
    assert counts["asked"] >= 290 - 40  # but for what is skipped, or held by the open pages
    write_npz(truth, tmp_path / "X.npz")
    data = read_dataset(tmp_path / "answers.parquet", features=tmp_path / "X.npz")
    assert data.candidates is not None
    of_robots_and_ada = ~data.candidates & relevant
    assert of_robots_and_ada.sum() <= 3  # Grace said no without looking
    command = ["fit", str(tmp_path / "answers.parquet"), "--features", str(tmp_path / "X.npz")]
    result = CliRunner().invoke(app, [*command, "--epochs", "1", "-o", str(tmp_path / "model")])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "model").is_dir()


def test_a_grid_of_classes_by_keyboard(browser: Any, tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for number in range(4):
        Image.new("RGB", (320, 240), (40 * number, 90, 160)).save(folder / f"{number}.png")
    (tmp_path / "classes.txt").write_text("sky\nsea\nsun\nsand\nship\n")
    project = create_project(
        tmp_path / "project", folder, tmp_path / "classes.txt", rate=1, by="item"
    )
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        page.goto(f"{address}/grid")
        wait(page)
        first = page.inner_text("#item-name")
        buttons = page.locator("#classes button")
        assert buttons.count() == 5
        page.keyboard.press("1")
        page.keyboard.press("3")
        page.keyboard.press("3")  # and back
        page.keyboard.press("5")
        pressed = [buttons.nth(k).get_attribute("aria-pressed") for k in range(5)]
        assert pressed == ["true", "false", "false", "false", "true"]
        take_picture(page, "annotate-grid")
        page.keyboard.press("Enter")
        wait_for_item(page, first, gone=True)
        wait(page)
        settle(page)
        assert stored(project) == [("Ada", word) for word in ("no", *["maybe"] * 3, "no")]
        page.keyboard.press("z")
        wait_for_item(page, first)
        settle(page)
        assert stored(project) == []
        assert buttons.nth(0).get_attribute("aria-pressed") == "true"  # as it was
        page.keyboard.press("Enter")
        settle(page)
        wait(page)
        page.keyboard.press("s")
        settle(page)
        assert sorted(word for _, word in stored(project))[-5:] == ["skip"] * 5
        assert page.complaints == []


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
        for button in ("#no", "#maybe"):
            box = page.locator(button).bounding_box()
            assert box["height"] >= 48
            assert box["y"] + box["height"] <= PHONE["height"]
        assert not page.locator("#no kbd").is_visible()
        take_picture(page, f"annotate-phone-{scheme}")
        before = card_of(page)
        page.locator("#no").tap()
        wait_for_item(page, before[0], gone=True)
        settle(page)
        assert stored(project) == [("Ada", "no")]


def test_answers_without_a_network_wait_and_are_sent_once(
    browser: Any, scenes: tuple[Project, Dataset]
) -> None:
    project, _ = scenes
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        answer(page, "x")
        settle(page)
        page.wait_for_timeout(300)  # the next pictures are there
        page.context.set_offline(True)
        page.keyboard.press("x")
        page.keyboard.press("Space")
        page.wait_for_function(
            "() => document.querySelector('#network').innerText.includes('for the network')"
        )
        assert len(stored(project)) == 1
        page.context.set_offline(False)
        settle(page)
        page.wait_for_function("() => !document.querySelector('#network').innerText")
        assert [word for _, word in stored(project)] == ["no", "no", "maybe"]


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
        page.get_by_label("Name").fill("Ada")
        assert token not in page.url
        page.keyboard.press("Enter")
        wait(page)
        assert not page.evaluate("document.cookie")  # no script can read the token


def test_a_broken_picture_can_only_be_skipped(browser: Any, tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    (folder / "broken.png").write_bytes(b"no picture")
    (tmp_path / "classes.txt").write_text("sky\n")
    project = create_project(tmp_path / "project", folder, tmp_path / "classes.txt", rate=1)
    with serve_in_thread(project) as address:
        context = browser.new_context()
        page = context.new_page()
        page.goto(address)
        say_name(page, "Ada")
        wait(page, "broken")
        assert "cannot be read" in page.inner_text("#item")
        page.keyboard.press("x")
        page.wait_for_timeout(200)
        assert stored(project) == []
        page.keyboard.press("s")
        wait(page, "finished")
        assert stored(project) == [("Ada", "skip")]
        assert "No card is left for you" in page.inner_text("#heading")


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


def test_the_lead_sees_progress_agreement_and_the_latest_answers(
    browser: Any, tmp_path: Path
) -> None:
    project, truth = make_project(tmp_path, 400, overlap=0.3)
    relevant, items = truth.known_relevant(), truth.items
    assert items is not None

    def say(item: str, label: str) -> str:
        return "maybe" if relevant[items.index(item), int(label)] else "no"

    with serve_in_thread(project) as address:
        run_robots(address, 3, say, most=120)
        page = open_page(browser, address)
        page.goto(f"{address}/lead")
        summary = summarise(project)
        text = page.inner_text("main")
        assert f"{summary.n_done} of {summary.n_cards} cards are done" in text
        assert "robot 1" in text and "kappa" in text
        assert page.locator("table tbody tr").count() >= 10 + 3
        take_picture(page, "annotate-lead")
        assert not is_wide(page)
        assert page.complaints == []
