"""How long to train: by how much was said, as the experiments on many sets suggest."""

import math

from comes.answers import Answers, State
from comes.estimator.counted_answers import CountedAnswers

PASSES = 25  # over the rows, where much was said
ENOUGH = 5000  # sure answers that make a set bear all passes
LEAST_STEPS = 100  # where almost nothing is sure; 1000 where everything is


def count_sure(answers: Answers | CountedAnswers) -> int:
    """Return about how many pairs somebody was sure."""
    return int(sum(answers.count_state(state).sum() for state in (State.NO, State.YES)))


def choose_epochs(n: int, q: int, n_sure: int, batch_size: int) -> int:
    """Return the number of passes over n rows with q labels, n_sure of whose pairs are sure.

    Few sure answers are soon learned by heart, so that they bear fewer passes; small sets need
    more of them to take enough steps.

    Examples
    --------
    >>> choose_epochs(10000, 10, 50000, batch_size=64)  # much was said
    25
    >>> choose_epochs(2000, 14, 1900, batch_size=64)  # one irrelevant label in ten is excluded
    16
    >>> choose_epochs(463, 27, 463 * 27, batch_size=64)  # few rows, but all is known
    125
    """
    passes = PASSES * min(1, math.sqrt(n_sure / ENOUGH))
    steps = LEAST_STEPS + (1000 - LEAST_STEPS) * n_sure / (n * q)
    return max(1, math.ceil(max(passes, steps / math.ceil(n / batch_size))))
