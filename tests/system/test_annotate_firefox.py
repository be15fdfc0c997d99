"""The annotation page in Firefox, by keyboard: what the tests in Chromium show holds there, too."""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from annotation_browser import THINGS, scene_project, stored, stored_pairs
from comes.annotate import serve_in_thread
from firefox import Firefox, launch_firefox

pytestmark = pytest.mark.needs("firefox")

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
READY = (
    "document.querySelector('#page')?.dataset.state === 'shown' && "
    "document.querySelector('#page').dataset.guarded !== 'true'"
)
SETTLED = "!Object.keys(localStorage).some((name) => name.includes('queue'))"

# Press x, which ends a class, and y at the moment of the change.
PRESS_AT_CHANGE = """
  const page = document.querySelector("#page");
  const press = (key, code) =>
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key, code, bubbles: true }));
  return new Promise((resolve) => {
    new MutationObserver((_, observer) => {
      if (page.dataset.guarded !== "true") return;
      observer.disconnect();
      press("y", "KeyY");
      resolve();
    }).observe(page, { attributeFilter: ["data-guarded"] });
    press("x", "KeyX");
  });
"""


@pytest.fixture(scope="module")
def firefox() -> Iterator[Firefox]:
    with launch_firefox() as opened:
        opened.resize(1280, 900)
        yield opened


def join(firefox: Firefox, address: str) -> None:
    """Say a name on the page of a project, and skip the introduction."""
    firefox.goto(f"{address}/join")
    firefox.wait_for(
        "document.activeElement.id === 'name' && document.querySelector('#start:enabled')"
    )
    firefox.type("Ada")
    firefox.press("Enter")
    firefox.wait_for("document.querySelector('#introduction[open]')")


def card_of(firefox: Firefox) -> tuple[str, str]:
    return firefox.text("#item-name"), firefox.text("#class")


def find_faults(firefox: Firefox) -> list[str]:
    """Return what axe-core finds serious or critical."""
    firefox.evaluate(AXE)
    run = "return axe.run(document, { resultTypes: ['violations'] }).then((found) => "
    chosen = "found.violations.filter(({ impact }) => ['serious', 'critical'].includes(impact))"
    shown = ".map(({ id, nodes }) => id + ' ' + nodes.map(({ target }) => target).join(', ')))"
    return list(firefox.evaluate(run + chosen + shown))


def test_cards_from_the_introduction_to_the_end(firefox: Firefox, tmp_path: Path) -> None:
    project, truth = scene_project(tmp_path, n=3, n_classes=3)
    with serve_in_thread(project) as address:
        join(firefox, address)
        assert find_faults(firefox) == []
        for key in ("x", "Enter", "Space", "Enter", "y", "Enter", "Enter"):
            firefox.press(key)
        firefox.wait_for(READY)
        assert stored(project) == []
        assert find_faults(firefox) == []
        n_changes, last = 0, None
        for k in range(9):
            item, thing = card_of(firefox)
            assert firefox.text("#heading") == f"Is there a {thing} in this picture?"
            n_changes += last not in (None, thing)
            last = thing
            firefox.press("y" if thing in truth[item] else "x")
            if k < 8:
                after = "document.querySelector('#item-name').innerText + "
                after += "document.querySelector('#class').innerText !== arguments[0]"
                firefox.wait_for(f"{READY} && {after}", item + thing)
        firefox.wait_for("document.querySelector('#page').dataset.state === 'finished'")
        firefox.wait_for(SETTLED)
        assert n_changes == 2
        assert stored_pairs(project) == {
            (item, thing): "yes" if thing in truth[item] else "no"
            for item in truth
            for thing in THINGS[:3]
        }
        assert firefox.text("#heading") == "All done, thank you!"
        assert "9\nanswers by you" in firefox.text(".numbers")
        assert find_faults(firefox) == []


def test_after_a_change_of_class_presses_are_not_taken(firefox: Firefox, tmp_path: Path) -> None:
    project, _ = scene_project(tmp_path, n=2, n_classes=2)
    with serve_in_thread(project) as address:
        join(firefox, address)
        firefox.press("Escape")
        firefox.wait_for(READY)
        first = card_of(firefox)[1]
        firefox.press("x")
        firefox.wait_for(f"{READY} && document.querySelector('#trace').innerText")
        firefox.evaluate(PRESS_AT_CHANGE)
        firefox.wait_for(READY)
        assert card_of(firefox)[1] != first
        firefox.wait_for(SETTLED)
        assert [word for _, word in stored(project)] == ["no", "no"]


def test_the_grid_and_the_dialogs(firefox: Firefox, tmp_path: Path) -> None:
    project, _ = scene_project(tmp_path, n=2, n_classes=4, by="item")
    with serve_in_thread(project) as address:
        join(firefox, address)
        firefox.press("Escape")
        firefox.wait_for(READY)
        firefox.press("?")
        firefox.wait_for("document.querySelector('#help-dialog[open]')")
        assert find_faults(firefox) == []
        firefox.press("Escape")
        firefox.goto(f"{address}/grid")
        firefox.wait_for(READY)
        item = firefox.text("#item-name")
        firefox.press("2")
        firefox.press("n")
        assert find_faults(firefox) == []
        firefox.press("Enter")
        firefox.wait_for("document.querySelector('#item-name').innerText !== arguments[0]", item)
        firefox.wait_for(SETTLED)
        expected = {"boat": "no", "house": "yes", "tree": "no", "sun": "no"}
        assert stored_pairs(project) == {(item, thing): said for thing, said in expected.items()}
