"""A project that grows: more items, more classes, and cards for them at the rates it has."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sqlalchemy import Connection, func, insert, select

from comes.annotate.asking import check_template
from comes.annotate.cards import (
    Place,
    append_cards,
    next_round,
    read_rates,
    read_setting_of,
    sample_cards,
)
from comes.annotate.exchange import read_answers
from comes.annotate.items import (
    Classes,
    Items,
    ItemSource,
    check_characters,
    read_classes,
    read_items,
)
from comes.annotate.project import Project
from comes.annotate.schema import (
    ACTIVE,
    CONTROL,
    RANDOM,
    answers,
    cards,
    classes,
    insert_rows,
    items,
    rounds,
    settings,
)
from comes.answers import AnswerRates
from comes.answers.questions import Drawn, Round, Share, estimate_share, pool_shares
from comes.datasets.labels import NO, YES
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
    read = read_items(item_source)
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


FloatArray = npt.NDArray[np.float64]


def find_open_pairs(project: Project) -> npt.NDArray[np.bool_]:
    """Return which pairs of item and class nobody was to be asked about, (n_items, n_classes).

    A control card, whose answer is known, is no question.

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project(rate=0.5) as project:
    ...     find_open_pairs(project).sum(axis=0)
    array([0, 1])
    """
    with project.reading() as connection:
        return _find_open(connection)


def add_active_cards(
    project: Project,
    drawn: Drawn,
    relevance: FloatArray,
    rates: AnswerRates | None = None,
    *,
    seed: int = 0,
    learned_at: float | None = None,
) -> int:
    """Ask next about pairs that were drawn by chance, with probabilities that a model gave.

    Their answers count in the likelihood. What was drawn, and how, is kept, so that
    `estimate_shares` stays right.

    Parameters
    ----------
    project : Project
    drawn : Drawn
        From `comes.answers.questions`, of the pairs that `find_open_pairs` returned.
    relevance : array of shape (n_items, n_classes)
        As the model sees it.
    rates : comes.answers.AnswerRates, optional
        How often people dare to say "no" and "yes"; by default always.
    seed : int
        That of the draw, to be kept.
    learned_at : float, optional
        When the answers were read that the model knows, in seconds since 1970; by default now.

    Returns
    -------
    round : int
        The number of the round.

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> from comes.answers.questions import draw_questions
    >>> with trial_project(rate=0.5) as project:
    ...     eta = np.full((2, 2), 0.5)
    ...     drawn = draw_questions(eta, 1, is_open=find_open_pairs(project))
    ...     add_active_cards(project, drawn, eta), project.count_cards()
    (2, 4)
    """
    one = np.ones(relevance.shape[1])
    rates = AnswerRates(one, one) if rates is None else rates
    with project.writing() as connection:
        if (_find_open(connection) != (drawn.inclusion > 0))[:, _is_drawn(drawn)].any():
            raise ComesError(
                "questions were added while these were drawn, so their probabilities are no longer "
                "right. Draw again."
            )
        number = next_round(connection)
        places = [(int(i) + 1, int(j) + 1, 0) for i, j in zip(drawn.row, drawn.label, strict=True)]
        expected = relevance[drawn.row, drawn.label]
        drawn_with = [
            {"round": number, "probability": p, "expected": m}
            for p, m in zip(drawn.probability.tolist(), expected.tolist(), strict=True)
        ]
        append_cards(connection, places, ACTIVE, drawn_with, first=True)
        rows = _describe_round(connection, drawn, relevance, rates)
        made = {"round": number, "seed": seed, "made_at": learned_at or time.time()}
        connection.execute(insert(rounds), [{**row, **made} for row in rows])
    return number


def count_new_answers(project: Project) -> int:
    """Return how many answers came since a model last drew questions, or in all.

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     count_new_answers(project)
    1
    """
    with project.reading() as connection:
        last = connection.execute(select(func.max(rounds.c.made_at))).scalar_one() or 0.0
        stands = answers.c.undone_at.is_(None), answers.c.answer != "skip"
        new = select(func.count()).select_from(answers).where(answers.c.answered_at > last, *stands)
        return int(connection.execute(new).scalar_one())


def count_rounds(project: Project) -> int:
    """Return how many rounds of questions a model has drawn.

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project() as project:
    ...     count_rounds(project)
    0
    """
    with project.reading() as connection:
        return len(connection.execute(select(rounds.c.round).distinct()).all())


def _find_open(connection: Connection) -> npt.NDArray[np.bool_]:
    n_items, n_classes = (
        connection.execute(select(func.max(table.c.id))).scalar_one() or 0
        for table in (items, classes)
    )
    is_open = np.ones((n_items, n_classes), dtype=bool)
    pairs = select(cards.c.item_id, cards.c.class_id).where(cards.c.source != CONTROL)
    asked = connection.execute(pairs).all()
    if asked:
        row, column = np.array(asked, dtype=np.int64).T - 1
        is_open[row, column] = False
    return is_open


def _is_drawn(drawn: Drawn) -> npt.NDArray[np.bool_]:
    """Return which classes took part in a draw."""
    return np.asarray((drawn.inclusion > 0).any(axis=0))


def _describe_round(
    connection: Connection, drawn: Drawn, relevance: FloatArray, rates: AnswerRates
) -> list[dict[str, Any]]:
    """Return what is kept of a draw, for each class and batch of items."""
    spread, could_be = drawn.spread, drawn.inclusion > 0
    return [
        {
            "class_id": int(j) + 1,
            "batch": batch,
            "spread": float(spread[start - 1 : end, j].sum()),
            "relevance": float((relevance * could_be)[start - 1 : end, j].sum()),
            "no_rate": float(rates.no_rate[j]),
            "yes_rate": float(rates.yes_rate[j]),
        }
        for batch, (start, end) in enumerate(read_batches(connection, len(could_be)))
        for j in np.flatnonzero(_is_drawn(drawn))
    ]


def estimate_shares(project: Project) -> pd.DataFrame:
    """Estimate for each class the share of all items about which people would say yes, and no.

    Every question counts with the probability with which it was drawn; the formula is in
    docs/guide/annotate-growing.md. About a pair with several answers, all must say so. Questions
    that a model chose without chance, and imported ones, count as known, and estimate nothing.

    Returns
    -------
    table : DataFrame
        A row for each class: class, asked (pairs with an answer), and for yes and no the share with
        its bounds, yes, yes_lower, yes_upper, no, no_lower, no_upper. NaN where nobody was asked.

    Examples
    --------
    >>> from comes.annotate import trial_project
    >>> with trial_project(rate=0.5) as project:
    ...     estimate_shares(project)[["class", "asked", "no"]]
         class  asked  no
    0    sport      1 NaN
    1  weather      0 NaN
    """
    names, n_items = project.class_names, len(project.item_names)
    asked = _read_questions(project)
    with project.reading() as connection:
        batches = read_batches(connection, n_items)
        kept = connection.execute(select(rounds)).all()
    rows = []
    for number, name in enumerate(names, 1):
        own = asked[asked["class_id"] == number]
        row: dict[str, Any] = {"class": name, "asked": int(own["answer"].notna().sum())}
        for word in (YES, NO):
            parts = []
            for batch, (start, end) in enumerate(batches):
                inside = own[own["item_id"].between(start, end)]
                how = [one for one in kept if (one.class_id, one.batch) == (number, batch)]
                parts.append(_estimate(inside, end - start + 1, how, word))
            share = _pool(parts, [end - start + 1 for start, end in batches])
            row |= {word: share.share, f"{word}_lower": share.lower, f"{word}_upper": share.upper}
        rows.append(row)
    return pd.DataFrame(rows)


def _read_questions(project: Project) -> pd.DataFrame:
    """Return a row per question: item_id, class_id, answer, round, probability, expected.

    The answer is what all say, "" where they disagree, and missing where nobody has answered.
    """
    columns = [cards.c[name] for name in ("item_id", "class_id", "source", "known")]
    columns += [cards.c[name] for name in ("round", "probability", "expected")]
    with project.reading() as connection:
        rows = connection.execute(select(*columns).where(cards.c.turn == 0)).all()
    asked = pd.DataFrame(rows, columns=[column.name for column in columns])
    said = read_answers(project).groupby(["item_id", "class_id"])["answer"]
    agreed = said.first().where(said.nunique() == 1, "").reset_index()
    table = asked.merge(agreed, how="left", on=["item_id", "class_id"])
    is_control, is_first = table["source"] == CONTROL, table["round"].isna()
    table.loc[is_control, "answer"] = table.loc[is_control, "known"]
    # Before the first round come controls; after it what older versions imported or chose.
    first = np.where(table["source"] == RANDOM, 0.0, 0.5)
    number = np.where(is_first, first, table["round"].astype(float))
    return table.assign(round=np.where(is_control, -1.0, number))


def _estimate(asked: pd.DataFrame, n_items: int, kept: list[Any], word: str) -> Share:
    """Return the share of items with this answer, of one class in one batch of items."""
    draws = {one.round: one for one in kept}
    in_order, n_open = [], n_items
    for number, own in asked.groupby("round"):
        is_word = (own["answer"] == word).to_numpy(dtype=float)
        values = np.where(own["answer"].isna(), np.nan, is_word)
        p = own["probability"].to_numpy(dtype=float)
        if number == 0:  # the first round is uniform
            p = np.full(len(own), len(own) / max(n_open, 1))
        draw, eta = draws.get(number), own["expected"].to_numpy(dtype=float)
        if draw is None:
            in_order.append(Round(values, p))
        elif word == YES:
            expected = draw.yes_rate * eta, draw.yes_rate * draw.relevance
            in_order.append(Round(values, p, *expected, draw.spread))
        else:
            expected = draw.no_rate * (1 - eta), draw.no_rate * (n_open - draw.relevance)
            in_order.append(Round(values, p, *expected, draw.spread))
        n_open -= len(own)
    return estimate_share(in_order, n_items)


def _pool(parts: list[Share], sizes: list[int]) -> Share:
    """Return the share over all batches; one about which nothing is known is as the others."""
    told = [k for k, part in enumerate(parts) if not np.isnan(part.share)]
    if not told:
        return Share(np.nan, np.nan, np.nan, np.nan)
    return pool_shares([parts[k] for k in told], [sizes[k] for k in told])
