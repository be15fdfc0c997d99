"""What can be read from plots that were drawn."""

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection


def rows_of(axes: Axes) -> list[str]:
    """Return the names at the left, from the top down."""
    return [tick.get_text() for tick in axes.get_yticklabels()]


def spans_of(axes: Axes) -> list[list[float]]:
    """Return the ends of the horizontal intervals drawn first, none of those that are NaN."""
    drawn = axes.collections[0]
    assert isinstance(drawn, LineCollection)
    return [segment.reshape(-1, 2)[:, 0].tolist() for segment in drawn.get_segments()]
