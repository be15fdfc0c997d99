import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from comes.answers import Answers
from comes.errors import ComesError
from comes.estimator import CandidateClassifier, ImageClassifier, load_model
from comes.models import ResNet
from comes.priors import ClassPriorEstimate
from test_estimator_classifier import CANDIDATES, RELEVANT, Own, X, classifier


@pytest.mark.parametrize("method", ["comes-hl", "comes-rl", "bce"])
@pytest.mark.parametrize("scale", ["standard", "maxabs", None])
def test_a_loaded_model_predicts_what_the_saved_one_did(
    method: str, scale: str | None, tmp_path: Path
) -> None:
    fitted = classifier(method, epochs=3, scale=scale).fit(X, CANDIDATES)
    fitted.save(tmp_path / "model")
    loaded = CandidateClassifier.load(tmp_path / "model")
    for name in ("decision_function", "predict_proba", "predict"):
        np.testing.assert_array_equal(getattr(loaded, name)(X), getattr(fitted, name)(X))
    assert loaded.get_params(deep=False).keys() == fitted.get_params(deep=False).keys()
    assert loaded.label_names_ == fitted.label_names_
    assert loaded.history_ == fitted.history_
    assert loaded.score(X, RELEVANT) == fitted.score(X, RELEVANT)
    loaded.fit(X, CANDIDATES)  # and can be trained again


def test_a_model_with_bent_scores_is_stored_whole(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"class_prior": RELEVANT.mean(axis=0), "random_state": 0}
    fitted = CandidateClassifier("likelihood", exclude_rate="instance", epochs=2, **settings)
    fitted.fit(X, CANDIDATES).save(tmp_path / "model")
    loaded = CandidateClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.score_power_, fitted.score_power_)
    np.testing.assert_array_equal(loaded.decision_function(X), fitted.decision_function(X))
    assert loaded.risk(X, CANDIDATES) == fitted.risk(X, CANDIDATES)
    CandidateClassifier("likelihood", epochs=1).fit(X, CANDIDATES).save(tmp_path / "plain")
    assert CandidateClassifier.load(tmp_path / "plain").score_power_ is None


def test_a_model_knows_whether_its_class_prior_was_estimated(tmp_path: Path) -> None:
    fitted: Any = CandidateClassifier(epochs=1, random_state=0).fit(X, CANDIDATES)
    error = fitted.class_prior_error_
    assert error is not None and error.shape == (CANDIDATES.shape[1],) and (error > 0).all()
    fitted.save(tmp_path / "model")
    loaded = CandidateClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.class_prior_error_, error)
    fitted.knowledge_ = replace(fitted.knowledge_, class_prior_error=None)  # an earlier version
    fitted.save(tmp_path / "old")
    old: Any = CandidateClassifier.load(tmp_path / "old").class_prior_error_
    assert np.isnan(old).all()
    prior = fitted.class_prior_
    given = CandidateClassifier(epochs=1, class_prior=prior).fit(X, CANDIDATES)
    assert given.class_prior_error_ is None
    flags = ("ok", *["never excluded"] * (len(error) - 1))
    estimate = ClassPriorEstimate(prior, prior, prior, prior, error, flags)
    passed = CandidateClassifier(epochs=1, class_prior=estimate).fit(X, CANDIDATES)
    passed.save(tmp_path / "passed")
    again = CandidateClassifier.load(tmp_path / "passed").class_prior_error_
    np.testing.assert_array_equal(again, [error[0], *[np.nan] * (len(error) - 1)])
    naive = CandidateClassifier("bce", epochs=1).fit(X, CANDIDATES)
    assert naive.class_prior_ is None and naive.class_prior_error_ is None


