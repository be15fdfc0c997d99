"""`ImageClassifier`: pictures in, labels out; from the probe to fine-tuning, saved and resumed."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.multiprocessing.spawn import spawn

from comes import ImageClassifier
from comes.datasets import read_dataset
from comes.errors import ComesError, ComesWarning
from comes.estimator import (
    features,
    features_of,
    fine_tuning,
    image_classifier,
    load_model,
    pretrained,
)
from comes.estimator.features import as_pictures
from comes.generation import case_b, simulate_answers
from comes.methods import METHODS
from comes.models import Backbone, Preprocessing, ResNet, make_backbone
from comes.models.libraries import import_torchvision
from comes.priors import count_class_prior, estimate_class_prior
from comes.training import PixelRows, epochs
from pictures import LABELS, SIZE, pictures, randomised, tiny, write_pictures
from pictures import small_classifier as classifier
from serving import Server

PIXELS, RELEVANT = pictures()
CANDIDATES = case_b(RELEVANT, exclude_rate=0.5, seed=0)
PRIOR = count_class_prior(RELEVANT)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMES_CACHE", str(tmp_path / "cache"))


def with_classes() -> Backbone:
    """Return the tiny network with a classifier of eight classes on top."""
    torch.manual_seed(1)
    return Backbone(tiny(), nn.Linear(256, 8))


def same_weights(one: ImageClassifier, other: ImageClassifier) -> bool:
    states = one.network_.state_dict(), other.network_.state_dict()
    return all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_a_probe_learns_and_leaves_the_network_as_it_came() -> None:
    clf = classifier().fit(PIXELS, CANDIDATES)
    assert clf.score(*pictures(seed=1)) > 0.9
    came = make_backbone(tiny()).state_dict()
    assert all(torch.equal(came[k], v) for k, v in clf.network_.backbone.state_dict().items())


@pytest.mark.parametrize("method", [n for n, f in METHODS.items() if "images" in f.uses])
def test_every_method_trains(method: str) -> None:
    known = dict(METHODS[method].settings_with_prior)
    clf = classifier(method=method, probe_epochs=2, epochs=1, **known).fit(PIXELS, CANDIDATES)
    assert np.isfinite(clf.decision_function(PIXELS)).all()


def test_a_class_prior_that_is_not_given_is_estimated() -> None:
    clf = classifier(class_prior=None).fit(PIXELS, CANDIDATES)
    assert clf.class_prior_ is not None
    assert np.abs(clf.class_prior_ - PRIOR).max() < 0.3


@pytest.mark.parametrize("method", ["comes-hl", "likelihood"])
@pytest.mark.filterwarnings("ignore:The scores of label")
def test_a_head_on_classes_is_sparse_and_at_least_zero(method: str) -> None:
    known = {"method": method, "features": "classes"}
    clf = classifier(backbone=with_classes(), **known).fit(PIXELS, CANDIDATES)
    assert isinstance(clf.network_.head, nn.Linear)
    weight = clf.network_.head.weight
    assert weight.shape == (3, 8)
    assert (weight >= 0).all() and (weight == 0).any() and (weight > 0).any()
    nothing = classifier(backbone=with_classes(), standard_errors=1000.0, **known)
    if method == "likelihood":
        with pytest.warns(ComesWarning, match="Nothing was learned.*standard_errors"):
            nothing.fit(PIXELS, CANDIDATES)
    else:
        nothing.fit(PIXELS, CANDIDATES)
    assert isinstance(nothing.network_.head, nn.Linear)
    assert (nothing.network_.head.weight == 0).all()


@pytest.mark.parametrize("method", ["comes-hl", "likelihood"])
@pytest.mark.filterwarnings("ignore:No label is predicted")
def test_a_known_exclude_rate_gives_the_prior_of_a_sparse_head(method: str) -> None:
    known: dict[str, Any] = {"class_prior": None, "exclude_rate": 0.4, "probe_epochs": 1}
    known["method"] = method
    clf = classifier(backbone=with_classes(), **known).fit(PIXELS, CANDIDATES)
    assert clf.class_prior_ is not None
    expected = estimate_class_prior(None, CANDIDATES, exclude_rate=0.4)
    np.testing.assert_allclose(clf.class_prior_, expected.class_prior)


def test_rates_that_depend_on_the_instance_are_for_rows() -> None:
    with pytest.raises(ComesError, match="must be numbers or None; got 'instance'"):
        classifier(method="likelihood", exclude_rate="instance").fit(PIXELS, CANDIDATES)


def test_classes_are_refused_where_there_are_none() -> None:
    for kind in ("classes", "both"):
        with pytest.raises(ComesError, match="classifier. Take one of pooled, clusters, all"):
            classifier(features=kind).fit(PIXELS, CANDIDATES)
    with pytest.raises(ComesError, match="method 'bce' trains no such head. Take one of pooled."):
        classifier(features="classes", backbone=with_classes(), method="bce").fit(
            PIXELS, CANDIDATES
        )
    with pytest.raises(ComesError, match="'comes-hl' trains no .* Take one of pooled, classes."):
        classifier(features="all", backbone=with_classes(), method="comes-hl").fit(
            PIXELS, CANDIDATES
        )


def test_fine_tuning_changes_the_network_and_improves_the_risk() -> None:
    clf = classifier(probe_epochs=0, epochs=6, learning_rate=1e-2, backbone_learning_rate=1e-3).fit(
        PIXELS, CANDIDATES
    )
    assert not clf.is_frozen_
    assert clf.history_.risk[-1] < clf.history_.risk[0]
    assert clf.score(*pictures(seed=1)) > 0.6
    came = make_backbone(tiny()).state_dict()["network.conv1.weight"]
    assert not torch.equal(clf.network_.backbone.state_dict()["network.conv1.weight"], came)


def test_without_a_probe_fine_tuning_starts_from_scores_of_zero() -> None:
    clf = classifier(
        probe_epochs=0, epochs=1, learning_rate=0.0, backbone_learning_rate=0.0, method="bce"
    ).fit(PIXELS, CANDIDATES)
    assert (clf.decision_function(PIXELS) == 0).all()


def test_head_and_network_have_rates_of_their_own() -> None:
    came = make_backbone(tiny()).state_dict()["network.conv1.weight"]
    clf = classifier(epochs=1, backbone_learning_rate=0.0).fit(PIXELS, CANDIDATES)
    assert torch.equal(clf.network_.backbone.state_dict()["network.conv1.weight"], came)


def test_parts_give_the_weights_of_whole_batches() -> None:
    settings: dict[str, Any] = {"epochs": 2, "augment": "none", "batch_size": 40}
    settings["features"] = "pooled"  # clusters have edges, where rounding shows
    whole = classifier(**settings).fit(PIXELS, CANDIDATES)
    parts = classifier(**settings, part_size=16).fit(PIXELS, CANDIDATES)
    a, b = (clf.decision_function(PIXELS) for clf in (whole, parts))
    np.testing.assert_allclose(a, b, atol=1e-3)


def test_early_stopping_holds_the_same_pictures_out_of_both_trainings() -> None:
    clf = classifier(epochs=3, early_stopping=True, threshold="risk").fit(PIXELS, CANDIDATES)
    assert clf.history_.best_epoch in (1, 2, 3)
    assert len(clf.history_.validation) == 3
    assert clf.threshold_.shape == (3,)


def test_a_threshold_of_a_fine_tuned_network_needs_held_out_pictures() -> None:
    with pytest.raises(ComesError, match="set early_stopping=True"):
        classifier(epochs=1, threshold="f1", weights="nowhere").fit(PIXELS, CANDIDATES)


@pytest.mark.parametrize("settings", [{}, {"epochs": 1}, {"probe_epochs": 0, "epochs": 1}])
def test_a_saved_model_gives_the_same_scores(settings: dict[str, Any], tmp_path: Path) -> None:
    clf = classifier(**settings).fit(PIXELS, CANDIDATES)
    clf.save(tmp_path / "model")
    loaded = ImageClassifier.load(tmp_path / "model", backbone=tiny())
    scores = clf.decision_function(PIXELS)
    np.testing.assert_allclose(loaded.decision_function(PIXELS), scores, atol=1e-5)
    np.testing.assert_array_equal(loaded.predict(PIXELS), clf.predict(PIXELS))
    assert loaded.label_names_ == clf.label_names_


@pytest.mark.parametrize("method", ["comes-hl", "likelihood"])
def test_a_saved_model_with_classes_by_name_loads_by_itself(method: str, tmp_path: Path) -> None:
    name = "timm:resnet10t"
    clf = classifier(method=method, backbone=name, image_size=64)
    clf.fit(PIXELS[:40], CANDIDATES[:40])
    views = clf.network_.views
    above = clf.network_.backbone.classifier if views is None else views.classifier
    assert isinstance(above, nn.Linear) and above.out_features == 1000
    clf.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_allclose(
        loaded.decision_function(PIXELS[:4]), clf.decision_function(PIXELS[:4]), atol=1e-4
    )


def save_folder(folder: Path) -> str:
    """Save a network as timm does; return its name as a backbone."""
    import_torchvision("a test")
    import timm

    torch.manual_seed(0)
    timm.models.save_for_hf(timm.create_model("resnet10t"), str(folder), safe_serialization=True)
    return f"folder:{folder}"


def test_a_saved_model_of_a_folder_needs_the_folder_no_more(tmp_path: Path) -> None:
    name = save_folder(tmp_path / "network")
    clf = classifier(backbone=name, weights="imagenet", image_size=None, centre_crop=True)
    clf.fit(PIXELS[:40], CANDIDATES[:40])
    shown = clf.network_.backbone.preprocessing
    assert (shown.size, shown.interpolation, shown.short_side) == (176, "bicubic", 201)
    clf.save(tmp_path / "model")
    shutil.rmtree(tmp_path / "network")
    loaded = load_model(tmp_path / "model")
    assert isinstance(loaded, ImageClassifier)
    assert loaded.network_.backbone.preprocessing == shown
    np.testing.assert_allclose(
        loaded.decision_function(PIXELS[:4]), clf.decision_function(PIXELS[:4]), atol=1e-4
    )


def test_a_model_saved_before_preprocessing_was_is_loaded_as_it_was(tmp_path: Path) -> None:
    clf = classifier(backbone="timm:resnet10t", image_size=64).fit(PIXELS[:40], CANDIDATES[:40])
    clf.network_.backbone.preprocessing = Preprocessing(64)  # stretched, bilinear
    clf.save(tmp_path / "model")
    description = json.loads((tmp_path / "model" / "model.json").read_text())
    for name in ("preprocessing", "config"):
        del description["images"][name]
    del description["parameters"]["centre_crop"], description["checksums"]
    (tmp_path / "model" / "model.json").write_text(json.dumps(description))
    loaded = load_model(tmp_path / "model")
    np.testing.assert_allclose(
        loaded.decision_function(PIXELS[:4]), clf.decision_function(PIXELS[:4]), atol=1e-4
    )


def test_the_centre_of_a_picture_is_another_picture() -> None:
    one, other = (
        classifier(centre_crop=crop).fit(PIXELS, CANDIDATES).decision_function(PIXELS)
        for crop in (False, True)
    )
    assert not np.allclose(one, other)


def test_fine_tuning_sees_what_the_network_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    class Spy(PixelRows):
        def __init__(self, images: Any, size: Any, *args: Any, **kwargs: Any) -> None:
            super().__init__(images, size, *args, **kwargs)
            seen.append(self.preprocessing)

    monkeypatch.setattr(fine_tuning, "PixelRows", Spy)
    own = Backbone(tiny(), preprocessing=Preprocessing(24, "bicubic", 28))
    classifier(backbone=own, image_size=None, probe_epochs=1, epochs=1).fit(PIXELS, CANDIDATES)
    assert seen == [own.preprocessing]


def test_a_model_of_a_network_of_ones_own_asks_for_it(tmp_path: Path) -> None:
    classifier().fit(PIXELS, CANDIDATES).save(tmp_path / "model")
    with pytest.raises(ComesError, match=r"pass it, load\(path, backbone="):
        ImageClassifier.load(tmp_path / "model")


def test_strides_of_weights_are_found_and_saved(tmp_path: Path) -> None:
    trained = Backbone(ResNet(strides="v1")).train()
    for module in trained.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 1.0  # remembers the variances of these pictures
    rows = PixelRows(list(PIXELS[:16]), 64, torch.device("cpu"))
    with torch.no_grad():
        trained(next(rows.batches([torch.arange(16)])))
    torch.save(trained.network.state_dict(), tmp_path / "v1.pth")
    clf = classifier(backbone="resnet50", weights=tmp_path / "v1.pth", image_size=64)
    clf.fit(PIXELS[:16], CANDIDATES[:16])
    assert isinstance(clf.network_.backbone.network, ResNet)
    assert clf.network_.backbone.network.strides == "v1"
    clf.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    np.testing.assert_allclose(
        loaded.decision_function(PIXELS[:4]), clf.decision_function(PIXELS[:4]), atol=1e-4
    )


def test_weights_by_name_come_from_the_net_and_are_checked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import hashlib
    import threading

    state = {"fc.weight": torch.randn(1000, 2048), "fc.bias": torch.zeros(1000)}
    state |= make_backbone("resnet50").network.state_dict()
    torch.save(state, tmp_path / "w.pth")
    server = Server()
    server.content = (tmp_path / "w.pth").read_bytes()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    checksum = f"sha256:{hashlib.sha256(server.content).hexdigest()}"
    known = {"resnet50": (server.address("w.pth"), checksum)}
    monkeypatch.setattr(pretrained, "IMAGENET", known)
    clf = classifier(backbone="resnet50", weights="imagenet", probe_epochs=1)
    clf.fit(PIXELS[:8], CANDIDATES[:8])
    assert clf.network_.views is not None and clf.network_.views.classifier is not None
    clf.fit(PIXELS[:8], CANDIDATES[:8])
    assert len(server.asked) == 1  # the second time it was there
    server.shutdown()
    server.server_close()
    with pytest.raises(ComesError, match="no address is known for weights of resnet101"):
        classifier(backbone="resnet101", weights="imagenet").fit(PIXELS, CANDIDATES)


def test_features_are_computed_once() -> None:
    backbone = make_backbone(tiny())
    calls = []

    def count(_: nn.Module, inputs: Any, output: Any) -> None:
        calls.append(len(inputs[0]))

    backbone.register_forward_hook(count)
    images = as_pictures(PIXELS)
    first = features_of(backbone, images, SIZE, torch.device("cpu"))
    again = features_of(backbone, images, SIZE, torch.device("cpu"))
    np.testing.assert_array_equal(first, again)
    assert calls.count(len(PIXELS)) == 1  # one more picture told the number of features
    with torch.no_grad():
        next(backbone.parameters()).add_(1)
    assert not np.array_equal(features_of(backbone, images, SIZE, torch.device("cpu")), first)
    assert calls.count(len(PIXELS)) == 2


def test_nothing_is_hashed_where_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> str:
        raise AssertionError("was hashed")

    monkeypatch.setattr(features, "weights_hash", refuse)
    monkeypatch.setattr(image_classifier, "weights_hash", refuse)
    monkeypatch.setattr(features.Pictures, "fingerprint", refuse)
    clf = classifier(probe_epochs=1, epochs=1).fit(PIXELS, CANDIDATES)
    clf.decision_function(PIXELS[:2])


def test_changed_pictures_are_not_taken_from_the_cache(tmp_path: Path) -> None:
    table = write_pictures(tmp_path, n=4)
    dataset = read_dataset(table, labels=["has_*"], relevant=["is_*"], images=tmp_path / "photos")
    before = dataset.known_images().fingerprint()
    file = tmp_path / "photos" / "000.png"
    file.write_bytes((tmp_path / "photos" / "001.png").read_bytes() + b" ")
    assert dataset.known_images().fingerprint() != before


def test_a_broken_off_training_goes_on_to_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = tmp_path / "state"

    class Breaking(PixelRows):
        def batches(self, rows: Any, training: bool = False) -> Any:
            if checkpoint.exists():
                raise ConnectionError("the power is out")
            return super().batches(rows, training)

    settings: dict[str, Any] = {"epochs": 4, "probe_epochs": 5}
    with monkeypatch.context() as patched, pytest.raises(ConnectionError):
        patched.setattr(fine_tuning, "PixelRows", Breaking)
        classifier(**settings).fit(PIXELS, CANDIDATES, checkpoint=checkpoint)
    assert checkpoint.exists()
    resumed = classifier(**settings).fit(PIXELS, CANDIDATES, checkpoint=checkpoint)
    whole = classifier(**settings).fit(PIXELS, CANDIDATES)
    assert same_weights(resumed, whole)
    assert resumed.history_.risk == whole.history_.risk


def test_a_checkpoint_of_other_settings_is_refused(tmp_path: Path) -> None:
    checkpoint = tmp_path / "state"
    torch.save({"fingerprint": "another"}, checkpoint)
    with pytest.raises(ComesError, match="belongs to another training"):
        classifier(epochs=1).fit(PIXELS, CANDIDATES, checkpoint=checkpoint)


def test_a_checkpoint_of_other_weights_is_refused(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"epochs": 1, "probe_epochs": 0}
    classifier(**settings).fit(PIXELS, CANDIDATES, checkpoint=tmp_path / "state")
    other = classifier(backbone=randomised(tiny(), seed=1), **settings)
    with pytest.raises(ComesError, match="belongs to another training"):
        other.fit(PIXELS, CANDIDATES, checkpoint=tmp_path / "state")


def test_an_interrupted_probe_is_not_fine_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(risk: float, epoch: int) -> float:
        if epoch == 1:
            raise KeyboardInterrupt
        return risk

    monkeypatch.setattr(epochs, "_check_finite", interrupt)
    with pytest.warns(ComesWarning, match="Interrupted after 1 of 5 epochs"):
        clf = classifier(probe_epochs=5, epochs=1).fit(PIXELS, CANDIDATES)
    assert clf.is_frozen_
    assert clf.history_.interrupted


@pytest.mark.parametrize("probe_epochs", [0, 1])
def test_without_a_probe_the_head_reads_features_unchanged(probe_epochs: int) -> None:
    clf = classifier(probe_epochs=probe_epochs, epochs=1, features="pooled")
    clf.fit(PIXELS, CANDIDATES)
    assert clf.network_.power == (probe_epochs > 0)
    assert (clf.network_.scale is None) == (probe_epochs == 0)


def test_too_little_memory_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: Any, **__: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(image_classifier, "features_of", no_memory)
    with pytest.raises(
        ComesError, match=r"memory for 256 pictures of 32 x 32 at once. Set part_size"
    ):
        classifier().fit(PIXELS, CANDIDATES)


def test_a_broken_picture_is_named(tmp_path: Path) -> None:
    table = write_pictures(tmp_path, n=20)
    (tmp_path / "photos" / "007.png").write_bytes(b"no picture")
    dataset = read_dataset(table, labels=["has_*"], relevant=["is_*"], images=tmp_path / "photos")
    with pytest.raises(ComesError, match=r"'007.png' cannot be read"):
        classifier().fit(dataset.X, dataset.known_candidates())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"backbone": "resnet18"}, "backbone must be resnet50"),
        ({"features": "some"}, "features must be one of"),
        ({"precision": "half"}, "precision must be"),
        ({"part_size": 0}, "part_size must be a whole number of at least 1"),
        ({"temperature": 0.0}, "temperature must be above 0"),
        ({"temperature": "hot"}, "temperature must be above 0.*got 'hot'"),
        ({"soft_targets": "yes"}, "soft_targets must be True, False or None; got 'yes'"),
        ({"augment": "mixup", "soft_targets": False}, "'mixup' must go with soft targets"),
        ({"standard_errors": -1.0}, "standard_errors at least 0"),
        ({"method": "best"}, "method must be one of"),
        ({"image_size": 4}, "image_size must be a whole number of at least 8"),
        ({"epochs": -1}, "epochs must be a whole number of at least 0"),
        ({"probe_epochs": 0}, "nothing would be learned"),
        ({"augment": "twist", "epochs": 1}, "augment must be one of"),
        ({"weights": "nowhere.pth"}, "no file of weights at nowhere.pth"),
        ({"device": "gpu7"}, "cannot be used here"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ComesError, match=message):
        classifier(**settings).fit(PIXELS, CANDIDATES)


def test_pictures_of_a_wrong_kind_are_named() -> None:
    with pytest.raises(ComesError, match="picture 0 is float64 of shape"):
        classifier().fit(PIXELS.astype(float), CANDIDATES)
    with pytest.raises(ComesError, match="at least one picture is needed; got none"):
        classifier().fit([], CANDIDATES)
    with pytest.raises(ComesError, match="same number of rows"):
        classifier().fit(PIXELS[:5], CANDIDATES)


def test_label_names_come_from_columns() -> None:
    import pandas as pd

    named = pd.DataFrame(CANDIDATES, columns=pd.Index(LABELS))
    clf = classifier().fit(PIXELS, named)
    assert clf.label_names_ == LABELS
    truth = pd.DataFrame(RELEVANT, columns=pd.Index(LABELS))
    assert clf.score(PIXELS, truth[LABELS[::-1]]) == clf.score(PIXELS, RELEVANT)


def test_features_that_are_zero_have_a_gradient() -> None:
    class Dead(nn.Module):
        """Half of its features are zero whatever it sees."""

        def __init__(self) -> None:
            super().__init__()
            self.network = tiny()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            features: torch.Tensor = self.network(x)
            return torch.cat([features, (-features.abs()).relu()], dim=1)

    clf = classifier(backbone=Dead(), epochs=1).fit(PIXELS, CANDIDATES)
    assert np.isfinite(clf.decision_function(PIXELS)).all()


def test_a_failed_fit_leaves_the_earlier_one() -> None:
    clf = classifier().fit(PIXELS, CANDIDATES)
    scores = clf.decision_function(PIXELS)
    with pytest.raises(ComesError, match="same number of rows"):
        clf.fit(PIXELS[:5], CANDIDATES)
    np.testing.assert_array_equal(clf.decision_function(PIXELS), scores)


@pytest.mark.parametrize("method", ["comes-hl", "likelihood"])
def test_the_level_of_a_sparse_head_fits_the_class_prior(method: str) -> None:
    clf = classifier(backbone=with_classes(), method=method).fit(PIXELS, CANDIDATES)
    assert np.abs(clf.predict_proba(PIXELS).mean(axis=0) - PRIOR).max() < 0.15


def test_a_network_of_ones_own_is_copied(tmp_path: Path) -> None:
    own = tiny()
    before = {name: tensor.clone() for name, tensor in own.state_dict().items()}
    clf = classifier(backbone=own, epochs=1, backbone_learning_rate=1e-3).fit(PIXELS, CANDIDATES)
    clf.save(tmp_path / "model")
    ImageClassifier.load(tmp_path / "model", backbone=own)
    assert all(torch.equal(own.state_dict()[name], before[name]) for name in before)


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
    first = classifier(**settings, weights=tmp_path / "w.pth").fit(PIXELS, CANDIDATES)
    (file,) = (tmp_path / "cache" / "features").iterdir()
    file.write_bytes(b"no features")
    again = classifier(**settings, weights=tmp_path / "w.pth").fit(PIXELS, CANDIDATES)
    assert same_weights(first, again)
    first.decision_function(PIXELS[:3])  # a prediction writes nothing
    assert list((tmp_path / "cache" / "features").iterdir()) == [file]


def test_other_methods_and_reductions_read_pooled_features() -> None:
    for settings in ({"method": "comes-hl-unbiased"}, {"reduction": "mean"}):
        clf = classifier(backbone=with_classes(), probe_epochs=2, **settings)
        assert clf.fit(PIXELS, CANDIDATES).network_.backbone.classifier is None


def test_what_is_held_out_is_in_neither_training(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    class Spy(PixelRows):
        def __init__(self, images: Any, *args: Any, **kwargs: Any) -> None:
            super().__init__(images, *args, **kwargs)
            seen.append([images[row].tobytes() for row in range(len(images))])

    monkeypatch.setattr(fine_tuning, "PixelRows", Spy)
    clf = classifier(epochs=1, early_stopping=True).fit(PIXELS, CANDIDATES)
    held, trained = map(set, seen)
    assert len(held) == 24 and len(trained) == 96 and not held & trained
    assert clf.history_.best_epoch == 1


def test_cross_validation_by_scikit_learn() -> None:
    from sklearn.model_selection import cross_validate

    found = cross_validate(
        classifier(probe_epochs=20),
        PIXELS,
        RELEVANT,
        params={"candidates": CANDIDATES},
        cv=2,
        error_score="raise",
    )
    assert (found["test_score"] > 0.5).all()


def test_complementary_labels_are_the_other_view() -> None:
    one = classifier(probe_epochs=2).fit(PIXELS, CANDIDATES)
    other = classifier(probe_epochs=2).fit(PIXELS, complementary=~CANDIDATES)
    assert same_weights(one, other)


def one_of_two(rank: int, folder: str) -> None:
    """Fine-tune with live statistics, early stopping and no seed, and write what was found."""
    os.environ |= {"WORLD_SIZE": "2", "RANK": str(rank), "LOCAL_RANK": str(rank)}
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    rates = {"learning_rate": 1e-3, "backbone_learning_rate": 1e-3}
    clf = classifier(
        random_state=None,
        epochs=8,
        batch_size=24,
        early_stopping=True,
        patience=1,
        freezes_statistics=False,
        **rates,
    ).fit(PIXELS, CANDIDATES)
    dist.destroy_process_group()
    head = clf.network_.head.state_dict()
    torch.save({"validation": clf.history_.validation, "head": head}, f"{folder}/{rank}.pt")


def test_two_processes_stop_together_whatever_they_draw(tmp_path: Path) -> None:
    spawn(one_of_two, args=(str(tmp_path),), nprocs=2)
    one, two = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    assert one["validation"] == two["validation"]
    assert all(torch.equal(one["head"][name], two["head"][name]) for name in one["head"])


def test_fine_tuning_in_small_batches_is_warned_of() -> None:
    images, relevant = pictures(90)
    candidates = case_b(relevant, 0.2)
    with pytest.warns(ComesWarning, match=r"a batch of 8 has about \d exclusions of a label"):
        classifier(method="comes-hl", epochs=1, batch_size=8).fit(images, candidates)
    for method in ("bce", "likelihood"):  # is no matter of batches
        classifier(method=method, epochs=1, batch_size=8).fit(images, candidates)


def test_pictures_are_learned_from_answers(tmp_path: Path) -> None:
    answers = simulate_answers(RELEVANT, asked_rate=0.8, seed=1)
    known: dict[str, Any] = {"class_prior": None, "no_rate": 0.8, "yes_rate": 0.8}
    clf = classifier(**known, mistake_rate=0.01).fit(PIXELS, answers)
    assert clf.method_ == "likelihood" and clf.score(*pictures(seed=1)) > 0.9
    clf.save(tmp_path / "model")
    loaded = ImageClassifier.load(tmp_path / "model", backbone=tiny())
    assert loaded.method_ == "likelihood" and loaded.knowledge_.mistake_rate == 0.01
    np.testing.assert_array_equal(loaded.yes_rate_, [0.8] * RELEVANT.shape[1])
    np.testing.assert_array_equal(loaded.decision_function(PIXELS), clf.decision_function(PIXELS))
