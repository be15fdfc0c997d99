"""A project that grows: more items, classes and questions, drawn at random or by a model."""

import json
import time
from collections.abc import Iterable, Sequence
from itertools import repeat
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sqlalchemy import Connection, delete, func, insert, select, update

from comes.annotate.cards import (
    CONTROL_SHARE,
    SHOWS_HINTS,
    Cards,
    Place,
    append_cards,
    next_round,
    sample_cards,
    sample_more,
)
from comes.annotate.exchange import read_answers
from comes.annotate.items import Classes, Items, read_classes, read_items
from comes.annotate.project import Project, insert_classes, insert_items
from comes.annotate.schema import (
    ACTIVE,
    CONTROL,
    RANDOM,
    answers,
    cards,
    classes,
    controls,
    hints,
    insert_columns,
    items,
    read_setting,
    rounds,
    write_setting,
)
from comes.answers import AnswerRates
from comes.answers.questions import Drawn, Round, Share, estimate_share, pool_shares
from comes.datasets.labels import NO, YES
from comes.datasets.long import BY_MODEL, HINT, MODEL, SOURCE
from comes.errors import ComesError
from comes.files import expanded

CONTROL_COLUMNS = ("item_id", "class_id", "known")
ROWS_AT_ONCE = 10_000  # named in one statement
BATCHES = "batches"  # setting: the last numbers of items that came together, all but the last
FloatArray = npt.NDArray[np.float64]


def add_items(
    project: Project,
    item_source: str | Path,
    *,
    images: str | Path | None = None,
    text_column: str | None = None,
    rate: float | None = None,
    seed: int = 0,
) -> dict[str, int]:
    r"""Add items to a project, and cards that ask about some of them.

    Cards that there are stay as they are. Items whose names the project has are left out, so the
    same folder can be read again when it has grown. A server that runs notices.

    Parameters
    ----------
    project : Project
    item_source, images, text_column
        As in `create_project`, and of the same kind: images or texts.
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
    >>> file = project.folder / "more.csv"
    >>> _ = file.write_text("item,text\nrain,It rains.\nsun,It is hot.\n")
    >>> add_items(project, file)
    {'items_added': 1, 'left_out': 1, 'cards_added': 2}
    >>> project.item_names
    ['rain', 'goal', 'sun']
    """
    read = read_items(item_source, images, text_column)
    kind = "text" if read.images is None else "image"
    if kind != project.kind:
        raise ComesError(
            f"{Path(item_source).name} holds {kind}s, and {project.name} is a project of "
            f"{project.kind}s. Make another project for them."
        )
    if rate is not None and not 0 < rate <= 1:
        raise ComesError(f"rate must be in (0, 1]; got {rate:g}.")
    with project.writing() as connection:
        known = set(connection.execute(select(items.c.name)).scalars())
        new = [k for k, name in enumerate(read.names) if name not in known]
        counts = {"items_added": len(new), "left_out": len(read.names) - len(new)}
        if not new:
            return counts | {"cards_added": 0}
        texts = None if read.texts is None else [read.texts[k] for k in new]
        place = None if read.images is None else read.images.resolve()
        source = None if place in (None, project.source) else str(place)
        insert_items(connection, Items([read.names[k] for k in new], texts), len(known), source)
        number = next_round(connection)
        if number > 1 or rate is not None:
            # Earlier rounds could not draw these items, or not at this rate.
            ends = [*json.loads(read_setting(connection, BATCHES) or "[]"), len(known)]
            write_setting(connection, BATCHES, json.dumps(ends))
        rates, how = _read_rates(connection), None
        if rate is not None:
            rates = dict.fromkeys(rates, rate)
            how = _describe_draw(number, rate)
        numbers = np.arange(len(known) + 1, len(known) + len(new) + 1)
        drawn = _draw_for_items(numbers, rates, seed + len(known), read_setting(connection, "by"))
        return counts | {"cards_added": append_cards(connection, drawn, RANDOM, how)}


