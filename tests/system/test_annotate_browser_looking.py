"""Looking at an item in a real browser: all of it, with nothing over it, and before an answer."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from annotation_browser import (
    ON_PHONE,
    answer,
    card_of,
    open_page,
    scene_project,
    settle,
    stored,
    swipe,
    text_project,
    wait,
    wait_for_item,
    wait_for_words,
)
from comes.annotate import Project, create_project, serve_in_thread

pytestmark = pytest.mark.needs("chromium")

DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 720}}
SMALL: dict[str, Any] = {"viewport": {"width": 600, "height": 200}}
WAYS = pytest.mark.parametrize("way", [DESKTOP, ON_PHONE], ids=["desktop", "phone"])
LONG = "A sentence that goes on. " * 300
SHAPES = {"wide": (1200, 300), "square": (800, 800), "portrait": (600, 900), "tall": (300, 2400)}
SCALE = "new DOMMatrix(getComputedStyle(document.querySelector('#item img')).transform)"
WHOLE = '#page[data-seen="true"]'

# The sides of the picture as it is drawn, how far they are outside the stage or the window.
OUTSIDE = """() => {
  const image = document.querySelector("#item img");
  const box = image.getBoundingClientRect();
  const stage = document.querySelector("#stage").getBoundingClientRect();
  const scale = Math.min(box.width / image.naturalWidth, box.height / image.naturalHeight);
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  const [w, h] = [image.naturalWidth * scale / 2, image.naturalHeight * scale / 2];
  return Math.max(
    Math.max(stage.left, 0) - (x - w), x + w - Math.min(stage.right, innerWidth),
    Math.max(stage.top, 0) - (y - h), y + h - Math.min(stage.bottom, innerHeight),
  );
}"""

# What lies over the item: everything that is seen, does not hold the stage and is not in it.
OVER = """() => {
  const stage = document.querySelector("#stage");
  const item = stage.getBoundingClientRect();
  const others = [...document.body.querySelectorAll("*")].filter((element) =>
    !stage.contains(element) && !element.contains(stage) && element.checkVisibility());
  return others.filter((element) => {
    const box = element.getBoundingClientRect();
    return box.width > 1 && box.height > 1 && box.left < item.right - 1 && box.right > item.left + 1
      && box.top < item.bottom - 1 && box.bottom > item.top + 1;
  }).map((element) => element.outerHTML.slice(0, 80));
}"""

# Where the parts of the page are that must not move.
PLACES = """() => ["#stage", "#heading", ".messages", ".actions", ".tools"].map((place) => {
  const { y, height } = document.querySelector(place).getBoundingClientRect();
  return [place, y, height].join(" ");
})"""


def picture_project(home: Path, sizes: dict[str, tuple[int, int]], n_classes: int = 1) -> Project:
    (home / "photos").mkdir()
    for name, size in sizes.items():
        Image.new("RGB", size, (190, 221, 240)).save(home / "photos" / f"{name}.png")
    (home / "classes.txt").write_text("boat\ncar\nsun\ntree\n"[: 5 * n_classes])
    return create_project(home / "project", home / "photos", home / "classes.txt", rate=1)


def messages_of(page: Any) -> str:
    return str(page.inner_text(".messages"))


# All of it


@WAYS
def test_a_picture_of_any_shape_is_shown_whole(browser: Any, tmp_path: Path, way: Any) -> None:
    project = picture_project(tmp_path, SHAPES)
    with serve_in_thread(project) as address:
        page = open_page(browser, address, **way)
        for k in range(len(SHAPES)):
            assert page.evaluate(OUTSIDE) <= 1, card_of(page)
            assert not page.locator("#below").is_visible()
            if k < len(SHAPES) - 1:
                answer(page, "x")
        page.keyboard.press("x")  # at once
        wait(page, "finished")
        assert stored(project) == [("Ada", "no")] * 4


def press(page: Any, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def click(page: Any, *places: str) -> None:
    for place in places:
        page.locator(place).first.click(force=True)


def pull(page: Any, dx: float, dy: float) -> None:
    box = page.locator("#stage").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    swipe(page, [(x + dx * k / 4, y + dy * k / 4) for k in range(5)])


def pull_both_ways(page: Any) -> None:
    for dx in (-150, 150):
        pull(page, dx, 0)


TRIES: dict[str, tuple[str, dict[str, Any], Any]] = {
    "keys": ("/", DESKTOP, lambda page: press(page, "x", "y")),
    "buttons": ("/", DESKTOP, lambda page: click(page, "#no", "#maybe", "#yes")),
    "buttons, phone": ("/", ON_PHONE, lambda page: click(page, "#no", "#maybe", "#yes")),
    "swipes": ("/", ON_PHONE, pull_both_ways),
    "grid, keys": ("/grid", DESKTOP, lambda page: press(page, "1", "x", "n", "m", "Enter")),
    "grid, buttons": ("/grid", ON_PHONE, lambda page: click(page, ".choice", "#rest-no", "#done")),
    "small window": ("/", SMALL, lambda page: press(page, "x", "y")),
    "small window, grid": ("/grid", SMALL, lambda page: press(page, "1", "2", "Enter")),
}


@pytest.mark.parametrize("name", TRIES)
def test_nothing_is_answered_before_all_of_a_text_was_on_the_screen(
    browser: Any, tmp_path: Path, name: str
) -> None:
    place, way, attempt = TRIES[name]
    project = text_project(tmp_path, [LONG, LONG], ["sport", "art"], by="item")
    with serve_in_thread(project) as address:
        page = open_page(browser, address, **way)
        page.goto(address + place)
        wait(page)
        before = page.inner_text("#item-name")
        attempt(page)
        wait_for_words(page, "#notice", "Scroll to the end first: part of the text was not on")
        page.evaluate("document.querySelector('#stage').scrollTop = 1e6")  # over the middle
        page.wait_for_timeout(100)
        attempt(page)
        assert page.get_attribute("#done" if place == "/grid" else "#no", "aria-disabled") == "true"
        assert page.inner_text("#item-name") == before
        page.evaluate("document.querySelector('#stage').focus()")
        while not page.locator(WHOLE).count():
            page.keyboard.press("Space")
            page.wait_for_timeout(30)
        settle(page)
        assert stored(project) == []
        attempt(page)
        page.wait_for_function("() => document.querySelector('#progress').value > 0")  # taken now


def test_a_picture_is_answered_once_all_of_it_was_in_the_window(
    browser: Any, tmp_path: Path
) -> None:
    project = picture_project(tmp_path, {"a": (400, 400), "b": (400, 400)})
    with serve_in_thread(project) as address:
        page = open_page(browser, address, **SMALL)
        press(page, "x")
        wait_for_words(page, "#notice", "part of the picture was not on the screen")
        press(page, "c", "Escape")  # what is no answer is allowed
        page.evaluate("document.querySelector('#stage').scrollIntoView({ block: 'start' })")
        page.wait_for_selector(WHOLE)
        answer(page, "x")
        settle(page)
        assert stored(project) == [("Ada", "no")]


def test_space_scrolls_a_long_text_and_what_was_undone_need_not_be_read_again(
    browser: Any, tmp_path: Path
) -> None:
    project = text_project(tmp_path, [LONG, LONG, LONG])
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        first = page.inner_text("#item-name")
        n_presses = 0
        while page.locator("#below").is_visible():
            page.keyboard.press("Space")
            page.wait_for_timeout(30)
            n_presses += 1
            assert page.inner_text("#item-name") == first
        assert n_presses >= 2
        page.wait_for_selector(WHOLE)
        answer(page, "Space")
        assert page.locator("#below").is_visible()  # the next text begins at its top
        page.keyboard.press("x")
        page.keyboard.press("z")
        wait_for_item(page, first)
        answer(page, "x")
        settle(page)
        assert stored(project) == [("Ada", "no")]


# By touch and by key


def finger(rng: random.Random, box: dict[str, float], way: tuple[int, int]) -> list[Any]:
    """Return the points of a swipe as people make them: long or short, straight or slanted."""
    length, slant = rng.uniform(95, 150), rng.uniform(-0.25, 0.25)
    dx, dy = way[0] + slant * way[1], way[1] + slant * way[0]
    x = box["x"] + box["width"] / 2 - dx * length / 2 + rng.uniform(-20, 20)
    y = box["y"] + box["height"] / 2 - dy * length / 2 + rng.uniform(-20, 20)
    n_moves = rng.randint(1, 12)
    return [
        (x + dx * length * k / n_moves, y + dy * length * k / n_moves) for k in range(n_moves + 1)
    ]


@pytest.mark.parametrize(("kind", "n"), [("picture", 100), ("text", 25)])
def test_each_of_a_hundred_swipes_in_each_direction_is_its_answer(
    browser: Any, tmp_path: Path, kind: str, n: int
) -> None:
    ways = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}
    said = {"left": "no", "right": "yes", "up": "maybe", "down": "maybe"}
    if kind == "picture":
        project = picture_project(tmp_path, {f"{k:03}": (40 + k, 90) for k in range(n)}, 4)
    else:
        project = text_project(tmp_path, ["a goal"] * n, ["sport", "art", "food", "war"])
    rng = random.Random(0)
    turns = [way for way in ways for _ in range(n)]
    rng.shuffle(turns)
    missed, expected = [], []
    with serve_in_thread(project) as address:
        page = open_page(browser, address, **ON_PHONE)
        box = page.locator("#stage").bounding_box()
        for turn in turns:
            wait(page)
            before = page.inner_text("#counts")
            swipe(page, finger(rng, box, ways[turn]), pause=rng.choice([0, 0, 0, 8]))
            try:
                changed = "before => document.querySelector('#counts').innerText !== before"
                page.wait_for_function(changed, arg=before, timeout=5_000)
                expected.append(said[turn])
            except Exception:
                missed.append(turn)
        settle(page)
        assert missed == []
        assert [word for _, word in stored(project)] == expected
        assert page.complaints == []


def test_a_short_swipe_answers_nothing_and_a_long_one_shows_what_it_will(
    browser: Any, tmp_path: Path
) -> None:
    project, _ = scene_project(tmp_path, n=3)
    with serve_in_thread(project) as address:
        page = open_page(browser, address, **ON_PHONE)
        assert "↕ Cannot tell" in page.inner_text(".swipes")
        pull(page, 40, 0)
        touch = page.context.new_cdp_session(page)
        for kind, x in (("touchStart", 100), ("touchMove", 150), ("touchMove", 260)):
            touches = [{"x": x, "y": 380}]
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})
        page.wait_for_selector("#yes.aimed")
        touch.send("Input.dispatchTouchEvent", {"type": "touchCancel", "touchPoints": []})
        page.wait_for_selector("#yes:not(.aimed)")
        assert page.evaluate("document.querySelector('#item').style.transform") == ""
        settle(page)
        assert stored(project) == []


def test_a_text_that_scrolls_is_scrolled_by_a_finger_and_promises_no_more(
    browser: Any, tmp_path: Path
) -> None:
    project = text_project(tmp_path, ["A sentence that goes on. " * 60] * 2)
    with serve_in_thread(project) as address:
        page = open_page(browser, address, **ON_PHONE)
        assert "↕" not in page.inner_text(".swipes")
        for _ in range(20):
            pull(page, 0, -200)
            if page.locator(WHOLE).count():
                break
        page.wait_for_selector(WHOLE)
        pull(page, 0, -200)
        pull(page, 0, 200)
        assert stored(project) == []
        pull(page, -150, 0)
        settle(page)
        page.wait_for_function("() => document.querySelector('#progress').value === 1")
        assert stored(project) == [("Ada", "no")]


def test_a_hundred_presses_of_each_key_are_a_hundred_answers(browser: Any, tmp_path: Path) -> None:
    project = text_project(tmp_path, ["a goal"] * 400)
    keys = {"x": "no", "Space": "maybe", "y": "yes", "s": "skip"}
    turns = [key for key in keys for _ in range(100)]
    random.Random(0).shuffle(turns)
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        for key in turns[:-1]:
            answer(page, key)
        page.keyboard.press(turns[-1])
        wait(page, "finished")
        assert [word for _, word in stored(project)] == [keys[key] for key in turns]


# Nothing over it


@WAYS
def test_no_message_covers_the_item_or_moves_the_page(
    browser: Any, tmp_path: Path, way: Any
) -> None:
    project, _ = scene_project(tmp_path, n=8, n_classes=3)

    def check(words: str, place: str = ".messages") -> None:
        wait_for_words(page, place, words)
        page.evaluate("Promise.allSettled(document.getAnimations().map((one) => one.finished))")
        found[words] = page.evaluate(OVER), page.evaluate(PLACES)

    def refuse_as_late(route: Any) -> None:
        (sent,) = route.request.post_data_json["answers"]
        route.fulfill(status=409, json={"error": "too late", "card": sent["card"]})

    found: dict[str, Any] = {}
    with serve_in_thread(project) as address:
        page = open_page(browser, address, **way)
        check("Answer about this class alone")
        places = page.evaluate(PLACES)
        answer(page, "x")
        check("✕ No")
        answer(page, "x")
        answer(page, "z")
        check("You said: No", ".caption")
        press(page, "c", "Control+Enter")
        check("Thank you, the lead will see it.")
        for _ in range(8):
            press(page, "s")
            if page.get_attribute("#page", "data-guarded") == "true":
                break
            wait(page)
        check("Now the question is about")
        wait(page)
        press(page, "+", "+")
        page.wait_for_selector("#whole")
        check(".png", ".caption")
        press(page, "Escape")
        page.context.set_offline(True)
        press(page, "x")
        check("answer is safe in this browser")
        page.context.set_offline(False)
        settle(page)
        wait(page)
        page.route("**/api/answers", refuse_as_late, times=1)
        press(page, "x")
        check("1 answer came too late")
        page.context.clear_cookies()
        wait(page)
        press(page, "x")
        check("The name or the project has changed")
        assert {words: over for words, (over, _) in found.items() if over} == {}
        assert {words for words, (_, at) in found.items() if at != places} == set()


@WAYS
def test_nothing_covers_the_item_of_the_grid(browser: Any, tmp_path: Path, way: Any) -> None:
    project, _ = scene_project(tmp_path, n=3, n_classes=8, by="item")
    with serve_in_thread(project) as address:
        page = open_page(browser, address, **way)
        page.goto(f"{address}/grid")
        wait(page)
        places = page.evaluate(PLACES)
        assert page.evaluate(OVER) == []
        press(page, "Enter")
        wait_for_words(page, "#notice", "class")
        assert page.evaluate(OVER) == [] and page.evaluate(PLACES) == places
        while page.locator("#more:not([hidden])").count():
            page.evaluate("document.querySelector('#more').click()")
            page.wait_for_timeout(100)
        press(page, "1", "n", "Enter")
        wait_for_words(page, "#trace", "No")
        assert page.evaluate(OVER) == [] and page.evaluate(PLACES) == places


# Looking closer


def test_a_picture_is_zoomed_moved_and_shown_whole_again(browser: Any, tmp_path: Path) -> None:
    project, _ = scene_project(tmp_path, n=3)
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        press(page, "+", "+")
        assert page.evaluate(f"{SCALE}.a") == pytest.approx(2.25)
        page.mouse.move(600, 400)
        page.mouse.down()
        page.mouse.move(560, 380, steps=4)
        page.mouse.up()
        before = page.evaluate(f"{SCALE}.e")
        page.mouse.wheel(0, -400)
        page.wait_for_function(f"() => {SCALE}.a > 5")
        assert page.evaluate(f"{SCALE}.e") < before
        page.locator("#whole").click()
        assert page.evaluate(f"{SCALE}.a") == 1
        page.mouse.dblclick(600, 400)
        assert page.evaluate(f"{SCALE}.a") == pytest.approx(2.5)
        answer(page, "x")
        assert page.evaluate(f"{SCALE}.a") == 1  # of the next picture
        assert page.complaints == []


def test_space_answers_about_an_enlarged_picture(browser: Any, tmp_path: Path) -> None:
    project = picture_project(tmp_path, {"a": (400, 400), "b": (400, 400)})
    with serve_in_thread(project) as address:
        page = open_page(browser, address, **DESKTOP)
        press(page, "+", "+")
        answer(page, "Space")
        settle(page)
        assert stored(project) == [("Ada", "maybe")]


def test_a_double_click_makes_a_long_receipt_readable(browser: Any, tmp_path: Path) -> None:
    project = picture_project(tmp_path, {"receipt": (400, 4000)})
    with serve_in_thread(project) as address:
        page = open_page(browser, address, **DESKTOP)
        page.locator("#stage").dblclick()
        drawn = page.locator("#item img").bounding_box()
        assert drawn["height"] == pytest.approx(4000, rel=0.01)  # pixel by pixel


def test_a_photo_travels_small_and_whole_when_it_is_zoomed(browser: Any, tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (400, 600, 3), dtype=np.uint8)
    Image.fromarray(pixels).resize((3600, 2400)).save(folder / "photo.jpg", quality=92)
    (tmp_path / "classes.txt").write_text("boat\n")
    project = create_project(tmp_path / "project", folder, tmp_path / "classes.txt", rate=1)
    with serve_in_thread(project) as address:
        page = open_page(browser, address)
        assert page.evaluate("document.querySelector('#item img').naturalWidth") == 1600
        sizes = "performance.getEntriesByType('resource').filter(e => e.name.includes('/items/'))"
        sent = page.evaluate(f"{sizes}.map(e => e.encodedBodySize)")
        assert sum(sent) < (folder / "photo.jpg").stat().st_size / 2
        press(page, "+", "+", "+", "+")
        page.wait_for_function("() => document.querySelector('#item img').naturalWidth === 3600")
        before = page.evaluate(f"{SCALE}.a"), page.evaluate(f"{SCALE}.e")
        assert before[0] > 2
        press(page, "ArrowRight")
        assert page.evaluate(f"{SCALE}.e") == pytest.approx(before[1] - 60)
        press(page, "Escape")
        assert page.evaluate(f"{SCALE}.a") == 1
        assert page.complaints == []


def test_a_broken_picture_is_told_and_can_only_be_skipped(browser: Any, tmp_path: Path) -> None:
    project = picture_project(tmp_path, {"a": (40, 40), "b": (40, 40)})
    whole = (tmp_path / "photos" / "a.png").read_bytes()
    for name in ("a", "b"):
        (tmp_path / "photos" / f"{name}.png").write_bytes(whole[:60])  # since the project was made
    with serve_in_thread(project) as address:
        page = open_page(browser, address, is_new=True)
        page.locator("#intro-skip").click()
        wait(page, "broken")
        assert "cannot be read" in page.inner_text("#item")
        press(page, "x")
        wait_for_words(page, "#notice", "skip it")
        press(page, "s")
        page.wait_for_function("() => document.querySelector('#progress').value === 1")
        settle(page)
        assert stored(project) == [("Ada", "skip")]
