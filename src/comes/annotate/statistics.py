"""What the answers of a project say about themselves: counts, agreement, pace, and what is missing.

Only cards that were drawn at random (or imported) count for the numbers that training depends on;
those that a model chose are counted apart.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import betaincinv
from sqlalchemy import func, select

from comes.annotate.project import Project
from comes.annotate.tables import answers, cards
from comes.datasets.answers import MODEL

ENOUGH = 100  # exclusions of a class: a mean over them is known to a tenth of its spread
LATEST = 12  # answers that a page shows
DRAWS = 2000
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Agreement:
    """How two people who were asked the same agree; kappa is Fleiss', which has no first person."""

    n_pairs: int
    share: float  # NaN without pairs
    kappa: float  # NaN where all answers are the same
    lower: float  # of kappa
    upper: float


@dataclass(frozen=True)
class ClassSummary:
    """What is known of one class."""

    name: str
    n_cards: int
    n_done: int
    n_skipped: int
    n_asked: int  # items with an answer, no or maybe
    n_excluded: int  # n_j: items that nobody thought possible
    n_torn: int  # items with both answers
    n_chosen: int  # answers on cards that a model chose, which do not count
    agreement: Agreement
    seconds: float  # median per answer
    share_maybe: float  # of the items asked
    prior_bound: float  # the class prior is at most this, nineteen times in twenty
    more_cards: int  # that need an answer, open or new, to have enough exclusions
    can_be_enough: bool  # whether there are so many items left

    @property
    def has_enough(self) -> bool:
        """Whether the risk of the class is stable."""
        return self.n_excluded >= ENOUGH


@dataclass(frozen=True)
class PersonSummary:
    """What one person did."""

    name: str
    n_answers: int
    seconds: float
    share_no: float
    last: float  # time of the last answer


@dataclass(frozen=True)
class Summary:
    """What is known of a project."""

    n_items: int
    n_classes: int
    n_cards: int
    n_done: int
    n_answers: int
    n_saved: int  # questions that asking about every class of every item would have cost on top
    agreement: Agreement
    classes: tuple[ClassSummary, ...]
    people: tuple[PersonSummary, ...]
    latest: tuple[dict[str, Any], ...]

    @property
    def to_ask(self) -> list[ClassSummary]:
        """Classes that need more exclusions, those that need most first."""
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
    """Return what the answers of a project say."""
    counts, given = _read(project)
    item_names, class_names = project.item_names, project.class_names
    real = given[given["source"] != MODEL]
    pairs = _pairs(real)
    overall = _share(int(pairs["no_only"].sum()), len(pairs))
    answers_of = dict(iter(given.groupby("class_id")))
    n_items = len(item_names)

    def one(number: int, name: str) -> ClassSummary:
        n_cards, n_done, _ = counts.get(number, (0, 0, 0))
        own = answers_of.get(number, given.iloc[:0])
        own_pairs = pairs[pairs["class_id"] == number]
        n_asked, n_excluded = len(own_pairs), int(own_pairs["no_only"].sum())
        drawn = own_pairs[own_pairs["drawn"]]  # imported ticks say nothing of the rest
        n_maybe = int(drawn["maybe"].sum())
        missing = _count_missing(n_excluded, n_asked, overall)
        left = n_items - own.loc[own["source"] != MODEL, "item_id"].nunique()
        return ClassSummary(
            name=name,
            n_cards=n_cards,
            n_done=n_done,
            n_skipped=int((own["answer"] == "skip").sum()),
            n_asked=n_asked,
            n_excluded=n_excluded,
            n_torn=int((own_pairs["no"] & own_pairs["maybe"]).sum()),
            n_chosen=int(((own["source"] == MODEL) & (own["answer"] != "skip")).sum()),
            agreement=agreement_of(own_pairs[["both_no", "torn", "both_maybe"]].sum()),
            seconds=_median(own["seconds"]),
            share_maybe=_share(n_maybe, len(drawn)),
            prior_bound=_upper_bound(n_maybe, len(drawn)),
            more_cards=min(missing, left),
            can_be_enough=missing <= left,
        )

    n_cards, n_done, n_questions = (sum(column) for column in zip(*counts.values(), strict=True))
    return Summary(
        n_items=n_items,
        n_classes=len(class_names),
        n_cards=n_cards,
        n_done=n_done,
        n_answers=int((given["answer"] != "skip").sum()),
        n_saved=n_items * len(class_names) - n_questions,
        agreement=agreement_of(pairs[["both_no", "torn", "both_maybe"]].sum()),
        classes=tuple(one(number, name) for number, name in enumerate(class_names, 1)),
        people=tuple(_person(str(name), own) for name, own in given.groupby("annotator")),
        latest=tuple(_latest(given, item_names, class_names)),
    )


