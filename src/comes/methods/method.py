"""What a method is: its risk, what it must know, where it is used, how tables show it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from comes.answers import Answers
from comes.errors import ComesError
from comes.methods.knowledge import Knowledge, RiskOptions
from comes.methods.sights import Said, see_asked, see_candidates, see_sure

Use = Literal["rows", "images"]
Risk = Callable[[Any, Any], Any]  # risk(scores, what it sees of the answers) -> scalar tensor
See = Callable[[Answers, Knowledge], Any]  # what a risk sees, an array (n, q)
SeeSparse = Callable[[Answers], Said]
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
class Method:
    """One variant of a method: its risk, and how an estimator treats the risk and its scores.

    Examples
    --------
    >>> from comes.methods import find_method
    >>> find_method("comes-rl").has_zero
    False
    """

    make_risk: Callable[[Knowledge, RiskOptions], Risk]
    see: See = see_candidates
    see_sparse: SeeSparse | None = None  # the same for very many labels; None: not for these
    needs_class_prior: bool = False
    needs_flip_rate: bool = False
    needs_transition: bool = False
    needs_rates: bool = False  # of answers, or the exclude rate of candidates
    is_over_pairs: bool = False  # of labels: the risk is their sum
    is_sum: bool = False  # over labels; else their mean
    reduction: str = "sum"  # the default; docs/guide/training.md has the evidence
    keeps_one_excluded: bool = False  # trains on one excluded label per row
    is_users_own: bool = False  # a function or module instead of a name

    @property
    def sees_only_candidates(self) -> bool:
        """Whether who was asked, and yes, are lost on it."""
        return self.see is see_candidates

    @property
    def leaves_maybe_out(self) -> bool:
        """Whether it takes no notice of "maybe" as soon as somebody says yes."""
        return self.see is see_sure

    @property
    def takes_positives(self) -> bool:
        """Whether it can learn where nobody says no: others learn from exclusions."""
        return not (self.sees_only_candidates or self.see is see_asked)

    @property
    def has_zero(self) -> bool:
        """Whether scores have a natural zero; those of a risk over pairs have none."""
        return not self.is_over_pairs

    def risk_scale(self, reduction: str, q: int) -> float:
        """Return the factor that turns the risk of q labels into the reduction asked for.

        Examples
        --------
        >>> from comes.methods import find_method
        >>> find_method("comes-hl").risk_scale("sum", q=5)
        5
        """
        if reduction not in (*REDUCTIONS, "auto"):
            raise ComesError(f"reduction must be auto, sum, mean or per_label; got {reduction!r}.")
        if self.is_users_own:
            if reduction != "auto":
                raise ComesError(
                    f"a risk of your own is minimised as it is; reduction must be auto; got "
                    f"{reduction!r}."
                )
            return 1.0
        if reduction == "auto":
            reduction = self.reduction
        if self.is_over_pairs:
            n_pairs = max(1.0, q * (q - 1) / 2)
            return 1 / {"sum": 1.0, "mean": n_pairs, "per_label": float(q)}[reduction]
        wants_sum = reduction == "sum"
        return 1.0 if wants_sum == self.is_sum else q if wants_sum else 1 / q


@dataclass(frozen=True, eq=False)
class MethodFamily:
    """A method by name: its variants, where it may be used, and how tables show it.

    Examples
    --------
    >>> from comes.methods import METHODS
    >>> METHODS["ccmn"].title, list(METHODS["ccmn"].variants)
    ('CCMN', ['hamming', 'ranking'])
    """

    name: str
    title: str  # as papers write it
    variants: Mapping[str, Method]  # the first is the default
    place: int | None = None  # in the paper's tables; None for methods that are not in them
    is_ours: bool = False  # COMES: a separate group in tables
    uses: tuple[Use, ...] = ("rows", "images")
    may_be_selected: bool = False  # by --select method
    has_sparse_head: bool = False  # the sparse head of images can train it
    has_view_head: bool = False  # and that of several views, with a student
    needs_large_batches: bool = False  # with small ones a fine-tuned network forgets
    settings: Mapping[str, Any] = field(default_factory=lambda: AS_PUBLISHED)  # of training rows
    # Settings with which a method that is given the class prior knows exactly what COMES knows.
    settings_with_prior: Mapping[str, Any] = field(default_factory=dict)

    @property
    def default(self) -> Method:
        """The variant that is used if none is named."""
        return next(iter(self.variants.values()))
