"""Answers to questions about pairs of item and label: who is asked, and what is said."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from comes.answers import Answers, BoolMatrix, LongAnswers, State, as_relevant
from comes.errors import ComesError
from comes.generation.draw_rates import Rate, Seed, check_rate
from comes.generation.feature_draws import (
    FloatArray,
    check_features,
    check_strength,
    depend_on,
    project_rows,
)

Places = npt.NDArray[np.int64]
STREAM = 0xA5  # of random numbers


def simulate_answers(
    relevant: npt.ArrayLike,
    X: npt.ArrayLike | None = None,
    *,
    asked_rate: Rate = 0.1,
    no_rate: Rate = 0.8,
    yes_rate: Rate = 0.8,
    mistake_rate: float = 0.0,
    doubt_strength: float = 0.0,
    asked_strength: float = 0.0,
    people: Mapping[str, tuple[Rate, Rate]] | None = None,
    people_per_pair: int = 1,
    seed: Seed = 0,
) -> Answers:
    """Draw questions about pairs of item and label, and answers to them.

    ============  =========================  =========================
    answer        to an irrelevant pair      to a relevant pair
    ============  =========================  =========================
    no            no_rate                    mistake_rate
    yes           mistake_rate               yes_rate
    maybe         else                       else
    ============  =========================  =========================

    Whether a pair is asked about does not depend on its truth given x.

    Parameters
    ----------
    relevant : bool array or DataFrame of shape (n_samples, n_labels)
    X : array or CSR matrix of shape (n_samples, n_features), optional
        Needed where a strength is not 0.
    asked_rate : float or array of shape (n_labels,)
        How often a pair is asked about.
    no_rate, yes_rate : float or array of shape (n_labels,)
        How often an irrelevant pair that is asked about is called "no", and a relevant one "yes".
        With 0 that cannot be said, not even by mistake.
    mistake_rate : float
        How often the answer is sure and wrong. It wins where the rates sum to more than 1.
    doubt_strength : float
        How strongly doubt depends on the features: some items are hard, for all labels. The rates
        hold on average, over irrelevant and over relevant pairs.
    asked_strength : float
        How strongly it depends on the features which pairs are asked about, with a direction for
        each label, as where a model chooses. The asked rate holds on average.
    people : mapping of str to (float or array, float or array), optional
        The no rate and the yes rate of each person, in the place of the common ones.
    people_per_pair : int
        How many of them are asked about a pair, drawn anew for every pair.
    seed : int or numpy Generator

    Returns
    -------
    answers : Answers
        With ``said``, who said what, if people are given.

    Examples
    --------
    >>> relevant = np.random.default_rng(0).random((1000, 2)) < 0.3
    >>> simulate_answers(relevant)
    Answers about 1000 rows and 2 labels: 178 of 2000 pairs asked, 107 no, 35 yes, 36 maybe
    >>> simulate_answers(relevant, yes_rate=0)  # a page that asks "surely not?"
    Answers about 1000 rows and 2 labels: 178 of 2000 pairs asked, 107 no, 0 yes, 71 maybe
    >>> people = {"ann": (0.9, 0.9), "bob": (0.5, 0.9)}
    >>> answers = simulate_answers(relevant, people=people, people_per_pair=2)
    >>> len(answers.annotations), answers.annotations.people
    (356, ('ann', 'bob'))
    """
    names = getattr(relevant, "columns", None)
    names = None if names is None else list(map(str, names))
    relevant = as_relevant(relevant)
    # A stream of its own, as labels themselves are often drawn with the same seed.
    rng = seed if isinstance(seed, np.random.Generator) else np.random.default_rng([STREAM, seed])
    q = relevant.shape[1]
    easy = _tilt(relevant.shape, X, 1, doubt_strength, "doubt_strength", rng)
    tempting = _tilt(relevant.shape, X, q, asked_strength, "asked_strength", rng)
    rate = check_rate(asked_rate, q, "asked_rate")
    asked = rng.random(relevant.shape) < depend_on(tempting, np.ones_like(relevant), rate)
    row, label = asked.nonzero()
    if people is None and people_per_pair != 1:
        raise ComesError(f"people_per_pair needs people=; got {people_per_pair} without.")
    if people is None:
        codes = np.zeros(relevant.shape, dtype=np.int8)
        chances = _find_chances(relevant, no_rate, yes_rate, mistake_rate, easy)
        codes[row, label] = _answer(relevant, row, label, chances, rng)
        return Answers.from_codes(codes, label_names=names)
    drawn = _draw_people(len(row), len(people), people_per_pair, rng)
    said = []
    for number, (a, b) in enumerate(people.values()):
        mine = (drawn == number).any(axis=1)
        chances = _find_chances(relevant, a, b, mistake_rate, easy)
        code = _answer(relevant, row[mine], label[mine], chances, rng)
        said.append((row[mine], label[mine], np.full(len(code), number), code))
    rows, labels, persons, codes = map(np.concatenate, zip(*said, strict=True))
    long = LongAnswers(rows, labels, persons, codes, tuple(people))
    return Answers.from_long(long, (len(relevant), q), names)


def _tilt(
    shape: tuple[int, ...],
    X: npt.ArrayLike | None,
    n_directions: int,
    strength: float,
    name: str,
    rng: np.random.Generator,
) -> FloatArray:
    """Return by how much the features raise the logit of a probability, (n_samples, n_labels)."""
    check_strength(strength, name)
    if not strength:
        return np.zeros(shape)
    if X is None:
        raise ComesError(f"{name} needs features; got none. Pass X, or leave it at 0.")
    z = project_rows(check_features(X, shape[0]), n_directions, rng)
    return np.broadcast_to(strength * z, shape)


def _find_chances(
    relevant: BoolMatrix, no_rate: Rate, yes_rate: Rate, mistake_rate: float, easy: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return how likely every pair's answer is sure and right, and sure and wrong, each (n, q)."""
    a = check_rate(no_rate, relevant.shape[1], "no_rate")
    b = check_rate(yes_rate, relevant.shape[1], "yes_rate")
    f = check_rate(mistake_rate, relevant.shape[1], "mistake_rate")
    right = np.where(relevant, depend_on(easy, relevant, b), depend_on(easy, ~relevant, a))
    wrong = np.where(relevant, f * (a > 0), f * (b > 0))
    return np.minimum(right, 1 - wrong), wrong


def _answer(
    relevant: BoolMatrix,
    row: Places,
    label: Places,
    chances: tuple[FloatArray, FloatArray],
    rng: np.random.Generator,
) -> npt.NDArray[np.int8]:
    """Return what one person says about these pairs."""
    is_relevant = relevant[row, label]
    right, wrong = (chance[row, label] for chance in chances)
    draws = rng.random(len(row))
    is_wrong = draws < wrong
    sure = np.where(is_relevant ^ is_wrong, State.YES, State.NO)
    return np.where(draws < wrong + right, sure, State.MAYBE).astype(np.int8)


def _draw_people(n: int, n_people: int, per_pair: int, rng: np.random.Generator) -> Places:
    """Return who is asked about each of n pairs, (n, per_pair), nobody twice."""
    if not 1 <= per_pair <= n_people:
        raise ComesError(f"people_per_pair must be 1 to {n_people}, the people; got {per_pair}.")
    return np.asarray(rng.random((n, n_people)).argsort(axis=1)[:, :per_pair])
