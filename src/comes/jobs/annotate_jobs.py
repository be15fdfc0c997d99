"""Jobs on annotation projects: add questions, and report what was answered."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from comes.annotate import (
    Project,
    Summary,
    add_chosen_cards,
    add_random_cards,
    collect_answers,
    describe_summary,
    open_project,
    reopen_skipped_cards,
    summarise,
    tabulate_classes,
    write_overview,
)
from comes.datasets import join_features, read_features, read_table
from comes.errors import ComesError
from comes.files import check_file_target, refuse_inputs


@dataclass(frozen=True)
class ProjectReport:
    """What was answered in a project, and what to ask next.

    Attributes
    ----------
    summary : comes.annotate.Summary
    priors : DataFrame, or None
        Estimated class priors, if features of the items were given.

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     report = report_project(project)
    >>> report.as_dict()["cards"], report.table()["class"].tolist()
    (4, ['sport', 'weather'])
    """

    summary: Summary
    priors: pd.DataFrame | None = None

    def table(self) -> pd.DataFrame:
        """Return a row per class."""
        return tabulate_classes(self.summary, self.priors)

    def as_dict(self) -> dict[str, Any]:
        """Return it for json."""
        return describe_summary(self.summary, self.priors)


def add_questions(
    project: Project | str | Path,
    *,
    classes: Sequence[str] | None = None,
    rate: float = 0.1,
    cards: str | Path | None = None,
    skipped: bool = False,
    seed: int = 0,
) -> int:
    """Add cards to a project, in one of three ways, and return how many.

    Parameters
    ----------
    project : Project, or the folder of one
    classes : sequence of str, optional
        Ask about more items for these classes.
    rate : float
        Share of all items, drawn among those that were not asked about.
    cards : path, optional
        Instead: a table of item and label that a model chose.
    skipped : bool
        Instead: ask again what people skipped.
    seed : int

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     add_questions(project, skipped=True)
    0
    """
    if [bool(classes), cards is not None, skipped].count(True) != 1:
        raise ComesError("say what to add: --classes with --rate, or --cards, or --skipped.")
    project = _as_project(project)
    if classes:
        return add_random_cards(project, classes, rate, seed)
    if cards is not None:
        return add_chosen_cards(project, read_table(Path(cards), ("item", "label")))
    return reopen_skipped_cards(project)


def report_project(
    project: Project | str | Path,
    output: str | Path | None = None,
    *,
    features: str | Path | None = None,
    seed: int = 0,
) -> ProjectReport:
    """Report per class what was answered, how people agree, and what to ask next.

    Parameters
    ----------
    project : Project, or the folder of one
    output : path, optional
        An .html file: the report as a page.
    features : path, optional
        Features of the items, to estimate class priors from the answers.
    seed : int
        Seed of the estimate.

    Returns
    -------
    report : ProjectReport

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     report = report_project(project, project.folder / "report.html")
    >>> report.summary.n_done
    1
    """
    if output is not None:
        if Path(output).suffix.lower() not in (".html", ".htm"):
            raise ComesError(f"{output} should end in .html; a page is written there.")
        check_file_target(output)
        refuse_inputs(output, features)
    project = _as_project(project)
    priors = None
    if features is not None:
        from comes.jobs.prior_jobs import estimate_priors  # brings torch

        answers = collect_answers(project)
        priors = estimate_priors(join_features(answers, *read_features(features)), seed=seed)
    if output is None:
        return ProjectReport(summarise(project), priors)
    return ProjectReport(write_overview(project, output, priors=priors), priors)


def _as_project(project: Project | str | Path) -> Project:
    return open_project(project) if isinstance(project, str | Path) else project
