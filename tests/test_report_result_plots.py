"""Plots of results, and a page with them that opens."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser import open_page
from comes.metrics import METRICS
from comes.plots import Look, as_svg
from comes.report.metric_tables import metric_table
from comes.report.result_plots import (
    plot_curves,
    plot_dots,
    plot_estimation_error,
    plot_sweep,
)
from results import make_result


def test_a_plot_takes_its_ink_from_the_page() -> None:
    svg = as_svg(plot_curves([make_result()], Look(["bce"])), "risk")
    assert svg.startswith("<svg")
    assert "currentColor" in svg
    assert "#010203" not in svg
    assert "epoch" in svg  # as text
    for colour in ("#000000", "#ffffff"):
        assert colour not in svg, colour


def test_names_are_data_for_plots_too() -> None:
    """No mathematics, no hidden names, and a legend of methods that the first panel lacks."""
    names = ["$\\frac{$", "_hidden", "plain"]
    results = [make_result(n, data) for n, data in zip(names, ("a", "b", "b"), strict=True)]
    svg = as_svg(plot_curves(results, Look(names)), "risk")
    for name in names:
        assert name in svg, name


@pytest.mark.parametrize(
    ("method", "settings", "panels"),
    [
        ("comes-rl", {}, 1),
        ("ccmn", {"variant": "ranking"}, 1),
        ("ccmn", {}, 2),
        ("mine.py:risk", {}, 2),
    ],
)
def test_risks_over_pairs_have_no_hamming_risk_to_draw(
    method: str, settings: dict[str, Any], panels: int
) -> None:
    results = [
        make_result(method, sweep="train_rows", train_rows=at, values=[1 / at], settings=settings)
        for at in (10, 20)
    ]
    figure = plot_estimation_error(results, Look([method]))
    drawn = [axes.get_legend_handles_labels()[1] for axes in figure.axes]
    assert drawn.count([f"{method} on photos", "1 / √n"]) == panels


def test_a_metric_that_results_lack_is_not_drawn() -> None:
    look = Look(["bce", "gdf"])
    lacking = make_result("gdf", metrics=[])
    table = metric_table([make_result(), lacking], "coverage")
    (panel,) = plot_dots(table, [make_result(), lacking], look).axes
    shown = [line for line in panel.lines if np.isfinite(np.asarray(line.get_xdata())).all()]
    assert len(shown) == 2  # dots and mean of the other
    as_svg(plot_dots(metric_table([lacking], "coverage"), [lacking], look), "empty")
    sweep = [make_result(sweep="flood", flood=at) for at in (0.1, 0.2)]
    sweep += [make_result("gdf", sweep="flood", flood=0.1, metrics=[])]
    (panel,) = plot_sweep(sweep, "coverage", look).axes
    assert panel.get_legend_handles_labels()[1] == ["bce"]
    as_svg(plot_sweep(sweep[2:], "coverage", look), "empty")


@pytest.fixture(scope="module")
def page(report: Path) -> Iterator[Any]:
    """A report opened in a browser, with all that the browser complained of."""
    with open_page(report / "index.html", "dark") as opened:
        yield opened


def test_the_page_opens_and_needs_nothing_else(page: Any, tmp_path: Path) -> None:
    assert page.complaints == []
    assert [url for url in page.requests if not url.startswith("file:")] == []
    assert len(page.requests) == 1
    # Data and cost; metrics and their p; two sweeps with their data and cost.
    n_tables = 2 + 3 * len(METRICS) + 2 * 3
    assert page.locator("table").count() == n_tables
    assert page.locator("table:not(:has(caption))").count() == 0
    assert page.locator("svg").count() == 2 * len(METRICS) + 1 + 3 + 4
    for details in page.locator("details").all():
        details.evaluate("element => { element.open = true }")
    assert page.locator("svg").last.is_visible()
    shots = {}
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        from PIL import Image

        shot = tmp_path / f"{scheme}.png"
        page.screenshot(path=shot, full_page=True)
        pixels = np.asarray(Image.open(shot).convert("L"))
        shots[scheme] = float(np.median(pixels))
        assert pixels.std() > 5  # something is drawn
    assert shots["dark"] < 60 < 200 < shots["light"]


def first_column(table: Any) -> list[str]:
    return [row.locator("th").inner_text() for row in table.locator("tbody tr").all()]


def test_a_click_on_a_heading_sorts(page: Any) -> None:
    table = page.locator("table[data-metric=average_precision][data-convention=pml]")
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


def test_the_page_fits_a_phone(page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390
    assert page.locator(".swipe").first.is_visible()
    for details in page.locator("details").all():
        details.evaluate("element => { element.open = true }")
    ranks = page.locator("figure.narrow")
    assert ranks.count() == len(METRICS)
    fits = "element => element.scrollWidth <= element.clientWidth"
    assert all(figure.evaluate(fits) for figure in ranks.all())
    for text in ranks.first.locator("svg text").all():  # names are inside the diagram
        box, frame = text.bounding_box(), ranks.first.bounding_box()
        assert (
            frame["x"] - 1 <= box["x"]
            and box["x"] + box["width"] <= frame["x"] + frame["width"] + 1
        )
    assert not page.locator("figure:not(.narrow)").first.evaluate(fits)  # others scroll
