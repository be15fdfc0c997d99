"""Models of pictures: saved and loaded, by this version and by earlier ones, and as ONNX files."""

import json
import shutil
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from sklearn.base import clone
from torch import nn

from comes import AnswerRates, CandidateClassifier, load_model
from comes.errors import ComesError
from comes.estimator import base, export_onnx
from comes.estimator.export import WholeModel, measure_onnx
from comes.estimator.prepare import as_plain
from comes.images import Backbone, ImageClassifier
from comes.methods import COMESRL, Likelihood
from comes.training.pixels import Preprocessing
from pictures import LABELS, SIZE, pictures

PIXELS, RELEVANT = pictures(30)
PLANES = np.ascontiguousarray(PIXELS.transpose(0, 3, 1, 2))
HOME = Path(__file__).parent
FIRST, WRITTEN = HOME / "data" / "models_before_house", HOME / "goldens" / "written_by_1.0.0"


def small_network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 8, 4, stride=4), nn.ReLU())


def make(**settings: Any) -> ImageClassifier:
    given: dict[str, Any] = {"backbone": small_network(), "weights": None, "image_size": SIZE}
    given |= {"random_state": 0, "class_prior": [0.4] * 3, "probe_epochs": 2}
    return ImageClassifier(**given | settings)


@pytest.fixture(scope="module")
def fitted() -> ImageClassifier:
    return make().fit(PIXELS, RELEVANT, label_names=LABELS)


# Folders


