"""Tables of one metric: methods down, data sets across, as Markdown and LaTeX."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from comes.methods import method_of_label, table_rank
from comes.metrics import METRICS, Convention
from comes.report.ordering import order_results
from comes.results import Result
from comes.significance import (
    LEVEL,
    PairedTest,
    Ranks,
    compare_paired,
    holm,
    rank_methods,
    standard_deviation,
)

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
    >>> from comes.results import (
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
