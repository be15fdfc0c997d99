"""The one truth about every method: its risk, what it must know, where it is used, its title.

``METHODS`` holds a `MethodFamily` by name, and each family its variants. No other file knows a
method by name. Importing this file does not import torch, so the command line and reports can
list the methods.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from comes.errors import ComesError

Use = Literal["rows", "images"]
Risk = Callable[[Any, Any], Any]  # risk(scores, candidates) -> scalar tensor

DEFAULT = "comes-hl"  # of the estimators and the command line
SUPERVISED = "bce"  # takes its labels at their word: for true labels, and as the naive baseline
REDUCTIONS = ("sum", "mean", "per_label")


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What a method may know beyond scores and candidates; None is not given or not needed.

    The same thing from the parameters of an estimator, through what is estimated before training,
    to the risk and the stored model.

    Examples
    --------
    >>> Knowledge(class_prior=[0.2, 0.4]).flip_rate is None
    True
    """

    class_prior: Any = None  # pi, (q,)
    flip_rate: Any = None  # rho, (q,); "class_prior" asks for the rates that the prior implies
    transition: Any = None  # T, (q, q)


@dataclass(frozen=True, eq=False)
class RiskOptions:
    """How a risk is computed, apart from what it knows.

    Examples
    --------
    >>> RiskOptions(flood_level=0.5).corrected
    True
    """

    exclude_share: Any = None  # n_j / n of the data set, (q,); None for the batch's own
    flood_level: float = 0.0  # beta
    corrected: bool = True  # False: the estimate without the correction that training needs


