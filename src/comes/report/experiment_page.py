"""The report on experiments: one page with summary, tables and plots; LaTeX and all numbers."""

import math
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from comes.errors import ComesError
from comes.experiment.config import SweepKey
from comes.experiment.results import Result
from comes.files import replacing_folder
from comes.methods import method_of_label, table_rank
from comes.metrics import METRICS, Convention
from comes.report.model_page import render_page
from comes.report.paper import beside_paper, describe_run, list_notes
from comes.report.plots import (
    INK,
    STYLE,
    Look,
    as_svg,
    escape_name,
    figure_of,
    plot_ranks,
    plot_risks,
)
from comes.significance import (
    LEVEL,
    MIN_REPEATS,
    PairedTest,
    Ranks,
    compare_paired,
    holm,
    rank_methods,
    standard_deviation,
)

# Data sets that are not here come after, by name.
DATA_ORDER = ("mirflickr", "music_emotion", "music_style", "yeastbp", "yeastcc", "yeastmf")
DIGITS = 6  # of a stored metric: what differs by less is equal
# What a summary, and a report on an experiment that varies something, shows.
MAIN_METRICS = ("average_precision", "ranking_loss", "hamming_loss")
SYNTHETIC_METRIC = "mean_average_precision"  # what the paper shows of synthetic labels
CONVENTIONS: tuple[Convention, ...] = ("pml", "sklearn")
LABEL_METRIC = "average_precision"  # of labels, on the page; the file has all
MOST_LABELS = 100  # on the page
SMALLEST_P = 1e-6  # that tables show
MARKS = (
    "Mean ± standard deviation over repeats. Bold: best. •: the best is significantly better "
    "(paired t-test, 0.05; it needs five repeats at least). †: also by the test corrected for "
    "shared training rows (Nadeau and Bengio). ‡: also with Holm's method over all methods."
)
LOW_COVERAGE = (
    "Coverage can be below 0: a row without a relevant label has depth 0, one less than the first "
    "place, which counts 0."
)
NO_RANKS = "Mean ranks need two methods, and two data sets that every method has a result for."
AXIS: dict[SweepKey, str] = {
    "prior_noise": "σ of the noise on class priors",
    "flood": "β / floor of the risk",
    "train_rows": "rows trained on",
}
REPORT_FILES = ("index.html", "tables.tex", "metrics.csv", "labels.csv", "plots")


def order_results(results: Iterable[Result]) -> list[Result]:
    """Return results by experiment, data set, method and value of a sweep, in the paper's order."""

    def place(result: Result) -> tuple[Any, ...]:
        data = result.names.data
        known = [k for k, name in enumerate(DATA_ORDER) if data.lower().startswith(name)]
        rank = known[0] if known else len(DATA_ORDER)
        return result.names.experiment, rank, data, table_rank(result.names.method), result.at or 0

    return sorted(results, key=place)


def by_data(results: Iterable[Result]) -> dict[str, list[Result]]:
    """Return the results on each data set."""
    found: dict[str, list[Result]] = {}
    for result in results:
        found.setdefault(result.names.data, []).append(result)
    return found


