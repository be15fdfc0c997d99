"""Results to tables, plots and a page; nothing is computed here that a result does not hold."""

from comes.report.document import write_report
from comes.report.examples import write_examples
from comes.report.metric_tables import list_means
from comes.report.predicted import write_predictions
from comes.report.row_page import KnownLabels, ReportedQuality, write_row_report

__all__ = [
    "KnownLabels",
    "ReportedQuality",
    "list_means",
    "write_examples",
    "write_predictions",
    "write_report",
    "write_row_report",
]