def _draw_for_items(
    numbers: npt.NDArray[np.int64], rates: dict[int, float], seed: int, by: str | None
) -> list[Place]:
    """Draw cards for new items, each class at its rate, in blocks of a class or of an item."""
    rng = np.random.default_rng(seed)

    def draw(rate: float) -> list[int]:
        # Rounded by chance, so that few items keep their rate, too, on average.
        n_asked = int(np.floor(rate * len(numbers) + rng.random()))
        return [int(item) for item in rng.choice(numbers, n_asked, replace=False)]

    if by == "item":
        chosen = draw(max(rates.values(), default=0.0))
        return [(item, class_, 0) for item in chosen for class_ in rates]
    order = rng.permutation(list(rates)).tolist()
    return [(item, class_, 0) for class_ in order for item in draw(rates[class_])]


def _describe_draw(number: int, probability: float) -> dict[str, Iterable[float]]:
    return {"round": repeat(number), "probability": repeat(probability)}


def _read_rates(connection: Connection) -> dict[int, float]:
    """Return the share of the items that was drawn at random for each class, by its number."""
    usual = float(read_setting(connection, "rate") or 0.1)
    found = connection.execute(select(classes.c.id, classes.c.rate).order_by(classes.c.id))
    return {number: usual if rate is None else rate for number, rate in found}


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
    >>> file = project.folder / "more.txt"
    >>> _ = file.write_text("sport\ntravel\n")
    >>> add_classes(project, file)
    {'classes_added': 1, 'left_out': 1, 'cards_added': 2}
    >>> project.class_names
    ['sport', 'weather', 'travel']
    """
    read = read_classes(expanded(class_source))
    with project.writing() as connection:
        known = set(connection.execute(select(classes.c.name)).scalars())
        new = [row for row in zip(*read, strict=True) if row[0] not in known]
        counts = {"classes_added": len(new), "left_out": len(read.names) - len(new)}
        if not new:
            return counts | {"cards_added": 0}
        share = float(read_setting(connection, "rate") or 0.1) if rate is None else rate
        drawn = sample_cards(len(project.item_names), len(new), share, seed=seed + len(known))
        named = Classes(*(list(column) for column in zip(*new, strict=True)))
        insert_classes(connection, named, len(known), share)
        n_cards = append_cards(connection, drawn.places(len(known)), RANDOM)
        return counts | {"cards_added": n_cards}


def add_random_cards(project: Project, wanted: Sequence[str], rate: float, seed: int = 0) -> int:
    """Ask about more items of some classes, drawn among those not drawn yet; return how many.

    The rate is a share of all items. A card that a model chose before and that is drawn now counts
    as drawn.
    """
    numbers = project.number_classes(list(dict.fromkeys(wanted)))
    with project.writing() as connection:
        n_drawn, number_of_round, rates = 0, next_round(connection), _read_rates(connection)
        n_items = len(project.item_names)
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
            how = _describe_draw(number_of_round, len(new) / n_open)
            append_cards(connection, new, RANDOM, how)
            is_class, grown = classes.c.id == number, min(1.0, rates[number] + rate)
            connection.execute(update(classes).where(is_class).values(rate=grown))
            n_drawn += len(more)
    return n_drawn


def add_chosen_cards(project: Project, pairs: str | Path | pd.DataFrame) -> int:
    """Ask about the pairs of a table of item and label that a model chose; return how many.

    Pairs that have a card already are left out. The answers count in the likelihood, but not in
    estimated rates and priors, nor in the sums of COMES, which need pairs drawn at random.
    """
    chosen = dict.fromkeys(project.number_answers(pairs))
    with project.writing() as connection:
        is_asked = cards.c.source != CONTROL  # which may also be asked for its answer
        asked = connection.execute(select(cards.c.item_id, cards.c.class_id).where(is_asked))
        known = {(row.item_id, row.class_id) for row in asked}
        new = [(item, class_, 0) for item, class_, _ in chosen if (item, class_) not in known]
        return append_cards(connection, new, MODEL, {"round": repeat(next_round(connection))})


def reopen_skipped_cards(project: Project) -> int:
    """Ask again what people skipped; return how many cards that are."""
    skips = answers.c.answer == "skip", answers.c.undone_at.is_(None)
    free = {"is_done": False, "tab": None, "annotator": None, "leased_until": None}
    undone = update(answers).where(*skips).values(undone_at=time.time())
    with project.writing() as connection:
        # A server may store skips meanwhile: what is undone here is what is opened.
        skipped = connection.execute(undone.returning(answers.c.card_id)).scalars().all()
        for start in range(0, len(skipped), ROWS_AT_ONCE):
            own = cards.c.id.in_(skipped[start : start + ROWS_AT_ONCE])
            connection.execute(update(cards).where(own).values(**free))
    return len(skipped)


def set_controls(project: Project, known: str | Path | pd.DataFrame, share: float = 0.05) -> int:
    """Mix in cards whose answers are known, in place of those known before; return how many.

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
    >>> known = pd.DataFrame({"item": ["rain"], "label": ["weather"], "answer": ["yes"]})
    >>> set_controls(project, known, share=0.1)
    1
    """
    if not 0 <= share <= 0.5:
        raise ComesError(f"the share of control cards must be in [0, 0.5]; got {share:g}.")
    rows = project.number_answers(known, (NO, YES))
    with project.writing() as connection:
        connection.execute(delete(controls))
        columns = {name: map(itemgetter(k), rows) for k, name in enumerate(CONTROL_COLUMNS)}
        insert_columns(connection, controls, columns)
        write_setting(connection, CONTROL_SHARE, str(share))
    return len(rows)


def set_hints(project: Project, probabilities: FloatArray) -> int:
    """Show on each open card how likely a model thinks the class; return how many pairs that are.

    The probabilities are of shape (n_items, n_classes). Answers to cards that showed one count in
    the likelihood, but not in estimated rates and priors.
    """
    with project.writing() as connection:
        open_cards = select(cards.c.item_id, cards.c.class_id).where(~cards.c.is_done)
        known = select(controls.c.item_id, controls.c.class_id)  # else these would be told apart
        row, column = _read_pairs(connection, open_cards.union(known))
        connection.execute(delete(hints))
        pairs = {"item_id": (row + 1).tolist(), "class_id": (column + 1).tolist()}
        pairs["probability"] = probabilities[row, column].tolist()
        insert_columns(connection, hints, pairs)
        write_setting(connection, SHOWS_HINTS, "1")
    return len(row)


def _read_pairs(connection: Connection, query: Any) -> npt.NDArray[np.int64]:
    """Return the pairs of a query, of items and classes counted from 0, (2, n_pairs)."""
    pairs = np.array(connection.execute(query).all(), dtype=np.int64)
    return np.asarray(pairs.reshape(-1, 2).T - 1)


def read_batches(connection: Connection, n_items: int) -> list[tuple[int, int]]:
    """Return the first and last numbers of items that could be drawn in the same rounds."""
    ends = [*json.loads(read_setting(connection, BATCHES) or "[]"), n_items]
    return [(start + 1, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def find_open_pairs(project: Project) -> npt.NDArray[np.bool_]:
    """Return which pairs nobody was to be asked about, (n_items, n_classes).

    A control card, whose answer is known, is no question.
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
    """Ask next about pairs that were drawn with probabilities of a model; return the round.

    Their answers count in the likelihood. What was drawn from the pairs of `find_open_pairs`, and
    how, is kept with the relevance that the model expects and the rates at which people say no and
    yes, so that `estimate_shares` stays right. The model knows the answers up to ``learned_at``.
    """
    one = np.ones(relevance.shape[1])
    rates = AnswerRates(one, one) if rates is None else rates
    with project.writing() as connection:
        could_be = drawn.inclusion > 0
        is_drawn = could_be.any(axis=0)  # whether a class took part
        is_open = _find_open(connection)
        if is_open.shape != could_be.shape or (is_open != could_be)[:, is_drawn].any():
            raise ComesError(
                "questions were added while these were drawn, so their probabilities are no longer "
                "right. Draw again."
            )
        number = next_round(connection)
        places = Cards(drawn.row, drawn.label, 0 * drawn.row).places()
        expected = relevance[drawn.row, drawn.label].tolist()
        how = {"probability": drawn.probability.tolist(), "expected": expected}
        how["round"] = [number] * len(places)
        append_cards(connection, places, ACTIVE, how, first=True)
        made_at, spread = learned_at or time.time(), drawn.spread
        rows = [
            {
                "round": number,
                "class_id": int(j) + 1,
                "batch": batch,
                "spread": float(spread[start - 1 : end, j].sum()),
                "relevance": float((relevance * could_be)[start - 1 : end, j].sum()),
                "no_rate": float(rates.no_rate[j]),
                "yes_rate": float(rates.yes_rate[j]),
                "seed": seed,
                "made_at": made_at,
            }
            for batch, (start, end) in enumerate(read_batches(connection, len(could_be)))
            for j in np.flatnonzero(is_drawn)
        ]
        connection.execute(insert(rounds), rows)
    return number


