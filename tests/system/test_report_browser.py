"""Pages of reports in a browser: they need nothing else, fit a phone, and their filters work."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from browser import launch_browser
from comes.metrics import METRICS
from comes.report import write_model_page
from report_pages import KNOWN, LABELS, Plain, point_left, write_rows, write_three

pytestmark = pytest.mark.needs("chromium")

MANY_SCORES = np.random.default_rng(0).random((200, 3))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launch_browser() as browser:
        yield browser


def open_file(browser: Any, path: Path) -> Any:
    """Open a file, noting what the browser complains of and what it asks for."""
    page = browser.new_page()
    page.complaints, page.requests = [], []
    page.on("console", lambda message: page.complaints.append(message.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("request", lambda request: page.requests.append(request.url))
    page.goto(path.as_uri())
    return page


@pytest.fixture(scope="module")
def results(browser: Any, report: Path) -> Any:
    """A report on experiments."""
    return open_file(browser, report / "index.html")


@pytest.fixture(scope="module")
def examples(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A page of example predictions."""
    names = ["one.png", f"{'a-long-name-without-a-space' * 4}.png", "three.png"]
    labels = [*LABELS[:-1], "label" * 20]
    folder = tmp_path_factory.mktemp("examples")
    return open_file(browser, write_three(folder, names, labels, **KNOWN))


