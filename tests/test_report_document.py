"""Reports on experiments: every number, the same bytes, and empty cells for what is not known."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from comes.cli import app
from comes.errors import ComesError
from comes.experiment.results import read_results
from comes.metrics import METRICS
from comes.report import experiment_page as document
from comes.report.experiment_page import (
    make_parts,
    metric_table,
    order_results,
    plot_curves,
    plot_dots,
    plot_sweep,
    write_report,
)
from comes.report.plots import Look, as_svg
from drawn_axes import points_of
from results import (
    BETTER,
    ERRORS,
    SHARPNESS,
    STORED,
    change_json,
    check_new_metric,
    known_metrics,
    make_all_texts,
    make_result,
    make_results,
    read_folder,
    skip_drawing,
    write_results,
)


@pytest.fixture(scope="module")
def undrawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a report with empty plots."""
    with pytest.MonkeyPatch.context() as patch:
        skip_drawing(patch)
        page = write_report(make_results(), tmp_path_factory.mktemp("runs") / "report", ERRORS)
    return page.parent


@pytest.mark.long
def test_a_report_is_a_function_of_the_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = [make_result(m, d) for m in ("bce", "gdf") for d in ("photos", "songs")]
    read = read_results([write_results(tmp_path / "runs", results)])
    one, two = tmp_path / "one", tmp_path / "two"
    monkeypatch.setattr(document, "MAIN_METRICS", ["coverage"])
    with known_metrics({"coverage": METRICS["coverage"]}):  # the fewer, the fewer plots
        assert write_report(results, one, ERRORS) == one / "index.html"
        write_report(read, two, ERRORS)
    assert read_folder(one) == read_folder(two)
    assert (one / "index.html").read_text().count("<svg") == 3  # dots, ranks and risks


def test_a_page_runs_nothing_and_loads_nothing(undrawn: Path) -> None:
    html = (undrawn / "index.html").read_text()
    assert "<script>alert" not in html
    assert "no &lt;b&gt;luck" in html
    assert "http" not in html.replace("http-equiv", "").replace("http://www.w3.org", "")


def test_a_report_holds_every_table_and_every_number(undrawn: Path) -> None:
    assert len(list((undrawn / "plots").glob("*.pdf"))) == 2 * len(METRICS) + 1 + 3 + 3
    html = (undrawn / "index.html").read_text()
    rows = [
        re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall("<tr>.*?</tr>", html)
    ]
    assert ["photos", "30", "4", "3", "5", "1"] in rows
    assert ["photos", "bce", "0.5", "0.600", "0.600", "0.600"] in rows  # of a sweep
    small = [result for result in make_results() if result.names.experiment == "small"]
    for metric in METRICS:
        assert all(
            row[1:] in [own[1:] for own in rows] for row in metric_table(small, metric).shown().rows
        )
    for title in ("p values", "Cost", "How it was run"):
        assert title in html
    assert (undrawn / "tables.tex").read_text().count("\\begin{tabular}") == len(METRICS)
    numbers = pd.read_csv(undrawn / "metrics.csv")
    assert len(numbers) == (8 * 3 + 2 * 2) * (2 * len(METRICS) + 2)
    by_way = numbers[(numbers["metric"] == "hamming_loss") & (numbers["experiment"] == "noise")]
    means = by_way.groupby("convention")["value"].mean().round(6).to_dict()
    assert means == {"pml": 0.6, "sklearn": 0.7, "zero": 0.6, "minmax": 0.8}
    assert set(numbers["convention"]) == set(means)


@pytest.mark.parametrize("place", ["first", "last"])
def test_a_new_metric_is_an_empty_cell_of_stored_results(place: str) -> None:
    """No stored result has to be made again, and nothing else in its report changes."""
    check_new_metric(read_results([STORED / "images-probe"]), place)


def test_a_page_has_an_empty_cell_for_a_metric_that_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_drawing(monkeypatch)
    monkeypatch.setitem(METRICS, "sharpness", SHARPNESS)
    results = read_results([STORED / "images-clean"])
    page = write_report(results, tmp_path / "report").read_text()
    table = page.split('data-metric="sharpness"')[1].split("</table>")[0]
    assert '<td class="none">–</td>' in table
    assert "nan" not in re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL).lower().split()


def test_a_metric_that_no_report_knows_is_ignored(tmp_path: Path) -> None:
    folder = write_results(tmp_path, [make_result(), make_result("gdf", values=BETTER)])
    plain = make_all_texts(read_results([folder]))
    for path in folder.rglob("result.json"):
        repeats = json.loads(path.read_text())["repeats"]
        for repeat in repeats:
            repeat["pml"]["sharpness"] = repeat["sklearn"]["sharpness"] = 0.3
        change_json(path, {"repeats": repeats})
    assert make_all_texts(read_results([folder])) == plain


