"""Results to tables, plots and pages; nothing is computed here that a result does not hold."""

from comes.report.model_page import KnownLabels, ReportedQuality, write_row_report
from comes.report.picture_page import write_examples, write_predictions
from comes.report.plots import (
    plot_answers,
    plot_calibration,
    plot_class_priors,
    plot_critical_difference,
    plot_label_quality,
    plot_risks,
    save_plot,
)

__all__ = [
    "KnownLabels",
    "ReportedQuality",
    "plot_answers",
    "plot_calibration",
    "plot_class_priors",
    "plot_critical_difference",
    "plot_label_quality",
    "plot_risks",
    "save_plot",
    "write_examples",
    "write_predictions",
    "write_row_report",
]
