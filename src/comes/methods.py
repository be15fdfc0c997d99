"""The methods: one class each, with everything that is known about it.

Other files ask a method for its facts, and hardly any knows one by name. To add one:

1. Write its risk in `comes.risks`: a function, and a module if it takes targets by index.
2. Write a subclass of `Method` with ``name``, ``title``, ``variants`` and `Method.make_risk`. The
   other facts have defaults: set those that differ, above all ``needs_...``. A method that learns
   from more than candidates has its own `Method.targets`. With ``has_sparse_targets`` its risk has
   ``select_labels(labels)``, which returns the risk of some labels. A subclass of another method
   inherits all of its facts, so set back those that do not hold.
3. List the class in `METHODS`, and name the method in the docstring of `CandidateClassifier` and in
   docs/explain/methods.md.

Importing this file does not import torch, so that the command line and reports can list the
methods: risks are imported where they are made.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from comes.answers import AnswerRates, Answers, State
from comes.answers.evidence import answer_evidence
from comes.errors import ComesError

__all__ = ["METHODS", "Method", "find_method"]

Risk = Callable[[Any, Any], Any]  # risk(scores, targets) -> scalar tensor
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
}
MEASURED_TRAINING: Mapping[str, Any] = {
    "optimizer": "adam",
    "learning_rate": 5e-4,
    "epochs": None,
    "batch_size": 64,
    "dropout": 0.5,
    "n_networks": 4,
    "starts_at_prior": True,
}
# `CandidateClassifier.as_published`: all parameters that decide a training, as in the paper, and as
# is usual where the paper says nothing.
PAPER_SETTINGS: Mapping[str, Any] = {
    **PAPER_TRAINING,
    "model": "mlp",
    "hidden": 500,
    "momentum": 0.9,
    "weight_decay": 1e-4,
    "cosine": True,
    "reduction": "auto",
    "normaliser": "dataset",
    "flood_level": 0.0,
    "scale": "dense",
    "threshold": "auto",
    "early_stopping": False,
}


@dataclass(frozen=True, eq=False)
class Rates:
    """What a risk may be told beside scores and answers; None: not given, or not needed.

    It carries the parameters of an estimator into the first stage, and what is estimated there into
    the risk and the stored model.
    """

    class_prior: Any = None  # pi, (q,)
    flip_rate: Any = None  # rho, (q,); "class_prior" asks for the rates that the prior implies
    transition: Any = None  # T, (q, q)
    exclude_rate: Any = None  # p, (q,), given for candidates
    no_rate: Any = None  # a, or p for candidates, (q,)
    yes_rate: Any = None  # b, (q,); 0 where yes cannot be said
    mistake_rate: float = 0.0  # f
    # Standard error of an estimated class prior, (q,), NaN where it is not known; None if given.
    class_prior_error: Any = None
    people: Any = None  # a and b of every person who has different ones, by name

    @property
    def answer_rates(self) -> AnswerRates:
        """The rates of answers, where they are known."""
        people = self.people or {}
        return AnswerRates(self.no_rate, self.yes_rate, self.mistake_rate, people=people)


@dataclass(frozen=True, eq=False)
class RiskOptions:
    """How a risk is computed, apart from its rates."""

    exclude_share: Any = None  # n_j / n of the data set, (q,); None for that of the batch
    asked_share: Any = None  # likewise of the rows that were asked about; None if not known
    label_weight: Any = None  # what the losses of a label are multiplied by, (q,)
    prior_weight: float = 0.0  # of the penalty that keeps mean probabilities near the class prior
    flood_level: float | Literal["auto"] = "auto"  # beta; auto is a rule of the class prior
    # False: the plain estimate, by which models are judged: no absolute value or clamp, no flood,
    # no penalty.
    corrected: bool = True


class Method:
    """What an estimator, a table or a page asks a method; the defaults are those of most.

    A subclass must set ``name``, ``title``, ``variants`` and `make_risk`.

    Parameters
    ----------
    variant : str, optional
        One of ``variants``; by default the first.

    Examples
    --------
    >>> from comes.methods import METHODS
    >>> METHODS["ccmn"].title, METHODS["ccmn"].variants
    ('CCMN', ('hamming', 'ranking'))
    """

    name: str
    title: str  # as papers write it
    variants: tuple[str, ...]

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
    reduction = "sum"  # over labels in training, if "auto": docs/guide/training.md has the evidence
    pair_variants: tuple[str, ...] = ()  # those whose risk is a sum over pairs of labels
    single_variants: tuple[str, ...] = ()  # those that train on one excluded label per row
    # What is learned of a label that no row excludes; "left out": it takes no part in the risk.
    never_excluded: Literal["relevant", "unknown", "left out"] = "relevant"
    is_custom = False  # a function or module of the user instead of a name

    # How it is trained on rows, and what a head on pictures can do with it.
    settings = PAPER_TRAINING
    settings_with_prior: Mapping[str, Any] = {}  # with which it knows exactly what COMES knows
    is_selectable = False  # by --select method
    has_sparse_head = False  # the sparse head of images can train it
    has_view_head = False  # and that of several views, with a student
    needs_large_batches = False  # with small ones a fine-tuned network forgets

    # How tables show it.
    is_ours = False  # in a separate group
    paper_rank: int | None = None  # in the paper's tables; None for methods that are not in them

    def __init__(self, variant: str | None = None) -> None:
        if variant is not None and variant not in self.variants:
            names = " or ".join(self.variants)
            raise ComesError(f"variant of {self.name} must be {names}; got {variant!r}.")
        self.variant = variant or self.variants[0]
        self.is_over_pairs = self.variant in self.pair_variants
        self.has_zero = not self.is_over_pairs  # a natural zero of scores, as 0 of log-odds
        self.keeps_one_excluded = self.variant in self.single_variants
        if self.is_over_pairs:
            self.reduction = "per_label"

    def targets(self, answers: Answers, rates: Rates) -> Any:
        """Return what the risk takes of answers: candidates, states or evidence, (n, q)."""
        return answers.without_chosen().candidates

    def sparse_targets(self, answers: Answers) -> tuple[Any, State]:
        """Return `targets` as the states of the pairs with an answer, CSR, and that of others."""
        return answers.states, State.NOT_ASKED if answers.kind == "answers" else State.MAYBE

    def make_risk(self, rates: Rates, options: RiskOptions) -> Risk:
        """Return the risk, a module of `comes.risks`."""
        raise NotImplementedError(f"{self.name} has no risk")

    def list_variants(self) -> "list[Method]":
        """Return the method in all its variants."""
        return [type(self)(variant) for variant in self.variants]

    def risk_scale(self, reduction: str, q: int) -> float:
        """Return the factor that turns the risk of q labels into the reduction asked for."""
        if reduction not in ("auto", "sum", "mean", "per_label"):
            raise ComesError(f"reduction must be auto, sum, mean or per_label; got {reduction!r}.")
        if reduction == "auto":
            reduction = self.reduction
        if self.is_over_pairs:
            n_pairs = max(1.0, q * (q - 1) / 2)
            return 1 / {"sum": 1.0, "mean": n_pairs, "per_label": float(q)}[reduction]
        wants_sum = reduction == "sum"
        return 1.0 if wants_sum == self.is_sum else q if wants_sum else 1 / q


class COMESHL(Method):
    """COMES for the Hamming loss: `comes.risks.hamming_risk`, Equation 8."""

    name, title, variants = "comes-hl", "COMES-HL", ("corrected",)
    needs_class_prior = True
    uses_only_candidates = False
    has_sparse_targets = True
    never_excluded = "left out"
    is_selectable = True
    has_sparse_head = True
    needs_large_batches = True
    is_ours = True
    paper_rank: int | None = 5
    is_corrected = True

    def targets(self, answers: Answers, rates: Rates) -> Any:
        """Return the states, or candidates if that is all there is."""
        drawn = answers.without_chosen()  # the risk needs fair samples of rows
        return drawn.codes if drawn.kind == "answers" else drawn.candidates

    def sparse_targets(self, answers: Answers) -> tuple[Any, State]:
        """Return `targets` by index."""
        return super().sparse_targets(answers.without_chosen())

    def make_risk(self, rates: Rates, options: RiskOptions) -> Risk:
        """Return the risk."""
        import torch

        from comes.risks import HammingRisk

        return HammingRisk(
            _needed(rates.class_prior),
            exclude_share=_as_tensor(options.exclude_share),
            asked_share=_as_tensor(options.asked_share),
            correction=torch.abs if self.is_corrected and options.corrected else torch.positive,
        )


class COMESHLUnbiased(COMESHL):
    """COMES-HL without its correction: Equation 7, which has no lower bound."""

    name, title, variants = "comes-hl-unbiased", "COMES-HL unbiased", ("uncorrected",)
    is_selectable = False
    has_sparse_head = False
    needs_large_batches = False
    paper_rank = None
    is_corrected = False


class COMESRL(Method):
    """COMES for the ranking loss: |R - beta| + beta of `comes.risks.ranking_risk`, Equation 14.

    beta is the estimator's ``flood_level``, by default "auto", a rule of the class prior; it is 0
    in `CandidateClassifier.as_published`, and where `RiskOptions.corrected` is False.
    """

    name, title, variants = "comes-rl", "COMES-RL", ("flooded",)
    needs_class_prior = True
    pair_variants = variants
    is_selectable = True
    is_ours = True
    paper_rank = 6

    def make_risk(self, rates: Rates, options: RiskOptions) -> Risk:
        """Return the risk."""
        from comes.risks import RankingRisk

        return RankingRisk(
            _needed(rates.class_prior),
            exclude_share=_as_tensor(options.exclude_share),
            flood_level=options.flood_level if options.corrected else 0.0,
        )


class BCE(Method):
    """Every answer taken at its word."""

    name, title, variants = "bce", "BCE", ("candidates",)
    uses_only_candidates = False
    ignores_maybe = True
    accepts_positives = True
    has_sparse_targets = True
    settings = MEASURED_TRAINING
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

    def make_risk(self, rates: Rates, options: RiskOptions) -> Risk:
        """Return the risk."""
        from comes.risks import BceRisk

        return BceRisk(label_weight=_as_tensor(options.label_weight))


class CCMN(Method):
    """Class-conditional noise of candidates, for the Hamming or the ranking loss."""

    name, title, variants = "ccmn", "CCMN", ("hamming", "ranking")
    needs_flip_rate = True
    pair_variants = ("ranking",)
    settings_with_prior: Mapping[str, Any] = {"flip_rate": "class_prior"}
    is_selectable = True
    paper_rank = 1

    def make_risk(self, rates: Rates, options: RiskOptions) -> Risk:
        """Return the risk."""
        import torch

        from comes.risks import BaselineRisk, ccmn_hamming_risk, ccmn_ranking_risk

        flip_rate = _needed(rates.flip_rate)
        if self.variant == "ranking":
            return BaselineRisk(ccmn_ranking_risk, flip_rate=flip_rate)
        correction = torch.relu if options.corrected else torch.positive
        return BaselineRisk(ccmn_hamming_risk, flip_rate=flip_rate, correction=correction)


class GDF(Method):
    """One complementary label per row; never the best in our experiments, so not selected."""

    name, title, variants = "gdf", "GDF", ("single", "all", "unbiased", "unbiased-single")
    is_sum = True
    single_variants = ("single", "unbiased-single")
    paper_rank = 2

    def make_risk(self, rates: Rates, options: RiskOptions) -> Risk:
        """Return the risk."""
        from comes.risks import BaselineRisk, gdf_risk

        return BaselineRisk(gdf_risk, unbiased=self.variant.startswith("unbiased"))


class CTL(Method):
    """Several complementary labels per row, weighted by their number."""

    name, title, variants = "ctl", "CTL", ("weighted", "unbiased")
    is_sum = True
    is_selectable = True
    paper_rank = 3

    def make_risk(self, rates: Rates, options: RiskOptions) -> Risk:
        """Return the risk."""
        from comes.risks import BaselineRisk, ctl_risk

        return BaselineRisk(ctl_risk, unbiased=self.variant == "unbiased")


class MLCL(Method):
    """Complementary labels predicted through a transition matrix; likewise never the best."""

    name, title, variants = "mlcl", "MLCL", ("probability",)
    needs_transition = True
    never_excluded = "unknown"
    reduction = "mean"
    paper_rank = 4

    def make_risk(self, rates: Rates, options: RiskOptions) -> Risk:
        """Return the risk."""
        from comes.risks import BaselineRisk, mlcl_risk

        return BaselineRisk(mlcl_risk, transition=_needed(rates.transition))


class ComRank(Method):
    """Excluded labels ranked below candidates."""

    name, title, variants = "comrank", "ComRank", ("all", "single")
    pair_variants = variants
    single_variants = ("single",)

    def make_risk(self, rates: Rates, options: RiskOptions) -> Risk:
        """Return the risk."""
        import torch
        from torch.nn import functional as F

        from comes.risks import BaselineRisk, comrank_risk

        pair_loss = torch.exp if self.variant == "single" else F.softplus
        return BaselineRisk(comrank_risk, pair_loss=pair_loss)


class Likelihood(Method):
    """The likelihood of all answers."""

    name, title, variants = "likelihood", "likelihood", ("answers",)
    needs_rates = True
    uses_only_candidates = False
    accepts_positives = True
    has_sparse_targets = True
    never_excluded = "unknown"
    settings = MEASURED_TRAINING
    is_selectable = True
    has_sparse_head = True
    has_view_head = True
    is_ours = True

    def targets(self, answers: Answers, rates: Rates) -> Any:
        """Return all answers; where several people answered, their evidence."""
        if answers.annotations is not None:
            return answer_evidence(answers, rates.answer_rates)
        return answers.candidates if answers.kind == "candidates" else answers.filled_codes

    def make_risk(self, rates: Rates, options: RiskOptions) -> Risk:
        """Return the risk."""
        from comes.risks import LikelihoodRisk

        keeps_prior = options.prior_weight > 0 and options.corrected
        return LikelihoodRisk(
            _needed(rates.no_rate),
            _as_tensor(rates.yes_rate),
            mistake_rate=rates.mistake_rate,
            label_weight=_as_tensor(options.label_weight),
            class_prior=_needed(rates.class_prior) if keeps_prior else None,
            prior_weight=options.prior_weight,
        )


class CustomRisk(Method):
    """A risk of the user: a function or module (scores, candidates) -> scalar tensor."""

    name, title, variants = "custom", "custom", ("custom",)
    never_excluded = "unknown"
    is_custom = True

    def __init__(self, risk: Risk) -> None:
        super().__init__()
        self.risk = risk

    def make_risk(self, rates: Rates, options: RiskOptions) -> Risk:
        """Return a copy of a module; a function is its own copy."""
        return copy.deepcopy(self.risk)

    def risk_scale(self, reduction: str, q: int) -> float:
        """Return 1: the risk is minimised as it is."""
        if reduction == "auto":
            return 1.0
        raise ComesError(
            f"a risk of your own is minimised as it is; reduction must be auto; got {reduction!r}."
        )


IN_PAPER: tuple[type[Method], ...] = (COMESHL, COMESRL, BCE, CCMN, GDF, CTL, MLCL)
NOT_IN_PAPER: tuple[type[Method], ...] = (COMESHLUnbiased, ComRank, Likelihood)
METHODS: Mapping[str, Method] = {method.name: method() for method in IN_PAPER + NOT_IN_PAPER}
DEFAULT = Likelihood.name  # of the estimators and the command line: uses all answers
BEST_PUBLISHED = COMESHL.name  # the method of the paper that does best in its tables and ours
SUPERVISED = BCE.name  # takes its labels at their word: for true labels, and as the naive baseline


def find_method(method: str | Risk, variant: str | None = None) -> Method:
    """Return the method of that name and variant, or a method made of the user's own risk.

    Parameters
    ----------
    method : str, or function (scores, candidates) -> scalar tensor
    variant : str, optional
        By default the first.

    Returns
    -------
    method : Method

    Examples
    --------
    >>> find_method("ccmn", "ranking").needs_flip_rate
    True
    """
    if isinstance(method, str):
        if method not in METHODS:
            raise ComesError(f"method must be one of {', '.join(METHODS)}; got {method!r}.")
        return METHODS[method] if variant is None else type(METHODS[method])(variant)
    if not callable(method):
        raise ComesError(
            f"method must be a name or a function risk(scores, candidates); got {method!r}."
        )
    if variant is not None:
        raise ComesError(f"a risk of your own has no variants; got {variant!r}.")
    return CustomRisk(method)


def settings_of(method: Any) -> Mapping[str, Any]:
    """Return how a method is trained on rows by default; a custom risk as the paper trains."""
    is_named = isinstance(method, str) and method in METHODS
    return METHODS[method].settings if is_named else PAPER_TRAINING


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