def list_means(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return the means over repeats, a row for each result; NaN where one lacks a metric."""
    rows = []
    metrics = dict.fromkeys(metric for result in results for metric in result.repeats[0].pml)
    for result in order_results(results):
        names = result.names
        at: dict[str, Any] = {} if names.sweep is None else {names.sweep: result.at}
        means = {metric: float(result.values(metric).mean()) for metric in metrics}
        rows.append({"data": names.data, "method": names.method} | at | means)
    return rows


def show_number(value: float) -> str:
    """Return a mean as tables show it; a dash where there is none."""
    return "–" if math.isnan(value) else f"{value:.3f}"


def show_seconds(value: float) -> str:
    """Return seconds with three digits that count."""
    return "–" if math.isnan(value) else f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def show_p(value: float) -> str:
    """Return a p value as tables show it, never as 0; a dash where there is none."""
    if math.isnan(value):
        return "–"
    return "< 1e-06" if value < SMALLEST_P else f"{value:.3g}"


def title_of(metric: str) -> str:
    """Return the name of a metric, with an arrow that says whether higher is better."""
    return f"{METRICS[metric].title} {'↑' if METRICS[metric].higher_is_better else '↓'}"


@dataclass(frozen=True)
class Table:
    """A table of text, as the page shows it."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    n_names: int = 1  # columns that name a row
    bold: Collection[tuple[int, int]] = ()  # row and column of cells
    foot: Sequence[Sequence[str]] = ()


@dataclass(frozen=True)
class Entry:
    """One number of a table: its spread over repeats, and its test against the best."""

    mean: float
    std: float  # over repeats; 0 with one
    is_best: bool  # as tables show it
    against_best: PairedTest | None = None  # the best minus this; None for the best
    p_holm: float = math.nan  # of the corrected test, over all methods of the data set

    @property
    def text(self) -> str:
        """Mean and standard deviation."""
        return f"{self.mean:.3f} ± {self.std:.3f}"

    @property
    def marks(self) -> str:
        """By which tests the best is significantly better; each is stricter than the one before."""
        if self.against_best is None:
            return ""
        p = {"•": self.against_best.p, "†": self.against_best.p_corrected, "‡": self.p_holm}
        return "".join(mark for mark, value in p.items() if value < LEVEL)


@dataclass(frozen=True)
class MetricTable:
    """A metric of every method on every data set of one experiment."""

    experiment: str
    metric: str
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

    def shown(self) -> Table:
        """Return the table of the page: best in bold, every mark, and mean ranks."""
        rows, bold = [], set()
        for k, method in enumerate(self.methods):
            rows.append([method])
            for place, entry in enumerate(self.row(method), start=1):
                rows[-1].append("–" if entry is None else f"{entry.text} {entry.marks}".strip())
                if entry is not None and entry.is_best:
                    bold.add((k, place))
            if self.ranks is not None:
                rows[-1].append(f"{self.ranks.rank_of(method):.2f}")
        head = ["method", *self.data, *(["mean rank"] if self.ranks else [])]
        return Table(self.title, head, rows, bold=bold)

    def tests(self) -> Table:
        """Return the tests of every method against the best of its data set."""
        rows = []
        for data in self.data:
            for method in self.methods:
                entry = self.entries.get((method, data))
                if entry is not None and (test := entry.against_best) is not None:
                    p = map(show_p, (test.p, test.p_corrected, entry.p_holm))
                    rows.append([data, method, f"{test.difference:+.4f}", *p])
        head = ["data", "method", "best minus method", "p", "p corrected", "with Holm"]
        return Table(f"{self.title}: every method against the best of its data set", head, rows, 2)


def metric_table(results: Sequence[Result], metric: str) -> MetricTable:
    """Gather a metric of the results of one experiment, and test every method against the best."""
    results = order_results(results)
    methods = sorted({result.names.method for result in results}, key=table_rank)
    entries: dict[tuple[str, str], Entry] = {}
    data = by_data(results)
    for name, own in data.items():
        found = zip(own, _make_entries(own, metric), strict=True)
        entries |= {(result.names.method, name): entry for result, entry in found if entry}
    means = [[entries[m, d].mean if (m, d) in entries else math.nan for d in data] for m in methods]
    higher = METRICS[metric].higher_is_better
    ranks = rank_methods(methods, np.array(means), higher_is_better=higher)
    return MetricTable(results[0].names.experiment, metric, methods, list(data), entries, ranks)


def _make_entries(results: Sequence[Result], metric: str) -> list[Entry | None]:
    """Return the entries of the methods on one data set; None for a result without the metric."""
    values = [result.values(metric) for result in results]
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
    is_first = means == means[best]
    adjusted = holm([math.nan if is_first[k] else t.p_corrected for k, t in enumerate(tests)])
    return [
        Entry(
            mean=float(mean),
            std=standard_deviation(own),
            is_best=show_number(mean) == show_number(means[best]),
            against_best=None if is_first[k] else tests[k],
            p_holm=float(adjusted[k]),
        )
        if math.isfinite(mean)
        else None
        for k, (mean, own) in enumerate(zip(means, values, strict=True))
    ]


def to_latex(table: MetricTable) -> str:
    r"""Return the table as the paper sets it, with a caption; needs the package booktabs."""
    # mAP keeps its letters.
    title = [word.title() if word.islower() else word for word in table.title.split()[:-1]]
    name, way = " ".join(title), _escape_latex(table.title[-1])
    label = "".join(c if c.isalnum() else "-" for c in f"{table.experiment}-{table.metric}")
    note = f" {LOW_COVERAGE}" if table.metric == "coverage" else ""
    caption = _escape_latex(f"in the experiment {table.experiment}. {MARKS}{note}")
    lines = [
        "\\begin{table}",
        "\\centering",
        f"\\caption{{{name} ({way}) {caption}}}",
        f"\\label{{tab:{label}}}",
        f"\\begin{{tabular}}{{l{'l' * len(table.data)}}}",
        "\\toprule",
        f"\\multicolumn{{{len(table.data) + 1}}}{{c}}{{\\textbf{{{name} {way}}}}} \\\\",
        "\\midrule",
        f"Approach & {' & '.join(map(_head_in_latex, table.data))} \\\\",
    ]
    group = None
    for method in table.methods:
        named = method_of_label(method)
        is_ours = named is not None and named.is_ours
        if group is not is_ours:
            lines.append("\\midrule")
            group = is_ours
        row = " & ".join(map(_show_in_latex, table.row(method)))
        shown = method if named is None else named.title + method.removeprefix(named.name)
        lines.append(f"{_escape_latex(shown)} & {row} \\\\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", "\\end{table}"])


