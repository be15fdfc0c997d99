"""Jobs on annotation projects: add questions, and report what was answered."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from comes.annotate import (
    ItemSource,
    Project,
    Summary,
    add_chosen_cards,
    add_classes,
    add_items,
    add_random_cards,
    check_webhook,
    collect_answers,
    describe_summary,
    estimate_shares,
    export_answers,
    export_raw_answers,
    open_project,
    post_webhook,
    reopen_skipped_cards,
    summarise,
    tabulate_classes,
    write_overview,
)
from comes.datasets import join_features, read_features
from comes.datasets.table import read_table
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
    shares : DataFrame, or None
        For each class, the share of all items about which people would say yes, and no, with
        bounds: see `comes.annotate.estimate_shares`.

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
    shares: pd.DataFrame | None = None

    def table(self) -> pd.DataFrame:
        """Return a row per class."""
        return tabulate_classes(self.summary, self.priors)

    def as_dict(self) -> dict[str, Any]:
        """Return it for json."""
        described = describe_summary(self.summary, self.priors)
        shares = [] if self.shares is None else self.shares.to_dict("records")
        return described | {"shares": shares}


def add_questions(
    project: Project | str | Path,
    *,
    classes: Sequence[str] | None = None,
    items: str | Path | ItemSource | None = None,
    new_classes: str | Path | None = None,
    images: str | Path | None = None,
    rate: float | None = None,
    cards: str | Path | None = None,
    skipped: bool = False,
    seed: int = 0,
) -> dict[str, int]:
    """Add items, classes or cards to a project, in one way, and return how many.

    Parameters
    ----------
    project : Project, or the folder of one
    classes : sequence of str, optional
        Ask about more items for these classes.
    items : path or comes.annotate.ItemSource, optional
        Instead: more items, and cards for them. Names that the project has are left out.
    new_classes : path, optional
        Instead: more classes, and cards for them.
    images : path, optional
        The folder or .zip of the images that ``items`` names.
    rate : float, optional
        Share of all items (of the new ones for ``items``) that is asked about. By default 0.1 for
        ``classes``, else as the project has it.
    cards : path, optional
        Instead: a table of item and label that a model chose.
    skipped : bool
        Instead: ask again what people skipped.
    seed : int

    Returns
    -------
    counts : dict
        cards_added; also items_added or classes_added, and left_out, if there are any.

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     add_questions(project, skipped=True)
    {'cards_added': 0}
    """
    ways = [bool(classes), items is not None, new_classes is not None, cards is not None, skipped]
    if ways.count(True) != 1:
        raise ComesError(
            "say what to add: --items, --new-classes, --classes with --rate, --cards, --active or "
            "--skipped, one of them."
        )
    project = _as_project(project)
    if items is not None:
        return add_items(project, items, images=images, rate=rate, seed=seed)
    if new_classes is not None:
        return add_classes(project, new_classes, rate=rate, seed=seed)
    if classes:
        n_added = add_random_cards(project, classes, 0.1 if rate is None else rate, seed)
    elif cards is not None:
        n_added = add_chosen_cards(project, read_table(Path(cards), ("item", "label")))
    else:
        n_added = reopen_skipped_cards(project)
    return {"cards_added": n_added}


def export_project(
    project: Project | str | Path,
    output: str | Path,
    *,
    raw: bool = False,
    webhook: str | None = None,
) -> dict[str, Any]:
    """Write the answers of a project, and tell a webhook.

    Parameters
    ----------
    project : Project, or the folder of one
    output : path
        As in `comes.annotate.export_answers`.
    raw : bool
        Every answer as it was given, as in `comes.annotate.export_raw_answers`.
    webhook : str, optional
        An address of http or https that gets the project's name, the counts and the name of the
        file, as json. By default the setting ``webhook`` of the project; none if it is empty.

    Returns
    -------
    counts : dict
        With the file, and how many attempts the webhook took.

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     counts = export_project(project, project.folder / "raw.csv", raw=True)
    >>> counts["answers"]
    1
    """
    project = _as_project(project)
    address = project.read_setting("webhook") if webhook is None else webhook
    if address:
        check_webhook(address)
    export = export_raw_answers if raw else export_answers
    counts: dict[str, Any] = dict(export(project, output))
    if address:
        told = {"project": project.name, "counts": counts, "file": Path(output).name, "raw": raw}
        counts = counts | {"webhook_attempts": post_webhook(address, told)}
    return counts | {"file": str(output)}


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
    shares = estimate_shares(project)
    if output is None:
        return ProjectReport(summarise(project), priors, shares)
    return ProjectReport(write_overview(project, output, priors=priors), priors, shares)


def _as_project(project: Project | str | Path) -> Project:
    return open_project(project) if isinstance(project, str | Path) else project