@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")
def test_parameters_and_predictions_come_back(tmp_path: Path) -> None:
    rates = AnswerRates(np.full(3, 0.8), np.zeros(3), 0.01)
    cases: list[dict[str, Any]] = [
        {},
        {"method": Likelihood(uses_maybe=False, prior_weight=0.3), "rates": {"exclude": 0.8}},
        {"method": COMESRL(flood_level=0.0), "early_stopping": 0.3, "verbose": -1},
        {"rates": rates, "optimizer": {"cosine": False}, "epochs": 1, "augment": "none"},
        {"probe_epochs": 0, "epochs": 1, "optimizer": {"freezes_statistics": False}},
    ]
    for given in cases:
        clf = make(**given).fit(PIXELS, RELEVANT, label_names=LABELS)
        clf.calibrate(PIXELS[::-1] // 2, relevant=RELEVANT[::-1]).save(tmp_path / "model")
        loaded = ImageClassifier.load(tmp_path / "model", backbone=small_network())
        for name in ("predict_proba", "predict"):
            found, expected = getattr(loaded, name)(PIXELS), getattr(clf, name)(PIXELS)
            np.testing.assert_allclose(found, expected, atol=1e-6, err_msg=str(given))
        assert loaded.label_names_ == LABELS and loaded.trained_on_ == clf.trained_on_
        expected = as_plain(clf.get_params(deep=False))
        assert as_plain(loaded.get_params(deep=False)) == expected, given
        assert as_plain(clone(loaded).get_params(deep=False)) == expected, given
        with pytest.raises(ComesError, match=r"backbone of your own: pass it, load\(path, backb"):
            load_model(tmp_path / "model")


@pytest.mark.parametrize("method", ["comes-hl", "likelihood"])
def test_a_model_with_classes_by_name_loads_by_itself(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMES_CACHE", str(tmp_path / "cache"))
    clf = make(method=method, backbone="timm:resnet10t").fit(PIXELS, RELEVANT)
    views = clf.network_.views
    above = clf.network_.backbone.classifier if views is None else views.classifier
    assert isinstance(above, nn.Linear) and above.out_features == 1000
    clf.save(tmp_path / "model")
    loaded, scores = load_model(tmp_path / "model"), clf.decision_function(PIXELS[:8])
    np.testing.assert_allclose(loaded.decision_function(PIXELS[:8]), scores, atol=1e-4)


def test_load_model_takes_both_kinds_and_checks_both(
    fitted: ImageClassifier, tmp_path: Path
) -> None:
    rows = np.random.default_rng(0).normal(size=(20, 2))
    CandidateClassifier("bce", epochs=1, hidden=4).fit(rows, rows > 0).save(tmp_path / "rows")
    assert isinstance(load_model(tmp_path / "rows"), CandidateClassifier)
    fitted.save(tmp_path / "images")
    for name in ("rows", "images"):
        path = tmp_path / name / "model.json"
        described = json.loads(path.read_text())
        for changes in ({"checksums": None}, {"label_names": ["a"]}):
            path.write_text(json.dumps(described | changes))
            with pytest.raises(ComesError, match=r"model\.json (is damaged|was changed)"):
                load_model(tmp_path / name)


class Bottleneck(nn.Module):
    """With torchvision's names of weights."""

    def __init__(self, n_inputs: int, width: int, stride: int) -> None:
        super().__init__()
        n_outputs = 4 * width
        self.conv1 = nn.Conv2d(n_inputs, width, 1, bias=False)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.conv3 = nn.Conv2d(width, n_outputs, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)
        self.bn3 = nn.BatchNorm2d(n_outputs)
        shortcut = nn.Conv2d(n_inputs, n_outputs, 1, stride, bias=False)
        self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(n_outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.bn1(self.conv1(x)).relu()
        y = self.bn2(self.conv2(y)).relu()
        return (self.bn3(self.conv3(y)) + self.downsample(x)).relu()  # type: ignore[no-any-return]


def make_first_network() -> nn.Module:
    stages = [Bottleneck(4 * width // 2, width, 2) for width in (2, 4, 8)]
    first = nn.Conv2d(3, 1, 7, stride=2, padding=3, bias=False)
    layers = {"conv1": first, "bn1": nn.BatchNorm2d(1), "relu": nn.ReLU()}
    layers |= {"maxpool": nn.MaxPool2d(3, stride=2, padding=1)}
    for number, stage in enumerate([Bottleneck(1, 1, 1), *stages], 1):
        layers[f"layer{number}"] = nn.Sequential(stage)
    return nn.Sequential(OrderedDict(layers))


def test_the_first_model_still_loads() -> None:
    """Written by comes 0.1.0, with the scores it gave then."""
    stored = json.loads((FIRST / "scores.json").read_text(encoding="utf-8"))["images"]
    shape = (3, 16, 16, 3)
    images = np.random.default_rng(7).integers(0, 255, size=shape, dtype=np.uint8)
    own = ImageClassifier.load(FIRST / "images", backbone=make_first_network())
    np.testing.assert_allclose(own.decision_function(images), stored["scores"], atol=1e-4)
    np.testing.assert_array_equal(own.predict(images), stored["predictions"])


class Golden(nn.Module):
    """The network of the model that 1.0.0 wrote; what it predicts is a golden."""

    def __init__(self) -> None:
        super().__init__()
        convolutions = nn.Conv2d(3, 8, 5, stride=4), nn.Conv2d(8, 16, 3, stride=2)
        self.layers = nn.Sequential(convolutions[0], nn.ReLU(), convolutions[1], nn.ReLU())

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        features: torch.Tensor = self.layers(pixels).mean(dim=(2, 3))
        return features


def test_parameters_of_1_0_0_are_in_their_new_places(tmp_path: Path) -> None:
    backbone = Golden()
    old = ImageClassifier.load(WRITTEN / "images", backbone=backbone)
    found = old.get_params(deep=False)
    assert found.pop("backbone") is backbone
    assert found == {
        "method": "likelihood",
        "class_prior": [0.4, 0.35, 0.45],
        "rates": {"no": 0.75, "yes": 0.7},
        "weights": None,
        "image_size": 32,
        "features": "auto",
        "probe_epochs": 3,
        "epochs": 0,
        "batch_size": 16,
        "learning_rate": 1e-3,
        "backbone_learning_rate": 1e-3,
        "weight_decay": 1e-4,
        "optimizer": None,
        "augment": "flip",
        "soft_targets": False,
        "threshold": "auto",
        "early_stopping": False,
        "patience": None,
        "part_size": None,
        "precision": "float32",
        "device": "auto",
        "random_state": 0,
        "verbose": -1,
    }
    model = Path(shutil.copytree(WRITTEN / "images", tmp_path / "model"))
    described = json.loads((model / "model.json").read_text())
    del described["checksums"]
    (model / "model.json").write_text(json.dumps(described))
    with pytest.raises(ComesError, match="damaged: its checksums are None"):
        ImageClassifier.load(model, backbone=backbone)


def with_five_classes() -> Backbone:
    return Backbone(Golden(), nn.Linear(16, 5))


def test_models_of_1_0_0_predict_with_what_was_removed(tmp_path: Path) -> None:
    """Written by it with features="both", temperature=0.5 and standard_errors=1."""
    images = pictures(6, seed=1)[0]
    stored = json.loads((WRITTEN / "images_both" / "scores.json").read_text())
    old = ImageClassifier.load(WRITTEN / "images_both", backbone=with_five_classes())
    old.save(tmp_path / "again")
    again = ImageClassifier.load(tmp_path / "again", backbone=with_five_classes())
    for clf in (old, again):
        np.testing.assert_allclose(clf.decision_function(images), stored["scores"], atol=1e-4)
        np.testing.assert_array_equal(clf.predict(images), stored["predictions"])
        with pytest.raises(ComesError, match=r"features='both' was removed after version 1\.0\.0"):
            clone(clf).fit(PIXELS, RELEVANT)


def test_a_model_that_sees_the_centre_still_does(tmp_path: Path) -> None:
    """As models of earlier versions do that were fitted with ``centre_crop``."""
    model = Path(shutil.copytree(WRITTEN / "images", tmp_path / "model"))
    described = json.loads((model / "model.json").read_text())
    described["parameters"]["centre_crop"] = True
    described["images"]["preprocessing"] |= {"short_side": 37, "interpolation": "bicubic"}
    del described["checksums"]
    described["comes_version"] = "0.9.0"  # which wrote none
    (model / "model.json").write_text(json.dumps(described))
    loaded = ImageClassifier.load(model, backbone=Golden())
    assert loaded.network_.backbone.preprocessing == Preprocessing(SIZE, "bicubic", 37)
    whole = ImageClassifier.load(WRITTEN / "images", backbone=Golden())
    assert not np.allclose(loaded.decision_function(PIXELS), whole.decision_function(PIXELS))


# The best labels


def test_pictures_have_best_labels_too(
    fitted: ImageClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "ROWS_AT_ONCE", 17)
    top, scores = fitted.predict_top(PIXELS, 1), fitted.decision_function(PIXELS)
    np.testing.assert_array_equal(top.labels[:, 0], scores.argmax(axis=1))
    np.testing.assert_allclose(top.scores[:, 0], scores.max(axis=1), rtol=1e-5)


# ONNX; tests/system has a file of each kind


def test_what_is_written_gives_what_the_model_gives() -> None:
    classes = Backbone(small_network(), nn.Linear(8, 6), Preprocessing(SIZE))
    clf = make(backbone=classes, image_size=None).fit(PIXELS, RELEVANT)
    with torch.no_grad():
        scores, probabilities = WholeModel(clf.network_, clf)(torch.tensor(PLANES))
    np.testing.assert_allclose(scores, clf.decision_function(PIXELS), atol=1e-4, rtol=1e-4)
    np.testing.assert_allclose(probabilities, clf.predict_proba(PIXELS), atol=1e-5)


@pytest.mark.long
def test_a_fine_tuned_network_is_the_one_that_is_written(tmp_path: Path) -> None:
    own = Backbone(small_network(), preprocessing=Preprocessing(SIZE, "bicubic"))
    clf = make(backbone=own, image_size=None, method="bce", epochs=1, class_prior=None)
    clf.fit(PIXELS, RELEVANT, label_names=LABELS)
    path = export_onnx(clf, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for some in (slice(None), slice(0, 1)):
        scores, probabilities = session.run(None, {"pixels": PLANES[some]})
        expected = clf.decision_function(PIXELS[some])
        np.testing.assert_allclose(scores, expected, atol=1e-4, rtol=1e-4)
        np.testing.assert_allclose(probabilities, clf.predict_proba(PIXELS[some]), atol=1e-5)
    assert measure_onnx(clf, path) < 1e-5
    about = session.get_modelmeta().custom_metadata_map
    assert json.loads(about["label_names"]) == LABELS
    assert (about["image_size"], about["interpolation"]) == (str(SIZE), "bicubic")
    assert json.loads(about["short_side"]) is None
