"""The flow of cards in a real browser: ahead, offline, after closing, and faster than one can look."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from annotation_browser import (
    open_page,
    settle,
    stored,
    stored_pairs,
)
from browser import launch_browser
from comes.annotate import Project, create_project, serve_in_thread
from comes.annotate.sampling import BLOCK

LATENCY = 0.4  # seconds


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


# From press to the next card that can be answered, in milliseconds, but for changes of class.
TIME_CARDS = """async (n) => {
  const page = document.querySelector("#page");
  const isOpen = () => page.dataset.state === "shown" && page.dataset.guarded !== "true";
  const shown = () => document.querySelector("#item-name").innerText;
  const label = () => document.querySelector("#class").innerText;
  const end = performance.now() + 60_000;
  const frame = () => new Promise((resolve, reject) => {
    if (performance.now() > end) reject(new Error("stuck"));
    else requestAnimationFrame(resolve);
  });
  const times = [];
  for (let k = 0; k < n; k += 1) {
    while (!isOpen()) await frame();
    const [before, asked, start] = [shown(), label(), performance.now()];
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "x", code: "KeyX", bubbles: true }));
    while (shown() === before && label() === asked) await frame();
    times.push(performance.now() - start);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return times;
}"""


def test_a_slow_network_is_not_felt_at_the_end_of_a_block(browser: Any, tmp_path: Path) -> None:
    project = text_project(tmp_path, 100, 2)
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        quick = page.evaluate(TIME_CARDS, 50)
        assert len({label for _, label in stored_pairs(project)}) >= 1
        delay_everything(page)
        slow = page.evaluate(TIME_CARDS, 50)
        settle(page)
    assert len(stored(project)) == 100 > 4 * BLOCK
    assert max(slow) < max(quick) + 150
    project.engine.dispose()
