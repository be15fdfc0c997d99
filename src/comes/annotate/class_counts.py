"""What is known about each class, counted from columns of answers."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from comes.annotate.agreement import CONFIDENCE, Agreement, measure_agreement
from comes.annotate.ledger import MAYBE, NO, SKIP, SOURCES, YES, BoolArray, IntArray, Said
from comes.annotate.schema import ACTIVE, CONTROL, RANDOM
from comes.datasets.long import MODEL

ENOUGH = 100  # exclusions of a class: the standard error of a mean is a tenth of the spread
LONGEST = 60.0  # seconds that an answer counts for at most: people go for coffee
IS_CHOSEN = np.isin(SOURCES, [ACTIVE, MODEL])
_RANDOM, _CONTROL = SOURCES.index(RANDOM), SOURCES.index(CONTROL)


@dataclass(frozen=True)
class ClassSummary:
    """What is known about one class."""

    name: str
    n_cards: int
    n_done: int
    n_skipped: int
    n_asked: int  # items with an answer, other than skip
    n_excluded: int  # n_j: items that nobody thought possible
    n_confirmed: int  # items that all said yes about
    n_disagreements: (
        int  # items that somebody thought possible and somebody not, and nobody decided
    )
    n_decided: int  # items that the lead decided about
    n_chosen: int  # answers to questions that a model chose, which do not count
    agreement: Agreement
    seconds: float  # median per answer
    seconds_left: float  # for the open cards, of one person's work
    share_no: float  # of the items that were drawn and asked, those that all said no about
    share_maybe: float  # and those that nobody is sure of, or people disagree on
    share_yes: float  # and those that all said yes about
    prior_lower: float  # bounds of the class prior, each at 95 % confidence
    prior_bound: float
    more_cards: int  # answers still needed for enough exclusions, on open or new cards
    can_be_enough: bool  # whether enough items are left for that

    @property
    def has_enough(self) -> bool:
        """Whether the risk of the class is stable."""
        return self.n_excluded >= ENOUGH

    @property
    def n_unsure(self) -> int:
        """Items asked about that are neither excluded nor confirmed."""
        return self.n_asked - self.n_excluded - self.n_confirmed

    @property
    def n_open(self) -> int:
        """Cards that wait for an answer."""
        return self.n_cards - self.n_done


@dataclass(frozen=True)
class Questions:
    """The (item, class) pairs with an answer other than skip, that no model chose."""

    class_: IntArray
    is_drawn: BoolArray  # at random, not imported
    no_only: BoolArray
    yes_only: BoolArray
    possible: BoolArray  # to somebody
    disagree: BoolArray  # undecided, and possible to somebody and not to somebody else
    is_decided: BoolArray  # by the lead
    pairs: npt.NDArray[np.int64]  # of people: both no, different, both possible; (3, n)

    def count(self, rows: BoolArray, n_classes: int) -> IntArray:
        """Return how many of some questions each class has."""
        return np.bincount(self.class_[rows], minlength=n_classes)


def count_questions(said: Said, counts: BoolArray) -> Questions:
    """Return what is known of each question, from the answers that count."""
    counts = counts & (said.word != SKIP) & ~IS_CHOSEN[said.source]
    question, word = said.question[counts], said.word[counts]
    size = int(question.max()) + 1 if len(question) else 0
    is_decision = said.is_decision[counts]
    by_people = _count_words(question[~is_decision], word[~is_decision], size)
    decided = _count_words(question[is_decision], word[is_decision], size)
    asked = np.flatnonzero((by_people + decided).sum(axis=0))
    class_ = np.zeros(size, np.int64)
    class_[question] = said.class_[counts]
    n_drawn = np.bincount(question, said.source[counts] == _RANDOM, minlength=size)
    by_people, decided = by_people[:, asked], decided[:, asked]
    is_decided = decided.sum(axis=0) > 0
    counted = np.where(is_decided, decided, by_people)
    n_no, n_possible = counted[NO], counted[MAYBE] + counted[YES]
    no, possible = by_people[NO], by_people[MAYBE] + by_people[YES]
    return Questions(
        class_=class_[asked],
        is_drawn=n_drawn[asked] > 0,
        no_only=(n_no > 0) & (n_possible == 0),
        yes_only=(n_no == 0) & (counted[MAYBE] == 0),
        possible=n_possible > 0,
        disagree=(n_no > 0) & (n_possible > 0),
        is_decided=is_decided,
        pairs=np.stack([no * (no - 1) // 2, no * possible, possible * (possible - 1) // 2]),
    )


def _count_words(question: IntArray, word: IntArray, size: int) -> IntArray:
    """Return how many answers of each word each question has; (3, questions)."""
    return np.bincount(word * size + question, minlength=3 * size).reshape(3, size)


def summarise_classes(
    said: Said,
    counts: BoolArray,
    questions: Questions,
    names: Sequence[str],
    n_items: int,
) -> Iterator[ClassSummary]:
    """Give what is known about each class, from the answers that count and from its questions."""
    n = len(names)
    is_chosen, is_skip = IS_CHOSEN[said.source], said.word == SKIP
    is_card = (said.source != _CONTROL) & ~said.is_decision
    drawn, every = questions.is_drawn, np.ones(len(questions.class_), dtype=bool)
    columns = {
        "n_cards": _pad(said.n_cards_of, n),
        "n_done": np.bincount(said.class_[is_card], minlength=n),
        "n_skipped": np.bincount(said.class_[counts & is_skip], minlength=n),
        "n_asked": questions.count(every, n),
        "n_excluded": questions.count(questions.no_only, n),
        "n_confirmed": questions.count(questions.yes_only, n),
        "n_disagreements": questions.count(questions.disagree, n),
        "n_decided": questions.count(questions.is_decided, n),
        "n_chosen": np.bincount(said.class_[counts & is_chosen & ~is_skip], minlength=n),
        "drawn": questions.count(drawn, n),
        "drawn_no": questions.count(drawn & questions.no_only, n),
        "drawn_yes": questions.count(drawn & questions.yes_only, n),
        "drawn_possible": questions.count(drawn & questions.possible, n),
        "left": n_items - _count_items(said, counts & ~is_chosen, n),
    }
    pairs = [
        np.bincount(questions.class_, questions.pairs[k], minlength=n).astype(int) for k in range(3)
    ]
    rate = divide(int(questions.no_only.sum()), len(questions.class_))
    paces = measure_paces(said.seconds[counts], said.class_[counts], n)
    for k, name in enumerate(names):
        of_class = {key: int(column[k]) for key, column in columns.items()}
        agreement = measure_agreement([column[k] for column in pairs])
        yield _describe_class(name, of_class, agreement, rate, paces[k])


def _describe_class(
    name: str,
    count: dict[str, int],
    agreement: Agreement,
    rate: float,
    pace: tuple[float, float],
) -> ClassSummary:
    """Return what is known about a class, from what was counted."""
    drawn, no, yes = count["drawn"], count["drawn_no"], count["drawn_yes"]
    missing = count_missing(count["n_excluded"], count["n_asked"], rate)
    n_open = count["n_cards"] - count["n_done"]
    kept = {key: value for key, value in count.items() if key.startswith("n_")}
    return ClassSummary(
        name=name,
        **kept,
        agreement=agreement,
        seconds=pace[0],
        seconds_left=n_open * pace[1] if n_open else 0.0,
        share_no=divide(no, drawn),
        share_maybe=divide(drawn - no - yes, drawn),
        share_yes=divide(yes, drawn),
        prior_lower=1 - bound_share(drawn - yes, drawn),
        prior_bound=bound_share(count["drawn_possible"], drawn),
        more_cards=min(missing, count["left"]),
        can_be_enough=missing <= count["left"],
    )


def measure_paces(
    seconds: npt.NDArray[np.float64], group: IntArray, n_groups: int
) -> list[tuple[float, float]]:
    """Return the median and the mean of the seconds of each group; one without has that of all."""
    is_known = ~np.isnan(seconds)
    seconds, group = seconds[is_known], group[is_known]
    order = np.argsort(group.astype(np.int16 if n_groups < 2**15 else np.int64), kind="stable")
    ends = np.searchsorted(group[order], np.arange(n_groups + 1))
    capped = np.minimum(seconds, LONGEST)
    mean = float(capped.mean()) if len(capped) else math.nan
    parts = [order[ends[k] : ends[k + 1]] for k in range(n_groups)]
    return [
        (float(np.median(seconds[part])), float(capped[part].mean()))
        if len(part)
        else (math.nan, mean)
        for part in parts
    ]


def _count_items(said: Said, rows: BoolArray, n_classes: int) -> IntArray:
    """Return how many items each class has an answer about, skips included."""
    is_asked = np.zeros(int(said.question.max()) + 1 if len(said.question) else 0, dtype=bool)
    class_ = np.zeros(len(is_asked), np.int64)
    is_asked[said.question[rows]] = True
    class_[said.question[rows]] = said.class_[rows]
    return np.bincount(class_[is_asked], minlength=n_classes)


def count_missing(n_excluded: int, n_asked: int, exclusion_rate: float) -> int:
    """Return how many more answers would give a class enough exclusions, at its present rate.

    While answers are few, the rate is shrunk towards that of all classes (NaN or 0 without any).
    """
    if exclusion_rate > 0:
        rate = (n_excluded + 1) / (n_asked + 1 / exclusion_rate)
    else:
        rate = 1 / (n_asked + 1)
    return math.ceil(max(0, ENOUGH - n_excluded) / rate)


def divide(part: float, whole: float) -> float:
    """Return a share; NaN of nothing."""
    return part / whole if whole else math.nan


def bound_share(part: int, whole: int) -> float:
    """Return the upper bound of Clopper and Pearson on a share; 1 if nothing is known."""
    if part == whole:
        return 1.0
    return float(betaincinv(part + 1, whole - part, CONFIDENCE))


def _pad(column: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """Return a column with zeros for classes that have no card yet."""
    return np.concatenate([column, np.zeros(max(size - len(column), 0), column.dtype)])
