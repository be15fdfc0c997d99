"""Plots, readable on light and dark ground and by the colour-blind: every method has its marker."""

import io
import itertools
import math
import re
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from comes.report.runs import METHOD_ORDER, Cell, method_rank, standard_deviation
from comes.report.significance import Ranks
from comes.report.tables import MetricTable, title_of

# Of middle lightness, three times as light or as dark as the ground, and apart from each other
# also without red or green; tests/test_report_plots.py measures both.
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
INK = "#010203"  # stands for the colour of the text around a plot
STYLE: Any = {
    "svg.fonttype": "none",  # text stays text
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
}
AXIS = {"prior_noise": "σ of the noise on class priors", "flood": "β / floor of the risk"}
AXIS |= {"train_rows": "rows trained on"}
TRUE_RISKS: tuple[Literal["hamming", "ranking"], ...] = ("hamming", "ranking")


class Look:
    """One colour and marker for every method, the same in all plots of a report."""

    def __init__(self, methods: Sequence[str]) -> None:
        others = sorted(set(methods) - set(METHOD_ORDER), key=method_rank)
        self._place = {method: place for place, method in enumerate([*METHOD_ORDER, *others])}

    def __call__(self, method: str) -> dict[str, Any]:
        """Return arguments of matplotlib's ``plot``."""
        place = self._place[method]
        marker = MARKERS[(place + place // len(COLOURS)) % len(MARKERS)]
        return {"color": COLOURS[place % len(COLOURS)], "marker": marker}


def as_svg(figure: Figure, name: str) -> str:
    """Return a figure as a part of a page: its ink is the colour of the text around it."""
    buffer = io.StringIO()
    with rc_context(STYLE | {"svg.hashsalt": name}):  # so that ids are the same in every run
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    svg = re.sub(r' id="([^"]+)"', rf' id="{name}-\1"', svg)  # each once in a page
    svg = re.sub(r'(href="|url\()#', rf"\1#{name}-", svg)
    return re.sub(r'width="[\d.]+pt" height="[\d.]+pt"', 'role="img"', svg, count=1)


@rc_context(STYLE)
def plot_dots(table: MetricTable, cells: Sequence[Cell], look: Look) -> Figure:
    """Draw every repeat of every method as a dot, a panel for each data set."""
    figure, panels = _panels(len(table.data), height=0.22 * len(table.methods) + 0.9, sharey=True)
    for axes, data in zip(panels, table.data, strict=True):
        for cell in (cell for cell in cells if cell.data == data):
            values = cell.values(table.metric, table.source)
            height = len(table.methods) - 1 - table.methods.index(cell.method)
            dots = look(cell.method) | {"linestyle": "", "ms": 4, "alpha": 0.7, "mew": 0}
            axes.plot(values, np.full(len(values), height), **dots)
            axes.plot([values.mean()] * 2, [height - 0.35, height + 0.35], color=INK, lw=1)
        axes.set_title(_label(data), fontsize=9)
        axes.set_yticks(range(len(table.methods)), [_label(m) for m in table.methods[::-1]])
    figure.supxlabel(table.title, fontsize=9)
    return figure


@rc_context(STYLE)
def plot_ranks(ranks: Ranks, look: Look) -> Figure:
    """Draw mean ranks on a line; a bar joins methods that the critical difference cannot tell."""
    k = len(ranks.methods)
    figure = Figure(figsize=(7.5, 1.1 + 0.24 * k + 0.12 * len(ranks.alike())))
    axes = figure.subplots()
    top = 0.4 * len(ranks.alike())
    for place, (method, rank) in enumerate(zip(ranks.methods, ranks.mean_rank, strict=True)):
        height = -top - 1 - place
        axes.plot([rank, rank, k + 0.3], [0, height, height], color=INK, lw=0.6)
        axes.plot([rank], [0], **look(method) | {"ms": 6, "linestyle": ""}, zorder=3)
        axes.text(k + 0.35, height, f"{_label(method)}  {rank:.2f}", va="center")
    for bar, (first, last) in enumerate(ranks.alike()):
        ends = [ranks.mean_rank[first] - 0.04, ranks.mean_rank[last] + 0.04]
        axes.plot(ends, [-0.4 - 0.4 * bar] * 2, color=INK, lw=3, solid_capstyle="butt")
    axes.plot([1, 1 + ranks.critical_difference], [2.2, 2.2], color=INK, lw=1.5, marker="|", ms=7)
    axes.text(1, 2.5, f"critical difference {ranks.critical_difference:.2f}", va="bottom")
    longest = max(map(len, ranks.methods))
    right = k + 0.35 + (longest + 7) * 0.075 * k / 4  # four inches for the axis
    axes.set_xlim(0.8, max(right, 1.2 + ranks.critical_difference))
    axes.set_ylim(-top - k - 0.6, 3.6)
    axes.xaxis.set_ticks_position("top")
    axes.set_xticks(range(1, k + 1))
    axes.spines["top"].set_visible(True)
    axes.spines["top"].set_position(("data", 0))
    axes.spines["top"].set_bounds(1, k)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.set_yticks([])
    return figure


@rc_context(STYLE)
def plot_curves(cells: Sequence[Cell], look: Look) -> Figure:
    """Draw the risk during training, over that of the first epoch, a panel for each data set."""
    names = list(dict.fromkeys(cell.data for cell in cells))
    figure, panels = _panels(len(names), height=2.2)
    for axes, name in zip(panels, names, strict=True):
        for cell in (cell for cell in cells if cell.data == name):
            length = min(len(repeat["risk"]) for repeat in cell.repeats)
            risk = np.mean([repeat["risk"][:length] for repeat in cell.repeats], axis=0)
            scale = abs(risk[0]) or 1.0
            epochs = np.arange(1, length + 1)
            line = look(cell.method) | {"ms": 4, "lw": 1.2, "markevery": max(1, length // 6)}
            axes.plot(epochs, risk / scale, label=_label(cell.method), **line)
        axes.set_title(_label(name), fontsize=9)
        axes.set_xlabel("epoch")
    panels[0].set_ylabel("risk / risk of epoch 1")
    _legend(figure, panels)
    return figure


@rc_context(STYLE)
def plot_sweep(cells: Sequence[Cell], metric: str, look: Look) -> Figure:
    """Draw a metric against what the experiment varies, with a standard deviation each way."""
    names = list(dict.fromkeys(cell.data for cell in cells))
    figure, panels = _panels(len(names), height=2.4)
    for axes, name in zip(panels, names, strict=True):
        for method in sorted({cell.method for cell in cells}, key=method_rank):
            own = [cell for cell in cells if (cell.data, cell.method) == (name, method)]
            if own:
                at = [float(cell.at or 0) for cell in own]
                mean = np.array([cell.values(metric).mean() for cell in own])
                std = np.array([standard_deviation(cell.values(metric)) for cell in own])
                axes.plot(at, mean, label=_label(method), **look(method) | {"ms": 4, "lw": 1.3})
                colour = look(method)["color"]
                axes.fill_between(at, mean - std, mean + std, color=colour, alpha=0.15, lw=0)
        axes.set_title(_label(name), fontsize=9)
        axes.set_xlabel(AXIS.get(cells[0].sweep, cells[0].sweep))
        if cells[0].sweep == "train_rows":
            axes.set_xscale("log")
    panels[0].set_ylabel(title_of(metric))
    _legend(figure, panels)
    return figure


@rc_context(STYLE)
def plot_estimation_error(cells: Sequence[Cell], look: Look) -> Figure:
    """Draw how far the true risk of each method is above the best on the same rows.

    The best is the least true risk that any cell reaches, which should be one that was trained on
    true labels of many rows; what is within a thousandth of it is not drawn. COMES-RL does not fix
    the level of its scores, so it has no Hamming risk to speak of.
    """
    names = list(dict.fromkeys(cell.spec["data"]["name"] for cell in cells))
    figure, panels = _panels(2 * len(names), height=2.8, across=2)
    for axes, (name, risk) in zip(panels, itertools.product(names, TRUE_RISKS), strict=True):
        here = [cell for cell in cells if cell.spec["data"]["name"] == name]
        drawn = [c for c in here if risk == "ranking" or not c.method.startswith("comes-rl")]
        axes.set_title(f"{risk} risk", fontsize=9)
        axes.set_xlabel(AXIS["train_rows"])
        axes.set_ylabel("true risk above the best")
        if drawn:
            _draw_gaps(axes, drawn, risk, look)
    _legend(figure, panels)
    return figure


def _draw_gaps(
    axes: Any, cells: Sequence[Cell], risk: Literal["hamming", "ranking"], look: Look
) -> None:
    means = {id(c): np.mean([r["true_risk"][risk] for r in c.repeats]) for c in cells}
    best, most = min(means.values()), max(means.values())
    for data, method in dict.fromkeys((cell.data, cell.method) for cell in cells):
        own = [c for c in cells if (c.data, c.method) == (data, method)]
        own = [c for c in own if means[id(c)] - best > (most - best) / 1000]
        line = look(method) | {"ms": 4, "lw": 1.2, "ls": "-" if data == cells[0].data else ":"}
        above = [means[id(c)] - best for c in own]
        axes.plot(
            [float(c.at or 0) for c in own], above, label=_label(f"{method} on {data}"), **line
        )
    xs = np.array(sorted({float(c.at or 0) for c in cells}))
    root = (most - best) * np.sqrt(xs[0] / xs)
    axes.plot(xs, root, color=INK, lw=0.8, ls="--", label="1 / √n")
    axes.set_xscale("log")
    axes.set_yscale("log")


def _panels(
    n: int, height: float, *, across: int = 4, sharey: bool = False
) -> tuple[Figure, list[Any]]:
    """Return a figure of n panels, so many in a row."""
    across = min(n, across)
    down = math.ceil(n / across)
    size = (max(7.0, 2.4 * across), height * down + 0.3)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(down, across, squeeze=False, sharey=sharey).ravel()
    for axes in grid[n:]:
        axes.set_visible(False)
    return figure, list(grid[:n])


def _legend(figure: Figure, panels: Sequence[Any]) -> None:
    """Name every line of every panel once, in as many columns as fit."""
    found: dict[str, Any] = {}
    for axes in panels:
        handles, labels = axes.get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
    if found:
        longest = max(map(len, found))
        columns = max(1, min(5, int(figure.get_figwidth() / (0.45 + 0.075 * longest))))
        figure.set_figheight(figure.get_figheight() + 0.2 * math.ceil(len(found) / columns))
        figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=columns)


def _label(name: str) -> str:
    """Return a name that matplotlib takes for no mathematics, and does not hide."""
    name = name.replace("$", r"\$")
    return f" {name}" if name.startswith("_") else name