@pytest.fixture(scope="module")
def predicted(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A page of predictions with maps."""
    path = write_model_page(
        Plain(200),
        LABELS[:3],
        MANY_SCORES,
        MANY_SCORES > 0.9,
        tmp_path_factory.mktemp("predicted") / "page",
        maps=point_left,
        n_examples=24,
    )
    return open_file(browser, path)


def open_all_details(page: Any) -> None:
    for details in page.locator("details").all():
        details.evaluate("element => { element.open = true }")


def check_both_schemes(page: Any, folder: Path) -> None:
    """Check that the page is light or dark as the reader wants it, and that something is drawn."""
    shots = {}
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        page.screenshot(path=folder / f"{scheme}.png", full_page=True)
        pixels = np.asarray(Image.open(folder / f"{scheme}.png").convert("L"))
        shots[scheme] = float(np.median(pixels))
        assert pixels.std() > 5
    assert shots["dark"] < 60 < 200 < shots["light"]


def test_a_report_on_experiments_opens_and_needs_nothing_else(results: Any, tmp_path: Path) -> None:
    assert results.complaints == []
    assert len(results.requests) == 1 and results.requests[0].startswith("file:")
    # Of each of three: summary, data, and how it was run; metrics and their p, settings; of each
    # sweep its values, twice.
    assert results.locator("table").count() == 3 * 3 + 2 * len(METRICS) + 1 + 2 * 2
    assert results.locator("table:not(:has(caption))").count() == 0
    assert results.locator("svg").count() == 2 * len(METRICS) + 1 + 3 + 3
    open_all_details(results)
    assert results.locator("svg").last.is_visible()
    check_both_schemes(results, tmp_path)


def first_column(table: Any) -> list[str]:
    return [row.locator("th").inner_text() for row in table.locator("tbody tr").all()]


def test_a_click_on_a_heading_sorts(results: Any) -> None:
    table = results.locator("table[data-metric=average_precision]")
    head = table.locator("thead th").nth(1)
    orders = []
    for way in ("ascending", "descending"):
        head.locator("button").click()
        assert head.get_attribute("aria-sort") == way
        orders.append(first_column(table))
    assert orders[0][-1] == "comes-hl"  # the greatest
    assert orders[1][0] == "comes-hl"
    table.locator("th").first.locator("button").click()
    names = first_column(table)
    assert names == sorted(names)
    assert names[0].startswith("<script>")  # shown, not run


def test_a_report_on_experiments_fits_a_phone(results: Any) -> None:
    results.set_viewport_size({"width": 390, "height": 800})
    assert results.evaluate("document.documentElement.scrollWidth") <= 390
    assert results.locator(".swipe").first.is_visible()
    open_all_details(results)
    ranks = results.locator("figure.narrow")
    assert ranks.count() == len(METRICS)
    fits = "element => element.scrollWidth <= element.clientWidth"
    assert all(figure.evaluate(fits) for figure in ranks.all())
    frame = ranks.first.bounding_box()
    for text in ranks.first.locator("svg text").all():  # names are inside the diagram
        box = text.bounding_box()
        assert frame["x"] - 1 <= box["x"]
        assert box["x"] + box["width"] <= frame["x"] + frame["width"] + 1
    assert not results.locator("figure:not(.narrow)").first.evaluate(fits)  # others scroll


def visible_cards(page: Any) -> list[int]:
    return [k for k, card in enumerate(page.locator(".card").all()) if card.is_visible()]


def test_examples_open_in_both_schemes_and_need_nothing_else(examples: Any, tmp_path: Path) -> None:
    check_both_schemes(examples, tmp_path)
    assert examples.complaints == []
    assert all(url.startswith(("file:", "data:image/jpeg")) for url in examples.requests)
    loaded = "[...document.images].map(image => image.naturalWidth)"
    assert examples.evaluate(loaded) == [40, 40, 40]


def test_filters_work_from_the_keyboard(examples: Any) -> None:
    examples.get_by_role("radio", name="all (3)").focus()
    seen = [visible_cards(examples)]
    for _ in range(2):
        examples.keyboard.press("ArrowRight")
        seen.append(visible_cards(examples))
    assert seen == [[0, 1, 2], [0, 1], [1]]  # the most confident, and with contradictions
    examples.get_by_role("radio", name="all (3)").check()
    assert visible_cards(examples) == [0, 1, 2]


def test_a_label_can_be_picked(examples: Any) -> None:
    """Sea is predicted for the second picture alone, and true there."""
    examples.get_by_label("Label", exact=True).select_option("sea")
    assert visible_cards(examples) == [1]
    examples.get_by_role("radio", name="with mistakes").check()
    examples.get_by_label("Label", exact=True).select_option("sky")
    assert visible_cards(examples) == []  # the first picture has no mistake
    examples.get_by_role("radio", name="all (3)").check()
    examples.get_by_label("Label", exact=True).select_option("all")
    assert visible_cards(examples) == [0, 1, 2]


def test_screen_readers_find_names_and_no_signs(examples: Any) -> None:
    assert examples.get_by_role("group", name="Show").count() == 1
    assert examples.get_by_role("region", name="Labels").count() == 1
    assert examples.get_by_role("group", name="Table of labels").get_attribute("tabindex") == "0"
    assert examples.get_by_role("heading", name="one.png").count() == 1
    assert examples.get_by_role("figure").count() == 3
    assert examples.get_by_role("img", name="one.png").count() == 1
    tree = examples.locator(".card").nth(1).aria_snapshot()
    assert "predicted, but surely not" in tree
    for sign in "●◇⊘⚠✓✗◌":
        assert sign not in tree, sign


def test_examples_fit_every_width(examples: Any) -> None:
    right = "Math.max(...[...document.querySelectorAll('.card *')].map(e => e.{}().right))"
    for width in (320, 360, 1280):
        examples.set_viewport_size({"width": width, "height": 800})
        open_all_details(examples)
        assert examples.evaluate("document.documentElement.scrollWidth") <= width
        assert examples.evaluate(right.format("getBoundingClientRect")) <= width, width


def count_visible(page: Any, what: str) -> int:
    return sum(one.is_visible() for one in page.locator(what).all())


def test_groups_and_labels_are_filters(predicted: Any) -> None:
    n_all = count_visible(predicted, ".card")
    predicted.get_by_role("radio", name="most confident").check()
    n_confident = count_visible(predicted, ".card")
    assert 0 < n_confident < n_all
    predicted.get_by_label("Label", exact=True).select_option("sea")
    best = np.argsort(-MANY_SCORES[:, 1])[:4]
    assert 4 <= count_visible(predicted, ".card") < n_confident
    for row in best:
        assert predicted.get_by_role("img", name=f"{row:06}.png", exact=True).is_visible()
    predicted.get_by_label("Label", exact=True).select_option("all")
    predicted.get_by_role("radio", name="all", exact=False).first.check()
    assert count_visible(predicted, ".card") == n_all


def test_evidence_is_shown_when_asked_for(predicted: Any) -> None:
    assert count_visible(predicted, ".overlay") == 0
    card = predicted.locator(".card:has(.map-0)").first
    card.locator(".map-0").check()
    assert count_visible(predicted, ".overlay") == 1
    card.locator(".map-none").check()
    predicted.get_by_label("Evidence on all pictures").check()
    assert count_visible(predicted, ".overlay") == predicted.locator(".overlay-0").count() > 1
    predicted.get_by_label("Evidence on all pictures").uncheck()
    assert "evidence for cat" not in predicted.content()  # a map without evidence


def test_predictions_fit_every_width_and_ask_for_nothing(predicted: Any) -> None:
    for scheme in ("light", "dark"):
        predicted.emulate_media(color_scheme=scheme)
        for width in (320, 1280):
            predicted.set_viewport_size({"width": width, "height": 800})
            assert predicted.evaluate("document.documentElement.scrollWidth") <= width
    assert predicted.complaints == []
    assert all(url.startswith(("file:", "data:image/")) for url in predicted.requests)


def test_tables_of_rows_scroll_on_a_phone_and_say_so(browser: Any, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "page")
    page = open_file(browser, path)
    assert page.requests == [path.as_uri()]  # nothing else is needed
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate(
        "[...document.querySelectorAll('.scroll')].some(d => d.scrollWidth > d.clientWidth)"
    )
    assert page.locator(".swipe").first.is_visible()
    page.set_viewport_size({"width": 1300, "height": 844})
    assert not page.locator(".swipe").first.is_visible()
    page.locator("#doubtful").check()
    shown = page.locator(".card:visible").count()
    assert 0 < shown < page.locator(".card").count()
