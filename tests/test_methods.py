"""The one truth about methods: what each says of itself is what its risk needs and gives."""

import inspect
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse

from comes import methods, risks
from comes.answers import Answers, LongAnswers, answer_evidence
from comes.errors import ComesError
from comes.estimator import CandidateClassifier
from comes.methods import (
    METHODS,
    Rates,
    RiskOptions,
    find_method,
    table_rank,
)
from comes.risks.baselines import BaselineRisk

N, Q = 12, 3
SCORES = torch.randn(N, Q, generator=torch.Generator().manual_seed(0))
CANDIDATES = torch.rand(N, Q, generator=torch.Generator().manual_seed(1)) < 0.6
EDGES = torch.full((Q, Q), 0.5) * (1 - torch.eye(Q))
EVERYTHING = Rates([0.3] * Q, [0.4] * Q, EDGES, no_rate=[0.5] * Q)
VARIANTS = [(name, variant) for name, method in METHODS.items() for variant in method.variants]


def needed(method: methods.Method) -> dict[str, Any]:
    """Return the rates that a method says it needs."""
    names = ("class_prior", "flip_rate", "transition")
    found = {n: getattr(EVERYTHING, n) for n in names if getattr(method, f"needs_{n}")}
    return found | ({"no_rate": EVERYTHING.no_rate} if method.needs_rates else {})


def test_a_risk_is_made_of_what_its_method_says_it_needs() -> None:
    for name, variant in VARIANTS:
        method = find_method(name, variant)
        risk = method.make_risk(Rates(**needed(method)), RiskOptions())
        assert math.isfinite(float(risk(SCORES, CANDIDATES))), (name, variant)
        for missing in needed(method):
            unknown: dict[str, Any] = {missing: None}
            with pytest.raises(AssertionError):
                method.make_risk(replace(EVERYTHING, **unknown), RiskOptions())


PRIOR, FLIP_RATE, TRANSITION = (
    torch.as_tensor(known) for known in (EVERYTHING.class_prior, EVERYTHING.flip_rate, EDGES)
)
EXPECTED = {
    ("comes-hl", "corrected"): risks.HammingRisk(PRIOR),
    ("comes-rl", "flooded"): risks.RankingRisk(PRIOR, flood_level="auto"),
    ("bce", "candidates"): risks.BceRisk(),
    ("ccmn", "hamming"): BaselineRisk(risks.ccmn_hamming_risk, flip_rate=FLIP_RATE),
    ("ccmn", "ranking"): BaselineRisk(risks.ccmn_ranking_risk, flip_rate=FLIP_RATE),
    ("gdf", "single"): BaselineRisk(risks.gdf_risk),
    ("gdf", "all"): BaselineRisk(risks.gdf_risk),
    ("gdf", "unbiased"): BaselineRisk(risks.gdf_risk, unbiased=True),
    ("gdf", "unbiased-single"): BaselineRisk(risks.gdf_risk, unbiased=True),
    ("ctl", "weighted"): BaselineRisk(risks.ctl_risk),
    ("ctl", "unbiased"): BaselineRisk(risks.ctl_risk, unbiased=True),
    ("mlcl", "probability"): BaselineRisk(risks.mlcl_risk, transition=TRANSITION),
    ("comes-hl-unbiased", "uncorrected"): risks.HammingRisk(PRIOR, correction=torch.positive),
    ("comrank", "all"): BaselineRisk(risks.comrank_risk),
    ("comrank", "single"): BaselineRisk(risks.comrank_risk, pair_loss=torch.exp),
    ("likelihood", "answers"): risks.LikelihoodRisk(torch.full((Q,), 0.5)),
}