def count_new_answers(project: Project) -> int:
    """Return how many answers came since a model last drew questions, or in all."""
    with project.reading() as connection:
        last = connection.execute(select(func.max(rounds.c.made_at))).scalar_one() or 0.0
        stands = answers.c.undone_at.is_(None), answers.c.answer != "skip"
        new = select(func.count()).select_from(answers).where(answers.c.answered_at > last, *stands)
        return int(connection.execute(new).scalar_one())


def count_rounds(project: Project) -> int:
    """Return how many rounds of questions a model has drawn."""
    with project.reading() as connection:
        return len(connection.execute(select(rounds.c.round).distinct()).all())


def _find_open(connection: Connection) -> npt.NDArray[np.bool_]:
    n_items, n_classes = (
        connection.execute(select(func.max(table.c.id))).scalar_one() or 0
        for table in (items, classes)
    )
    is_open = np.ones((n_items, n_classes), dtype=bool)
    asked = select(cards.c.item_id, cards.c.class_id).where(cards.c.source != CONTROL)
    is_open[tuple(_read_pairs(connection, asked))] = False
    return is_open


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
    >>> estimate_shares(project)[["class", "asked", "no"]]
         class  asked   no
    0    sport      1  1.0
    1  weather      0  NaN
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
            told, sizes = [], []  # a batch about which nothing is known is as the others
            for batch, (start, end) in enumerate(batches):
                inside = own[own["item_id"].between(start, end)]
                how = [one for one in kept if (one.class_id, one.batch) == (number, batch)]
                part = _estimate(inside, end - start + 1, how, word)
                if not np.isnan(part.share):
                    told.append(part)
                    sizes.append(end - start + 1)
            share = pool_shares(told, sizes) if told else Share(np.nan, np.nan, np.nan, np.nan)
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
    said = read_answers(project)
    by_pair = said[said[SOURCE] != HINT].groupby(["item_id", "class_id"])["answer"]
    agreed = by_pair.first().where(by_pair.nunique() == 1, "").reset_index()
    table = asked.merge(agreed, how="left", on=["item_id", "class_id"])
    is_control = table["source"] == CONTROL
    table.loc[is_control, "answer"] = table.loc[is_control, "known"]
    # Before the first round come controls; after it what older versions imported or chose.
    first = table["source"].map({CONTROL: -1.0, RANDOM: 0.0}).fillna(0.5)
    return table.assign(round=table["round"].astype(float).fillna(first))


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
        drawn = Round(values, p)
        if (draw := draws.get(number)) is not None:
            eta, total, rate = own["expected"].to_numpy(dtype=float), draw.relevance, draw.yes_rate
            if word == NO:
                eta, total, rate = 1 - eta, n_open - total, draw.no_rate
            drawn = Round(values, p, rate * eta, rate * total, draw.spread)
        in_order.append(drawn)
        n_open -= len(own)
    return estimate_share(in_order, n_items)
