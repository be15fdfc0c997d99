"""The methods: one class each, with its settings and everything that is known about it.

A method is a scikit-learn estimator without `fit`: its parameters can be copied and searched
(``method__flood_level``). Other files ask it for its facts, and hardly any knows one by name. To
add one:

1. Write its risk in `comes.risks`: a function, and a module if it takes targets by index.
2. Write a subclass of `Method` with ``name``, ``title`` and `Method.make_risk`; settings that
   belong to it alone are parameters of its ``__init__``. The other facts have defaults: set those
   that differ, above all ``needs_...``. A method that learns from more than candidates has its own
   `Method.targets`. With ``has_sparse_targets`` its risk has ``select_labels(labels)``, which
   returns the risk of some labels. A subclass of another method inherits all of its facts, so set
   back those that do not hold.
3. List the class in `METHODS`, and name the method in docs/explain/methods.md.

Importing this file does not import torch, so that the command line and reports can list the
methods: risks are imported where they are made.
"""

import copy
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone

from comes.answers import AnswerRates, Answers, State
from comes.answers.evidence import answer_evidence
from comes.errors import ComesError

__all__ = ["BCE", "CCMN", "COMESHL", "COMESRL", "CTL", "GDF", "MLCL", "Likelihood", "find_method"]

Array = npt.NDArray[np.float64]
Risk = Callable[..., Any]  # risk(scores, targets) -> scalar tensor
Reduction = Literal["auto", "sum", "mean", "per_label"]
Normaliser = Literal["dataset", "batch"]
SMALLEST_SHARE = 1e-3  # of pairs with an answer
# How a method is trained on rows: as the paper trains where it says so, or as measured on many sets
# (docs/guide/training.md). Epochs of None are as many as the answers can bear.
PAPER_TRAINING: Mapping[str, Any] = {
    "optimizer": "sgd",
    "learning_rate": 5e-3,
    "epochs": 200,
    "batch_size": 256,
    "dropout": 0.0,
    "n_networks": 1,
    "starts_at_prior": False,
    "model": "mlp",
    "scale": "columns",
}
MEASURED_TRAINING: Mapping[str, Any] = {
    "optimizer": "adam",
    "learning_rate": 5e-4,
    "epochs": None,
    "batch_size": 64,
    "dropout": 0.5,
    "n_networks": 4,
    "starts_at_prior": True,
    "model": "wide_and_deep",
    "scale": "rows",
}


@dataclass(frozen=True, eq=False)
class Rates:
    """What a risk must know beside scores and answers; None: not needed."""

    class_prior: Any = None  # pi, (q,)
    flip_rate: Any = None  # rho, (q,)
    transition: Any = None  # T, (q, q)
    no_rate: Any = None  # a, or the exclude rate p for candidates, (q,)
    yes_rate: Any = None  # b, (q,); 0 where yes cannot be said
    mistake_rate: float = 0.0  # f
    # Standard error of an estimated class prior, (q,), NaN where it is not known; None if given.
    class_prior_error: Any = None
    people: Any = None  # a and b of every person who has different ones, by name
    prior_weight: float = 0.0  # how strongly mean probabilities are kept near the class prior

    @property
    def answer_rates(self) -> AnswerRates:
        """The rates of answers, where they are known."""
        people = self.people or {}
        return AnswerRates(self.no_rate, self.yes_rate, self.mistake_rate, people=people)

    @property
    def answer_rates_or_none(self) -> AnswerRates | None:
        """The rates of answers; None where the method does not need them."""
        return None if self.no_rate is None else self.answer_rates


