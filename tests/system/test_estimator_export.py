"""ONNX files of every kind of model; tests/test_estimator_export.py has the small ones."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import torch
from scipy import sparse
from torch import nn

from comes import CandidateClassifier
from comes.datasets import make_scenes
from comes.estimator import export_onnx
from comes.estimator.export import measure_onnx
from comes.generation import case_b
from comes.images import Backbone, ImageClassifier, make_backbone
from comes.training.pixels import Preprocessing
from pictures import LABELS, SIZE, pictures, tiny

SCENES = make_scenes(n=150)
CANDIDATES = case_b(SCENES.known_relevant(), exclude_rate=0.5)
PIXELS, RELEVANT = pictures(60)


def open_file(path: Path) -> tuple[onnxruntime.InferenceSession, dict[str, Any]]:
    """Return a session, and the metadata of the file."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session, session.get_modelmeta().custom_metadata_map


def check_same(clf: Any, X: Any, inputs: Any, folder: Path) -> dict[str, Any]:
    """Check scores, probabilities and predictions of all rows and of one; return the metadata."""
    session, about = open_file(export_onnx(clf, folder / "model.onnx"))
    (taken,) = session.get_inputs()
    for rows in (slice(None), slice(0, 1)):
        scores, probabilities = session.run(None, {taken.name: inputs[rows]})
        expected = clf.decision_function(X[rows])
        assert scores.shape == expected.shape
        np.testing.assert_allclose(scores, expected, atol=1e-4, rtol=1e-4)
        np.testing.assert_allclose(probabilities, clf.predict_proba(X[rows]), atol=1e-5)
    assert measure_onnx(clf, folder / "model.onnx") < 1e-5
    assert json.loads(about["label_names"]) == clf.label_names_
    np.testing.assert_allclose(json.loads(about["thresholds"]), clf.threshold_)
    return about


@pytest.mark.parametrize(
    "settings",
    [
        {},  # four networks with dropout
        {"method": "bce", "model": "linear"},
        {"method": "comes-hl", "n_networks": 1, "scale": "maxabs"},
        {"method": "comes-rl", "hidden": 20, "scale": None},  # has an offset
    ],
)
def test_a_model_of_rows_before_and_after_it_is_calibrated(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    X = SCENES.known_features().astype(np.float32)
    clf = CandidateClassifier(**settings, epochs=3, random_state=0).fit(X[:100], CANDIDATES[:100])
    about = check_same(clf, X, X, tmp_path)
    assert json.loads(about["feature_names"]) is None
    before = clf.predict_proba(X)
    clf.calibrate(X[100:], relevant=SCENES.known_relevant()[100:])
    assert np.abs(clf.predict_proba(X) - before).max() > 0.01
    check_same(clf, X, X, tmp_path)


def test_vectors_of_text_with_twenty_thousand_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = sparse.random_array((80, 20_000), density=0.003, rng=rng, format="csr", dtype=np.float32)
    clf = CandidateClassifier(epochs=1, hidden=20, random_state=0, class_prior=[0.4] * 5)
    clf.fit(X, rng.random((80, 5)) < 0.7)
    path = export_onnx(clf, tmp_path / "model.onnx")
    session, _ = open_file(path)
    (found,) = session.run(["probabilities"], {"features": X.toarray()})
    np.testing.assert_allclose(found, clf.predict_proba(X), atol=1e-5)
    assert measure_onnx(clf, path, X) < 1e-5


def test_a_model_of_an_earlier_version(tmp_path: Path) -> None:
    folder = Path(__file__).parents[1] / "data" / "models_before_house" / "rows"
    clf = CandidateClassifier.load(folder)
    X = np.random.default_rng(0).normal(size=(150, clf.n_features_in_)).astype(np.float32)
    about = check_same(clf, pd.DataFrame(X, columns=clf.feature_names), X, tmp_path)
    assert json.loads(about["feature_names"]) == ["height", "width", "depth"]


def test_features_far_from_zero_are_scaled_in_double_precision(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = (1e6 + np.round(rng.normal(size=(200, 3)) * 8) / 8).astype(np.float32)  # exact in float32
    clf = CandidateClassifier("bce", epochs=3, random_state=0).fit(X, X > 1e6)
    check_same(clf, X, X, tmp_path)


def with_classes() -> Backbone:
    backbone = make_backbone(tiny())
    torch.manual_seed(0)
    backbone.classifier = nn.Linear(256, 8)
    return backbone


@pytest.mark.parametrize("make", [tiny, with_classes])
def test_a_model_of_images(make: Any, tmp_path: Path) -> None:
    candidates = case_b(RELEVANT, exclude_rate=0.7)
    clf = ImageClassifier(
        backbone=make(), weights=None, image_size=SIZE, random_state=0, class_prior=[0.4] * 3
    ).fit(PIXELS, candidates, label_names=LABELS)
    planes = np.ascontiguousarray(PIXELS.transpose(0, 3, 1, 2))
    about = check_same(clf, PIXELS, planes, tmp_path)
    assert json.loads(about["image_size"]) == SIZE and about["interpolation"] == "bilinear"
    assert json.loads(about["short_side"]) is None


def test_a_fine_tuned_network_is_the_one_that_is_written(tmp_path: Path) -> None:
    own = Backbone(tiny(), preprocessing=Preprocessing(SIZE, "bicubic"))  # and its own size
    clf = ImageClassifier("bce", backbone=own, weights=None, epochs=1, random_state=0)
    clf.fit(PIXELS, RELEVANT)
    planes = np.ascontiguousarray(PIXELS.transpose(0, 3, 1, 2))
    about = check_same(clf, PIXELS, planes, tmp_path)
    assert (about["image_size"], about["interpolation"]) == (str(SIZE), "bicubic")
