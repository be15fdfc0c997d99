"""Plots with a row for every label: answers, class priors, quality."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from comes.answers import Answers
from comes.errors import ComesError
from comes.label_metrics import LabelMetric, LabelQuality, list_qualities, measure_labels
from comes.priors import ClassPriorEstimate, prior_table
from comes.report.plots import figure_of, plot_answers, plot_priors, plot_quality
from comes.selection import estimate_metrics
from drawn_axes import legend_of, points_of, rows_of, spans_of

NO = [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 0]]
YES = [[0, 1, 0], [0, 1, 0], [0, 0, 0], [1, 0, 0]]
MAYBE = [[0, 0, 1], [0, 0, 0], [0, 0, 0], [0, 0, 0]]
ANSWERS = Answers(NO, YES, MAYBE, label_names=["sea", "sky", "cat"])

PRIOR = np.array([0.2, 0.4])
ESTIMATE = ClassPriorEstimate(
    PRIOR, PRIOR, np.array([0.1, 0.4]), np.array([0.3, 0.7]), PRIOR / 10, ("ok", "ok")
)

NAMES = ["sky", "sea", "cat"]
SCORES = np.array([[1, -1, -1], [1, 1, -1], [-1, 1, -1], [1, 1, -1]], dtype=float)
RELEVANT = np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0], [1, 1, 0]], dtype=bool)
QUALITY = measure_labels(SCORES, RELEVANT)


def widths(axes: Any) -> dict[str, list[float]]:
    return {bars.get_label(): [bar.get_width() for bar in bars] for bars in axes.containers}


def test_the_shares_of_a_label_add_up_with_yes_at_the_left_and_no_at_the_right() -> None:
    axes = plot_answers(ANSWERS)
    assert rows_of(axes) == ["sky", "sea", "cat"]  # the most yes first
    found = widths(axes)
    assert list(found) == ["yes", "maybe", "not asked", "no"]
    assert found["yes"] == [0.5, 0.25, 0] and found["no"] == [0.25, 0.5, 0]
    np.testing.assert_allclose(np.sum(list(found.values()), axis=0), 1)
    ends = [bar.get_x() + bar.get_width() for bar in axes.containers[-1]]
    np.testing.assert_allclose(ends, 1)
    # Hatches tell the states apart in grey.
    first: list[Any] = [bars[0] for bars in axes.containers]
    looks = {(bar.get_hatch(), bar.get_fill(), bar.get_facecolor()[3]) for bar in first}
    assert len(looks) == 4


def test_every_kind_of_answers_has_its_states() -> None:
    kinds = (
        (Answers(NO), ["still possible", "no"]),
        (Answers.from_positives(YES), ["ticked", "not ticked"]),
        (Answers(sparse.csr_array(NO), sparse.csr_array(YES)), ["yes", "maybe", "not asked", "no"]),
    )
    for answers, states in kinds:
        found = widths(plot_answers(answers))
        assert list(found) == states
        np.testing.assert_allclose(np.sum(list(found.values()), axis=0), 1)


def test_class_priors_are_matched_by_name_and_drawn_with_their_bounds() -> None:
    names = ["cat", "sky", "sea"]
    table = pd.DataFrame({"label": names, "class_prior": [0.1, 0.5, 0.3]})
    axes = plot_answers(ANSWERS, table.assign(lower=[0, 0.4, np.nan], upper=[0.2, 0.6, np.nan]))
    assert rows_of(axes) == ["sky", "sea", "cat"]
    assert points_of(axes, -1)[:, 0].tolist() == [0.5, 0.3, 0.1]
    assert spans_of(axes) == [[0.4, 0.6], [], [0.0, 0.2]]
    with pytest.raises(ComesError, match="a number for each of 3 labels; got 2"):
        plot_answers(ANSWERS, [0.1, 0.2])


def test_of_many_labels_those_with_the_most_answers_are_shown() -> None:
    codes = np.tril(np.ones((217, 217), dtype=np.int8))  # the first label has the most
    axes = plot_answers(Answers.from_codes(codes), most=5)
    assert sorted(rows_of(axes)) == ["0", "1", "2", "3", "4"]
    assert "5 of 217 labels: those with the most answers" in axes.get_xlabel()
    with pytest.raises(ComesError, match="most must be 1 or more"):
        plot_answers(ANSWERS, most=0)


def test_a_plot_grows_with_its_labels_up_to_a_limit() -> None:
    heights = [
        figure_of(plot_answers(Answers(np.eye(q)))).get_size_inches()[1] for q in (1, 10, 40, 217)
    ]
    assert heights[0] < heights[1] < heights[2] == heights[3] < 11  # a page


def test_bounds_of_class_priors_reach_from_lower_to_upper() -> None:
    for axes in (
        plot_priors(ESTIMATE, label_names=["sky", "sea"]),
        plot_priors(prior_table(ESTIMATE, ["sky", "sea"])),
    ):
        assert rows_of(axes) == ["sea", "sky"]  # the most frequent first
        assert spans_of(axes) == [[0.4, 0.7], [0.1, 0.3]]
        assert points_of(axes, 0)[:, 0].tolist() == [0.4, 0.2]
        assert legend_of(axes) == []


def test_true_priors_are_marked_where_they_are_known() -> None:
    table = prior_table(ESTIMATE, ["sky", "sea"], relevant=[[1, 0], [0, 1], [0, 1], [0, 0]])
    for axes in (plot_priors(table), plot_priors(ESTIMATE, [0.25, 0.5])):
        assert points_of(axes, 1)[:, 0].tolist() == [0.5, 0.25]
        assert legend_of(axes) == ["estimated", "true"]


def test_a_classifier_has_bounds_by_its_standard_errors() -> None:
    fitted = SimpleNamespace(
        class_prior_=PRIOR, class_prior_error_=np.array([0.1, np.nan]), label_names_=["sky", "sea"]
    )
    axes = plot_priors(fitted)
    assert rows_of(axes) == ["sea", "sky"]
    np.testing.assert_allclose(spans_of(axes)[1], [0.2 - 0.196, 0.2 + 0.196])
    assert spans_of(axes)[0] == []  # a dot alone


def many_priors(q: int) -> pd.DataFrame:
    prior = np.linspace(0.1, 0.5, q)
    labels = [f"label {k}" for k in range(q)]
    upper = prior + np.linspace(0, 0.4, q)
    return pd.DataFrame({"label": labels, "class_prior": prior, "lower": 0.0, "upper": upper})


def test_of_many_class_priors_those_with_the_widest_bounds_are_shown() -> None:
    axes = plot_priors(many_priors(217), most=3)
    assert rows_of(axes) == ["label 216", "label 215", "label 214"]
    assert "3 of 217 labels: those with the widest bounds" in axes.get_xlabel()


def test_class_priors_that_cannot_be_drawn_are_refused() -> None:
    with pytest.raises(ComesError, match=r"for each of 2 labels; got shape \(1,\)"):
        plot_priors(ESTIMATE, [0.2])
    with pytest.raises(ComesError, match="must name each of 2 labels; got 1 names"):
        plot_priors(ESTIMATE, label_names=["sky"])
    with pytest.raises(ComesError, match="has no class prior"):
        plot_priors(SimpleNamespace(class_prior_=None))


def test_the_worst_label_comes_first_with_its_interval() -> None:
    for axes in (
        plot_quality(QUALITY, label_names=NAMES),
        plot_quality(list_qualities(QUALITY, NAMES, {})),
    ):
        assert rows_of(axes) == ["sea", "sky", "cat"]
        assert spans_of(axes)[0] == pytest.approx([QUALITY["f1_low"][1], QUALITY["f1_high"][1]])
        assert points_of(axes, 0)[:, 0].tolist()[:2] == pytest.approx([0.4, 1.0])
        assert axes.get_xlabel() == "F1, with intervals"


def test_a_label_of_which_nothing_is_known_says_why() -> None:
    axes = plot_quality(QUALITY, metric="recall")
    assert rows_of(axes)[-1] == "2"
    assert [text.get_text() for text in axes.texts] == ["no row has the label"]


def test_truth_and_estimate_are_drawn_by_name_with_marks_of_their_own() -> None:
    excluded = ~RELEVANT & (np.arange(12).reshape(4, 3) % 2 == 0)
    estimates = estimate_metrics(SCORES, ~excluded, [0.5, 0.5, 0.1], n_resamples=0)
    both = {"true labels": QUALITY, "_$estimated$": estimates}
    axes = plot_quality(both, label_names=NAMES, metric="recall")
    assert len(legend_of(axes)) == 2
    assert len({line.get_marker() for line in axes.lines}) == 2
    assert (points_of(axes, 0)[:, 1] < points_of(axes, 1)[:, 1]).all()  # side by side


def test_a_dot_without_interval_and_one_label_are_drawn() -> None:
    axes = plot_quality([LabelQuality("sky", {}, {"f1": LabelMetric(0.5)})])
    assert points_of(axes, 0)[:, 0].tolist() == [0.5]
    assert spans_of(axes) == [[]]


def test_of_many_labels_the_worst_are_shown() -> None:
    quality = [
        LabelQuality(f"label {k:03}", {}, {"f1": LabelMetric(1 - k / 300, 0.0, 1.0)})
        for k in range(217)
    ]
    axes = plot_quality(quality, most=2)
    assert rows_of(axes) == ["label 216", "label 215"]
    assert "2 of 217 labels: the worst" in axes.get_xlabel()


def test_quality_that_cannot_be_drawn_is_refused() -> None:
    only = [LabelQuality("sky", {}, {"f1": LabelMetric(0.5)})]
    refused: list[tuple[Any, dict[str, Any], str]] = [
        (QUALITY, {"metric": "fi"}, "metric must be one of 'precision'.*got 'fi'"),
        (QUALITY, {"label_names": ["sky"]}, "must name each of 3 labels; got 1"),
        (only, {"metric": "auc"}, "the quality of 'sky' has no auc; it has 'f1'"),
        ([0.5], {}, "got a float"),
        ([], {}, "nothing to draw"),
    ]
    for quality, settings, message in refused:
        with pytest.raises(ComesError, match=message):
            plot_quality(quality, **settings)
