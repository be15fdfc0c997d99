"""The overview of a project: a table per class, a record for json, and a self-contained page."""

from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from comes.annotate.project import Project
from comes.annotate.summary import Summary, summarise
from comes.annotate.web.rendering import render
from comes.files import check_file_target, replacing_file

BOUNDS = ["class_prior", "lower", "upper"]  # of a table of priors


def write_overview(
    project: Project, path: str | Path, *, priors: pd.DataFrame | None = None
) -> Summary:
    """Write a page about the answers of a project.

    Parameters
    ----------
    project : Project
    path : path
        An .html file, which is replaced.
    priors : DataFrame, optional
        Estimated class priors, with the columns label, class_prior, lower and upper, as from
        `comes.priors.prior_table`. Estimates need features, which a project does not have.

    Returns
    -------
    summary : Summary

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     summary = write_overview(project, project.folder / "overview.html")
    ...     page = (project.folder / "overview.html").read_text(encoding="utf-8")
    >>> "1 of 4 cards are done" in page
    True
    """
    target = check_file_target(path)
    summary = summarise(project)
    static = files("comes.annotate.web").joinpath("static")
    sheets = [static.joinpath(f"{name}.css") for name in ("annotate", "lead")]
    style = "\n".join(sheet.read_text(encoding="utf-8") for sheet in sheets)
    page = render(
        "overview.html.jinja",
        project=project.name,
        summary=summary,
        style=style,
        priors={} if priors is None else _index_priors(priors),
    )
    with replacing_file(target) as temporary:
        temporary.write_text(page, encoding="utf-8", errors="replace")
    return summary


def tabulate_classes(summary: Summary, priors: pd.DataFrame | None = None) -> pd.DataFrame:
    """Return a row per class, with its estimated prior if there is one.

    Parameters
    ----------
    summary : Summary
    priors : DataFrame, optional
        As in `write_overview`. A class that is not among them has empty cells.

    Returns
    -------
    table : DataFrame
        The columns of `Summary.table` and, with priors, class_prior, prior_lower, prior_upper.

    Examples
    --------
    >>> from comes.annotate import summarise, trial_project
    >>> with trial_project() as project:
    ...     summary = summarise(project)
    >>> priors = pd.DataFrame(
    ...     {"label": ["weather"], "class_prior": [0.4], "lower": [0.3], "upper": [0.5]}
    ... )
    >>> tabulate_classes(summary, priors)[["class", "excluded", "class_prior", "prior_upper"]]
         class  excluded  class_prior  prior_upper
    0    sport         1          NaN          NaN
    1  weather         0          0.4          0.5
    """
    table = summary.table()
    if priors is None:
        return table
    named = priors[["label", *BOUNDS]].set_axis(
        ["class", "class_prior", "prior_lower", "prior_upper"], axis=1
    )
    return table.merge(named, how="left")


def describe_summary(summary: Summary, priors: pd.DataFrame | None = None) -> dict[str, Any]:
    """Return a summary as nested dictionaries and lists, for json.

    Parameters
    ----------
    summary : Summary
    priors : DataFrame, optional
        As in `write_overview`.

    Returns
    -------
    described : dict
        With cards, done, answers, questions_saved, agreement, classes (a dictionary for each row of
        `tabulate_classes`) and ask_next (names of classes). Unknown numbers are NaN.

    Examples
    --------
    >>> from comes.annotate import summarise, trial_project
    >>> with trial_project() as project:
    ...     described = describe_summary(summarise(project))
    >>> described["cards"], described["done"], described["ask_next"]
    (4, 1, ['weather', 'sport'])
    """
    return {
        "cards": summary.n_cards,
        "done": summary.n_done,
        "answers": summary.n_answers,
        "questions_saved": summary.n_saved,
        "agreement": vars(summary.agreement),
        "classes": tabulate_classes(summary, priors).to_dict("records"),
        "ask_next": [row.name for row in summary.to_ask],
    }


def _index_priors(priors: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return class prior and bounds by label."""
    values = priors[BOUNDS].to_numpy(dtype=np.float64)
    return {
        str(name): dict(zip(BOUNDS, row.tolist(), strict=True))
        for name, row in zip(priors["label"], values, strict=True)
    }
