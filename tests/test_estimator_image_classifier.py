"""`ImageClassifier`: pictures in, labels out; what is refused, saved and kept on disk."""

import copy
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.model_selection import cross_validate
from torch import nn

from comes import ImageClassifier
from comes.datasets import read_dataset
from comes.errors import ComesError, ComesWarning
from comes.estimator import image_classifier, load_model
from comes.generation import case_b, simulate_answers
from comes.images import Backbone, backbones, compute_features, features, make_backbone
from comes.images.backbones import get_strides, import_torchvision, set_strides
from comes.priors import count_class_prior, estimate_class_prior
from comes.training import loop
from comes.training.pixels import PixelRows, Preprocessing
from pictures import LABELS, SIZE, pictures, tiny, write_pictures
from pictures import small_classifier as classifier
from serving import Server

PIXELS, RELEVANT = pictures()
CANDIDATES = case_b(RELEVANT, exclude_rate=0.5, seed=0)
PRIOR = count_class_prior(RELEVANT)
FEW, FEW_CANDIDATES = PIXELS[:24], CANDIDATES[:24]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMES_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def probed() -> ImageClassifier:
    """A head on the frozen network, which no test changes."""
    return classifier().fit(PIXELS, CANDIDATES)


def with_classes() -> Backbone:
    """Return the tiny network with a classifier of eight classes on top."""
    torch.manual_seed(1)
    return Backbone(tiny(), nn.Linear(256, 8))


def same_weights(one: ImageClassifier, other: ImageClassifier) -> bool:
    states = one.network_.state_dict(), other.network_.state_dict()
    return all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_a_probe_learns_and_leaves_the_network_as_it_came(probed: ImageClassifier) -> None:
    assert probed.is_frozen_
    assert probed.score(*pictures(seed=1)) > 0.9
    came = make_backbone(tiny()).state_dict()
    assert all(torch.equal(came[k], v) for k, v in probed.network_.backbone.state_dict().items())


def test_pictures_are_learned_from_answers(tmp_path: Path) -> None:
    answers = simulate_answers(RELEVANT, asked_rate=0.8, seed=1)
    known: dict[str, Any] = {"class_prior": None, "no_rate": 0.8, "yes_rate": 0.8}
    clf = classifier(**known, mistake_rate=0.01).fit(PIXELS, answers)
    assert clf.method_ == "likelihood" and clf.score(*pictures(seed=1)) > 0.9
    clf.save(tmp_path / "model")
    loaded = ImageClassifier.load(tmp_path / "model", backbone=tiny())
    assert loaded.method_ == "likelihood" and loaded.rates_.mistake_rate == 0.01
    np.testing.assert_array_equal(loaded.yes_rate_, [0.8] * RELEVANT.shape[1])
    np.testing.assert_array_equal(loaded.decision_function(PIXELS), clf.decision_function(PIXELS))


def test_complementary_labels_are_the_other_view() -> None:
    one = classifier(probe_epochs=2).fit(PIXELS, CANDIDATES)
    other = classifier(probe_epochs=2).fit(PIXELS, complementary=~CANDIDATES)
    assert same_weights(one, other)


def test_cross_validation_by_scikit_learn() -> None:
    found = cross_validate(
        classifier(probe_epochs=20),
        PIXELS,
        RELEVANT,
        params={"candidates": CANDIDATES},
        cv=2,
        error_score="raise",
    )
    assert (found["test_score"] > 0.5).all()


def test_label_names_come_from_columns() -> None:
    named = pd.DataFrame(CANDIDATES, columns=pd.Index(LABELS))
    clf = classifier(probe_epochs=2).fit(PIXELS, named)
    assert clf.label_names_ == LABELS
    truth = pd.DataFrame(RELEVANT, columns=pd.Index(LABELS))
    assert clf.score(PIXELS, truth[LABELS[::-1]]) == clf.score(PIXELS, RELEVANT)


def test_a_network_of_ones_own_is_copied(tmp_path: Path) -> None:
    own = with_classes()
    before = {name: tensor.clone() for name, tensor in own.state_dict().items()}
    clf = classifier(backbone=own, epochs=1, backbone_learning_rate=1e-3)
    clf.fit(FEW, FEW_CANDIDATES).save(tmp_path / "model")
    ImageClassifier.load(tmp_path / "model", backbone=own)
    assert own.classifier is not None and all(p.requires_grad for p in own.parameters())
    assert all(torch.equal(own.state_dict()[name], before[name]) for name in before)
    assert clf.network_.views is not None
    assert all(parameter.grad is None for parameter in clf.network_.views.parameters())


