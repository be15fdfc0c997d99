"""Answers known only by their counts, as those of a stream are before training."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from comes.answers import State
from comes.answers.matrix import Kind
from comes.priors.pooled import AnswerCounts

MANY_PAIRS = 2**26  # sparse answers about more pairs than these are not made a matrix


@dataclass(frozen=True, eq=False)
class CountedAnswers:
    """What a fit asks of `comes.Answers` that counts can answer."""

    counts: AnswerCounts
    kind: Kind
    label_names: list[str]
    is_sparse: bool  # as the answers are that were counted

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and labels."""
        return len(self), self.counts.n_labels

    def __len__(self) -> int:
        return int(self.counts.n_rows.sum())

    def count_state(self, state: State) -> npt.NDArray[np.int64]:
        """Return how many pairs of each label are in a state, (q,); not for NOT_ASKED."""
        counts = {State.NO: "no", State.YES: "yes", State.MAYBE: "maybe"}
        return np.asarray(getattr(self.counts, counts[state]).sum(axis=0))

    def has(self, state: State) -> bool:
        """Return whether anything is in a state."""
        return bool(self.count_state(state).any())

    def without_chosen(self) -> "CountedAnswers":
        """Return the same: what a model asked for was not counted."""
        return self


def has_many_labels(answers: Any) -> bool:
    """Return whether answers are trained on without a matrix of all pairs."""
    n, q = answers.shape
    is_large = isinstance(answers, CountedAnswers) or n * q > MANY_PAIRS
    return bool(answers.is_sparse and is_large)
