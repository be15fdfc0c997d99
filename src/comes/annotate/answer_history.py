"""What a person answered last, so that it can be undone in another tab or browser."""

from typing import Any

from sqlalchemy import Connection, select

from comes.annotate.leases import show_cards
from comes.annotate.schema import answers

MOST_ANSWERS = 60  # that a page is told of


def find_history(
    connection: Connection, annotator: str, most: int = MOST_ANSWERS
) -> list[dict[str, Any]]:
    """Return the last answers of a person that stand, the newest last.

    Returns
    -------
    history : list of dict
        Each has the ``card`` as a page shows it, the ``answer``, its ``key``, which undoes it, its
        ``seconds``, and the time ``at`` which it was stored: answers of a request share it.
    """
    stands = answers.c.annotator == annotator, answers.c.undone_at.is_(None)
    query = select(answers).where(*stands).order_by(answers.c.id.desc()).limit(most)
    rows = connection.execute(query).all()[::-1]
    shown = {card["card"]: card for card in show_cards(connection, [row.card_id for row in rows])}
    return [
        {
            "card": shown[row.card_id],
            "answer": row.answer,
            "key": row.key,
            "seconds": row.seconds or 0.0,
            "at": row.answered_at,
        }
        for row in rows
    ]
