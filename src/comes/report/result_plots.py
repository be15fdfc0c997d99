"""Plots of results: repeats, curves, sweeps and errors, a panel for each data set."""

import itertools
import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from comes.flat_settings import from_flat
from comes.methods import METHODS, find_method, table_rank
from comes.plots import INK, STYLE, Look, escape_name
from comes.report.metric_tables import MetricTable, title_of
from comes.results import Result, SweepKey
from comes.significance import standard_deviation

AXIS: dict[SweepKey, str] = {
    "prior_noise": "σ of the noise on class priors",
    "flood": "β / floor of the risk",
    "train_rows": "rows trained on",
}
TrueRiskName = Literal["hamming", "ranking"]
TRUE_RISKS: tuple[TrueRiskName, ...] = ("hamming", "ranking")


@rc_context(STYLE)
def plot_dots(table: MetricTable, results: Sequence[Result], look: Look) -> Figure:
    """Draw every repeat of every method as a dot, a panel for each data set."""
    figure, panels = _make_panels(
        len(table.data), height=0.22 * len(table.methods) + 0.9, sharey=True
    )
    for axes, data in zip(panels, table.data, strict=True):
        for result in (result for result in results if result.names.data == data):
            values = result.values(table.metric, table.convention)
            place = len(table.methods) - 1 - table.methods.index(result.names.method)
            dots = look(result.names.method) | {"linestyle": "", "ms": 4, "alpha": 0.7, "mew": 0}
            axes.plot(values, np.full(len(values), place), **dots)
            axes.plot([values.mean()] * 2, [place - 0.35, place + 0.35], color=INK, lw=1)
        axes.set_title(escape_name(data), fontsize=9)
        axes.set_yticks(range(len(table.methods)), [escape_name(m) for m in table.methods[::-1]])
    figure.supxlabel(table.title, fontsize=9)
    return figure


@rc_context(STYLE)
def plot_curves(results: Sequence[Result], look: Look, *, held_out: bool = False) -> Figure:
    """Draw the risk during training, over that of the first epoch, a panel for each data set.

    Or, as it is, the score of rows that were held out.
    """
    names = list(dict.fromkeys(result.names.data for result in results))
    figure, panels = _make_panels(len(names), height=2.2)
    for axes, name in zip(panels, names, strict=True):
        for result in (result for result in results if result.names.data == name):
            curves = [(r.held_out or ()) if held_out else r.risk for r in result.repeats]
            length = min(map(len, curves))
            risk = np.mean([curve[:length] for curve in curves], axis=0)
            scale = 1.0 if held_out else abs(risk[0]) or 1.0
            epochs = np.arange(1, length + 1)
            method = result.names.method
            line = look(method) | {"ms": 4, "lw": 1.2, "markevery": max(1, length // 6)}
            axes.plot(epochs, risk / scale, label=escape_name(method), **line)
        axes.set_title(escape_name(name), fontsize=9)
        axes.set_xlabel("epoch")
    panels[0].set_ylabel("score of held-out rows" if held_out else "risk / risk of epoch 1")
    _draw_legend(figure, panels)
    return figure


@rc_context(STYLE)
def plot_sweep(results: Sequence[Result], metric: str, look: Look) -> Figure:
    """Draw a metric against what the experiment varies, with a band of one standard deviation."""
    names = list(dict.fromkeys(result.names.data for result in results))
    figure, panels = _make_panels(len(names), height=2.4)
    for axes, name in zip(panels, names, strict=True):
        for method in sorted({result.names.method for result in results}, key=table_rank):
            own = [r for r in results if (r.names.data, r.names.method) == (name, method)]
            at = [float(result.at or 0) for result in own]
            mean = np.array([result.values(metric).mean() for result in own])
            std = np.array([standard_deviation(result.values(metric)) for result in own])
            if np.isfinite(mean).any():
                line = look(method) | {"ms": 4, "lw": 1.3}
                axes.plot(at, mean, label=escape_name(method), **line)
                colour = line["color"]
                axes.fill_between(at, mean - std, mean + std, color=colour, alpha=0.15, lw=0)
        axes.set_title(escape_name(name), fontsize=9)
        sweep = results[0].names.sweep
        assert sweep is not None
        axes.set_xlabel(AXIS[sweep])
        if sweep == "train_rows":
            axes.set_xscale("log")
    panels[0].set_ylabel(title_of(metric))
    _draw_legend(figure, panels)
    return figure


@rc_context(STYLE)
def plot_estimation_error(results: Sequence[Result], look: Look) -> Figure:
    """Draw how far the true risk of each method is above the best on the same rows.

    The best is the least true risk that any result reaches, which should be one that was trained on
    true labels of many rows; what is within a thousandth of it is not drawn. A risk over pairs does
    not fix the level of scores, so that its methods have no Hamming risk to speak of.
    """
    names = list(dict.fromkeys(result.spec.data.name for result in results))
    figure, panels = _make_panels(2 * len(names), height=2.8, across=2)
    for axes, (name, risk) in zip(panels, itertools.product(names, TRUE_RISKS), strict=True):
        here = [result for result in results if result.spec.data.name == name]
        drawn = [result for result in here if risk == "ranking" or _has_hamming_risk(result)]
        axes.set_title(f"{risk} risk", fontsize=9)
        axes.set_xlabel(AXIS["train_rows"])
        axes.set_ylabel("true risk above the best")
        if drawn:
            _draw_gaps(axes, drawn, risk, look)
    _draw_legend(figure, panels)
    return figure


def _has_hamming_risk(result: Result) -> bool:
    """Return whether a method fixes the level of its scores; the user's own are said to."""
    method, variant = result.spec.method, result.spec.settings.get("variant")
    if method not in METHODS:
        return True
    return not find_method(
        from_flat({"method": method, "variant": variant})["method"]
    ).is_over_pairs


def _draw_gaps(axes: Any, results: Sequence[Result], risk: TrueRiskName, look: Look) -> None:
    """Draw a line for every method on every data set, and that of 1 / √n."""
    means = {
        id(r): np.mean([getattr(repeat.true_risk, risk) for repeat in r.repeats]) for r in results
    }
    best, most = min(means.values()), max(means.values())
    for data, method in dict.fromkeys((r.names.data, r.names.method) for r in results):
        own = [r for r in results if (r.names.data, r.names.method) == (data, method)]
        own = [r for r in own if means[id(r)] - best > (most - best) / 1000]
        style = "-" if data == results[0].names.data else ":"
        line = look(method) | {"ms": 4, "lw": 1.2, "ls": style}
        above = [means[id(r)] - best for r in own]
        name = escape_name(f"{method} on {data}")
        axes.plot([float(r.at or 0) for r in own], above, label=name, **line)
    xs = np.array(sorted({float(r.at or 0) for r in results}))
    root = (most - best) * np.sqrt(xs[0] / xs)
    axes.plot(xs, root, color=INK, lw=0.8, ls="--", label="1 / √n")
    axes.set_xscale("log")
    axes.set_yscale("log")


def _make_panels(
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


def _draw_legend(figure: Figure, panels: Sequence[Any]) -> None:
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
