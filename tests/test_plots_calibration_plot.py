"""The plot of calibration."""

import numpy as np
import pandas as pd
import pytest

from comes.answers import Answers
from comes.errors import ComesError
from comes.plots import plot_calibration
from comes.selection import check_reliability

RNG = np.random.default_rng(0)
ETA = RNG.random((400, 3))
RELEVANT = RNG.random((400, 3)) < ETA


def test_the_truth_is_binned_as_answers_are() -> None:
    """The intervals are others, Wilson's, and nearly the same."""
    own = plot_calibration(ETA, RELEVANT, n_bins=5)
    found = check_reliability(ETA, Answers(no=~RELEVANT, yes=RELEVANT), 1.0, 1.0, n_bins=5)
    other = plot_calibration(found)
    for line, expected in zip(own.lines[1:], other.lines[1:], strict=True):
        np.testing.assert_allclose(line.get_xydata(), expected.get_xydata(), atol=6e-4)
    ends, expected_ends = (
        np.array([segment[:, 1] for segment in axes.collections[0].get_segments()])
        for axes in (own, other)
    )
    np.testing.assert_allclose(ends, expected_ends, atol=0.01)


def test_what_is_not_known_is_left_out_and_one_bin_is_enough() -> None:
    bins = pd.DataFrame({"predicted": [0.2, 0.7], "relevant": [np.nan, 0.6]})
    axes = plot_calibration(bins.assign(low=[0.0, np.nan], high=[1.0, np.nan]))
    np.testing.assert_array_equal(axes.lines[1].get_xydata(), [[0.7, 0.6]])
    assert axes.collections[0].get_segments() == []  # a dot without an interval
    assert len(plot_calibration([[0.5]], [[1]]).lines[1].get_xdata()) == 1


def test_several_models_are_told_apart_by_name_and_marker() -> None:
    axes = plot_calibration({"_right": ETA, "too sure": np.round(ETA)}, RELEVANT)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [" _right", "too sure"]
    assert len({line.get_marker() for line in axes.lines[1:]}) == 2


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(ComesError, match="relevant=, the truth, which was not given"):
        plot_calibration(ETA)
    with pytest.raises(ComesError, match=r"shape of the relevant labels, \(400, 3\); got"):
        plot_calibration(ETA[:5], RELEVANT)
    with pytest.raises(ComesError, match=r"must lie in \[0, 1\]"):
        plot_calibration(ETA - 0.5, RELEVANT)
    with pytest.raises(ComesError, match="nothing to draw"):
        plot_calibration({})
