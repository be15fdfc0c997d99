"""Take the pictures of pages that the documents show, in Debian's Chromium.

    python docs/take_pictures.py             # writes docs/images/annotate-*.png
    python docs/take_pictures.py --report    # writes docs/images/report.png

The scenes are those of the browser tests; robots give the answers that the lead sees. The report
is that of the first page: the table of ``comes demo --table``, and a model of it.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from robots import run_robots

from annotation_browser import THINGS, draw_scenes
from comes.annotate import Project, create_project, serve_in_thread

IMAGES = Path(__file__).parent / "images"
LARGEST = 150_000  # bytes
DESKTOP = {"viewport": {"width": 1200, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
GUIDE = """# What counts

- every **boat or ship** on the water
- also a part of one at the edge of the picture

Not: *toys*, and reflections in the water.
"""
COMMANDS_OF_REPORT = (
    "demo --table tickets.csv",
    "split tickets.csv --labels is_*",
    "fit tickets-train.csv --labels is_* -o model",
    "report tickets-test.csv --labels is_* --model model -o page",
)
READY = '#page[data-state="shown"]:not([data-guarded="true"])'
KEYS = {"no": "x", "maybe": "Space", "yes": "y"}
Say = Callable[[str, str], str]


def main(arguments: Sequence[str]) -> None:
    """Take the pictures of the annotation page, or that of a report."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        if arguments == ["--report"]:
            take_report(browser, Path(name))
            return
        project, say = make_project(Path(name, "cards"), 150, "class")
        with serve_in_thread(project) as address:
            run_robots(address, 4, say, most=60)
            take_cards(browser, address, say)
            run_robots(address, 4, say, most=130, name="colleague")  # some of them disagree
            take_lead(browser, address)
        project, say = make_project(Path(name, "grid"), 20, "item")
        with serve_in_thread(project) as address:
            take_grid(browser, address, say)
        take_setup(browser, Path(name, "setup"))
        browser.close()
    too_large = [path.name for path in IMAGES.glob("annotate-*") if path.stat().st_size > LARGEST]
    if too_large:
        sys.exit(f"larger than {LARGEST} bytes: {', '.join(too_large)}")


def take_report(browser: Any, home: Path) -> None:
    """Take a picture of the upper part of the report that the first page makes."""
    for command in COMMANDS_OF_REPORT:
        subprocess.run([sys.executable, "-m", "comes", *command.split()], cwd=home, check=True)
    page = browser.new_context(viewport={"width": 1100, "height": 866}).new_page()
    page.goto((home / "page" / "index.html").as_uri())
    page.screenshot(path=IMAGES / "report.png")
    picture = Image.open(IMAGES / "report.png").convert("RGB")
    picture.quantize(64, dither=Image.Dither.NONE).save(IMAGES / "report.png", optimize=True)


def make_project(home: Path, n_scenes: int, by: Any) -> tuple[Project, Say]:
    """Return a project of drawn scenes with guidelines, and what a good annotator says."""
    shown = draw_scenes(home / "pictures", n_scenes)
    (home / "classes.txt").write_text("\n".join(THINGS[:4]) + "\n")
    guide = home / "guidelines"
    guide.mkdir()
    (guide / "boat.md").write_text(GUIDE)
    boats = [name for name, things in shown.items() if "boat" in things][:2]
    for k, name in enumerate(boats, 1):
        shutil.copy(home / "pictures" / name, guide / f"boat-{k}.png")
    project = create_project(
        home / "photos",
        home / "pictures",
        home / "classes.txt",
        rate=0.6,
        overlap=0.2 if n_scenes > 100 else 0,
        by=by,
        guidelines=guide,
    )
    rng = np.random.default_rng(0)

    def say(item: str, label: str) -> str:
        if rng.random() < 0.08:
            return "maybe"
        return "yes" if label in shown[item] else "no"

    return project, say