def test_every_variant_is_its_risk() -> None:
    assert list(EXPECTED) == VARIANTS
    confident = 5 * torch.where(CANDIDATES, 1.0, -1.0) * torch.ones(Q)  # where corrections act
    for (name, variant), expected in EXPECTED.items():
        method = find_method(name, variant)
        assert method.keeps_one_excluded == variant.endswith("single"), (name, variant)
        for scores in (SCORES, confident):
            found = method.make_risk(EVERYTHING, RiskOptions())(scores, CANDIDATES)
            assert float(found) == pytest.approx(float(expected(scores, CANDIDATES))), name
    for name, method in METHODS.items():
        assert find_method(name).variant == method.variants[0], name
        assert [each.variant for each in method.list_variants()] == list(method.variants), name
        assert all(type(each) is type(method) for each in method.list_variants()), name


def test_scores_without_a_zero_are_those_that_no_level_changes() -> None:
    for name, variant in VARIANTS:
        if name != "comrank":  # its sigmoids depend on the level, yet it means only an order
            method = find_method(name, variant)
            risk = method.make_risk(EVERYTHING, RiskOptions())
            raised, before = risk(SCORES + 1, CANDIDATES), risk(SCORES, CANDIDATES)
            is_same = torch.allclose(raised, before, atol=1e-5)
            assert is_same is not method.has_zero, (name, variant)
    assert not find_method("comrank").has_zero


def test_a_correction_can_be_left_out_to_judge_held_out_rows() -> None:
    as_trained, as_judged = (
        RiskOptions(flood_level=9.0),
        RiskOptions(flood_level=9.0, corrected=False),
    )
    confident = torch.where(CANDIDATES, 5.0, -5.0) * torch.ones(Q)
    rates = Rates([0.01] * Q, [0.9] * Q)
    for name in ("comes-hl", "ccmn", "comes-rl"):
        trained, judged = (
            find_method(name).make_risk(rates, options)(confident, CANDIDATES)
            for options in (as_trained, as_judged)
        )
        assert judged < trained, name


def test_comes_rl_floods_unless_told_otherwise() -> None:
    rates = Rates([0.2] * Q)
    share = [0.0] + [0.5] * (Q - 1)
    risk: Any = find_method("comes-rl").make_risk(rates, RiskOptions())
    assert float(risk.flood_level) == pytest.approx(0.75 * 0.8**2 * Q * (Q - 1) / 2)
    risk = find_method("comes-rl").make_risk(rates, RiskOptions(exclude_share=share))
    assert float(risk.flood_level) == pytest.approx(0.75 * 0.8**2 * (Q - 1) * (Q - 2) / 2)
    for options in (RiskOptions(flood_level=0.0), RiskOptions(corrected=False)):
        risk = find_method("comes-rl").make_risk(rates, options)
        assert risk.flood_level is None


def test_the_share_of_the_data_set_reaches_the_risk() -> None:
    for name in ("comes-hl", "comes-rl", "comes-hl-unbiased"):
        risk: Any = find_method(name).make_risk(EVERYTHING, RiskOptions(exclude_share=[0.5] * Q))
        assert risk.exclude_share.tolist() == [0.5] * Q


def test_reductions_are_sums_and_means_over_labels_or_pairs() -> None:
    def scales(name: str) -> dict[str, float]:
        reductions = ("sum", "mean", "per_label", "auto")
        return {r: find_method(name).risk_scale(r, 5) for r in reductions}

    assert scales("comes-hl") == {"sum": 5, "mean": 1, "per_label": 1, "auto": 5}
    assert scales("comes-rl") == {"sum": 1, "mean": 1 / 10, "per_label": 1 / 5, "auto": 1 / 5}
    assert find_method("comes-rl").risk_scale("mean", 1) == 1
    assert scales("gdf") == {"sum": 1, "mean": 1 / 5, "per_label": 1 / 5, "auto": 1}
    assert find_method("mlcl").risk_scale("auto", 217) == 1  # is minimised as it is
    with pytest.raises(ComesError, match="auto, sum, mean or per_label; got 'max'"):
        find_method("bce").risk_scale("max", 5)