@dataclass(frozen=True, eq=False)
class Counts:
    """How many rows leave each label possible, and were asked about it; parts add up.

    A row of weight 2 counts as two.
    """

    n: float
    possible: Array  # as far as questions were drawn at random, (q,)
    drawn: Array | None  # rows that were asked about, by questions drawn at random, (q,)
    asked: Array | None  # by any question, (q,); None if nobody knows who was asked

    @classmethod
    def of(cls, answers: Any, weight: Array | None = None) -> "Counts":
        """Count `Answers`, or what was counted of a stream of them."""
        if weight is None and (answers.is_sparse or not isinstance(answers, Answers)):
            no, yes, maybe = (
                answers.count_state(state).astype(float)
                for state in (State.NO, State.YES, State.MAYBE)
            )
            asked = no + yes + maybe if answers.kind == "answers" else None
            return cls(len(answers), len(answers) - no, asked, asked)
        drawn, n = answers.without_chosen(), len(answers) if weight is None else float(weight.sum())
        possible = sum_rows(drawn.candidates, weight)
        if answers.asked is None:
            return cls(n, possible, None, None)
        return cls(n, possible, sum_rows(drawn.asked, weight), sum_rows(answers.asked, weight))

    def of_no_rows(self) -> "Counts":
        """Return the same counts of no rows."""
        parts = (self.drawn, self.asked)
        drawn, asked = (None if part is None else 0 * part for part in parts)
        return Counts(0, 0 * self.possible, drawn, asked)

    def __add__(self, other: "Counts") -> "Counts":
        pairs = ((self.drawn, other.drawn), (self.asked, other.asked))
        drawn, asked = (None if a is None or b is None else a + b for a, b in pairs)
        return Counts(self.n + other.n, self.possible + other.possible, drawn, asked)

    @property
    def exclude_share(self) -> Array:
        """n_j / n: the share of rows that exclude each label, (q,)."""
        return np.asarray(1 - self.possible / self.n)

    @property
    def asked_share(self) -> Array | None:
        """The share of rows that were asked about each label at random; None if not known."""
        return None if self.drawn is None else self.drawn / self.n

    def label_weight(self, rates: Rates) -> Array | None:
        """Return 1 / (share of pairs with an informative answer), one number for all labels, (q,).

        The gradient shrinks with that share, and the penalties do not. A number for each label
        would let the few answers about some labels drown the others.
        """
        q = len(self.possible)
        if self.asked is not None:
            share = float(self.asked.sum() / (self.n * q))
        elif rates.no_rate is not None:
            share = float(np.maximum(rates.no_rate, rates.yes_rate).mean())
        else:
            return None
        return np.full(q, 1 / max(share, SMALLEST_SHARE))


def sum_rows(mask: Any, weight: Array | None) -> Array:
    """Return how many rows have a label in a mask, each counted with its weight, (q,)."""
    return np.asarray(mask.sum(axis=0) if weight is None else weight @ mask, dtype=np.float64)


