"""What the answers of a project amount to: counts, agreement, pace, and what is missing.

Only questions that were drawn at random (or imported) count for the numbers that training depends
on; those that a model chose are counted apart. The page asks what is surely not: "yes", which only
other tools collect, counts with "maybe" as possible.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd
from scipy.special import betaincinv
from sqlalchemy import func, select

from comes.annotate.agreement import CONFIDENCE, Agreement, measure_agreement
from comes.annotate.project import Project
from comes.annotate.schema import RANDOM, answers, cards
from comes.datasets import MODEL, NO, YES

ENOUGH = 100  # exclusions of a class: the standard error of a mean is a tenth of the spread
LATEST = 12  # answers that a page shows
PAIRS = ["both_no", "torn", "both_possible"]


@dataclass(frozen=True)
class ClassSummary:
    """What is known about one class."""

    name: str
    n_cards: int
    n_done: int
    n_skipped: int
    n_asked: int  # items with an answer, other than skip
    n_excluded: int  # n_j: items that nobody thought possible
    n_confirmed: int  # items that all said yes about
    n_torn: int  # items that somebody thought possible and somebody not
    n_chosen: int  # answers to questions that a model chose, which do not count
    agreement: Agreement
    seconds: float  # median per answer
    share_maybe: float  # of the items asked, those that somebody thought possible
    prior_bound: float  # upper bound of the class prior, at 95 % confidence
    more_cards: int  # answers still needed for enough exclusions, on open or new cards
    can_be_enough: bool  # whether enough items are left for that

    @property
    def has_enough(self) -> bool:
        """Whether the risk of the class is stable."""
        return self.n_excluded >= ENOUGH


@dataclass(frozen=True)
class PersonSummary:
    """What one person did."""

    name: str
    n_answers: int
    seconds: float  # median per answer
    share_no: float
    last: float  # time of the last answer


@dataclass(frozen=True)
class Summary:
    """What is known about a project.

    Examples
    --------
    >>> from comes.annotate import summarise, trial_project
    >>> with trial_project() as project:
    ...     summary = summarise(project)
    >>> [row.name for row in summary.to_ask]  # no class has a hundred exclusions
    ['weather', 'sport']
    """

    n_items: int
    n_classes: int
    n_cards: int
    n_done: int
    n_answers: int
    n_saved: int  # further questions, if every class of every item were asked
    agreement: Agreement
    classes: tuple[ClassSummary, ...]
    people: tuple[PersonSummary, ...]
    latest: tuple[dict[str, Any], ...]

    @property
    def to_ask(self) -> list[ClassSummary]:
        """Classes that need more exclusions; the class with the fewest comes first."""
        lacking = [row for row in self.classes if not row.has_enough]
        return sorted(lacking, key=lambda row: row.n_excluded)

    def table(self) -> pd.DataFrame:
        """Return a row per class."""
        return pd.DataFrame(
            {
                "class": row.name,
                "cards": row.n_cards,
                "answered": row.n_done - row.n_skipped,
                "skipped": row.n_skipped,
                "asked": row.n_asked,
                "excluded": row.n_excluded,
                "confirmed": row.n_confirmed,
                "torn": row.n_torn,
                "chosen_by_model": row.n_chosen,
                "pairs": row.agreement.n_pairs,
                "agreement": row.agreement.share,
                "kappa": row.agreement.kappa,
                "kappa_lower": row.agreement.lower,
                "kappa_upper": row.agreement.upper,
                "seconds": row.seconds,
                "share_maybe": row.share_maybe,
                "prior_at_most": row.prior_bound,
                "more_cards": row.more_cards,
            }
            for row in self.classes
        )


def summarise(project: Project) -> Summary:
    """Return what is known about a project.

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     summary = summarise(project)
    >>> summary.n_cards, summary.n_done, summary.classes[0].n_excluded
    (4, 1, 1)
    """
    counts, said = _read_state(project)
    item_names, class_names = project.item_names, project.class_names
    questions = _count_by_question(said[said["source"] != MODEL])
    exclusion_rate = _divide(int(questions["no_only"].sum()), len(questions))
    said_of, questions_of = _split_by_class(said), _split_by_class(questions)
    rows = [
        _summarise_class(
            name,
            counts.get(number, _CardCounts(0, 0, 0)),
            said_of.get(number, said.iloc[:0]),
            questions_of.get(number, questions.iloc[:0]),
            len(item_names),
            exclusion_rate,
        )
        for number, name in enumerate(class_names, 1)
    ]
    return Summary(
        n_items=len(item_names),
        n_classes=len(class_names),
        n_cards=sum(count.n_cards for count in counts.values()),
        n_done=sum(count.n_done for count in counts.values()),
        n_answers=int((said["answer"] != "skip").sum()),
        n_saved=len(item_names) * len(class_names)
        - sum(count.n_questions for count in counts.values()),
        agreement=measure_agreement(questions[PAIRS].sum()),
        classes=tuple(rows),
        people=tuple(_summarise_person(str(name), own) for name, own in said.groupby("annotator")),
        latest=tuple(_list_latest(said, item_names, class_names)),
    )


class _CardCounts(NamedTuple):
    """How many cards a class has."""

    n_cards: int
    n_done: int
    n_questions: int


def _read_state(project: Project) -> tuple[dict[int, _CardCounts], pd.DataFrame]:
    """Return the cards of each class, counted, and a row per answer that stands."""
    counts = select(
        cards.c.class_id,
        func.count(),
        func.count().filter(cards.c.is_done),
        func.count().filter(cards.c.turn == 0),  # every question has one first card
    ).group_by(cards.c.class_id)
    columns = [cards.c[name] for name in ("item_id", "class_id", "source")]
    columns += [answers.c[name] for name in ("annotator", "answer", "seconds", "answered_at")]
    stands = select(*columns).join(cards, cards.c.id == answers.c.card_id)
    stands = stands.where(answers.c.undone_at.is_(None))
    with project.reading() as connection:
        by_class = {number: _CardCounts(*row) for number, *row in connection.execute(counts)}
        said = connection.execute(stands).all()
    return by_class, pd.DataFrame(said, columns=[column.name for column in columns])


def _count_by_question(said: pd.DataFrame) -> pd.DataFrame:
    """Return a row per (item, class) with an answer other than skip, and which answers it has."""
    said = said[said["answer"] != "skip"]
    no, yes = ((said["answer"] == word).astype(int) for word in (NO, YES))
    drawn = (said["source"] == RANDOM).astype(int)
    keys = [said["item_id"], said["class_id"]]
    columns = pd.DataFrame({"n_no": no, "n_yes": yes, "n_possible": 1 - no, "n_drawn": drawn})
    counts = columns.groupby(keys).sum().reset_index()
    n_no, n_possible = counts["n_no"], counts["n_possible"]
    return counts.assign(
        drawn=counts["n_drawn"] > 0,
        no=n_no > 0,
        possible=n_possible > 0,
        no_only=(n_no > 0) & (n_possible == 0),
        yes_only=(n_no == 0) & (counts["n_yes"] == n_possible),
        both_no=(n_no == 2) & (n_possible == 0),
        torn=(n_no == 1) & (n_possible == 1),
        both_possible=(n_no == 0) & (n_possible == 2),
    )


def _split_by_class(table: pd.DataFrame) -> dict[Any, pd.DataFrame]:
    """Return the rows of each class that has any."""
    return dict(iter(table.groupby("class_id")))


def _summarise_class(
    name: str,
    count: _CardCounts,
    said: pd.DataFrame,
    questions: pd.DataFrame,
    n_items: int,
    exclusion_rate: float,
) -> ClassSummary:
    """Summarise one class from its answers, and its questions that no model chose."""
    n_asked, n_excluded = len(questions), int(questions["no_only"].sum())
    drawn = questions[questions["drawn"]]  # imported ticks say nothing about the rest
    n_possible = int(drawn["possible"].sum())
    is_chosen, is_skip = said["source"] == MODEL, said["answer"] == "skip"
    missing = _count_missing(n_excluded, n_asked, exclusion_rate)
    left = n_items - said.loc[~is_chosen, "item_id"].nunique()
    return ClassSummary(
        name=name,
        n_cards=count.n_cards,
        n_done=count.n_done,
        n_skipped=int(is_skip.sum()),
        n_asked=n_asked,
        n_excluded=n_excluded,
        n_confirmed=int(questions["yes_only"].sum()),
        n_torn=int((questions["no"] & questions["possible"]).sum()),
        n_chosen=int((is_chosen & ~is_skip).sum()),
        agreement=measure_agreement(questions[PAIRS].sum()),
        seconds=_find_median(said["seconds"]),
        share_maybe=_divide(n_possible, len(drawn)),
        prior_bound=_bound_share(n_possible, len(drawn)),
        more_cards=min(missing, left),
        can_be_enough=missing <= left,
    )


def _summarise_person(name: str, said: pd.DataFrame) -> PersonSummary:
    given = said[said["answer"] != "skip"]
    return PersonSummary(
        name,
        len(given),
        _find_median(said["seconds"]),
        _divide(int((given["answer"] == NO).sum()), len(given)),
        float(said["answered_at"].max()),
    )


def _list_latest(
    said: pd.DataFrame, item_names: Sequence[str], class_names: Sequence[str]
) -> list[dict[str, Any]]:
    rows: list[dict[Any, Any]]
    rows = said.sort_values("answered_at", ascending=False).head(LATEST).to_dict("records")
    return [
        {
            "item": item_names[row["item_id"] - 1],
            "class": class_names[row["class_id"] - 1],
            "answer": row["answer"],
            "annotator": row["annotator"],
            "at": row["answered_at"],
        }
        for row in rows
    ]


def _count_missing(n_excluded: int, n_asked: int, exclusion_rate: float) -> int:
    """Return how many more answers would give a class enough exclusions, at its present rate.

    While answers are few, the rate is shrunk towards that of all classes (NaN or 0 without any).
    """
    if exclusion_rate > 0:
        rate = (n_excluded + 1) / (n_asked + 1 / exclusion_rate)
    else:
        rate = 1 / (n_asked + 1)
    return math.ceil(max(0, ENOUGH - n_excluded) / rate)


def _find_median(values: "pd.Series[Any]") -> float:
    known = values.astype(float).dropna()
    return float(known.median()) if len(known) else math.nan


def _divide(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


def _bound_share(part: int, whole: int) -> float:
    """Return the upper bound of Clopper and Pearson on a share; 1 if nothing is known."""
    if part == whole:
        return 1.0
    return float(betaincinv(part + 1, whole - part, CONFIDENCE))
