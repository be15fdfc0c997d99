"""The methods: one class each, with everything that is known about it.

A method says what its risk must know (``needs_...``), which targets it takes from answers
(`Method.targets`), what its risk is (`Method.make_risk`), how it is trained (``settings``), and how
tables show it. To add one, write its risk in `comes.risks`, a class here, and its entry in
`METHODS`. No other file knows a method by name.

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
REDUCTIONS = ("sum", "mean", "per_label")
# How rows are trained on, as the paper trains where it says so, and as measured on many sets
# (docs/guide/training.md). Epochs of None are as many as the answers can bear.
AS_PUBLISHED: Mapping[str, Any] = {
    "optimizer": "sgd",
    "learning_rate": 5e-3,
    "epochs": 200,
    "batch_size": 256,
    "dropout": 0.0,
    "n_networks": 1,
    "starts_at_prior": False,
}
AS_MEASURED: Mapping[str, Any] = {
    "optimizer": "adam",
    "learning_rate": 5e-4,
    "epochs": None,
    "batch_size": 64,
    "dropout": 0.5,
    "n_networks": 4,
    "starts_at_prior": True,
}
# Everything of `CandidateClassifier` that decides a training, as the paper trains, and as the field
# does where the paper says nothing.
PAPER_SETTINGS: Mapping[str, Any] = {
    **AS_PUBLISHED,
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
    corrected: bool = True  # False: the estimate without the correction that training needs


class Method:
    """What an estimator, a table or a page asks a method; the defaults are those of most.

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
    has_sparse_targets = False  # for very many labels

    is_sum = False  # the risk is a sum over labels; else their mean
    is_custom = False  # a function or module of the user instead of a name

    # How it is trained on rows, and what a head on pictures can do with it.
    settings = AS_PUBLISHED
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

    @property
    def is_over_pairs(self) -> bool:
        """Whether the risk is a sum over pairs of labels."""
        return False

    @property
    def has_zero(self) -> bool:
        """Whether scores have a natural zero; those of a risk over pairs have none."""
        return not self.is_over_pairs

    @property
    def reduction(self) -> str:
        """How "auto" reduces the risk over labels; docs/guide/training.md has the evidence."""
        return "per_label" if self.is_over_pairs else "sum"

    @property
    def keeps_one_excluded(self) -> bool:
        """Whether it trains on one excluded label per row."""
        return False

    def targets(self, answers: Answers, rates: Rates) -> Any:
        """Return what the risk takes of answers: candidates, states or evidence, (n, q)."""
        return answers.without_chosen().candidates

    def sparse_targets(self, answers: Answers) -> tuple[Any, State]:
        """Return `targets` as the states of the pairs with an answer, CSR, and that of others."""
        raise NotImplementedError(f"{self.name} has no sparse targets")

    def make_risk(self, rates: Rates, options: RiskOptions) -> Risk:
        """Return the risk, a module of `comes.risks`."""
        raise NotImplementedError(f"{self.name} has no risk")

    def list_variants(self) -> "list[Method]":
        """Return the method in all its variants."""
        return [type(self)(variant) for variant in self.variants]

    def risk_scale(self, reduction: str, q: int) -> float:
        """Return the factor that turns the risk of q labels into the reduction asked for."""
        if reduction not in (*REDUCTIONS, "auto"):
            raise ComesError(f"reduction must be auto, sum, mean or per_label; got {reduction!r}.")
        if reduction == "auto":
            reduction = self.reduction
        if self.is_over_pairs:
            n_pairs = max(1.0, q * (q - 1) / 2)
            return 1 / {"sum": 1.0, "mean": n_pairs, "per_label": float(q)}[reduction]
        wants_sum = reduction == "sum"
        return 1.0 if wants_sum == self.is_sum else q if wants_sum else 1 / q


class COMESHL(Method):
    """COMES for the Hamming loss: Equation 8."""

    name, title, variants = "comes-hl", "COMES-HL", ("corrected",)
    needs_class_prior = True
    uses_only_candidates = False
    has_sparse_targets = True
    is_selectable = True
    has_sparse_head = True
    needs_large_batches = True
    is_ours = True
    paper_rank: int | None = 5
    is_corrected = True

    def targets(self, answers: Answers, rates: Rates) -> Any:
        """Return the states of questions drawn at random; candidates if that is all there is.

        The risk needs fair samples of rows, so questions that a model chose are left out.
        """
        drawn = answers.without_chosen()
        return drawn.codes if drawn.kind == "answers" else drawn.candidates

    def sparse_targets(self, answers: Answers) -> tuple[Any, State]:
        """Return `targets` by index."""
        drawn = answers.without_chosen()
        return drawn.states, State.NOT_ASKED if drawn.kind == "answers" else State.MAYBE

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
    """COMES for the ranking loss: Equation 14."""

    name, title, variants = "comes-rl", "COMES-RL", ("flooded",)
    needs_class_prior = True
    is_over_pairs = True
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
    settings = AS_MEASURED
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
    settings_with_prior: Mapping[str, Any] = {"flip_rate": "class_prior"}
    is_selectable = True
    paper_rank = 1

    @property
    def is_over_pairs(self) -> bool:
        """Whether it is the ranking loss."""
        return self.variant == "ranking"

    def make_risk(self, rates: Rates, options: RiskOptions) -> Risk:
        """Return the risk."""
        import torch

        from comes.risks import CcmnHammingRisk, CcmnRankingRisk

        flip_rate = _needed(rates.flip_rate)
        if self.variant == "ranking":
            return CcmnRankingRisk(flip_rate)
        return CcmnHammingRisk(
            flip_rate, correction=torch.relu if options.corrected else torch.positive
        )


