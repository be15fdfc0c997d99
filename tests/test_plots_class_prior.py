"""The plot of class priors."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from comes.errors import ComesError
from comes.report import check_plot_name, plot_priors

TABLE = pd.DataFrame(
    {"label": ["sky", "sea"], "class_prior": [0.2, 0.4], "lower": [0.1, 0.4], "upper": [0.3, 0.7]}
)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The axes of the plots that were drawn."""
    seen: list[Any] = []

    def keep(figure: Figure, path: Path, **options: Any) -> None:
        seen.append(figure.axes[0])
        path.touch()

    monkeypatch.setattr(Figure, "savefig", keep)
    return seen


def test_bounds_reach_from_lower_to_upper(drawn: list[Any], tmp_path: Path) -> None:
    plot_priors(TABLE, tmp_path / "priors.pdf")
    assert (tmp_path / "priors.pdf").exists()
    (axes,) = drawn
    ends = [segment[:, 1].tolist() for segment in axes.collections[0].get_segments()]
    np.testing.assert_allclose(ends, [[0.1, 0.3], [0.4, 0.7]])
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["sky", "sea"]


def test_true_priors_go_across_where_they_are_known(drawn: list[Any], tmp_path: Path) -> None:
    plot_priors(TABLE.assign(true_prior=[0.25, 0.5]), tmp_path / "priors.png")
    (axes,) = drawn
    assert axes.lines[0].get_xdata().tolist() == [0.25, 0.5]
    assert axes.get_xlabel() == "true class prior"


def test_a_plot_has_one_of_three_endings() -> None:
    for name in ("a.png", "a.PDF", "a.svg"):
        check_plot_name(Path(name))
    with pytest.raises(ComesError, match=r"plot should end in .png, .pdf or .svg; got no ending"):
        check_plot_name(Path("plot"))
