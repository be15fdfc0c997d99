"""The annotation page in a browser, as a person uses it: opening, answering, waiting, looking."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw
from sqlalchemy import select

from comes.annotate import Project, create_project
from comes.annotate.cards import By
from comes.annotate.schema import answers, cards, classes, items
from comes.datasets import Dataset, make_scenes

DESKTOP, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 844}
ON_PHONE: dict[str, Any] = {"viewport": PHONE, "has_touch": True, "is_mobile": True}
THINGS = ("boat", "house", "tree", "sun", "car", "dog", "bird", "person")


def draw_scenes(folder: Path, n: int = 12, seed: int = 0) -> dict[str, set[str]]:
    """Draw landscapes with some of the first four things; return what is in each."""
    rng, found = np.random.default_rng(seed), {}
    folder.mkdir(parents=True)
    for k in range(n):
        there = {thing for thing in THINGS[:4] if rng.random() < 0.5}
        image = Image.new("RGB", (960, 640), (190, 221, 240))
        draw = ImageDraw.Draw(image)
        draw.rectangle((0, 400, 960, 640), fill=(62, 132, 168))
        draw.polygon([(430, 640), (560, 395), (960, 380), (960, 640)], fill=(134, 180, 106))
        if "sun" in there:
            draw.ellipse((100, 50, 200, 150), fill=(246, 200, 76))
        if "boat" in there:
            draw.polygon([(130, 470), (380, 470), (330, 530), (180, 530)], fill=(140, 74, 52))
            draw.polygon([(262, 260), (262, 455), (370, 455)], fill=(255, 255, 255))
        if "house" in there:
            draw.rectangle((640, 330, 790, 460), fill=(243, 230, 210))
            draw.polygon([(620, 335), (715, 250), (810, 335)], fill=(169, 87, 63))
        if "tree" in there:
            draw.rectangle((872, 380, 892, 470), fill=(107, 74, 54))
            draw.ellipse((825, 270, 940, 395), fill=(79, 138, 76))
        image.save(folder / f"scene-{k:02}.png")
        found[f"scene-{k:02}.png"] = there
    return found


def scene_project(
    home: Path, n: int = 12, n_classes: int = 4, by: By = "class", **asking: Any
) -> tuple[Project, dict[str, set[str]]]:
    """Return a project of drawn landscapes that asks everything, and what is in each."""
    found = draw_scenes(home / "pictures", n)
    (home / "classes.txt").write_text("\n".join(THINGS[:n_classes]) + "\n")
    sources = home / "pictures", home / "classes.txt"
    return create_project(home / "photos", *sources, rate=1, by=by, **asking), found


def text_project(
    home: Path,
    texts: Sequence[str],
    names: Sequence[str] = ("sport",),
    by: By = "class",
    **asking: Any,
) -> Project:
    """Return a project that asks about all of some texts."""
    home.mkdir(exist_ok=True)
    rows = "".join(f'{k},"{text}"\n' for k, text in enumerate(texts))
    (home / "texts.csv").write_text(f"item,text\n{rows}")
    (home / "classes.txt").write_text("\n".join(names) + "\n")
    sources = home / "texts.csv", home / "classes.txt"
    return create_project(home / "Zeitung", *sources, rate=1, by=by, **asking)


def digit_project(home: Path, n: int, overlap: float = 0.0) -> tuple[Project, Dataset]:
    """Return a project of digit scenes, a tenth of whose pairs is asked about, and the truth."""
    scenes = make_scenes("train", n)
    names = [f"scene-{number:05}.png" for number in range(n)]
    pictures = home / "pictures"
    pictures.mkdir()
    for name, pixels in zip(names, scenes.X, strict=True):
        image = Image.fromarray((255 - 255 * pixels).astype(np.uint8).reshape(16, 16))
        image.resize((320, 320)).save(pictures / name)
    rows = "".join(f"{digit},a handwritten {digit}\n" for digit in scenes.label_names)
    (home / "classes.csv").write_text(f"class,description\n{rows}")
    project = create_project(home / "digits", pictures, home / "classes.csv", overlap=overlap)
    relevant = scenes.known_relevant()
    return project, Dataset(scenes.X, scenes.label_names, relevant=relevant, items=names)


def open_page(
    browser: Any, address: str, name: str = "Ada", *, is_new: bool = False, **options: Any
) -> Any:
    """Open the page in a browser of its own, as a person who says who she is.

    Unless she is new, she skips the introduction.
    """
    context = browser.new_context(**{"viewport": DESKTOP, **options})
    page = context.new_page()
    page.set_default_timeout(8_000)
    page.complaints = []
    page.on("console", lambda message: page.complaints.append(message.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.goto(address)
    say_name(page, name)
    page.wait_for_selector("#introduction[open]")
    if not is_new:
        skip_introduction(page)
        wait(page)
    return page


def say_name(page: Any, name: str) -> None:
    page.wait_for_selector("#start:enabled")
    page.locator("#name").fill(name)
    page.keyboard.press("Enter")


def skip_introduction(page: Any) -> None:
    page.locator("#intro-skip").click()


def wait(page: Any, state: str = "shown") -> None:
    """Wait until the page is in a state, and answers are taken again after a change of class."""
    page.wait_for_selector(f'#page[data-state="{state}"]:not([data-guarded="true"])')


def card_of(page: Any) -> tuple[str, str]:
    return page.inner_text("#item-name"), page.inner_text("#class")


def answer(page: Any, key: str) -> tuple[str, str]:
    """Press a key once it counts; return the card that it was for, when the next can be answered.

    What is pressed before a card is on the screen is no answer to it.
    """
    wait(page)
    before = card_of(page)
    page.keyboard.press(key)
    page.wait_for_function(
        "before => document.querySelector('#page').dataset.state === 'shown' && "
        "document.querySelector('#page').dataset.guarded !== 'true' && "
        "document.querySelector('#item-name').innerText + "
        "document.querySelector('#class').innerText !== before",
        arg="".join(before),
    )
    return before


def swipe(page: Any, points: Sequence[tuple[float, float]], pause: float = 0.0) -> None:
    """Move a finger over points of the window, and lift it."""
    touch = page.context.new_cdp_session(page)
    for k, (x, y) in enumerate(points):
        touches = {"touchPoints": [{"x": x, "y": y}]}
        touch.send(
            "Input.dispatchTouchEvent", {"type": "touchMove" if k else "touchStart", **touches}
        )
        if pause:
            page.wait_for_timeout(pause)
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    touch.detach()


def wait_for_words(page: Any, place: str, words: str) -> None:
    """Wait until an element says something."""
    says = "([place, words]) => document.querySelector(place).innerText.includes(words)"
    page.wait_for_function(says, arg=[place, words])


def wait_for_item(page: Any, name: str, gone: bool = False) -> None:
    """Wait until an item is shown, or no longer."""
    sign = "!==" if gone else "==="
    shown = "document.querySelector('#item-name').innerText"
    page.wait_for_function(f"item => {shown} {sign} item", arg=name)


def settle(page: Any) -> None:
    """Wait until the server has all answers."""
    page.wait_for_function("() => !Object.keys(localStorage).some(k => k.includes('queue'))")


def held(project: Project) -> set[str | None]:
    """Return whose open cards are leased now."""
    query = select(cards).where(~cards.c.is_done, cards.c.leased_until >= time.time())
    with project.reading() as connection:
        return {row.annotator for row in connection.execute(query)}


def wait_until_free(project: Project) -> None:
    until = time.monotonic() + 20
    while held(project):
        assert time.monotonic() < until, "the cards are not given back"
        time.sleep(0.02)


def stored(project: Project) -> list[tuple[str, str]]:
    """Return who said what, in order, of what stands."""
    with project.reading() as connection:
        query = select(answers.c.annotator, answers.c.answer).where(answers.c.undone_at.is_(None))
        return [(row.annotator, row.answer) for row in connection.execute(query.order_by("id"))]


def stored_pairs(project: Project) -> dict[tuple[str, str], str]:
    """Return what stands of each item and class."""
    query = (
        select(items.c.name.label("item"), classes.c.name.label("class_"), answers.c.answer)
        .join(cards, cards.c.id == answers.c.card_id)
        .join(items, items.c.id == cards.c.item_id)
        .join(classes, classes.c.id == cards.c.class_id)
        .where(answers.c.undone_at.is_(None))
    )
    with project.reading() as connection:
        return {(row.item, row.class_): row.answer for row in connection.execute(query)}


def take_picture(page: Any, name: str) -> None:
    """Take a picture for the documents, where COMES_SCREENSHOTS names their folder."""
    folder = os.environ.get("COMES_SCREENSHOTS")
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png")


def is_wide(page: Any) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth > innerWidth"))