def _head_in_latex(name: str) -> str:
    """Return the name of a data set over its column, a line for each part of it."""
    parts = [_escape_latex(part) for part in name.split(", ")]
    text = parts[0] if len(parts) == 1 else "\\shortstack{" + "\\\\".join(parts) + "}"
    return f"\\multicolumn{{1}}{{c}}{{{text}}}"


def _show_in_latex(entry: Entry | None) -> str:
    if entry is None:
        return "--"
    text = _escape_latex(entry.text)
    text = f"\\textbf{{{text}}}" if entry.is_best else text
    marks = " ".join(LATEX[mark].strip("$") for mark in entry.marks)
    return f"{text}$^{{{marks}}}$" if marks else text


LATEX = {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"}
LATEX |= {character: f"\\{character}" for character in "&%$#_{}"}
LATEX |= {"±": "$\\pm$", "↑": "$\\uparrow$", "↓": "$\\downarrow$"}
LATEX |= {"•": "$\\bullet$", "†": "$\\dagger$", "‡": "$\\ddagger$"}


def _escape_latex(text: str) -> str:
    """Return text that LaTeX shows as it is."""
    return "".join(LATEX.get(character, character) for character in text)


def cost_table(results: Sequence[Result]) -> Table:
    """Return what every result cost; a dash where it does not say."""
    rows = []
    for result in results:
        seconds = [math.nan if r.seconds is None else r.seconds for r in result.repeats]
        memory = (result.peak_memory, result.peak_device_memory)
        rows.append(
            [
                result.names.data + ("" if result.at is None else f", {result.at:g}"),
                result.names.method,
                f"{np.mean([len(repeat.risk) for repeat in result.repeats]):.0f}",
                show_seconds(float(np.mean(seconds))),
                show_seconds(result.seconds),
                *("–" if m is None else f"{m:.0f}" for m in memory),
                _device(result),
            ]
        )
    title = "Trainings that were run as one share their time; an early result says no memory"
    head = ["data", "method", "epochs", "seconds per training", "seconds in all"]
    head += ["peak memory (MiB)", "on the GPU (MiB)", "device"]
    return Table(title, head, rows, 2)


def _device(result: Result) -> str:
    return "GPU" if result.device.startswith("cuda") else result.device.upper()


def label_tables(results: Sequence[Result]) -> Iterator[Table]:
    """Yield a table of every data set whose results have metrics of labels, the hardest first."""
    for data, of_data in by_data(results).items():
        own = [(result.names.method, result.label_means(LABEL_METRIC)) for result in of_data]
        means = {method: found for method, found in own if found is not None}
        if means:
            table = pd.DataFrame(means)
            order = table.max(axis=1).sort_values(kind="stable", na_position="first").index
            shown = table.loc[order[:MOST_LABELS]].itertuples()
            rows = [[str(label), *map(show_number, numbers)] for label, *numbers in shown]
            title = (
                f"{data}: average precision over rows, mean over repeats, the hardest label first"
            )
            if len(rows) < len(table):
                title += f": {len(rows)} of {len(table)}, labels.csv has all"
            yield Table(title, ["label", *means], rows)


class Column(NamedTuple):
    """A column of the summary."""

    title: str
    cells: list[str]
    best: Collection[int] = ()  # rows in bold
    foot: tuple[str, str] = ("", "")


def summarise(results: Sequence[Result]) -> tuple[Table, list[str]]:
    """Return the methods of an experiment, the best first, and what can be concluded."""
    sweep, is_synthetic = results[0].names.sweep, results[0].spec.folds is None
    metrics = (SYNTHETIC_METRIC, *MAIN_METRICS[:2]) if is_synthetic else MAIN_METRICS
    if sweep is not None:  # a data set at a value is a case
        results = [
            replace(r, names=replace(r.names, data=f"{r.names.data}, {r.at:g}", sweep=None))
            for r in results
        ]
    tables = [metric_table(results, metric) for metric in metrics]
    first = tables[0]
    if first.ranks is not None:
        methods = first.ranks.methods
    else:  # one without a number comes last
        means = {m: [e.mean for e in first.row(m) if e] or [-1.0] for m in first.methods}
        methods = sorted(first.methods, key=lambda method: -np.mean(means[method]))
    columns = [column for table in tables for column in _summary_columns(table, methods)]
    columns += _cost_columns(results, methods)
    rows = [[method, *(c.cells[k] for c in columns)] for k, method in enumerate(methods)]
    has_tests = sweep is None and any(table.ranks for table in tables)
    names = ("critical difference", "p (Friedman)") if has_tests else ()
    foot = [[name, *(c.foot[k] for c in columns)] for k, name in enumerate(names)]
    bold = {(row, place) for place, c in enumerate(columns, start=1) for row in c.best}
    head = ["method", *(column.title for column in columns)]
    table = Table("The methods, the best first", head, rows, bold=bold, foot=foot)
    return table, _conclude(tables, results, sweep)


def _summary_columns(table: MetricTable, methods: Sequence[str]) -> Iterator[Column]:
    """Yield mean ranks and wins; on one data set the metric itself."""
    ranks, n_data, title = table.ranks, len(table.data), METRICS[table.metric].title
    if ranks is not None:
        cells = [f"{ranks.rank_of(method):.2f}" for method in methods]
        foot = f"{ranks.critical_difference:.2f}", show_p(ranks.friedman_p)
        best = [k for k, cell in enumerate(cells) if cell == min(cells, key=float)]
        yield Column(f"mean rank by {title}", cells, best, foot)
    elif n_data == 1:
        entries = [table.row(method)[0] for method in methods]
        best = [k for k, entry in enumerate(entries) if entry is not None and entry.is_best]
        yield Column(table.title, ["–" if e is None else e.text for e in entries], best)
    if n_data > 1:
        wins = [sum(e is not None and e.is_best for e in table.row(method)) for method in methods]
        cells = [f"{count} of {n_data}" for count in wins]
        yield Column(f"best by {title}", cells)


def _cost_columns(results: Sequence[Result], methods: Sequence[str]) -> Iterator[Column]:
    """Yield the seconds of all repeats on the data sets that every method has."""
    rows = [(result.names.data, result.names.method, result.seconds) for result in results]
    frame = pd.DataFrame(rows, columns=["data", "method", "seconds"])
    seconds = (
        frame.pivot_table("seconds", "data", "method").dropna().sum(min_count=1)[list(methods)]
    )
    yield Column("seconds", [show_seconds(value) for value in seconds])
    times = seconds / seconds.min()
    yield Column("times the fastest", ["–" if math.isnan(x) else f"{x:.1f}" for x in times])


def _conclude(
    tables: Sequence[MetricTable], results: Sequence[Result], sweep: str | None
) -> list[str]:
    """Return in sentences what the tests of a summary say, and what they cannot say."""
    n_repeats = min(len(result.repeats) for result in results)
    data = {result.names.data for result in results}
    sources = {result.spec.data.name for result in results}
    devices = sorted({_device(result) for result in results})
    said = {
        "There is one method, and nothing to compare it with.": len(tables[0].methods) == 1,
        f"A case is a data set at a value of {sweep}. Cases share their rows, so that no test "
        "over them is made.": sweep is not None,
        f"{n_repeats} repeats are too few for a test on a single data set, which needs five: "
        "differences in a column may be chance.": n_repeats < MIN_REPEATS,
        "Label seeds share their rows: they show what other candidates and initial weights "
        "change, and not what other data would.": results[0].spec.label_seeds is not None,
        f"{len(data)} data sets come from {len(sources)}: tests over data sets take all as "
        "independent, and are too sure.": sweep is None and len(sources) < len(data),
        f"Seconds are of different devices, {' and '.join(devices)}: do not compare them.": len(
            devices
        )
        > 1,
    }
    tested = tables if sweep is None and len(tables[0].methods) > 1 else []
    return [*map(_conclude_metric, tested), *(text for text, holds in said.items() if holds)]


def _conclude_metric(table: MetricTable) -> str:
    """Return which methods the best one can be told from."""
    by, ranks = f"By {METRICS[table.metric].title}", table.ranks
    found = {m: entry for m in table.methods if (entry := table.row(m)[0]) is not None}
    if ranks is not None:
        least, gap, p = ranks.mean_rank[0], ranks.critical_difference, show_p(ranks.friedman_p)
        text = f"{by}, {ranks.methods[0]} has the best mean rank: {least:.2f} over "
        text += f"{ranks.n_data} data sets."
        if ranks.friedman_p >= LEVEL:
            return f"{text} The order may be chance (Friedman's test, p {p})."
        others = zip(ranks.methods[1:], ranks.mean_rank[1:], strict=True)
        is_apart = {method: rank - least > gap for method, rank in others}
        test = f"Nemenyi's test, critical difference {gap:.2f}"
    elif len(table.data) > 1 or not found:
        return f"{by}: {NO_RANKS}"
    else:
        best = ", ".join(method for method, entry in found.items() if entry.is_best)
        text = f"{by}, the best on {table.data[0]} is {best}."
        is_apart = {m: "‡" in e.marks for m, e in found.items() if not e.is_best}
        if all(math.isnan(found[method].p_holm) for method in is_apart):
            return text
        test = "corrected test with Holm's method"
    apart = [method for method, is_far in is_apart.items() if is_far]
    close = [method for method, is_far in is_apart.items() if not is_far]
    if not apart:
        return f"{text} It does not differ significantly from any other ({test})."
    rest = f", but not from {_list_methods(close)}" if close else ""
    return f"{text} It differs significantly from {_list_methods(apart)}{rest} ({test})."


def _list_methods(methods: Sequence[str], most: int = 4) -> str:
    more = f" and {len(methods) - most} more" if len(methods) > most else ""
    return f"{', '.join(methods[:most])}{more}"


def label_numbers(results: Sequence[Result]) -> Iterator[dict[str, Any]]:
    """Yield a row for every metric of every label of every repeat."""
    for result in results:
        names = result.names
        where: dict[str, Any] = {"experiment": names.experiment, "data": names.data}
        where |= {"method": names.method, "at": result.at}
        for k, repeat in enumerate(result.repeats):
            for metric, values in (repeat.by_label or {}).items():
                for label, value in zip(result.label_names or (), values, strict=True):
                    yield where | {"repeat": k, "label": label, "metric": metric, "value": value}


def metric_numbers(results: Sequence[Result]) -> Iterator[dict[str, Any]]:
    """Yield a row for every number of every repeat; a missing metric is NaN."""
    for result in results:
        where: dict[str, Any] = asdict(result.names) | {"at": result.at}
        values = {
            (way, metric): result.values(metric, way) for metric in METRICS for way in CONVENTIONS
        }
        for k, repeat in enumerate(result.repeats):
            found: dict[tuple[str, str], float] = {place: own[k] for place, own in values.items()}
            cuts = asdict(repeat.hamming_loss)
            found |= {(way, "hamming_loss"): value for way, value in cuts.items()}
            for (way, metric), value in found.items():
                yield where | {"repeat": k, "convention": way, "metric": metric, "value": value}


@dataclass(frozen=True)
class Part:
    """What the report says of one experiment, or of what one varies."""

    results: Sequence[Result]

    @property
    def name(self) -> str:
        """Name of the experiment."""
        return self.results[0].names.experiment

    @property
    def sweep(self) -> SweepKey | None:
        """What the experiment varies."""
        return self.results[0].names.sweep

    @property
    def slug(self) -> str:
        """A name for files and anchors; unique within the report."""
        text = f"{self.name}-{self.sweep}" if self.sweep else self.name
        slug = "".join(c if c.isalnum() or c in "-_" else "-" for c in text)
        return slug if slug == text else f"{slug}-{zlib.crc32(text.encode()):08x}"

    @cached_property
    def tables(self) -> list[MetricTable]:
        """A table of every metric, none where something varies."""
        is_synthetic = self.results[0].spec.folds is None
        metrics = [] if self.sweep else METRICS
        order = sorted(metrics, key=lambda name: not (is_synthetic and name == SYNTHETIC_METRIC))
        return [metric_table(self.results, metric) for metric in order]

    @property
    def data(self) -> Table:
        """The data sets, and the rows that conventions of metrics treat differently."""
        rows = []
        for result in {result.names.data: result for result in self.results}.values():
            size, degenerate = result.size, result.degenerate
            counts = (size.n, size.d or "images", size.q)
            empty = (degenerate.rows_without_relevant, degenerate.rows_all_relevant)
            rows.append([result.names.data, *map(str, (*counts, *empty))])
        head = ["data", "rows", "features", "labels", "rows without a relevant label"]
        title = "Data, and the rows that conventions of metrics treat differently"
        return Table(title, [*head, "all relevant"], rows)

    @property
    def values(self) -> Table:
        """The means at every value of what varies."""
        rows = [
            [row["data"], row["method"], f"{row[str(self.sweep)]:g}"]
            + [show_number(row.get(metric, math.nan)) for metric in MAIN_METRICS]
            for row in list_means(self.results)
        ]
        head = ["data", "method", str(self.sweep), *map(title_of, MAIN_METRICS)]
        return Table("Means over repeats", head, rows, 2)

    @property
    def beside(self) -> Table | None:
        """Our numbers beside the paper's, where it has the same."""
        rows = [] if self.sweep else beside_paper(self.results)
        head = ["data", "method", "metric", "here", "paper", "here minus paper"]
        return Table("Results here and in the paper", head, rows, 3) if rows else None

    @property
    def settings(self) -> Table:
        """How it was run, and what the paper says, where it has one of the data sets."""
        rows = describe_run(self.results)
        head = ["", "here", "paper"][: max(map(len, rows))]
        return Table("How it was run", head, rows)


def make_parts(results: Sequence[Result]) -> list[Part]:
    """Return a part for every experiment, and for everything that one varies."""
    by_part: dict[tuple[str, str | None], list[Result]] = {}
    for result in results:
        by_part.setdefault((result.names.experiment, result.names.sweep), []).append(result)
    return [Part(own) for own in by_part.values()]


@rc_context(STYLE)
def plot_dots(table: MetricTable, results: Sequence[Result], look: Look) -> Figure:
    """Draw every repeat of every method as a dot, a panel for each data set."""
    height = 0.22 * len(table.methods) + 0.9
    figure, panels = _make_panels(results, height, sharey=True)
    for axes, own in panels:
        for result in own:
            values = result.values(table.metric)
            place = len(table.methods) - 1 - table.methods.index(result.names.method)
            dots = look(result.names.method) | {"linestyle": "", "ms": 4, "alpha": 0.7, "mew": 0}
            axes.plot(values, np.full(len(values), place), **dots)
            axes.plot([values.mean()] * 2, [place - 0.35, place + 0.35], color=INK, lw=1)
        axes.set_yticks(range(len(table.methods)), [escape_name(m) for m in table.methods[::-1]])
    figure.supxlabel(table.title, fontsize=9)
    return figure


@rc_context(STYLE)
def plot_curves(results: Sequence[Result], look: Look) -> Figure:
    """Draw mean risks during training, and scores of held-out rows, a panel for each data set."""
    figure, panels = _make_panels(results, height=2.2)
    for axes, own in panels:
        histories = {}
        for result in own:
            length = min(len(repeat.risk) for repeat in result.repeats)
            risk = np.mean([repeat.risk[:length] for repeat in result.repeats], axis=0)
            held = [repeat.held_out[:length] for repeat in result.repeats if repeat.held_out]
            score = np.mean(held, axis=0) if len(held) == len(result.repeats) else ()
            history = {"risk": list(risk), "validation": score, "best_epoch": None}
            histories[result.names.method] = SimpleNamespace(**history)
        plot_risks(histories, relative=True, look=look, axes=axes).legend().remove()
        axes.set_ylabel("")
    panels[0][0].set_ylabel("over that of epoch 1")
    _draw_legend(figure)
    return figure


@rc_context(STYLE)
def plot_sweep(results: Sequence[Result], metric: str, look: Look) -> Figure:
    """Draw a metric against what the experiment varies, with a band of one standard deviation."""
    figure, panels = _make_panels(results, height=2.4)
    for axes, of_data in panels:
        for method in sorted({result.names.method for result in results}, key=table_rank):
            own = [result for result in of_data if result.names.method == method]
            at = [float(result.at or 0) for result in own]
            mean = np.array([result.values(metric).mean() for result in own])
            std = np.array([standard_deviation(result.values(metric)) for result in own])
            if np.isfinite(mean).any():
                line = look(method) | {"ms": 4, "lw": 1.3}
                axes.plot(at, mean, label=escape_name(method), **line)
                colour = line["color"]
                axes.fill_between(at, mean - std, mean + std, color=colour, alpha=0.15, lw=0)
        sweep = results[0].names.sweep
        assert sweep is not None
        axes.set_xlabel(AXIS[sweep])
        if sweep == "train_rows":
            axes.set_xscale("log")
    panels[0][0].set_ylabel(title_of(metric))
    _draw_legend(figure)
    return figure


def _make_panels(
    results: Sequence[Result], height: float, *, sharey: bool = False
) -> tuple[Figure, list[tuple[Axes, list[Result]]]]:
    """Return a figure with a panel for the results on each data set, four in a row at most."""
    data = by_data(results)
    across = min(len(data), 4)
    down = math.ceil(len(data) / across)
    size = (max(7.0, 2.4 * across), height * down + 0.3)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(down, across, squeeze=False, sharey=sharey).ravel()
    for axes, name in zip(grid, data, strict=False):
        axes.set_title(escape_name(name), fontsize=9)
    for axes in grid[len(data) :]:
        axes.set_visible(False)
    return figure, list(zip(grid, data.values(), strict=False))


def _draw_legend(figure: Figure) -> None:
    """Name every line of every panel once, in as many columns as fit."""
    found: dict[str, Any] = {}
    for axes in figure.axes:
        handles, labels = axes.get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
    if found:
        longest = max(map(len, found))
        columns = max(1, min(5, int(figure.get_figwidth() / (0.45 + 0.075 * longest))))
        figure.set_figheight(figure.get_figheight() + 0.2 * math.ceil(len(found) / columns))
        figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=columns)


