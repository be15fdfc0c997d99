"""Network and head of an `ImageClassifier` trained together, after the head alone."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import expit
from torch import nn

from comes import ImageClassifier
from comes.errors import ComesError, ComesWarning
from comes.estimator.prepare import Training, split_rows
from comes.generation import case_b
from comes.images import Backbone, fine_tuning, make_backbone
from comes.images.fine_tuning import FineTuning
from comes.priors import count_class_prior
from comes.training.pixels import PixelRows, Preprocessing
from pictures import pictures, randomised, tiny
from pictures import small_classifier as classifier

PIXELS, RELEVANT = pictures()
CANDIDATES = case_b(RELEVANT, exclude_rate=0.5, seed=0)
PRIOR = count_class_prior(RELEVANT)
FEW, FEW_CANDIDATES = PIXELS[:40], CANDIDATES[:40]
CONV = "network.conv1.weight"
STILL: dict[str, Any] = {"learning_rate": 0.0, "backbone_learning_rate": 0.0}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMES_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def probed() -> ImageClassifier:
    """A head on the frozen network, which no test changes."""
    return classifier().fit(PIXELS, CANDIDATES)


@pytest.fixture
def trained_on(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Soft targets of every fit, as they come, and the seed that splits rows."""
    found: list[Any] = []
    real = FineTuning._make_soft_targets

    def spy(tuning: FineTuning) -> torch.Tensor:
        targets = real(tuning)
        found.append((targets, tuning.probed.options.seed))
        return targets

    monkeypatch.setattr(FineTuning, "_make_soft_targets", spy)
    return found


@pytest.fixture
def shown_rows(monkeypatch: pytest.MonkeyPatch) -> list[PixelRows]:
    """The pictures that fine-tuning is shown, held out and trained on."""
    found: list[PixelRows] = []

    class Spy(PixelRows):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            found.append(self)

    monkeypatch.setattr(fine_tuning, "PixelRows", Spy)
    return found


def test_fine_tuning_changes_the_network_and_improves_the_risk() -> None:
    rates = {"learning_rate": 1e-2, "backbone_learning_rate": 1e-3}
    clf = classifier(probe_epochs=0, epochs=6, **rates).fit(PIXELS, CANDIDATES)
    assert not clf.is_frozen_
    assert clf.history_.risk[-1] < clf.history_.risk[0]
    assert clf.score(*pictures(seed=1)) > 0.6
    came = make_backbone(tiny()).state_dict()[CONV]
    assert not torch.equal(clf.network_.backbone.state_dict()[CONV], came)


def test_without_a_head_fine_tuning_starts_at_zero_or_at_the_class_prior() -> None:
    settings: dict[str, Any] = {"probe_epochs": 0, "epochs": 1, **STILL}
    zero = classifier(method="bce", **settings).fit(FEW, FEW_CANDIDATES)
    assert (zero.decision_function(PIXELS) == 0).all()
    prior = classifier(method="likelihood", **settings).fit(FEW, FEW_CANDIDATES)
    found = expit(prior.decision_function(PIXELS))
    np.testing.assert_allclose(found, np.tile(PRIOR, (len(PIXELS), 1)), atol=1e-5)


def test_without_a_head_the_features_are_read_unchanged() -> None:
    for probe_epochs in (0, 1):
        clf = classifier(probe_epochs=probe_epochs, epochs=1, features="pooled")
        network = clf.fit(FEW, FEW_CANDIDATES).network_
        assert network.power == (probe_epochs > 0)
        assert (network.scale is None) == (probe_epochs == 0)


def test_head_and_network_have_rates_of_their_own(probed: ImageClassifier) -> None:
    came = make_backbone(tiny()).state_dict()[CONV]
    clf = classifier(epochs=1, backbone_learning_rate=0.0, learning_rate=1e-2)
    network = clf.fit(PIXELS, CANDIDATES).network_
    assert torch.equal(network.backbone.state_dict()[CONV], came)
    before, after = probed.network_.head.state_dict(), network.head.state_dict()
    assert not torch.equal(before["weight"], after["weight"])


def test_parts_give_the_weights_of_whole_batches() -> None:
    settings: dict[str, Any] = {"epochs": 2, "augment": "none", "batch_size": 20}
    settings["features"] = "pooled"  # clusters have edges, where rounding shows
    whole = classifier(**settings).fit(FEW, FEW_CANDIDATES)
    parts = classifier(**settings, part_size=8).fit(FEW, FEW_CANDIDATES)
    a, b = (clf.decision_function(PIXELS) for clf in (whole, parts))
    np.testing.assert_allclose(a, b, atol=1e-3)


def test_what_is_held_out_is_in_neither_training(shown_rows: list[PixelRows]) -> None:
    clf = classifier(epochs=3, early_stopping=True, threshold="risk").fit(PIXELS, CANDIDATES)
    held, trained = (
        {rows.images[row].tobytes() for row in range(len(rows.images))} for rows in shown_rows
    )
    assert len(held) == 24 and len(trained) == 96 and not held & trained
    assert clf.history_.best_epoch in (1, 2, 3)
    assert len(clf.history_.validation) == 3
    assert clf.threshold_.shape == (3,)


def test_pictures_are_shown_as_the_network_wants_them(shown_rows: list[PixelRows]) -> None:
    own = Backbone(tiny(), preprocessing=Preprocessing(24, "bicubic", 28))
    clf = classifier(backbone=own, image_size=None, probe_epochs=1, epochs=1)
    clf.fit(FEW, FEW_CANDIDATES)
    assert [rows.preprocessing for rows in shown_rows] == [own.preprocessing]


