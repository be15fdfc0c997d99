"""What the answers of a project amount to: counts, agreement, pace, and what is missing.

Only questions that were drawn at random (or imported) count for the numbers that training depends
on; those that a model chose are counted apart, and control cards are not counted. Answers of people
who are left out count for nothing but these people. Where the lead has decided about a pair, that
is what is known of it.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from comes.annotate.agreement import Agreement, measure_agreement
from comes.annotate.class_counts import ENOUGH, ClassSummary, count_questions, summarise_classes
from comes.annotate.leases import FROZEN
from comes.annotate.ledger import SKIP, SOURCES, WORDS, Ledger, Said
from comes.annotate.person_habits import PersonSummary, summarise_people
from comes.annotate.project import Project
from comes.annotate.schema import CONTROL

LATEST = 12  # answers that a page shows
RECENT = 1800.0  # seconds by which the present pace is measured
_CONTROL = SOURCES.index(CONTROL)

__all__ = ["ENOUGH", "ClassSummary", "PersonSummary", "Summary", "summarise", "summarise_said"]


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
    seconds_left: float  # of one person's work; NaN while nobody has answered
    per_hour: float  # answers of all people, at the pace of the last half hour
    made_at: float
    frozen_at: float | None = None

    @property
    def to_ask(self) -> list[ClassSummary]:
        """Classes that need more exclusions; the class with the fewest comes first."""
        lacking = [row for row in self.classes if not row.has_enough]
        return sorted(lacking, key=lambda row: row.n_excluded)

    @property
    def n_disagreements(self) -> int:
        """Pairs on which people disagree and the lead has not decided."""
        return sum(row.n_disagreements for row in self.classes)

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
                "torn": row.n_disagreements,
                "decided": row.n_decided,
                "chosen_by_model": row.n_chosen,
                "pairs": row.agreement.n_pairs,
                "agreement": row.agreement.share,
                "kappa": row.agreement.kappa,
                "kappa_lower": row.agreement.lower,
                "kappa_upper": row.agreement.upper,
                "seconds": row.seconds,
                "seconds_left": row.seconds_left,
                "share_no": row.share_no,
                "share_maybe": row.share_maybe,
                "share_yes": row.share_yes,
                "prior_at_least": row.prior_lower,
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
    return summarise_said(project, Ledger(project).read())


def summarise_said(project: Project, said: Said) -> Summary:
    """Return what is known about a project, from what was said."""
    names, n_items = project.class_names, len(project.item_names)
    is_left_out = said.left_out[said.person]
    is_card = (said.source != _CONTROL) & ~said.is_decision
    counts = is_card & ~is_left_out
    questions = count_questions(said, (said.source != _CONTROL) & ~is_left_out)
    rows = tuple(summarise_classes(said, counts, questions, names, n_items))
    frozen = project.read_setting(FROZEN)
    return Summary(
        n_items=n_items,
        n_classes=len(names),
        n_cards=int(said.n_cards_of.sum()),
        n_done=int(np.count_nonzero(is_card)),
        n_answers=int(np.count_nonzero(said.word[counts] != SKIP)),
        n_saved=n_items * len(names) - int(said.n_questions_of.sum()),
        agreement=measure_agreement(questions.pairs.sum(axis=1)),
        classes=rows,
        people=summarise_people(said),
        latest=tuple(_list_latest(said, is_card, project)),
        seconds_left=float(np.sum([row.seconds_left for row in rows])),
        per_hour=_measure_recent(said.at[is_card]),
        made_at=time.time(),
        frozen_at=float(frozen) if frozen else None,
    )


def _measure_recent(at: npt.NDArray[np.float64]) -> float:
    """Return the answers per hour at the pace of the last half hour; 0 if nobody is at work."""
    recent = at[at > time.time() - RECENT]
    return 3600 * len(recent) / max(time.time() - recent.min(), 60.0) if len(recent) else 0.0


def _list_latest(
    said: Said, rows: npt.NDArray[np.bool_], project: Project
) -> Iterator[dict[str, Any]]:
    found = np.flatnonzero(rows)
    newest = found[np.lexsort([-said.id[found], -said.at[found]])[:LATEST]]
    item_names, class_names = project.item_names, project.class_names
    for k in newest:
        yield {
            "item": item_names[said.item[k]],
            "number": int(said.item[k]) + 1,
            "class": class_names[said.class_[k]],
            "answer": WORDS[said.word[k]],
            "annotator": said.people[said.person[k]],
            "at": float(said.at[k]),
        }
