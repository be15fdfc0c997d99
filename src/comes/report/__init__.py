"""Results to tables, plots and pages; nothing is computed here that a result does not hold."""

from comes.report.model_page import write_model_page
from comes.report.plots import (
    plot_answers,
    plot_calibration,
    plot_priors,
    plot_quality,
    plot_ranks,
    plot_risks,
    save_plot,
)

__all__ = [
    "plot_answers",
    "plot_calibration",
    "plot_priors",
    "plot_quality",
    "plot_ranks",
    "plot_risks",
    "save_plot",
    "write_model_page",
]