def test_features_that_are_zero_have_a_gradient() -> None:
    class Dead(nn.Module):
        """Half of its features are zero whatever it is shown."""

        def __init__(self) -> None:
            super().__init__()
            self.network = tiny()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            features: torch.Tensor = self.network(x)
            return torch.cat([features, (-features.abs()).relu()], dim=1)

    clf = classifier(backbone=Dead(), epochs=1).fit(FEW, FEW_CANDIDATES)
    assert np.isfinite(clf.decision_function(PIXELS)).all()


def test_a_stopped_training_goes_on_to_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = tmp_path / "state"

    class Breaking(PixelRows):
        def batches(self, rows: Any, training: bool = False) -> Any:
            if checkpoint.exists():
                raise ConnectionError("the power is out")
            return super().batches(rows, training)

    settings: dict[str, Any] = {"epochs": 3, "probe_epochs": 5}
    with monkeypatch.context() as patched, pytest.raises(ConnectionError):
        patched.setattr(fine_tuning, "PixelRows", Breaking)
        classifier(**settings).fit(FEW, FEW_CANDIDATES, checkpoint=checkpoint)
    assert checkpoint.exists()
    resumed = classifier(**settings).fit(FEW, FEW_CANDIDATES, checkpoint=checkpoint)
    whole = classifier(**settings).fit(FEW, FEW_CANDIDATES)
    states = resumed.network_.state_dict(), whole.network_.state_dict()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert resumed.history_.risk == whole.history_.risk


def test_a_checkpoint_of_another_training_is_refused(tmp_path: Path) -> None:
    """Of other settings, weights, pictures or labels; what changes nothing may differ."""
    checkpoint = tmp_path / "state"
    settings: dict[str, Any] = {"epochs": 1, "probe_epochs": 0}
    classifier(**settings).fit(FEW, FEW_CANDIDATES, checkpoint=checkpoint)
    classifier(**settings, part_size=8).fit(FEW, FEW_CANDIDATES, checkpoint=checkpoint)
    others: dict[str, tuple[Any, Any, Any]] = {
        "settings": (settings | {"epochs": 2}, FEW, FEW_CANDIDATES),
        "weights": (settings | {"backbone": randomised(tiny(), 1)}, FEW, FEW_CANDIDATES),
        "pictures": (settings, FEW[::-1], FEW_CANDIDATES),
        "labels": (settings, FEW, FEW_CANDIDATES[::-1]),
    }
    for name, (own, images, candidates) in others.items():
        with pytest.raises(ComesError, match="belongs to another training"):
            classifier(**own).fit(images, candidates, checkpoint=checkpoint)
            pytest.fail(f"a checkpoint of other {name} was taken")


def test_small_batches_are_warned_of_where_the_risk_needs_large_ones() -> None:
    images, relevant = pictures(90)
    candidates = case_b(relevant, 0.2, seed=0)
    small: dict[str, Any] = {"probe_epochs": 2, "epochs": 1, "batch_size": 8}
    with pytest.warns(ComesWarning, match=r"a batch of 8 has about \d exclusions of a label"):
        classifier(method="comes-hl", **small).fit(images, candidates)
    for method in ("bce", "likelihood"):
        classifier(method=method, **small).fit(images, candidates)


def test_targets_are_what_the_frozen_head_and_the_candidates_say(
    probed: ImageClassifier, trained_on: list[Any]
) -> None:
    eta, rate = expit(probed.decision_function(PIXELS)), probed.rates_.no_rate
    classifier(epochs=1).fit(PIXELS, CANDIDATES)
    expected = np.zeros(CANDIDATES.shape)
    for i, j in np.argwhere(CANDIDATES):  # Bayes: possible if relevant, else with 1 - rate
        expected[i, j] = eta[i, j] / (eta[i, j] + (1 - rate[j]) * (1 - eta[i, j]))
    np.testing.assert_allclose(trained_on[0][0].numpy(), expected, rtol=1e-3, atol=1e-4)


def test_targets_are_those_of_the_rows_that_are_trained_on(trained_on: list[Any]) -> None:
    classifier(epochs=1, early_stopping=True).fit(FEW, FEW_CANDIDATES)
    ((targets, seed),) = trained_on
    kept, _ = split_rows(len(FEW), 0.2, seed)
    assert ((targets.numpy() == 0) == ~FEW_CANDIDATES[kept]).all()


def test_the_network_ends_halfway_between_its_weights_before_and_after(
    probed: ImageClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, real, trained = f"backbone.{CONV}", Training.run, []

    def spy(training: Training) -> Any:
        history = real(training)
        trained.append({key: value.clone() for key, value in training.network.state_dict().items()})
        return history

    monkeypatch.setattr(Training, "run", spy)
    clf = classifier(epochs=1, backbone_learning_rate=1e-3, augment="mixup")
    halfway = clf.fit(PIXELS, CANDIDATES).network_.state_dict()[name]
    before, after = probed.network_.state_dict()[name], trained[-1][name]
    assert not torch.equal(before, after)
    torch.testing.assert_close(halfway, (before + after) / 2)


def test_soft_targets_do_not_cost_what_the_head_knew() -> None:
    clf = classifier(epochs=3, backbone_learning_rate=1e-3, augment="none")
    assert clf.fit(PIXELS, CANDIDATES).score(*pictures(seed=1)) > 0.9


def test_soft_targets_can_be_left_out(trained_on: list[Any]) -> None:
    for settings in (
        {"soft_targets": False},
        {"method": "comes-hl", "probe_epochs": 1},
        {"probe_epochs": 0},
    ):
        classifier(epochs=1, **settings).fit(FEW, FEW_CANDIDATES)
    assert not trained_on
