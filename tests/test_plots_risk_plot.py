"""The plot of risks during training."""

from types import SimpleNamespace

import numpy as np
import pytest

from comes.errors import ComesError
from comes.plots import plot_risks
from comes.training import History
from drawn_axes import legend_of, points_of

STOPPED = History(risk=[0.8, 0.6, 0.4], validation=[0.9, 0.7, 0.8], best_epoch=2)
PLAIN = History(risk=[2.0, 1.0])


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