@dataclass(frozen=True)
class Method:
    """One variant of a method: its risk, and how the estimator treats the risk and its scores.

    Examples
    --------
    >>> find_method("comes-rl").has_zero
    False
    """

    make_risk: Callable[[Knowledge, RiskOptions], Risk]
    needs_class_prior: bool = False
    needs_flip_rate: bool = False
    needs_transition: bool = False
    is_over_pairs: bool = False  # of labels: the risk is their sum
    is_sum: bool = False  # over labels; else their mean
    reduction: str = "sum"  # the default; docs/training.md has the evidence
    keeps_one_excluded: bool = False  # trains on one excluded label per row
    is_users_own: bool = False  # a function or module in the place of a name

    @property
    def has_zero(self) -> bool:
        """Whether scores have a natural zero; those of a risk over pairs have none."""
        return not self.is_over_pairs

    def risk_scale(self, reduction: str, q: int) -> float:
        """Return the factor that turns the risk of q labels into the reduction asked for.

        Examples
        --------
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


@dataclass(frozen=True)
class MethodFamily:
    """A method by name: its variants, where it may be used, and how tables show it.

    Examples
    --------
    >>> METHODS["ccmn"].title, list(METHODS["ccmn"].variants)
    ('CCMN', ['hamming', 'ranking'])
    """

    name: str
    title: str  # as papers write it
    variants: Mapping[str, Method]  # the first is the default
    place: int | None = None  # in the paper's tables; None for methods that are not in them
    is_ours: bool = False  # COMES: a group of its own in tables
    uses: tuple[Use, ...] = ("rows", "images")
    may_be_selected: bool = False  # by --select method
    has_sparse_head: bool = False  # the sparse head of images can train it
    needs_large_batches: bool = False  # small ones make fine-tuning forget
    # Settings with which a method that is given the class prior knows no less and no more than
    # COMES does.
    settings_with_prior: Mapping[str, Any] = field(default_factory=dict)

    @property
    def default(self) -> Method:
        """The variant that is meant where none is named."""
        return next(iter(self.variants.values()))


def find_method(method: str | Risk, variant: str | None = None, use: Use = "rows") -> Method:
    """Return the method of that name and variant, or one of the user's own risk.

    Parameters
    ----------
    method : str, or function (scores, candidates) -> scalar tensor
    variant : str, optional
        By default the first.
    use : {"rows", "images"}
        What it is to be trained on.

    Returns
    -------
    method : Method

    Examples
    --------
    >>> find_method("ccmn", "ranking").needs_flip_rate
    True
    """
    if not isinstance(method, str):
        if not callable(method):
            raise ComesError(
                f"method must be a name or a function risk(scores, candidates); got {method!r}."
            )
        if variant is not None:
            raise ComesError(f"a risk of your own has no variants; got {variant!r}.")
        return Method(partial(_copy_risk, method), is_users_own=True)
    family = METHODS.get(method)
    if family is None or use not in family.uses:
        known = ", ".join(name for name, other in METHODS.items() if use in other.uses)
        raise ComesError(f"method must be one of {known}; got {method!r}.")
    if variant is None:
        return family.default
    if variant not in family.variants:
        names = " or ".join(family.variants)
        raise ComesError(f"variant of {method} must be {names}; got {variant!r}.")
    return family.variants[variant]


def family_of(label: Any) -> MethodFamily | None:
    """Return the family that a label in a table belongs to; None for a risk of the user's own.

    Labels begin with the name of their method; a space or a comma ends it.

    Examples
    --------
    >>> family_of("comes-rl per label").title, family_of("ccmn, ranking").title
    ('COMES-RL', 'CCMN')
    >>> family_of("my own risk") is None
    True
    """
    if not isinstance(label, str):
        return None
    return METHODS.get(label.split(",")[0].split(" ")[0])


def table_rank(label: str) -> tuple[int, str]:
    """Return what sorts labels as the paper's tables do: other methods first, COMES last.

    Examples
    --------
    >>> sorted(["comes-hl", "comes-hl, f1", "bce", "mine"], key=table_rank)
    ['mine', 'bce', 'comes-hl', 'comes-hl, f1']
    """
    family = family_of(label)
    return (-1 if family is None or family.place is None else family.place, label)


def title_of_label(label: str) -> str:
    """Return a label with the name of its method as papers write it.

    Examples
    --------
    >>> title_of_label("comes-rl per label"), title_of_label("mine")
    ('COMES-RL per label', 'mine')
    """
    family = family_of(label)
    return label if family is None else family.title + label.removeprefix(family.name)


# The factories. Each imports its risk when it is called, so that this file does not import torch.


def _make_hamming(knowledge: Knowledge, options: RiskOptions, *, corrected: bool = True) -> Risk:
    import torch

    from comes.risks import HammingRisk

    return HammingRisk(
        _needed(knowledge.class_prior),
        exclude_share=_as_tensor(options.exclude_share),
        correction=torch.abs if corrected and options.corrected else torch.positive,
    )


def _make_ranking(knowledge: Knowledge, options: RiskOptions) -> Risk:
    from comes.risks import RankingRisk

    return RankingRisk(
        _needed(knowledge.class_prior),
        exclude_share=_as_tensor(options.exclude_share),
        flood_level=options.flood_level if options.corrected else 0.0,
    )


def _make_bce(knowledge: Knowledge, options: RiskOptions) -> Risk:
    from comes.risks import BceRisk

    return BceRisk()


def _make_ccmn_hamming(knowledge: Knowledge, options: RiskOptions) -> Risk:
    import torch

    from comes.risks import CcmnHammingRisk

    correction = torch.relu if options.corrected else torch.positive
    return CcmnHammingRisk(_needed(knowledge.flip_rate), correction=correction)


def _make_ccmn_ranking(knowledge: Knowledge, options: RiskOptions) -> Risk:
    from comes.risks import CcmnRankingRisk

    return CcmnRankingRisk(_needed(knowledge.flip_rate))


def _make_gdf(knowledge: Knowledge, options: RiskOptions, *, unbiased: bool = False) -> Risk:
    from comes.risks import GdfRisk

    return GdfRisk(unbiased=unbiased)


def _make_ctl(knowledge: Knowledge, options: RiskOptions) -> Risk:
    from comes.risks import CtlRisk

    return CtlRisk()


def _make_ctl_unbiased(
    knowledge: Knowledge, options: RiskOptions, *, released_weight: bool = False
) -> Risk:
    from comes.risks import CtlUnbiasedRisk

    return CtlUnbiasedRisk(released_weight=released_weight)


def _make_mlcl(knowledge: Knowledge, options: RiskOptions, *, as_released: bool = False) -> Risk:
    from comes.risks import MlclRisk

    return MlclRisk(_needed(knowledge.transition), as_released=as_released)


def _make_comrank(knowledge: Knowledge, options: RiskOptions, *, exponential: bool = False) -> Risk:
    import torch

    from comes.risks import ComrankRisk

    return ComrankRisk(pair_loss=torch.exp) if exponential else ComrankRisk()


def _copy_risk(risk: Risk, knowledge: Knowledge, options: RiskOptions) -> Risk:
    """Return a copy of the user's own module; a function is its own copy."""
    return copy.deepcopy(risk)


