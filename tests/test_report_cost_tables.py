"""What results cost, what they say of labels, and that early results leave cells empty."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from comes.experiment.peak_memory import forget_peaks, read_peak
from comes.plots import Look
from comes.report import write_report
from comes.report.cost_tables import list_costs, make_label_tables
from comes.report.document import draw_figures
from comes.report.parts import make_parts
from comes.results import Result, read_results, write_result
from results import make_result

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


def test_the_peak_of_memory_starts_anew() -> None:
    if read_peak() is None:
        pytest.skip("the system does not say how much memory a process needed")
    block = np.ones(60 * 2**20 // 8)
    high = read_peak()
    assert block.sum() > 0 and high is not None
    del block
    forget_peaks()
    low = read_peak()
    assert low is not None and low < high - 30