def test_methods_are_called_by_their_names_and_ordered_as_in_the_paper() -> None:
    assert all(name == method.name for name, method in METHODS.items())
    assert methods.DEFAULT in METHODS and methods.SUPERVISED in METHODS
    ranked = sorted((f.paper_rank, f.title) for f in METHODS.values() if f.paper_rank is not None)
    assert [rank for rank, _ in ranked] == list(range(len(ranked)))
    titles = [title for _, title in ranked]
    assert titles == ["BCE", "CCMN", "GDF", "CTL", "MLCL", "COMES-HL", "COMES-RL"]
    selected = sorted((n for n, f in METHODS.items() if f.is_selectable), key=table_rank)
    assert selected == ["likelihood", "bce", "ccmn", "ctl", "comes-hl", "comes-rl"]
    is_true = {
        "is_ours": ["comes-hl", "comes-rl", "comes-hl-unbiased", "likelihood"],
        "has_sparse_head": ["comes-hl", "likelihood"],
        "has_view_head": ["likelihood"],
        "needs_large_batches": ["comes-hl"],
    }
    for flag, names in is_true.items():
        assert [name for name, method in METHODS.items() if getattr(method, flag)] == names, flag


def test_labels_of_tables_are_sorted_by_their_method() -> None:
    labels = ["comes-rl per label", "gdf", "comrank", "ccmn, ranking", "ccmn", "mine"]
    expected = ["comrank", "mine", "ccmn", "ccmn, ranking", "gdf", "comes-rl per label"]
    assert sorted(labels, key=table_rank) == expected
    assert methods.method_of_label("comes-hl-unbiased").name == "comes-hl-unbiased"  # type: ignore[union-attr]
    assert methods.method_of_label(len) is None


def test_settings_with_the_prior_are_parameters_of_the_classifier() -> None:
    parameters = inspect.signature(CandidateClassifier).parameters
    for method in METHODS.values():
        assert method.settings_with_prior.keys() <= parameters.keys()


def test_a_method_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(ComesError, match="one of comes-hl, comes-rl, bce, .*, likelihood; got 'b'"):
        find_method("b")


NO = np.array([[1, 0, 0], [0, 1, 0]])
YES = np.array([[0, 1, 0], [0, 0, 0]])
MAYBE = np.array([[0, 0, 1], [1, 0, 0]])
ANSWERS = {
    "candidates": Answers(NO),
    "ticked": Answers.from_positives(YES),
    "all": Answers(NO, YES, MAYBE),
    "no yes": Answers(NO, maybe=MAYBE),
    "chosen": Answers(NO, YES, MAYBE, chosen=NO * [1, 0, 0]),
}


def test_methods_learn_from_as_much_of_the_answers_as_they_can() -> None:
    """Of all answers comes-rl uses candidates; bce leaves maybe out, or takes it for yes."""
    codes = NO + 2 * YES + 3 * MAYBE
    drawn = codes * [[0, 1, 1], [1, 1, 1]]
    nothing = np.ones_like(NO) == 1
    expected: dict[str, dict[str, Any]] = {
        "comes-rl": {"candidates": NO == 0, "all": NO == 0, "chosen": drawn != 1},
        "comes-hl": {"candidates": NO == 0, "all": codes, "chosen": drawn, "ticked": nothing},
        "bce": {
            "candidates": NO == 0,
            "ticked": YES == 1,
            "all": codes,
            "no yes": NO + 2 * MAYBE,
            "chosen": codes,
        },
        "likelihood": {
            "candidates": NO == 0,
            "ticked": np.where(YES, 2, 3),
            "all": codes,
            "no yes": NO + 3 * MAYBE,
            "chosen": codes,
        },
    }
    for name, of_kinds in expected.items():
        for kind, seen in of_kinds.items():
            found = find_method(name).targets(ANSWERS[kind], Rates())
            np.testing.assert_array_equal(found, seen, err_msg=f"{name}, {kind}")
            assert found.dtype == (bool if seen.dtype == bool else np.int8), (name, kind)
    people = LongAnswers.read([0, 0], [1, 1], ["no", "yes"], ["ann", "bob"])
    several = Answers.from_long(people, (2, 3))
    rates = Rates(no_rate=np.full(3, 0.5), yes_rate=np.full(3, 0.25))
    found = find_method("likelihood").targets(several, rates)
    np.testing.assert_array_equal(found, answer_evidence(several, rates.answer_rates))
    able = {name: find_method(name).accepts_positives for name in METHODS}
    assert [name for name, is_able in able.items() if is_able] == ["bce", "likelihood"]
    assert [n for n in METHODS if find_method(n).ignores_maybe] == ["bce"]
    informed = [n for n in METHODS if not find_method(n).uses_only_candidates]
    assert informed == ["comes-hl", "bce", "comes-hl-unbiased", "likelihood"]


