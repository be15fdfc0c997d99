"""Results to tables, plots and a page; nothing is computed here that a result does not hold."""

from comes.report.examples import write_examples
from comes.report.priors import check_plot_name, plot_priors
from comes.report.runs import Cell, read_errors, read_runs
from comes.report.writing import write_report

__all__ = [
    "Cell",
    "check_plot_name",
    "plot_priors",
    "read_errors",
    "read_runs",
    "write_examples",
    "write_report",
]