class GDF(Method):
    """One complementary label per row; never the best in our experiments, so not selected."""

    name, title, variants = "gdf", "GDF", ("single", "all", "unbiased", "unbiased-single")
    is_sum = True
    paper_rank = 2

    @property
    def keeps_one_excluded(self) -> bool:
        """Whether it trains on one excluded label per row."""
        return self.variant in ("single", "unbiased-single")

    def make_risk(self, rates: Rates, options: RiskOptions) -> Risk:
        """Return the risk."""
        from comes.risks import GdfRisk

        return GdfRisk(unbiased=self.variant in ("unbiased", "unbiased-single"))


class CTL(Method):
    """Several complementary labels per row, weighted by their number."""

    name, title, variants = "ctl", "CTL", ("weighted", "unbiased")
    is_sum = True
    is_selectable = True
    paper_rank = 3

    def make_risk(self, rates: Rates, options: RiskOptions) -> Risk:
        """Return the risk."""
        from comes.risks import CtlRisk

        return CtlRisk(unbiased=self.variant == "unbiased")


class MLCL(Method):
    """Complementary labels predicted through a transition matrix; likewise never the best."""

    name, title, variants = "mlcl", "MLCL", ("probability",)
    needs_transition = True
    reduction = "mean"
    paper_rank = 4

    def make_risk(self, rates: Rates, options: RiskOptions) -> Risk:
        """Return the risk."""
        from comes.risks import MlclRisk

        return MlclRisk(_needed(rates.transition))


class ComRank(Method):
    """Excluded labels ranked below candidates."""

    name, title, variants = "comrank", "ComRank", ("all", "single")
    is_over_pairs = True

    @property
    def keeps_one_excluded(self) -> bool:
        """Whether it trains on one excluded label per row."""
        return self.variant == "single"

    def make_risk(self, rates: Rates, options: RiskOptions) -> Risk:
        """Return the risk."""
        import torch

        from comes.risks import ComrankRisk

        return ComrankRisk(pair_loss=torch.exp) if self.variant == "single" else ComrankRisk()


class Likelihood(Method):
    """The likelihood of all answers."""

    name, title, variants = "likelihood", "likelihood", ("answers",)
    needs_rates = True
    uses_only_candidates = False
    accepts_positives = True
    has_sparse_targets = True
    settings = AS_MEASURED
    is_selectable = True
    has_sparse_head = True
    has_view_head = True
    is_ours = True

    def targets(self, answers: Answers, rates: Rates) -> Any:
        """Return all answers; where several people answered, their evidence."""
        if answers.annotations is not None:
            return answer_evidence(answers, rates.answer_rates)
        return answers.candidates if answers.kind == "candidates" else answers.filled_codes

    def sparse_targets(self, answers: Answers) -> tuple[Any, State]:
        """Return `targets` by index."""
        return answers.states, State.NOT_ASKED if answers.kind == "answers" else State.MAYBE

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
    is_custom = True

    def __init__(self, risk: Risk) -> None:
        super().__init__()
        self.risk = risk

    def make_risk(self, rates: Rates, options: RiskOptions) -> Risk:
        """Return a copy of a module; a function is its own copy."""
        return copy.deepcopy(self.risk)

    def risk_scale(self, reduction: str, q: int) -> float:
        """Return 1: the risk is minimised as it is."""
        if reduction != "auto":
            raise ComesError(
                f"a risk of your own is minimised as it is; reduction must be auto; got "
                f"{reduction!r}."
            )
        return 1.0


METHODS: Mapping[str, Method] = {
    "comes-hl": COMESHL(),
    "comes-rl": COMESRL(),
    "bce": BCE(),
    "ccmn": CCMN(),
    "gdf": GDF(),
    "ctl": CTL(),
    "mlcl": MLCL(),
    "comes-hl-unbiased": COMESHLUnbiased(),
    "comrank": ComRank(),
    "likelihood": Likelihood(),
}
DEFAULT = "likelihood"  # of the estimators and the command line: uses all answers
PUBLISHED = "comes-hl"  # the method of the paper that does best in its tables and ours
SUPERVISED = "bce"  # takes its labels at their word: for true labels, and as the naive baseline


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
    return METHODS[method].settings if is_named else AS_PUBLISHED


def method_of_label(label: Any) -> Method | None:
    """Return the method that a label in a table belongs to; None for a risk of the user's own.

    Labels begin with the name of their method; a space or a comma ends it.
    """
    return METHODS.get(label.split(",")[0].split(" ")[0]) if isinstance(label, str) else None


def table_rank(label: str) -> tuple[int, str]:
    """Return a key that sorts labels as the paper's tables do: other methods first, COMES last."""
    method = method_of_label(label)
    return (-1 if method is None or method.paper_rank is None else method.paper_rank, label)


def title_of_label(label: str) -> str:
    """Return a label with the name of its method as papers write it."""
    method = method_of_label(label)
    return label if method is None else method.title + label.removeprefix(method.name)


def _as_tensor(values: Any) -> Any:
    """Return numbers as a float32 tensor; None stays None."""
    import torch

    return None if values is None else torch.as_tensor(values, dtype=torch.float32)


def _needed(values: Any) -> Any:
    """Return numbers that a risk needs, as a tensor."""
    assert values is not None, "the method does not say that it needs this"
    return _as_tensor(values)
