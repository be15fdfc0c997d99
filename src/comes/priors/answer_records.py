"""Answers one by one, with what is known of the truth of their pairs from X and other people."""

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logit
from sklearn.linear_model import LogisticRegression

from comes.answers import Answers, LongAnswers, State
from comes.priors.best_bin import best_bin_rate
from comes.priors.small_models import score_out_of_fold

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

MIN_ROWS = 20  # with fewer, no classifier is trained
WORD_OF_ANOTHER = 4.4  # the logit that a sure answer of another person adds: log(0.8 / 0.01)


def read_records(answers: Answers) -> LongAnswers:
    """Return every answer; silence counts as "maybe" where it is one (tags that are not ticked)."""
    if answers.annotations is not None:
        return answers.annotations
    codes = answers.filled_codes
    row, label = np.nonzero(codes)
    return LongAnswers(row, label, np.zeros_like(row), codes[row, label], ())


def draw_rows(records: LongAnswers, n: int, most: int, seed: int) -> npt.NDArray[np.int64]:
    """Return rows with about as many answers as wanted: all n, or some drawn at random."""
    share = min(1.0, most / max(len(records), 1))
    rows = np.random.default_rng(seed).permutation(n)[: int(np.ceil(share * n))]
    return np.sort(rows)


def find_leanings(
    X: Any, records: LongAnswers, shape: tuple[int, int], seed: int, *, is_scaled: bool
) -> FloatArray:
    """Return the logit of "yes" among sure answers for every record, where both are said.

    It does not depend on the answer itself, but on X, by classifiers that have not seen the row,
    and on what other people said about the pair.
    """
    is_yes = records.code == State.YES
    is_sure = is_yes | (records.code == State.NO)
    share = (is_yes.sum() + 0.5) / (is_sure.sum() + 1)
    lean = np.full(len(records), logit(share))
    if shape[0] >= MIN_ROWS:
        scores = score_out_of_fold(X, _combine_sure(records, shape), seed, is_scaled=is_scaled)
        score = scores[records.row, records.label].astype(np.float64)
        line = LogisticRegression(C=1e4).fit(score[is_sure, None], is_yes[is_sure])
        slope = float(line.coef_[0, 0])
        if slope > 0:  # else the scores say nothing
            lean = line.intercept_[0] + slope * score
    return lean + _hear_others(records, shape[1])


def _combine_sure(records: LongAnswers, shape: tuple[int, int]) -> npt.NDArray[np.int8]:
    """Return NO or YES where the sure answers about a pair agree, else NOT_ASKED."""
    states = np.zeros(shape, dtype=np.int8)
    for state in (State.NO, State.YES):
        is_it = records.code == state
        states[records.row[is_it], records.label[is_it]] |= state
    return np.where(states == (State.NO | State.YES), np.int8(State.NOT_ASKED), states)


def _hear_others(records: LongAnswers, q: int) -> FloatArray:
    """Return what the sure answers of other people about the same pair add to a leaning."""
    word = np.select([records.code == State.YES, records.code == State.NO], [1.0, -1.0])
    pair = records.row * q + records.label
    alone = pair * max(len(records.people), 1) + records.person
    return WORD_OF_ANOTHER * (_total(pair, word) - _total(alone, word))


def _total(place: npt.NDArray[np.int64], values: FloatArray) -> FloatArray:
    """Return, for every element, the sum of the values of all with the same place."""
    number = np.unique(place, return_inverse=True)[1]
    return np.asarray(np.bincount(number, values)[number], dtype=np.float64)


def find_best_bins(
    X: Any,
    records: LongAnswers,
    sure: State,
    shape: tuple[int, int],
    seed: int,
    *,
    is_scaled: bool,
) -> BoolArray:
    """Return which records look most like the one sure answer that is given.

    Their pairs are taken to be surely irrelevant where that is "no", relevant where it is "yes".
    """
    is_sure = records.code == sure
    if shape[0] < MIN_ROWS or is_sure.all() or not is_sure.any():
        return np.ones(len(records), dtype=bool)
    states = np.zeros(shape, dtype=np.int8)
    states[records.row, records.label] = State.NO
    states[records.row[is_sure], records.label[is_sure]] = State.YES  # as the classifier has it
    scores = score_out_of_fold(X, states, seed, is_scaled=is_scaled)
    score = scores[records.row, records.label]
    inside = np.zeros(len(records), dtype=bool)
    order = np.lexsort((-score, records.label))
    starts = np.searchsorted(records.label[order], np.arange(shape[1] + 1))
    for first, last in pairwise(starts):
        own = order[first:last]
        if len(own):
            n_bin = best_bin_rate(is_sure[own, None], score[own, None])[1][0]
            inside[own[: int(n_bin)]] = True
    return inside
