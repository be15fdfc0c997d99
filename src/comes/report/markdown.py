"""The Markdown of a report."""

import math
from collections.abc import Sequence

from comes.metrics import METRICS
from comes.report.cost_tables import costs_to_markdown
from comes.report.metric_tables import escape_markdown, sweep_to_markdown, to_markdown
from comes.report.parts import SWEEP_METRICS, Part
from comes.report.published import Beside

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
