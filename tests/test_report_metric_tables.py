"""Tables of metrics: what is best, what is significantly worse, and what has no value."""

import math
from typing import Any

import numpy as np
import pytest

from comes.report.metric_tables import (
    list_means,
    metric_table,
    sweep_to_markdown,
    to_latex,
    to_markdown,
)
from comes.results import DataSpec
from results import BETTER, make_result

SIX = [0.5, 0.6, 0.7] * 2  # repeats; fewer than five are no test


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 1},
        {"folds": 4},
        {"first_folds": 2},
        {"label_seeds": 4},
        {"test_share": 0.5},
        {"train_rows": 10},
        {"data_spec": DataSpec(name="photos", rate=0.2)},
    ],
)
def test_repeats_that_share_no_rows_are_not_paired(other: dict[str, Any]) -> None:
    results = [make_result("bce"), make_result("gdf", values=BETTER, **other)]
    entry = metric_table(results, "average_precision").entries["bce", "photos"]
    assert entry.against_best is not None
    assert math.isnan(entry.against_best.p)
    assert not entry.is_worse


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


def test_data_sets_come_in_the_order_of_the_paper() -> None:
    results = [make_result("bce", data) for data in ("zoo", "YeastMF", "mirflickr5000")]
    assert metric_table(results, "coverage").data == ["mirflickr5000", "YeastMF", "zoo"]


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
