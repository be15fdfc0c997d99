"""The flow of cards in a real browser: ahead, offline, after closing, faster than one can look."""

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from annotation_browser import (
    answer,
    card_of,
    held,
    open_page,
    say_name,
    scene_project,
    settle,
    skip_introduction,
    stored,
    stored_pairs,
    wait,
    wait_for_item,
    wait_until_free,
)
from browser import launch_browser
from comes.annotate import Project, create_project, export_answers, serve_in_thread
from comes.annotate.cards import BLOCK, By
from comes.annotate.schema import answers, cards
from comes.answers import State
from comes.datasets import open_dataset

pytestmark = pytest.mark.needs("chromium")

LATENCY = 0.4  # seconds
OPEN_OR_DONE = '#page[data-state="shown"]:not([data-guarded="true"]), #page[data-state="finished"]'


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launch_browser() as opened:
        yield opened


def text_project(home: Path, n_items: int, n_classes: int, **options: Any) -> Project:
    rows = "".join(f"item {k},text {k}\n" for k in range(n_items))
    (home / "items.csv").write_text(f"item,text\n{rows}")
    (home / "classes.txt").write_text("".join(f"class {k}\n" for k in range(n_classes)))
    sources = home / "items.csv", home / "classes.txt"
    return create_project(home / "project", *sources, rate=1, **options)


def delay_everything(page: Any) -> None:
    """Let every request of a page take longer."""

    def wait_and_go_on(route: Any) -> None:
        time.sleep(LATENCY)
        route.continue_()

    page.route("**/api/**", wait_and_go_on)


def see(page: Any) -> str:
    """Return a state of the page once no picture is being loaded any more."""
    page.wait_for_load_state("networkidle")
    return str(page.locator("#page").get_attribute("data-state"))


def kept(page: Any) -> int:
    """Count the answers that wait in this browser."""
    return int(
        page.evaluate("""() => Object.keys(localStorage).filter(k => k.startsWith("comes-queue-"))
            .flatMap(k => JSON.parse(localStorage[k]).entries).length""")
    )


# ---- a slow network, and none


# Answer cards, ten a second at most; return how often the page had to wait for cards.
ANSWER_CARDS = """async (n) => {
  const page = document.querySelector("#page");
  const isOpen = () => page.dataset.state === "shown" && page.dataset.guarded !== "true";
  const shown = () => document.querySelector("#item-name").innerText;
  const label = () => document.querySelector("#class").innerText;
  const end = performance.now() + 120_000;
  const frame = () => new Promise((resolve, reject) => {
    if (performance.now() > end) reject(new Error("stuck"));
    else requestAnimationFrame(resolve);
  });
  let waits = 0;
  const watch = new MutationObserver(() => { waits += page.dataset.state === "loading"; });
  watch.observe(page, { attributeFilter: ["data-state"] });
  for (let k = 0; k < n; k += 1) {
    while (!isOpen()) await frame();
    const [before, asked] = [shown(), label()];
    const x = { key: "x", code: "KeyX", bubbles: true };
    document.body.dispatchEvent(new KeyboardEvent("keydown", x));
    while (shown() === before && label() === asked) await frame();
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  watch.disconnect();
  return waits;
}"""


def test_a_slow_network_is_not_felt_at_the_end_of_a_block(browser: Any, tmp_path: Path) -> None:
    project = text_project(tmp_path, 80, 1)
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        delay_everything(page)
        assert page.evaluate(ANSWER_CARDS, 70) == 0  # blocks end three times here
        settle(page)
    assert len(stored(project)) == 70 > 3 * BLOCK
    project.engine.dispose()


@pytest.mark.parametrize("by", ["class", "item"])
def test_a_whole_block_is_answered_without_a_network(browser: Any, tmp_path: Path, by: By) -> None:
    project, _ = scene_project(tmp_path, n=24, n_classes=2, by=by)
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        assert see(page) == "shown"
        page.context.set_offline(True)
        asked = [answer(page, "x") for _ in range(BLOCK - 1)]
        assert len(set(asked)) == len(asked) == kept(page)
        page.wait_for_function(
            "n => document.querySelector('#network').innerText.includes(`${n} answers are safe`)",
            arg=len(asked),
        )
        assert stored(project) == []
        page.context.set_offline(False)
        settle(page)
        answer(page, "x")  # and on it goes
        settle(page)
        assert page.inner_text("#network") == ""
    assert len(stored_pairs(project)) == BLOCK
    assert set(asked) <= set(stored_pairs(project))
    project.engine.dispose()


