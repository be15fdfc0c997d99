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

from comes import CandidateClassifier
from comes.errors import ComesError
from comes.estimator import export_onnx
from comes.estimator.export import WholeModel, measure_onnx
from comes.generation import case_b
from comes.models import Ensemble

X = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
TRUTH = X[:, :3] > 0.3
PRIOR = TRUTH.mean(axis=0)
CANDIDATES = case_b(TRUTH, exclude_rate=0.5)


def make(method: str, **settings: Any) -> CandidateClassifier:
    given: dict[str, Any] = {"epochs": 1, "hidden": 4, "random_state": 0, "class_prior": PRIOR}
    return CandidateClassifier(method, **given | settings)


def open_file(path: Path) -> tuple[Any, dict[str, Any]]:
    """Return what runs a file, and its metadata."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    about = session.get_modelmeta().custom_metadata_map
    return session, {name: about[name] for name in about}


def check_same(clf: CandidateClassifier, rows: Any, folder: Path) -> dict[str, Any]:
    """Check scores, probabilities and predictions of all rows and of one; return the metadata."""
    path = export_onnx(clf, folder / "model.onnx")
    session, about = open_file(path)
    for some in (rows, rows[:1]):
        scores, probabilities = session.run(None, {"features": some})
        np.testing.assert_allclose(scores, clf.decision_function(some), atol=1e-4, rtol=1e-4)
        np.testing.assert_allclose(probabilities, clf.predict_proba(some), atol=1e-5)
    assert measure_onnx(clf, path) < 1e-5
    assert json.loads(about["label_names"]) == clf.label_names_
    np.testing.assert_allclose(json.loads(about["thresholds"]), clf.threshold_)
    assert about["method"] == clf.method_.name
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
    about = check_same(clf, rows, tmp_path)
    assert json.loads(about["feature_names"]) is None
    other = make("likelihood", **settings, random_state=1).fit(rows, CANDIDATES)
    assert measure_onnx(other, tmp_path / "model.onnx") > 1e-3, "a file of another model"


def test_what_is_written_gives_what_the_model_gives() -> None:
    """Before it is a file; tests/system writes a file of each kind."""
    ranked = make("comes-rl", scale="maxabs").fit(X, CANDIDATES)
    assert np.abs(ranked.score_offset_).max() > 0.01
    far = (1e6 + np.round(X * 8) / 8).astype(np.float32)  # exact in float32, not less its mean
    some = np.where(np.abs(X) > 0.5, X, 0)
    usual = make("likelihood").fit(X, CANDIDATES)
    of_sparse = make("likelihood").fit(sparse.csr_array(some), CANDIDATES)
    for clf in (usual, of_sparse):
        assert isinstance(clf.module_, Ensemble) and clf.module_.linear is not None
        assert clf.module_.linear.weight.abs().max() > 0.1
    kinds: list[tuple[str, CandidateClassifier, Any]] = [
        ("a linear model beside networks", usual, X),
        ("the same, trained on sparse rows", of_sparse, some),
        ("a level", ranked, X),
        ("a calibrated level", deepcopy(ranked).calibrate(X + 1, relevant=TRUTH), X),
        ("unscaled", make("bce", model="linear", scale=None).fit(X, CANDIDATES), X),
        ("far from zero", make("bce", model="linear").fit(far, far[:, :3] > 1e6), far),
    ]
    for kind, clf, rows in kinds:
        with torch.no_grad():
            scores, probabilities = WholeModel(clf.module_, clf)(torch.tensor(rows))
        expected = clf.decision_function(rows)
        np.testing.assert_allclose(scores, expected, atol=1e-4, rtol=1e-4, err_msg=kind)
        np.testing.assert_allclose(probabilities, clf.predict_proba(rows), atol=1e-5, err_msg=kind)


@pytest.mark.long
def test_a_file_of_the_usual_model_of_dense_and_of_sparse_rows(tmp_path: Path) -> None:
    some = np.where(np.abs(X) > 0.5, X, 0)
    check_same(make("likelihood").fit(X, CANDIDATES), X, tmp_path)
    check_same(make("likelihood").fit(sparse.csr_array(some), CANDIDATES), some, tmp_path)


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
    path = export_onnx(clf, tmp_path / "model.onnx")
    session, about = open_file(path)
    (found,) = session.run(["probabilities"], {"features": encoded.astype(np.float32)})
    np.testing.assert_allclose(found, clf.predict_proba(table), atol=1e-5)
    assert len(json.loads(about["feature_names"])) == encoded.shape[1] > 3
    for rows in (None, sparse.csr_array(encoded)):
        assert measure_onnx(clf, path, rows) < 1e-5


class OldFashioned(nn.Linear):
    """A network that the new exporter cannot trace: it looks at a value."""

    def forward(self, x: Tensor) -> Tensor:
        scores = super().forward(x)
        return scores * 2 if float(x.sum()) < 1e30 else scores


class Unwritable(nn.Linear):
    """A network with an operation that ONNX does not have."""

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = super().forward(x)
        found: Tensor = scores + 1e-6 * torch.linalg.eigvalsh(scores.mT @ scores)
        return found


@pytest.mark.long
def test_networks_that_an_exporter_refuses(tmp_path: Path) -> None:
    check_same(make("bce", model=OldFashioned).fit(X, CANDIDATES), X, tmp_path)  # by the older one
    (tmp_path / "model.onnx").unlink()
    with pytest.raises(ComesError, match="torch cannot write this network as ONNX .*Take another"):
        export_onnx(make("bce", model=Unwritable).fit(X, CANDIDATES), tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clf = make("bce", class_prior=None).fit(X, CANDIDATES)
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(ComesError, match=r"needs onnxscript.*pip install 'comes\[onnx\]'"):
        export_onnx(clf, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())
