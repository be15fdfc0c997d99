"""Fine-tuning on what the frozen head and the answers together say."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import expit

from comes.errors import ComesError
from comes.estimator import fine_tuning
from comes.estimator.preparation import split_rows
from comes.generation import case_b
from comes.priors import count_class_prior
from pictures import pictures
from pictures import small_classifier as classifier

PIXELS, RELEVANT = pictures()
CANDIDATES = case_b(RELEVANT, exclude_rate=0.5, seed=0)
PRIOR = count_class_prior(RELEVANT)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMES_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def trained_on(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Soft targets of every fit, as they come, and the seed that splits rows."""
    found: list[Any] = []
    real = fine_tuning.find_soft_targets

    def spy(clf: Any, probed: Any) -> torch.Tensor:
        targets = real(clf, probed)
        found.append((targets, probed.options.seed))
        return targets

    monkeypatch.setattr(fine_tuning, "find_soft_targets", spy)
    return found


def test_targets_are_what_the_frozen_head_and_the_candidates_say(trained_on: list[Any]) -> None:
    frozen = classifier().fit(PIXELS, CANDIDATES)
    eta, rate = expit(frozen.decision_function(PIXELS)), frozen.knowledge_.no_rate
    classifier(epochs=1).fit(PIXELS, CANDIDATES)
    expected = np.zeros(CANDIDATES.shape)
    for i, j in np.argwhere(CANDIDATES):  # Bayes: possible if relevant, else with 1 - rate
        expected[i, j] = eta[i, j] / (eta[i, j] + (1 - rate[j]) * (1 - eta[i, j]))
    np.testing.assert_allclose(trained_on[0][0].numpy(), expected, rtol=1e-3, atol=1e-4)


def test_targets_are_those_of_the_rows_that_are_trained_on(trained_on: list[Any]) -> None:
    classifier(epochs=1, early_stopping=True).fit(PIXELS, CANDIDATES)
    ((targets, seed),) = trained_on
    kept, _ = split_rows(len(PIXELS), 0.2, seed)
    assert ((targets.numpy() == 0) == ~CANDIDATES[kept]).all()


def test_the_network_ends_halfway_between_its_weights_before_and_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings: dict[str, Any] = {"epochs": 2, "backbone_learning_rate": 1e-3, "augment": "mixup"}
    name = "backbone.network.conv1.weight"
    before = classifier().fit(PIXELS, CANDIDATES).network_.state_dict()[name]
    halfway = classifier(**settings).fit(PIXELS, CANDIDATES).network_.state_dict()[name]
    monkeypatch.setattr(fine_tuning, "meet_halfway", lambda *_: None)
    after = classifier(**settings).fit(PIXELS, CANDIDATES).network_.state_dict()[name]
    assert not torch.equal(before, after)
    torch.testing.assert_close(halfway, (before + after) / 2)


def test_soft_targets_do_not_cost_what_the_head_knew() -> None:
    clf = classifier(epochs=3, backbone_learning_rate=1e-3, augment="none")
    assert clf.fit(PIXELS, CANDIDATES).score(*pictures(seed=1)) > 0.9


def test_soft_targets_can_be_left_out(trained_on: list[Any]) -> None:
    classifier(epochs=1, soft_targets=False).fit(PIXELS, CANDIDATES)
    classifier(epochs=1, method="comes-hl", probe_epochs=1).fit(PIXELS, CANDIDATES)
    classifier(epochs=1, probe_epochs=0).fit(PIXELS, CANDIDATES)
    assert not trained_on


def test_what_gives_no_probabilities_gives_no_soft_targets() -> None:
    with pytest.raises(ComesError, match="soft_targets must go with method 'likelihood'"):
        classifier(epochs=1, probe_epochs=0, soft_targets=True).fit(PIXELS, CANDIDATES)
    with pytest.raises(ComesError, match="mixup' must go with soft targets"):
        classifier(epochs=1, method="bce", augment="mixup").fit(PIXELS, CANDIDATES)


def test_the_likelihood_starts_at_the_class_prior_without_a_probe() -> None:
    still: dict[str, Any] = {"learning_rate": 0.0, "backbone_learning_rate": 0.0}
    clf = classifier(method="likelihood", probe_epochs=0, epochs=1, **still)
    scores = clf.fit(PIXELS, CANDIDATES).decision_function(PIXELS)
    np.testing.assert_allclose(expit(scores), np.tile(PRIOR, (len(scores), 1)), atol=1e-5)
