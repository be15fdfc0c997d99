"""Write a report: Markdown, LaTeX, a table of all numbers, plots, and one page with all of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
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
from comes.plots import Look, as_svg, figure_of, plot_critical_difference
from comes.report.cost_tables import COST_TITLES, list_label_numbers
from comes.report.markdown import MARKS, NO_RANKS, show_p, to_document
from comes.report.metric_tables import escape_markdown, show_number, to_latex
from comes.report.ordering import order_results
from comes.report.parts import SWEEP_METRICS, Part, make_parts
from comes.report.result_plots import (
    plot_curves,
    plot_dots,
    plot_estimation_error,
    plot_sweep,
)
from comes.results import Result

REPORT_FILES = ("index.html", "report.md", "tables.tex", "metrics.csv", "labels.csv", "plots")


def write_report(results: Sequence[Result], folder: str | Path, errors: Sequence[str] = ()) -> Path:
    """Write the report of results.

    Parameters
    ----------
    results : list of Result
        As `comes.results.read_results` returns them.
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
    >>> from comes.results import read_errors, read_results
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
            ranks = plot_critical_difference(table.ranks, look=look)
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
