"""The one style of all plots: colours, markers, ink, and axes to draw on."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from comes.errors import ComesError
from comes.methods import METHODS, table_rank

# Of middle lightness, three times as light or as dark as the ground, and apart from each other
# also without red or green; tests/test_plots_plot_style.py measures both.
COLOURS = (
    "#7d9998",
    "#239cda",
    "#c80d4b",
    "#4b6795",
    "#fd5758",
    "#d55e00",
    "#3f50ee",
    "#3273dc",
)
MARKERS = "sv^DPoXd"
# Of a few things that are no methods: first those that are farthest apart, also in grey.
BLUE, ORANGE, GREY = "#3273dc", "#d55e00", "#7d9998"
FEW = ((BLUE, "o"), (ORANGE, "D"), ("#4b6795", "s"), ("#c80d4b", "^"))
INK = "#010203"  # stands for the colour of the text around a plot
STYLE: Any = {
    "svg.fonttype": "none",  # text stays text
    "pdf.fonttype": 42,
    "figure.facecolor": "#ffffff",
    "axes.facecolor": "#ffffff",
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "hatch.linewidth": 0.7,
}
LONGEST_NAME = 32  # of a label, in characters
WIDTH = 6.0  # of a plot, in inches
ROW, MARGINS = 0.22, 1.0  # height of a row of a plot by label, and of what surrounds them
SMALL = 7.5  # size of letters in notes


class Look:
    """One colour and marker for every method, the same in all plots of a report.

    Parameters
    ----------
    methods : sequence of str
        Names of methods; those of the paper have the same look everywhere.

    Examples
    --------
    >>> look = Look(["bce", "mine"])
    >>> look("mine")
    {'color': '#3273dc', 'marker': 'd'}
    """

    def __init__(self, methods: Sequence[str]) -> None:
        paper = sorted((m for m, f in METHODS.items() if f.paper_rank is not None), key=table_rank)
        others = sorted(set(methods) - set(paper), key=table_rank)
        self._place = {method: place for place, method in enumerate([*paper, *others])}

    def __call__(self, method: str) -> dict[str, Any]:
        """Return arguments of matplotlib's ``plot``."""
        place = self._place[method]
        marker = MARKERS[(place + place // len(COLOURS)) % len(MARKERS)]
        return {"color": COLOURS[place % len(COLOURS)], "marker": marker}


def escape_name(name: str) -> str:
    r"""Return a name that matplotlib shows as it is: no mathematics, no hidden legend entry.

    Parameters
    ----------
    name : str

    Returns
    -------
    shown : str

    Examples
    --------
    >>> escape_name("$5"), escape_name("_hidden")
    ('\\$5', ' _hidden')
    """
    name = name.replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name


def shorten_name(name: str) -> str:
    """Return a name of a label as a plot shows it: of a long one, its beginning and its end."""
    flat = " ".join(name.split())
    if len(flat) > LONGEST_NAME:
        end = LONGEST_NAME // 3
        flat = f"{flat[: LONGEST_NAME - end - 1]}…{flat[-end:]}"
    return escape_name(flat)


@contextmanager
def drawing(axes: Axes | None, height: float, width: float = WIDTH) -> Iterator[Axes]:
    """Give axes to draw on: the caller's as they are, or new ones in the style of the house."""
    if axes is not None:
        yield axes
        return
    with rc_context(STYLE):
        yield Figure(figsize=(width, height), layout="constrained").add_subplot()


def find_ink(axes: Axes) -> Any:
    """Return the colour of the text of axes: that of all lines that stand for nothing else."""
    return axes.xaxis.label.get_color()


def check_most(most: int) -> int:
    """Return how many labels get a row, or raise where that is none."""
    if most < 1:
        raise ComesError(f"most must be 1 or more, the labels that are drawn; got {most!r}.")
    return most


def height_of(n_rows: int) -> float:
    """Return the height of a plot with so many labels, in inches."""
    return MARGINS + ROW * n_rows


def guide_eyes(axes: Axes) -> None:
    """Draw faint lines down the plot, to read numbers by."""
    axes.grid(axis="x", color=find_ink(axes), alpha=0.15, lw=0.6)
    axes.set_axisbelow(True)


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Write the names of labels at the left, the first at the top."""
    axes.set_yticks(range(len(names)), [shorten_name(name) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)


def say_across(axes: Axes, text: str, n_shown: int, n_labels: int, which: str) -> None:
    """Write what goes across and, where labels are left out, which are shown."""
    left_out = f"\n{n_shown} of {n_labels} labels: {which}" if n_shown < n_labels else ""
    axes.set_xlabel(text + left_out)


def put_legend_above(axes: Axes, columns: int = 5) -> None:
    """Write a legend above the plot, where it covers nothing: bars first, then marks."""
    handles, labels = axes.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda k: isinstance(handles[k], Line2D))
    axes.legend(
        [handles[k] for k in order],
        [labels[k] for k in order],
        loc="lower right",
        bbox_to_anchor=(1, 1),
        ncols=columns,
        borderaxespad=0.2,
        handletextpad=0.5,
        columnspacing=1.2,
    )
