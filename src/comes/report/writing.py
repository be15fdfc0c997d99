"""Write a report: Markdown, LaTeX, a table of all numbers, plots, and one page with all of it."""

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup
from matplotlib.figure import Figure

from comes.errors import ComesError
from comes.files import replacing_folder
from comes.metrics import METRICS
from comes.report.plots import (
    Look,
    as_svg,
    plot_curves,
    plot_dots,
    plot_estimation_error,
    plot_ranks,
    plot_sweep,
)
from comes.report.published import Beside, beside_paper, what_differs
from comes.report.runs import Cell
from comes.report.tables import (
    MetricTable,
    metric_table,
    plain,
    sweep_to_markdown,
    to_latex,
    to_markdown,
)

REPORT_FILES = ("index.html", "report.md", "tables.tex", "metrics.csv", "plots")
SWEEP_METRICS = ("average_precision", "ranking_loss", "hamming_loss")
MARKS = (
    "Mean ± standard deviation over repeats. Bold: best. •: the best is significantly better "
    "(paired t-test, 0.05)."
)

NO_RANKS = "Mean ranks need two methods, and two data sets that every method has a result for."


@dataclass
class Part:
    """What the report says of one experiment."""

    cells: list[Cell]
    tables: list[MetricTable] = field(default_factory=list)  # none where something is varied
    other_tables: list[MetricTable] = field(default_factory=list)  # in the other convention
    beside: list[Beside] = field(default_factory=list)
    differs: list[str] = field(default_factory=list)
    figures: dict[str, Figure] = field(default_factory=dict)  # by a name that is one of a file

    @property
    def name(self) -> str:
        """Name of the experiment."""
        return self.cells[0].experiment

    @property
    def slug(self) -> str:
        """A name that can be one of a file and of a place in a page, and is no other part's."""
        text = f"{self.name}-{self.sweep}" if self.sweep else self.name
        slug = "".join(c if c.isalnum() or c in "-_" else "-" for c in text)
        return slug if slug == text else f"{slug}-{zlib.crc32(text.encode()):08x}"

    @property
    def sweep(self) -> str:
        """The key that the experiment varies."""
        return self.cells[0].sweep

    @property
    def data(self) -> list[Cell]:
        """One cell of every data set, for what is known of its rows."""
        return list({cell.data: cell for cell in self.cells}.values())

    @property
    def facts(self) -> dict[str, str]:
        """Return what was run, and where."""
        first = self.cells[0]
        kind = "folds" if "folds" in first.spec else "label seeds"
        software = sorted({f"torch {cell.versions['torch']}" for cell in self.cells})
        hours = []
        for device in sorted({cell.device.partition(":")[0] for cell in self.cells}):
            own = [cell.seconds for cell in self.cells if cell.device.startswith(device)]
            name = {"cpu": "CPU, one thread each", "cuda": "GPU"}.get(device, device)
            hours.append(f"{len(own)} on a {name} ({sum(own) / 3600:.2f} hours)")
        return {
            "cells": f"{len(self.cells)}: {', '.join(hours)}",
            "repeats": f"{len(first.repeats)} {kind}",
            "software": f"comes {first.versions['comes']}, {', '.join(software)}",
        }


def write_report(cells: Sequence[Cell], folder: str | Path, errors: Sequence[str] = ()) -> Path:
    """Write the report of results.

    Parameters
    ----------
    cells : list of Cell
        As `read_runs` gives them.
    folder : path
        A report that is there is replaced; a folder that holds anything else is refused.
    errors : list of str
        A line for every task that failed.

    Returns
    -------
    page : Path
        ``index.html`` in the folder, which needs nothing else.
    """
    if not cells:
        raise ComesError("there are no results to report: run `comes bench` first.")
    look = Look([cell.method for cell in cells])
    names = dict.fromkeys((cell.experiment, cell.sweep) for cell in cells)
    parts = [_part([c for c in cells if (c.experiment, c.sweep) == name], look) for name in names]
    failed = ["Not finished:", "\n".join(f"- {plain(error)}" for error in errors)] if errors else []
    with replacing_folder(folder, REPORT_FILES) as temporary:
        (temporary / "plots").mkdir()
        _frame(cells).to_csv(temporary / "metrics.csv", index=False, lineterminator="\n")
        texts = {
            "report.md": "\n\n".join(["# Report", *failed, *map(_markdown, parts)]) + "\n",
            "tables.tex": "\n\n".join(_latex(part) for part in parts) + "\n",
            "index.html": _page(parts, errors),
        }
        for name, text in texts.items():
            (temporary / name).write_text(text, encoding="utf-8")
        for part in parts:
            for name, figure in part.figures.items():
                path = temporary / "plots" / f"{part.slug}-{name}.pdf"
                figure.savefig(path, metadata={"CreationDate": None})
    return Path(folder) / "index.html"


def _part(cells: list[Cell], look: Look) -> Part:
    part = Part(cells, differs=what_differs(cells))
    if part.sweep:
        for metric in SWEEP_METRICS:
            part.figures[metric] = plot_sweep(cells, metric, look)
        if part.sweep == "train_rows" and all("true_risk" in c.repeats[0] for c in cells):
            part.figures["estimation-error"] = plot_estimation_error(cells, look)
        return part
    part.tables = [metric_table(cells, metric) for metric in _metrics(cells)]
    part.other_tables = [metric_table(cells, metric, "sklearn") for metric in _metrics(cells)]
    part.beside = beside_paper(cells)
    for table in part.tables:
        part.figures[f"dots-{table.metric}"] = plot_dots(table, cells, look)
        if table.ranks is not None:
            part.figures[f"ranks-{table.metric}"] = plot_ranks(table.ranks, look)
    part.figures["risk"] = plot_curves(cells, look)
    return part