class Method(BaseEstimator):  # type: ignore[misc]
    """What an estimator, a table or a page asks a method; the defaults are those of most.

    Parameters
    ----------
    reduction : {"auto", "sum", "mean", "per_label"}
        What the risk is divided by for the gradient. ``sum`` over labels, or over pairs of labels
        for risks over pairs; ``mean`` over these; ``per_label`` divides the sum by the number of
        labels. ``auto`` is ``per_label`` for risks over pairs, ``mean`` for MLCL, else ``sum``.
    """

    name: str
    title: str  # as papers write it
    variants: tuple[str, ...] = ()  # values of the parameter ``variant``; the first is the default

    # What `make_risk` must find in `Rates`.
    needs_class_prior = False
    needs_flip_rate = False
    needs_transition = False
    needs_rates = False  # of answers, or the exclude rate of candidates

    # What `targets` takes of answers.
    uses_only_candidates = True  # not who was asked, nor yes
    ignores_maybe = False  # as soon as somebody says yes
    accepts_positives = False  # can learn where nobody says no: others learn from exclusions
    has_sparse_targets = False  # for very many labels; the risk then needs `select_labels`

    # What the risk is.
    is_sum = False  # a sum over labels; else their mean
    usual_reduction = "sum"  # over labels, if "auto": docs/guide/training.md has the evidence
    is_over_pairs = False  # a sum over pairs of labels; its scores have no natural zero
    keeps_one_excluded = False  # trains on one excluded label per row
    # What is learned of a label that no row excludes; "left out": it takes no part in the risk.
    never_excluded: Literal["relevant", "unknown", "left out"] = "relevant"
    is_custom = False  # a function or module of the user instead of a name

    # How it is trained on rows, and what a head on pictures can do with it.
    training = PAPER_TRAINING
    settings_with_prior: Mapping[str, Any] = {}  # with which it knows exactly what COMES knows
    is_selectable = False  # by --select method
    reads_classes = False  # a head on pictures can learn from class probabilities
    reads_views = False  # and from several views, with a student
    needs_large_batches = False  # with small ones a fine-tuned network forgets

    # How tables show it.
    is_ours = False  # in a separate group
    paper_rank: int | None = None  # in the paper's tables; None for methods that are not in them

    def __init__(self, *, reduction: Reduction = "auto") -> None:
        self.reduction = reduction

    def __str__(self) -> str:
        return self.name

    def check(self) -> "Method":
        """Return the method, if all of its parameters are valid."""
        choices = {
            "variant": self.variants,
            "reduction": ("auto", "sum", "mean", "per_label"),
            "normaliser": ("dataset", "batch"),
            "uses_maybe": (True, False),
        }
        for name, value in self.get_params(deep=False).items():
            if name in choices and value not in choices[name]:
                names = " or ".join(map(str, choices[name]))
                raise ComesError(f"{name} of {self.name} must be {names}; got {value!r}.")
            is_number = isinstance(value, int | float | np.number) and 0 <= value < np.inf
            other = {"flood_level": "auto", "prior_weight": None}
            if name in other and value != other[name] and not is_number:
                raise ComesError(
                    f"{name} must be {other[name]!r}, or a number of 0 or more; got {value!r}."
                )
        return self

    def targets(self, answers: Answers, rates: Rates) -> Any:
        """Return what the risk takes of answers: candidates, states or evidence, (n, q)."""
        return answers.without_chosen().candidates

    def sparse_targets(self, answers: Answers) -> tuple[Any, State]:
        """Return `targets` as the states of the pairs with an answer, CSR, and that of others."""
        return answers.states, State.NOT_ASKED if answers.kind == "answers" else State.MAYBE

    def make_risk(self, rates: Rates, counts: Counts, *, corrected: bool = True) -> Risk:
        """Return the risk, a module of `comes.risks`.

        Not ``corrected`` it is the plain estimate, by which models are judged: no absolute value
        or clamp, no flood, no penalty.
        """
        raise NotImplementedError(f"{self.name} has no risk")

    def risk_scale(self, q: int) -> float:
        """Return the factor that turns the risk of q labels into the reduction asked for."""
        reduction = self.usual_reduction if self.reduction == "auto" else self.reduction
        if self.is_over_pairs:
            reduction = "per_label" if self.reduction == "auto" else self.reduction
            n_pairs = max(1.0, q * (q - 1) / 2)
            return 1 / {"sum": 1.0, "mean": n_pairs, "per_label": float(q)}[reduction]
        wants_sum = reduction == "sum"
        return 1.0 if wants_sum == self.is_sum else q if wants_sum else 1 / q