def test_a_failed_fit_leaves_the_earlier_one(probed: ImageClassifier) -> None:
    clf = copy.deepcopy(probed)
    with pytest.raises(ComesError, match="same number of rows"):
        clf.fit(PIXELS[:5], CANDIDATES)
    np.testing.assert_array_equal(clf.decision_function(FEW), probed.decision_function(FEW))


def test_an_interrupted_probe_is_not_fine_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(risk: float, epoch: int) -> float:
        if epoch == 1:
            raise KeyboardInterrupt
        return risk

    monkeypatch.setattr(loop, "check_finite", interrupt)
    with pytest.warns(ComesWarning, match="Interrupted after 1 of 5 epochs"):
        clf = classifier(probe_epochs=5, epochs=1).fit(PIXELS, CANDIDATES)
    assert clf.is_frozen_
    assert clf.history_.interrupted


def test_too_little_memory_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(image_classifier, "compute_features", no_memory)
    message = f"memory for 256 pictures of {SIZE} x {SIZE} at once. Set part_size"
    with pytest.raises(ComesError, match=message):
        classifier().fit(PIXELS, CANDIDATES)
    with pytest.raises(ComesError, match="memory for 16 pictures"):
        classifier(part_size=16).fit(PIXELS, CANDIDATES)


def test_a_wrong_setting_is_named() -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({"backbone": "resnet18"}, "backbone must be resnet50"),
        ({"features": "some"}, "features must be one of"),
        ({"precision": "half"}, "precision must be"),
        ({"part_size": 0}, "part_size must be a whole number of at least 1"),
        ({"temperature": 0.0}, "temperature must be above 0"),
        ({"temperature": "hot"}, "temperature must be above 0.*got 'hot'"),
        ({"soft_targets": "yes"}, "soft_targets must be True, False or None; got 'yes'"),
        ({"augment": "mixup", "soft_targets": False}, "'mixup' must go with soft targets"),
        ({"augment": "mixup", "epochs": 1, "method": "bce"}, "'mixup' must go with soft targets"),
        (
            {"soft_targets": True, "epochs": 1, "probe_epochs": 0},
            "must go with method 'likelihood'",
        ),
        ({"standard_errors": -1.0}, "standard_errors at least 0"),
        ({"method": "best"}, "method must be one of"),
        ({"exclude_rate": "instance"}, "depend on the instance were removed"),
        ({"flip_rate": 0.1}, "flip_rate is for method"),
        ({"image_size": 4}, "image_size must be a whole number of at least 8"),
        ({"epochs": -1}, "epochs must be a whole number of at least 0"),
        ({"probe_epochs": 0}, "nothing would be learned"),
        ({"augment": "twist", "epochs": 1}, "augment must be one of"),
        ({"weights": "nowhere.pth"}, "no file of weights at nowhere.pth"),
        ({"epochs": 1, "threshold": "f1", "weights": "nowhere"}, "set early_stopping=True"),
        ({"device": "gpu7"}, "cannot be used here"),
    ]
    for settings, message in refused:
        with pytest.raises(ComesError, match=message):
            pytest.fail(f"{classifier(**settings).fit(FEW, FEW_CANDIDATES)} was fitted")


def test_pictures_of_a_wrong_kind_are_named(tmp_path: Path) -> None:
    with pytest.raises(ComesError, match="picture 0 is float64 of shape"):
        classifier().fit(PIXELS.astype(float), CANDIDATES)
    with pytest.raises(ComesError, match="at least one picture is needed; got none"):
        classifier().fit([], CANDIDATES)
    with pytest.raises(ComesError, match="same number of rows"):
        classifier().fit(PIXELS[:5], CANDIDATES)
    table = write_pictures(tmp_path, n=8)
    (tmp_path / "photos" / "007.png").write_bytes(b"no picture")
    dataset = read_dataset(table, labels=["has_*"], relevant=["is_*"], images=tmp_path / "photos")
    with pytest.raises(ComesError, match=r"'007.png' cannot be read"):
        classifier().fit(dataset.X, dataset.known_candidates())


