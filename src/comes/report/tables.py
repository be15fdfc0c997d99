"""Tables of one metric: methods down, data sets across, as Markdown and LaTeX."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from comes.metrics import METRICS
from comes.report.runs import METHOD_ORDER, Cell, Source, method_rank, standard_deviation
from comes.report.significance import (
    LEVEL,
    PairedTest,
    Ranks,
    compare_paired,
    holm,
    rank_methods,
)

DIGITS = 6  # of a stored metric: what differs by less is equal


@dataclass(frozen=True)
class Entry:
    """One number of a table with what is to be known about it."""

    mean: float
    std: float  # over repeats; 0 with one
    is_best: bool
    against_best: PairedTest | None = None  # the best minus this; None for the best
    p_holm: float = math.nan  # of the corrected test, over all methods of the data set

    @property
    def text(self) -> str:
        """Mean and standard deviation."""
        return f"{self.mean:.3f} ± {self.std:.3f}"

    @property
    def is_worse(self) -> bool:
        """Whether the best is significantly better, by the paper's test."""
        return self.against_best is not None and self.against_best.p < LEVEL

    @property
    def is_surely_worse(self) -> bool:
        """The same by the corrected test and Holm's method."""
        return self.against_best is not None and self.p_holm < LEVEL


@dataclass(frozen=True)
class MetricTable:
    """A metric of every method on every data set of one experiment."""

    metric: str
    source: Source
    methods: list[str]
    data: list[str]
    entries: dict[tuple[str, str], Entry]  # by method and data set; what is missing is not there
    ranks: Ranks | None

    @property
    def title(self) -> str:
        """Name of the metric with the way that is better."""
        return title_of(self.metric)

    def row(self, method: str) -> list[Entry | None]:
        """Return what a method has on each data set."""
        return [self.entries.get((method, data)) for data in self.data]


def title_of(metric: str) -> str:
    """Return the name of a metric with the way that is better."""
    return f"{METRICS[metric].title} {'↑' if METRICS[metric].higher_is_better else '↓'}"


def metric_table(cells: Sequence[Cell], metric: str, source: Source = "pml") -> MetricTable:
    """Gather a metric of the cells of one experiment, and test every method against the best."""
    methods = sorted({cell.method for cell in cells}, key=method_rank)
    data = list(dict.fromkeys(cell.data for cell in cells))
    higher = METRICS[metric].higher_is_better
    entries: dict[tuple[str, str], Entry] = {}
    for name in data:
        here = [cell for cell in cells if cell.data == name]
        for cell, entry in zip(here, _entries(here, metric, source, higher), strict=True):
            if entry is not None:
                entries[cell.method, name] = entry
    means = [[entries[m, d].mean if (m, d) in entries else math.nan for d in data] for m in methods]
    ranks = rank_methods(methods, np.array(means), higher_is_better=higher)
    return MetricTable(metric, source, methods, data, entries, ranks)


def _entries(
    cells: Sequence[Cell], metric: str, source: Source, higher: bool
) -> list[Entry | None]:
    values = [cell.values(metric, source) for cell in cells]
    means = np.array([round(float(v.mean()), DIGITS) for v in values])
    if not np.isfinite(means).any():
        return [None] * len(cells)
    best = int(np.nanargmax(means if higher else -means))
    tests = [
        compare_paired(values[best], own, cell.test_over_train)
        if cell.pairing == cells[best].pairing  # else their repeats have nothing in common
        else PairedTest(float(means[best] - own.mean()), math.nan, math.nan)
        for cell, own in zip(cells, values, strict=True)
    ]
    is_best = means == means[best]
    adjusted = holm([math.nan if is_best[k] else t.p_corrected for k, t in enumerate(tests)])
    return [
        Entry(
            mean=float(mean),
            std=standard_deviation(own),
            is_best=bool(is_best[k]),
            against_best=None if is_best[k] else tests[k],
            p_holm=float(adjusted[k]),
        )
        if math.isfinite(mean)
        else None
        for k, (mean, own) in enumerate(zip(means, values, strict=True))
    ]


def to_markdown(table: MetricTable) -> str:
    """Return the table: best in bold, • where the best is significantly better."""

    def shown(entry: Entry | None) -> str:
        if entry is None:
            return "–"
        text = f"**{entry.text}**" if entry.is_best else entry.text
        return text + (" •" if entry.is_worse else "")

    lines = [
        f"| {table.title} | {' | '.join(map(plain, table.data))} |",
        f"| --- |{' --- |' * len(table.data)}",
    ]
    lines += [
        f"| {plain(method)} | {' | '.join(shown(entry) for entry in table.row(method))} |"
        for method in table.methods
    ]
    return "\n".join(lines)


def sweep_to_markdown(cells: Sequence[Cell], metric: str) -> str:
    """Return the means of a metric: methods on data sets down, the values of a sweep across."""
    values = sorted({float(cell.at or 0) for cell in cells})
    lines = [
        f"| {title_of(metric)} | {' | '.join(f'{value:g}' for value in values)} |",
        f"| --- |{' --- |' * len(values)}",
    ]
    for data, method in dict.fromkeys((cell.data, cell.method) for cell in cells):
        own = {c.at: c for c in cells if (c.data, c.method) == (data, method)}
        means = (f"{own[v].values(metric).mean():.3f}" if v in own else "–" for v in values)
        lines.append(f"| {plain(method)} on {plain(data)} | {' | '.join(means)} |")
    return "\n".join(lines)


def to_latex(table: MetricTable) -> str:
    r"""Return the table as the paper sets it; needs the package booktabs."""

    def shown(entry: Entry | None) -> str:
        if entry is None:
            return "--"
        text = f"{entry.mean:.3f} $\\pm$ {entry.std:.3f}"
        text = f"\\textbf{{{text}}}" if entry.is_best else text
        return text + ("$\\bullet$" if entry.is_worse else "")

    metric = METRICS[table.metric]
    way = "$\\uparrow$" if metric.higher_is_better else "$\\downarrow$"
    title = metric.title if metric.title == "mAP" else metric.title.title()
    head = " & ".join(f"\\multicolumn{{1}}{{c}}{{{_tex(name)}}}" for name in table.data)
    lines = [
        f"\\begin{{tabular}}{{l{'l' * len(table.data)}}}",
        "\\toprule",
        f"\\multicolumn{{{len(table.data) + 1}}}{{c}}{{\\textbf{{{title} {way}}}}} \\\\",
        "\\midrule",
        f"Approach & {head} \\\\",
    ]
    group = None
    for method in table.methods:
        is_ours = method.startswith("comes-")
        if group is not is_ours:
            lines.append("\\midrule")
            group = is_ours
        row = " & ".join(shown(entry) for entry in table.row(method))
        lines.append(f"{_tex(_capital(method))} & {row} \\\\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"])


def _capital(method: str) -> str:
    """Return the name of a method as papers write it."""
    base, _, rest = method.partition(" ")
    return f"{base.upper()} {rest}".strip() if base.rstrip(",") in METHOD_ORDER else method


def plain(text: str) -> str:
    """Return text that does not end a cell of Markdown."""
    return text.replace("|", "\\|").replace("\n", " ")


def _tex(text: str) -> str:
    """Return text that LaTeX shows as it is."""
    special = {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"}
    special |= {character: f"\\{character}" for character in "&%$#_{}"}
    return "".join(special.get(character, character) for character in text)
