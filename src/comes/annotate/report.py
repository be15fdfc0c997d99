"""The report of a project: a table per class, and a page that needs nothing else."""

from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd

from comes.annotate.project import Project
from comes.annotate.rendering import render
from comes.annotate.statistics import Summary, summarise
from comes.files import check_file_target, replacing_file


def write_report(
    project: Project, path: str | Path, *, priors: pd.DataFrame | None = None
) -> Summary:
    """Write a page about the answers of a project.

    Parameters
    ----------
    project : Project
    path : path
        An .html file, which is replaced.
    priors : DataFrame, optional
        Estimated class priors, with the columns label, class_prior, lower and upper (that
        `comes.priors.prior_table` makes): a prior needs features, which a project has not.

    Returns
    -------
    summary : Summary
    """
    target = check_file_target(path)
    summary = summarise(project)
    style = files("comes.annotate").joinpath("static", "annotate.css").read_text(encoding="utf-8")
    page = render(
        "report.html.jinja",
        project=project.name,
        summary=summary,
        style=style,
        priors={} if priors is None else prior_rows(priors),
    )
    with replacing_file(target) as temporary:
        temporary.write_text(page, encoding="utf-8", errors="replace")
    return summary


def prior_rows(priors: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return class prior and bounds by label."""
    columns = ["class_prior", "lower", "upper"]
    values = priors[columns].to_numpy(dtype=np.float64)
    names = priors["label"].astype(str)
    return {
        n: dict(zip(columns, row.tolist(), strict=True))
        for n, row in zip(names, values, strict=True)
    }