def test_two_files_no_pickle(tmp_path: Path) -> None:
    classifier(epochs=1).fit(X, CANDIDATES).save(tmp_path / "model")
    names = sorted(path.name for path in (tmp_path / "model").iterdir())
    assert names == ["model.json", "model.safetensors"]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_model_of_ones_own_is_passed_again(tmp_path: Path) -> None:
    fitted = classifier(model=Own, epochs=2).fit(X, CANDIDATES)
    fitted.save(tmp_path / "model")
    with pytest.raises(ComesError, match=r"model of your own.*load\(path, model="):
        CandidateClassifier.load(tmp_path / "model")
    loaded = CandidateClassifier.load(tmp_path / "model", model=Own)
    np.testing.assert_array_equal(loaded.decision_function(X), fitted.decision_function(X))
    with pytest.raises(ComesError, match="do not fit the model"):
        CandidateClassifier.load(tmp_path / "model", model="mlp")


def test_saving_replaces_a_model_and_nothing_else(tmp_path: Path) -> None:
    first, second = (classifier(epochs=e).fit(X, CANDIDATES) for e in (1, 2))
    first.save(tmp_path / "model")
    second.save(tmp_path / "model")
    loaded = CandidateClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.decision_function(X), second.decision_function(X))
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").touch()
    with pytest.raises(ComesError, match=r"photos exists and holds something else \(cat.jpg\)"):
        first.save(tmp_path / "photos")
    assert (tmp_path / "photos" / "cat.jpg").exists()


def test_what_is_not_a_model_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(ComesError, match=r"is not a saved model: it has no model.json"):
        CandidateClassifier.load(tmp_path)
    classifier(epochs=1).fit(X, CANDIDATES).save(tmp_path / "model")
    weights = tmp_path / "model" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(ComesError, match="damaged"):
        CandidateClassifier.load(tmp_path / "model")
    description = tmp_path / "model" / "model.json"
    description.write_text("{")
    with pytest.raises(ComesError, match="damaged"):
        CandidateClassifier.load(tmp_path / "model")


def test_a_model_trained_elsewhere_runs_here(tmp_path: Path) -> None:
    fitted = classifier(epochs=1, random_state=np.random.RandomState(0)).fit(X, CANDIDATES)
    fitted.device = "cuda:7"
    fitted.save(tmp_path / "model")
    loaded = CandidateClassifier.load(tmp_path / "model")
    assert loaded.device == "auto"
    assert loaded.random_state is None
    assert loaded.predict(X).shape == (300, 3)


def test_names_priors_and_mode_come_back_and_nothing_random_is_drawn(tmp_path: Path) -> None:
    features = pd.DataFrame(X, columns=pd.Index(list("abcde")))
    fitted = classifier(epochs=1).fit(features, CANDIDATES)
    fitted.save(tmp_path / "model")
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    loaded = CandidateClassifier.load(tmp_path / "model")
    assert torch.rand(1) == expected
    assert loaded.feature_names == list("abcde")
    np.testing.assert_array_equal(loaded.class_prior_, fitted.class_prior_)
    assert not loaded.module_.training


def test_tied_weights_can_be_saved(tmp_path: Path) -> None:
    class Tied(Own):
        def __init__(self, d: int, q: int) -> None:
            super().__init__(d, q)
            self.again = self.layers

    fitted = classifier(model=Tied, epochs=1).fit(X, CANDIDATES)
    fitted.save(tmp_path / "model")
    loaded = CandidateClassifier.load(tmp_path / "model", model=Tied)
    np.testing.assert_array_equal(loaded.decision_function(X), fitted.decision_function(X))


def test_weights_that_lie_across_memory_can_be_saved(tmp_path: Path) -> None:
    class Transposed(nn.Module):
        def __init__(self, d: int, q: int) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(q, d).t())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ self.weight

    fitted = classifier(model=Transposed, epochs=1).fit(X, CANDIDATES)
    fitted.save(tmp_path / "model")
    loaded = CandidateClassifier.load(tmp_path / "model", model=Transposed)
    np.testing.assert_array_equal(loaded.decision_function(X), fitted.decision_function(X))


@pytest.mark.parametrize("change", [{"parameters": {}}, {"history": 3}, {"label_names": None}])
def test_a_changed_description_is_a_damaged_model(tmp_path: Path, change: dict[str, Any]) -> None:
    classifier(epochs=1).fit(X, CANDIDATES).save(tmp_path / "model")
    description = tmp_path / "model" / "model.json"
    content = json.loads(description.read_text()) | change | {"checksums": None}  # as before
    description.write_text(json.dumps(content))
    with pytest.raises(ComesError, match="damaged"):
        CandidateClassifier.load(tmp_path / "model")


