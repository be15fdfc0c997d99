"""How far everybody is, and how far one person: counted seldom, and kept up to date in between.

Counting takes tens of milliseconds in a large project, so a server counts again only after a while,
and adds what it stores itself. What other servers store is seen at the next count.
"""

import math
import threading
import time
from typing import Any

from sqlalchemy import Connection, func, select, text

from comes.annotate.project import Project
from comes.annotate.schema import DECISION, answers, cards

FRESH = 10.0  # seconds between two counts of all cards
FRESH_PERSON = 60.0  # and of the answers of a person
MOST_PEOPLE = 1000  # whose counts are kept

_OTHER = cards.alias("other")


def count_progress(connection: Connection, annotator: str) -> dict[str, Any]:
    """Return what `ProgressCounter.read` does, counted anew."""
    return _join_counts(_count_all(connection), _count_own(connection, annotator))


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
        self._all = (0, 0)
        self._counted_all = -math.inf  # never
        self._own: dict[str, tuple[float, int, float, int]] = {}  # time of the count, and counts

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
            whole, own, before = self._all, self._own.get(annotator), self._n_changes
            is_old = now - self._counted_all >= FRESH
        if is_old or own is None or now - own[0] >= FRESH_PERSON:
            with self._project.reading() as connection:
                whole = _count_all(connection) if is_old else whole
                if own is None or now - own[0] >= FRESH_PERSON:
                    own = (now, *_count_own(connection, annotator))
            with self._lock:
                # Of what changed meanwhile nobody knows whether it was counted.
                if before == self._n_changes:
                    self._all = whole
                    self._counted_all = now if is_old else self._counted_all
                    if len(self._own) >= MOST_PEOPLE:
                        self._own.clear()
                    self._own[annotator] = own
        return _join_counts(whole, own[1:])

    def add(self, annotator: str, n_answers: int, seconds: float) -> None:
        """Take answers into account that were stored."""
        with self._lock:
            self._n_changes += 1
            total, n_open = self._all
            self._all = total, n_open - n_answers
            if annotator in self._own:
                at, mine, spent, barred = self._own[annotator]
                self._own[annotator] = (at, mine + n_answers, spent + seconds, barred)

    def forget(self, annotator: str) -> None:
        """Count again next time, since this person has taken something back."""
        with self._lock:
            self._n_changes += 1
            self._counted_all = -math.inf
            self._own.pop(annotator, None)


def _count_all(connection: Connection) -> tuple[int, int]:
    """Return how many cards there are, and how many are open, other than controls and decisions."""
    total = select(func.count()).select_from(cards).scalar_subquery()
    is_open = select(func.count()).select_from(cards).where(~cards.c.is_done).scalar_subquery()
    whole, n_open = connection.execute(select(total, is_open)).one()
    special = select(func.count(), func.count().filter(~cards.c.is_done))
    apart, n_apart = connection.execute(special.where(cards.c.turn >= text(str(DECISION)))).one()
    return whole - apart, n_open - n_apart


def _count_own(connection: Connection, annotator: str) -> tuple[int, float, int]:
    """Return the answers of a person, their seconds, and the open cards that are not for them."""
    stands = answers.c.annotator == annotator, answers.c.undone_at.is_(None)
    mine, seconds = connection.execute(
        select(func.count(), func.coalesce(func.sum(answers.c.seconds), 0.0)).where(*stands)
    ).one()
    is_other = (
        (_OTHER.c.item_id == cards.c.item_id)
        & (_OTHER.c.class_id == cards.c.class_id)
        & (_OTHER.c.id != cards.c.id)
    )
    barred = (
        select(func.count(_OTHER.c.id.distinct()))
        .select_from(answers)
        .join(cards, cards.c.id == answers.c.card_id)
        .join(_OTHER, is_other)
        .where(*stands, ~_OTHER.c.is_done)
    )
    return mine, float(seconds), connection.execute(barred).scalar_one()


def _join_counts(whole: tuple[int, int], own: tuple[int, float, int]) -> dict[str, Any]:
    (total, n_open), (mine, seconds, barred) = whole, own
    return {
        "total": total,
        "done": total - n_open,
        "mine": mine,
        "seconds": round(seconds, 1),
        "left": max(n_open - barred, 0),
    }
