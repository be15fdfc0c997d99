"""The risk of a `CandidateClassifier`: what it sees of answers, and what it is divided by."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from comes.answers import Answers, State
from comes.answers.convert import keep_one_excluded
from comes.estimator.counted_answers import CountedAnswers
from comes.estimator.reading_answers import has_many_labels
from comes.methods import Method, Rates, RiskOptions, find_method
from comes.priors import ClassPriorEstimate
from comes.risks.checks import value_or_nan
from comes.training.gradients import Risk

if TYPE_CHECKING:
    from comes.estimator.classifier import CandidateClassifier

Array = npt.NDArray[np.float64]
SAID = (State.NO, State.YES, State.MAYBE)
SMALLEST_SHARE = 1e-3  # of pairs that say something


@dataclass(frozen=True, eq=False)
class Counts:
    """How many rows leave a label possible, and were asked about it; those of two parts add up.

    A row of weight 2 counts as two.
    """

    n: float
    possible: Array  # as far as questions were drawn at random, (q,)
    drawn: Array | None  # rows that were asked about, by questions drawn at random, (q,)
    asked: Array | None  # by any question, (q,); None if nobody knows who was asked

    @classmethod
    def of(cls, answers: Answers | CountedAnswers, weight: Array | None = None) -> "Counts":
        """Count answers."""
        if isinstance(answers, CountedAnswers) or (answers.is_sparse and weight is None):
            return cls._of_sparse(answers)
        fair, n = answers.without_chosen(), len(answers) if weight is None else float(weight.sum())
        masks = (fair.candidates, fair.asked, answers.asked)
        possible, drawn, asked = (None if m is None else sum_rows(m, weight) for m in masks)
        assert possible is not None
        return cls(n, possible, drawn, asked)

    @classmethod
    def _of_sparse(cls, answers: Answers | CountedAnswers) -> "Counts":
        """Count answers without a matrix of all pairs."""
        no, yes, maybe = (answers.count_state(s).astype(float) for s in SAID)
        asked = no + yes + maybe if answers.kind == "answers" else None
        return cls(len(answers), len(answers) - no, asked, asked)

    def of_no_rows(self) -> "Counts":
        """Return the same counts of no rows."""
        parts = (self.drawn, self.asked)
        drawn, asked = (None if part is None else 0 * part for part in parts)
        return Counts(0, 0 * self.possible, drawn, asked)

    def __add__(self, other: "Counts") -> "Counts":
        pairs = ((self.drawn, other.drawn), (self.asked, other.asked))
        drawn, asked = (None if a is None or b is None else a + b for a, b in pairs)
        return Counts(self.n + other.n, self.possible + other.possible, drawn, asked)


def sum_rows(mask: Any, weight: Array | None) -> Array:
    """Return how many rows have a label in a mask, each counted with its weight, (q,)."""
    return np.asarray(mask.sum(axis=0) if weight is None else weight @ mask, dtype=np.float64)


def make_risk(
    classifier: "CandidateClassifier",
    method: Method,
    answers: Answers | CountedAnswers,
    device: torch.device,
    *,
    counts: Counts | None = None,
    corrected: bool = True,
    prior_weight: float | None = None,
) -> Risk:
    """Return the risk, with what is known and the counts of these answers, or others."""
    counts, by_dataset = counts or Counts.of(answers), classifier.normaliser == "dataset"
    asked = None if counts.drawn is None else counts.drawn / counts.n
    options = RiskOptions(
        exclude_share=1 - counts.possible / counts.n if by_dataset else None,
        asked_share=asked if by_dataset else None,
        label_weight=_weigh_labels(counts, classifier.rates_),
        prior_weight=weigh_prior(classifier, answers) if prior_weight is None else prior_weight,
        flood_level=classifier.flood_level,
        corrected=corrected,
    )
    risk: Risk = method.make_risk(classifier.rates_, options)
    return risk.to(device) if isinstance(risk, nn.Module) else risk


def compute_risk(
    classifier: "CandidateClassifier", scores: torch.Tensor, answers: Answers, *, corrected: bool
) -> float:
    """Return the risk of a fitted classifier's scores, with the counts of these answers."""
    method = find_method(classifier.method_, classifier.variant)
    seen = show_answers(classifier, method, answers)
    if method.keeps_one_excluded:
        seen = keep_one_excluded(seen, 0)
    risk = make_risk(classifier, method, answers, scores.device, corrected=corrected)
    return value_or_nan(risk, scores, torch.as_tensor(seen))


def _weigh_labels(counts: Counts, rates: Rates) -> Any:
    """Return 1 / (share of pairs that say something), one number for all labels, (q,).

    The gradient shrinks with that share, and the penalties do not. A number for each label would
    let the few answers about some labels drown the others.
    """
    q = len(counts.possible)
    if counts.asked is not None:
        share = float(counts.asked.sum() / (counts.n * q))
    elif rates.no_rate is not None:
        share = float(np.maximum(rates.no_rate, rates.yes_rate).mean())
    else:
        return None
    return np.full(q, 1 / max(share, SMALLEST_SHARE))


def weigh_prior(classifier: "CandidateClassifier", answers: Answers | CountedAnswers) -> float:
    """Return how strongly mean probabilities are kept near the class prior.

    Even an estimated prior helps, but for answers without a yes, where only a prior that is known
    does: few of them say how common rare labels are.
    """
    if classifier.prior_weight is not None:
        return classifier.prior_weight
    if has_many_labels(answers):  # a batch says nothing of priors below one in its rows
        return 0.0
    if answers.kind != "answers" or answers.has(State.YES):
        return 1.0
    given = classifier.class_prior
    return 0.0 if given is None or isinstance(given, ClassPriorEstimate) else 0.3


def show_answers(classifier: "CandidateClassifier", method: Method, answers: Answers) -> Any:
    """Return what the risk sees of the answers, (n, q)."""
    if not classifier.uses_maybe:
        answers = answers.without_maybe()
    return method.targets(answers, classifier.rates_)
