"""What a risk sees of the answers: candidates, states of pairs, or how far they lean."""

from typing import Any

import numpy as np

from comes.answers import Answers, State, answer_evidence
from comes.methods.knowledge import Knowledge

# What a risk over very many labels sees: states of the pairs with an answer, a CSR matrix, and what
# a pair without one counts as.
Said = tuple[Any, State]


def see_candidates(answers: Answers, knowledge: Knowledge) -> Any:
    """Return the candidates, (n, q): what nobody excluded. Who was asked is not seen."""
    return answers.without_chosen().candidates


def see_asked(answers: Answers, knowledge: Knowledge) -> Any:
    """Return the states of questions drawn at random, or candidates if nobody knows who was asked.

    COMES needs fair samples of rows, so questions that a model chose are left out.
    """
    drawn = answers.without_chosen()
    return drawn.codes if drawn.kind == "answers" else drawn.candidates


def see_sure(answers: Answers, knowledge: Knowledge) -> Any:
    """Return what a naive method takes at its word: states, candidates, or ticked labels.

    Where nobody can say yes, whatever is not excluded counts as relevant, as in candidates.
    """
    if answers.kind == "positives":
        return answers.confirmed
    if answers.kind == "candidates":
        return answers.candidates
    if answers.confirmed.any():
        return answers.codes
    return np.where(answers.codes == State.MAYBE, np.int8(State.YES), answers.codes)


def see_all(answers: Answers, knowledge: Knowledge) -> Any:
    """Return everything that was said; where several people answered, how far it leans."""
    if answers.annotations is not None:
        return answer_evidence(answers, knowledge.rates)
    return answers.candidates if answers.kind == "candidates" else answers.filled_codes


def see_asked_sparse(answers: Answers) -> Said:
    """Return `see_asked` without a matrix of all pairs."""
    drawn = answers.without_chosen()
    return drawn.states, State.NOT_ASKED if drawn.kind == "answers" else State.MAYBE


def see_sure_sparse(answers: Answers) -> Said:
    """Return `see_sure` without a matrix of all pairs."""
    silence = {"positives": State.NO, "candidates": State.YES, "answers": State.NOT_ASKED}
    states = answers.states
    if answers.kind == "answers" and not answers.has(State.YES):
        states = states.copy()
        states.data[states.data == State.MAYBE] = State.YES
    return states, silence[answers.kind]


def see_all_sparse(answers: Answers) -> Said:
    """Return `see_all` without a matrix of all pairs."""
    return answers.states, State.NOT_ASKED if answers.kind == "answers" else State.MAYBE
