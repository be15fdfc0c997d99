"""The annotation page without a network, and its end: nothing is lost, and it says what is so."""

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from annotation_browser import (
    answer,
    card_of,
    open_page,
    say_name,
    scene_project,
    settle,
    skip_introduction,
    stored,
    stored_pairs,
    text_project,
    wait,
    wait_for_words,
)
from comes.annotate import Project, serve_in_thread
from comes.annotate.links import revoke_links
from comes.annotate.web.server import find_links

pytestmark = pytest.mark.needs("chromium")

# What the service worker has kept.
KEPT = """async () => {
  const kept = await caches.open("comes").then((cache) => cache.keys());
  return kept.map(({ url }) => new URL(url).pathname);
}"""
TEXTS_KEPT = """async () => {
  const kept = await caches.open("comes").then((cache) => cache.matchAll());
  return (await Promise.all(kept.map((reply) => reply.text()))).join();
}"""


def poll(page: Any, script: str, holds: Callable[[Any], bool]) -> None:
    """Wait for what a script resolves to; `wait_for_function` takes a promise for an answer."""
    until = time.monotonic() + 30
    while not holds(found := page.evaluate(script)):
        assert time.monotonic() < until, found
        page.wait_for_timeout(50)


def make(home: Path, kind: str) -> Project:
    if kind == "texts":
        return text_project(home, [f"a goal, and {k} more" for k in range(8)])
    return scene_project(home, n=8, n_classes=1)[0]


def wait_until_kept(page: Any, kind: str) -> None:
    page.wait_for_function("() => navigator.serviceWorker.controller")
    n_pictures = 8 if kind == "pictures" else 0
    wanted = {"/", "/static/annotate.js", "/static/annotate.css", "/static/item.js"}
    poll(page, KEPT, lambda kept: wanted <= {*kept} and str(kept).count("/items/") == n_pictures)


def test_answers_without_a_network_wait_and_are_sent_once(browser: Any, tmp_path: Path) -> None:
    project = make(tmp_path, "pictures")
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        answer(page, "x")
        settle(page)
        page.wait_for_load_state("networkidle")  # the next pictures are there
        page.context.set_offline(True)
        answer(page, "x")
        answer(page, "Space")
        wait_for_words(page, "#network", "answers are safe in this browser")
        assert len(stored(project)) == 1
        page.context.set_offline(False)
        settle(page)
        page.wait_for_function("() => !document.querySelector('#network').innerText")
        assert [word for _, word in stored(project)] == ["no", "no", "maybe"]


@pytest.mark.parametrize("kind", ["pictures", "texts"])
@pytest.mark.parametrize("missing", ["network", "server"])
def test_a_reload_without_a_network_goes_on_with_the_cards_that_are_here(
    browser: Any, tmp_path: Path, kind: str, missing: str
) -> None:
    project = make(tmp_path, kind)
    said = {}
    with serve_in_thread(project) as address:
        port = int(address.rpartition(":")[2])
        page = open_page(browser, address)
        wait_until_kept(page, kind)
        said[answer(page, "x")] = "no"
        settle(page)
        page.context.set_offline(missing == "network")
        if missing == "network":
            go_on_alone(page, said)
            page.context.set_offline(False)
            settle(page)
    if missing == "server":
        go_on_alone(page, said)
    with serve_in_thread(project, port=port):
        settle(page)
        page.wait_for_function("() => !document.querySelector('#network').innerText")
        while len(said) < 7:
            said[answer(page, "x")] = "no"
        said[card_of(page)] = "no"
        page.keyboard.press("x")
        wait(page, "finished")
        assert page.inner_text("#counts") == "8 of 8 cards, 8 by you"
    assert len(stored(project)) == 8  # none doubled
    assert stored_pairs(project) == said