def test_the_grid_goes_on_without_a_network(browser: Any, tmp_path: Path) -> None:
    project, _ = scene_project(tmp_path, n=12, n_classes=4, by="item")
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        page.goto(f"{address}/grid")
        wait(page)
        assert see(page) == "shown"
        page.context.set_offline(True)
        for _ in range(3):
            item = page.inner_text("#item-name")
            for number in range(1, 5):
                page.keyboard.press(str(number))
            page.keyboard.press("Enter")
            wait_for_item(page, item, gone=True)
            wait(page)
        assert kept(page) == 12 and stored(project) == []
        page.context.set_offline(False)
        settle(page)
    assert len(stored_pairs(project)) == 12
    project.engine.dispose()


def test_where_the_network_ends_the_page_says_so_and_goes_on_later(
    browser: Any, tmp_path: Path
) -> None:
    project = text_project(tmp_path, 60, 1)
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        page.context.set_offline(True)
        page.evaluate(ANSWER_CARDS, BLOCK - 1)
        page.keyboard.press("x")  # the last of the block
        wait(page, "loading")
        assert page.locator("#no").get_attribute("aria-disabled") == "true"
        assert f"{BLOCK} answers are safe" in page.inner_text("#network")
        page.context.set_offline(False)
        wait(page)
        settle(page)
    assert len(stored(project)) == BLOCK
    project.engine.dispose()


# ---- closing, reloading, another browser


def test_a_closed_tab_gives_its_cards_back_and_they_and_undo_are_found_again(
    browser: Any, tmp_path: Path
) -> None:
    project = text_project(tmp_path, 60, 2)
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        asked = [answer(page, "x") for _ in range(3)]
        settle(page)
        on_show = card_of(page)
        assert held(project) == {"Ada"}
        context = page.context
        page.close(run_before_unload=True)  # as a person closes it; else it is killed
        wait_until_free(project)
        again = context.new_page()
        again.goto(address)
        wait(again)
        assert card_of(again) == on_show
        again.keyboard.press("z")  # a new tab
        wait_for_item(again, asked[-1][0])
        settle(again)
        assert len(stored(project)) == 2
        again.goto("about:blank")
        wait_until_free(project)
        elsewhere = open_page(browser, address)  # a new browser
        assert card_of(elsewhere) == asked[-1]
        elsewhere.keyboard.press("z")
        wait_for_item(elsewhere, asked[-2][0])
        settle(elsewhere)
        assert len(stored(project)) == 1
        answer(elsewhere, "y")
        settle(elsewhere)
    assert [word for _, word in stored(project)] == ["no", "yes"]
    project.engine.dispose()


def test_every_tab_that_is_left_gives_its_cards_back(browser: Any, tmp_path: Path) -> None:
    """What a page sends last does not pass through the service worker, which may drop it."""
    project = text_project(tmp_path, 60, 2)
    with serve_in_thread(project) as address:
        first = open_page(browser, address)
        for _ in range(8):
            answer(first, "x")
        settle(first)
        for _ in range(8):
            page = first.context.new_page()
            page.goto(address)
            wait(page)
            page.keyboard.press("z")
            settle(page)
            page.goto("about:blank")
        first.goto("about:blank")
        wait_until_free(project)
    project.engine.dispose()


def test_going_back_and_reloading_lose_no_card(browser: Any, tmp_path: Path) -> None:
    project = text_project(tmp_path, 60, 2)
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        answer(page, "x")
        settle(page)
        on_show = card_of(page)
        page.reload()
        wait(page)
        assert card_of(page) == on_show
        page.goto("about:blank")
        page.go_back()
        wait(page)
        assert card_of(page) == on_show
        answer(page, "y")
        settle(page)
    assert [word for _, word in stored(project)] == ["no", "yes"]
    project.engine.dispose()


