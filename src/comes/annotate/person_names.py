"""The names under which people answer: which are known, and which differ only in how they look."""

import unicodedata
from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy.dialects import postgresql, sqlite

from comes.annotate.leases import RefusedError
from comes.annotate.schema import answers, people


class KnownNameError(RefusedError):
    """A name that differs from a known one in case or blanks only."""

    def __init__(self, known: str) -> None:
        super().__init__(
            409, f"{known} has answered before; say that you are the same, or choose another name"
        )
        self.known = known


def clean_name(given: str) -> str:
    """Return a name as it is kept: composed letters, single blanks; refuse what cannot be seen.

    Examples
    --------
    >>> clean_name("  Ada   Lovelace ")
    'Ada Lovelace'
    """
    composed = unicodedata.normalize("NFC", given)
    if not composed.isprintable():
        raise RefusedError(422, "a name must consist of visible characters")
    return " ".join(composed.split())


def join_person(connection: Connection, name: str, *, is_same: bool, now: float) -> str:
    """Keep who joins; return the name under which this person answers.

    A name that differs from a known one in case or blanks only is refused with `KnownNameError`,
    unless the person ``is_same``: then the known name is the answer.
    """
    if connection.execute(select(people.c.name).where(people.c.name == name)).first():
        return name
    named = connection.execute(select(people.c.name)).scalars()
    answered = connection.execute(select(answers.c.annotator).distinct()).scalars()
    known = {*named, *answered}
    alike = sorted(old for old in known if _fold(old) == _fold(name))
    if alike and name not in known:
        if not is_same:
            raise KnownNameError(alike[0])
        name = alike[0]
    # Two servers may do this at the same moment.
    dialects: dict[str, Any] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
    new = dialects[connection.dialect.name](people).values(name=name, joined_at=now)
    connection.execute(new.on_conflict_do_nothing())
    return name


def _fold(name: str) -> str:
    """Return what names have in common that look alike."""
    return "".join(unicodedata.normalize("NFKC", name).casefold().split())