class COMESHL(Method):
    """COMES for the Hamming loss: `comes.risks.hamming_risk`, Equation 8.

    Parameters
    ----------
    normaliser : {"dataset", "batch"}
        Which n_j a batch has: the share of the rows of the data set that exclude label j times the
        rows of the batch; or the batch's own count, as `hamming_risk` has it by default (a label
        that nothing excludes in a batch is then left out of that batch). With ``dataset``, the mean
        over batches of Equation 7 ("comes-hl-unbiased") is that of the whole data set; of Equation
        8, with its absolute value, it is not: `comes.risks.hamming_risk`.
    reduction : {"auto", "sum", "mean", "per_label"}
        What the risk is divided by for the gradient; ``auto`` is the sum over labels.

    Examples
    --------
    >>> from comes import CandidateClassifier
    >>> CandidateClassifier(COMESHL(normaliser="batch")).get_params()["method__normaliser"]
    'batch'
    """

    name, title = "comes-hl", "COMES-HL"
    needs_class_prior = True
    uses_only_candidates = False
    has_sparse_targets = True
    never_excluded = "left out"
    is_selectable = True
    reads_classes = True
    needs_large_batches = True
    is_ours = True
    paper_rank: int | None = 5
    is_corrected = True

    def __init__(
        self, *, normaliser: Normaliser = "dataset", reduction: Reduction = "auto"
    ) -> None:
        super().__init__(reduction=reduction)
        self.normaliser = normaliser

    def targets(self, answers: Answers, rates: Rates) -> Any:
        """Return the states, or candidates if that is all there is."""
        drawn = answers.without_chosen()  # the risk needs fair samples of rows
        return drawn.codes if drawn.kind == "answers" else drawn.candidates

    def sparse_targets(self, answers: Answers) -> tuple[Any, State]:
        """Return `targets` by index."""
        return super().sparse_targets(answers.without_chosen())

    def make_risk(self, rates: Rates, counts: Counts, *, corrected: bool = True) -> Risk:
        """Return the risk."""
        import torch

        from comes.risks import HammingRisk

        by_dataset = self.normaliser == "dataset"
        return HammingRisk(
            _needed(rates.class_prior),
            exclude_share=_as_tensor(counts.exclude_share if by_dataset else None),
            asked_share=_as_tensor(counts.asked_share if by_dataset else None),
            correction=torch.abs if self.is_corrected and corrected else torch.positive,
        )


class COMESHLUnbiased(COMESHL):
    """COMES-HL without its correction: Equation 7, which has no lower bound."""

    name, title = "comes-hl-unbiased", "COMES-HL unbiased"
    is_selectable = False
    reads_classes = False
    needs_large_batches = False
    paper_rank = None
    is_corrected = False


class COMESRL(Method):
    """COMES for the ranking loss: |R - beta| + beta of `comes.risks.ranking_risk`, Equation 14.

    Parameters
    ----------
    flood_level : float or "auto"
        beta, in units of the pair sum; 0 is Equation 13. "auto" is
        0.75 sum_{j<k} (1 - pi_j)(1 - pi_k), a rule whose factor was read off test rows:
        docs/guide/training.md.
    reduction : {"auto", "sum", "mean", "per_label"}
        What the pair sum is divided by for the gradient: nothing, the number of pairs, or the
        number of labels; ``auto`` is ``per_label``.
    normaliser : {"dataset", "batch"}
        Which n_j divides the sums over rows that exclude label j: as in `COMESHL`.

    Examples
    --------
    >>> from comes import CandidateClassifier
    >>> clf = CandidateClassifier("comes-rl").set_params(method=COMESRL(flood_level=0.0))
    >>> clf.set_params(method__flood_level=2.0).method.flood_level
    2.0
    """

    name, title = "comes-rl", "COMES-RL"
    needs_class_prior = True
    is_over_pairs = True
    is_selectable = True
    is_ours = True
    paper_rank = 6

    def __init__(
        self,
        *,
        flood_level: float | Literal["auto"] = "auto",
        reduction: Reduction = "auto",
        normaliser: Normaliser = "dataset",
    ) -> None:
        super().__init__(reduction=reduction)
        self.flood_level = flood_level
        self.normaliser = normaliser

    def make_risk(self, rates: Rates, counts: Counts, *, corrected: bool = True) -> Risk:
        """Return the risk."""
        from comes.risks import RankingRisk

        share = counts.exclude_share if self.normaliser == "dataset" else None
        return RankingRisk(
            _needed(rates.class_prior),
            exclude_share=_as_tensor(share),
            flood_level=self.flood_level if corrected else 0.0,
        )