def _as_tensor(values: Any) -> Any:
    """Return numbers as a float32 tensor."""
    import torch

    return None if values is None else torch.as_tensor(values, dtype=torch.float32)


def _needed(values: Any) -> Any:
    """Return what a risk cannot do without, as a tensor."""
    assert values is not None, "the method does not say that it needs this"
    return _as_tensor(values)


_CCMN_RANKING = Method(
    _make_ccmn_ranking, needs_flip_rate=True, is_over_pairs=True, reduction="per_label"
)
_GDF = Method(_make_gdf, is_sum=True)
_GDF_UNBIASED = Method(partial(_make_gdf, unbiased=True), is_sum=True)
_MLCL = Method(_make_mlcl, needs_transition=True, reduction="mean")
_COMRANK = Method(_make_comrank, is_over_pairs=True, reduction="per_label")

_FAMILIES = (
    MethodFamily(
        "comes-hl",
        "COMES-HL",
        {"corrected": Method(_make_hamming, needs_class_prior=True)},
        place=5,
        is_ours=True,
        may_be_selected=True,
        has_sparse_head=True,
        needs_large_batches=True,
    ),
    MethodFamily(
        "comes-rl",
        "COMES-RL",
        {
            "flooded": Method(
                _make_ranking, needs_class_prior=True, is_over_pairs=True, reduction="per_label"
            )
        },
        place=6,
        is_ours=True,
        may_be_selected=True,
    ),
    MethodFamily("bce", "BCE", {"candidates": Method(_make_bce)}, place=0, may_be_selected=True),
    MethodFamily(
        "ccmn",
        "CCMN",
        {"hamming": Method(_make_ccmn_hamming, needs_flip_rate=True), "ranking": _CCMN_RANKING},
        place=1,
        may_be_selected=True,
        settings_with_prior={"flip_rate": "class_prior"},
    ),
    MethodFamily(  # was in no experiment of ours the best, so it is not selected
        "gdf",
        "GDF",
        {
            "single": replace(_GDF, keeps_one_excluded=True),
            "all": _GDF,
            "unbiased": _GDF_UNBIASED,
            "unbiased-single": replace(_GDF_UNBIASED, keeps_one_excluded=True),
        },
        place=2,
    ),
    MethodFamily(
        "ctl",
        "CTL",
        {
            "weighted": Method(_make_ctl, is_sum=True),
            "unbiased": Method(_make_ctl_unbiased, is_sum=True),
            "unbiased-released": Method(
                partial(_make_ctl_unbiased, released_weight=True), is_sum=True
            ),
        },
        place=3,
        may_be_selected=True,
    ),
    MethodFamily(  # nor was this one
        "mlcl",
        "MLCL",
        {
            "probability": _MLCL,
            "released": replace(_MLCL, make_risk=partial(_make_mlcl, as_released=True)),
        },
        place=4,
    ),
    MethodFamily(
        "comes-hl-unbiased",
        "COMES-HL unbiased",
        {"uncorrected": Method(partial(_make_hamming, corrected=False), needs_class_prior=True)},
        is_ours=True,
    ),
    MethodFamily(
        "comrank",
        "ComRank",
        {
            "all": _COMRANK,
            "single": replace(
                _COMRANK,
                make_risk=partial(_make_comrank, exponential=True),
                keeps_one_excluded=True,
            ),
        },
    ),
)

METHODS: Mapping[str, MethodFamily] = {family.name: family for family in _FAMILIES}
