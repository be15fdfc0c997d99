"""How far everybody is, and how far one person: counted seldom, and kept up to date in between.

Counting takes tens of milliseconds in a large project, so a server counts again only after a while,
and adds what it stores itself. What other servers store is seen at the next count.
"""

import math
import threading
import time
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, func, select, text

from comes.annotate.project import Project
from comes.annotate.schema import DECISION, answers, cards

FRESH = 10.0  # seconds between two counts of all cards
FRESH_PERSON = 60.0  # of the answers of a person
FRESH_BARRED = 900.0  # and of the cards that are not for a person, which takes longest
MOST_PEOPLE = 1000  # whose counts are kept

Value = TypeVar("Value")
_OTHER = cards.alias("other")


def count_progress(connection: Connection, annotator: str) -> dict[str, Any]:
    """Return what `ProgressCounter.read` does, counted anew."""
    own = _count_own(connection, annotator), _count_barred(connection, annotator)
    return _join_counts(_count_all(connection), *own)


@dataclass(frozen=True)
class _Counted(Generic[Value]):
    """A count, and when it was taken: never, unless told."""

    value: Value
    at: float = -math.inf


class ProgressCounter:
    """Knows how far everybody is.

    Parameters
    ----------
    project : Project

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     ProgressCounter(project).read("Ada")
    {'total': 4, 'done': 1, 'mine': 0, 'seconds': 0.0, 'left': 3}
    """

    def __init__(self, project: Project) -> None:
        self._project, self._lock = project, threading.Lock()
        self._n_changes = 0
        self._all = _Counted((0, 0))
        self._own: dict[str, _Counted[tuple[int, float]]] = {}
        self._barred: dict[str, _Counted[int]] = {}

    def read(self, annotator: str) -> dict[str, Any]:
        """Return the numbers of cards and of what a person did; it may wait for the database.

        Returns
        -------
        counts : dict
            Cards in ``total`` and ``done``; of this person, the answers (``mine``), their
            ``seconds``, and the cards ``left`` that this person may still get.
        """
        now = time.monotonic()
        with self._lock:
            whole, before = self._all, self._n_changes
            own = self._own.get(annotator, _Counted((0, 0.0)))
            barred = self._barred.get(annotator, _Counted(0))
        with self._project.reading() as connection:
            if now - whole.at >= FRESH:
                whole = _Counted(_count_all(connection), now)
            if now - own.at >= FRESH_PERSON:
                own = _Counted(_count_own(connection, annotator), now)
            if now - barred.at >= FRESH_BARRED:
                barred = _Counted(_count_barred(connection, annotator), now)
        with self._lock:
            if before == self._n_changes:  # else nobody knows whether the change was counted
                if len(self._own) >= MOST_PEOPLE:
                    self._own.clear()
                    self._barred.clear()
                self._all, self._own[annotator] = whole, own
            self._barred[annotator] = barred
        return _join_counts(whole.value, own.value, barred.value)

    def add(self, annotator: str, n_answers: int, seconds: float) -> None:
        """Take answers into account that were stored."""
        with self._lock:
            self._n_changes += 1
            total, n_open = self._all.value
            self._all = replace(self._all, value=(total, n_open - n_answers))
            if annotator in self._own:
                own = self._own[annotator]
                mine, spent = own.value
                self._own[annotator] = replace(own, value=(mine + n_answers, spent + seconds))

    def forget(self, annotator: str) -> None:
        """Count again next time, since this person has taken something back."""
        with self._lock:
            self._n_changes += 1
            self._all = _Counted((0, 0))
            self._own.pop(annotator, None)


def _count_all(connection: Connection) -> tuple[int, int]:
    """Return how many cards there are, and how many are open, other than controls and decisions."""
    total = select(func.count()).select_from(cards).scalar_subquery()
    is_open = select(func.count()).select_from(cards).where(~cards.c.is_done).scalar_subquery()
    whole, n_open = connection.execute(select(total, is_open)).one()
    special = select(func.count(), func.count().filter(~cards.c.is_done))
    apart, n_apart = connection.execute(special.where(cards.c.turn >= text(str(DECISION)))).one()
    return whole - apart, n_open - n_apart


def _select_standing(annotator: str) -> tuple[Any, Any]:
    return answers.c.annotator == annotator, answers.c.undone_at.is_(None)


def _count_own(connection: Connection, annotator: str) -> tuple[int, float]:
    """Return the answers of a person, and their seconds."""
    columns = func.count(), func.coalesce(func.sum(answers.c.seconds), 0.0)
    mine, seconds = connection.execute(select(*columns).where(*_select_standing(annotator))).one()
    return mine, float(seconds)


def _count_barred(connection: Connection, annotator: str) -> int:
    """Return the open cards about questions that a person has answered on another card."""
    is_other = (
        (_OTHER.c.item_id == cards.c.item_id)
        & (_OTHER.c.class_id == cards.c.class_id)
        & (_OTHER.c.id != cards.c.id)
    )
    query = (
        select(func.count(_OTHER.c.id.distinct()))
        .select_from(answers)
        .join(cards, cards.c.id == answers.c.card_id)
        .join(_OTHER, is_other)
        .where(*_select_standing(annotator), ~_OTHER.c.is_done)
    )
    return connection.execute(query).scalar_one()


def _join_counts(whole: tuple[int, int], own: tuple[int, float], barred: int) -> dict[str, Any]:
    (total, n_open), (mine, seconds) = whole, own
    return {
        "total": total,
        "done": total - n_open,
        "mine": mine,
        "seconds": round(seconds, 1),
        "left": max(n_open - barred, 0),
    }