def test_answers_that_are_on_their_way_when_a_tab_is_closed_arrive(
    browser: Any, tmp_path: Path
) -> None:
    project = text_project(tmp_path, 60, 1)
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        page.on("dialog", lambda dialog: dialog.accept())
        page.context.set_offline(True)
        asked = [answer(page, "x") for _ in range(5)]
        page.goto("about:blank")
        page.context.set_offline(False)
        page.goto(address)
        wait(page)
        settle(page)
        assert card_of(page) not in asked
    assert set(stored_pairs(project)) == set(asked)
    project.engine.dispose()


def test_the_cards_of_a_tab_that_was_killed_are_found_in_the_same_browser(
    browser: Any, tmp_path: Path
) -> None:
    project = text_project(tmp_path, 60, 1)
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        answer(page, "x")
        settle(page)
        on_show, context = card_of(page), page.context
        page.evaluate("navigator.sendBeacon = () => true")  # nothing is heard of its end
        page.close()
        assert held(project) == {"Ada"}
        again = context.new_page()
        again.goto(address)
        wait(again)
        assert card_of(again) == on_show
    project.engine.dispose()


def test_a_name_that_looks_like_a_known_one_is_asked_about(browser: Any, tmp_path: Path) -> None:
    project = text_project(tmp_path, 60, 1)
    with serve_in_thread(project) as address:
        open_page(browser, address, "Ada")
        page = browser.new_context().new_page()
        page.goto(address)
        say_name(page, "ADA")
        page.locator("#same").wait_for()
        assert "Ada" in page.inner_text("#known")
        page.locator("#other").click()
        say_name(page, "Ada B.")
        skip_introduction(page)
        wait(page)
        assert page.inner_text("#person") == "Ada B."
        page.goto(f"{address}/join")
        say_name(page, "ada")
        page.locator("#same").click()
        page.wait_for_url(f"{address}/")
        assert page.inner_text("#person") == "Ada"
    project.engine.dispose()


def test_a_frozen_project_says_so_and_takes_what_is_open(browser: Any, tmp_path: Path) -> None:
    project = text_project(tmp_path, 30, 1)
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        project.write_setting("frozen_at", str(time.time()))
        page.evaluate(ANSWER_CARDS, BLOCK)
        wait(page, "finished")
        settle(page)
        assert page.inner_text("#heading") == "The project is closed"
    assert len(stored(project)) == BLOCK
    project.engine.dispose()


# ---- what is asked is what is stored


def truth_of(page: Any, truth: dict[str, set[str]], things: list[str]) -> str:
    """Answer the plain question on the page as a person does who reads it, from what is there."""
    question, item = page.inner_text("#heading"), page.inner_text("#item-name")
    assert question.startswith("Is there a") and question.endswith(" in this picture?")
    [thing] = [one for one in things if f" {one} " in question]
    return "y" if thing in truth[item] else "x"


def check_export(project: Project, home: Path, truth: dict[str, set[str]], n_classes: int) -> None:
    """What comes out for training is the truth, no more and no less."""
    export_answers(project, home / "answers.csv")
    data = open_dataset(home / "answers.csv")
    codes, items = data.known_answers().codes, data.items
    assert items is not None
    words = {
        (item, label): State(codes[row, column]).word
        for row, item in enumerate(items)
        for column, label in enumerate(data.label_names)
    }
    expected = {
        (item, label): "yes" if label in there else "no"
        for item, there in truth.items()
        for label in data.label_names
    }
    assert len(words) == n_classes * len(truth)
    assert words == expected


def test_who_answers_the_plain_question_truthfully_gives_the_truth(
    browser: Any, tmp_path: Path
) -> None:
    project, truth = scene_project(tmp_path, n=12)
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        while page.locator("#page").get_attribute("data-state") != "finished":
            page.keyboard.press(truth_of(page, truth, project.class_names))
            page.wait_for_selector(OPEN_OR_DONE)
        settle(page)
        assert page.complaints == []
    check_export(project, tmp_path, truth, 4)
    project.engine.dispose()


