"""The order of methods and data sets in tables: that of the paper."""

import itertools
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import jinja2
import numpy as np
import pandas as pd
from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.figure import Figure

from comes.errors import ComesError
from comes.experiment.results import Result, SweepKey
from comes.files import replacing_folder
from comes.flat_settings import from_flat
from comes.methods import METHODS, find_method, method_of_label, table_rank
from comes.metrics import METRICS, Convention
from comes.report.paper import Beside, beside_paper, is_papers_data, what_differs, what_was_run
from comes.report.plots import (
    INK,
    STYLE,
    Look,
    as_svg,
    escape_name,
    figure_of,
    plot_ranks,
)
from comes.significance import (
    LEVEL,
    PairedTest,
    Ranks,
    compare_paired,
    holm,
    rank_methods,
    standard_deviation,
)

# Data sets that are not here come after, by name.
DATA_ORDER = (
    "mirflickr",
    "music_emotion",
    "music_style",
    "yeastbp",
    "yeastcc",
    "yeastmf",
)


def order_results(results: Iterable[Result]) -> list[Result]:
    """Return results by experiment, data set, method and value of a sweep, in the paper's order."""
    return sorted(
        results,
        key=lambda result: (
            result.names.experiment,
            _rank_data(result.names.data),
            table_rank(result.names.method),
            result.at or 0,
        ),
    )


def _rank_data(data: str) -> tuple[int, str]:
    """Return where a data set stands in a table."""
    known = [place for place, name in enumerate(DATA_ORDER) if data.lower().startswith(name)]
    return (known[0] if known else len(DATA_ORDER), data)


DIGITS = 6  # of a stored metric: what differs by less is equal


