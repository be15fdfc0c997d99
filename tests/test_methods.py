"""The one truth about methods: what each says of itself is what its risk needs and gives."""

import ast
import inspect
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import comes
from comes import methods
from comes.errors import ComesError
from comes.estimator import CandidateClassifier
from comes.methods import (
    METHODS,
    Knowledge,
    RiskOptions,
    find_method,
    lookup,
    table_rank,
    title_of_label,
)

SOURCE = Path(comes.__file__).parent
N, Q = 12, 3
SCORES = torch.randn(N, Q, generator=torch.Generator().manual_seed(0))
CANDIDATES = torch.rand(N, Q, generator=torch.Generator().manual_seed(1)) < 0.6
EVERYTHING = Knowledge(
    [0.3] * Q, [0.4] * Q, torch.full((Q, Q), 0.5) * (1 - torch.eye(Q)), no_rate=[0.5] * Q
)
VARIANTS = [(name, variant) for name, family in METHODS.items() for variant in family.variants]


def needed(method: methods.Method) -> dict[str, Any]:
    """Return the knowledge that a method says it needs."""
    names = ("class_prior", "flip_rate", "transition")
    found = {n: getattr(EVERYTHING, n) for n in names if getattr(method, f"needs_{n}")}
    return found | ({"no_rate": EVERYTHING.no_rate} if method.needs_rates else {})


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_a_risk_is_made_of_what_its_method_says_it_needs(name: str, variant: str) -> None:
    method = find_method(name, variant)
    risk = method.make_risk(Knowledge(**needed(method)), RiskOptions())
    assert math.isfinite(float(risk(SCORES, CANDIDATES)))
    for missing in needed(method):
        unknown: dict[str, Any] = {missing: None}
        with pytest.raises(AssertionError):
            method.make_risk(replace(EVERYTHING, **unknown), RiskOptions())


@pytest.mark.parametrize(("name", "variant"), VARIANTS)
def test_scores_without_a_zero_are_those_that_no_level_changes(name: str, variant: str) -> None:
    """But for ComRank, whose sigmoids of scores see the level and whose order is all it means."""
    if name == "comrank":
        return
    method = find_method(name, variant)
    risk = method.make_risk(EVERYTHING, RiskOptions())
    raised = risk(SCORES + 1, CANDIDATES)
    assert torch.allclose(raised, risk(SCORES, CANDIDATES), atol=1e-5) is not method.has_zero


def test_a_correction_can_be_left_out_to_judge_held_out_rows() -> None:
    as_trained, as_judged = (
        RiskOptions(flood_level=9.0),
        RiskOptions(flood_level=9.0, corrected=False),
    )
    confident = torch.where(CANDIDATES, 5.0, -5.0) * torch.ones(Q)
    knowledge = Knowledge([0.01] * Q, [0.9] * Q)
    for name in ("comes-hl", "ccmn", "comes-rl"):
        trained, judged = (
            find_method(name).make_risk(knowledge, options)(confident, CANDIDATES)
            for options in (as_trained, as_judged)
        )
        assert judged < trained, name


def test_comes_rl_floods_unless_told_otherwise() -> None:
    knowledge = Knowledge([0.2] * Q)
    share = [0.0] + [0.5] * (Q - 1)
    risk: Any = find_method("comes-rl").make_risk(knowledge, RiskOptions())
    assert float(risk.flood_level) == pytest.approx(0.75 * 0.8**2 * Q * (Q - 1) / 2)
    risk = find_method("comes-rl").make_risk(knowledge, RiskOptions(exclude_share=share))
    assert float(risk.flood_level) == pytest.approx(0.75 * 0.8**2 * (Q - 1) * (Q - 2) / 2)
    for options in (RiskOptions(flood_level=0.0), RiskOptions(corrected=False)):
        risk = find_method("comes-rl").make_risk(knowledge, options)
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


def test_families_are_called_by_their_names_and_know_their_place() -> None:
    assert all(name == family.name for name, family in METHODS.items())
    assert methods.DEFAULT in METHODS and methods.SUPERVISED in METHODS
    placed = sorted((f.place, f.title) for f in METHODS.values() if f.place is not None)
    assert [place for place, _ in placed] == list(range(len(placed)))
    titles = [title for _, title in placed]
    assert titles == ["BCE", "CCMN", "GDF", "CTL", "MLCL", "COMES-HL", "COMES-RL"]
    selected = sorted((n for n, f in METHODS.items() if f.may_be_selected), key=table_rank)
    assert selected == ["likelihood", "bce", "ccmn", "ctl", "comes-hl", "comes-rl"]


def test_labels_of_tables_are_sorted_and_titled_by_their_method() -> None:
    labels = ["comes-rl per label", "gdf", "comrank", "ccmn, ranking", "ccmn", "mine"]
    expected = ["comrank", "mine", "ccmn", "ccmn, ranking", "gdf", "comes-rl per label"]
    assert sorted(labels, key=table_rank) == expected
    assert title_of_label("ccmn, ranking") == "CCMN, ranking"
    assert methods.family_of("comes-hl-unbiased").name == "comes-hl-unbiased"  # type: ignore[union-attr]
    assert methods.family_of(len) is None


def test_settings_with_the_prior_are_parameters_of_the_classifier() -> None:
    parameters = inspect.signature(CandidateClassifier).parameters
    for family in METHODS.values():
        assert family.settings_with_prior.keys() <= parameters.keys()


def test_a_method_is_refused_where_it_may_not_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    rows_only = replace(METHODS["bce"], uses=("rows",))
    monkeypatch.setattr(lookup, "METHODS", {**METHODS, "bce": rows_only})
    assert find_method("bce") is rows_only.default
    with pytest.raises(ComesError, match="method must be one of comes-hl, comes-rl, ccmn, .*'bce'"):
        find_method("bce", use="images")


def test_no_other_file_knows_a_method_by_name() -> None:
    """So that a new one touches its risk, this room, and their tests and documents."""
    knowing = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in METHODS
    }
    assert knowing == {"methods/families.py"}


def test_listing_methods_does_not_import_torch() -> None:
    code = "import sys, comes.methods; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