def test_very_many_labels_are_learnt_from_as_few_are() -> None:
    for name, method in METHODS.items():
        if not method.has_sparse_targets:
            continue
        for kind, answers in ANSWERS.items():
            if kind == "ticked" and not method.accepts_positives:
                continue
            can_say_yes = kind not in ("candidates", "no yes")
            yes_rate = [0.5] * Q if can_say_yes else [0.0] * Q
            risk = method.make_risk(replace(EVERYTHING, yes_rate=yes_rate), RiskOptions())
            states, others = method.sparse_targets(answers)
            pairs = sparse.coo_array(sparse.csc_array(states))
            by_index = risks.SparseTargets(
                torch.as_tensor(pairs.row).long(),
                torch.as_tensor(pairs.col).long(),
                torch.as_tensor(pairs.data),
                others,
                (2, Q),
            )
            expected = risk(SCORES[:2], torch.as_tensor(method.targets(answers, Rates())))
            assert float(risk(SCORES[:2], by_index)) == pytest.approx(float(expected)), (name, kind)


def test_a_risk_of_your_own_is_minimised_as_it_is_and_copied() -> None:
    own = risks.BceRisk()
    method = find_method(own)
    copied = method.make_risk(EVERYTHING, RiskOptions())
    assert isinstance(copied, risks.BceRisk) and copied is not own
    assert method.is_custom and method.risk_scale("auto", 7) == 1
    with pytest.raises(ComesError, match="minimised as it is; reduction must be auto; got 'sum'"):
        method.risk_scale("sum", 7)
    with pytest.raises(ComesError, match="a risk of your own has no variants; got 'all'"):
        find_method(own, "all")
    with pytest.raises(ComesError, match="a name or a function risk.*got 3"):
        find_method(3)  # type: ignore[arg-type]
    with pytest.raises(ComesError, match="variant of ccmn must be hamming or ranking; got 'all'"):
        find_method("ccmn", "all")


def test_methods_of_the_paper_are_trained_as_it_trains() -> None:
    published = {"optimizer": "sgd", "learning_rate": 5e-3, "epochs": 200, "batch_size": 256}
    published |= {"dropout": 0.0, "n_networks": 1, "starts_at_prior": False}
    assert published == methods.PAPER_TRAINING
    assert methods.PAPER_SETTINGS.items() >= published.items()
    fixed = {"hidden": 500, "momentum": 0.9, "weight_decay": 1e-4, "flood_level": 0.0}
    assert methods.PAPER_SETTINGS.items() >= fixed.items()
    assert methods.PAPER_SETTINGS.keys() <= inspect.signature(CandidateClassifier).parameters.keys()
    measured = [n for n in METHODS if methods.settings_of(n)["optimizer"] == "adam"]
    assert measured == ["bce", "likelihood"]
    for name in measured:
        assert methods.settings_of(name).keys() == published.keys()
    assert methods.settings_of(len) is methods.PAPER_TRAINING
