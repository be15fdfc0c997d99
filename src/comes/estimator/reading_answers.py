"""The answers given to an estimator, in any of their forms, and warnings of idle labels."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from comes.answers import Answers, State, from_complementary
from comes.answers.convert import as_relevant, check_relevant_inside
from comes.errors import ComesError, ComesWarning, listed
from comes.estimator.counted_answers import CountedAnswers
from comes.estimator.inputs import match_columns
from comes.methods import DEFAULT, Method

TOO_FEW = "that is too few to learn it from. Ask more about it, or leave it out."
FEWEST_ROWS = 20  # with fewer, nobody expects much
MANY_PAIRS = 2**26  # sparse answers about more pairs than these are not made a matrix
FEWEST_SAID = 3  # sure answers of a kind; from fewer, a label cannot be learned


def has_many_labels(answers: Answers | CountedAnswers) -> bool:
    """Return whether answers are trained on without a matrix of all pairs."""
    n, q = answers.shape
    is_large = isinstance(answers, CountedAnswers) or n * q > MANY_PAIRS
    return answers.is_sparse and is_large


def read_answers(
    y: Any = None,
    candidates: Any = None,
    complementary: Any = None,
    answers: Answers | None = None,
    label_names: Sequence[str] | None = None,
    *,
    require_candidates: bool = False,
) -> Answers:
    """Return the answers among the arguments of ``fit``, checked, with names of their labels."""
    if isinstance(y, Answers) and answers is None and candidates is None and complementary is None:
        y, answers = None, y
    given = {"candidates": candidates, "complementary": complementary, "answers": answers}
    names = [name for name, values in given.items() if values is not None]
    if len(names) > 1:
        raise ComesError(
            "fit takes one of candidates=, complementary= and answers=, not several; got "
            f"{' and '.join(names)}."
        )
    if not names:
        _check_y_may_be_candidates(y, require_candidates)
        return _name_labels(Answers.from_candidates(y), y, label_names)
    values = given[names[0]]
    if names[0] == "answers":
        if not isinstance(values, Answers):
            raise ComesError(
                f"answers must be a comes.Answers; got {type(values).__name__}. Make one: "
                "Answers(no=..., yes=..., maybe=...)."
            )
        read = values
    elif names[0] == "complementary":
        is_sparse = hasattr(values, "tocsr")  # then only what was said is kept
        read = (
            Answers(no=values) if is_sparse else Answers.from_candidates(from_complementary(values))
        )
    else:
        read = Answers.from_candidates(values)
    named = _name_labels(read, values, label_names)
    if y is not None:
        _check_truth(y, named)
    return named


def _check_y_may_be_candidates(y: Any, require_candidates: bool) -> None:
    """Raise an error unless y, given alone, may be used as candidates."""
    if y is None:
        raise ComesError(
            "CandidateClassifier requires y to be passed, but the target y is None. "
            "Call fit(X, candidates), fit(X, complementary=...) or fit(X, answers=...)."
        )
    if require_candidates:
        raise ComesError(
            "require_candidates=True: fit wants candidates=, complementary= or answers=, and got "
            "only y, which may be the truth. In cross_validate pass params={'candidates': ...}."
        )


def _name_labels(answers: Answers, values: Any, label_names: Sequence[str] | None) -> Answers:
    """Return the answers with the given names of labels, else their own, else numbers."""
    own = getattr(values, "columns", getattr(values, "label_names", None))
    if own is not None and label_names is not None:
        raise ComesError(
            f"label_names are for an array of candidates; got a {type(values).__name__}, which "
            "names its columns. Leave label_names out, or rename the columns."
        )
    names = label_names if label_names is not None else own
    if names is None:
        names = [str(number) for number in range(answers.shape[1])]
    return answers.rename_labels([str(name) for name in names])


def _check_truth(y: Any, answers: Answers) -> None:
    """Raise an error if a relevant label is excluded; answers of people may be mistaken."""
    assert answers.label_names is not None
    relevant = match_columns(as_relevant(y), y, answers.label_names)
    if relevant.shape != answers.shape or answers.kind != "answers":
        check_relevant_inside(relevant, answers.candidates, answers.label_names)


def choose_method(method: Any) -> Any:
    """Return the method asked for, or the default."""
    return DEFAULT if method is None else method


def check_can_learn(answers: Answers | CountedAnswers, method: Method, name: str) -> None:
    """Raise an error if nothing can be learned; warn of what the method does not use."""
    if answers.kind == "positives" and not method.accepts_positives:
        raise ComesError(
            f"method {name!r} learns from excluded labels, and ticked labels exclude none. Take "
            f"method={DEFAULT!r}."
        )
    says_no, says_yes, in_doubt = map(answers.has, (State.NO, State.YES, State.MAYBE))
    is_silent = {
        "answers": not (says_no or says_yes or in_doubt),
        "positives": not says_yes,
        "candidates": False,
    }
    if is_silent[answers.kind]:
        raise ComesError("nothing can be learned: there is no answer about any pair.")
    if answers.kind == "answers" and not (says_no or says_yes):
        raise ComesError("nothing can be learned: every answer is 'maybe'.")
    if answers.kind == "answers" and not method.accepts_positives:
        _check_exclusions(answers, name)
    # A class prior is estimated from who was asked, and from yes.
    if answers.kind == "answers" and method.uses_only_candidates and not method.needs_class_prior:
        _warn(f"Method {name!r} takes candidates only: who was asked, and yes, are not used.")


def _check_exclusions(answers: Answers | CountedAnswers, name: str) -> None:
    """Raise an error if a method that learns from "no" would see none."""
    if not answers.without_chosen().has(State.NO):
        chosen = " to a question drawn at random" if answers.has(State.NO) else ""
        raise ComesError(
            f"method {name!r} learns from labels that somebody said 'no' to, and no answer{chosen} "
            f"is 'no'. Take method={DEFAULT!r}."
        )


def warn_of_idle_labels(answers: Answers | CountedAnswers, method: Method) -> None:
    """Warn of labels from which nothing, or only one thing, can be learned."""
    if answers.kind == "candidates":
        _warn_of_idle_candidates(answers, method)
    elif answers.kind == "answers":
        _warn_of_idle_answers(answers)
    if answers.shape[1] == 1 and (method.is_over_pairs or method.needs_transition):
        _warn(f"This risk needs two labels; with one nothing is learned. Take method={DEFAULT!r}.")


def _warn_of_idle_answers(answers: Answers | CountedAnswers) -> None:
    """Warn of labels that nobody was asked about, or about which all say the same."""
    states = (State.NO, State.YES, State.MAYBE)
    n_no, n_yes, n_maybe = (answers.count_state(state) for state in states)
    no, yes, maybe = n_no > 0, n_yes > 0, n_maybe > 0
    can_say_no, can_say_yes = no.any(), yes.any()
    cases = {
        "Nobody was asked about label {}: nothing is learned about it.": ~(no | yes | maybe),
        "Every answer about label {} is 'maybe': nothing is learned about it.": ~no & ~yes & maybe,
        "Every sure answer about label {} is 'yes': it is learned as relevant.": yes
        & ~no
        & can_say_no,
        "Every sure answer about label {} is 'no': it is learned as irrelevant.": no
        & ~yes
        & can_say_yes,
    }
    few = {
        "'yes'": yes & (n_yes < FEWEST_SAID) & (no | ~can_say_no),
        "'no'": no & (n_no < FEWEST_SAID) & (yes | ~can_say_yes),
    }
    for word, concerned in few.items() if len(answers) >= FEWEST_ROWS else ():
        message = f"Fewer than {FEWEST_SAID} answers about label {{}} are {word}: {TOO_FEW}"
        cases[message] = concerned
    for message, concerned in cases.items():
        if concerned.any():
            names = [(answers.label_names or [])[j] for j in np.flatnonzero(concerned)]
            _warn(message.format(listed(names)))


def _warn_of_idle_candidates(answers: Answers | CountedAnswers, method: Method) -> None:
    """Warn of labels that no row, or every row, excludes."""
    label_names, n_excluded = answers.label_names or [], answers.count_state(State.NO)
    never = [label_names[j] for j in np.flatnonzero(n_excluded == 0)]
    always = [label_names[j] for j in np.flatnonzero(n_excluded == len(answers))]
    rarely = (n_excluded > 0) & (n_excluded < FEWEST_SAID) & (len(answers) >= FEWEST_ROWS)
    few = [label_names[j] for j in np.flatnonzero(rarely)]
    if never:
        _warn(f"No row excludes label {listed(never)}: {_effect_of_no_exclusion(method)}")
    if few:
        _warn(f"Fewer than {FEWEST_SAID} rows exclude label {listed(few)}: {TOO_FEW}")
    if always:
        _warn(f"Every row excludes label {listed(always)}: {_effect_of_no_candidate(method)}")


def _effect_of_no_exclusion(method: Method) -> str:
    """Return what becomes of a label that no row excludes."""
    if method.is_over_pairs:
        return "nothing pushes its scores down, and they mean nothing."
    return {
        "relevant": "it is taken for relevant everywhere.",
        "unknown": "nothing shows where it is irrelevant.",
        "left out": "it is left out of the risk, since nothing shows where it is irrelevant, and "
        "its scores mean nothing.",
    }[method.never_excluded]


def _effect_of_no_candidate(method: Method) -> str:
    """Return what becomes of a label that every row excludes."""
    if method.needs_class_prior:
        return "it is learned as irrelevant; its class prior is taken as 0."
    if method.is_custom or method.needs_transition or method.keeps_one_excluded:
        return "nothing shows where it is relevant."
    return "it is learned as irrelevant."


def warn_of_impossible_prior(
    prior: npt.NDArray[np.float64],
    possible: npt.NDArray[np.float64],  # share of the rows in which a label is a candidate, (q,)
    n: int,
    label_names: list[str],
) -> None:
    """Warn of priors of 0, and above the share of rows in which the label is a candidate."""
    zero = [label_names[j] for j in np.flatnonzero((prior == 0) & (possible > 0))]
    if zero:
        _warn(
            f"The class prior of label {listed(zero)} is 0: it is learned as never relevant. "
            "Correct the prior if that is not known to be so."
        )
    highest = possible + 4 * np.sqrt(prior * (1 - prior) / n) + 1e-9
    too_high = [label_names[j] for j in np.flatnonzero(prior > highest)]
    if too_high:
        _warn(
            f"The class prior of label {listed(too_high)} is above the share of rows in which it "
            "is a candidate, so it cannot be right; or are these complementary labels? Then pass "
            "them as complementary=."
        )


def _warn(message: str) -> None:
    warnings.warn(message, ComesWarning, stacklevel=6)