class BCE(Method):
    """Every answer taken at its word: `comes.risks.bce_risk`.

    Parameters
    ----------
    reduction : {"auto", "sum", "mean", "per_label"}
        What the risk is divided by for the gradient; ``auto`` is the sum over labels.

    Examples
    --------
    >>> BCE().title
    'BCE'
    """

    name, title = "bce", "BCE"
    uses_only_candidates = False
    ignores_maybe = True
    accepts_positives = True
    has_sparse_targets = True
    training = MEASURED_TRAINING
    is_selectable = True
    paper_rank = 0

    def targets(self, answers: Answers, rates: Rates) -> Any:
        """Return states, candidates, or ticked labels.

        Where nobody can say yes, whatever is not excluded counts as relevant, as in candidates.
        """
        if answers.kind == "positives":
            return answers.confirmed
        if answers.kind == "candidates":
            return answers.candidates
        if answers.confirmed.any():
            return answers.codes
        return np.where(answers.codes == State.MAYBE, np.int8(State.YES), answers.codes)

    def sparse_targets(self, answers: Answers) -> tuple[Any, State]:
        """Return `targets` by index."""
        others = {"positives": State.NO, "candidates": State.YES, "answers": State.NOT_ASKED}
        states = answers.states
        if answers.kind == "answers" and not answers.has(State.YES):
            states = states.copy()
            states.data[states.data == State.MAYBE] = State.YES
        return states, others[answers.kind]

    def make_risk(self, rates: Rates, counts: Counts, *, corrected: bool = True) -> Risk:
        """Return the risk."""
        from comes.risks import BceRisk

        return BceRisk(label_weight=_as_tensor(counts.label_weight(rates)))


class CCMN(Method):
    """Class-conditional noise of candidates, for the Hamming or the ranking loss.

    Parameters
    ----------
    variant : {"hamming", "ranking"}
    flip_rate : float, array of shape (n_labels,), or "class_prior", optional
        How often an irrelevant label is a candidate, at most 0.95. By default estimated by
        `comes.priors.estimate_flip_rate`; "class_prior" takes what the class prior implies.
    reduction : {"auto", "sum", "mean", "per_label"}
        What the risk is divided by for the gradient; ``auto`` is the sum over labels for
        "hamming", ``per_label`` for "ranking".

    Examples
    --------
    >>> CCMN(variant="ranking", flip_rate=0.5).is_over_pairs
    True
    """

    name, title, variants = "ccmn", "CCMN", ("hamming", "ranking")
    needs_flip_rate = True
    settings_with_prior: Mapping[str, Any] = {"flip_rate": "class_prior"}
    is_selectable = True
    paper_rank = 1

    def __init__(
        self,
        *,
        variant: str = "hamming",
        flip_rate: npt.ArrayLike | None = None,
        reduction: Reduction = "auto",
    ) -> None:
        super().__init__(reduction=reduction)
        self.variant = variant
        self.flip_rate = flip_rate

    @property
    def is_over_pairs(self) -> bool:  # type: ignore[override]
        """Whether the risk is a sum over pairs of labels."""
        return self.variant == "ranking"

    def make_risk(self, rates: Rates, counts: Counts, *, corrected: bool = True) -> Risk:
        """Return the risk."""
        import torch

        from comes.risks import BaselineRisk, ccmn_hamming_risk, ccmn_ranking_risk

        flip_rate = _needed(rates.flip_rate)
        if self.is_over_pairs:
            return BaselineRisk(ccmn_ranking_risk, flip_rate=flip_rate)
        correction = torch.relu if corrected else torch.positive
        return BaselineRisk(ccmn_hamming_risk, flip_rate=flip_rate, correction=correction)


class GDF(Method):
    """One complementary label per row; never the best in our experiments, so not selected.

    Parameters
    ----------
    variant : {"single", "all", "unbiased", "unbiased-single"}
        Whether one excluded label per row is kept, or all; and which estimator:
        `comes.risks.gdf_risk`.
    reduction : {"auto", "sum", "mean", "per_label"}
        What the risk is divided by for the gradient; ``auto`` is the sum over labels.

    Examples
    --------
    >>> GDF().keeps_one_excluded, GDF(variant="all").keeps_one_excluded
    (True, False)
    """

    name, title, variants = "gdf", "GDF", ("single", "all", "unbiased", "unbiased-single")
    is_sum = True
    paper_rank = 2

    def __init__(self, *, variant: str = "single", reduction: Reduction = "auto") -> None:
        super().__init__(reduction=reduction)
        self.variant = variant

    @property
    def keeps_one_excluded(self) -> bool:  # type: ignore[override]
        """Whether it trains on one excluded label per row."""
        return self.variant in ("single", "unbiased-single")

    def make_risk(self, rates: Rates, counts: Counts, *, corrected: bool = True) -> Risk:
        """Return the risk."""
        from comes.risks import BaselineRisk, gdf_risk

        return BaselineRisk(gdf_risk, unbiased=self.variant.startswith("unbiased"))


