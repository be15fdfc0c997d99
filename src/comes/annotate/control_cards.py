"""Control cards: questions whose answer is known, mixed in to see how well each person answers.

They look like any other card. A person gets each at most once, about the wanted share of the cards
of a block. What is said to them is never exported and counts for nothing but the person.
"""

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from sqlalchemy import Connection, Row, delete, insert, select

from comes.annotate.project import Project
from comes.annotate.schema import CONTROL, CONTROLS, cards, controls, insert_rows, settings
from comes.datasets.table import read_table
from comes.errors import ComesError, listed

SHARE = "control_share"  # a setting of the project


def set_controls(project: Project, known: str | Path | pd.DataFrame, share: float = 0.05) -> int:
    r"""Say which answers are known, in place of what was said before; return how many.

    Parameters
    ----------
    project : Project
    known : path, or DataFrame
        With the columns item, label and answer: no or yes.
    share : float
        About this share of the cards that people get are control cards, in [0, 0.5].

    Returns
    -------
    n_controls : int

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> known = pd.DataFrame({"item": ["rain"], "label": ["weather"], "answer": ["yes"]})
    >>> with trial_project() as project:
    ...     set_controls(project, known, share=0.1)
    1
    """
    if not 0 <= share <= 0.5:
        raise ComesError(f"the share of control cards must be in [0, 0.5]; got {share:g}.")
    numbered = number_rows(project, known, ("no", "yes"))
    rows = [
        {"item_id": item, "class_id": class_, "known": answer} for item, class_, answer in numbered
    ]
    with project.writing() as connection:
        connection.execute(delete(controls))
        insert_rows(connection, controls, rows)
        connection.execute(delete(settings).where(settings.c.name == SHARE))
        connection.execute(insert(settings).values(name=SHARE, value=str(share)))
    return len(rows)


def number_rows(
    project: Project, given: str | Path | pd.DataFrame, words: Sequence[str]
) -> list[tuple[int, int, Any]]:
    """Return the number of the item, that of the class, and the answer, of each row of a table."""
    needed = ("item", "label", "answer")
    table = given if isinstance(given, pd.DataFrame) else read_table(Path(given), needed)
    if missing := [name for name in needed if name not in table]:
        raise ComesError(
            f"the table must have the columns item, label and answer; {listed(missing)} is "
            "missing. Add it."
        )
    item_of = {name: number for number, name in enumerate(project.item_names, 1)}
    class_of = {name: number for number, name in enumerate(project.class_names, 1)}
    columns = [table[name].astype(str).str.strip() for name in needed]
    for what, column, there in zip(needed, columns, (item_of, class_of, words), strict=True):
        if unknown := [value for value in column.unique() if value not in there]:
            wanted = " or ".join(words) if what == "answer" else "one of the project"
            raise ComesError(
                f"the {what} of a row must be {wanted}; got {listed(unknown, 3)}. "
                "Correct the table."
            )
    pairs = Counter(zip(*columns[:2], strict=True))
    if twice := [pair for pair, count in pairs.items() if count > 1]:
        raise ComesError(
            f"an item and a label must be there once; {', '.join(twice[0])} is there more often. "
            "Leave one of them."
        )
    return [
        (item_of[item], class_of[label], answer)
        for item, label, answer in zip(*columns, strict=True)
    ]


def insert_controls(
    connection: Connection, chosen: Sequence[int], annotator: str, *, by_item: bool = False
) -> list[int]:
    """Make control cards for a block of cards that a person gets; return their numbers.

    They are of the class of the block, or with ``by_item`` of its items, and of questions that this
    person was never asked.
    """
    share = connection.execute(select(settings.c.value).where(settings.c.name == SHARE)).scalar()
    if not share or not chosen or not float(share):
        return []
    block = connection.execute(
        select(cards.c.item_id, cards.c.class_id, cards.c.position).where(cards.c.id.in_(chosen))
    ).all()
    wanted = sum(random.random() < float(share) for _ in block)
    if not wanted:
        return []
    same = cards.c.item_id == controls.c.item_id, cards.c.class_id == controls.c.class_id
    own = select(cards.c.id).where(*same, cards.c.annotator == annotator)
    # Who answered a control card would never get an open card about the same.
    open_ = select(cards.c.id).where(*same, ~cards.c.is_done, cards.c.turn < CONTROLS)
    here = (
        controls.c.item_id.in_({card.item_id for card in block})
        if by_item
        else controls.c.class_id == block[0].class_id
    )
    asked = {(card.item_id, card.class_id) for card in block}
    free = [
        row
        for row in connection.execute(select(controls).where(here, ~own.exists(), ~open_.exists()))
        if (row.item_id, row.class_id) not in asked
    ]
    return [
        _insert_card(connection, row, random.choice(block).position)
        for row in random.sample(free, min(wanted, len(free)))
    ]


def _insert_card(connection: Connection, control: Row[Any], position: int) -> int:
    """Insert a card for one person, beside those that others had."""
    row = {
        "item_id": control.item_id,
        "class_id": control.class_id,
        # Not the next one, which another server may be giving to somebody else.
        "turn": CONTROLS + random.randrange(2**30),
        "source": CONTROL,
        "known": control.known,
        "position": position,
    }
    made = insert(cards).values(row).returning(cards.c.id)
    return int(connection.execute(made).scalar_one())