def draw_figures(part: Part, look: Look) -> dict[str, Figure]:
    """Return the plots of a part by name; names are fit for files."""
    if part.sweep:
        return {metric: plot_sweep(part.results, metric, look) for metric in MAIN_METRICS}
    figures = {}
    for table in part.tables:
        figures[f"dots-{table.metric}"] = plot_dots(table, part.results, look)
        if table.ranks is not None:
            ranks = plot_ranks(table.ranks, look=look)
            figures[f"ranks-{table.metric}"] = figure_of(ranks)
    figures["risk"] = plot_curves(part.results, look)
    return figures


def write_report(results: Sequence[Result], folder: str | Path, errors: Sequence[str] = ()) -> Path:
    """Write the report of results, and a line for every task that failed; return its page.

    An existing report is replaced; a folder that holds anything else is refused.
    """
    if not results:
        raise ComesError("there are no results to report: run `comes bench` first.")
    results = order_results(results)
    look = Look([result.names.method for result in results])
    parts = make_parts(results)
    figures = {part.slug: draw_figures(part, look) for part in parts}
    with replacing_folder(folder, (*REPORT_FILES, "report.md")) as temporary:  # early ones had it
        (temporary / "plots").mkdir()
        page = _make_page(parts, figures, errors)
        for name, text in (make_texts(results, parts) | {"index.html": page}).items():
            (temporary / name).write_text(text, encoding="utf-8")
        for slug, own in figures.items():
            for name, figure in own.items():
                path = temporary / "plots" / f"{slug}-{name}.pdf"
                figure.savefig(path, metadata={"CreationDate": None})
    return Path(folder) / "index.html"


