"""What each method learns with the classifier of rows, and a risk of one's own in its place."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone

from comes.estimator import CandidateClassifier, prepare, rates
from comes.generation import case_b
from comes.methods import CCMN, COMESHL, COMESRL, GDF, METHODS, find_method
from comes.metrics import average_precision
from comes.priors import estimate_class_prior, estimate_flip_rate, estimate_transition
from comes.priors.noise import flip_rate_from_prior
from comes.risks import BceRisk, hamming_risk, ranking_risk
from comes.training import train
from refusals import refused

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 5))
RELEVANT = X[:, :3] + 0.3 * RNG.normal(size=(300, 3)) > np.array([0.0, 0.5, 1.0])
CANDIDATES = case_b(RELEVANT, 0.5, seed=0)
PRIOR = RELEVANT.mean(axis=0)
SEED = int(np.random.RandomState(0).randint(2**31 - 1))  # of random_state=0


def fit(method: Any = "comes-hl", **options: Any) -> CandidateClassifier:
    defaults: dict[str, Any] = {"class_prior": PRIOR, "epochs": 2, "batch_size": 50, "hidden": 8}
    return CandidateClassifier(method, **{"random_state": 0} | defaults | options).fit(
        X, CANDIDATES
    )


@pytest.mark.parametrize("name", METHODS)
def test_every_variant_learns_from_candidates(name: str) -> None:
    quick: dict[str, Any] = {"epochs": 15, "batch_size": 100, "hidden": 100, "learning_rate": 2e-2}
    method = clone(METHODS[name]).set_params(**{"flip_rate": 0.5} if name == "ccmn" else {})
    for place, variant in enumerate(method.variants or [None]):
        own = clone(method).set_params(**{} if variant is None else {"variant": variant})
        fitted = fit(own, **quick)
        scores = fitted.decision_function(X)
        assert scores.shape == (300, 3) and repr(fitted.method_) == repr(own)
        assert fitted.method_ is not own  # nor does a later set_params change what was fitted
        is_of_the_paper = own.paper_rank is not None and name != "mlcl"
        least = 0.85 if is_of_the_paper and place == 0 else 0.8
        assert average_precision(scores, RELEVANT) > least, variant
        assert fitted.score(X, RELEVANT) == average_precision(scores, RELEVANT), variant
        assert fitted.history_.risk[-1] < fitted.history_.risk[0], variant
        assert clone(fitted).method.get_params() == own.get_params()


def test_the_normaliser_of_the_data_set_is_another_training() -> None:
    """Without a flood, above which the noise of ten rows would lift the risk of either."""
    settings: dict[str, Any] = {"batch_size": 10, "epochs": 4, "hidden": 100}
    for method in (COMESHL(), COMESRL(flood_level=0.0)):
        batch = fit(clone(method).set_params(normaliser="batch"), **settings)
        dataset = fit(method, **settings)
        assert (batch.decision_function(X) != dataset.decision_function(X)).any(), method
        assert dataset.score(X, RELEVANT) > 0.85, method


def test_flood_level_reaches_the_risk() -> None:
    plain, flooded = (fit(COMESRL(flood_level=b), epochs=10, hidden=100) for b in (0.0, 2.5))
    assert plain.history_.risk[-1] < 2.5 <= min(flooded.history_.risk)


def test_the_flood_level_follows_from_the_class_prior_by_default() -> None:
    left = 1 - PRIOR
    rule = 0.75 * sum(left[j] * left[k] for j in range(3) for k in range(j))
    auto, given, none, high = (
        fit(COMESRL(flood_level=level), hidden=100).decision_function(X)
        for level in ("auto", rule, 0.0, 100.0)
    )
    np.testing.assert_allclose(auto, given, atol=1e-5)
    assert np.abs(none - high).max() > 0.01


def test_the_risk_on_other_rows_is_not_flooded() -> None:
    """Or levels could not be compared by it."""
    fitted = fit(COMESRL(flood_level=100.0))
    scores = torch.as_tensor(fitted.decision_function(X))
    prior = torch.as_tensor(PRIOR)
    share = torch.as_tensor(1 - CANDIDATES.mean(axis=0))
    risk = ranking_risk(scores, torch.as_tensor(CANDIDATES), prior, exclude_share=share)
    assert fitted.risk(X, CANDIDATES) == pytest.approx(float(risk), rel=1e-5)
    assert fitted.risk(X, CANDIDATES, corrected=True) > 100


def test_every_parameter_reaches_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def spying_train(
        module: Any, X: Any, targets: Any, risk: Any, options: Any, **more: Any
    ) -> Any:
        seen.update(vars(options), module=module, risk=risk)
        return train(module, X, targets, risk, options, **more)

    def spying_estimate(X: Any, answers: Any, random_state: Any, **options: Any) -> Any:
        seen["prior_seed"] = random_state
        return SimpleNamespace(class_prior=PRIOR)

    monkeypatch.setattr(prepare, "train", spying_train)
    monkeypatch.setattr(rates, "estimate_class_prior", spying_estimate)
    settings: dict[str, Any] = {"hidden": 7, "weight_decay": 0.02, "epochs": 1, "random_state": 5}
    settings["optimizer"] = {"momentum": 0.3, "cosine": False}
    fit(COMESHL(normaliser="batch", reduction="mean"), class_prior=None, **settings)
    assert seen["risk"].exclude_share is None
    optimizer = seen["optimizer"](seen["module"].parameters())
    assert isinstance(optimizer, torch.optim.SGD)
    assert (optimizer.defaults["momentum"], optimizer.defaults["weight_decay"]) == (0.3, 0.02)
    assert (seen["cosine"], seen["risk_scale"], seen["batch_size"]) == (False, 1, 50)
    assert seen["module"][2].in_features == 7
    assert seen["seed"] == seen["prior_seed"] != 0
    fit(epochs=1)
    share = torch.tensor((~CANDIDATES).mean(axis=0), dtype=torch.float32)
    by_default: Any = seen["risk"].exclude_share
    torch.testing.assert_close(by_default.cpu(), share)
    assert seen["risk_scale"] == 3


# What a method must know


@pytest.mark.filterwarnings("ignore:.*standard error is above:comes.errors.ComesWarning")
def test_class_priors_and_transitions_are_estimated_where_they_are_needed() -> None:
    expected = estimate_class_prior(X, CANDIDATES, random_state=SEED)
    np.testing.assert_array_equal(fit(class_prior=None, epochs=1).class_prior_, expected)
    assert fit("bce", class_prior=None, epochs=1).class_prior_ is None
    transition = estimate_transition(X, CANDIDATES, random_state=SEED)
    found: Any = fit("mlcl", epochs=1).transition_
    np.testing.assert_allclose(found, transition, rtol=1e-6)  # of features scaled once for both


def test_ccmn_takes_rates_estimated_given_or_of_the_prior(tmp_path: Path) -> None:
    estimated = fit("ccmn")
    expected = estimate_flip_rate(X, CANDIDATES, random_state=SEED)
    np.testing.assert_array_equal(estimated.flip_rate_, expected)
    assert estimated.class_prior_ is None
    np.testing.assert_array_equal(fit(CCMN(flip_rate=0.5)).flip_rate_, [0.5, 0.5, 0.5])
    of_prior = fit(CCMN(flip_rate="class_prior"))
    np.testing.assert_array_equal(of_prior.flip_rate_, flip_rate_from_prior(PRIOR, CANDIDATES))
    np.testing.assert_array_equal(of_prior.class_prior_, PRIOR)
    of_prior.save(tmp_path / "model")
    loaded = CandidateClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.flip_rate_, of_prior.flip_rate_)
    assert repr(loaded.method) == "CCMN(flip_rate='class_prior')"


def test_ccmn_with_the_rates_of_the_prior_is_comes_but_for_the_correction() -> None:
    """Same seed, same information: where neither correction acts, the same weights."""
    pairs: list[tuple[Any, Any]] = [
        ("comes-hl-unbiased", CCMN(flip_rate="class_prior")),
        (
            COMESRL(reduction="sum"),
            CCMN(variant="ranking", flip_rate="class_prior", reduction="sum"),
        ),
    ]
    for comes, ccmn in pairs:
        first, second = (
            fit(m, epochs=1, batch_size=300).decision_function(X) for m in (comes, ccmn)
        )
        np.testing.assert_allclose(first, second, atol=1e-5)


def test_ranking_variants_are_cut_where_the_prior_says() -> None:
    ranking = CCMN(variant="ranking", flip_rate=0.5)
    np.testing.assert_array_equal(fit(ranking).class_prior_, PRIOR)
    implied = fit(ranking, class_prior=None)  # by the rate
    for fitted in (implied, fit("comrank")):
        assert fitted.class_prior_ is not None
        mean = fitted.predict_proba(X).mean(axis=0)
        np.testing.assert_allclose(mean, np.clip(fitted.class_prior_, 1e-3, 1), atol=2e-3)


def test_gdf_single_trains_on_one_excluded_label_per_row(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def spy(model: Any, X: Any, candidates: Any, *args: Any, **options: Any) -> Any:
        seen.append(candidates.numpy())
        return train(model, X, candidates, *args, **options)

    monkeypatch.setattr(prepare, "train", spy)
    for method in (GDF(), GDF(variant="all")):
        fit(method, epochs=1)
    single, every = seen
    assert ((~single).sum(axis=1) == (~CANDIDATES).any(axis=1)).all()
    assert (single | ~CANDIDATES).all()
    np.testing.assert_array_equal(every, CANDIDATES)


# A risk of one's own


def own_risk(scores: torch.Tensor, candidates: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.binary_cross_entropy_with_logits(scores, candidates.float())


def knowing_risk(
    scores: torch.Tensor,
    candidates: torch.Tensor,
    class_prior: torch.Tensor,
    no_rate: torch.Tensor,
    *,
    exclude_share: torch.Tensor,
) -> torch.Tensor:
    assert no_rate.tolist() == [0.5] * 3
    return 3 * hamming_risk(scores, candidates, class_prior, exclude_share=exclude_share)


def test_a_risk_of_ones_own(tmp_path: Path) -> None:
    """A function or a module, minimised as it is, in the place of a name."""
    own = fit(own_risk)
    bce = CandidateClassifier.as_published("bce", epochs=2, batch_size=50, hidden=8, random_state=0)
    bce.set_params(method__reduction="mean").fit(X, CANDIDATES)
    for same in (own, fit(BceRisk())):
        np.testing.assert_allclose(same.decision_function(X), bce.decision_function(X), atol=1e-5)
    assert clone(own).method is own_risk
    own.save(tmp_path / "own")
    loaded = CandidateClassifier.load(tmp_path / "own")
    np.testing.assert_allclose(loaded.decision_function(X), own.decision_function(X))
    with refused("trained with a risk of your own, which is not saved: set it again"):
        loaded.fit(X, CANDIDATES)
    loaded.set_params(method=own_risk).fit(X, CANDIDATES)
    np.testing.assert_allclose(loaded.decision_function(X), own.decision_function(X))


def test_a_risk_of_ones_own_is_told_what_it_asks_for() -> None:
    rate = {"exclude": 0.5}
    own = fit(knowing_risk, rates=rate)
    comes = fit("comes-hl", rates=rate)
    np.testing.assert_array_equal(own.class_prior_, PRIOR)
    np.testing.assert_array_equal(own.no_rate_, [0.5] * 3)
    np.testing.assert_allclose(own.decision_function(X), comes.decision_function(X), atol=1e-6)
    estimated: Any = fit(knowing_risk, rates=rate, class_prior=None).class_prior_
    expected = estimate_class_prior(None, CANDIDATES, exclude_rate=0.5)
    np.testing.assert_allclose(estimated, expected.class_prior)
    assert fit(own_risk, class_prior=None).class_prior_ is None
    assert find_method(knowing_risk).needs_rates
