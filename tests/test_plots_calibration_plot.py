"""The plot of calibration."""

import numpy as np
import pandas as pd
import pytest

from comes.answers import Answers
from comes.errors import ComesError
from comes.plots import plot_calibration
from comes.selection import check_reliability
from drawn_axes import legend_of, points_of, spans_of

RNG = np.random.default_rng(0)
ETA = RNG.random((400, 3))
RELEVANT = RNG.random((400, 3)) < ETA


def test_the_truth_is_binned_as_answers_are() -> None:
    """The intervals are others, Wilson's, and nearly the same."""
    own = plot_calibration(ETA, RELEVANT, n_bins=5)
    found = check_reliability(ETA, Answers(no=~RELEVANT, yes=RELEVANT), 1.0, 1.0, n_bins=5)
    other = plot_calibration(found)
    np.testing.assert_allclose(points_of(own, 1), points_of(other, 1), atol=6e-4)
    np.testing.assert_allclose(spans_of(own, 1), spans_of(other, 1), atol=0.01)


def test_what_is_not_known_is_left_out_and_one_bin_is_enough() -> None:
    bins = pd.DataFrame({"predicted": [0.2, 0.7], "relevant": [np.nan, 0.6]})
    axes = plot_calibration(bins.assign(low=[0.0, np.nan], high=[1.0, np.nan]))
    np.testing.assert_array_equal(points_of(axes, 1), [[0.7, 0.6]])
    assert spans_of(axes, 1) == []  # a dot without an interval
    assert len(points_of(plot_calibration([[0.5]], [[1]]), 1)) == 1


def test_several_models_are_told_apart_by_name_and_marker() -> None:
    axes = plot_calibration({"_right": ETA, "too sure": np.round(ETA)}, RELEVANT)
    assert legend_of(axes) == [" _right", "too sure"]
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
