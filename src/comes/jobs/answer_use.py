"""What a training used of the answers, in one line."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from comes.answers import AnswerRates, Answers, State
from comes.jobs.fitted_models import Classifier
from comes.methods import Method

WIDE = 0.05  # rates of labels that differ by more are shown as a range


def describe_use(classifier: Classifier, answers: Answers) -> str:
    """Return what a fitted classifier used of the answers, and which rates of answers it knew."""
    method = classifier.method_
    if answers.kind == "candidates":
        used = f"{answers.excluded.sum()} exclusions; who was asked is not known"
    elif answers.kind == "positives":
        used = f"{answers.confirmed.sum()} ticked labels"
    else:
        used = _describe_answers(classifier, method, answers)
    return "; ".join([used, *(_describe_rates(classifier, answers) if method.needs_rates else ())])


def _describe_answers(classifier: Classifier, method: Method, answers: Answers) -> str:
    """Return how many answers there are, of which kind and from whom, and what is not used."""
    codes = _list_codes(answers)
    n_chosen = len(codes) - len(_list_codes(answers.without_chosen()))
    states = (State.NO, State.YES, State.MAYBE)
    counts = {state.word: int((codes == state).sum()) for state in states}
    kinds = ", ".join(f"{n} {word}" for word, n in counts.items() if n)
    chosen = f"; {n_chosen} chosen by a model" if n_chosen else ""
    n_people = 1 if answers.annotations is None else len(answers.annotations.people)
    people = f" of {n_people} people" if n_people > 1 else ""
    unused = {
        "who was asked": method.uses_only_candidates,
        "yes": counts["yes"] and not method.accepts_positives,
        "maybe": counts["maybe"]
        and (not getattr(method, "uses_maybe", True) or (method.ignores_maybe and counts["yes"])),
        "what a model chose": n_chosen and not method.accepts_positives,
    }
    names = [name for name, is_unused in unused.items() if is_unused]
    without = f", without {' and '.join(names)}" if names else ""
    return f"{len(codes)} answers ({kinds}{chosen}){people}{without}"


def _list_codes(answers: Answers) -> npt.NDArray[np.int8]:
    """Return the `State` of every answer, (n_answers,)."""
    if answers.annotations is not None:
        return answers.annotations.code
    return np.asarray(answers.codes[answers.codes != State.NOT_ASKED])


def _describe_rates(classifier: Classifier, answers: Answers) -> Iterator[str]:
    """Yield the rates of answers that can be given at all."""
    names = ("exclude",) if answers.kind == "candidates" else ("no", "yes")
    known = (classifier.no_rate_, classifier.yes_rate_)
    for name, rate in zip(names, known, strict=False):
        if rate is not None and rate.any():
            yield f"{name} rate {_show_range(rate)} {_find_origin(classifier, name)}"


def _find_origin(classifier: Classifier, name: str) -> str:
    """Return where a rate comes from."""
    given = classifier.rates
    if isinstance(given, AnswerRates) or (given or {}).get(name) is not None:
        return "given"
    if name == "exclude" and classifier.class_prior is not None:
        return "from the class prior"
    return "estimated"


def _show_range(rate: Any) -> str:
    """Return the mean of the rates of labels, or their range where it is wide."""
    lowest, highest = rate.min(), rate.max()
    if highest - lowest > WIDE:
        return f"{lowest:.2f} to {highest:.2f}"
    return f"{rate.mean():.2f}"
