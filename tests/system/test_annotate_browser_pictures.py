"""Large, long and broken pictures in a real browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from annotation_browser import ON_PHONE, open_page, take_picture
from browser import launch_browser
from comes.annotate import Project, create_project, serve_in_thread
from comes.errors import ComesWarning

pytestmark = pytest.mark.needs("chromium")

SCALE = "new DOMMatrix(getComputedStyle(document.querySelector('#item img')).transform)"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launch_browser() as launched:
        yield launched


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "photos").mkdir()
    (tmp_path / "classes.txt").write_text("boat\n")
    return tmp_path / "photos"


def make(folder: Path) -> Project:
    return create_project(folder.parent / "project", folder, folder.parent / "classes.txt", rate=1)


def test_a_photo_travels_small_and_whole_when_it_is_zoomed(browser: Any, folder: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (400, 600, 3), dtype=np.uint8)
    large = Image.fromarray(pixels).resize((3600, 2400))
    large.save(folder / "photo.jpg", quality=92)
    with serve_in_thread(make(folder)) as address:
        page = open_page(browser, address)
        assert page.evaluate("document.querySelector('#item img').naturalWidth") == 1600
        sizes = "performance.getEntriesByType('resource').filter(e => e.name.includes('/items/'))"
        sent = page.evaluate(f"{sizes}.map(e => e.encodedBodySize)")
        assert sum(sent) < (folder / "photo.jpg").stat().st_size / 2
        for _ in range(4):
            page.keyboard.press("+")
        page.wait_for_function("() => document.querySelector('#item img').naturalWidth === 3600")
        before = page.evaluate(f"{SCALE}.a"), page.evaluate(f"{SCALE}.e")
        assert before[0] > 2
        page.keyboard.press("ArrowRight")
        assert page.evaluate(f"{SCALE}.e") == pytest.approx(before[1] - 60)
        page.keyboard.press("Escape")
        assert page.evaluate(f"{SCALE}.a") == 1
        assert page.complaints == []


@pytest.mark.parametrize("options", [{}, ON_PHONE], ids=["desktop", "phone"])
def test_a_long_picture_is_as_wide_as_it_can_be_and_scrolls(
    browser: Any, folder: Path, options: dict[str, Any]
) -> None:
    long = Image.new("RGB", (400, 4000), "white")
    for top in range(0, 4000, 40):
        ImageDraw.Draw(long).text((10, top), f"line {top // 40} of a long receipt", fill="black")
    long.save(folder / "long.png")
    with serve_in_thread(make(folder)) as address:
        page = open_page(browser, address, **options)
        shown = page.locator("#item img").bounding_box()
        assert shown["width"] >= 300  # it was 50
        assert shown["height"] == pytest.approx(10 * shown["width"], rel=0.02)
        assert page.evaluate("(() => { const s = document.querySelector('#stage');"
                             "s.scrollTop = 1e6; return s.scrollTop; })()") > 1000  # fmt: skip
        take_picture(page, f"long-{'phone' if options else 'desktop'}")
        assert page.complaints == []


def test_a_broken_picture_is_told(browser: Any, folder: Path) -> None:
    Image.new("RGB", (40, 40)).save(folder / "a.png")
    whole = (folder / "a.png").read_bytes()
    Image.new("RGB", (40, 40)).save(folder / "b.png")
    (folder / "b.png").write_bytes(whole[:60])
    with pytest.warns(ComesWarning, match="1 of 2 pictures"):
        project = make(folder)
    (folder / "a.png").write_bytes(whole[:60])
    with serve_in_thread(project) as address:
        page = open_page(browser, address, is_new=True)
        page.locator("#intro-skip").click()
        page.wait_for_selector('#page[data-state="broken"]')
        assert "cannot be read" in page.inner_text("#item")