def list_means(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return the means over repeats, a row for each result, in the order of the paper's tables.

    Parameters
    ----------
    results : list of Result

    Returns
    -------
    rows : list of dict
        Data set, method, the value of a sweep, and every metric that any of the results has; NaN
        where a result lacks it.

    Examples
    --------
    >>> from comes.experiment.results import (
    ...     DataSpec, Degenerate, HammingByCut, Names, RepeatResult, Size, TaskSpec
    ... )
    >>> cuts, metrics = HammingByCut(zero=0.2, minmax=0.3), {"coverage": 0.4}
    >>> repeat = RepeatResult(pml=metrics, sklearn=metrics, hamming_loss=cuts, risk=(1.0,))
    >>> def make(method):
    ...     return Result(
    ...         names=Names("smoke", "scenes", method),
    ...         spec=TaskSpec(data=DataSpec(name="scenes"), method=method, label_seeds=1),
    ...         size=Size(n=2000, d=256, q=10),
    ...         degenerate=Degenerate(rows_without_relevant=0, rows_all_relevant=0),
    ...         repeats=(repeat,),
    ...         seconds=1.5,
    ...         versions={},
    ...         device="cpu",
    ...     )
    >>> for row in list_means([make("comes-hl"), make("bce")]):
    ...     print(row)
    {'data': 'scenes', 'method': 'bce', 'coverage': 0.4}
    {'data': 'scenes', 'method': 'comes-hl', 'coverage': 0.4}
    """
    rows = []
    metrics = list(dict.fromkeys(metric for result in results for metric in result.means()))
    for result in order_results(results):
        names = result.names
        at: dict[str, Any] = {} if names.sweep is None else {names.sweep: result.at}
        means = {metric: float(result.values(metric).mean()) for metric in metrics}
        rows.append({"data": names.data, "method": names.method} | at | means)
    return rows


@dataclass(frozen=True)
class Entry:
    """One number of a table: its spread over repeats, and its test against the best."""

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
    convention: Convention
    methods: list[str]
    data: list[str]
    entries: dict[tuple[str, str], Entry]  # by method and data set; what is missing is not there
    ranks: Ranks | None

    @property
    def title(self) -> str:
        """Name of the metric, with an arrow that says whether higher is better."""
        return title_of(self.metric)

    def row(self, method: str) -> list[Entry | None]:
        """Return what a method has on each data set."""
        return [self.entries.get((method, data)) for data in self.data]


def title_of(metric: str) -> str:
    """Return the name of a metric, with an arrow that says whether higher is better."""
    return f"{METRICS[metric].title} {'↑' if METRICS[metric].higher_is_better else '↓'}"


def metric_table(
    results: Sequence[Result], metric: str, convention: Convention = "pml"
) -> MetricTable:
    """Gather a metric of the results of one experiment, and test every method against the best."""
    results = order_results(results)
    methods = sorted({result.names.method for result in results}, key=table_rank)
    data = list(dict.fromkeys(result.names.data for result in results))
    higher = METRICS[metric].higher_is_better
    entries: dict[tuple[str, str], Entry] = {}
    for name in data:
        here = [result for result in results if result.names.data == name]
        for result, entry in zip(here, _make_entries(here, metric, convention), strict=True):
            if entry is not None:
                entries[result.names.method, name] = entry
    means = [[entries[m, d].mean if (m, d) in entries else math.nan for d in data] for m in methods]
    ranks = rank_methods(methods, np.array(means), higher_is_better=higher)
    return MetricTable(metric, convention, methods, data, entries, ranks)


def _make_entries(
    results: Sequence[Result], metric: str, convention: Convention
) -> list[Entry | None]:
    """Return the entries of the methods on one data set; None for a result without the metric."""
    values = [result.values(metric, convention) for result in results]
    means = np.array([round(float(v.mean()), DIGITS) for v in values])
    if not np.isfinite(means).any():
        return [None] * len(results)
    best = int(np.nanargmax(means if METRICS[metric].higher_is_better else -means))
    tests = [
        compare_paired(values[best], own, result.test_over_train)
        if result.pairing == results[best].pairing  # else their repeats have nothing in common
        else PairedTest(float(means[best] - own.mean()), math.nan, math.nan)
        for result, own in zip(results, values, strict=True)
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
    lines = [
        f"| {table.title} | {' | '.join(map(escape_markdown, table.data))} |",
        f"| --- |{' --- |' * len(table.data)}",
    ]
    lines += [
        f"| {escape_markdown(method)} | {' | '.join(map(_show_in_markdown, table.row(method)))} |"
        for method in table.methods
    ]
    return "\n".join(lines)


def _show_in_markdown(entry: Entry | None) -> str:
    if entry is None:
        return "–"
    text = f"**{entry.text}**" if entry.is_best else entry.text
    return text + (" •" if entry.is_worse else "")


def sweep_to_markdown(results: Sequence[Result], metric: str) -> str:
    """Return the means of a metric: methods on data sets down, the values of a sweep across."""
    results = order_results(results)
    values = sorted({float(result.at or 0) for result in results})
    lines = [
        f"| {title_of(metric)} | {' | '.join(f'{value:g}' for value in values)} |",
        f"| --- |{' --- |' * len(values)}",
    ]
    for data, method in dict.fromkeys((r.names.data, r.names.method) for r in results):
        own = [r for r in results if (r.names.data, r.names.method) == (data, method)]
        means = {r.at: float(r.values(metric).mean()) for r in own}
        shown = (show_number(means.get(value, math.nan)) for value in values)
        name = f"{escape_markdown(method)} on {escape_markdown(data)}"
        lines.append(f"| {name} | {' | '.join(shown)} |")
    return "\n".join(lines)


def show_number(value: float) -> str:
    """Return a mean as tables show it; a dash where there is none."""
    return "–" if math.isnan(value) else f"{value:.3f}"


def to_latex(table: MetricTable) -> str:
    r"""Return the table as the paper sets it; needs the package booktabs."""
    metric = METRICS[table.metric]
    way = "$\\uparrow$" if metric.higher_is_better else "$\\downarrow$"
    # mAP keeps its letters.
    title = " ".join(word.title() if word.islower() else word for word in metric.title.split())
    head = " & ".join(f"\\multicolumn{{1}}{{c}}{{{_escape_latex(name)}}}" for name in table.data)
    lines = [
        f"\\begin{{tabular}}{{l{'l' * len(table.data)}}}",
        "\\toprule",
        f"\\multicolumn{{{len(table.data) + 1}}}{{c}}{{\\textbf{{{title} {way}}}}} \\\\",
        "\\midrule",
        f"Approach & {head} \\\\",
    ]
    group = None
    for method in table.methods:
        named = method_of_label(method)
        is_ours = named is not None and named.is_ours
        if group is not is_ours:
            lines.append("\\midrule")
            group = is_ours
        row = " & ".join(map(_show_in_latex, table.row(method)))
        label = method if named is None else named.title + method.removeprefix(named.name)
        lines.append(f"{_escape_latex(label)} & {row} \\\\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"])


def _show_in_latex(entry: Entry | None) -> str:
    if entry is None:
        return "--"
    text = f"{entry.mean:.3f} $\\pm$ {entry.std:.3f}"
    text = f"\\textbf{{{text}}}" if entry.is_best else text
    return text + ("$\\bullet$" if entry.is_worse else "")


def escape_markdown(text: str) -> str:
    """Return text that does not end a cell of Markdown."""
    return text.replace("|", "\\|").replace("\n", " ")


def _escape_latex(text: str) -> str:
    """Return text that LaTeX shows as it is."""
    special = {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"}
    special |= {character: f"\\{character}" for character in "&%$#_{}"}
    return "".join(special.get(character, character) for character in text)


LABEL_METRIC = "average_precision"  # of labels, on the page; the file has all
MOST_LABELS = 100  # on the page


@dataclass(frozen=True)
class Cost:
    """What a method cost on a data set; None where a result does not say."""

    data: str
    method: str
    at: float | None  # the value of what an experiment varies
    epochs: float  # mean over repeats
    seconds_per_training: float | None
    seconds: float  # of all repeats, with reading, choosing and testing
    memory: float | None  # MiB, the most that the process needed
    device_memory: float | None
    device: str

    @property
    def cells(self) -> list[str]:
        """The numbers, as tables show them."""
        each = self.seconds_per_training
        return [
            f"{self.epochs:.0f}",
            "–" if each is None else show_seconds(each),
            show_seconds(self.seconds),
            *("–" if m is None else f"{m:.0f}" for m in (self.memory, self.device_memory)),
            "GPU" if self.device.startswith("cuda") else self.device.upper(),
        ]


COST_TITLES = (
    "epochs",
    "seconds per training",
    "seconds in all",
    "peak memory (MiB)",
    "on the GPU (MiB)",
    "device",
)


def list_costs(results: Sequence[Result]) -> list[Cost]:
    """Return what every result cost."""
    return [
        Cost(
            result.names.data,
            result.names.method,
            result.at,
            float(np.mean([len(repeat.risk) for repeat in result.repeats])),
            _mean_seconds(result),
            result.seconds,
            result.peak_memory,
            result.peak_device_memory,
            result.device,
        )
        for result in results
    ]


def _mean_seconds(result: Result) -> float | None:
    """Return the seconds of a training, None if a repeat does not say."""
    seconds = [repeat.seconds for repeat in result.repeats if repeat.seconds is not None]
    return float(np.mean(seconds)) if len(seconds) == len(result.repeats) else None


def show_seconds(value: float) -> str:
    """Return seconds with three digits that count."""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def costs_to_markdown(costs: Sequence[Cost]) -> str:
    """Return a row for every result."""
    lines = [f"| data | method | {' | '.join(COST_TITLES)} |"]
    lines.append(f"| --- | --- |{' --- |' * len(COST_TITLES)}")
    for cost in costs:
        at = "" if cost.at is None else f", {cost.at:g}"
        names = f"{escape_markdown(cost.data)}{at} | {escape_markdown(cost.method)}"
        lines.append(f"| {names} | {' | '.join(cost.cells)} |")
    return "\n".join(lines)


@dataclass(frozen=True)
class LabelTable:
    """The mean average precision over rows of each label, by method, on one data set."""

    data: str
    methods: list[str]
    rows: list[tuple[str, list[float]]]  # a label with its numbers, the hardest first

    @property
    def shown(self) -> list[tuple[str, list[float]]]:
        """The rows that a page shows."""
        return self.rows[:MOST_LABELS]


def make_label_tables(results: Sequence[Result]) -> list[LabelTable]:
    """Return a table for every data set whose results have metrics of labels."""
    tables = []
    for data in dict.fromkeys(result.names.data for result in results):
        own = [r for r in results if r.names.data == data]
        found = {result.names.method: result.label_means(LABEL_METRIC) for result in own}
        means = {method: values for method, values in found.items() if values is not None}
        names = next((r.label_names for r in own if r.label_names is not None), None)
        if not means or names is None:
            continue
        numbers = np.array(list(means.values()))  # (methods, labels)
        best = np.where(np.isfinite(numbers), numbers, -np.inf).max(axis=0)
        order = np.argsort(best, kind="stable")
        rows = [(names[label], numbers[:, label].tolist()) for label in order]
        tables.append(LabelTable(data, list(means), rows))
    return tables


def list_label_numbers(results: Sequence[Result]) -> Iterator[dict[str, Any]]:
    """Yield a row for every metric of every label of every repeat."""
    for result in results:
        names = result.names
        where: dict[str, Any] = {"experiment": names.experiment, "data": names.data}
        where |= {"method": names.method, "at": result.at}
        for k, repeat in enumerate(result.repeats):
            for metric, values in (repeat.by_label or {}).items():
                for label, value in zip(result.label_names or (), values, strict=True):
                    yield where | {"repeat": k, "label": label, "metric": metric, "value": value}


# What the paper shows of synthetic labels.
SYNTHETIC_METRIC = "mean_average_precision"
# What is shown of an experiment that varies something.
SWEEP_METRICS = ("average_precision", "ranking_loss", "hamming_loss")


@dataclass(frozen=True)
class Part:
    """What the report says of one experiment."""

    results: Sequence[Result]
    tables: Sequence[MetricTable]  # none where something is varied
    other_tables: Sequence[MetricTable]  # in the other convention
    beside: Sequence[Beside]
    differs: Sequence[str]  # from the paper, of the data that it has
    was_run: Sequence[str]  # how other data was run
    costs: Sequence[Cost]
    label_tables: Sequence[LabelTable]

    @property
    def name(self) -> str:
        """Name of the experiment."""
        return self.results[0].names.experiment

    @property
    def slug(self) -> str:
        """A name for files and anchors; unique within the report."""
        text = f"{self.name}-{self.sweep}" if self.sweep else self.name
        slug = "".join(c if c.isalnum() or c in "-_" else "-" for c in text)
        return slug if slug == text else f"{slug}-{zlib.crc32(text.encode()):08x}"

    @property
    def sweep(self) -> SweepKey | None:
        """What the experiment varies."""
        return self.results[0].names.sweep

    @property
    def data(self) -> list[Result]:
        """One result of every data set, for the counts of its rows."""
        return list({result.names.data: result for result in self.results}.values())

    @property
    def facts(self) -> dict[str, str]:
        """What was run, and where."""
        first = self.results[0]
        kind = "label seeds" if first.spec.folds is None else "folds"
        software = sorted({f"torch {result.versions['torch']}" for result in self.results})
        hours = []
        for device in sorted({result.device.partition(":")[0] for result in self.results}):
            own = [r.seconds for r in self.results if r.device.startswith(device)]
            name = {"cpu": "CPU, one thread each", "cuda": "GPU"}.get(device, device)
            hours.append(f"{len(own)} on a {name} ({sum(own) / 3600:.2f} hours)")
        return {
            "cells": f"{len(self.results)}: {', '.join(hours)}",
            "repeats": f"{len(first.repeats)} {kind}",
            "software": f"comes {first.versions['comes']}, {', '.join(software)}",
        }


def make_parts(results: Sequence[Result]) -> list[Part]:
    """Return a part for every experiment, and for everything that one varies."""
    by_part: dict[tuple[str, str | None], list[Result]] = {}
    for result in results:
        by_part.setdefault((result.names.experiment, result.names.sweep), []).append(result)
    return [_make_part(own) for own in by_part.values()]


def _make_part(results: Sequence[Result]) -> Part:
    papers = [result for result in results if is_papers_data(result)]
    others = [result for result in results if not is_papers_data(result)]
    is_sweep = results[0].names.sweep is not None
    metrics = [] if is_sweep else _order_metrics(results)
    return Part(
        results,
        tables=[metric_table(results, metric) for metric in metrics],
        other_tables=[metric_table(results, metric, "sklearn") for metric in metrics],
        beside=[] if is_sweep else beside_paper(results),
        differs=what_differs(papers) if papers else [],
        was_run=what_was_run(others) if others else [],
        costs=list_costs(results),
        label_tables=[] if is_sweep else make_label_tables(results),
    )


def _order_metrics(results: Sequence[Result]) -> list[str]:
    """Return all metrics; for synthetic labels that of the paper comes first."""
    is_synthetic = results[0].spec.folds is None
    return sorted(METRICS, key=lambda name: not (is_synthetic and name == SYNTHETIC_METRIC))


MARKS = (
    "Mean ± standard deviation over repeats. Bold: best. •: the best is significantly better "
    "(paired t-test, 0.05; it needs five repeats at least)."
)
SMALLEST_P = 1e-6  # that tables show
NO_RANKS = "Mean ranks need two methods, and two data sets that every method has a result for."


def to_document(part: Part) -> str:
    """Return what a report says of an experiment, as Markdown."""
    lines = [f"## {part.name}", "; ".join(f"{k}: {v}" for k, v in part.facts.items()) + "."]
    lines.append(_list_data(part))
    if part.sweep:
        lines.append(f"Varied: {part.sweep}.")
        lines += [sweep_to_markdown(part.results, metric) for metric in SWEEP_METRICS]
    else:
        lines.append(MARKS)
        lines += [to_markdown(table) for table in part.tables]
        lines += _list_ranks(part)
        lines += _list_tests(part)
    if part.beside:
        lines += ["### Beside the paper", _list_beside(part.beside)]
    lines += ["### Cost", costs_to_markdown(part.costs)]
    said = {"What differs from the paper": part.differs, "How it was run": part.was_run}
    for title, sentences in said.items():
        if sentences:
            lines += [f"### {title}", "\n".join(f"- {line}" for line in sentences)]
    return "\n\n".join(lines)


def _list_data(part: Part) -> str:
    """Return a row for every data set."""
    lines = ["| data | rows | features | labels | rows without a relevant label | all relevant |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for result in part.data:
        size, degenerate = result.size, result.degenerate
        counts = (size.n, size.d or "images", size.q)
        rows = (degenerate.rows_without_relevant, degenerate.rows_all_relevant)
        cells = (escape_markdown(result.names.data), *counts, *rows)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def _list_ranks(part: Part) -> list[str]:
    """Return the mean ranks of every metric; a dash for one that has none."""
    ranks = [table.ranks for table in part.tables]
    if not any(ranks):
        return [NO_RANKS]
    lines = [
        f"| mean rank | {' | '.join(table.title for table in part.tables)} |",
        f"| --- |{' --- |' * len(part.tables)}",
    ]
    for method in part.tables[0].methods:
        places = ("–" if r is None else f"{r.rank_of(method):.2f}" for r in ranks)
        lines.append(f"| {escape_markdown(method)} | {' | '.join(places)} |")
    chances = ("–" if r is None else show_p(r.friedman_p) for r in ranks)
    lines.append(f"| p (Friedman) | {' | '.join(chances)} |")
    gaps = ("–" if r is None else f"{r.critical_difference:.2f}" for r in ranks)
    lines.append(f"| critical difference | {' | '.join(gaps)} |")
    return ["### Mean ranks", "\n".join(lines)]


def _list_tests(part: Part) -> list[str]:
    """Return the tests of every method against the best."""
    lines = ["| metric | data | method | best minus method | p | p corrected | with Holm |"]
    lines.append("| --- | --- | --- | --- | --- | --- | --- |")
    for table in part.tables:
        for data in table.data:
            for method in table.methods:
                entry = table.entries.get((method, data))
                if entry is None or entry.against_best is None:
                    continue
                test = entry.against_best
                p = " | ".join(map(show_p, (test.p, test.p_corrected, entry.p_holm)))
                where = " | ".join(map(escape_markdown, (data, method)))
                title = METRICS[table.metric].title
                lines.append(f"| {title} | {where} | {test.difference:+.3f} | {p} |")
    return ["### Tests against the best", "\n".join(lines)]


def _list_beside(rows: Sequence[Beside]) -> str:
    """Return our numbers beside the paper's."""
    lines = ["| data | method | metric | here | paper |", "| --- | --- | --- | --- | --- |"]
    lines += [
        f"| {escape_markdown(r.data)} | {r.method} | {r.metric} | "
        f"{r.ours:.3f} ± {r.ours_std:.3f} | {r.paper:.3f} ± {r.paper_std:.3f} |"
        for r in rows
    ]
    return "\n".join(lines)


def show_p(value: float) -> str:
    """Return a p value as tables show it, never as 0; a dash where there is none."""
    if math.isnan(value):
        return "–"
    return "< 1e-06" if value < SMALLEST_P else f"{value:.3g}"


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


REPORT_FILES = ("index.html", "report.md", "tables.tex", "metrics.csv", "labels.csv", "plots")


def write_report(results: Sequence[Result], folder: str | Path, errors: Sequence[str] = ()) -> Path:
    """Write the report of results.

    Parameters
    ----------
    results : list of Result
        As `comes.experiment.results.read_results` returns them.
    folder : path
        An existing report is replaced; a folder that holds anything else is refused.
    errors : list of str
        A line for every task that failed.

    Returns
    -------
    page : Path
        ``index.html`` in the folder, which needs nothing else.

    Examples
    --------
    >>> from comes.experiment.results import read_errors, read_results
    >>> runs = ["runs/smoke"]
    >>> page = write_report(
    ...     read_results(runs), "report", read_errors(runs)
    ... )  # doctest: +SKIP
    >>> write_report([], "report")
    Traceback (most recent call last):
    comes.errors.ComesError: there are no results to report: run `comes bench` first.
    """
    if not results:
        raise ComesError("there are no results to report: run `comes bench` first.")
    results = order_results(results)
    look = Look([result.names.method for result in results])
    parts = make_parts(results)
    figures = {part.slug: draw_figures(part, look) for part in parts}
    with replacing_folder(folder, REPORT_FILES) as temporary:
        (temporary / "plots").mkdir()
        texts = make_texts(results, parts, errors) | {
            "index.html": _make_page(parts, figures, errors)
        }
        for name, text in texts.items():
            (temporary / name).write_text(text, encoding="utf-8")
        for slug, own in figures.items():
            for name, figure in own.items():
                path = temporary / "plots" / f"{slug}-{name}.pdf"
                figure.savefig(path, metadata={"CreationDate": None})
    return Path(folder) / "index.html"


def make_texts(
    results: Sequence[Result], parts: Sequence[Part], errors: Sequence[str]
) -> dict[str, str]:
    """Return the files of a report that hold no plots: Markdown, LaTeX and all numbers."""
    failed = []
    if errors:
        failed = ["Not finished:", "\n".join(f"- {escape_markdown(error)}" for error in errors)]
    labels = list(list_label_numbers(results))
    by_label = {"labels.csv": pd.DataFrame(labels).to_csv(index=False, lineterminator="\n")}
    return (by_label if labels else {}) | {
        "report.md": "\n\n".join(["# Report", *failed, *map(to_document, parts)]) + "\n",
        "tables.tex": "\n\n".join(map(_list_latex, parts)) + "\n",
        "metrics.csv": pd.DataFrame(_list_numbers(results)).to_csv(
            index=False, lineterminator="\n"
        ),
    }


def draw_figures(part: Part, look: Look) -> dict[str, Figure]:
    """Return the plots of a part by name; names are fit for files."""
    if part.sweep:
        figures = {m: plot_sweep(part.results, m, look) for m in SWEEP_METRICS}
        repeats = [repeat for result in part.results for repeat in result.repeats]
        if part.sweep == "train_rows" and all(r.true_risk is not None for r in repeats):
            figures["estimation-error"] = plot_estimation_error(part.results, look)
        return figures
    figures = {}
    for table in part.tables:
        figures[f"dots-{table.metric}"] = plot_dots(table, part.results, look)
        if table.ranks is not None:
            ranks = plot_ranks(table.ranks, look=look)
            figures[f"ranks-{table.metric}"] = figure_of(ranks)
    figures["risk"] = plot_curves(part.results, look)
    held = [r for r in part.results if all(repeat.held_out for repeat in r.repeats)]
    if held:
        figures["held-out"] = plot_curves(held, look, held_out=True)
    return figures


def _list_numbers(results: Sequence[Result]) -> Iterator[dict[str, Any]]:
    """Yield a row for every number of every repeat; a missing metric is NaN."""
    for result in results:
        names = result.names
        where: dict[str, Any] = asdict(names) | {"at": result.at}
        pml = {metric: result.values(metric) for metric in METRICS}
        sklearn = {metric: result.values(metric, "sklearn") for metric in METRICS}
        for k, repeat in enumerate(result.repeats):
            found: dict[tuple[str, str], float] = {}
            for metric in METRICS:
                found["pml", metric] = pml[metric][k]
                found["sklearn", metric] = sklearn[metric][k]
            found["zero", "hamming_loss"] = repeat.hamming_loss.zero
            found["minmax", "hamming_loss"] = repeat.hamming_loss.minmax
            for (convention, metric), value in found.items():
                number = {"repeat": k, "convention": convention, "metric": metric, "value": value}
                yield where | number


def _list_latex(part: Part) -> str:
    """Return the tables of a part as LaTeX."""
    head = f"% {part.name}: needs \\usepackage{{booktabs}}"
    return "\n\n".join([head, *map(to_latex, part.tables)])


def _make_page(
    parts: Sequence[Part], figures: Mapping[str, Mapping[str, Figure]], errors: Sequence[str]
) -> str:
    """Return the page, with its plots inside."""
    text = files("comes.report").joinpath("page.html.jinja").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters |= {"p": show_p, "number": show_number}
    svgs = {
        slug: {name: Markup(as_svg(figure, f"{slug}-{name}")) for name, figure in own.items()}
        for slug, own in figures.items()
    }
    return environment.from_string(text).render(
        parts=parts,
        svgs=svgs,
        errors=errors,
        metrics=METRICS,
        sweep_metrics=SWEEP_METRICS,
        sweep_titles=[METRICS[name].title for name in SWEEP_METRICS],
        marks=MARKS,
        no_ranks=NO_RANKS,
        cost_titles=COST_TITLES,
    )
