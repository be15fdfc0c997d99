"""Reports: what is read, what the tables say, and that the same results give the same bytes."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from comes.cli import app
from comes.errors import ComesError
from comes.metrics import METRICS
from comes.report import Cell, read_errors, read_runs, write_report
from comes.report.published import beside_paper, published, what_differs
from comes.report.tables import metric_table, to_latex, to_markdown
from results import make_result, write_results

BETTER = [0.6, 0.71, 0.8]  # than the default values 0.5, 0.6, 0.7, in every repeat


def cells_of(*results: dict[str, Any]) -> list[Cell]:
    return [Cell(**{k: v for k, v in r.items() if k != "key"}) for r in results]


def test_results_come_in_the_order_of_the_paper(tmp_path: Path) -> None:
    write_results(
        tmp_path,
        [
            make_result(method, data)
            for data in ("zoo", "YeastMF", "mirflickr5000")
            for method in ("comes-rl per label", "comes-hl", "my own", "comes-rl", "bce", "mlcl")
        ],
    )
    cells = read_runs([tmp_path])
    assert list(dict.fromkeys(cell.data for cell in cells)) == ["mirflickr5000", "YeastMF", "zoo"]
    methods = ["my own", "bce", "mlcl", "comes-hl", "comes-rl", "comes-rl per label"]
    assert [cell.method for cell in cells[:6]] == methods
    (renamed,) = read_runs([tmp_path], {"task-0": {"method": "ours", "data": "animals"}})
    assert (renamed.method, renamed.data, renamed.experiment) == ("ours", "animals", "small")


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(ComesError, match="holds no result.json: give a folder"):
        read_runs([tmp_path])
    with pytest.raises(ComesError, match="holds no result.json"):
        read_runs([tmp_path / "missing"])
    twice = make_result(spec=make_result()["spec"] | {"settings": {"epochs": 3}})
    folder = write_results(tmp_path / "twice", [make_result(), twice])
    with pytest.raises(ComesError, match=r"two results are both bce on photos \(small\).*epochs"):
        read_runs([folder])
    same = write_results(tmp_path / "same", [make_result(), make_result()])
    assert len(read_runs([same])) == 1
    (same / "task-0" / "result.json").write_text('{"experiment": "cut of')
    with pytest.raises(ComesError, match="is no result of `comes bench`"):
        read_runs([same])
    with pytest.raises(ComesError, match="no results to report"):
        write_report([], tmp_path / "report")


@pytest.mark.parametrize(
    "changes",
    [
        {"repeats": []},
        {"repeats": 3},
        {"repeats": [{"pml": {}}]},
        {"repeats": [make_result()["repeats"][0] | {"risk": []}]},
        {"repeats": [make_result()["repeats"][0] | {"pml": {"coverage": 0.1}}]},
        {"spec": []},
        {"spec": {}},
        {"spec": {"data": {"name": "x"}, "method": "bce", "settings": 3}},
        {"sweep": "flood"},
        {"size": None},
        {"data": 5},
        {"degenerate": {}},
    ],
    ids=range(12),
)
def test_a_result_of_another_shape_is_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    folder = write_results(tmp_path, [make_result() | changes])
    with pytest.raises(ComesError, match="is no result of `comes bench`: remove its folder"):
        read_runs([folder])


@pytest.mark.parametrize(
    "other",
    [{"seed": 1}, {"folds": 4}, {"train_rows": 10}, {"data": {"name": "photos", "rate": 0.2}}],
)
def test_repeats_that_share_no_rows_are_not_paired(other: dict[str, Any]) -> None:
    spec = make_result()["spec"] | other
    cells = cells_of(make_result("bce"), make_result("gdf", values=BETTER, spec=spec))
    entry = metric_table(cells, "average_precision").entries["bce", "photos"]
    assert entry.against_best is not None
    assert math.isnan(entry.against_best.p)
    assert not entry.is_worse


def test_the_correction_knows_the_rows_and_is_none_for_label_seeds() -> None:
    cell, *_ = cells_of(make_result())
    assert cell.test_over_train == pytest.approx(1 / 2)
    spec = cell.spec | {"train_rows": 5}
    assert cells_of(make_result(spec=spec))[0].test_over_train == pytest.approx(10 / 5)
    spec = {k: v for k, v in cell.spec.items() if k != "folds"} | {"label_seeds": 3}
    cells = cells_of(make_result(spec=spec), make_result("gdf", values=BETTER, spec=spec))
    entry = metric_table(cells, "average_precision").entries["bce", "photos"]
    assert entry.is_worse
    assert not entry.is_surely_worse


def test_a_table_marks_the_best_and_what_is_significantly_worse() -> None:
    close = [0.8, 0.71, 0.6]  # the same mean as BETTER, in another order
    cells = cells_of(
        make_result("bce"), make_result("comes-hl", values=BETTER), make_result("gdf", values=close)
    )
    table = metric_table(cells, "average_precision")
    assert table.methods == ["bce", "gdf", "comes-hl"]
    bce, best = table.entries["bce", "photos"], table.entries["comes-hl", "photos"]
    assert best.is_best
    assert table.entries["gdf", "photos"].is_best
    assert best.against_best is None
    assert bce.is_worse
    assert bce.against_best is not None
    assert bce.against_best.difference == pytest.approx(np.mean(BETTER) - 0.6)
    assert bce.against_best.p_corrected > bce.against_best.p
    assert best.text == f"{np.mean(BETTER):.3f} ± {np.std(BETTER, ddof=1):.3f}"
    loss = metric_table(cells, "ranking_loss")
    assert loss.entries["bce", "photos"].is_best
    assert metric_table(cells, "coverage", "sklearn").entries["bce", "photos"].mean == (
        pytest.approx(0.7)
    )


def test_markdown_and_latex_of_a_table() -> None:
    cells = cells_of(
        make_result("comes-hl", "a_b", BETTER),
        make_result("bce", "a_b"),
        make_result("my|own & 100%", "a_b", [0.7]),
        make_result("bce", "photos"),
    )
    table = metric_table(cells, "average_precision")
    lines = to_markdown(table).splitlines()
    assert lines[0] == "| average precision ↑ | a_b | photos |"
    assert lines[2] == "| my\\|own & 100% | 0.700 ± 0.000 | – |"
    assert lines[3] == "| bce | 0.600 ± 0.100 • | **0.600 ± 0.100** |"
    assert lines[4] == "| comes-hl | **0.703 ± 0.100** | – |"
    tex = to_latex(table)
    assert "my|own \\& 100\\% & 0.700 $\\pm$ 0.000 & --" in tex
    assert "BCE & 0.600 $\\pm$ 0.100$\\bullet$ & \\textbf{0.600 $\\pm$ 0.100} \\\\" in tex
    assert "{a\\_b}" in tex
    assert tex.count("\\midrule") == 3  # under the title, over the baselines, over COMES
    assert tex.index("BCE") < tex.index("COMES-HL")


def test_what_has_no_value_is_left_out() -> None:
    cells = cells_of(make_result("bce", values=[math.nan]), make_result("gdf", values=[0.5]))
    table = metric_table(cells, "coverage")
    assert ("bce", "photos") not in table.entries
    assert table.entries["gdf", "photos"].is_best
    assert not metric_table(cells[:1], "coverage").entries
    assert "| bce | – |" in to_markdown(metric_table(cells[:1], "coverage"))


def test_the_papers_numbers_are_all_there() -> None:
    table = published()
    assert len(table) == 6 * 5 * 7 + 4 * 2 * 7
    assert not table.duplicated(["data", "case", "method", "metric"]).any()
    ours = table[(table["data"] == "mirflickr") & (table["method"] == "comes-hl")]
    means = dict(zip(ours["metric"], ours["mean"], strict=True))
    assert means == {
        "ranking_loss": 0.095,
        "one_error": 0.171,
        "hamming_loss": 0.164,
        "coverage": 0.211,
        "average_precision": 0.843,
    }
    voc = table[(table["data"] == "VOC2012") & (table["method"] == "comes-rl")]
    assert voc["mean"].tolist() == [0.5326, 0.5229]
    # In every table of the paper a COMES is best, but for music_style's ranking and coverage.
    for where, rows in table.groupby(["data", "case", "metric"]):
        data, _, metric = map(str, where)
        means_of = rows.set_index("method")["mean"]
        best = means_of.idxmax() if METRICS[metric].higher_is_better else means_of.idxmin()
        mlcl = data == "music_style" and metric in ("ranking_loss", "coverage")
        assert (best == "mlcl") if mlcl else str(best).startswith("comes-"), where


def test_results_stand_beside_those_of_the_paper() -> None:
    cells = cells_of(
        make_result("comes-hl", "mirflickr5000"),
        make_result("comes-hl", "photos"),
        make_result("comes-hl", "YeastCC") | {"method": "comes-hl mine"},
    )
    rows = {row.metric: row for row in beside_paper(cells)}
    assert len(rows) == 6  # five metrics, and the Hamming loss once more
    assert {row.data for row in rows.values()} == {"mirflickr5000"}
    precision = rows["average precision"]
    assert (precision.ours, precision.ours_std) == (0.6, 0.1)
    assert (precision.paper, precision.paper_std) == (0.843, 0.013)
    assert rows["Hamming loss, min-max"].ours == pytest.approx(0.8)


def test_what_differs_from_the_paper_is_said() -> None:
    spec = make_result()["spec"] | {"settings": {"epochs": 20, "reduction": "sum"}}
    spec |= {"class_prior": "estimated", "search": {"held_out": 0.2}}
    text = " ".join(what_differs(cells_of(make_result(spec=spec))))
    for part in (
        "epochs: 20; the paper says 200",
        "3 of 3 folds; the paper has 10",
        "estimated from candidates, and the paper takes the true class priors: bce.",
        "20% of the training rows",
        "reduction sum; normaliser dataset",
        "batch size 256; momentum 0.9",
    ):
        assert part in text
    own = make_result()["spec"] | {"settings": {"batch_size": 32, "model": "linear"}}
    text = " ".join(what_differs(cells_of(make_result(spec=own), make_result("gdf"))))
    assert "batch size 256, 32;" in text
    assert "model: linear, mlp; the paper says mlp" in text
    spec = {k: v for k, v in make_result()["spec"].items() if k != "folds"} | {"label_seeds": 3}
    assert "on images alone" in " ".join(what_differs(cells_of(make_result(spec=spec))))
    plain = " ".join(what_differs(cells_of(make_result("bce", "mirflickr5000"))))
    assert "5000 of the 10433 rows of mirflickr" in plain
    for absent in ("epochs", "images", "estimated"):
        assert absent not in plain


def test_another_rate_does_not_stand_beside_the_paper() -> None:
    for rate, n in ((0.9, 1), (0.2, 0)):
        spec = make_result("bce")["spec"] | {"data": {"name": "VOC2012", "case": "a", "rate": rate}}
        assert len(beside_paper(cells_of(make_result("bce", spec=spec)))) == n


def a_report(folder: Path) -> Path:
    hostile = "<script>alert('x')</script>"
    results = [make_result(m, d) for m in ("bce", hostile) for d in ("photos", "songs")]
    results += [make_result("comes-hl", d, BETTER) for d in ("photos", "songs")]
    for at in (0.0, 0.5):
        spec = make_result()["spec"] | {"prior_noise": at}
        results.append(make_result(experiment="noise", sweep="prior_noise", spec=spec))
    for at in (100, 400):
        spec = make_result()["spec"] | {"train_rows": at}
        values = [0.5 + 10 / at] * 2
        results.append(make_result(experiment="rows", sweep="train_rows", spec=spec, values=values))
    return write_results(folder, results)


def test_a_report_is_a_function_of_the_results(tmp_path: Path) -> None:
    runs = a_report(tmp_path / "runs")
    contents = []
    for name in ("one", "other"):
        page = write_report(read_runs([runs]), tmp_path / name, ["task-9: no <b>luck</b>"])
        assert page == tmp_path / name / "index.html"
        files = sorted(path for path in (tmp_path / name).rglob("*") if path.is_file())
        contents.append({path.relative_to(tmp_path / name): path.read_bytes() for path in files})
    assert contents[0] == contents[1]
    assert len([path for path in contents[0] if path.suffix == ".pdf"]) == 6 + 6 + 1 + 3 + 4
    html = contents[0][Path("index.html")].decode()
    assert "<script>alert" not in html
    assert "no &lt;b&gt;luck" in html
    assert "http" not in html.replace("http-equiv", "").replace("http://www.w3.org", "")
    markdown = contents[0][Path("report.md")].decode()
    assert "| photos | 30 | 4 | 3 | 5 | 1 |" in markdown
    small = [cell for cell in read_runs([runs]) if cell.experiment == "small"]
    assert all(to_markdown(metric_table(small, metric)) in markdown for metric in METRICS)
    assert "- task-9: no <b>luck</b>" in markdown
    assert "| average precision ↑ | 0 | 0.5 |" in markdown
    assert "| bce on photos | 0.600 | 0.600 |" in markdown
    for title in ("Mean ranks", "Tests against the best", "What differs"):
        assert f"### {title}" in markdown
    assert contents[0][Path("tables.tex")].decode().count("\\begin{tabular}") == len(METRICS)
    numbers = pd.read_csv(tmp_path / "one" / "metrics.csv")
    assert len(numbers) == (8 * 3 + 2 * 2) * (2 * len(METRICS) + 2)
    assert set(numbers["convention"]) == {"pml", "sklearn", "zero", "minmax"}


def test_a_folder_with_something_else_is_not_replaced(tmp_path: Path) -> None:
    cells = read_runs([write_results(tmp_path / "runs", [make_result()])])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    with pytest.raises(ComesError, match="thesis.tex"):
        write_report(cells, tmp_path / "mine")
    write_report(cells, tmp_path / "report")
    write_report(cells, tmp_path / "report")  # its own is
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "years of work"


def test_the_command(tmp_path: Path) -> None:
    runs = write_results(tmp_path / "runs", [make_result()])
    (runs / "task-9").mkdir()
    text = "bce on photos\nTraceback\nComesError: epochs must be more\n"
    (runs / "task-9" / "error.txt").write_text(text)
    assert read_errors([runs]) == ["bce on photos: ComesError: epochs must be more"]
    result = CliRunner().invoke(app, ["report", str(runs), "-o", str(tmp_path / "out")])
    assert result.exit_code == 0
    assert result.stdout.strip() == f"1 results: {tmp_path / 'out' / 'index.html'}"
    as_json = CliRunner().invoke(app, ["report", str(runs), "-o", str(tmp_path / "out"), "--json"])
    assert '"cells": 1' in as_json.stdout
    assert "epochs must be more" in (tmp_path / "out" / "index.html").read_text()
