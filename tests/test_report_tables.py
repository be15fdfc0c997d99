"""Tables of reports: metrics, costs, labels, and numbers beside those of the paper."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from comes.experiment.results import DataSpec, Result, read_results, write_result
from comes.metrics import METRICS
from comes.report.experiment_page import (
    draw_figures,
    list_costs,
    list_means,
    make_label_tables,
    make_parts,
    metric_table,
    sweep_to_markdown,
    to_latex,
    to_markdown,
    write_report,
)
from comes.report.paper import beside_paper, published
from comes.report.plots import Look
from results import BETTER, make_result, skip_drawing

SIX = [0.5, 0.6, 0.7] * 2  # repeats; fewer than five are no test


def test_repeats_that_share_no_rows_are_not_paired() -> None:
    others: list[dict[str, Any]] = [
        {"seed": 1},
        {"folds": 4},
        {"first_folds": 2},
        {"label_seeds": 4},
        {"test_share": 0.5},
        {"train_rows": 10},
        {"data_spec": DataSpec(name="photos", rate=0.2)},
    ]
    for other in others:
        better = make_result("gdf", values=BETTER * 2, **other)
        table = metric_table([make_result("bce", values=SIX), better], "average_precision")
        entry = table.entries["bce", "photos"]
        assert entry.against_best is not None, other
        assert math.isnan(entry.against_best.p), other
        assert not entry.is_worse, other


def test_three_repeats_are_too_few_for_a_test() -> None:
    table = metric_table([make_result(), make_result("gdf", values=BETTER)], "average_precision")
    entry = table.entries["bce", "photos"]
    assert entry.against_best is not None and math.isnan(entry.against_best.p)
    assert not entry.is_worse and "•" not in to_markdown(table)


def test_label_seeds_have_no_corrected_test() -> None:
    seeds: dict[str, Any] = {"folds": None, "label_seeds": 3}
    results = [make_result(values=SIX, **seeds), make_result("gdf", values=BETTER * 2, **seeds)]
    entry = metric_table(results, "average_precision").entries["bce", "photos"]
    assert entry.is_worse
    assert not entry.is_surely_worse


def test_a_table_marks_the_best_and_what_is_significantly_worse() -> None:
    best_values, close = BETTER * 2, [*BETTER[::-1]] * 2  # the same mean, in another order
    results = [
        make_result("bce", values=SIX),
        make_result("comes-hl", values=best_values),
        make_result("comes-rl", values=close),
    ]
    table = metric_table(results, "average_precision")
    assert table.methods == ["bce", "comes-hl", "comes-rl"]
    bce, best = table.entries["bce", "photos"], table.entries["comes-hl", "photos"]
    assert best.is_best
    assert table.entries["comes-rl", "photos"].is_best
    assert best.against_best is None
    assert bce.is_worse
    assert bce.against_best is not None
    assert bce.against_best.difference == pytest.approx(np.mean(BETTER) - 0.6)
    assert bce.against_best.p_corrected > bce.against_best.p
    assert best.text == f"{np.mean(BETTER):.3f} ± {np.std(best_values, ddof=1):.3f}"
    loss = metric_table(results, "ranking_loss")
    assert loss.entries["bce", "photos"].is_best
    assert metric_table(results, "coverage", "sklearn").entries["bce", "photos"].mean == (
        pytest.approx(0.7)
    )


def test_markdown_and_latex_of_a_table() -> None:
    results = [
        make_result("comes-hl", "a_b", BETTER * 2),
        make_result("bce", "a_b", SIX),
        make_result("my|own & 100%", "a_b", [0.7]),
        make_result("bce", "photos"),
    ]
    table = metric_table(results, "average_precision")
    lines = to_markdown(table).splitlines()
    assert lines[0] == "| average precision ↑ | a_b | photos |"
    assert lines[2] == "| my\\|own & 100% | 0.700 ± 0.000 | – |"
    assert lines[3] == "| bce | 0.600 ± 0.089 • | **0.600 ± 0.100** |"
    assert lines[4] == "| comes-hl | **0.703 ± 0.090** | – |"
    tex = to_latex(table)
    assert "my|own \\& 100\\% & 0.700 $\\pm$ 0.000 & --" in tex
    assert "BCE & 0.600 $\\pm$ 0.089$\\bullet$ & \\textbf{0.600 $\\pm$ 0.100} \\\\" in tex
    assert "{a\\_b}" in tex
    assert tex.count("\\midrule") == 3  # under the title, over the baselines, over COMES
    assert tex.index("BCE") < tex.index("COMES-HL")
    ranking = metric_table([make_result("ccmn, ranking", "a_b", SIX)], "average_precision")
    assert "CCMN, ranking & " in to_latex(ranking)


def test_what_has_no_value_is_left_out() -> None:
    results = [make_result("bce", values=[math.nan]), make_result("gdf", values=[0.5])]
    table = metric_table(results, "coverage")
    assert ("bce", "photos") not in table.entries
    assert table.entries["gdf", "photos"].is_best
    assert not metric_table(results[:1], "coverage").entries
    assert "| bce | – |" in to_markdown(metric_table(results[:1], "coverage"))


def test_a_sweep_shows_means_and_gaps() -> None:
    results = [make_result(sweep="flood", flood=at, values=[at]) for at in (0.5, 0.0)]
    results.append(make_result("gdf", sweep="flood", flood=0.5, metrics=["coverage"]))
    lines = sweep_to_markdown(results, "one_error").splitlines()
    assert lines[0] == "| one-error ↓ | 0 | 0.5 |"
    assert lines[2:] == ["| bce on photos | 0.000 | 0.500 |", "| gdf on photos | – | – |"]


def test_a_result_without_a_metric_is_an_empty_cell_and_in_no_test() -> None:
    results = [make_result("bce"), make_result("gdf", values=BETTER)]
    lacking = make_result("ctl", values=BETTER, metrics=["coverage"])
    table = metric_table([*results, lacking], "average_precision")
    assert table.row("ctl") == [None]
    assert repr(table.entries) == repr(metric_table(results, "average_precision").entries)
    assert "| ctl | – |" in to_markdown(table)
    assert "CTL & -- " in to_latex(table)


def test_ranks_are_of_data_sets_that_every_method_has_the_metric_on() -> None:
    data = ("a", "b", "c")
    results = [make_result(m, d, v) for m, v in (("bce", BETTER), ("gdf", [0.1])) for d in data]
    table = metric_table([*results[:-1], make_result("gdf", "c", metrics=[])], "coverage")
    assert table.ranks is not None
    assert (table.ranks.n_data, table.ranks.rank_of("gdf")) == (2, 1.0)


def test_titles_in_latex_keep_the_letters_of_a_short_name() -> None:
    titles = {
        "ranking_loss": "Ranking Loss",
        "one_error": "One-Error",
        "hamming_loss": "Hamming Loss",
        "mean_average_precision": "mAP",
    }
    for metric, title in titles.items():
        line = to_latex(metric_table([make_result()], metric)).splitlines()[2]
        assert line.split("textbf{")[1].split(" $")[0] == title


def test_means_have_a_row_for_every_result_and_the_same_columns() -> None:
    old = make_result("gdf", values=[0.1, 0.3], metrics=["coverage"])
    rows = list_means([make_result("comes-hl", metrics=["one_error", "coverage"]), old])
    assert [list(row) for row in rows] == [["data", "method", "one_error", "coverage"]] * 2
    assert (rows[0]["method"], rows[0]["coverage"]) == ("gdf", pytest.approx(0.2))
    assert math.isnan(rows[0]["one_error"])
    (row,) = list_means([make_result(sweep="flood", flood=0.5, metrics=[])])
    assert row == {"data": "photos", "method": "bce", "flood": 0.5}


NAMES = ("sky", "sea", "cat")


def with_labels(result: Result, values: list[tuple[float | None, ...]]) -> Result:
    """Return a result with the average precision of each label in every repeat, and a cost."""
    repeats = tuple(
        replace(
            repeat,
            by_label={"average_precision": own, "recall": (0.5, None, 1.0)},
            held_out=(0.4, 0.6),
        )
        for repeat, own in zip(result.repeats, values, strict=True)
    )
    return replace(result, repeats=repeats, label_names=NAMES, peak_memory=512.25)


BCE = with_labels(make_result("bce"), [(0.9, 0.1, None), (0.7, 0.3, None), (0.8, None, None)])
OURS = with_labels(make_result("comes-hl"), [(0.9, 0.1, 0.2)] * 3)
EARLY = make_result("gdf")


def test_a_result_keeps_what_it_says_of_labels(tmp_path: Path) -> None:
    write_result(BCE, tmp_path)
    (again,) = read_results([tmp_path])
    assert again == BCE
    means = again.label_means("average_precision")
    assert means is not None
    np.testing.assert_allclose(means, [0.8, 0.2, np.nan])
    assert again.label_means("auc") is None and EARLY.label_means("average_precision") is None
    assert BCE.spec.key == make_result("bce").spec.key


def test_labels_stand_the_hardest_first_for_results_that_have_them() -> None:
    (table,) = make_label_tables([BCE, OURS, EARLY])
    assert table.methods == ["bce", "comes-hl"]
    assert [label for label, _ in table.rows] == ["sea", "cat", "sky"]
    np.testing.assert_allclose(table.rows[0][1], [0.2, 0.1])
    assert np.isnan(table.rows[1][1][0])
    assert make_label_tables([EARLY]) == []


def test_costs_are_those_of_the_results_and_early_ones_have_empty_cells() -> None:
    first, early = list_costs([BCE, EARLY])
    assert first.seconds_per_training == pytest.approx(0.1)
    assert (first.seconds, first.epochs) == (1.5, 2)
    assert first.cells == ["2", "0.1", "1.5", "512", "–", "CPU"]
    assert early.cells[3:5] == ["–", "–"]
    silent = replace(EARLY, repeats=tuple(replace(r, seconds=None) for r in EARLY.repeats))
    assert list_costs([silent])[0].cells[1] == "–"


def test_the_report_has_costs_labels_and_held_out_curves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_drawing(monkeypatch)
    page = write_report([BCE, OURS, EARLY], tmp_path / "report")
    html = page.read_text(encoding="utf-8")
    assert "Each label of photos" in html and "seconds per training" in html and "512" in html
    markdown = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert "| photos | bce | 2 | 0.1 | 1.5 | 512 | – | CPU |" in markdown
    labels = pd.read_csv(tmp_path / "report" / "labels.csv")
    assert len(labels) == 2 * 3 * 2 * 3
    own = labels.query("method == 'bce' and label == 'sky' and metric == 'average_precision'")
    assert own["value"].tolist() == [0.9, 0.7, 0.8]
    (part,) = make_parts([BCE, OURS, EARLY])
    assert "held-out" in draw_figures(part, Look(["bce", "comes-hl", "gdf"]))
    (part,) = make_parts([EARLY])
    assert "held-out" not in draw_figures(part, Look(["gdf"]))
    write_report([EARLY], tmp_path / "report")  # replaces the other
    assert not (tmp_path / "report" / "labels.csv").exists()


def test_what_differs_from_the_paper_is_said_of_its_data_alone() -> None:
    (own,) = make_parts([make_result()])
    assert not own.differs and not any("paper" in line for line in own.was_run)
    assert any("learning rate 0.005" in line for line in own.was_run)
    (papers,) = make_parts([make_result(data="YeastBP")])
    assert papers.differs and not papers.was_run
    (both,) = make_parts([make_result(), make_result(data="mirflickr5000")])
    assert any("mirflickr" in line for line in both.differs) and both.was_run


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
    named = make_result("comes-hl", "YeastCC")
    results = [
        make_result("comes-hl", "mirflickr5000"),
        make_result("comes-hl", "photos"),
        replace(named, names=replace(named.names, method="comes-hl mine")),
    ]
    rows = {row.metric: row for row in beside_paper(results)}
    assert len(rows) == 6  # five metrics, and the Hamming loss once more
    assert {row.data for row in rows.values()} == {"mirflickr5000"}
    precision = rows["average precision"]
    assert (precision.ours, precision.ours_std) == (0.6, 0.1)
    assert (precision.paper, precision.paper_std) == (0.843, 0.013)
    assert rows["Hamming loss, min-max"].ours == pytest.approx(0.8)


def test_another_rate_a_sweep_or_a_missing_metric_does_not_stand_beside_the_paper() -> None:
    for rate, n in ((0.9, 1), (None, 1), (0.2, 0)):
        data = DataSpec(name="VOC2012", case="a", rate=rate)
        assert len(beside_paper([make_result("bce", data_spec=data)])) == n
    assert not beside_paper([make_result("bce", "YeastCC", sweep="prior_noise")])
    rows = beside_paper([make_result("bce", "YeastCC", metrics=["coverage"])])
    assert [row.metric for row in rows] == ["Hamming loss, min-max", "coverage"]
