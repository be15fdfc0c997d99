"""Which (item, class) pairs are asked, and in what order.

Every item has the same chance of being asked about a class. This makes the exclusion rate of a
class constant (Lemma 1 of the paper), as the risks assume.
"""

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from comes.errors import ComesError

IntArray = npt.NDArray[np.int64]
By = Literal["class", "item"]

BLOCK = 20  # cards of one class in a row: a new class on every card is tiring


class Cards(NamedTuple):
    """Cards in the order in which they are asked; arrays of one length."""

    item: IntArray
    class_: IntArray
    turn: IntArray  # 1 on the card for a second person, 2 for a third


def sample_cards(
    n_items: int,
    n_classes: int,
    rate: float,
    *,
    seed: int = 0,
    overlap: float = 0.0,
    opinions: int = 2,
    by: By = "class",
) -> Cards:
    """Draw the (item, class) pairs that are asked.

    Parameters
    ----------
    n_items, n_classes : int
    rate : float
        Share of the items that are asked about each class, in (0, 1].
    seed : int
    overlap : float
        Share of the cards that further people get, too; with ``by="item"`` share of the items,
        about which the others are asked whole.
    opinions : int
        How many people answer a card of the overlap.
    by : {"class", "item"}
        ``class`` draws items for each class, and asks about one class for a block of cards.
        ``item`` draws items once and asks about all their classes, for the grid.

    Returns
    -------
    cards : Cards

    Examples
    --------
    >>> cards = sample_cards(1000, 3, 0.1, overlap=0.05)
    >>> np.bincount(cards.class_[cards.turn == 0])
    array([100, 100, 100])
    >>> int(cards.turn.sum())
    15
    """
    n_asked = _count_asked(n_items, rate)
    if not 0 <= overlap <= 1:
        raise ComesError(f"overlap must be in [0, 1]; got {overlap:g}.")
    if opinions < 2:
        raise ComesError(
            f"opinions must be at least 2; got {opinions}. Leave overlap at 0 for one."
        )
    rng = np.random.default_rng(seed)
    if by == "class":
        drawn = [rng.choice(n_items, n_asked, replace=False) for _ in range(n_classes)]
        item, class_ = np.concatenate(drawn), np.repeat(np.arange(n_classes), n_asked)
        again = np.sort(rng.choice(len(item), round(overlap * len(item)), replace=False))
    else:
        chosen = rng.choice(n_items, n_asked, replace=False)
        item, class_ = np.repeat(chosen, n_classes), np.tile(np.arange(n_classes), n_asked)
        rows = np.sort(rng.choice(n_asked, round(overlap * n_asked), replace=False))
        again = (rows[:, None] * n_classes + np.arange(n_classes)).ravel()
    turn = np.repeat(np.arange(opinions), [len(item)] + [len(again)] * (opinions - 1))
    item = np.concatenate([item, *[item[again]] * (opinions - 1)])
    class_ = np.concatenate([class_, *[class_[again]] * (opinions - 1)])
    number = _number_blocks(item, class_, turn, by)
    order = np.argsort(rng.permutation(number.max() + 1)[number], kind="stable")
    return Cards(item[order], class_[order], turn[order])


def _number_blocks(item: IntArray, class_: IntArray, turn: IntArray, by: By) -> IntArray:
    """Return the block of each card: an item of a turn, or `BLOCK` cards of a class of a turn.

    The cards of a turn come class by class, or item by item.
    """
    if by == "item":
        within = item
    else:
        starts = np.flatnonzero(np.diff(class_, prepend=-1) | np.diff(turn, prepend=-1))
        lengths = np.diff(np.append(starts, len(class_)))
        within = (np.arange(len(class_)) - np.repeat(starts, lengths)) // BLOCK
        within += class_ * (within.max(initial=0) + 1)
    number: IntArray = np.unique(turn * (within.max() + 1) + within, return_inverse=True)[1]
    return number


def sample_more(asked: npt.NDArray[np.bool_], rate: float, seed: int) -> list[int]:
    """Draw further items for one class among those not asked yet; the rate is of all items."""
    left = np.flatnonzero(~asked)
    n_more = _count_asked(len(asked), rate)
    if n_more > len(left):
        raise ComesError(
            f"a rate of {rate:g} asks about {n_more} more items, but only {len(left)} are left. "
            "Lower it."
        )
    return [int(row) for row in np.random.default_rng(seed).choice(left, n_more, replace=False)]


def _count_asked(n_items: int, rate: float) -> int:
    if not 0 < rate <= 1:
        raise ComesError(f"rate must be in (0, 1]; got {rate:g}.")
    count = round(rate * n_items)
    if not count:
        raise ComesError(
            f"a rate of {rate:g} asks about none of {n_items} items. Raise it, or add items."
        )
    return count
