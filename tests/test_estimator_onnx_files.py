"""ONNX files give what the models give, with nothing but onnxruntime."""

import json
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import torch
from scipy import sparse
from torch import Tensor, nn

from comes import CandidateClassifier, ImageClassifier
from comes.errors import ComesError, ComesWarning
from comes.estimator import export_onnx, measure_onnx
from comes.estimator.onnx_files import _take_apart
from comes.generation import case_b
from comes.jobs import export_jobs, export_model
from comes.models import Backbone, Preprocessing
from pictures import LABELS, SIZE, pictures

X = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
TRUTH = X[:, :3] > 0.3
PRIOR = TRUTH.mean(axis=0)
CANDIDATES = case_b(TRUTH, exclude_rate=0.5)
PIXELS, RELEVANT = pictures(30)
PLANES = np.ascontiguousarray(PIXELS.transpose(0, 3, 1, 2))


def make(method: str, **settings: Any) -> CandidateClassifier:
    given: dict[str, Any] = {"epochs": 1, "hidden": 4, "random_state": 0, "class_prior": PRIOR}
    return CandidateClassifier(method, **given | settings)


def of_images(backbone: nn.Module, **settings: Any) -> ImageClassifier:
    given: dict[str, Any] = {"weights": None, "random_state": 0, "class_prior": [0.4] * 3}
    return ImageClassifier(backbone=backbone, **given | settings)


def check_same(clf: Any, X: Any, inputs: Any, folder: Path) -> dict[str, Any]:
    """Check scores, probabilities and predictions of all rows and of one; return the metadata."""
    path = export_onnx(clf, folder / "model.onnx")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (taken,) = session.get_inputs()
    for rows in (slice(None), slice(0, 1)):
        scores, probabilities = session.run(None, {taken.name: inputs[rows]})
        expected = clf.decision_function(X[rows])
        assert scores.shape == expected.shape
        np.testing.assert_allclose(scores, expected, atol=1e-4, rtol=1e-4)
        np.testing.assert_allclose(probabilities, clf.predict_proba(X[rows]), atol=1e-5)
    assert measure_onnx(clf, path) < 1e-5
    about: dict[str, Any] = session.get_modelmeta().custom_metadata_map
    assert json.loads(about["label_names"]) == clf.label_names_
    np.testing.assert_allclose(json.loads(about["thresholds"]), clf.threshold_)
    return about


@pytest.mark.long
def test_a_file_of_scaled_rows_of_an_ensemble_with_calibrated_scores(
    tmp_path: Path,
) -> None:
    rows = 2 * X + 5
    settings: dict[str, Any] = {"n_networks": 2}
    clf = make("likelihood", **settings).fit(rows, CANDIDATES)
    before = clf.predict_proba(rows)
    clf.calibrate(rows + 1, relevant=TRUTH)
    assert np.abs(clf.predict_proba(rows) - before).max() > 0.01
    about = check_same(clf, rows, rows, tmp_path)
    assert json.loads(about["feature_names"]) is None
    other = make("likelihood", **settings, random_state=1).fit(rows, CANDIDATES)
    assert measure_onnx(other, tmp_path / "model.onnx") > 1e-3, "a file of another model"


def test_what_is_written_gives_what_the_model_gives() -> None:
    """Before it is a file; tests/system writes a file of each kind."""
    ranked = make("comes-rl", scale="maxabs").fit(X, CANDIDATES)
    assert np.abs(ranked.score_offset_).max() > 0.01
    far = (1e6 + np.round(X * 8) / 8).astype(np.float32)  # exact in float32, not less its mean
    classes = Backbone(small_network(), nn.Linear(8, 6), Preprocessing(SIZE))
    kinds: list[tuple[str, Any, Any, Any]] = [
        ("a level", ranked, X, X),
        ("a calibrated level", deepcopy(ranked).calibrate(X + 1, relevant=TRUTH), X, X),
        ("unscaled", make("bce", model="linear", scale=None).fit(X, CANDIDATES), X, X),
        ("far from zero", make("bce", model="linear").fit(far, far[:, :3] > 1e6), far, far),
        ("classes of images", of_images(classes).fit(PIXELS, RELEVANT), PIXELS, PLANES),
    ]
    for kind, clf, rows, inputs in kinds:
        _, whole, example = _take_apart(clf)
        assert example.shape[1:] == inputs.shape[1:], kind
        with torch.no_grad():
            scores, probabilities = whole(torch.tensor(inputs))
        expected = clf.decision_function(rows)
        np.testing.assert_allclose(scores, expected, atol=1e-4, rtol=1e-4, err_msg=kind)
        np.testing.assert_allclose(probabilities, clf.predict_proba(rows), atol=1e-5, err_msg=kind)