def open_page(browser: Any, address: str, name: str, **options: Any) -> Any:
    """Open the page as somebody who has said her name, and sees the introduction."""
    page = browser.new_context(**options).new_page()
    page.goto(f"{address}/join")
    page.wait_for_selector("#start:enabled")
    page.locator("#name").fill(name)
    page.keyboard.press("Enter")
    page.wait_for_selector("#introduction[open] #intro-item *")
    return page


def wait(page: Any) -> None:
    """Wait until a card can be answered, and what was said has gone."""
    page.wait_for_selector(READY)
    page.wait_for_timeout(300)


def answer(page: Any, say: Say) -> None:
    """Answer the card on show, at a pace that people may have."""
    page.wait_for_timeout(400)
    page.keyboard.press(KEYS[say(page.inner_text("#item-name"), page.inner_text("#class"))])


def take_cards(browser: Any, address: str, say: Say) -> None:
    """Take pictures of cards, and of guidelines beside them."""
    page = open_page(browser, address, "Ada", **DESKTOP)
    page.locator("#intro-skip").click()
    wait(page)
    while page.get_attribute("#page", "data-guarded") != "true":
        wait(page)
        answer(page, say)
        page.wait_for_timeout(100)
    save(page, "change", pause=0)
    wait(page)
    answer(page, say)
    wait(page)
    save(page, "card")
    page.keyboard.press("c")
    page.locator("#note-text").fill("Do birds so far away count?")
    page.locator("#note-form .main").click()
    phone = open_page(browser, address, "Bo", **PHONE)
    phone.locator("#intro-skip").click()
    wait(phone)
    save(phone, "phone-light")
    take_guidelines(page)


def take_guidelines(page: Any) -> None:
    """Take a picture of the guidelines of boats."""
    while page.inner_text("#class") != "boat":
        page.keyboard.press("s")
        wait(page)
    page.keyboard.press("g")
    page.wait_for_selector("#guide-text img")
    page.wait_for_timeout(500)
    save(page, "guidelines")


def take_lead(browser: Any, address: str) -> None:
    """Take pictures of the lead's pages."""
    desktop = {"viewport": {"width": 1200, "height": 1000}}
    for name, place, options in (
        ("lead", "lead", desktop),
        ("lead-phone", "lead", PHONE),
        ("answers", "lead/answers", DESKTOP),
        ("disagreements", "lead/disagreements", DESKTOP),
        ("notes", "lead/notes", DESKTOP),
    ):
        page = browser.new_context(**options).new_page()
        page.goto(f"{address}/{place}")
        page.wait_for_load_state("networkidle")
        save(page, name)
        page.context.close()


def take_grid(browser: Any, address: str, say: Say) -> None:
    """Take a picture of the grid."""
    page = open_page(browser, address, "Ada", **DESKTOP)
    page.locator("#intro-skip").click()
    wait(page)
    page.goto(f"{address}/grid")
    wait(page)
    for thing in page.locator(".row .name").all_inner_texts()[:4]:
        page.keyboard.press(KEYS[say(page.inner_text("#item-name"), thing)])
    save(page, "grid")


def take_setup(browser: Any, folder: Path) -> None:
    """Take a picture of the page on which a lead starts a project."""
    server = subprocess.Popen(
        [sys.executable, "-m", "comes", "annotate", "serve", str(folder), "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    page = browser.new_context(**DESKTOP).new_page()
    page.goto(server.stdout.readline().split()[-1])
    page.locator("[name=classes]").fill("boat: everything that floats\nhouse\ntree")
    save(page, "setup")
    server.terminate()
    server.communicate()


def save(page: Any, name: str, pause: int = 250) -> None:
    """Save a picture of a page with few colours, so that it stays small."""
    page.wait_for_timeout(pause)
    path = IMAGES / f"annotate-{name}.png"
    page.screenshot(path=path)
    with Image.open(path) as taken:
        taken.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    main(sys.argv[1:])