def _metrics(cells: Sequence[Cell]) -> list[str]:
    """Return the metrics, mAP first for synthetic labels, where the paper shows nothing else."""
    names = list(METRICS)
    return names if "folds" in cells[0].spec else [*names[-1:], *names[:-1]]


def _frame(cells: Sequence[Cell]) -> pd.DataFrame:
    """Return every number of every repeat in a row of its own."""
    rows: list[dict[str, Any]] = []
    for cell in cells:
        where = {
            "experiment": cell.experiment,
            "data": cell.data,
            "method": cell.method,
            "sweep": cell.sweep,
            "at": cell.at,
        }
        for k, repeat in enumerate(cell.repeats):
            found: dict[tuple[str, str], float] = {}
            for metric in METRICS:
                found["pml", metric] = repeat["pml"][metric]
                found["sklearn", metric] = repeat["sklearn"][metric]
            found["zero", "hamming_loss"] = repeat["hamming_loss"]["zero"]
            found["minmax", "hamming_loss"] = repeat["hamming_loss"]["minmax"]
            for (convention, metric), value in found.items():
                names = {"repeat": k, "convention": convention, "metric": metric}
                rows.append(where | names | {"value": value})
    return pd.DataFrame(rows)


def _markdown(part: Part) -> str:
    lines = [f"## {part.name}", "; ".join(f"{k}: {v}" for k, v in part.facts.items()) + "."]
    lines.append(_rows_markdown(part))
    if part.sweep:
        lines.append(f"Varied: {part.sweep}.")
        lines += [sweep_to_markdown(part.cells, metric) for metric in SWEEP_METRICS]
    else:
        lines.append(MARKS)
        lines += [to_markdown(table) for table in part.tables]
        lines += _ranks_markdown(part)
        lines += _tests_markdown(part)
    if part.beside:
        lines += ["### Beside the paper", _beside_markdown(part.beside)]
    lines += ["### What differs from the paper", "\n".join(f"- {line}" for line in part.differs)]
    return "\n\n".join(lines)


def _rows_markdown(part: Part) -> str:
    lines = ["| data | rows | features | labels | rows without a relevant label | all relevant |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for cell in part.data:
        n, d, q = cell.size["n"], cell.size["d"] or "images", cell.size["q"]
        empty = cell.degenerate["rows_without_relevant"]
        full = cell.degenerate["rows_all_relevant"]
        lines.append(f"| {plain(cell.data)} | {n} | {d} | {q} | {empty} | {full} |")
    return "\n".join(lines)


def _ranks_markdown(part: Part) -> list[str]:
    tables = [table for table in part.tables if table.ranks is not None]
    if not tables:
        return [NO_RANKS]
    lines = [
        f"| mean rank | {' | '.join(table.title for table in tables)} |",
        f"| --- |{' --- |' * len(tables)}",
    ]
    ranks = [table.ranks for table in tables if table.ranks is not None]
    for method in tables[0].methods:
        places = (f"{r.mean_rank[r.methods.index(method)]:.2f}" for r in ranks)
        lines.append(f"| {plain(method)} | {' | '.join(places)} |")
    lines.append(f"| p (Friedman) | {' | '.join(f'{r.friedman_p:.3f}' for r in ranks)} |")
    gaps = " | ".join(f"{r.critical_difference:.2f}" for r in ranks)
    lines.append(f"| critical difference | {gaps} |")
    return ["### Mean ranks", "\n".join(lines)]


def _tests_markdown(part: Part) -> list[str]:
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
                p = " | ".join(map(_shown_p, (test.p, test.p_corrected, entry.p_holm)))
                where = f"{METRICS[table.metric].title} | {plain(data)} | {plain(method)}"
                lines.append(f"| {where} | {test.difference:+.3f} | {p} |")
    return ["### Tests against the best", "\n".join(lines)]


def _beside_markdown(rows: Sequence[Beside]) -> str:
    lines = ["| data | method | metric | here | paper |", "| --- | --- | --- | --- | --- |"]
    lines += [
        f"| {plain(r.data)} | {r.method} | {r.metric} | {r.ours:.3f} ± {r.ours_std:.3f} | "
        f"{r.paper:.3f} ± {r.paper_std:.3f} |"
        for r in rows
    ]
    return "\n".join(lines)


def _latex(part: Part) -> str:
    head = f"% {part.name}: needs \\usepackage{{booktabs}}"
    return "\n\n".join([head, *(to_latex(table) for table in part.tables)])


def _page(parts: Sequence[Part], errors: Sequence[str]) -> str:
    text = files("comes.report").joinpath("page.html.jinja").read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters["p"] = _shown_p
    svgs = {
        part.slug: {
            name: Markup(as_svg(figure, f"{part.slug}-{name}"))
            for name, figure in part.figures.items()
        }
        for part in parts
    }
    return environment.from_string(text).render(
        parts=parts, svgs=svgs, errors=errors, metrics=METRICS, marks=MARKS, no_ranks=NO_RANKS
    )


def _shown_p(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3g}"
