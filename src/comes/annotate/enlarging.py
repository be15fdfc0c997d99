"""A project that grows: more items, more classes, and cards for them at the rates it has."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sqlalchemy import Connection, func, insert, select

from comes.annotate.adding import Place, append_cards, next_round, read_rates, read_setting_of
from comes.annotate.asking import check_template
from comes.annotate.item_sources import (
    Classes,
    Items,
    ItemSource,
    check_characters,
    read_classes,
    read_items,
)
from comes.annotate.project import Project
from comes.annotate.sampling import sample_cards
from comes.annotate.schema import RANDOM, cards, classes, insert_rows, items, settings
from comes.errors import ComesError
from comes.files import expanded

BATCHES = "batches"  # setting: the last numbers of items that came together, all but the last


def add_items(
    project: Project,
    item_source: str | Path | ItemSource,
    *,
    images: str | Path | None = None,
    rate: float | None = None,
    seed: int = 0,
) -> dict[str, int]:
    r"""Add items to a project, and cards that ask about some of them.

    Cards that there are stay as they are. Items whose names the project has are left out, so the
    same folder can be read again when it has grown. A server that runs notices.

    Parameters
    ----------
    project : Project
    item_source : path, or ItemSource
        As in `create_project`, and of the same kind: images or texts.
    images : path, optional
        The folder or .zip of the images that ``item_source`` names.
    rate : float, optional
        Share of the new items that are asked about each class; by default the share of the items
        that were drawn at random for the class so far.
    seed : int

    Returns
    -------
    counts : dict
        Under items_added, left_out (known names) and cards_added.

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project(rate=1) as project:
    ...     file = project.folder / "more.csv"
    ...     _ = file.write_text("item,text\nrain,It rains.\nsun,It is hot.\n")
    ...     add_items(project, file)
    ...     print(project.item_names)
    {'items_added': 1, 'left_out': 1, 'cards_added': 2}
    ['rain', 'goal', 'sun']
    """
    if not isinstance(item_source, ItemSource):
        item_source = ItemSource(item_source, images)
    copies = project.folder.with_name(f"{project.name}-items-{len(project.item_names) + 1}")
    read = read_items(item_source, copies)
    kind = "text" if read.images is None else "image"
    if kind != project.kind:
        raise ComesError(
            f"{Path(item_source.place).name} holds {kind}s, and {project.name} is a project of "
            f"{project.kind}s. Make another project for them."
        )
    return insert_more_items(project, read, rate=rate, seed=seed)


def insert_more_items(
    project: Project, read: Items, *, rate: float | None = None, seed: int = 0
) -> dict[str, int]:
    """Insert items that were read, and cards for them; return how many."""
    check_characters([*read.names, *(read.texts or ())])
    if rate is not None and not 0 < rate <= 1:
        raise ComesError(f"rate must be in (0, 1]; got {rate:g}.")
    with project.writing() as connection:
        known = set(connection.execute(select(items.c.name)).scalars())
        new = [row for row, name in enumerate(read.names) if name not in known]
        counts = {"items_added": len(new), "left_out": len(read.names) - len(new)}
        if not new:
            return counts | {"cards_added": 0}
        _insert_items(connection, project, read, new, len(known), apart=rate is not None)
        numbers = np.arange(len(known) + 1, len(known) + len(new) + 1)
        rates = read_rates(connection)
        if rate is not None:
            rates = dict.fromkeys(rates, rate)
        by = read_setting_of(connection, "by")
        drawn = _draw_for_items(numbers, rates, seed + len(known), by)
        how = None if rate is None else [{"round": next_round(connection), "probability": rate}]
        n_cards = append_cards(connection, drawn, RANDOM, how and how * len(drawn))
        return counts | {"cards_added": n_cards}


def add_classes(
    project: Project, class_source: str | Path, *, rate: float | None = None, seed: int = 0
) -> dict[str, int]:
    r"""Add classes to a project, and cards that ask about them.

    Parameters
    ----------
    project : Project
    class_source : path
        As in `create_project`. Classes that the project has are left out.
    rate : float, optional
        Share of the items that are asked about each new class; by default the project's.
    seed : int

    Returns
    -------
    counts : dict
        Under classes_added, left_out (known names) and cards_added.

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project(rate=1) as project:
    ...     file = project.folder / "more.txt"
    ...     _ = file.write_text("sport\ntravel\n")
    ...     add_classes(project, file)
    ...     print(project.class_names)
    {'classes_added': 1, 'left_out': 1, 'cards_added': 2}
    ['sport', 'weather', 'travel']
    """
    return insert_more_classes(project, read_classes(expanded(class_source)), rate=rate, seed=seed)


def insert_more_classes(
    project: Project, read: Classes, *, rate: float | None = None, seed: int = 0
) -> dict[str, int]:
    """Insert classes that were read, and cards for them; return how many."""
    questions = [question for question in read.questions if question]
    check_characters([*read.names, *read.descriptions, *questions])
    for question in questions:
        check_template(question)
    n_items = len(project.item_names)
    with project.writing() as connection:
        known = set(connection.execute(select(classes.c.name)).scalars())
        new = [row for row, name in enumerate(read.names) if name not in known]
        counts = {"classes_added": len(new), "left_out": len(read.names) - len(new)}
        if not new:
            return counts | {"cards_added": 0}
        share = float(read_setting_of(connection, "rate") or 0.1) if rate is None else rate
        drawn = sample_cards(n_items, len(new), share, seed=seed + len(known))
        rows = [
            {
                "id": number,
                "name": read.names[row],
                "description": read.descriptions[row],
                "question": read.questions[row],
                "rate": share,
            }
            for number, row in enumerate(new, len(known) + 1)
        ]
        insert_rows(connection, classes, rows)
        pairs = zip(drawn.item + 1, drawn.class_ + len(known) + 1, strict=True)
        places = [(int(item), int(class_), 0) for item, class_ in pairs]
        return counts | {"cards_added": append_cards(connection, places, RANDOM)}


def read_batches(connection: Connection, n_items: int) -> list[tuple[int, int]]:
    """Return the first and last numbers of items that could be drawn in the same rounds."""
    ends = [*json.loads(read_setting_of(connection, BATCHES) or "[]"), n_items]
    return [(start + 1, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def _insert_items(
    connection: Connection,
    project: Project,
    read: Items,
    new: Sequence[int],
    n_known: int,
    *,
    apart: bool,
) -> None:
    """Insert items behind those that there are."""
    texts: Sequence[str | None] = read.texts or [None] * len(read.names)
    place = None if read.images is None else str(read.images.resolve())
    own = None if project.source is None else str(project.source)
    rows = (
        {
            "id": number,
            "name": read.names[row],
            "text": texts[row],
            "source": None if place == own else place,
        }
        for number, row in enumerate(new, n_known + 1)
    )
    insert_rows(connection, items, rows)
    is_later = connection.execute(select(func.max(cards.c.round))).scalar_one() is not None
    if is_later or apart:  # earlier rounds could not draw these items, or not at this rate
        ends = [*json.loads(read_setting_of(connection, BATCHES) or "[]"), n_known]
        connection.execute(settings.delete().where(settings.c.name == BATCHES))
        connection.execute(insert(settings).values(name=BATCHES, value=json.dumps(ends)))


def _draw_for_items(
    numbers: npt.NDArray[np.int64], rates: dict[int, float], seed: int, by: str | None
) -> list[Place]:
    """Draw cards for new items, each class at its rate, in blocks of a class or of an item."""
    rng, drawn = np.random.default_rng(seed), []
    if by == "item":
        rate = max(rates.values(), default=0.0)
        chosen = rng.choice(numbers, _round_by_chance(rate * len(numbers), rng), replace=False)
        return [(int(item), class_, 0) for item in chosen for class_ in rates]
    for class_ in rng.permutation(list(rates)).tolist():
        n_asked = _round_by_chance(rates[class_] * len(numbers), rng)
        own = rng.choice(numbers, n_asked, replace=False)
        drawn += [(int(item), class_, 0) for item in own]
    return drawn


def _round_by_chance(number: float, rng: np.random.Generator) -> int:
    """Return a whole number near it, which it is on average: few items keep their rate, too."""
    return int(np.floor(number + rng.random()))
