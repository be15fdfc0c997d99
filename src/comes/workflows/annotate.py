"""Jobs on annotation projects: add questions, and report what was answered."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.annotate import (
    ItemSource,
    Project,
    Summary,
    add_active_cards,
    add_chosen_cards,
    add_classes,
    add_items,
    add_random_cards,
    check_webhook,
    collect_answers,
    count_new_answers,
    count_rounds,
    describe_summary,
    estimate_shares,
    export_answers,
    export_raw_answers,
    find_open_pairs,
    open_project,
    post_webhook,
    reopen_skipped_cards,
    summarise,
    tabulate_classes,
    write_overview,
)
from comes.answers import AnswerRates
from comes.answers.questions import draw_questions, expected_bits
from comes.datasets import Dataset, ReadOptions, join_features, read_features
from comes.datasets.table import read_table
from comes.errors import ComesError
from comes.files import check_file_target, refuse_inputs
from comes.workflows.data import read_project
from comes.workflows.fit import fit_model
from comes.workflows.predict import Classifier, as_model, rates_of_people, score_dataset


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
        from comes.workflows.priors import estimate_priors

        answers = collect_answers(project)
        priors = estimate_priors(join_features(answers, *read_features(features)), seed=seed)
    shares = estimate_shares(project)
    if output is None:
        return ProjectReport(summarise(project), priors, shares)
    return ProjectReport(write_overview(project, output, priors=priors), priors, shares)


def _as_project(project: Project | str | Path) -> Project:
    return open_project(project) if isinstance(project, str | Path) else project


AUTO = "auto"  # a model trained on the answers of the project
UNKNOWN = 0.5  # relevance of a class that the model does not know: every answer tells as much


class ActiveRound(NamedTuple):
    """A round of questions that a model drew.

    Examples
    --------
    >>> ActiveRound(2, 400, 200, 0.31, 12.5).cards
    200
    """

    round: int
    answers: int  # that the model learned from
    cards: int
    bits: float  # that an answer is expected to tell, on average
    seconds: float


def draw_round(
    project: Project | str | Path,
    count: int,
    *,
    model: Classifier | str | Path = AUTO,
    features: str | Path | None = None,
    floor: float = 0.2,
    settings: dict[str, Any] | None = None,
    seed: int = 0,
) -> ActiveRound:
    r"""Draw questions with known probabilities, more of those whose answers tell much.

    Parameters
    ----------
    project : Project, or the folder of one
        With answers.
    count : int
        How many questions.
    model : classifier, folder of one, or "auto"
        "auto" trains one on the answers of the project, by likelihood.
    features : path, optional
        Features of the items, to train on in place of the texts or images.
    floor : float
        Share of the questions that is drawn as if there were no model, in (0, 1].
    settings : dict, optional
        Of the classifier that is trained.
    seed : int
        Of the draw and of the training. The same answers and seed draw the same questions.

    Returns
    -------
    drawn : ActiveRound

    Examples
    --------
    >>> import tempfile
    >>> from comes.annotate import create_project, import_answers
    >>> home = Path(tempfile.mkdtemp())
    >>> lines = [f"{k},{'rain' if k % 2 else 'goal'} {k}" for k in range(40)]
    >>> _ = (home / "texts.csv").write_text("item,text\n" + "\n".join(lines))
    >>> _ = (home / "classes.txt").write_text("weather\n")
    >>> project = create_project(home / "news", home / "texts.csv", home / "classes.txt", rate=0.5)
    >>> said = [f"{k},weather,{'yes' if k % 2 else 'no'}" for k in range(20)]
    >>> _ = (home / "said.csv").write_text("item,label,answer\n" + "\n".join(said))
    >>> _ = import_answers(project, home / "said.csv")
    >>> import warnings
    >>> warnings.simplefilter("ignore")  # so few answers teach little
    >>> drawn = draw_round(project, 5, settings={"epochs": 1})
    >>> drawn.cards, drawn.answers
    (5, 20)
    >>> project.engine.dispose()
    """
    started, learned_at = time.perf_counter(), time.time()
    project = open_project(project) if isinstance(project, str | Path) else project
    is_open = find_open_pairs(project)
    if not is_open.any():
        raise ComesError("nothing is left to ask: every pair has a question.")
    reading = None if features is None else ReadOptions(features=features)
    if isinstance(model, str) and model == AUTO:
        chosen = {"random_state": seed, "progress": False} | (settings or {})
        fitted = fit_model(project.folder, chosen, reading=reading)
        if fitted.history.interrupted:
            raise KeyboardInterrupt  # half a training draws nothing
        classifier, dataset = fitted.classifier, fitted.dataset
    else:
        classifier, dataset = as_model(model), read_project(project.folder, reading)
    eta, rates = score_pairs(project, classifier, dataset)
    drawn = draw_questions(eta, count, is_open=is_open, rates=rates, floor=floor, seed=seed)
    number = add_active_cards(project, drawn, eta, rates, seed=seed, learned_at=learned_at)
    bits = expected_bits(eta, rates)[drawn.row, drawn.label]
    n_answers = int((dataset.known_answers().codes != 0).sum())
    seconds = time.perf_counter() - started
    return ActiveRound(number, n_answers, len(drawn.row), float(bits.mean()), seconds)


def score_pairs(
    project: Project, classifier: Classifier, dataset: Dataset
) -> tuple[npt.NDArray[np.float64], AnswerRates | None]:
    """Return how relevant each class is to each item, (n_items, n_classes), and people's rates."""
    scores = score_dataset(classifier, dataset)
    found = np.asarray(classifier.squash_scores(scores), dtype=np.float64)
    names, known = project.class_names, list(classifier.label_names_)
    row_of = {name: row for row, name in enumerate(dataset.items or [])}
    rows = [row_of.get(name, -1) for name in project.item_names]
    columns = [known.index(name) if name in known else -1 for name in names]
    if max(columns, default=-1) < 0 or max(rows, default=-1) < 0:
        raise ComesError(
            "the model knows none of the project's classes, or none of its items. Train it on this "
            "project: comes fit PROJECT -o model/."
        )
    eta = found[np.ix_(rows, columns)]
    eta[np.array(rows) < 0] = UNKNOWN
    eta[:, np.array(columns) < 0] = UNKNOWN
    rates = rates_of_people(classifier, None)
    if rates is None:
        return eta, None
    a, b = (
        np.where(np.array(columns) < 0, 1.0, own[columns])
        for own in (rates.no_rate, rates.yes_rate)
    )
    return eta, AnswerRates(a, b, rates.mistake_rate)


