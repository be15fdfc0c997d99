"""The critical difference diagram."""

import numpy as np
import pandas as pd
import pytest

from comes.errors import ComesError
from comes.plots import plot_critical_difference
from comes.significance import rank_methods
from drawn_axes import points_of, rows_of

SCORES = pd.DataFrame({"bce": [0.1, 0.2, 0.3], "_$mine$": [0.4, 0.5, 0.6], "ccmn": [0.2, 0.3, 0.2]})


def test_the_best_method_is_at_the_top_beside_its_mean_rank() -> None:
    axes = plot_critical_difference(SCORES)
    assert rows_of(axes) == [r" _\$mine\$  1.00", "ccmn  2.33", "bce  2.67"]
    down = plot_critical_difference(SCORES, higher_is_better=False)
    assert rows_of(down)[0].startswith("bce")


def test_bars_join_what_cannot_be_told_apart() -> None:
    ranks = rank_methods(list(SCORES.columns), SCORES.to_numpy().T, higher_is_better=True)
    assert ranks is not None
    axes = plot_critical_difference(ranks)
    bars = [line for line in axes.lines if line.get_linewidth() == 3]
    assert len(bars) == len(ranks.alike()) == 1
    (gap,) = (k for k, line in enumerate(axes.lines) if line.get_marker() == "|")
    assert np.ptp(points_of(axes, gap)[:, 0]) == pytest.approx(ranks.critical_difference)


def test_data_sets_that_miss_a_method_are_left_out_or_refused() -> None:
    holes = SCORES.assign(ccmn=[0.2, 0.3, np.nan])
    assert "2.00" in rows_of(plot_critical_difference(holes))[1]
    with pytest.raises(ComesError, match=r"got 3 methods, and 1 of 3 data sets with all of them"):
        plot_critical_difference(SCORES.assign(ccmn=[0.2, np.nan, np.nan]))
    with pytest.raises(ComesError, match="got 1 methods"):
        plot_critical_difference(SCORES[["bce"]])