class CTL(Method):
    """Several complementary labels per row, weighted by their number.

    Parameters
    ----------
    variant : {"weighted", "unbiased"}
        `comes.risks.ctl_risk`.
    reduction : {"auto", "sum", "mean", "per_label"}
        What the risk is divided by for the gradient; ``auto`` is the sum over labels.

    Examples
    --------
    >>> CTL(variant="unbiased")
    CTL(variant='unbiased')
    """

    name, title, variants = "ctl", "CTL", ("weighted", "unbiased")
    is_sum = True
    is_selectable = True
    paper_rank = 3

    def __init__(self, *, variant: str = "weighted", reduction: Reduction = "auto") -> None:
        super().__init__(reduction=reduction)
        self.variant = variant

    def make_risk(self, rates: Rates, counts: Counts, *, corrected: bool = True) -> Risk:
        """Return the risk."""
        from comes.risks import BaselineRisk, ctl_risk

        return BaselineRisk(ctl_risk, unbiased=self.variant == "unbiased")


class MLCL(Method):
    """Complementary labels predicted through a transition matrix; likewise never the best.

    Parameters
    ----------
    reduction : {"auto", "sum", "mean", "per_label"}
        What the risk is divided by for the gradient; ``auto`` is the mean over labels.

    Examples
    --------
    >>> MLCL().needs_transition
    True
    """

    name, title = "mlcl", "MLCL"
    needs_transition = True
    never_excluded = "unknown"
    usual_reduction = "mean"
    paper_rank = 4

    def make_risk(self, rates: Rates, counts: Counts, *, corrected: bool = True) -> Risk:
        """Return the risk."""
        from comes.risks import BaselineRisk, mlcl_risk

        return BaselineRisk(mlcl_risk, transition=_needed(rates.transition))


class ComRank(Method):
    """Excluded labels ranked below candidates."""

    name, title, variants = "comrank", "ComRank", ("all", "single")
    is_over_pairs = True

    def __init__(self, *, variant: str = "all", reduction: Reduction = "auto") -> None:
        super().__init__(reduction=reduction)
        self.variant = variant

    @property
    def keeps_one_excluded(self) -> bool:  # type: ignore[override]
        """Whether it trains on one excluded label per row."""
        return self.variant == "single"

    def make_risk(self, rates: Rates, counts: Counts, *, corrected: bool = True) -> Risk:
        """Return the risk."""
        import torch
        from torch.nn import functional as F

        from comes.risks import BaselineRisk, comrank_risk

        pair_loss = torch.exp if self.variant == "single" else F.softplus
        return BaselineRisk(comrank_risk, pair_loss=pair_loss)