def check_saved(clf: ImageClassifier, folder: Path, backbone: Any = None) -> ImageClassifier:
    """Check that a saved model gives the same scores; return it."""
    clf.save(folder)
    loaded = load_model(folder) if backbone is None else ImageClassifier.load(folder, backbone)
    assert isinstance(loaded, ImageClassifier)
    scores = clf.decision_function(FEW[:8])
    np.testing.assert_allclose(loaded.decision_function(FEW[:8]), scores, atol=1e-4)
    np.testing.assert_array_equal(loaded.predict(FEW), clf.predict(FEW))
    assert loaded.label_names_ == clf.label_names_
    return loaded


def test_a_saved_model_gives_the_same_scores(probed: ImageClassifier, tmp_path: Path) -> None:
    tuned = [classifier(epochs=1, **how) for how in ({"probe_epochs": 5}, {"probe_epochs": 0})]
    for clf in (probed, *(clf.fit(FEW, FEW_CANDIDATES) for clf in tuned)):
        check_saved(clf, tmp_path / "model", tiny())
    with pytest.raises(ComesError, match=r"pass it, load\(path, backbone="):
        ImageClassifier.load(tmp_path / "model")


@pytest.mark.parametrize("method", ["comes-hl", "likelihood"])
def test_a_saved_model_with_classes_by_name_loads_by_itself(method: str, tmp_path: Path) -> None:
    clf = classifier(method=method, backbone="timm:resnet10t", probe_epochs=2)
    clf.fit(FEW, FEW_CANDIDATES)
    views = clf.network_.views
    above = clf.network_.backbone.classifier if views is None else views.classifier
    assert isinstance(above, nn.Linear) and above.out_features == 1000
    check_saved(clf, tmp_path / "model")


def test_a_saved_model_that_sees_the_centre_still_does(tmp_path: Path) -> None:
    """As models of earlier versions do that were fitted with ``centre_crop``."""
    own = Backbone(tiny(), preprocessing=Preprocessing(SIZE, "bicubic", 37))
    clf = classifier(backbone=own, image_size=None, probe_epochs=2).fit(FEW, FEW_CANDIDATES)
    clf.save(tmp_path / "model")
    description = json.loads((tmp_path / "model" / "model.json").read_text())
    description["parameters"]["centre_crop"] = True
    del description["checksums"]
    (tmp_path / "model" / "model.json").write_text(json.dumps(description))
    loaded = ImageClassifier.load(tmp_path / "model", backbone=tiny())
    assert loaded.network_.backbone.preprocessing == own.preprocessing
    np.testing.assert_array_equal(loaded.decision_function(FEW), clf.decision_function(FEW))


def test_a_model_saved_before_preprocessing_was_is_loaded_as_it_was(tmp_path: Path) -> None:
    clf = classifier(backbone="timm:resnet10t", probe_epochs=2).fit(FEW, FEW_CANDIDATES)
    clf.network_.backbone.preprocessing = Preprocessing(SIZE)  # stretched, bilinear
    clf.save(tmp_path / "model")
    description = json.loads((tmp_path / "model" / "model.json").read_text())
    del description["images"]["preprocessing"], description["checksums"]
    (tmp_path / "model" / "model.json").write_text(json.dumps(description))
    loaded = load_model(tmp_path / "model")
    scores = clf.decision_function(FEW[:4])
    np.testing.assert_allclose(loaded.decision_function(FEW[:4]), scores, atol=1e-4)


