"""Notes on cards: a flag, or words for the lead."""

from sqlalchemy import Connection, func, insert, select

from comes.annotate.leases import Asker, RefusedError
from comes.annotate.schema import answers, cards, notes

MOST_CHARACTERS = 2000  # of a note
MOST_A_MINUTE = 20_000  # characters of a person; a flag counts as FLAG of them
FLAG = 100


def write_note(connection: Connection, asker: Asker, card: int, text: str, *, now: float) -> bool:
    """Store a note on a card; an empty one is a flag. Return whether it is new.

    People write about cards that they hold, or have answered. The same note sent again is one.
    """
    found = connection.execute(select(cards).where(cards.c.id == card)).one_or_none()
    if found is None:
        raise RefusedError(404, "there is no such card", card)
    own = answers.c.card_id == card, answers.c.annotator == asker.annotator
    if (
        found.annotator != asker.annotator
        and not connection.execute(select(answers.c.id).where(*own).limit(1)).first()
    ):
        raise RefusedError(409, "this card is not yours, so you cannot write about it", card)
    of_person = notes.c.annotator == asker.annotator
    same = notes.c.card_id == card, notes.c.text == text, notes.c.resolved_at.is_(None)
    if connection.execute(select(notes.c.id).where(of_person, *same).limit(1)).first():
        return False
    lately = select(func.coalesce(func.sum(func.length(notes.c.text) + FLAG), 0))
    lately = lately.where(of_person, notes.c.written_at > now - 60)
    if connection.execute(lately).scalar_one() + len(text) + FLAG > MOST_A_MINUTE:
        raise RefusedError(429, "these are many notes for one minute; send this one later", card)
    row = {"card_id": card, "annotator": asker.annotator, "text": text, "written_at": now}
    connection.execute(insert(notes).values(row))
    return True