class Likelihood(Method):
    """The likelihood of all answers: `comes.risks.likelihood_risk`.

    Parameters
    ----------
    uses_maybe : bool
        Whether "maybe" counts, with the probability that the rates give it. False is right where
        doubt depends on the item: docs/guide/answers.md.
    prior_weight : float, optional
        How strongly mean probabilities are kept near the class prior. By default 1; for answers
        without a yes 0.3 if a class prior is given that is no estimate, else 0.
    reduction : {"auto", "sum", "mean", "per_label"}
        What the risk is divided by for the gradient; ``auto`` is the sum over labels.

    Examples
    --------
    >>> Likelihood(uses_maybe=False).get_params()
    {'prior_weight': None, 'reduction': 'auto', 'uses_maybe': False}
    """

    name, title = "likelihood", "likelihood"
    needs_rates = True
    uses_only_candidates = False
    accepts_positives = True
    has_sparse_targets = True
    never_excluded = "unknown"
    training = MEASURED_TRAINING
    is_selectable = True
    reads_classes = True
    reads_views = True
    is_ours = True

    def __init__(
        self,
        *,
        uses_maybe: bool = True,
        prior_weight: float | None = None,
        reduction: Reduction = "auto",
    ) -> None:
        super().__init__(reduction=reduction)
        self.uses_maybe = uses_maybe
        self.prior_weight = prior_weight

    def used(self, answers: Answers) -> Answers:
        """Return the answers that count."""
        return answers if self.uses_maybe else answers.without_maybe()

    def targets(self, answers: Answers, rates: Rates) -> Any:
        """Return all answers; where several people answered, their evidence."""
        answers = self.used(answers)
        if answers.annotations is not None:
            return answer_evidence(answers, rates.answer_rates)
        return answers.candidates if answers.kind == "candidates" else answers.filled_codes

    def sparse_targets(self, answers: Answers) -> tuple[Any, State]:
        """Return `targets` by index."""
        return super().sparse_targets(self.used(answers))

    def make_risk(self, rates: Rates, counts: Counts, *, corrected: bool = True) -> Risk:
        """Return the risk."""
        from comes.risks import LikelihoodRisk

        keeps_prior = rates.prior_weight > 0 and corrected
        return LikelihoodRisk(
            _needed(rates.no_rate),
            _as_tensor(rates.yes_rate),
            mistake_rate=rates.mistake_rate,
            label_weight=_as_tensor(counts.label_weight(rates)),
            class_prior=_needed(rates.class_prior) if keeps_prior else None,
            prior_weight=rates.prior_weight,
        )


class CustomRisk(Method):
    """A risk of the user: a function or module of scores, targets, and what it asks for by name.

    The first argument is the scores. The second is the candidates or, if it is called ``answers``
    or ``states``, the `State` of every pair. Others without a default are filled by their names,
    those of `KNOWN`.
    """

    name, title = "custom", "custom"
    never_excluded = "unknown"
    is_custom = True
    KNOWN = ("class_prior", "flip_rate", "transition", "no_rate", "yes_rate", "mistake_rate")
    SHARES = ("exclude_share", "asked_share")

    def __init__(self, risk: Risk) -> None:
        super().__init__()
        self.risk = risk

    def check(self) -> "Method":
        """Return the method, if what its risk asks for is known."""
        unknown = [name for name in self._asked if name not in self.KNOWN + self.SHARES]
        if unknown:
            raise ComesError(
                f"your risk asks for {unknown[0]!r}, which is not known: name what it needs "
                f"{', '.join(self.KNOWN + self.SHARES)} or sample_weight, or give it a default."
            )
        return self

    @property
    def _parameters(self) -> list[inspect.Parameter]:
        """The parameters of the risk; scores and candidates where it has no signature."""
        try:
            call = self.risk.forward if hasattr(self.risk, "forward") else self.risk
            return list(inspect.signature(call).parameters.values())
        except (TypeError, ValueError):
            return []

    @property
    def _asked(self) -> list[str]:
        """The names that the risk asks for, beside scores, targets and weights."""
        return [
            parameter.name
            for parameter in self._parameters[2:]
            if parameter.default is parameter.empty
            and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
            and parameter.name != "sample_weight"
        ]

    @property
    def takes_weight(self) -> bool:
        """Whether the risk takes the weights of rows, by their name."""
        names = {parameter.name for parameter in self._parameters}
        return not names or "sample_weight" in names

    @property
    def needs_class_prior(self) -> bool:  # type: ignore[override]
        """Whether the risk asks for the class prior."""
        return "class_prior" in self._asked

    @property
    def needs_flip_rate(self) -> bool:  # type: ignore[override]
        """Whether the risk asks for flip rates."""
        return "flip_rate" in self._asked

    @property
    def needs_transition(self) -> bool:  # type: ignore[override]
        """Whether the risk asks for the transition matrix."""
        return "transition" in self._asked

    @property
    def needs_rates(self) -> bool:  # type: ignore[override]
        """Whether the risk asks for rates of answers."""
        return bool({"no_rate", "yes_rate", "mistake_rate"} & set(self._asked))

    def targets(self, answers: Answers, rates: Rates) -> Any:
        """Return candidates, or states."""
        second = [parameter.name for parameter in self._parameters[1:2]]
        if second in (["answers"], ["states"]):
            return answers.filled_codes
        return super().targets(answers, rates)

    def make_risk(self, rates: Rates, counts: Counts, *, corrected: bool = True) -> Risk:
        """Return a copy of the risk that knows what it asked for."""
        risk = copy.deepcopy(self.risk)  # a function is its own copy
        values = {name: getattr(rates, name) for name in self.KNOWN}
        values |= {name: getattr(counts, name) for name in self.SHARES}
        known = {
            name: values[name] if name == "mistake_rate" else _as_tensor(values[name])
            for name in self._asked
        }
        if not known and not self.takes_weight:
            return risk
        return _KnowingRisk(risk, known)

    def risk_scale(self, q: int) -> float:
        """Return 1: the risk is minimised as it is."""
        return 1.0


