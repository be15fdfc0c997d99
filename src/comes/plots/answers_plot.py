"""What was asked and said about every label, against what is known of it."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from comes.answers import Answers
from comes.errors import ComesError
from comes.plots.class_prior_plot import read_priors_of
from comes.plots.plot_style import (
    BLUE,
    GREY,
    ORANGE,
    check_most,
    drawing,
    find_ink,
    height_of,
    name_rows,
    put_legend_above,
    say_across,
)

# From left to right: what a label has, and last what it has not, so that the class prior lies
# between them. The hatches tell them apart in grey.
BARS: dict[str, dict[str, dict[str, Any]]] = {
    "answers": {
        "yes": {"facecolor": BLUE, "edgecolor": BLUE},
        "maybe": {"facecolor": "none", "edgecolor": GREY, "hatch": "xxxxxx"},
        "not asked": {"facecolor": "none", "edgecolor": GREY},
        "no": {"facecolor": "none", "edgecolor": ORANGE, "hatch": "//////"},
    },
    "candidates": {
        "still possible": {"facecolor": "none", "edgecolor": GREY},
        "no": {"facecolor": "none", "edgecolor": ORANGE, "hatch": "//////"},
    },
    "positives": {
        "ticked": {"facecolor": BLUE, "edgecolor": BLUE},
        "not ticked": {"facecolor": "none", "edgecolor": GREY},
    },
}


def plot_answers(
    answers: Answers,
    class_prior: Any = None,
    *,
    most: int = 40,
    axes: Axes | None = None,
) -> Axes:
    """Draw what was said about every label: shares of rows with yes, maybe, nothing and no.

    Class priors, if they are given, are marks in the same bars: how often the label is relevant
    lies right of what was called so, and left of what was called irrelevant.

    Parameters
    ----------
    answers : Answers of shape (n_samples, n_labels)
        Of any kind: of candidates, what is excluded and what is still possible; of ticked labels,
        what is ticked and what is not.
    class_prior : array of shape (n_labels,), or as in `plot_class_priors`, optional
        Drawn with its bounds, where there are any.
    most : int
        How many labels get a row; of more, those with the most answers.
    axes : Axes, optional
        By default those of a new figure, as high as the labels need.

    Returns
    -------
    axes : Axes

    Examples
    --------
    >>> answers = Answers(no=[[1, 0], [0, 1]], yes=[[0, 1], [0, 0]], label_names=["sea", "sky"])
    >>> axes = plot_answers(answers, class_prior=[0.3, 0.6])
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['yes', 'maybe', 'not asked', 'no', 'class prior']
    """
    table = _count_shares(answers)
    if class_prior is not None:
        table = _add_priors(table, class_prior)
    chosen = table["n_said"].sort_values(ascending=False, kind="stable").index[: check_most(most)]
    first = next(iter(BARS[answers.kind]))
    shown = table.loc[chosen].sort_values(
        first if class_prior is None else "class_prior", ascending=False, kind="stable"
    )
    with drawing(axes, height_of(len(shown)) + 0.2) as axes:
        left = np.zeros(len(shown))
        rows = np.arange(len(shown))
        for name, look in BARS[answers.kind].items():
            share = shown[name].to_numpy()
            axes.barh(rows, share, left=left, height=0.7, linewidth=0.7, label=name, **look)
            left += share
        if class_prior is not None:
            _mark_priors(axes, shown)
        name_rows(axes, list(shown["label"]))
        axes.set_xlim(0, 1)
        put_legend_above(axes)
        across = f"share of {len(answers)} rows"
        say_across(axes, across, len(shown), len(table), "those with the most answers")
    return axes


def _count_shares(answers: Answers) -> pd.DataFrame:
    """Return the shares of rows in each state, a row per label, and how many have an answer."""
    counts = answers.count()
    table = pd.DataFrame({"label": counts["label"], "n_said": counts["asked"]})
    n = max(len(answers), 1)
    shares = {name: counts[name] / n for name in ("yes", "maybe", "no")}
    silent = 1 - counts["asked"] / n
    names = {"not asked": silent, "still possible": silent, "not ticked": silent}
    found = shares | names | {"ticked": shares["yes"]}
    return table.assign(**{name: found[name] for name in BARS[answers.kind]})


def _add_priors(table: pd.DataFrame, class_prior: Any) -> pd.DataFrame:
    """Return the table with class priors and their bounds, matched by name where names agree."""
    priors = read_priors_of(class_prior)
    if set(priors["label"]) == set(table["label"]):
        priors = priors.set_index("label").loc[list(table["label"])].reset_index()
    if len(priors) != len(table):
        raise ComesError(
            f"class_prior must have a number for each of {len(table)} labels; got {len(priors)}. "
            "Pass the estimate that was made from these answers."
        )
    return table.join(priors[["class_prior", "lower", "upper"]])


def _mark_priors(axes: Axes, table: pd.DataFrame) -> None:
    """Draw class priors with their bounds over the bars."""
    ink, rows = find_ink(axes), np.arange(len(table))
    axes.hlines(rows, table["lower"], table["upper"], color=ink, lw=1.5, zorder=4)
    axes.plot(table["class_prior"], rows, "D", color=ink, ms=5, label="class prior", zorder=5)