def make_texts(results: Sequence[Result], parts: Sequence[Part]) -> dict[str, str]:
    """Return the files of a report that hold no plots: LaTeX and all numbers."""
    tables = []
    for part in parts:
        tables += [f"% {part.name}: needs \\usepackage{{booktabs}}", *map(to_latex, part.tables)]
    texts = {"tables.tex": "\n\n".join(tables) + "\n"}
    numbers = {"metrics.csv": metric_numbers(results), "labels.csv": label_numbers(results)}
    for name, rows in numbers.items():
        frame = pd.DataFrame(rows)
        if len(frame):
            texts[name] = frame.to_csv(index=False, lineterminator="\n")
    return texts


def _make_page(
    parts: Sequence[Part], figures: Mapping[str, Mapping[str, Figure]], errors: Sequence[str]
) -> str:
    """Return the page, with its plots inside."""
    svgs = {
        slug: {name: Markup(as_svg(figure, f"{slug}-{name}")) for name, figure in own.items()}
        for slug, own in figures.items()
    }
    return render_page(
        "page.html.jinja",
        parts=parts,
        svgs=svgs,
        errors=errors,
        metrics=METRICS,
        main_metrics=MAIN_METRICS,
        marks=MARKS,
        low_coverage=LOW_COVERAGE,
        no_ranks=NO_RANKS,
        cost_table=cost_table,
        label_tables=label_tables,
        summarise=summarise,
        notes=list_notes,
        p=show_p,
    )