class _KnowingRisk:
    """A risk with what it asked for by name; a class, so that it can be sent to processes."""

    def __init__(self, risk: Risk, known: dict[str, Any]) -> None:
        self.risk, self.known = risk, known

    def to(self, device: Any) -> "_KnowingRisk":
        """Move what it knows to a device, as a module of torch does."""
        if hasattr(self.risk, "to"):
            self.risk.to(device)
        for name, value in self.known.items():
            self.known[name] = value.to(device) if hasattr(value, "to") else value
        return self

    def __call__(self, scores: Any, targets: Any, sample_weight: Any = None) -> Any:
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        return self.risk(scores, targets, **self.known, **weight)


METHODS: Mapping[str, Method] = {
    method.name: method()
    for method in (
        *(COMESHL, COMESRL, BCE, CCMN, GDF, CTL, MLCL),  # in the paper
        *(COMESHLUnbiased, ComRank, Likelihood),
    )
}
DEFAULT = Likelihood.name  # of the estimators and the command line: uses all answers
BEST_PUBLISHED = COMESHL.name  # the method of the paper that does best in its tables and ours
SUPERVISED = BCE.name  # takes its labels at their word: for true labels, and as the naive baseline


def find_method(method: str | Method | Risk) -> Method:
    """Return a method by its name, as it is, or made of the user's own risk.

    Parameters
    ----------
    method : str, method object, or function (scores, candidates, ...) -> scalar tensor

    Returns
    -------
    method : Method

    Examples
    --------
    >>> find_method("ccmn").needs_flip_rate
    True
    """
    if isinstance(method, Method):
        return method.check()
    if isinstance(method, str):
        if method not in METHODS:
            raise ComesError(f"method must be one of {', '.join(METHODS)}; got {method!r}.")
        return METHODS[method]
    if isinstance(method, type) or not callable(method):
        raise ComesError(
            "method must be a name, a method object such as comes.methods.COMESRL(), or a function "
            f"risk(scores, candidates); got {method!r}."
        )
    return CustomRisk(method).check()


def publish(method: str, **settings: Any) -> Method:
    """Return a method as the paper has it: without a flood, whose level the paper leaves open."""
    published: Method = clone(find_method(method))
    if "flood_level" in published.get_params():
        settings["flood_level"] = 0.0
    published.set_params(**settings)
    return published


def method_of_label(label: Any) -> Method | None:
    """Return the method that a label in a table belongs to; None for a risk of the user's own.

    Labels begin with the name of their method; a space or a comma ends it.
    """
    return METHODS.get(label.split(",")[0].split(" ")[0]) if isinstance(label, str) else None


def table_rank(label: str) -> tuple[int, str]:
    """Return a key that sorts labels as the paper's tables do: other methods first, COMES last."""
    method = method_of_label(label)
    return (-1 if method is None or method.paper_rank is None else method.paper_rank, label)


def _as_tensor(values: Any) -> Any:
    """Return numbers as a float32 tensor; None stays None."""
    import torch

    return None if values is None else torch.as_tensor(values, dtype=torch.float32)


def _needed(values: Any) -> Any:
    """Return numbers that a risk needs, as a tensor."""
    assert values is not None, "the method does not say that it needs this"
    return _as_tensor(values)