def test_results_of_several_ages_stand_in_one_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old results lack a metric in tables, ranks, sweeps, plots and numbers."""
    skip_drawing(monkeypatch)
    old = [name for name in METRICS if name != "ranking_loss"]
    results = make_results()
    results[0] = make_result("bce", "photos", metrics=old)
    results[-1] = make_result(
        experiment="rows", sweep="train_rows", train_rows=400, metrics=old, values=[0.2]
    )
    page = write_report(results, tmp_path / "report").read_text()
    assert '<td class="none">–</td>' in page
    assert ">nan<" not in page
    numbers = pd.read_csv(tmp_path / "report" / "metrics.csv")
    missing = numbers[numbers["value"].isna()]
    assert set(missing["metric"]) == {"ranking_loss"}
    assert len(missing) == 2 * (3 + 1)


def test_synthetic_labels_show_the_papers_metric_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METRICS, "sharpness", SHARPNESS)
    seeds: dict[str, Any] = {"folds": None, "label_seeds": 3}
    (part,) = make_parts([make_result(**seeds)])
    shown = [table.metric for table in part.tables]
    others = [name for name in METRICS if name != "mean_average_precision"]
    assert shown == ["mean_average_precision", *others]
    (part,) = make_parts([make_result()])
    assert [table.metric for table in part.tables] == list(METRICS)


def test_results_come_in_the_order_of_the_paper() -> None:
    methods = ("comes-rl per label", "comes-hl", "my own", "comes-rl", "bce", "mlcl")
    results = order_results(
        make_result(method, data)
        for data in ("zoo", "YeastMF", "mirflickr5000")
        for method in methods
    )
    data = list(dict.fromkeys(result.names.data for result in results))
    assert data == ["mirflickr5000", "YeastMF", "zoo"]
    ordered = ["my own", "bce", "mlcl", "comes-hl", "comes-rl", "comes-rl per label"]
    assert [result.names.method for result in results[:6]] == ordered
    sweep = [make_result(sweep="flood", flood=at) for at in (0.5, 0.1)]
    assert [result.at for result in order_results(sweep)] == [0.1, 0.5]


def test_experiments_of_one_name_that_vary_other_things_are_parts_of_their_own() -> None:
    results = [make_result(sweep="flood", flood=0.1), make_result(sweep="prior_noise")]
    assert len({part.slug for part in make_parts([*results, make_result()])}) == 3
    odd = [make_result(experiment=name) for name in ("a b", "a-b")]
    assert len({part.slug for part in make_parts(odd)}) == 2


def test_a_folder_with_something_else_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_drawing(monkeypatch)
    results = [make_result()]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    with pytest.raises(ComesError, match="thesis.tex"):
        write_report(results, tmp_path / "mine")
    write_report(results, tmp_path / "report")
    write_report(results, tmp_path / "report")  # its own is
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "years of work"
    with pytest.raises(ComesError, match="no results to report"):
        write_report([], tmp_path / "report")


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_drawing(monkeypatch)
    runs = write_results(tmp_path / "runs", [make_result()])
    (runs / "task-9").mkdir()
    text = "bce on photos\nTraceback\nComesError: epochs must be more\n"
    (runs / "task-9" / "error.txt").write_text(text)
    result = CliRunner().invoke(app, ["report", str(runs), "-o", str(tmp_path / "out")])
    assert result.exit_code == 0
    assert result.stdout.strip() == f"1 results: {tmp_path / 'out' / 'index.html'}"
    as_json = CliRunner().invoke(app, ["report", str(runs), "-o", str(tmp_path / "out"), "--json"])
    assert '"cells": 1' in as_json.stdout
    assert "epochs must be more" in (tmp_path / "out" / "index.html").read_text()


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


def test_curves_are_the_mean_risks_of_the_methods_on_each_data_set() -> None:
    results = [make_result("bce", "a"), make_result("gdf", "a", BETTER), make_result("bce", "b")]
    figure = plot_curves(results, Look(["bce", "gdf"]))
    drawn = {
        (axes.get_title(), str(line.get_label())): points_of(axes, k).tolist()
        for axes in figure.axes
        for k, line in enumerate(axes.lines)
    }
    assert list(drawn) == [("a", "bce"), ("a", "gdf"), ("b", "bce")]
    for (data, method), points in drawn.items():
        last = float(np.mean(BETTER)) if method == "gdf" else 0.6
        np.testing.assert_allclose(points, [[1.0, 1.0], [2.0, last]], err_msg=f"{method} on {data}")


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
