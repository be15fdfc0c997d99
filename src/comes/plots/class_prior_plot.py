"""Class priors with their bounds, and the true ones where they are known."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes

from comes.errors import ComesError
from comes.plots.plot_style import (
    BLUE,
    ORANGE,
    check_most,
    drawing,
    find_ink,
    guide_eyes,
    height_of,
    name_rows,
    put_legend_above,
    say_across,
)

HOLLOW: dict[str, Any] = {"marker": "D", "ms": 5, "mfc": "none", "mew": 1.2, "ls": "", "zorder": 4}
TWO_SIDED = 1.96  # standard errors on either side of an estimate: 95 %


def plot_class_priors(
    estimate: Any,
    true_prior: npt.ArrayLike | None = None,
    *,
    label_names: Sequence[str] | None = None,
    most: int = 40,
    axes: Axes | None = None,
) -> Axes:
    """Draw estimated class priors with their bounds, beside the true ones where they are known.

    Labels are rows, the most frequent first. Of more than ``most`` labels those with the widest
    bounds are drawn; where the truth is known, all of them without their names, over the truth.

    Parameters
    ----------
    estimate : ClassPriorEstimate, RatesEstimate, DataFrame or fitted classifier
        What `comes.priors.estimate_class_prior` or `comes.priors.estimate_answer_rates` returns,
        the table that `comes.priors.prior_table` makes, or a classifier with ``class_prior_``.
        Where only a standard error is known, the bounds are those of 95 %.
    true_prior : array of shape (n_labels,), optional
        By default the column ``true_prior`` of a table that has it.
    label_names : sequence of n_labels str, optional
        By default those of the table or classifier, or the numbers of the labels.
    most : int
        How many labels get a row.
    axes : Axes, optional
        By default those of a new figure, as high as the labels need.

    Returns
    -------
    axes : Axes

    Examples
    --------
    >>> table = pd.DataFrame({"label": ["sky"], "class_prior": [0.2], "lower": 0.1, "upper": 0.3})
    >>> axes = plot_class_priors(table, true_prior=[0.25])
    >>> axes.get_xlabel()
    'class prior, with bounds'
    """
    table = read_priors_of(estimate, label_names)
    if true_prior is not None:
        truth = np.asarray(true_prior, dtype=np.float64)
        if truth.shape != (len(table),):
            raise ComesError(
                f"true_prior must have a number for each of {len(table)} labels; got shape "
                f"{truth.shape}. Pass what comes.priors.count_class_prior returns."
            )
        table["true_prior"] = truth
    if len(table) > check_most(most) and "true_prior" in table:
        return _draw_over_truth(table, axes)
    width = (table["upper"] - table["lower"]).fillna(np.inf)
    shown = table.loc[width.sort_values(ascending=False, kind="stable").index[:most]]
    shown = shown.sort_values("class_prior", ascending=False, kind="stable")
    with drawing(axes, height_of(len(shown))) as axes:
        guide_eyes(axes)
        rows = np.arange(len(shown))
        axes.hlines(rows, shown["lower"], shown["upper"], color=BLUE, lw=1.5)
        axes.plot(shown["class_prior"], rows, "o", color=BLUE, ms=4.5, label="estimated", zorder=3)
        if "true_prior" in shown:
            axes.plot(shown["true_prior"], rows, **HOLLOW, color=ORANGE, label="true")
            put_legend_above(axes)
        name_rows(axes, list(shown["label"]))
        axes.set_xlim(-0.02, 1.02)
        which = "those with the widest bounds"
        say_across(axes, "class prior, with bounds", len(shown), len(table), which)
    return axes


def read_priors_of(estimate: Any, label_names: Sequence[str] | None = None) -> pd.DataFrame:
    """Return label, class_prior, lower and upper, and true_prior of a table that has it."""
    if isinstance(estimate, pd.DataFrame):
        columns = ["label", "class_prior", "lower", "upper"]
        columns += ["true_prior"] if "true_prior" in estimate else []
        table = estimate.reindex(columns=columns).reset_index(drop=True)
    else:
        table = pd.DataFrame(_read_bounds(estimate))
        own = getattr(estimate, "label_names_", None)
        table.insert(0, "label", [str(k) for k in range(len(table))] if own is None else own)
    if label_names is not None and len(label_names) != len(table):
        raise ComesError(
            f"label_names must name each of {len(table)} labels; got {len(label_names)} names."
        )
    return table if label_names is None else table.assign(label=list(label_names))


def _read_bounds(estimate: Any) -> dict[str, npt.NDArray[np.float64]]:
    """Return class priors and their bounds, NaN where nothing is known of them."""
    ending = "_" if hasattr(estimate, "class_prior_") else ""
    given = getattr(estimate, f"class_prior{ending}", estimate)
    if given is None:
        raise ComesError(
            "the classifier has no class prior (class_prior_ is None): its method needs none. Pass "
            "what comes.priors.estimate_class_prior returns."
        )
    prior = np.asarray(given, dtype=np.float64)
    if hasattr(estimate, "lower") and hasattr(estimate, "upper"):
        return {"class_prior": prior, "lower": estimate.lower, "upper": estimate.upper}
    error = getattr(estimate, f"class_prior_error{ending}", None)
    margin = TWO_SIDED * np.asarray(np.nan if error is None else error, dtype=np.float64)
    lower, upper = np.clip(prior - margin, 0, 1), np.clip(prior + margin, 0, 1)
    return {"class_prior": prior, "lower": lower, "upper": upper}


def _draw_over_truth(table: pd.DataFrame, axes: Axes | None) -> Axes:
    """Draw the estimates of many labels over the truth, without names."""
    with drawing(axes, 4.5, width=4.5) as axes:
        axes.plot([0, 1], [0, 1], color=find_ink(axes), lw=0.8, ls="dashed")
        ends = table["lower"], table["upper"]
        axes.vlines(table["true_prior"], *ends, color=BLUE, lw=0.8, alpha=0.4)
        axes.plot(table["true_prior"], table["class_prior"], "o", color=BLUE, ms=3.5)
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        axes.set_xlabel("true class prior")
        axes.set_ylabel("estimated class prior, with bounds")
    return axes
