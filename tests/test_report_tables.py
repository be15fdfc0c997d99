"""Tables of reports: metrics, costs, labels, and numbers beside those of the paper."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from comes.experiment.config import DataSpec
from comes.experiment.results import Result, read_results, write_result
from comes.metrics import METRICS
from comes.report.experiment_page import (
    cost_table,
    label_tables,
    list_means,
    make_parts,
    metric_table,
    order_results,
    plot_curves,
    summarise,
    to_latex,
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
        assert not entry.marks, other


def test_three_repeats_are_too_few_for_a_test() -> None:
    table = metric_table([make_result(), make_result("gdf", values=BETTER)], "average_precision")
    entry = table.entries["bce", "photos"]
    assert entry.against_best is not None and math.isnan(entry.against_best.p)
    assert not entry.marks


def test_label_seeds_have_no_corrected_test() -> None:
    seeds: dict[str, Any] = {"folds": None, "label_seeds": 3}
    results = [make_result(values=SIX, **seeds), make_result("gdf", values=BETTER * 2, **seeds)]
    entry = metric_table(results, "average_precision").entries["bce", "photos"]
    assert entry.marks == "•"


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
    assert bce.marks[0] == "•"
    assert bce.against_best is not None
    assert bce.against_best.difference == pytest.approx(np.mean(BETTER) - 0.6)
    assert bce.against_best.p_corrected > bce.against_best.p
    assert best.text == f"{np.mean(BETTER):.3f} ± {np.std(best_values, ddof=1):.3f}"
    loss = metric_table(results, "ranking_loss")
    assert loss.entries["bce", "photos"].is_best


def test_page_and_latex_of_a_table() -> None:
    results = [
        make_result("comes-hl", "a_b", BETTER * 2),
        make_result("bce", "a_b", SIX),
        make_result("my|own & 100%", "a_b", [0.7]),
        make_result("bce", "photos"),
    ]
    table = metric_table(results, "average_precision")
    shown = table.shown()
    assert (shown.title, shown.head) == ("average precision ↑", ["method", "a_b", "photos"])
    assert shown.rows == [
        ["my|own & 100%", "0.700 ± 0.000", "–"],
        ["bce", "0.600 ± 0.089 •†‡", "0.600 ± 0.100"],
        ["comes-hl", "0.703 ± 0.090", "–"],
    ]
    assert shown.bold == {(1, 2), (2, 1)}
    tex = to_latex(table)
    assert "my|own \\& 100\\% & 0.700 $\\pm$ 0.000 & --" in tex
    marked = "0.600 $\\pm$ 0.089$^{\\bullet \\dagger \\ddagger}$"
    assert f"BCE & {marked} & \\textbf{{0.600 $\\pm$ 0.100}} \\\\" in tex
    assert tex.startswith("\\begin{table}") and tex.endswith("\\end{table}")
    assert "\\caption{Average Precision ($\\uparrow$) in the experiment small" in tex
    assert "\\label{tab:small-average-precision}" in tex
    assert "{a\\_b}" in tex
    assert tex.count("\\midrule") == 3  # under the title, over the baselines, over COMES
    assert tex.index("BCE") < tex.index("COMES-HL")
    ranking = metric_table([make_result("ccmn, ranking", "a_b", SIX)], "average_precision")
    assert "CCMN, ranking & " in to_latex(ranking)


def test_means_that_look_the_same_are_both_best() -> None:
    """But for their test, which looks at every digit."""
    near = [value - 1e-4 for value in SIX[:5]] + [SIX[5] - 2e-4]
    table = metric_table([make_result(values=SIX), make_result("gdf", values=near)], "coverage")
    assert all(entry.is_best for entry in table.entries.values())
    best, other = (table.entries[method, "photos"] for method in ("gdf", "bce"))
    assert (best.marks, other.marks) == ("", "•†‡")
    assert table.shown().bold == {(0, 1), (1, 1)}
    assert to_latex(table).count("\\textbf{0.600 $\\pm$ 0.089}") == 2


def test_what_has_no_value_is_left_out() -> None:
    results = [make_result("bce", values=[math.nan]), make_result("gdf", values=[0.5])]
    table = metric_table(results, "coverage")
    assert ("bce", "photos") not in table.entries
    assert table.entries["gdf", "photos"].is_best
    assert not metric_table(results[:1], "coverage").entries
    assert metric_table(results[:1], "coverage").shown().rows == [["bce", "–"]]


def test_a_sweep_shows_means_and_gaps() -> None:
    results = [make_result(sweep="flood", flood=at, values=[at]) for at in (0.5, 0.0)]
    results.append(make_result("gdf", sweep="flood", flood=0.5, metrics=["coverage"]))
    (part,) = make_parts(order_results(results))
    assert part.values.head[2:4] == ["flood", "average precision ↑"]
    assert part.values.rows == [
        ["photos", "bce", "0", "0.000", "0.000", "0.000"],
        ["photos", "bce", "0.5", "0.500", "0.500", "0.500"],
        ["photos", "gdf", "0.5", "–", "–", "–"],
    ]


def test_a_result_without_a_metric_is_an_empty_cell_and_in_no_test() -> None:
    results = [make_result("bce"), make_result("gdf", values=BETTER)]
    lacking = make_result("ctl", values=BETTER, metrics=["coverage"])
    table = metric_table([*results, lacking], "average_precision")
    assert table.row("ctl") == [None]
    assert repr(table.entries) == repr(metric_table(results, "average_precision").entries)
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
        line = to_latex(metric_table([make_result()], metric)).splitlines()[6]
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
    (table,) = label_tables([BCE, OURS, EARLY])
    assert table.head == ["label", "bce", "comes-hl"]
    assert table.rows == [
        ["sea", "0.200", "0.100"],
        ["cat", "–", "0.200"],
        ["sky", "0.800", "0.900"],
    ]
    assert list(label_tables([EARLY])) == []


def test_costs_are_those_of_the_results_and_early_ones_have_empty_cells() -> None:
    first, early = cost_table([BCE, EARLY]).rows
    assert first == ["photos", "bce", "2", "0.1", "1.5", "512", "–", "CPU"]
    assert early[5:7] == ["–", "–"]
    silent = replace(EARLY, repeats=tuple(replace(r, seconds=None) for r in EARLY.repeats))
    assert cost_table([silent]).rows[0][3] == "–"


def test_the_report_has_costs_labels_and_held_out_curves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_drawing(monkeypatch)
    page = write_report([BCE, OURS, EARLY], tmp_path / "report")
    html = page.read_text(encoding="utf-8")
    assert "Each label of photos" in html and "seconds per training" in html and "512" in html
    labels = pd.read_csv(tmp_path / "report" / "labels.csv")
    assert len(labels) == 2 * 3 * 2 * 3
    own = labels.query("method == 'bce' and label == 'sky' and metric == 'average_precision'")
    assert own["value"].tolist() == [0.9, 0.7, 0.8]
    (panel,) = plot_curves([BCE, OURS, EARLY], Look(["bce", "comes-hl", "gdf"])).axes
    names = panel.get_legend_handles_labels()[1]
    assert [name for name in names if "held-out" in name] == [
        "bce, held-out rows",
        "comes-hl, held-out rows",
    ]
    write_report([EARLY], tmp_path / "report")  # replaces the other
    assert not (tmp_path / "report" / "labels.csv").exists()


def test_the_papers_settings_stand_beside_those_of_its_data_alone() -> None:
    (own,) = make_parts([make_result()])
    assert own.settings.head == ["", "here"]
    assert ["learning rate", "0.005"] in own.settings.rows
    (papers,) = make_parts([make_result(data="YeastBP")])
    assert papers.settings.head == ["", "here", "paper"]
    assert ["learning rate", "0.005", "0.005"] in papers.settings.rows
    assert ["dropout", "0.0", "not said"] in papers.settings.rows


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
    rows = {row[2]: row for row in beside_paper(results)}
    assert len(rows) == 6  # five metrics, and the Hamming loss once more
    assert {row[0] for row in rows.values()} == {"mirflickr5000"}
    assert rows["average precision"][3:] == ["0.600 ± 0.100", "0.843 ± 0.013", "-0.243"]
    assert rows["Hamming loss, min-max"][3].startswith("0.800")


def test_another_rate_a_sweep_or_a_missing_metric_does_not_stand_beside_the_paper() -> None:
    for rate, n in ((0.9, 1), (None, 1), (0.2, 0)):
        data = DataSpec(name="VOC2012", case="a", rate=rate)
        assert len(beside_paper([make_result("bce", data_spec=data)])) == n
    assert not beside_paper([make_result("bce", "YeastCC", sweep="prior_noise")])
    rows = beside_paper([make_result("bce", "YeastCC", metrics=["coverage"])])
    assert [row[2] for row in rows] == ["Hamming loss, min-max", "coverage"]


def test_a_summary_has_ranks_wins_costs_and_what_they_say() -> None:
    values = {"bce": [0.5] * 6, "gdf": SIX, "comes-hl": BETTER * 2}
    data = [f"set {k}" for k in range(8)]
    results = [make_result(m, d, v) for m, v in values.items() for d in data]
    results = [replace(r, seconds=3.0) if r.names.method == "gdf" else r for r in results]
    table, said = summarise(results)
    assert table.rows == [
        ["comes-hl", "1.00", "8 of 8", "3.00", "0 of 8", "3.00", "0 of 8", "12", "1.0"],
        ["gdf", "2.00", "0 of 8", "2.00", "0 of 8", "2.00", "0 of 8", "24", "2.0"],
        ["bce", "3.00", "0 of 8", "1.00", "8 of 8", "1.00", "8 of 8", "12", "1.0"],
    ]
    assert table.bold == {(0, 1), (2, 3), (2, 5)}
    assert [row[:2] for row in table.foot] == [
        ["critical difference", "1.17"],
        ["p (Friedman)", "0.000335"],
    ]
    assert said == [
        f"By {metric}, {best} has the best mean rank: 1.00 over 8 data sets. It differs "
        f"significantly from {worst}, but not from gdf (Nemenyi's test, critical difference 1.17)."
        for metric, best, worst in (
            ("average precision", "comes-hl", "bce"),
            ("ranking loss", "bce", "comes-hl"),
            ("Hamming loss", "bce", "comes-hl"),
        )
    ]


def test_a_summary_of_one_data_set_says_what_cannot_be_said() -> None:
    two = [make_result("bce", values=SIX), make_result("comes-hl", values=BETTER * 2)]
    table, said = summarise(two)
    assert table.head[1:3] == ["average precision ↑", "ranking loss ↓"]
    assert table.rows[0][:2] == ["comes-hl", "0.703 ± 0.090"] and not table.foot
    best = "By average precision, the best on photos is comes-hl."
    differs = "It differs significantly from bce (corrected test with Holm's method)."
    assert said[0] == f"{best} {differs}"
    _, said = summarise([make_result("bce"), make_result("comes-hl", values=BETTER)])
    assert said[0] == best
    assert said[-1].startswith("3 repeats are too few for a test")
    assert summarise([make_result(values=SIX)])[1] == [
        "There is one method, and nothing to compare it with."
    ]
    sweep = [make_result(m, sweep="flood", flood=f) for m in ("bce", "gdf") for f in (0.1, 0.2)]
    table, said = summarise(sweep)
    assert table.rows[0][2] == "2 of 2" and not table.foot
    assert "Cases share their rows" in " ".join(said) and "Nemenyi" not in " ".join(said)
