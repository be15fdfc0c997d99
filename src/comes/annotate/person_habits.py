"""What each person did, beside what the others did: pace, habits, agreement, control cards.

Somebody is pointed out by rules that the page states: more than half of the answers come faster
than people can look; nearly all answers are the same where others' are not; or control cards are
often wrong. The numbers are reasons to ask, not verdicts.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from comes.annotate.agreement import CONFIDENCE
from comes.annotate.class_counts import divide, measure_paces
from comes.annotate.ledger import NO, SKIP, SOURCES, WORDS, YES, IntArray, Said
from comes.annotate.schema import CONTROL

LOOK = 0.3  # seconds that people need to see a picture and press a key
FEWEST = 20  # answers, or control cards, before somebody is pointed out
SAME = 0.98  # share of one answer that is a habit
OTHERS = 0.9  # where others give it less often than this
RIGHT = 0.8  # share of control cards that should be right
_CONTROL = SOURCES.index(CONTROL)
_PLAIN = {"no": "no", "yes": "yes", "maybe": "cannot tell"}


@dataclass(frozen=True)
class PersonSummary:
    """What one person did."""

    name: str
    n_answers: int
    seconds: float  # median per answer
    share_quick: float  # of answers that came faster than people can look
    share_no: float
    share_maybe: float
    share_yes: float
    others_no: float  # share of no that others give in the classes of this person
    last: float  # time of the last answer
    n_pairs: int  # answers of others to the same questions
    agreement: float  # share of those that are no where this person says no, and not elsewhere
    n_controls: int  # control cards that were answered
    n_right: int
    right_lower: float  # interval of the share of right answers
    right_upper: float
    is_left_out: bool
    warnings: tuple[str, ...]  # why to talk to this person


def summarise_people(said: Said) -> tuple[PersonSummary, ...]:
    """Return what each person did; the lead's decisions are not among it."""
    n = len(said.people)
    is_card = ~said.is_decision
    given = is_card & (said.word != SKIP) & (said.source != _CONTROL)
    words = _count(said.person[given], said.word[given], n, 3)
    quick = np.bincount(said.person[given], said.seconds[given] < LOOK, minlength=n)
    paces = measure_paces(said.seconds[is_card], said.person[is_card], n)
    others = _compare_with_others(said, given, n)
    agreed = _count_agreement(said, given, n)
    is_control = is_card & (said.source == _CONTROL) & (said.word != SKIP)
    is_right = is_control & (said.word == said.known)
    n_controls, n_right = (
        np.bincount(said.person[rows], minlength=n) for rows in (is_control, is_right)
    )
    last = np.zeros(n)
    np.maximum.at(last, said.person[is_card], said.at[is_card])
    active = np.bincount(said.person[is_card], minlength=n)
    return tuple(
        _describe_person(
            said.people[k],
            [int(count) for count in words[k]],
            (paces[k][0], divide(float(quick[k]), int(words[k].sum()))),
            others[k],
            (int(agreed[k, 0]), int(agreed[k, 1])),
            (int(n_right[k]), int(n_controls[k])),
            (float(last[k]), bool(said.left_out[k])),
        )
        for k in np.flatnonzero(active)
    )


def _describe_person(
    name: str,
    words: list[int],
    pace: tuple[float, float],
    others: "np.ndarray[tuple[int], np.dtype[np.float64]]",
    agreed: tuple[int, int],
    controls: tuple[int, int],
    rest: tuple[float, bool],
) -> PersonSummary:
    """Return what a person did, from what was counted."""
    n_answers, (n_right, n_controls) = sum(words), controls
    lower, upper = bound_both_sides(n_right, n_controls)
    shares = [divide(count, n_answers) for count in words]
    return PersonSummary(
        name=name,
        n_answers=n_answers,
        seconds=pace[0],
        share_quick=pace[1],
        share_no=shares[NO],
        share_maybe=shares[1],
        share_yes=shares[YES],
        others_no=float(others[NO]),
        last=rest[0],
        n_pairs=agreed[1],
        agreement=divide(*agreed),
        n_controls=n_controls,
        n_right=n_right,
        right_lower=lower,
        right_upper=upper,
        is_left_out=rest[1],
        warnings=tuple(_find_warnings(n_answers, shares, pace[1], others, (n_controls, upper))),
    )


def _find_warnings(
    n_answers: int,
    shares: list[float],
    share_quick: float,
    others: "np.ndarray[tuple[int], np.dtype[np.float64]]",
    controls: tuple[int, float],
) -> list[str]:
    """Return why to talk to somebody, by the rules of this file."""
    found = []
    if n_answers >= FEWEST and share_quick > 0.5:
        found.append(f"more than half of the answers in under {LOOK:g} s")
    for word, share, other in zip(WORDS, shares, others.tolist(), strict=False):
        if n_answers >= FEWEST and share >= SAME and other < OTHERS:
            found.append(f"{share:.0%} {_PLAIN[word]}; others say it in {other:.0%}")
    n_controls, upper = controls
    if n_controls and upper < RIGHT:
        found.append("many control cards wrong")
    return found


def bound_both_sides(part: int, whole: int) -> tuple[float, float]:
    """Return Clopper and Pearson's interval of a share; 0 and 1 if nothing is known."""
    tail = (1 - CONFIDENCE) / 2
    lower = float(betaincinv(part, whole - part + 1, tail)) if part else 0.0
    upper = float(betaincinv(part + 1, whole - part, 1 - tail)) if part < whole else 1.0
    return lower, upper


def _count(group: IntArray, kind: IntArray, n_groups: int, n_kinds: int) -> IntArray:
    """Return how often each kind occurs in each group; (groups, kinds)."""
    counts = np.bincount(group * n_kinds + kind, minlength=n_groups * n_kinds)
    return counts.reshape(n_groups, n_kinds)


def _compare_with_others(
    said: Said, given: "np.ndarray[tuple[int], np.dtype[np.bool_]]", n: int
) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    """Return the shares of words that others give in the classes that a person answered; (n, 3)."""
    n_classes = int(said.class_.max()) + 1 if len(said.class_) else 1
    place = said.person[given] * n_classes + said.class_[given]
    own = _count(place, said.word[given], n * n_classes, 3).reshape(n, n_classes, 3)
    counts = np.where(said.left_out[:, None, None], 0, own).sum(axis=0)
    expected = np.full((n, 3), math.nan)
    for k in range(n):
        rest = counts - (0 if said.left_out[k] else own[k])
        weight = own[k].sum(axis=1) * (rest.sum(axis=1) > 0)
        if weight.sum():
            shares = rest / np.maximum(rest.sum(axis=1, keepdims=True), 1)
            expected[k] = weight @ shares / weight.sum()
    return expected


def _count_agreement(
    said: Said, given: "np.ndarray[tuple[int], np.dtype[np.bool_]]", n: int
) -> IntArray:
    """Return how many answers of others agree with a person, and how many there are; (n, 2)."""
    question, person = said.question[given], said.person[given]
    is_no = said.word[given] == NO
    size = int(question.max()) + 1 if len(question) else 0
    every = np.bincount(question, minlength=size)
    twice = every[question] > 1
    question, person, is_no = question[twice], person[twice], is_no[twice]
    n_no = np.bincount(question, is_no, minlength=size).astype(int)
    same = np.where(is_no, n_no[question], every[question] - n_no[question]) - 1
    agreed = np.bincount(person, same, minlength=n)
    return np.stack([agreed, np.bincount(person, every[question] - 1, minlength=n)], 1).astype(int)
