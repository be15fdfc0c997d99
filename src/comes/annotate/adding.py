"""More cards for a project: drawn at random, chosen by a model, or skipped before."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import Connection, func, select, update

from comes.annotate.project import Project
from comes.annotate.sampling import sample_more
from comes.annotate.schema import CONTROL, RANDOM, answers, cards, classes, insert_rows, settings
from comes.datasets.long import BY_MODEL, MODEL
from comes.errors import ComesError, listed

Pair = tuple[int, int]  # numbers of an item and a class
Place = tuple[int, int, int]  # the same, and the turn of the card


def add_random_cards(project: Project, wanted: Sequence[str], rate: float, seed: int) -> int:
    """Ask about more items of some classes, drawn among those not drawn yet.

    A card that a model chose before and that is drawn now counts as drawn.

    Parameters
    ----------
    project : Project
    wanted : sequence of str
        Names of classes.
    rate : float
        Share of all items that is drawn for each class, in (0, 1].
    seed : int

    Returns
    -------
    n_drawn : int

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project(rate=0.5) as project:
    ...     add_random_cards(project, ["weather"], rate=0.5, seed=0)
    1
    """
    numbers = _number_classes(project, list(dict.fromkeys(wanted)))
    n_items = len(project.item_names)
    with project.writing() as connection:
        n_drawn, number_of_round, rates = 0, next_round(connection), read_rates(connection)
        for number in numbers:
            is_own = cards.c.class_id == number, cards.c.source != CONTROL
            own = select(cards.c.item_id, cards.c.source).where(*is_own)
            source_of = {row.item_id: row.source for row in connection.execute(own)}
            drawn = np.zeros(n_items, dtype=bool)
            drawn[[item - 1 for item, source in source_of.items() if source not in BY_MODEL]] = True
            more = [row + 1 for row in sample_more(drawn, rate, seed + number)]
            is_chosen = cards.c.item_id.in_([item for item in more if item in source_of])
            connection.execute(update(cards).where(*is_own, is_chosen).values(source=RANDOM))
            new = [(item, number, 0) for item in more if item not in source_of]
            n_open = max(n_items - len(source_of), 1)
            drawn_with = [{"round": number_of_round, "probability": len(new) / n_open}] * len(new)
            append_cards(connection, new, RANDOM, drawn_with)
            connection.execute(
                update(classes)
                .where(classes.c.id == number)
                .values(rate=min(1.0, rates[number] + rate))
            )
            n_drawn += len(more)
    return n_drawn


def add_chosen_cards(project: Project, pairs: pd.DataFrame) -> int:
    """Ask about pairs that a model chose.

    Their answers count in the likelihood, but not in estimated rates and priors, nor in the sums of
    COMES, which need pairs that were drawn at random.

    Parameters
    ----------
    project : Project
    pairs : DataFrame
        With the columns item and label. Pairs that have a card already are left out.

    Returns
    -------
    n_added : int

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project(rate=0.5) as project:
    ...     pairs = pd.DataFrame({"item": ["rain", "goal"], "label": "weather"})
    ...     add_chosen_cards(project, pairs)
    1
    """
    for column in ("item", "label"):
        if column not in pairs:
            raise ComesError(f"cards need the columns item and label; {column} is missing.")
    items = _number_items(project, list(pairs["item"].astype(str)))
    labels = _number_classes(project, list(pairs["label"].astype(str)))
    chosen = list(dict.fromkeys(zip(items, labels, strict=True)))
    with project.writing() as connection:
        is_asked = cards.c.source != CONTROL  # which may also be asked for its answer
        asked = connection.execute(select(cards.c.item_id, cards.c.class_id).where(is_asked))
        known = {(row.item_id, row.class_id) for row in asked}
        new = [(*pair, 0) for pair in chosen if pair not in known]
        return append_cards(connection, new, MODEL, [{"round": next_round(connection)}] * len(new))


def reopen_skipped_cards(project: Project) -> int:
    """Ask again what people skipped; return how many cards that are.

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:  # where nobody has skipped a card
    ...     reopen_skipped_cards(project)
    0
    """
    skips = answers.c.answer == "skip", answers.c.undone_at.is_(None)
    free = {"is_done": False, "tab": None, "annotator": None, "leased_until": None}
    with project.writing() as connection:
        skipped = cards.c.id.in_(select(answers.c.card_id).where(*skips))
        connection.execute(update(cards).where(skipped).values(**free))
        undone = update(answers).where(*skips).values(undone_at=time.time())
        return connection.execute(undone).rowcount


def append_cards(
    connection: Connection,
    places: Sequence[Place],
    source: str,
    drawn_with: Sequence[Mapping[str, Any]] | None = None,
    *,
    first: bool = False,
) -> int:
    """Add cards behind all others, or before them; return how many.

    ``drawn_with`` holds further columns of each card: its round, probability and so on.
    """
    end = func.min(cards.c.position) if first else func.max(cards.c.position)
    last = connection.execute(select(end)).scalar_one() or 0
    start = last - len(places) if first else last + 1
    rows = (
        {
            "item_id": item,
            "class_id": class_,
            "turn": turn,
            "source": source,
            "position": start + k,
            **(drawn_with[k] if drawn_with else {}),
        }
        for k, (item, class_, turn) in enumerate(places)
    )
    insert_rows(connection, cards, rows)
    return len(places)


def next_round(connection: Connection) -> int:
    """Return the number of the next round of questions; the first cards are of none."""
    return (connection.execute(select(func.max(cards.c.round))).scalar_one() or 0) + 1


def read_rates(connection: Connection) -> dict[int, float]:
    """Return the share of the items that was drawn at random for each class, by its number."""
    usual = float(read_setting_of(connection, "rate") or 0.1)
    found = connection.execute(select(classes.c.id, classes.c.rate).order_by(classes.c.id))
    return {number: usual if rate is None else rate for number, rate in found}


def read_setting_of(connection: Connection, name: str) -> str | None:
    """Return a setting inside a transaction."""
    query = select(settings.c.value).where(settings.c.name == name)
    return connection.execute(query).scalar_one_or_none()


def _number_items(project: Project, wanted: Sequence[str]) -> list[int]:
    known = {name: number for number, name in enumerate(project.item_names, 1)}
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ComesError(f"the project has no item {listed(unknown, 3)}. Correct the names.")
    return [known[name] for name in wanted]


def _number_classes(project: Project, wanted: Sequence[str]) -> list[int]:
    names = project.class_names
    known = {name: number for number, name in enumerate(names, 1)}
    unknown = [name for name in dict.fromkeys(wanted) if name not in known]
    if unknown:
        raise ComesError(
            f"the project has no class {listed(unknown, 3)}; it has {listed(names)}. A new class "
            "goes into a file, a name on each line: comes annotate add PROJECT --new-classes FILE."
        )
    return [known[name] for name in wanted]
