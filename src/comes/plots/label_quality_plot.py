"""How good a model is about each label, with intervals."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from comes.errors import ComesError, listed
from comes.label_metrics import LABEL_METRICS, LabelMetric, LabelQuality, list_qualities
from comes.plots.plot_style import (
    FEW,
    SMALL,
    check_most,
    drawing,
    escape_name,
    guide_eyes,
    height_of,
    name_rows,
    put_legend_above,
    say_across,
)

APART = 0.3  # between the dots of several sources in one row
MISSING = LabelMetric(reason="not known")


def plot_label_quality(
    quality: Any,
    *,
    metric: str = "f1",
    label_names: Sequence[str] | None = None,
    most: int = 40,
    axes: Axes | None = None,
) -> Axes:
    """Draw a metric of every label as a dot with its interval, the worst label first.

    Parameters
    ----------
    quality : list of LabelQuality, DataFrame, estimated metrics, or mapping of str to these
        ``by_label`` of what `comes.jobs.judge_model` returns, a table of
        `comes.label_metrics.measure_labels`, or what `comes.selection.estimate_metrics` finds
        without the truth. Several, such as the truth and an estimate, are drawn by name.
    metric : {"precision", "recall", "f1", "auc", "average_precision"}
    label_names : sequence of n_labels str, optional
        Of tables; by default the numbers of the labels.
    most : int
        How many labels are drawn; of more, the worst.
    axes : Axes, optional
        By default those of a new figure, as high as the labels need.

    Returns
    -------
    axes : Axes
        Where a metric cannot be estimated, the row says why.

    Examples
    --------
    >>> from comes.label_metrics import measure_labels
    >>> table = measure_labels([[2.0, -1.0], [1.0, -2.0]], [[1, 0], [1, 1]])
    >>> axes = plot_label_quality(table, metric="recall", label_names=["sky", "sea"])
    >>> [tick.get_text() for tick in axes.get_yticklabels()]
    ['sea', 'sky']
    """
    if metric not in LABEL_METRICS:
        raise ComesError(f"metric must be one of {listed(list(LABEL_METRICS))}; got {metric!r}.")
    named = dict(quality) if isinstance(quality, Mapping) else {"": quality}
    sources = {name: _read_metric(one, metric, label_names) for name, one in named.items()}
    labels = list(dict.fromkeys(label for found in sources.values() for label in found))
    if not labels:
        raise ComesError("there is nothing to draw: no label is given. Judge a model first.")
    worst = sorted(labels, key=lambda label: _order(label, sources))
    shown = worst[: check_most(most)]
    with drawing(axes, height_of(len(shown)) + 0.2 * (len(sources) > 1)) as axes:
        guide_eyes(axes)
        for k, (name, found) in enumerate(sources.items()):
            offset = APART * (k - (len(sources) - 1) / 2)
            own = [found.get(label, MISSING) for label in shown]
            _draw_source(axes, own, escape_name(name), FEW[k % len(FEW)], offset)
        for row, label in enumerate(shown):
            _say_missing(axes, row, [found.get(label, MISSING) for found in sources.values()])
        name_rows(axes, shown)
        low, high = axes.get_xlim()
        axes.set_xlim(min(-0.02, low), max(1.02, high))
        across = f"{LABEL_METRICS[metric]}, with intervals"
        say_across(axes, across, len(shown), len(labels), "the worst")
        if isinstance(quality, Mapping):
            put_legend_above(axes)
    return axes


def _read_metric(
    quality: Any, metric: str, label_names: Sequence[str] | None
) -> dict[str, LabelMetric]:
    """Return a metric by label, from whatever it was found by."""
    table = getattr(quality, "per_label", quality)
    if isinstance(table, pd.DataFrame):
        names = [str(k) for k in range(len(table))] if label_names is None else list(label_names)
        if len(names) != len(table):
            raise ComesError(
                f"label_names must name each of {len(table)} labels; got {len(names)} names."
            )
        quality = list_qualities(table, names, {})
    wrong = [one for one in quality if not isinstance(one, LabelQuality)]
    if wrong:
        raise ComesError(
            "quality must be a list of LabelQuality or a table with a row per label; got a "
            f"{type(wrong[0]).__name__}. Pass what comes.label_metrics.measure_labels returns."
        )
    lacking = [one for one in quality if metric not in one.metrics]
    if lacking:
        raise ComesError(
            f"the quality of {lacking[0].label!r} has no {metric}; it has "
            f"{listed(list(lacking[0].metrics))}. Choose one of them."
        )
    return {one.label: one.metrics[metric] for one in quality}


def _order(label: str, sources: Mapping[str, Mapping[str, LabelMetric]]) -> tuple[bool, float, str]:
    """Return what labels are sorted by: the first source that knows the label."""
    values = [found[label].value for found in sources.values() if label in found]
    known = [value for value in values if value is not None and np.isfinite(value)]
    return not known, known[0] if known else 0.0, label


def _draw_source(
    axes: Axes,
    metrics: Sequence[LabelMetric],
    name: str,
    look: tuple[str, str],
    offset: float,
) -> None:
    """Draw dots and intervals from one source; what has no interval is a dot alone."""
    colour, marker = look
    rows = np.arange(len(metrics)) + offset
    numbers = [(one.value, one.low, one.high) for one in metrics]
    value, low, high = np.array(numbers, dtype=np.float64).T  # None is NaN
    axes.hlines(rows, low, high, color=colour, lw=1.5)
    axes.plot(value, rows, marker, color=colour, ms=4.5, label=name, zorder=3)


def _say_missing(axes: Axes, row: int, metrics: Sequence[LabelMetric]) -> None:
    """Write why nothing is known of a label."""
    if all(one.value is None for one in metrics):
        reason = next((one.reason for one in metrics if one.reason), "not known")
        axes.text(0.0, row, escape_name(reason), va="center", fontsize=SMALL, style="italic")