def go_on_alone(page: Any, said: dict[Any, str]) -> None:
    before = card_of(page)
    page.reload()
    wait(page)
    assert card_of(page) == before
    wait_for_words(page, "#network", "No connection to the server: 7 cards are here")
    assert page.inner_text("#counts") == "1 of 8 cards, 1 by you"
    said[answer(page, "y")] = "yes"
    said[answer(page, "Space")] = "maybe"
    page.reload()  # with answers on their way
    wait(page)
    wait_for_words(page, "#network", "No connection to the server: 5 cards are here")
    said[answer(page, "x")] = "no"
    wait_for_words(page, "#network", "3 answers are safe")


def test_nothing_is_kept_of_somebody_else(browser: Any, tmp_path: Path) -> None:
    project = make(tmp_path, "texts")
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        wait_until_kept(page, "texts")
        page.goto(f"{address}/lead")
        assert sorted(path for path in page.evaluate(KEPT) if "static" not in path) == ["/"]
        assert ">Ada<" in page.evaluate(TEXTS_KEPT)
        page.context.clear_cookies()
        cookie = {"name": "comes_name", "value": "Bob", "url": address}
        page.context.add_cookies([cookie])  # as if another window had joined
        page.goto(address)
        skip_introduction(page)
        wait(page)
        poll(page, TEXTS_KEPT, lambda texts: ">Bob<" in texts)
        assert ">Ada<" not in page.evaluate(TEXTS_KEPT)


def test_who_is_no_longer_let_in_has_nothing_kept(browser: Any, tmp_path: Path) -> None:
    project = make(tmp_path, "texts")
    token = (find_links(project, "0.0.0.0") or {})["annotator"]
    with serve_in_thread(project, needs_token=True) as address:
        page = browser.new_context().new_page()
        page.goto(f"{address}/?token={token}")
        say_name(page, "Ada")
        skip_introduction(page)
        wait(page)
        wait_until_kept(page, "texts")
        revoke_links(project)
        status = "fetch('/api/history').then((reply) => reply.status)"
        poll(page, status, lambda found: found == 401)  # the server reads its links now and then
        page.keyboard.press("x")
        wait(page, "stopped")
        poll(page, KEPT, lambda kept: kept == [])
        assert page.evaluate("sessionStorage.getItem('comes-cards')") is None
        assert stored(project) == []
        assert "1 answer is kept in this browser" in page.inner_text("#alarm")


def test_the_end_counts_what_everybody_did(browser: Any, tmp_path: Path) -> None:
    project = text_project(tmp_path, [f"text {k}" for k in range(30)])
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        other = open_page(browser, address, "Bob")
        for _ in range(4):
            answer(other, "x")
        settle(other)  # and Bob holds six more
        shown: Counter[tuple[str, str]] = Counter()
        page.context.set_offline(True)  # the last answers take a while
        while page.get_attribute("#page", "data-state") == "shown":
            shown[card_of(page)] += 1
            page.keyboard.press("x")
            page.wait_for_timeout(60)
        assert sum(shown.values()) >= 20
        assert "Sending the last answers" in page.inner_text("#item") or page.inner_text("#network")
        assert stored(project).count(("Ada", "no")) == 0
        page.context.set_offline(False)
        wait(page, "finished")
        assert page.inner_text("#heading") == "No card is left for you"
        assert "6 cards are open with someone else" in page.inner_text("#item")
        assert page.inner_text("#counts") == "24 of 30 cards, 20 by you"
        assert page.inner_text("#left") == page.inner_text("#pace") == ""
        assert stored(project).count(("Ada", "no")) == 20
        for _ in range(5):
            answer(other, "x")
        other.keyboard.press("x")
        wait(other, "finished")
        assert other.inner_text("#heading") == "All done, thank you!"
        assert other.inner_text("#counts") == "30 of 30 cards, 10 by you"
        page.locator("#again").click()
        wait_for_words(page, "#heading", "All done, thank you!")
        assert page.inner_text("#counts") == "30 of 30 cards, 20 by you"
