"""What the metrics of `comes.selection.estimates` are made of: shares of rows, label by label.

Shares are counted on the given rows, and on rows drawn with replacement. `compute_metrics` has the
formulas that docs/guide/selection.md derives.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from comes.errors import ComesError

FloatArray = npt.NDArray[np.float64]

WEIGHTS_AT_ONCE = 2**24
MIN_CONFIRMED = 5  # rows with a "yes" that recall and AUC can be counted on


class Rows(NamedTuple):
    """What every drawing of rows needs, computed once; all arrays are (n, q)."""

    scores: FloatArray
    predicted: FloatArray  # 0 or 1
    excluded: FloatArray  # 0 or 1: "no"
    confirmed: FloatArray  # 0 or 1: "yes"
    below: FloatArray  # number of labels of the row that score below; ties count half


class Shares(NamedTuple):
    """The parts of the metrics of every label; all arrays are (b, q), for b drawings of rows."""

    excluded: FloatArray  # share of rows that exclude j
    predicted: FloatArray  # f_j
    false_positives: FloatArray  # FPR_j: share predicted among rows that exclude j
    below: FloatArray  # E[labels that score below j | j excluded]
    beaten: FloatArray  # A_j: how often a row scores above one that excludes j
    confirmed: FloatArray  # share of rows with a "yes" for j
    true_positives: FloatArray  # TPR_j: share predicted among them; NaN if they are too few
    won: FloatArray  # how often one of them scores above a row that excludes j; NaN likewise


def count_shares(rows: Rows) -> Shares:
    """Return the shares of the given rows, (1, q)."""
    n, q = rows.scores.shape
    return _weigh(rows, _sort_rows(rows), np.ones((1, n)), np.zeros((2, 1, q)))


def draw_shares(rows: Rows, n_resamples: int, seed: int) -> Shares:
    """Return the shares of rows drawn with replacement, (n_resamples, q).

    A count of 0 would be 0 in every drawing, as if it were certain. So the numbers of false and of
    true positives are moved by a number with mean 0 and variance 1/2; that hardly matters for
    other counts.
    """
    n, q = rows.scores.shape
    if n_resamples < 0:
        raise ComesError(f"n_resamples must be 0 or more; got {n_resamples!r}.")
    orders = _sort_rows(rows)
    rng, rng_counts = np.random.default_rng(seed), np.random.default_rng([seed, 2])
    at_once = max(1, WEIGHTS_AT_ONCE // n)
    parts = [Shares(*[np.empty((0, q))] * len(Shares._fields))]
    for start in range(0, n_resamples, at_once):
        size = min(at_once, n_resamples - start)
        weights = rng.multinomial(n, np.full(n, 1 / n), size=size).astype(np.float64)
        moved = (rng_counts.gamma(0.5, size=(size, 2, q)) - 0.5).swapaxes(0, 1)
        parts.append(_weigh(rows, orders, weights, moved))
    return Shares(*(np.concatenate(shares) for shares in zip(*parts, strict=True)))


def compute_metrics(shares: Shares, prior: FloatArray) -> dict[str, FloatArray]:
    """Return the metrics of every label, (b, q), NaN where they are not defined.

    The prior is (q,) or (b, q). ``ranking`` is what a label adds to the ranking risk. Without
    "yes", true positives are the predicted rows that are not false positives.
    """
    counted, f = np.isfinite(shares.true_positives), shares.predicted
    with np.errstate(divide="ignore", invalid="ignore"):
        false = (1 - prior) * shares.false_positives
        true = np.where(counted, prior * shares.true_positives, f - false)
        predicted = np.where(counted, true + false, f)
        auc = (shares.beaten - (1 - prior) / 2) / prior
        found = {
            "error": prior - true + false,
            "recall": np.where(counted, shares.true_positives, true / prior),
            "precision": true / predicted,
            "f1": 2 * true / (predicted + prior),
            "auc": np.where(np.isfinite(shares.won), shares.won, auc),
            "ranking": (1 - prior) * shares.below,
        }
    return {name: np.where(np.isfinite(v), v, np.nan) for name, v in found.items()}


def bound_priors(shares: Shares) -> tuple[FloatArray, FloatArray]:
    """Return the least and the greatest class priors that rows allow, (q,) each.

    True positives are at most pi_j, and the AUC at most 1. An excluded label is irrelevant, and one
    with a "yes" relevant.
    """
    f, rate, beaten = shares.predicted[0], shares.false_positives[0], shares.beaten[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.fmax((f - rate) / (1 - rate), 2 * beaten - 1)
    least = np.fmax(np.where(np.isfinite(least), least, 0.0), shares.confirmed[0])
    return least, 1 - shares.excluded[0]


def _weigh(rows: Rows, orders: list["_Order"], weights: FloatArray, moved: FloatArray) -> Shares:
    """Return the shares of weighted rows, (b, q); weights are (b, n), ``moved`` is (2, b, q)."""
    n_excluded, n_confirmed = weights @ rows.excluded, weights @ rows.confirmed
    total = weights.sum(axis=1, keepdims=True)
    enough = rows.confirmed.sum(axis=0) >= MIN_CONFIRMED
    won = np.full(n_excluded.shape, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):  # labels that no row excludes
        for j in np.flatnonzero(enough):
            won[:, j] = orders[j].share_above(weights, rows.confirmed[:, j])
        true_positives = (weights @ (rows.confirmed * rows.predicted) + moved[1]) / n_confirmed
        return Shares(
            excluded=n_excluded / total,
            predicted=weights @ rows.predicted / total,
            false_positives=(weights @ (rows.excluded * rows.predicted) + moved[0]) / n_excluded,
            below=weights @ (rows.excluded * rows.below) / n_excluded,
            beaten=np.stack([order.share_above(weights) for order in orders], axis=1),
            confirmed=n_confirmed / total,
            true_positives=np.where(enough, true_positives, np.nan),
            won=won,
        )


def _sort_rows(rows: Rows) -> list["_Order"]:
    """Return the order of the rows by the scores of each label."""
    return [_Order.of(g, z) for g, z in zip(rows.scores.T, rows.excluded.T, strict=True)]


class _Order(NamedTuple):
    """The rows sorted by the score of one label, with the ties of each row that excludes it."""

    rows: npt.NDArray[np.intp]  # by score, ascending
    excluded: npt.NDArray[np.intp]  # rows that exclude the label
    first: npt.NDArray[np.intp]  # for each of these, the position of the first row with its score
    after: npt.NDArray[np.intp]  # and the position after the last

    @classmethod
    def of(cls, scores: FloatArray, excluded: FloatArray) -> "_Order":
        """Sort the rows by the scores of one label, (n,)."""
        rows = np.argsort(scores, kind="stable")
        which = np.flatnonzero(excluded)
        first = np.searchsorted(scores[rows], scores[which], side="left")
        after = np.searchsorted(scores[rows], scores[which], side="right")
        return cls(rows, which, first, after)

    def share_above(self, weights: FloatArray, among: FloatArray | None = None) -> FloatArray:
        """Return how often a row scores higher than a row that excludes the label, (b,).

        ``among``, 0 or 1 for every row, chooses the rows that may win. Ties count half, and so does
        the tie of a row with itself: otherwise the rows would not mix relevant and irrelevant ones
        as the prior says.
        """
        start = np.zeros((len(weights), 1))
        winners = weights if among is None else weights * among
        cumulative = np.concatenate([start, winners[:, self.rows].cumsum(axis=1)], axis=1)
        total = cumulative[:, -1:]
        above = total - (cumulative[:, self.after] + cumulative[:, self.first]) / 2
        own = weights[:, self.excluded]
        return np.asarray((own * above).sum(axis=1) / (own.sum(axis=1) * total[:, 0]))
