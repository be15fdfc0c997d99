"""Plots: colours that can be told apart on light and dark ground, and a page that opens."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from comes.report.plots import (
    COLOURS,
    MARKERS,
    Look,
    as_svg,
    plot_curves,
    plot_dots,
    plot_estimation_error,
    plot_sweep,
)
from matplotlib.colors import to_rgb

from browser import open_page
from comes.metrics import METRICS
from comes.report.metric_tables import metric_table
from results import make_result

GROUNDS = {"light": "#ffffff", "dark": "#15171c"}
# Linear RGB as seen without the cones for green or red (Machado and others, 2009).
VISIONS = {
    "normal": np.eye(3),
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
}


def linear(colour: str) -> npt.NDArray[np.float64]:
    rgb = np.array(to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


def lab(rgb: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    xyz = to_xyz @ np.clip(rgb, 0, 1) / [0.9505, 1, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("ground", GROUNDS.values(), ids=list(GROUNDS))
def test_colours_stand_out_from_the_ground(ground: str) -> None:
    for colour in COLOURS:
        light, dark = sorted([luminance(colour), luminance(ground)], reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3, colour


@pytest.mark.parametrize("vision", VISIONS)
def test_colours_stand_out_from_each_other(vision: str) -> None:
    seen = [lab(np.array(VISIONS[vision]) @ linear(colour)) for colour in COLOURS]
    for one, other in itertools.combinations(seen, 2):
        assert np.linalg.norm(one - other) > 20


def test_every_method_has_a_look_of_its_own() -> None:
    look = Look([f"method {k}" for k in range(40)])
    looks = {tuple(look(f"method {k}").items()) for k in range(40)}
    assert len(looks) == 40
    assert len(MARKERS) == len(set(MARKERS)) == len(COLOURS)


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
