"""Reports: the same results give the same bytes, and a metric that they lack is an empty cell."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from comes.cli import app
from comes.errors import ComesError
from comes.metrics import METRICS, Metric
from comes.plots import Look
from comes.report import write_report
from comes.report.document import draw_figures, make_texts
from comes.report.metric_tables import metric_table, to_markdown
from comes.report.ordering import order_results
from comes.report.parts import SWEEP_METRICS, make_parts
from comes.results import Result, read_results
from results import (
    BETTER,
    ERRORS,
    STORED,
    change_json,
    make_result,
    make_results,
    skip_drawing,
    write_results,
)

NEW = Metric("sharpness", True, METRICS["coverage"].compute)


def read_folder(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_a_report_is_a_function_of_the_results(report: Path, tmp_path: Path) -> None:
    results = read_results([write_results(tmp_path / "runs", make_results())])
    assert write_report(results, tmp_path / "other", ERRORS) == tmp_path / "other" / "index.html"
    assert read_folder(tmp_path / "other") == read_folder(report)


def test_a_page_runs_nothing_and_loads_nothing(report: Path) -> None:
    html = (report / "index.html").read_text()
    assert "<script>alert" not in html
    assert "no &lt;b&gt;luck" in html
    assert "http" not in html.replace("http-equiv", "").replace("http://www.w3.org", "")


def test_a_report_holds_every_table_and_every_number(report: Path) -> None:
    assert len(list((report / "plots").glob("*.pdf"))) == 2 * len(METRICS) + 1 + 3 + 4
    markdown = (report / "report.md").read_text()
    assert "| photos | 30 | 4 | 3 | 5 | 1 |" in markdown
    small = [result for result in make_results() if result.names.experiment == "small"]
    assert all(to_markdown(metric_table(small, metric)) in markdown for metric in METRICS)
    assert "- task-9: no <b>luck</b>" in markdown
    assert "| average precision ↑ | 0 | 0.5 |" in markdown
    assert "| bce on photos | 0.600 | 0.600 |" in markdown
    for title in ("Mean ranks", "Tests against the best", "Cost", "How it was run"):
        assert f"### {title}" in markdown
    assert (report / "tables.tex").read_text().count("\\begin{tabular}") == len(METRICS)
    numbers = pd.read_csv(report / "metrics.csv")
    assert len(numbers) == (8 * 3 + 2 * 2) * (2 * len(METRICS) + 2)
    by_way = numbers[(numbers["metric"] == "hamming_loss") & (numbers["experiment"] == "noise")]
    means = by_way.groupby("convention")["value"].mean().round(6).to_dict()
    assert means == {"pml": 0.6, "sklearn": 0.7, "zero": 0.6, "minmax": 0.8}
    assert set(numbers["convention"]) == set(means)


def make_all_texts(results: list[Result]) -> dict[str, str]:
    ordered = order_results(results)
    return make_texts(ordered, make_parts(ordered), [])


def drop_column(lines: list[str], title: str) -> list[str]:
    """Return a table of Markdown without a column, which must be empty."""
    rows = [re.split(r"(?<!\\)\|", line) for line in lines]
    place = next(k for k, cell in enumerate(rows[0]) if cell.strip() == title)
    assert all(row.pop(place).strip() in (title, "---", "–") for row in rows)
    return ["|".join(row) for row in rows]


@pytest.mark.parametrize(("folder", "place"), [("", "last"), ("images-probe", "first")])
def test_a_new_metric_is_an_empty_cell_of_every_stored_result(
    folder: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No stored result has to be made again, and nothing else in its report changes."""
    results = read_results([STORED / folder])
    assert len(results) >= 468 or folder
    before = make_all_texts(results)
    known = dict(METRICS)
    new = {"sharpness": NEW}
    for name in known:
        monkeypatch.delitem(METRICS, name)
    for name, metric in (new | known if place == "first" else known | new).items():
        monkeypatch.setitem(METRICS, name, metric)
    after = make_all_texts(results)
    numbers = after["metrics.csv"].splitlines()
    empty = [line for line in numbers if ",sharpness," in line]
    assert len(empty) == 2 * sum(len(result.repeats) for result in results)
    assert all(line.endswith(",sharpness,") for line in empty)
    rest = [line for line in numbers if ",sharpness," not in line]
    assert rest == before["metrics.csv"].splitlines()
    tables = after["tables.tex"].strip().split("\n\n")
    kept = [table for table in tables if "Sharpness" not in table]
    assert kept == before["tables.tex"].strip().split("\n\n")
    parts = []
    for part in after["report.md"].split("\n\n"):
        if part.startswith("| sharpness ↑ |"):
            cells = {cell for line in part.splitlines()[2:] for cell in line.split(" | ")[1:]}
            assert cells <= {"–", "– |"}
        elif part.startswith("| mean rank |"):
            parts.append("\n".join(drop_column(part.splitlines(), "sharpness ↑")))
        else:
            parts.append(part)
    assert "\n\n".join(parts) == before["report.md"]
    assert "| sharpness ↑ |" in after["report.md"]


def test_a_page_has_an_empty_cell_for_a_metric_that_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(METRICS, "sharpness", NEW)
    results = read_results([STORED / "images-clean"])
    page = write_report(results, tmp_path / "report").read_text()
    table = page.split('data-metric="sharpness" data-convention="pml"')[1].split("</table>")[0]
    assert '<td class="none">–</td>' in table
    assert "data-value" not in table
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
    markdown = (tmp_path / "report" / "report.md").read_text()
    assert "| bce on photos | 0.600 | – |" in markdown
    ranks = markdown.split("### Mean ranks")[1].split("###")[0]
    assert all(line.split(" | ")[1] == "–" for line in ranks.strip().splitlines()[2:])
    assert "nan" not in markdown
    numbers = pd.read_csv(tmp_path / "report" / "metrics.csv")
    missing = numbers[numbers["value"].isna()]
    assert set(missing["metric"]) == {"ranking_loss"}
    assert len(missing) == 2 * (3 + 1)


def test_results_of_early_versions_have_no_true_risk_to_draw() -> None:
    results = [
        make_result(sweep="train_rows", train_rows=at, values=[0.5 + 10 / at] * 2)
        for at in (100, 400)
    ]
    (part,) = make_parts(results)
    assert "estimation-error" in draw_figures(part, Look(["bce"]))
    early = replace(results[0].repeats[0], true_risk=None)
    results[0] = replace(results[0], repeats=(early, *results[0].repeats[1:]))
    (part,) = make_parts(results)
    assert list(draw_figures(part, Look(["bce"]))) == list(SWEEP_METRICS)


def test_synthetic_labels_show_the_papers_metric_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METRICS, "sharpness", NEW)
    seeds: dict[str, Any] = {"folds": None, "label_seeds": 3}
    (part,) = make_parts([make_result(**seeds)])
    shown = [table.metric for table in part.tables]
    others = [name for name in METRICS if name != "mean_average_precision"]
    assert shown == ["mean_average_precision", *others]
    (part,) = make_parts([make_result()])
    assert [table.metric for table in part.tables] == list(METRICS)
    assert [table.metric for table in part.other_tables] == list(METRICS)


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
