"""Every method with its variants: the only file that knows methods by name.

A new method is a factory and a family in ``_FAMILIES``. Factories import their risk when they are
called, so that listing the methods does not import torch.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from comes.methods.knowledge import Knowledge, RiskOptions
from comes.methods.method import AS_MEASURED, Method, MethodFamily, Risk
from comes.methods.sights import (
    see_all,
    see_all_sparse,
    see_asked,
    see_asked_sparse,
    see_sure,
    see_sure_sparse,
)

DEFAULT = "likelihood"  # of the estimators and the command line: uses everything that was said
PUBLISHED = "comes-hl"  # the method of the paper that does best in its tables and ours
SUPERVISED = "bce"  # takes its labels at their word: for true labels, and as the naive baseline


def _make_hamming(knowledge: Knowledge, options: RiskOptions, *, corrected: bool = True) -> Risk:
    import torch

    from comes.risks import HammingRisk

    return HammingRisk(
        _require_tensor(knowledge.class_prior),
        exclude_share=_as_tensor(options.exclude_share),
        asked_share=_as_tensor(options.asked_share),
        correction=torch.abs if corrected and options.corrected else torch.positive,
    )


def _make_ranking(knowledge: Knowledge, options: RiskOptions) -> Risk:
    from comes.risks import RankingRisk

    return RankingRisk(
        _require_tensor(knowledge.class_prior),
        exclude_share=_as_tensor(options.exclude_share),
        flood_level=options.flood_level if options.corrected else 0.0,
    )


def _make_bce(knowledge: Knowledge, options: RiskOptions) -> Risk:
    from comes.risks import BceRisk

    return BceRisk(label_weight=_as_tensor(options.label_weight))


def _make_likelihood(knowledge: Knowledge, options: RiskOptions) -> Risk:
    from comes.risks import LikelihoodRisk

    keeps_prior = options.prior_weight > 0 and options.corrected
    return LikelihoodRisk(
        _require_tensor(knowledge.no_rate),
        _as_tensor(knowledge.yes_rate),
        mistake_rate=knowledge.mistake_rate,
        label_weight=_as_tensor(options.label_weight),
        class_prior=_require_tensor(knowledge.class_prior) if keeps_prior else None,
        prior_weight=options.prior_weight,
    )


def _make_ccmn_hamming(knowledge: Knowledge, options: RiskOptions) -> Risk:
    import torch

    from comes.risks import CcmnHammingRisk

    correction = torch.relu if options.corrected else torch.positive
    return CcmnHammingRisk(_require_tensor(knowledge.flip_rate), correction=correction)


def _make_ccmn_ranking(knowledge: Knowledge, options: RiskOptions) -> Risk:
    from comes.risks import CcmnRankingRisk

    return CcmnRankingRisk(_require_tensor(knowledge.flip_rate))


def _make_gdf(knowledge: Knowledge, options: RiskOptions, *, unbiased: bool = False) -> Risk:
    from comes.risks import GdfRisk

    return GdfRisk(unbiased=unbiased)


def _make_ctl(knowledge: Knowledge, options: RiskOptions, *, unbiased: bool = False) -> Risk:
    from comes.risks import CtlRisk

    return CtlRisk(unbiased=unbiased)


def _make_mlcl(knowledge: Knowledge, options: RiskOptions) -> Risk:
    from comes.risks import MlclRisk

    return MlclRisk(_require_tensor(knowledge.transition))


def _make_comrank(knowledge: Knowledge, options: RiskOptions, *, exponential: bool = False) -> Risk:
    import torch

    from comes.risks import ComrankRisk

    return ComrankRisk(pair_loss=torch.exp) if exponential else ComrankRisk()


def _as_tensor(values: Any) -> Any:
    """Return numbers as a float32 tensor."""
    import torch

    return None if values is None else torch.as_tensor(values, dtype=torch.float32)


def _require_tensor(values: Any) -> Any:
    """Return numbers that a risk needs, as a tensor."""
    assert values is not None, "the method does not say that it needs this"
    return _as_tensor(values)


_CCMN_RANKING = Method(
    _make_ccmn_ranking, needs_flip_rate=True, is_over_pairs=True, reduction="per_label"
)
_GDF = Method(_make_gdf, is_sum=True)
_GDF_UNBIASED = Method(partial(_make_gdf, unbiased=True), is_sum=True)
_COMRANK = Method(_make_comrank, is_over_pairs=True, reduction="per_label")

_FAMILIES = (
    MethodFamily(
        "comes-hl",
        "COMES-HL",
        {"corrected": Method(_make_hamming, see_asked, see_asked_sparse, needs_class_prior=True)},
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
    MethodFamily(
        "bce",
        "BCE",
        {"candidates": Method(_make_bce, see_sure, see_sure_sparse)},
        place=0,
        may_be_selected=True,
        settings=AS_MEASURED,
    ),
    MethodFamily(
        "ccmn",
        "CCMN",
        {"hamming": Method(_make_ccmn_hamming, needs_flip_rate=True), "ranking": _CCMN_RANKING},
        place=1,
        may_be_selected=True,
        settings_with_prior={"flip_rate": "class_prior"},
    ),
    MethodFamily(  # never the best in our experiments, so it is not selected
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
            "unbiased": Method(partial(_make_ctl, unbiased=True), is_sum=True),
        },
        place=3,
        may_be_selected=True,
    ),
    MethodFamily(  # likewise never the best
        "mlcl",
        "MLCL",
        {"probability": Method(_make_mlcl, needs_transition=True, reduction="mean")},
        place=4,
    ),
    MethodFamily(
        "comes-hl-unbiased",
        "COMES-HL unbiased",
        {
            "uncorrected": Method(
                partial(_make_hamming, corrected=False),
                see_asked,
                see_asked_sparse,
                needs_class_prior=True,
            )
        },
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
    MethodFamily(
        "likelihood",
        "likelihood",
        {
            "answers": Method(
                _make_likelihood,
                see_all,
                see_all_sparse,
                needs_rates=True,
            )
        },
        is_ours=True,
        may_be_selected=True,
        has_sparse_head=True,
        has_view_head=True,
        settings=AS_MEASURED,
    ),
)

METHODS: Mapping[str, MethodFamily] = {family.name: family for family in _FAMILIES}