def agreement_of(counts: Any) -> Agreement:
    """Return how often two answers agree, from how many pairs said no, differed, and said maybe.

    The interval is that of the posterior under Jeffreys' prior, which is honest for few pairs.

    Examples
    --------
    >>> agreement = agreement_of([40, 10, 50])
    >>> agreement.share, round(agreement.kappa, 3)
    (0.9, 0.798)
    """
    table = np.asarray(counts, dtype=float)
    n = int(table.sum())
    if not n:
        return Agreement(0, math.nan, math.nan, math.nan, math.nan)
    drawn = np.random.default_rng(0).dirichlet(table + 0.5, DRAWS)
    tail = (1 - CONFIDENCE) / 2
    lower, upper = np.quantile(_kappa(drawn), [tail, 1 - tail])
    return Agreement(
        n, float((table[0] + table[2]) / n), float(_kappa(table / n)), float(lower), float(upper)
    )


def _kappa(shares: npt.NDArray[np.float64]) -> Any:
    """Return Fleiss' kappa of shares of pairs (both no, different, both maybe)."""
    observed = shares[..., 0] + shares[..., 2]
    no = shares[..., 0] + shares[..., 1] / 2
    expected = no**2 + (1 - no) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected < 1, (observed - expected) / (1 - expected), np.nan)


def _read(project: Project) -> tuple[dict[int, tuple[int, int, int]], pd.DataFrame]:
    """Return how many cards, done ones and questions each class has, and the answers that stand."""
    counts = select(
        cards.c.class_id,
        func.count(),
        func.count().filter(cards.c.is_done),
        func.count().filter(cards.c.turn == 0),  # every question has one first card
    ).group_by(cards.c.class_id)
    columns = [cards.c[name] for name in ("item_id", "class_id", "source")]
    columns += [answers.c[name] for name in ("annotator", "answer", "seconds", "answered_at")]
    said = select(*columns).join(cards, cards.c.id == answers.c.card_id)
    with project.reading() as connection:
        by_class = {row[0]: (row[1], row[2], row[3]) for row in connection.execute(counts)}
        given = connection.execute(said.where(answers.c.undone_at.is_(None))).all()
    return by_class, pd.DataFrame(given, columns=[column.name for column in columns])


def _pairs(given: pd.DataFrame) -> pd.DataFrame:
    """Return a row per (item, class) that somebody answered, with what was said."""
    said = given[given["answer"] != "skip"]
    no = (said["answer"] == "no").astype(int)
    drawn = (said["source"] == "random").astype(int)
    keys = [said["item_id"], said["class_id"]]
    columns = pd.DataFrame({"n_no": no, "n_maybe": 1 - no, "n_drawn": drawn})
    counts = columns.groupby(keys).sum().reset_index()
    n_no, n_maybe = counts["n_no"], counts["n_maybe"]
    return counts.assign(
        drawn=counts["n_drawn"] > 0,
        no=n_no > 0,
        maybe=n_maybe > 0,
        no_only=(n_no > 0) & (n_maybe == 0),
        both_no=(n_no == 2) & (n_maybe == 0),
        torn=(n_no == 1) & (n_maybe == 1),
        both_maybe=(n_no == 0) & (n_maybe == 2),
    )


def _person(name: str, own: pd.DataFrame) -> PersonSummary:
    said = own[own["answer"] != "skip"]
    return PersonSummary(
        name,
        len(said),
        _median(own["seconds"]),
        _share(int((said["answer"] == "no").sum()), len(said)),
        float(own["answered_at"].max()),
    )


def _latest(
    given: pd.DataFrame, item_names: Sequence[str], class_names: Sequence[str]
) -> list[dict[str, Any]]:
    rows: list[dict[Any, Any]]
    rows = given.sort_values("answered_at", ascending=False).head(LATEST).to_dict("records")
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


def _count_missing(n_excluded: int, n_asked: int, overall: float) -> int:
    """Return how many answers would bring a class to enough exclusions, at the rate it has them.

    The rate leans on that of all classes (NaN or 0 where there is none) while answers are few.
    """
    rate = (n_excluded + 1) / (n_asked + 1 / overall) if overall > 0 else 1 / (n_asked + 1)
    return math.ceil(max(0, ENOUGH - n_excluded) / rate)


def _median(values: "pd.Series[Any]") -> float:
    known = values.astype(float).dropna()
    return float(known.median()) if len(known) else math.nan


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


def _upper_bound(part: int, whole: int) -> float:
    """Return the bound of Clopper and Pearson on a share; 1 if nothing is known."""
    if part == whole:
        return 1.0
    return float(betaincinv(part + 1, whole - part, CONFIDENCE))
