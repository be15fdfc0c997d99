"""Plots of what the library returns, in one style: readable in print and by the colour-blind.

Every function takes ``axes=``, or makes a figure of its own, and returns matplotlib's ``Axes``;
none of them touches pyplot. `save_plot` writes the figure.

`COLOURS` are the colours, `INK` is that of text and lines, which stands for the colour of the text
around a plot, and `STYLE` holds all settings for matplotlib's ``rc_context``.
"""

from comes.plots.answers_plot import plot_answers
from comes.plots.calibration_plot import plot_calibration
from comes.plots.class_prior_plot import plot_class_priors
from comes.plots.label_quality_plot import plot_label_quality
from comes.plots.plot_files import as_svg, check_plot_name, figure_of, save_plot
from comes.plots.plot_style import COLOURS, INK, STYLE, Look, escape_name
from comes.plots.rank_plot import plot_critical_difference
from comes.plots.risk_plot import plot_risks

__all__ = [
    "COLOURS",
    "INK",
    "STYLE",
    "Look",
    "as_svg",
    "check_plot_name",
    "escape_name",
    "figure_of",
    "plot_answers",
    "plot_calibration",
    "plot_class_priors",
    "plot_critical_difference",
    "plot_label_quality",
    "plot_risks",
    "save_plot",
]