def learn_in_rounds(
    project: Project | str | Path,
    every: int = 200,
    *,
    rounds: int | None = None,
    wait: float = 2.0,
    on_round: Callable[[ActiveRound], None] = lambda drawn: None,
    on_wait: Callable[[int], None] = lambda missing: None,
    seed: int = 0,
    **options: Any,
) -> list[ActiveRound]:
    """Draw a round of questions whenever so many new answers are there, until it is interrupted.

    What was learned lies in the project, so a loop that was interrupted goes on where it was.

    Parameters
    ----------
    project : Project, or the folder of one
    every : int
        New answers before each round, and questions in it.
    rounds : int, optional
        How many rounds; by default until it is interrupted, or nothing is left to ask.
    wait : float
        Seconds between two looks for new answers.
    on_round : callable (drawn) -> None
        Called after each round.
    on_wait : callable (missing) -> None
        Called when a round must wait, with how many answers are missing.
    seed : int
        Of the first round; every round adds its number.
    **options
        As in `draw_round`: model, features, floor, settings.

    Returns
    -------
    drawn : list of ActiveRound

    Examples
    --------
    >>> learn_in_rounds("news", every=200)  # doctest: +SKIP
    """
    if every < 1:
        raise ComesError(f"every must be 1 or more answers; got {every}.")
    project = open_project(project) if isinstance(project, str | Path) else project
    done: list[ActiveRound] = []
    while rounds is None or len(done) < rounds:
        missing = every - count_new_answers(project)
        if missing > 0:
            on_wait(missing)
        while missing > 0:
            time.sleep(wait)
            missing = every - count_new_answers(project)
        if not find_open_pairs(project).any():
            break
        done.append(draw_round(project, every, seed=seed + count_rounds(project), **options))
        on_round(done[-1])
    return done
