"""Candidate labels and answers generated from true labels.

====================  =======================================================  =======
process               an irrelevant label j of an instance x is excluded       Lemma 1
====================  =======================================================  =======
`case_a`              with probability 1 - flip_rate, independently            holds
`case_b`              on an exact share of the instances irrelevant to j       holds
`independent`         with probability exclude_rate, independently             holds
`one_uniform`         if it is the one drawn among the irrelevant ones         fails
`random_size`         if it is in a random set of random size (CTL)            fails
`instance_dependent`  with a probability that depends on x                     fails
====================  =======================================================  =======

Lemma 1 says that the instances that exclude j are a fair sample of those irrelevant to j,
p(x | j excluded) = p(x | j irrelevant). It holds if the probability of excluding an irrelevant
label is one number per label. In `one_uniform` and `random_size` it depends on how many labels are
relevant: an instance with few irrelevant labels excludes each of them more often. There the lemma
holds only in special cases, such as when every instance has the same number of relevant labels.

`simulate_answers` draws yes, no and maybe.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import expit

from comes.answers import Answers, LongAnswers, State
from comes.answers.convert import BoolMatrix, as_relevant, check_paired, row_index
from comes.errors import ComesError

__all__ = ["case_a", "case_b", "independent", "simulate_answers"]

Case = Literal["a", "b", "independent", "one", "size", "instance"]
FloatArray = npt.NDArray[np.float64]
Rate = float | npt.ArrayLike
Seed = int | np.random.Generator
ANSWER_STREAM = 0xA5  # of random numbers


def case_a(relevant: npt.ArrayLike, flip_rate: Rate = 0.9, seed: Seed = 0) -> BoolMatrix:
    """Let every irrelevant label become a candidate with probability ``flip_rate``.

    Parameters
    ----------
    relevant : bool array of shape (n_samples, n_labels)
    flip_rate : float or array of shape (n_labels,)
        P(candidate | irrelevant), in [0, 1].
    seed : int or numpy Generator

    Returns
    -------
    candidates : bool array of shape (n_samples, n_labels)

    Examples
    --------
    >>> relevant = np.eye(3, dtype=bool)
    >>> case_a(relevant, flip_rate=1.0).all()
    np.True_
    """
    relevant = as_relevant(relevant)
    rate = _check_rate(flip_rate, relevant.shape[1], "flip_rate")
    return np.asarray(relevant | (_generator(seed).random(relevant.shape) < rate))


def case_b(relevant: npt.ArrayLike, exclude_rate: Rate = 0.1, seed: Seed = 0) -> BoolMatrix:
    """Exclude every label on an exact share of the rows it is irrelevant to.

    For label j, floor(exclude_rate * number of irrelevant rows) of those rows are drawn without
    replacement. The paper samples "a fraction of the training data" per class. Relevant rows
    cannot be drawn, so we take a fraction of the irrelevant rows.

    Parameters
    ----------
    relevant : bool array of shape (n_samples, n_labels)
    exclude_rate : float or array of shape (n_labels,)
        Share of the irrelevant rows, in [0, 1].
    seed : int or numpy Generator

    Returns
    -------
    candidates : bool array of shape (n_samples, n_labels)

    Examples
    --------
    >>> relevant = np.zeros((40, 2), dtype=bool)
    >>> (~case_b(relevant, exclude_rate=[0.1, 0.5])).sum(axis=0)
    array([ 4, 20])
    """
    relevant = as_relevant(relevant)
    rate = _check_rate(exclude_rate, relevant.shape[1], "exclude_rate")
    # The small addend keeps 0.29 * 100 = 28.999... from losing a row.
    n_excluded = np.floor(rate * (~relevant).sum(axis=0) + 1e-9).astype(int)
    draws = np.where(relevant, 2.0, _generator(seed).random(relevant.shape))
    rank = draws.argsort(axis=0).argsort(axis=0)
    return np.asarray(rank >= n_excluded)


def independent(relevant: npt.ArrayLike, exclude_rate: Rate = 0.1, seed: Seed = 0) -> BoolMatrix:
    """Exclude every irrelevant label with probability ``exclude_rate``.

    It is `case_a` named by the other rate. Unlike the exact counts of `case_b`, the number of
    excluded rows does not reveal how many are irrelevant, even where the rate is known.

    Parameters
    ----------
    relevant : bool array of shape (n_samples, n_labels)
    exclude_rate : float or array of shape (n_labels,)
        P(excluded | irrelevant), in [0, 1].
    seed : int or numpy Generator

    Returns
    -------
    candidates : bool array of shape (n_samples, n_labels)

    Examples
    --------
    >>> (~independent(np.zeros((40, 3)), exclude_rate=0.25)).sum(axis=0)  # 10 in expectation
    array([12, 13, 12])
    """
    rate = _check_rate(exclude_rate, as_relevant(relevant).shape[1], "exclude_rate")
    return case_a(relevant, 1 - rate, seed)


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
        With ``annotations``, who answered what, if people are given.

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
    check_paired(X=X, relevant=relevant)
    columns, index = getattr(relevant, "columns", None), row_index(relevant)
    names = None if columns is None else list(map(str, columns))
    relevant = as_relevant(relevant)
    n, q = relevant.shape
    # A stream of its own, as labels themselves are often drawn with the same seed.
    rng = _generator(seed, ANSWER_STREAM)
    easy = asked_slope = np.zeros((n, q))
    if doubt_strength:
        easy = easy + _feature_slope(X, n, 1, doubt_strength, "doubt_strength", rng)
    if asked_strength:
        asked_slope = _feature_slope(X, n, q, asked_strength, "asked_strength", rng)
    rate = _check_rate(asked_rate, q, "asked_rate")
    asked = rng.random((n, q)) < tilted_probability(asked_slope, np.ones_like(relevant), rate)
    row, label = asked.nonzero()
    if people is None and people_per_pair != 1:
        raise ComesError(f"people_per_pair needs people=; got {people_per_pair} without.")
    if people is not None and not 1 <= people_per_pair <= len(people):
        raise ComesError(
            f"people_per_pair must be 1 to {len(people)}, the people; got {people_per_pair}."
        )

    def answer(asks: Any, a: Rate, b: Rate) -> npt.NDArray[np.int8]:
        """Return the answers of a person with these rates to some of the questions."""
        no, yes = _check_rate(a, q, "no_rate"), _check_rate(b, q, "yes_rate")
        mistake = _check_rate(mistake_rate, q, "mistake_rate")
        right = np.where(
            relevant,
            tilted_probability(easy, relevant, yes),
            tilted_probability(easy, ~relevant, no),
        )
        wrong = np.where(relevant, mistake * (no > 0), mistake * (yes > 0))
        right, wrong, is_relevant = (
            pairs[row[asks], label[asks]]
            for pairs in (np.minimum(right, 1 - wrong), wrong, relevant)
        )
        draws = rng.random(len(is_relevant))
        sure = np.where(is_relevant ^ (draws < wrong), State.YES, State.NO)
        return np.where(draws < wrong + right, sure, State.MAYBE).astype(np.int8)

    if people is None:
        codes = np.zeros((n, q), dtype=np.int8)
        codes[row, label] = answer(slice(None), no_rate, yes_rate)
        return Answers.from_codes(codes, label_names=names, index=index)
    person = rng.random((len(row), len(people))).argsort(axis=1)[:, :people_per_pair]
    parts = []
    for number, (a, b) in enumerate(people.values()):
        asks = (person == number).any(axis=1)
        code = answer(asks, a, b)
        parts.append((row[asks], label[asks], np.full(len(code), number), code))
    rows, labels, persons, codes = map(np.concatenate, zip(*parts, strict=True))
    annotations = LongAnswers(rows, labels, persons, codes, tuple(people))
    return Answers.from_long(annotations, (n, q), names, index=index)


def generate(
    case: Case,
    relevant: npt.ArrayLike,
    X: npt.ArrayLike | None = None,
    *,
    rate: Rate | None = None,
    strength: float | None = None,
    seed: Seed = 0,
) -> BoolMatrix:
    """Return candidates of a process by name; an option that is None takes the process's default.

    The rate is the flip rate of "a", the exclude rate of "b", "independent" and "instance".
    """
    if case not in PROCESSES:
        raise ComesError(f"case must be one of {', '.join(PROCESSES)}; got {case!r}.")
    if rate is not None and case in ("one", "size"):
        raise ComesError(f"case {case} has no rate; got {rate}. Leave it out.")
    if strength is not None and case != "instance":
        raise ComesError(f"case {case} has no strength; got {strength}. Leave it out.")
    if X is None and case == "instance":
        raise ComesError("case instance needs features; got none. Pass X, or take another case.")
    options = {
        "X": X if case == "instance" else None,
        "flip_rate" if case == "a" else "exclude_rate": rate,
        "strength": strength,
    }
    options = {name: value for name, value in options.items() if value is not None}
    return PROCESSES[case](relevant, seed=seed, **options)


def one_uniform(relevant: npt.ArrayLike, seed: Seed = 0) -> BoolMatrix:
    """Exclude one irrelevant label per row, drawn uniformly; none if all are relevant."""
    relevant = as_relevant(relevant)
    return _exclude(relevant, np.ones(len(relevant), dtype=int), _generator(seed))


def random_size(relevant: npt.ArrayLike, seed: Seed = 0) -> BoolMatrix:
    """Exclude s irrelevant labels per row, with probability C(q, s) / (2^q - 2), 0 < s < q.

    That is the size of a random set of labels that is neither empty nor full. A row with fewer
    irrelevant labels excludes all of them.
    """
    relevant = as_relevant(relevant)
    n, q = relevant.shape
    if q < 2:
        raise ComesError(
            f"a set that is neither empty nor full needs two labels; got {q}. Take case_b."
        )
    rng = _generator(seed)
    sizes = np.asarray(rng.binomial(q, 0.5, size=n))
    while (redraw := (sizes == 0) | (sizes == q)).any():
        sizes[redraw] = rng.binomial(q, 0.5, size=int(redraw.sum()))
    return _exclude(relevant, sizes, rng)


def _exclude(
    relevant: BoolMatrix, sizes: npt.NDArray[np.int64], rng: np.random.Generator
) -> BoolMatrix:
    """Exclude ``sizes[i]`` of the irrelevant labels of row i, drawn uniformly."""
    draws = np.where(relevant, 2.0, rng.random(relevant.shape))
    rank = draws.argsort(axis=1).argsort(axis=1)
    return np.asarray(relevant | (rank >= sizes[:, None]))


def instance_dependent(
    relevant: npt.ArrayLike,
    X: npt.ArrayLike,
    exclude_rate: Rate = 0.1,
    strength: float = 2.0,
    seed: Seed = 0,
) -> BoolMatrix:
    """Exclude an irrelevant label j with probability sigmoid(a_j + strength * z_j(x)).

    z_j is the standardised projection of x on a random direction, and a_j such that the mean over
    the rows irrelevant to j is ``exclude_rate``.
    """
    check_paired(X=X, relevant=relevant)
    relevant = as_relevant(relevant)
    n, q = relevant.shape
    rate = _check_rate(exclude_rate, q, "exclude_rate")
    rng = _generator(seed)
    slope = _feature_slope(X, n, q, strength, "strength", rng)
    probability = tilted_probability(slope, ~relevant, rate)
    return np.asarray(relevant | (rng.random(relevant.shape) >= probability))


PROCESSES: Mapping[Case, Callable[..., BoolMatrix]] = {
    "a": case_a,
    "b": case_b,
    "independent": independent,
    "one": one_uniform,
    "size": random_size,
    "instance": instance_dependent,
}


def _feature_slope(
    X: Any, n: int, n_directions: int, strength: float, name: str, rng: np.random.Generator
) -> FloatArray:
    """Return by how much the features of n rows raise logits, (n, n_directions)."""
    from comes.tables.encoder import encode_table  # imports scikit-learn; most cases need none

    if not np.isfinite(strength):
        raise ComesError(f"{name} must be a finite number; got {strength}.")
    if X is None:
        raise ComesError(f"{name} needs features; got none. Pass X, or leave it at 0.")
    X = encode_table(X)
    features = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X, dtype=float)
    if not np.isfinite(features.data if sparse.issparse(features) else features).all():
        raise ComesError(
            "features must be finite; got NaN or infinity. Fill or drop those entries."
        )
    if features.ndim != 2 or features.shape[0] != n:
        raise ComesError(
            f"{n} rows of labels need as many rows of features; got shape {features.shape}."
        )
    return strength * project_rows(features, n_directions, rng)


def project_rows(features: Any, n_directions: int, rng: np.random.Generator) -> FloatArray:
    """Return standardised projections of rows on random directions, (n, n_directions)."""
    mean, square = (np.asarray(X.mean(axis=0)).ravel() for X in (features, features * features))
    variance = np.maximum(square - mean**2, 0)
    is_constant = variance <= 1e-12 * np.maximum(square, 1e-300)
    scale = np.where(is_constant, 1.0, np.sqrt(variance))
    directions = rng.normal(size=(features.shape[1], n_directions)) / scale[:, None]
    projection = np.asarray(features @ directions)
    spread = projection.std(axis=0)
    return np.asarray((projection - projection.mean(axis=0)) / np.where(spread > 0, spread, 1))


def tilted_probability(slope: FloatArray, pairs: BoolMatrix, rate: FloatArray) -> FloatArray:
    """Return sigmoid(a_j + slope), with a_j such that the mean over pairs (n, q) is the rate."""
    if not slope.any():
        return np.broadcast_to(rate, slope.shape)
    n_pairs = np.maximum(pairs.sum(axis=0), 1)
    low = np.full(slope.shape[1], -50.0 - np.abs(slope).max())
    high = -low
    for _ in range(60):
        middle = (low + high) / 2
        mean = (expit(middle + slope) * pairs).sum(axis=0) / n_pairs
        low, high = np.where(mean < rate, middle, low), np.where(mean < rate, high, middle)
    inside = expit((low + high) / 2 + slope)
    return np.where(rate >= 1, 1.0, np.where(rate <= 0, 0.0, inside))


def _generator(seed: Seed, *stream: int) -> np.random.Generator:
    """Return the generator of a seed, in a stream of random numbers; raise if it is no seed."""
    if isinstance(seed, np.random.Generator):
        return seed
    try:
        return np.random.default_rng([*stream, seed] if stream else seed)
    except (TypeError, ValueError):
        raise ComesError(
            f"seed must be a whole number of 0 or more, or a Generator; got {seed!r}."
        ) from None


def _check_rate(rate: Rate, q: int, name: str) -> FloatArray:
    """Return one rate per label, or raise an error."""
    rates = np.asarray(rate, dtype=float)
    if rates.shape not in ((), (q,)) or not ((rates >= 0) & (rates <= 1)).all():
        raise ComesError(
            f"{name} must be one number in [0, 1], or one for each of the {q} labels; got {rate!r}."
        )
    return np.broadcast_to(rates, (q,))
