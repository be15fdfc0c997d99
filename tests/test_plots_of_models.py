"""Plots of models and methods: calibration, risks of training, critical differences."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest

from comes.answers import Answers
from comes.errors import ComesError
from comes.report.plots import plot_calibration, plot_ranks, plot_risks
from comes.selection import check_reliability
from comes.significance import rank_methods
from comes.training import History
from drawn_axes import legend_of, points_of, rows_of, spans_of

RNG = np.random.default_rng(0)
ETA = RNG.random((400, 3))
RELEVANT = RNG.random((400, 3)) < ETA

STOPPED = History(risk=[0.8, 0.6, 0.4], validation=[0.9, 0.7, 0.8], best_epoch=2)
PLAIN = History(risk=[2.0, 1.0])

SCORES = pd.DataFrame({"bce": [0.1, 0.2, 0.3], "_$mine$": [0.4, 0.5, 0.6], "ccmn": [0.2, 0.3, 0.2]})


def check(probabilities: npt.NDArray[np.float64]) -> pd.DataFrame:
    return check_reliability(probabilities, Answers(no=~RELEVANT, yes=RELEVANT), 1.0, 1.0)


def test_what_is_not_known_is_left_out_and_one_bin_is_enough() -> None:
    bins = pd.DataFrame({"predicted": [0.2, 0.7], "relevant": [np.nan, 0.6]})
    axes = plot_calibration(bins.assign(low=[0.0, np.nan], high=[1.0, np.nan]))
    np.testing.assert_array_equal(points_of(axes, 1), [[0.7, 0.6]])
    assert spans_of(axes, 1) == [[]]  # a dot without an interval


def test_several_models_are_told_apart_by_name_marker_and_line() -> None:
    axes = plot_calibration({"_right": check(ETA), "too sure": check(np.round(ETA))})
    assert legend_of(axes) == [" _right", "too sure"]
    assert len({line.get_marker() for line in axes.lines[1:]}) == 2
    assert len({line.get_linestyle() for line in axes.lines}) == 3  # also from the diagonal


def test_what_cannot_be_compared_is_refused() -> None:
    wrong: list[Any] = [ETA, {}, pd.DataFrame({"predicted": [0.5]})]
    for found in wrong:
        with pytest.raises(ComesError, match=r"Pass what comes.selection.check_reliability"):
            plot_calibration(found)


def test_held_out_rows_are_dashed_and_the_kept_epoch_has_a_ring() -> None:
    for trained in (STOPPED, SimpleNamespace(history_=STOPPED)):
        axes = plot_risks(trained)
        assert points_of(axes, 0).tolist() == [[1, 0.8], [2, 0.6], [3, 0.4]]
        assert points_of(axes, 1).tolist() == [[1, 0.9], [2, 0.7], [3, 0.8]]
        assert points_of(axes, 2).tolist() == [[2, 0.7]]
        assert [line.get_linestyle() for line in axes.lines] == ["-", "--", "None"]


def test_several_trainings_are_told_apart_by_name_and_marker() -> None:
    axes = plot_risks({"comes-hl": STOPPED, "_$mine$": PLAIN})
    names = legend_of(axes)
    assert names == ["comes-hl", "comes-hl, held-out rows", "kept", r" _\$mine\$"]
    assert len({(line.get_marker(), line.get_linestyle()) for line in axes.lines}) == 4


def test_relative_risks_start_at_one() -> None:
    axes = plot_risks({"a": STOPPED, "b": PLAIN}, relative=True)
    starts = [
        np.asarray(line.get_ydata())[0] for line in axes.lines if line.get_linestyle() != "None"
    ]
    np.testing.assert_allclose(starts, 1)
    assert axes.get_ylabel() == "risk / risk of epoch 1"


def test_a_single_curve_has_no_legend_and_none_at_all_is_refused() -> None:
    assert legend_of(plot_risks(PLAIN)) == []
    with pytest.raises(ComesError, match="no epoch was trained"):
        plot_risks(History())


def test_the_best_method_is_at_the_top_beside_its_mean_rank() -> None:
    axes = plot_ranks(SCORES)
    assert rows_of(axes) == [r" _\$mine\$  1.00", "ccmn  2.33", "bce  2.67"]
    down = plot_ranks(SCORES, higher_is_better=False)
    assert rows_of(down)[0].startswith("bce")


def test_bars_join_what_cannot_be_told_apart() -> None:
    ranks = rank_methods(list(SCORES.columns), SCORES.to_numpy().T, higher_is_better=True)
    assert ranks is not None
    axes = plot_ranks(ranks)
    bars = [line for line in axes.lines if line.get_linewidth() == 3]
    assert len(bars) == len(ranks.alike()) == 1
    (gap,) = (k for k, line in enumerate(axes.lines) if line.get_marker() == "|")
    assert np.ptp(points_of(axes, gap)[:, 0]) == pytest.approx(ranks.critical_difference)


def test_data_sets_that_miss_a_method_are_left_out_or_refused() -> None:
    holes = SCORES.assign(ccmn=[0.2, 0.3, np.nan])
    assert "2.00" in rows_of(plot_ranks(holes))[1]
    with pytest.raises(ComesError, match=r"got 3 methods, and 1 of 3 data sets with all of them"):
        plot_ranks(SCORES.assign(ccmn=[0.2, np.nan, np.nan]))
    with pytest.raises(ComesError, match="got 1 methods"):
        plot_ranks(SCORES[["bce"]])
