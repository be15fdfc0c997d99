"""The plot of quality by label."""

from typing import Any

import numpy as np
import pytest

from comes.errors import ComesError
from comes.label_metrics import LabelMetric, LabelQuality, list_qualities, measure_labels
from comes.plots import plot_label_quality
from comes.selection import estimate_metrics
from drawn_axes import legend_of, points_of, rows_of, spans_of

NAMES = ["sky", "sea", "cat"]
SCORES = np.array([[1, -1, -1], [1, 1, -1], [-1, 1, -1], [1, 1, -1]], dtype=float)
RELEVANT = np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0], [1, 1, 0]], dtype=bool)
TABLE = measure_labels(SCORES, RELEVANT)


@pytest.mark.parametrize(
    "quality", [TABLE, list_qualities(TABLE, NAMES, {})], ids=["table", "list"]
)
def test_the_worst_label_comes_first_with_its_interval(quality: Any) -> None:
    names = NAMES if quality is TABLE else None
    axes = plot_label_quality(quality, label_names=names)
    assert rows_of(axes) == ["sea", "sky", "cat"]
    low, high = spans_of(axes)[0]
    assert low == pytest.approx(TABLE["f1_low"][1]) and high == pytest.approx(TABLE["f1_high"][1])
    assert points_of(axes, 0)[:, 0].tolist()[:2] == pytest.approx([0.4, 1.0])
    assert axes.get_xlabel() == "F1, with intervals"


def test_a_label_of_which_nothing_is_known_says_why() -> None:
    axes = plot_label_quality(TABLE, metric="recall")
    assert rows_of(axes)[-1] == "2"
    assert [text.get_text() for text in axes.texts] == ["no row has the label"]


def test_truth_and_estimate_are_drawn_by_name_with_marks_of_their_own() -> None:
    excluded = ~RELEVANT & (np.arange(12).reshape(4, 3) % 2 == 0)
    estimates = estimate_metrics(SCORES, ~excluded, [0.5, 0.5, 0.1], n_resamples=0)
    both = {"true labels": TABLE, "_$estimated$": estimates}
    axes = plot_label_quality(both, label_names=NAMES, metric="recall")
    assert len(legend_of(axes)) == 2
    markers = [line.get_marker() for line in axes.lines]
    assert len(set(markers)) == 2
    assert (points_of(axes, 0)[:, 1] < points_of(axes, 1)[:, 1]).all()  # side by side


def test_a_dot_without_interval_and_one_label_are_drawn() -> None:
    quality = [LabelQuality("sky", {}, {"f1": LabelMetric(0.5)})]
    axes = plot_label_quality(quality)
    assert points_of(axes, 0)[:, 0].tolist() == [0.5]
    assert spans_of(axes) == [[]]


def test_of_many_labels_the_worst_are_shown() -> None:
    quality = [
        LabelQuality(f"label {k:03}", {}, {"f1": LabelMetric(1 - k / 300, 0.0, 1.0)})
        for k in range(217)
    ]
    axes = plot_label_quality(quality, most=2)
    assert rows_of(axes) == ["label 216", "label 215"]
    assert "2 of 217 labels: the worst" in axes.get_xlabel()


def test_what_cannot_be_drawn_is_refused() -> None:
    only = [LabelQuality("sky", {}, {"f1": LabelMetric(0.5)})]
    for quality, settings, message in (
        (TABLE, {"metric": "fi"}, "metric must be one of 'precision'.*got 'fi'"),
        (TABLE, {"label_names": ["sky"]}, "must name each of 3 labels; got 1"),
        (only, {"metric": "auc"}, "the quality of 'sky' has no auc; it has 'f1'"),
        ([0.5], {}, "got a float"),
        ([], {}, "nothing to draw"),
    ):
        with pytest.raises(ComesError, match=message):
            plot_label_quality(quality, **settings)
