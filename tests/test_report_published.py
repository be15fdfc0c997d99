"""The paper's numbers, and ours beside them."""

from dataclasses import replace

import pytest

from comes.metrics import METRICS
from comes.report.published import beside_paper, published
from comes.results import DataSpec
from results import make_result


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


def test_another_rate_does_not_stand_beside_the_paper() -> None:
    for rate, n in ((0.9, 1), (None, 1), (0.2, 0)):
        data = DataSpec(name="VOC2012", case="a", rate=rate)
        assert len(beside_paper([make_result("bce", data_spec=data)])) == n


def test_a_sweep_or_a_missing_metric_does_not_stand_beside_the_paper() -> None:
    assert not beside_paper([make_result("bce", "YeastCC", sweep="prior_noise")])
    rows = beside_paper([make_result("bce", "YeastCC", metrics=["coverage"])])
    assert [row.metric for row in rows] == ["Hamming loss, min-max", "coverage"]
