"""Plots written to files, or as a part of a page."""

import io
import re
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from comes.errors import ComesError
from comes.files import replacing_file
from comes.plots.plot_style import INK, STYLE

# What is not written, so that the same plot gives the same bytes.
LEFT_OUT: dict[str, tuple[str, ...]] = {
    ".svg": ("Date", "Creator", "Format", "Type"),
    ".png": ("Software",),
    ".pdf": ("CreationDate", "Creator", "Producer"),
}
DOTS_PER_INCH = 200


def check_plot_name(path: str | Path) -> None:
    """Raise unless a plot can be written under this name.

    Parameters
    ----------
    path : path

    Examples
    --------
    >>> check_plot_name("priors.txt")
    Traceback (most recent call last):
    comes.errors.ComesError: priors.txt should end in .png, .pdf or .svg; got .txt.
    """
    path = Path(path)
    if path.suffix.lower() not in LEFT_OUT:
        raise ComesError(
            f"{path.name} should end in .png, .pdf or .svg; got {path.suffix or 'no ending'}."
        )


def figure_of(axes: Axes) -> Figure:
    """Return the figure that axes belong to.

    Parameters
    ----------
    axes : Axes

    Returns
    -------
    figure : Figure

    Examples
    --------
    >>> figure = Figure()
    >>> figure_of(figure.subfigures().add_subplot()) is figure
    True
    """
    figure: Any = axes.figure
    return figure if isinstance(figure, Figure) else figure.figure  # the whole of a part


def save_plot(axes: Axes, path: str | Path, *, transparent: bool = False) -> Path:
    """Write the figure that axes belong to, whole or not at all.

    The ground is white, for print, and text stays text that can be searched and edited. The same
    plot gives the same bytes.

    Parameters
    ----------
    axes : Axes
        As the functions of this room return them.
    path : path
        A .svg, .pdf or .png file.
    transparent : bool
        Leave out the ground, for slides and pages that have their own.

    Returns
    -------
    path : Path

    Examples
    --------
    >>> import tempfile
    >>> from comes import Answers
    >>> from comes.plots import plot_answers
    >>> axes = plot_answers(Answers(no=[[1, 0], [0, 1]], yes=[[0, 1], [0, 0]]))
    >>> save_plot(axes, Path(tempfile.mkdtemp()) / "answers.svg").name
    'answers.svg'
    """
    check_plot_name(path)
    path = Path(path)
    kind = path.suffix.lower()
    with rc_context(STYLE | {"svg.hashsalt": "comes"}), replacing_file(path) as temporary:
        figure_of(axes).savefig(
            temporary,
            format=kind[1:],
            dpi=DOTS_PER_INCH,
            transparent=transparent,
            metadata=dict.fromkeys(LEFT_OUT[kind]),
        )
    return path


def as_svg(plot: Axes | Figure, name: str) -> str:
    """Return a plot as a part of a page: its ink is the colour of the text around it.

    Parameters
    ----------
    plot : Axes or Figure
        In the style of this room.
    name : str
        Unique in the page: the ids in the plot begin with it.

    Returns
    -------
    svg : str

    Examples
    --------
    >>> from comes import Answers
    >>> from comes.plots import plot_answers
    >>> svg = as_svg(plot_answers(Answers(no=[[1]], label_names=["sky"])), "answers")
    >>> svg.startswith("<svg"), "sky" in svg, "currentColor" in svg
    (True, True, True)
    """
    figure = plot if isinstance(plot, Figure) else figure_of(plot)
    buffer = io.StringIO()
    with rc_context(STYLE | {"svg.hashsalt": name}):  # so that ids are the same in every run
        nothing = dict.fromkeys(LEFT_OUT[".svg"])
        figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    svg = re.sub(r' id="([^"]+)"', rf' id="{name}-\1"', svg)  # each once in a page
    svg = re.sub(r'(href="|url\()#', rf"\1#{name}-", svg)
    return re.sub(r'width="[\d.]+pt" height="[\d.]+pt"', 'role="img"', svg, count=1)