@pytest.mark.long
def test_a_table_with_categories_and_text_from_its_encoded_columns_on(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "size": np.where(rng.random(60) < 0.1, np.nan, rng.normal(size=60)),
            "colour": rng.choice(["red", "green", "blue"], 60),
            "words": [" ".join(rng.choice(["sea", "sun", "town", "hill"], 6)) for _ in range(60)],
        }
    )
    clf = make("bce", model="linear", class_prior=None).fit(table, CANDIDATES)
    encoded = clf.encoder_.transform(table)
    encoded = encoded.toarray() if sparse.issparse(encoded) else np.asarray(encoded)
    exported = export_model(clf, tmp_path / "model.onnx")
    assert exported.input == f"features: float32 (n, {encoded.shape[1]}), encoded from 3 columns"
    assert exported.difference is not None and exported.difference < 1e-5
    session = onnxruntime.InferenceSession(exported.path, providers=["CPUExecutionProvider"])
    (found,) = session.run(["probabilities"], {"features": encoded.astype(np.float32)})
    np.testing.assert_allclose(found, clf.predict_proba(table), atol=1e-5)
    names = json.loads(session.get_modelmeta().custom_metadata_map["feature_names"])
    assert len(names) == encoded.shape[1] > 3
    assert measure_onnx(clf, exported.path, sparse.csr_array(encoded)) < 1e-5


@pytest.mark.long
def test_the_job_says_how_far_the_file_is_from_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(_: Any, path: Path) -> Path:
        path.write_bytes(b"a file")
        return path

    clf = make("bce", class_prior=None).fit(X, CANDIDATES)
    monkeypatch.setattr(export_jobs, "export_onnx", write)
    monkeypatch.setattr(export_jobs, "measure_onnx", lambda *_: 1e-6)
    exported = export_model(clf, tmp_path / "model.onnx")
    assert "of a probability" in exported.summary()["largest difference"]
    assert exported.input == "features: float32 (n, 4)"
    monkeypatch.setattr(export_jobs, "measure_onnx", lambda *_: 0.02)
    with pytest.warns(ComesWarning, match="up to 0.02 away .* more than 1e-05"):
        export_model(clf, tmp_path / "model.onnx")
    monkeypatch.setattr(export_jobs, "find_spec", lambda _: None)
    summary = export_model(clf, tmp_path / "model.onnx").summary()
    assert summary["largest difference"] == "not checked: install onnxruntime"


def small_network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 8, 4, stride=4), nn.ReLU())


@pytest.mark.long
def test_a_fine_tuned_network_is_the_one_that_is_written(tmp_path: Path) -> None:
    own = Backbone(small_network(), preprocessing=Preprocessing(SIZE, "bicubic"))
    clf = of_images(own, method="bce", epochs=1, class_prior=None)
    about = check_same(clf.fit(PIXELS, RELEVANT, label_names=LABELS), PIXELS, PLANES, tmp_path)
    assert (about["image_size"], about["interpolation"]) == (str(SIZE), "bicubic")
    assert json.loads(about["short_side"]) is None


class OldFashioned(nn.Module):
    """A network that the new exporter cannot trace: it looks at a value."""

    def forward(self, x: Tensor) -> Tensor:
        return x * 2 if float(x.sum()) < 1e30 else x


class Unwritable(nn.Module):
    """A network with an operation that ONNX does not have."""

    def forward(self, x: Tensor) -> Tensor:
        values: Tensor = torch.linalg.eigvalsh(x[:, 0] @ x[:, 0].mT)
        return values


@pytest.mark.long
def test_networks_that_an_exporter_refuses(tmp_path: Path) -> None:
    backbone = nn.Sequential(OldFashioned(), nn.AvgPool2d(8), nn.Flatten())
    clf = of_images(backbone, image_size=SIZE).fit(PIXELS, RELEVANT)
    check_same(clf, PIXELS, PLANES, tmp_path)  # by the older one
    (tmp_path / "model.onnx").unlink()
    clf = of_images(Unwritable(), image_size=SIZE).fit(PIXELS, RELEVANT)
    with pytest.raises(ComesError, match="torch cannot write this network as ONNX .*Take another"):
        export_onnx(clf, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clf = make("bce", class_prior=None).fit(X, CANDIDATES)
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(ComesError, match=r"needs onnxscript.*pip install 'comes\[onnx\]'"):
        export_onnx(clf, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_a_target_is_checked_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(ComesError, match=r"model.bin should end in .onnx"):
        export_model("no such model", tmp_path / "model.bin")
    with pytest.raises(ComesError, match="is not a folder"):
        export_model("no such model", tmp_path / "missing" / "model.onnx")