def test_another_format_says_who_wrote_it(tmp_path: Path) -> None:
    classifier(epochs=1).fit(X, CANDIDATES).save(tmp_path / "model")
    description = tmp_path / "model" / "model.json"
    content = json.loads(description.read_text()) | {"format": 99, "comes_version": "7.0"}
    description.write_text(json.dumps(content))
    with pytest.raises(ComesError, match=r"format 99.*written by comes 7\.0"):
        CandidateClassifier.load(tmp_path / "model")


BEFORE = Path(__file__).parent / "data" / "models_before_house"


def test_models_of_the_first_layout_of_rooms_still_load() -> None:
    """Written by comes 0.1.0 before its rooms were rebuilt, with the scores they gave then."""
    expected = json.loads((BEFORE / "scores.json").read_text(encoding="utf-8"))
    names = ["height", "width", "depth"]
    rows = pd.DataFrame(expected["rows"]["X"], columns=pd.Index(names))
    model = load_model(BEFORE / "rows")
    assert isinstance(model, CandidateClassifier)
    assert (model.feature_names, model.label_names_) == (names, ["sky", "sea"])
    assert model.class_prior_ is not None and model.class_prior_.tolist() == [0.4, 0.5]
    assert model.flip_rate_ is None and model.transition_ is None
    np.testing.assert_allclose(model.decision_function(rows), expected["rows"]["scores"], atol=1e-5)
    np.testing.assert_array_equal(model.predict(rows), expected["rows"]["predictions"])
    shape = (3, 16, 16, 3)
    images = np.random.default_rng(7).integers(0, 255, size=shape, dtype=np.uint8)
    own = ImageClassifier.load(BEFORE / "images", backbone=ResNet((1, 1, 1, 1), width=1))
    scores = own.decision_function(images)
    np.testing.assert_allclose(scores, expected["images"]["scores"], atol=1e-4)
    np.testing.assert_array_equal(own.predict(images), expected["images"]["predictions"])


BEFORE_TABLES = Path(__file__).parent / "data" / "models_before_tables"


@pytest.mark.parametrize("name", ["answers", "pairs"])
def test_models_before_weights_streams_and_tables_still_load(name: str, tmp_path: Path) -> None:
    """Written before there were weights, callbacks, calibration and mixed tables."""
    expected = json.loads((BEFORE_TABLES / "scores.json").read_text(encoding="utf-8"))
    names = ["height", "width", "depth"]
    rows = pd.DataFrame(expected["X"], columns=pd.Index(names))
    model = load_model(BEFORE_TABLES / name)
    assert isinstance(model, CandidateClassifier)
    assert model.feature_names == names
    assert model.label_names_ == (["sky", "sea"] if name == "answers" else ["0", "1"])
    assert model.calibration_ is None and model.callbacks is None and not model.warm_start
    found = expected[name]
    np.testing.assert_allclose(model.decision_function(rows), found["scores"], atol=1e-5)
    np.testing.assert_allclose(model.predict_proba(rows), found["probabilities"], atol=1e-5)
    np.testing.assert_array_equal(model.predict(rows), found["predictions"])
    model.save(tmp_path / "again")
    again = CandidateClassifier.load(tmp_path / "again")
    np.testing.assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))
    again.set_params(threshold="auto")
    labels = np.array([[1, 0], [0, 1], [1, 1], [0, 1], [1, 0]], dtype=bool)
    said = Answers(no=~labels, yes=labels) if name == "answers" else Answers.from_candidates(labels)
    again.partial_fit(rows, answers=said)  # and goes on


def test_a_calibration_is_stored(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    model = CandidateClassifier("bce", epochs=3, random_state=0).fit(X[:150], X[:150] > 0)
    model.calibrate(X[150:], relevant=X[150:] > 0).save(tmp_path / "model")
    loaded = CandidateClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    model.fit(X, X > 0)
    assert model.calibration_ is None, "it belonged to the earlier weights"
