"""What can be read from plots that were drawn."""

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes


def rows_of(axes: Axes) -> list[str]:
    """Return the names at the left, from the top down."""
    return [tick.get_text() for tick in axes.get_yticklabels()]


def legend_of(axes: Axes) -> list[str]:
    """Return the names in the legend, none where there is none."""
    legend = axes.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


def points_of(axes: Axes, line: int) -> npt.NDArray[np.float64]:
    """Return the points of a line, (n, 2)."""
    return np.asarray(axes.lines[line].get_xydata(), dtype=np.float64)


def spans_of(axes: Axes, direction: int = 0) -> list[list[float]]:
    """Return the ends of the intervals drawn first, none of those that are NaN; 1 for upright."""
    drawn: Any = axes.collections[0]
    return [segment.reshape(-1, 2)[:, direction].tolist() for segment in drawn.get_segments()]