def test_and_so_does_the_grid(browser: Any, tmp_path: Path) -> None:
    project, truth = scene_project(tmp_path, n=8, by="item")
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        page.goto(f"{address}/grid")
        wait(page)
        while page.locator("#page").get_attribute("data-state") != "finished":
            item = page.inner_text("#item-name")
            rows = page.locator("#classes .row")
            assert page.inner_text("#heading") == "What is in this picture?"
            for k in range(rows.count()):
                thing = rows.nth(k).locator(".name").inner_text()
                page.keyboard.press("y" if thing in truth[item] else "x")
            page.keyboard.press("Enter")
            wait_for_item(page, item, gone=True)
            page.wait_for_selector(OPEN_OR_DONE)
        settle(page)
        assert page.complaints == []
    check_export(project, tmp_path, truth, 4)
    project.engine.dispose()


# Press keys as fast as a browser takes them, and note for each which card was on the screen.
PRESS = """(n) => new Promise((resolve) => {
  const page = document.querySelector("#page");
  const heading = document.querySelector("#heading");
  const name = document.querySelector("#item-name");
  const keys = [["x", "KeyX"], [" ", "Space"], ["y", "KeyY"]];
  const painted = { card: "", question: "", since: 0 };
  const look = () => {
    const card = `${name.innerText} / ${document.querySelector("#class")?.innerText}`;
    if (painted.question !== heading.innerText) painted.since = performance.now();
    painted.card = card;
    painted.question = heading.innerText;
    requestAnimationFrame(look);
  };
  look();
  const log = [];
  const add = Storage.prototype.setItem;
  let pressed = null;
  Storage.prototype.setItem = function (key, value) {
    if (pressed && key.startsWith("comes-history-")) {
      const given = JSON.parse(value).at(-1)?.[0];
      const card = `${given.card.name} / ${given.card.class}`;
      log.push({ card, onScreen: pressed.card, since: pressed.at - pressed.since });
    }
    return add.call(this, key, value);
  };
  let count = 0;
  const channel = new MessageChannel();
  channel.port1.onmessage = () => {
    if (count >= n || page.dataset.state === "finished") return resolve([count, log]);
    const [key, code] = keys[count % 3];
    pressed = { ...painted, at: performance.now() };
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key, code, bubbles: true }));
    pressed = null;
    count += 1;
    setTimeout(() => channel.port2.postMessage(0), 3);
  };
  channel.port2.postMessage(0);
})"""


def test_a_thousand_presses_never_answer_what_was_not_on_the_screen(
    browser: Any, tmp_path: Path
) -> None:
    """Nor a card of a new class within half a second; keys are pressed 300 times a second."""
    project = text_project(tmp_path, 4, 60, by="item")  # the class changes every four cards
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        count, log = page.evaluate(PRESS, 1000)
        settle(page)
        assert count == 1000 and len(log) > 10
        assert [one for one in log if one["card"] != one["onScreen"]] == []
        classes = [one["card"].split(" / ")[1] for one in log]
        changes = [k for k in range(1, len(log)) if classes[k] != classes[k - 1]]
        assert len(changes) >= 3
        assert min(log[k]["since"] for k in changes) >= 500
    assert len(stored(project)) == len(log)
    project.engine.dispose()


def test_presses_of_a_real_keyboard_come_in_a_burst_and_are_not_kept(
    browser: Any, tmp_path: Path
) -> None:
    """What is pressed before a card is painted is not an answer to it."""
    project = text_project(tmp_path, 3, 4, by="item")
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        for _ in range(40):
            page.keyboard.press("x")
            page.keyboard.press("y")
        settle(page)
    query = select(answers.c.seconds, cards.c.class_id).join(cards, cards.c.id == answers.c.card_id)
    with project.reading() as connection:
        rows = connection.execute(query.order_by(answers.c.id)).all()
    looks = [
        later.seconds for earlier, later in pairwise(rows) if earlier.class_id != later.class_id
    ]
    assert all(seconds > 0.45 for seconds in looks)
    project.engine.dispose()