@pytest.fixture
def small_resnets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ResNets have few layers."""
    models = import_torchvision("a test").models
    resnet = models.resnet

    def make(*_: Any, **__: Any) -> nn.Module:
        network: nn.Module = resnet.ResNet(resnet.Bottleneck, [1, 1, 1, 1])
        return network

    monkeypatch.setattr(models, "get_model", make)


@pytest.mark.usefixtures("small_resnets")
@pytest.mark.long
def test_strides_of_weights_are_found_and_saved(tmp_path: Path) -> None:
    trained = make_backbone("resnet50").train()
    set_strides(trained.network, "v1")
    for module in trained.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 1.0  # remembers the variances of these pictures
    rows = PixelRows(list(PIXELS[:8]), 64, torch.device("cpu"))
    with torch.no_grad():
        trained(next(rows.batches([torch.arange(8)])))
    torch.save(trained.network.state_dict(), tmp_path / "v1.pth")
    clf = classifier(backbone="resnet50", weights=tmp_path / "v1.pth", image_size=64)
    clf.set_params(probe_epochs=2).fit(PIXELS[:8], CANDIDATES[:8])
    assert get_strides(clf.network_.backbone.network) == "v1"
    loaded = check_saved(clf, tmp_path / "model")
    assert get_strides(loaded.network_.backbone.network) == "v1"


@pytest.mark.usefixtures("small_resnets")
def test_weights_by_name_come_from_the_net_and_are_checked(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    state = {"fc.weight": torch.randn(10, 2048), "fc.bias": torch.zeros(10)}
    state |= make_backbone("resnet50").network.state_dict()
    torch.save(state, tmp_path / "w.pth")
    server.content = (tmp_path / "w.pth").read_bytes()
    checksum = f"sha256:{hashlib.sha256(server.content).hexdigest()}"
    monkeypatch.setattr(backbones, "IMAGENET", {"resnet50": (server.address("w.pth"), checksum)})
    clf = classifier(backbone="resnet50", weights="imagenet", probe_epochs=1)
    for _ in range(2):
        clf.fit(PIXELS[:8], CANDIDATES[:8])
    assert clf.network_.views is not None and clf.network_.views.classifier is not None
    assert len(server.asked) == 1  # the second time it was there
    wrong = {"resnet50": (server.address("other.pth"), f"sha256:{'0' * 64}")}
    monkeypatch.setattr(backbones, "IMAGENET", wrong)
    with pytest.raises(ComesError, match="sha256"):
        clf.fit(PIXELS[:8], CANDIDATES[:8])
    with pytest.raises(ComesError, match="no address is known for weights of resnet101"):
        classifier(backbone="resnet101", weights="imagenet").fit(PIXELS, CANDIDATES)


def test_features_are_computed_once() -> None:
    backbone = make_backbone(tiny(), size=SIZE)
    calls = []

    def count(_: nn.Module, inputs: Any, output: Any) -> None:
        calls.append(len(inputs[0]))

    backbone.register_forward_hook(count)
    first, again = (compute_features(backbone, FEW, "cpu") for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert calls.count(len(FEW)) == 1  # one more picture told the number of features
    with torch.no_grad():
        next(backbone.parameters()).add_(1)
    assert not np.array_equal(compute_features(backbone, FEW, "cpu"), first)
    assert calls.count(len(FEW)) == 2


def test_nothing_is_hashed_where_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> str:
        raise AssertionError("was hashed")

    monkeypatch.setattr(features, "weights_hash", refuse)
    monkeypatch.setattr(image_classifier, "weights_hash", refuse)
    monkeypatch.setattr(features.Pictures, "fingerprint", refuse)
    clf = classifier(probe_epochs=1, epochs=1).fit(FEW, FEW_CANDIDATES)
    clf.decision_function(PIXELS[:2])


def test_features_of_a_network_of_ones_own_are_not_taken_from_disk(tmp_path: Path) -> None:
    class Power(nn.Module):
        def __init__(self, power: int) -> None:
            super().__init__()
            self.network, self.power = tiny(), power

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            features: torch.Tensor = self.network(x)
            return features**self.power

    scores = [
        classifier(backbone=Power(power), probe_epochs=3)
        .fit(PIXELS, CANDIDATES)
        .decision_function(PIXELS)
        for power in (1, 3)
    ]
    assert not np.allclose(scores[0], scores[1])
    assert not (tmp_path / "cache").exists()


def test_damaged_features_on_disk_are_computed_again(tmp_path: Path) -> None:
    settings = {"backbone": "timm:resnet10t", "probe_epochs": 2}
    torch.manual_seed(0)
    torch.save(make_backbone("timm:resnet10t").network.state_dict(), tmp_path / "w.pth")
    first = classifier(**settings, weights=tmp_path / "w.pth").fit(FEW, FEW_CANDIDATES)
    (file,) = (tmp_path / "cache" / "features").iterdir()
    file.write_bytes(b"no features")
    again = classifier(**settings, weights=tmp_path / "w.pth").fit(FEW, FEW_CANDIDATES)
    assert same_weights(first, again)
    first.decision_function(PIXELS[:3])  # a prediction writes nothing
    assert list((tmp_path / "cache" / "features").iterdir()) == [file]


def test_a_known_exclude_rate_gives_the_prior_of_a_head() -> None:
    expected = estimate_class_prior(None, CANDIDATES, exclude_rate=0.4).class_prior
    known: dict[str, Any] = {"class_prior": None, "exclude_rate": 0.4, "probe_epochs": 5}
    for method in ("comes-hl", "likelihood"):
        clf = classifier(backbone=with_classes(), method=method, **known).fit(PIXELS, CANDIDATES)
        assert clf.class_prior_ is not None
        np.testing.assert_allclose(clf.class_prior_, expected, err_msg=method)
