"""The one truth about methods: what each says of itself is what its risk needs and gives."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from comes import methods, risks
from comes.answers import Answers, LongAnswers, answer_evidence
from comes.errors import ComesError
from comes.estimator import CandidateClassifier
from comes.methods import (
    CCMN,
    COMESHL,
    COMESRL,
    CTL,
    GDF,
    METHODS,
    Counts,
    Likelihood,
    Method,
    Rates,
    find_method,
    table_rank,
)
from comes.risks.baselines import BaselineRisk
from refusals import refused

N, Q = 12, 3
SCORES = torch.randn(N, Q, generator=torch.Generator().manual_seed(0))
CANDIDATES = torch.rand(N, Q, generator=torch.Generator().manual_seed(1)) < 0.6
COUNTS = Counts.of(Answers.from_candidates(CANDIDATES.numpy()))
HALVES = replace(COUNTS, possible=np.full(Q, N / 2))
EDGES = torch.full((Q, Q), 0.5) * (1 - torch.eye(Q))
EVERYTHING = Rates([0.3] * Q, [0.4] * Q, EDGES, no_rate=[0.5] * Q, yes_rate=[0.0] * Q)
IN_ALL_VARIANTS: list[Method] = [
    clone(method).set_params(**options)
    for method in METHODS.values()
    for options in [{"variant": variant} for variant in method.variants] or [{}]
]


def needed(method: Method) -> dict[str, Any]:
    """Return the rates that a method says it needs."""
    names = ("class_prior", "flip_rate", "transition")
    found = {n: getattr(EVERYTHING, n) for n in names if getattr(method, f"needs_{n}")}
    return found | ({"no_rate": EVERYTHING.no_rate} if method.needs_rates else {})


def make_risk(method: Method, counts: Counts = COUNTS) -> Any:
    return method.make_risk(Rates(**needed(method), yes_rate=EVERYTHING.yes_rate), counts)


def test_a_risk_is_made_of_what_its_method_says_it_needs() -> None:
    for method in IN_ALL_VARIANTS:
        assert math.isfinite(float(make_risk(method)(SCORES, CANDIDATES))), method
        for missing in needed(method):
            unknown: dict[str, Any] = {missing: None}
            with pytest.raises(AssertionError):
                method.make_risk(replace(EVERYTHING, **unknown), COUNTS)


PRIOR, FLIP_RATE, TRANSITION = (
    torch.as_tensor(known) for known in (EVERYTHING.class_prior, EVERYTHING.flip_rate, EDGES)
)
EXPECTED = {
    "COMESHL()": risks.HammingRisk(PRIOR),
    "COMESRL()": risks.RankingRisk(PRIOR, flood_level="auto"),
    "BCE()": risks.BceRisk(),
    "CCMN()": BaselineRisk(risks.ccmn_hamming_risk, flip_rate=FLIP_RATE),
    "CCMN(variant='ranking')": BaselineRisk(risks.ccmn_ranking_risk, flip_rate=FLIP_RATE),
    "GDF()": BaselineRisk(risks.gdf_risk),
    "GDF(variant='all')": BaselineRisk(risks.gdf_risk),
    "GDF(variant='unbiased')": BaselineRisk(risks.gdf_risk, unbiased=True),
    "GDF(variant='unbiased-single')": BaselineRisk(risks.gdf_risk, unbiased=True),
    "CTL()": BaselineRisk(risks.ctl_risk),
    "CTL(variant='unbiased')": BaselineRisk(risks.ctl_risk, unbiased=True),
    "MLCL()": BaselineRisk(risks.mlcl_risk, transition=TRANSITION),
    "COMESHLUnbiased()": risks.HammingRisk(PRIOR, correction=torch.positive),
    "ComRank()": BaselineRisk(risks.comrank_risk),
    "ComRank(variant='single')": BaselineRisk(risks.comrank_risk, pair_loss=torch.exp),
    "Likelihood()": risks.LikelihoodRisk(torch.full((Q,), 0.5), label_weight=torch.full((Q,), 2.0)),
}


def test_every_variant_is_its_risk() -> None:
    assert list(map(repr, IN_ALL_VARIANTS)) == list(EXPECTED)
    confident = 5 * torch.where(CANDIDATES, 1.0, -1.0) * torch.ones(Q)  # where corrections act
    for method, expected in zip(IN_ALL_VARIANTS, EXPECTED.values(), strict=True):
        for scores in (SCORES, confident):
            found = make_risk(method)(scores, CANDIDATES)
            assert float(found) == pytest.approx(float(expected(scores, CANDIDATES))), method
    single = [repr(method) for method in IN_ALL_VARIANTS if method.keeps_one_excluded]
    assert single == ["GDF()", "GDF(variant='unbiased-single')", "ComRank(variant='single')"]


def test_scores_without_a_zero_are_those_that_no_level_changes() -> None:
    for method in IN_ALL_VARIANTS:
        if method.name != "comrank":  # its sigmoids depend on the level, yet it means only an order
            risk = make_risk(method)
            raised, before = risk(SCORES + 1, CANDIDATES), risk(SCORES, CANDIDATES)
            assert torch.allclose(raised, before, atol=1e-5) is method.is_over_pairs, method
    assert find_method("comrank").is_over_pairs


def test_a_correction_can_be_left_out_to_judge_held_out_rows() -> None:
    confident = torch.where(CANDIDATES, 5.0, -5.0) * torch.ones(Q)
    rates = Rates([0.01] * Q, [0.9] * Q)
    for method in (COMESHL(), CCMN(), COMESRL(flood_level=9.0)):
        trained, judged = (
            method.make_risk(rates, COUNTS, corrected=corrected)(confident, CANDIDATES)
            for corrected in (True, False)
        )
        assert judged < trained, method


def test_comes_rl_floods_unless_told_otherwise() -> None:
    rates = Rates([0.2] * Q)
    never = replace(HALVES, possible=np.array([N] + [N / 2] * (Q - 1)))
    for counts, n_labels in ((HALVES, Q), (never, Q - 1)):
        risk: Any = COMESRL().make_risk(rates, counts)
        level = 0.75 * 0.8**2 * n_labels * (n_labels - 1) / 2
        assert float(risk.flood_level) == pytest.approx(level)
    plain: Any = COMESRL(flood_level=0.0).make_risk(rates, COUNTS)
    judged: Any = COMESRL().make_risk(rates, COUNTS, corrected=False)
    assert plain.flood_level is judged.flood_level is None


def test_the_share_of_the_data_set_reaches_the_risk_unless_the_batch_is_asked_for() -> None:
    for name in ("comes-hl", "comes-rl", "comes-hl-unbiased"):
        risk = make_risk(find_method(name), HALVES)
        assert risk.exclude_share.tolist() == [0.5] * Q
        of_batch = clone(find_method(name)).set_params(normaliser="batch")
        assert make_risk(of_batch, HALVES).exclude_share is None


def test_reductions_are_sums_and_means_over_labels_or_pairs() -> None:
    def scales(method: Method) -> dict[str, float]:
        names = ("sum", "mean", "per_label", "auto")
        return {name: clone(method).set_params(reduction=name).risk_scale(5) for name in names}

    per_pair = {"sum": 1, "mean": 1 / 10, "per_label": 1 / 5, "auto": 1 / 5}
    assert scales(COMESHL()) == {"sum": 5, "mean": 1, "per_label": 1, "auto": 5}
    assert scales(COMESRL()) == scales(CCMN(variant="ranking")) == per_pair
    assert COMESRL(reduction="mean").risk_scale(1) == 1
    assert scales(GDF()) == {"sum": 1, "mean": 1 / 5, "per_label": 1 / 5, "auto": 1}
    assert find_method("mlcl").risk_scale(217) == 1  # is minimised as it is


def test_methods_are_called_by_their_names_and_ordered_as_in_the_paper() -> None:
    assert all(name == method.name == str(method) for name, method in METHODS.items())
    assert methods.DEFAULT in METHODS and methods.SUPERVISED in METHODS
    ranked = sorted((f.paper_rank, f.title) for f in METHODS.values() if f.paper_rank is not None)
    assert [rank for rank, _ in ranked] == list(range(len(ranked)))
    titles = [title for _, title in ranked]
    assert titles == ["BCE", "CCMN", "GDF", "CTL", "MLCL", "COMES-HL", "COMES-RL"]
    selected = sorted((n for n, f in METHODS.items() if f.is_selectable), key=table_rank)
    assert selected == ["likelihood", "bce", "ccmn", "ctl", "comes-hl", "comes-rl"]
    is_true = {
        "is_ours": ["comes-hl", "comes-rl", "comes-hl-unbiased", "likelihood"],
        "reads_classes": ["comes-hl", "likelihood"],
        "reads_views": ["likelihood"],
        "needs_large_batches": ["comes-hl"],
        "accepts_positives": ["bce", "likelihood"],
        "ignores_maybe": ["bce"],
    }
    for flag, names in is_true.items():
        assert [name for name, method in METHODS.items() if getattr(method, flag)] == names, flag
    informed = [name for name, method in METHODS.items() if not method.uses_only_candidates]
    assert informed == ["comes-hl", "bce", "comes-hl-unbiased", "likelihood"]
    for method in METHODS.values():
        assert method.settings_with_prior.keys() <= method.get_params().keys()


def test_labels_of_tables_are_sorted_by_their_method() -> None:
    labels = ["comes-rl per label", "gdf", "comrank", "ccmn, ranking", "ccmn", "mine"]
    expected = ["comrank", "mine", "ccmn", "ccmn, ranking", "gdf", "comes-rl per label"]
    assert sorted(labels, key=table_rank) == expected
    assert methods.method_of_label("comes-hl-unbiased").name == "comes-hl-unbiased"  # type: ignore[union-attr]
    assert methods.method_of_label(len) is None


# Methods as objects


def test_a_method_is_an_estimator_of_scikit_learn() -> None:
    own = COMESRL(flood_level=2.0, reduction="sum")
    assert repr(own) == "COMESRL(flood_level=2.0, reduction='sum')"
    copy = clone(own)
    assert copy is not own and copy.get_params() == own.get_params()
    copy.set_params(flood_level=3.0)
    assert (own.flood_level, find_method(own), find_method("comes-rl").flood_level) == (
        2.0,
        own,
        "auto",
    )
    classifier = CandidateClassifier(own, hidden=7)
    assert classifier.get_params()["method__flood_level"] == 2.0
    assert classifier.get_params(deep=False)["method"] is own
    assert "method__flood_level" not in CandidateClassifier("comes-rl").get_params()
    again = clone(classifier).set_params(method__flood_level=0.5, method__normaliser="batch")
    assert repr(again) == (
        "CandidateClassifier(hidden=7,\n                    "
        "method=COMESRL(flood_level=0.5, normaliser='batch',\n                                   "
        "reduction='sum'))"
    )
    assert own.flood_level == 2.0
    for method in IN_ALL_VARIANTS:
        assert clone(method).get_params() == method.get_params()
        assert "reduction" in method.get_params()


def test_a_search_reaches_the_settings_of_a_method() -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    settings: dict[str, Any] = {"epochs": 20, "learning_rate": 2e-2, "random_state": 0}
    classifier = CandidateClassifier(COMESRL(), class_prior=[0.5] * 3, hidden=8, **settings)
    search = GridSearchCV(classifier, {"method__flood_level": [100.0, 0.0]}, cv=2)
    search.fit(X, X > 0, candidates=(X > 0) | (X < -0.5))
    assert search.best_params_ == {"method__flood_level": 0.0}
    assert search.best_estimator_.method_.flood_level == 0.0
    assert classifier.get_params()["method__flood_level"] == "auto"  # which stays


WRONG: list[tuple[Any, str]] = [
    ("comes", "method must be one of comes-hl, comes-rl, bce, .*, likelihood; got 'comes'"),
    (3, "a name, a method object such as .*, or a function risk.*; got 3"),
    (COMESRL, "a method object such as comes.methods.COMESRL"),
    (CCMN(variant="all"), "variant of ccmn must be hamming or ranking; got 'all'"),
    (CTL(variant="all"), "variant of ctl must be weighted or unbiased; got 'all'"),
    (COMESHL(reduction="max"), "auto or sum or mean or per_label; got 'max'"),  # type: ignore[arg-type]
    (COMESHL(normaliser="all"), "normaliser of comes-hl must be dataset or batch; got 'all'"),  # type: ignore[arg-type]
    (COMESRL(flood_level=np.nan), "flood_level must be 'auto', or a number of 0 or more; got nan"),
    (COMESRL(flood_level=-1.0), "flood_level must be 'auto', .*; got -1.0"),
    (COMESRL(flood_level="much"), "flood_level must be 'auto', .*; got 'much'"),  # type: ignore[arg-type]
    (Likelihood(prior_weight=-1.0), "prior_weight must be None, or a number of 0 or more; got -1"),
    (Likelihood(uses_maybe="no"), "uses_maybe of likelihood must be True or False; got 'no'"),  # type: ignore[arg-type]
    (CCMN(flip_rate="prior"), "flip_rate must be .*'class_prior' or None; got 'prior'"),
    (CCMN(flip_rate=[0.1, 0.2]), "flip_rate must hold one number"),
    (CCMN(flip_rate=1.5), "flip_rate must hold one number"),
    (CCMN(flip_rate=0.99), "flip_rate must be at most 0.95"),
]


def test_wrong_methods_and_settings_are_refused_by_fit_and_nothing_before() -> None:
    X = np.random.default_rng(0).normal(size=(30, 3))
    for method, message in WRONG:
        classifier = CandidateClassifier(method, class_prior=[0.5] * 3, epochs=1)
        with refused(message):
            clone(classifier).fit(X, X > 0)
        assert not hasattr(classifier, "module_")


def test_methods_of_the_paper_are_trained_as_it_trains() -> None:
    published = {"optimizer": "sgd", "learning_rate": 5e-3, "epochs": 200, "batch_size": 256}
    published |= {"dropout": 0.0, "n_networks": 1, "starts_at_prior": False}
    published |= {"model": "mlp", "scale": "columns"}
    assert published == methods.PAPER_TRAINING == find_method(len).training
    measured = [name for name, method in METHODS.items() if method.training != published]
    assert measured == ["bce", "likelihood"]
    for name in measured:
        assert METHODS[name].training is methods.MEASURED_TRAINING
        assert METHODS[name].training.keys() == published.keys()


# What methods take of answers

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
    without = Likelihood(uses_maybe=False).targets(ANSWERS["all"], Rates())
    np.testing.assert_array_equal(without, NO + 2 * YES)
    people = LongAnswers.read([0, 0], [1, 1], ["no", "yes"], ["ann", "bob"])
    several = Answers.from_long(people, (2, 3))
    rates = Rates(no_rate=np.full(3, 0.5), yes_rate=np.full(3, 0.25))
    found = find_method("likelihood").targets(several, rates)
    np.testing.assert_array_equal(found, answer_evidence(several, rates.answer_rates))


def test_very_many_labels_are_learnt_from_as_few_are() -> None:
    for name, method in METHODS.items():
        if not method.has_sparse_targets:
            continue
        for kind, answers in ANSWERS.items():
            if kind == "ticked" and not method.accepts_positives:
                continue
            can_say_yes = kind not in ("candidates", "no yes")
            yes_rate = [0.5] * Q if can_say_yes else [0.0] * Q
            risk = method.make_risk(replace(EVERYTHING, yes_rate=yes_rate), Counts.of(answers))
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


# A risk of your own

NAMED = ("class_prior", "no_rate", "exclude_share")


def test_a_risk_of_your_own_is_minimised_as_it_is_and_copied() -> None:
    own = risks.BceRisk()
    method = find_method(own)
    copied: Any = method.make_risk(EVERYTHING, COUNTS)
    assert isinstance(copied.risk, risks.BceRisk) and copied.risk is not own
    assert method.is_custom and method.risk_scale(7) == 1
    assert method.get_params() == {"risk": own}
    for plain in (len, torch.dist):  # has no names, or none that is asked for
        find_method(plain)


def by_name(
    scores: torch.Tensor,
    candidates: torch.Tensor,
    class_prior: torch.Tensor,
    *,
    no_rate: torch.Tensor,
    exclude_share: torch.Tensor,
    strength: float = 1.0,
) -> torch.Tensor:
    assert no_rate.tolist() == [0.5] * Q
    return strength * risks.hamming_risk(
        scores, candidates, class_prior, exclude_share=exclude_share
    )


class ByName(torch.nn.Module):
    def forward(
        self, scores: Any, candidates: Any, class_prior: Any, exclude_share: Any
    ) -> torch.Tensor:
        return risks.hamming_risk(scores, candidates, class_prior, exclude_share=exclude_share)


def test_a_risk_of_your_own_gets_what_it_asks_for_by_name() -> None:
    share = torch.as_tensor(COUNTS.exclude_share, dtype=torch.float32)
    expected = float(risks.hamming_risk(SCORES, CANDIDATES, PRIOR, exclude_share=share))
    cases: list[tuple[Callable[..., Any], float]] = [
        (by_name, expected),
        (ByName(), expected),
        (partial(by_name, strength=2.0), 2 * expected),
        (partial(by_name, no_rate=torch.full((Q,), 0.5)), expected),
        (partial(risks.hamming_risk, exclude_share=share), expected),
        (
            partial(by_name, class_prior=torch.zeros(Q)),  # what is bound is kept
            float(risks.hamming_risk(SCORES, CANDIDATES, 0 * PRIOR, exclude_share=share)),
        ),
    ]
    for own, value in cases:
        risk = find_method(own).make_risk(EVERYTHING, COUNTS)
        assert float(risk(SCORES, CANDIDATES)) == pytest.approx(value, rel=1e-6), own
    weight = torch.arange(1.0, N + 1)
    weighted = find_method(risks.hamming_risk).make_risk(EVERYTHING, COUNTS)
    assert float(weighted(SCORES, CANDIDATES, sample_weight=weight)) == pytest.approx(
        float(risks.hamming_risk(SCORES, CANDIDATES, PRIOR, sample_weight=weight))
    )
    needs: Any = find_method(by_name)
    assert needs.needs_class_prior and needs.needs_rates
    assert not (needs.needs_flip_rate or needs.needs_transition or needs.takes_weight)


def test_a_risk_of_answers_gets_their_states() -> None:
    def of_answers(scores: Any, answers: Any) -> Any: ...
    def of_states(scores: Any, states: Any) -> Any: ...
    def of_candidates(scores: Any, targets: Any) -> Any: ...

    for kind, given in ANSWERS.items():
        for own in (of_answers, of_states):
            found = find_method(own).targets(given, Rates())
            np.testing.assert_array_equal(found, given.filled_codes, err_msg=kind)
        found = find_method(of_candidates).targets(given, Rates())
        np.testing.assert_array_equal(found, given.without_chosen().candidates, err_msg=kind)


def test_a_risk_that_asks_for_what_nobody_knows_is_told_what_is_known() -> None:
    def margin_risk(scores: Any, candidates: Any, margin: float) -> Any: ...

    with pytest.raises(ComesError, match="your risk asks for 'margin', which is not known") as told:
        find_method(margin_risk)
    for name in (*NAMED, "flip_rate", "transition", "yes_rate", "mistake_rate", "asked_share"):
        assert name in str(told.value)
    assert "sample_weight, or give it a default" in str(told.value)
    find_method(partial(margin_risk, margin=0.5))
