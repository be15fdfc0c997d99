"""Answers about pairs of item and label, candidate labels and complementary labels.

An answer is "no" (surely irrelevant), "yes" (surely relevant) or "maybe"; about most pairs nobody
was asked. A *candidate matrix* is what is left where only the "no" is known: a bool array of shape
(n_samples, n_labels), True where a label is still possible, False where it is *excluded*.
Complementary labels state the same the other way round.
"""

from comes.answers.annotators import LongAnswers, State
from comes.answers.convert import from_complementary, from_sets
from comes.answers.evidence import AnswerRates, answer_evidence, posterior_probability
from comes.answers.matrix import Answers
from comes.answers.questions import choose_questions

__all__ = [
    "AnswerRates",
    "Answers",
    "LongAnswers",
    "State",
    "answer_evidence",
    "choose_questions",
    "from_complementary",
    "from_sets",
    "posterior_probability",
]
