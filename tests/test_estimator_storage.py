"""Saved models: what comes back, what replaces what, and files that are damaged or old."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from torch import nn

from comes.answers import Answers
from comes.errors import ComesError
from comes.estimator import CandidateClassifier, ImageClassifier, count_seen_rows, load_model
from comes.estimator import seen_rows as seen_rows_module
from comes.estimator.checksums import find_system_error
from comes.estimator.onnx_files import export_onnx
from comes.generation import case_b
from comes.models import ResNet
from comes.priors import ClassPriorEstimate
from comes.selection.thresholds import recalibrate_to_prior
from goldens import problems
from goldens.cases import WRITTEN
from quick_priors import quick_priors

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 5))
RELEVANT = X[:, :3] + 0.3 * RNG.normal(size=(150, 3)) > np.array([0.0, 0.5, 1.0])
CANDIDATES = case_b(RELEVANT, 0.5, seed=0)
PRIOR = RELEVANT.mean(axis=0)
FEATURES = pd.DataFrame(X, columns=pd.Index(list("abcde")))
DATA = Path(__file__).parent / "data"


def classifier(method: Any = "comes-hl", **options: Any) -> CandidateClassifier:
    defaults: dict[str, Any] = {"class_prior": PRIOR, "epochs": 1, "hidden": 8, "random_state": 0}
    return CandidateClassifier(method, **defaults | options)


@pytest.fixture(scope="module")
def fitted() -> CandidateClassifier:
    return classifier().fit(FEATURES, CANDIDATES)


@pytest.fixture(scope="module")
def saved(fitted: CandidateClassifier, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the model; tests that change files take a copy, `model`."""
    folder = tmp_path_factory.mktemp("saved") / "model"
    fitted.save(folder)
    return folder


@pytest.fixture
def model(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "model"))


def describe(model: Path, **changes: Any) -> None:
    """Change the description of a model."""
    path = model / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def save_and_load(clf: CandidateClassifier, folder: Path, **given: Any) -> CandidateClassifier:
    clf.save(folder / "model")
    return CandidateClassifier.load(folder / "model", **given)


def assert_same(loaded: CandidateClassifier, clf: CandidateClassifier, x: Any = X) -> None:
    for name in ("decision_function", "predict_proba", "predict"):
        np.testing.assert_array_equal(getattr(loaded, name)(x), getattr(clf, name)(x))


# What comes back


def test_a_loaded_model_predicts_what_the_saved_one_did(tmp_path: Path) -> None:
    for method, scale in (("comes-hl", "standard"), ("comes-rl", "maxabs"), ("bce", None)):
        clf = classifier(method, epochs=2, scale=scale).fit(X, CANDIDATES)
        loaded = save_and_load(clf, tmp_path)
        assert_same(loaded, clf)
        assert loaded.get_params(deep=False).keys() == clf.get_params(deep=False).keys()
        assert loaded.label_names_ == clf.label_names_
        assert loaded.history_ == clf.history_
        assert loaded.score(X, RELEVANT) == clf.score(X, RELEVANT)
        loaded.fit(X, CANDIDATES)  # and can be trained again


def test_names_priors_and_mode_come_back_and_nothing_random_is_drawn(
    fitted: CandidateClassifier, saved: Path
) -> None:
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    loaded = CandidateClassifier.load(saved)
    assert torch.rand(1) == expected
    assert loaded.feature_names == list("abcde")
    np.testing.assert_array_equal(loaded.class_prior_, fitted.class_prior_)
    assert not loaded.module_.training


def test_a_model_of_1_0_0_with_rates_by_instance_predicts_and_is_stored_whole(
    tmp_path: Path,
) -> None:
    """Its predictions are a golden; fitting it again needs another exclude_rate."""
    rows, relevant = problems.rows()
    old: Any = load_model(WRITTEN / "rows_bent")
    assert old.exclude_rate == "instance" and old.score_power_.shape == (4,)
    bent = recalibrate_to_prior(old._trained_scores(rows), old.score_power_)
    np.testing.assert_array_equal(old.decision_function(rows), bent)
    loaded = save_and_load(old, tmp_path)
    np.testing.assert_array_equal(loaded.score_power_, old.score_power_)
    np.testing.assert_array_equal(loaded.predict_proba(rows), old.predict_proba(rows))
    with pytest.raises(ComesError, match="cannot be written as ONNX. Fit it again"):
        export_onnx(loaded, tmp_path / "model.onnx")
    with pytest.raises(ComesError, match="Rates that depend on the instance were removed"):
        loaded.fit(rows, relevant)
    again = loaded.set_params(exclude_rate=None, epochs=1).fit(rows, relevant)
    assert again.score_power_ is None
    np.testing.assert_array_equal(again.decision_function(rows), again._trained_scores(rows))


def test_a_model_knows_whether_its_class_prior_was_estimated(tmp_path: Path) -> None:
    with quick_priors():
        clf: Any = classifier("likelihood", class_prior=None).fit(X, CANDIDATES)
    error, prior = clf.class_prior_error_, clf.class_prior_
    assert error is not None and error.shape == (3,) and (error > 0).all()
    np.testing.assert_array_equal(save_and_load(clf, tmp_path).class_prior_error_, error)
    clf.rates_ = replace(clf.rates_, class_prior_error=None)  # an earlier version
    old: Any = save_and_load(clf, tmp_path).class_prior_error_
    assert np.isnan(old).all()
    given = classifier("likelihood", class_prior=prior).fit(X, CANDIDATES)
    assert given.class_prior_error_ is None
    flags = ("ok", "never excluded", "never excluded")
    estimate = ClassPriorEstimate(prior, prior, prior, prior, error, flags)
    passed = classifier("likelihood", class_prior=estimate).fit(X, CANDIDATES)
    again = save_and_load(passed, tmp_path).class_prior_error_
    np.testing.assert_array_equal(again, [error[0], np.nan, np.nan])
    naive = classifier("bce", class_prior=None).fit(X, CANDIDATES)
    assert naive.class_prior_ is None and naive.class_prior_error_ is None


def test_a_calibration_is_stored_and_ends_with_the_next_fit(tmp_path: Path) -> None:
    clf = classifier("bce").fit(X[:75], CANDIDATES[:75])
    clf.calibrate(X[75:], relevant=RELEVANT[75:])
    assert_same(save_and_load(clf, tmp_path), clf)
    clf.fit(X, CANDIDATES)
    assert clf.calibration_ is None, "it belonged to the earlier weights"


def test_a_model_trained_elsewhere_runs_here(tmp_path: Path) -> None:
    clf = classifier(random_state=np.random.RandomState(0)).fit(X, CANDIDATES)
    clf.device = "cuda:7"
    loaded = save_and_load(clf, tmp_path)
    assert loaded.device == "auto"
    assert loaded.random_state is None
    assert loaded.predict(X).shape == (150, 3)


def test_training_rows_are_recognised_and_others_are_not(
    fitted: CandidateClassifier, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = np.vstack([X[140:], RNG.normal(size=(5, 5))])
    plain = classifier().fit(X, CANDIDATES)
    assert count_seen_rows(plain, others) == 10
    assert count_seen_rows(plain, others[10:]) == 0
    assert count_seen_rows(plain, X[::-1]) == 150
    assert count_seen_rows(plain, X + 1e-4) == 0
    assert count_seen_rows(plain, sparse.csr_array(others)) == 10
    assert count_seen_rows(CandidateClassifier.load(saved), FEATURES[100:]) == 50
    plain.seen_rows_ = None  # an earlier version
    assert count_seen_rows(plain, X) == 0
    monkeypatch.setattr(seen_rows_module, "MOST_ROWS", 20)
    assert count_seen_rows(classifier().fit(X, CANDIDATES), X) == 20


# Networks of one's own


class Own(nn.Module):
    def __init__(self, d: int, q: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(d, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, q))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.layers(x)
        return output


class Tied(Own):
    def __init__(self, d: int, q: int) -> None:
        super().__init__(d, q)
        self.again = self.layers


class Transposed(nn.Module):
    """A linear network whose weights lie across memory."""

    def __init__(self, d: int, q: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(q, d).t())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight


def test_a_network_of_ones_own_is_passed_again(tmp_path: Path) -> None:
    for own in (Tied, Transposed, Own):
        clf = classifier(model=own).fit(X, CANDIDATES)
        assert_same(save_and_load(clf, tmp_path, model=own), clf)
    with pytest.raises(ComesError, match=r"model of your own.*load\(path, model="):
        CandidateClassifier.load(tmp_path / "model")
    with pytest.raises(ComesError, match="do not fit the model"):
        CandidateClassifier.load(tmp_path / "model", model="mlp")


# Files


def test_a_model_is_two_files_without_pickle(saved: Path) -> None:
    assert sorted(path.name for path in saved.iterdir()) == ["model.json", "model.safetensors"]
    assert [path.name for path in saved.parent.iterdir()] == ["model"], "nothing is left beside it"


def test_saving_replaces_a_model_and_nothing_else(
    fitted: CandidateClassifier, model: Path, tmp_path: Path
) -> None:
    second = classifier(random_state=1).fit(X, CANDIDATES)
    second.save(model)
    assert_same(CandidateClassifier.load(model), second)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").touch()
    with pytest.raises(ComesError, match=r"photos exists and holds something else \(cat.jpg\)"):
        fitted.save(tmp_path / "photos")
    assert (tmp_path / "photos" / "cat.jpg").exists()


def test_every_bit_of_the_weights_counts(model: Path) -> None:
    path = model / "model.safetensors"
    whole = path.read_bytes()
    for place in (len(whole) - 1, len(whole) // 2, len(whole) - 100):
        rotten = bytearray(whole)
        rotten[place] ^= 1
        path.write_bytes(bytes(rotten))
        with pytest.raises(ComesError, match=r"model\.safetensors is damaged.*fit it again"):
            load_model(model)
    path.write_bytes(whole[:100])
    with pytest.raises(ComesError, match="damaged"):
        CandidateClassifier.load(model)
    path.write_bytes(whole)
    load_model(model)


def test_an_edited_description_is_noticed(model: Path) -> None:
    path = model / "model.json"
    whole = path.read_text()
    changes: list[dict[str, Any]] = [
        {"feature_names": ["e", "b", "c", "d", "a"]},
        {"label_names": ["blue", "green", "red"]},
        {"n_features": 4},
        {"checksums": 3},
    ]
    for change in changes:
        path.write_text(whole)
        describe(model, **change)
        with pytest.raises(ComesError, match=r"model\.json (was changed after|is damaged)"):
            load_model(model)
    for change in ({"parameters": {}}, {"history": 3}, {"label_names": None}):
        path.write_text(whole)
        describe(model, **change, checksums=None)  # of a model before there were checksums
        with pytest.raises(ComesError, match="damaged"):
            CandidateClassifier.load(model)
    path.write_text("{")
    with pytest.raises(ComesError, match="damaged"):
        CandidateClassifier.load(model)


def test_another_layout_and_a_model_without_checksums_load(
    fitted: CandidateClassifier, model: Path
) -> None:
    path = model / "model.json"
    described = json.loads(path.read_text())
    path.write_text(json.dumps(dict(reversed(described.items())), indent=3))
    assert_same(CandidateClassifier.load(model), fitted, FEATURES)
    del described["checksums"]
    path.write_text(json.dumps(described))
    assert_same(CandidateClassifier.load(model), fitted, FEATURES)


def test_what_is_not_a_model_or_of_another_format_is_refused(model: Path, tmp_path: Path) -> None:
    with pytest.raises(ComesError, match=r"is not a saved model: it has no model.json"):
        CandidateClassifier.load(tmp_path)
    describe(model, format=99, comes_version="7.0")
    with pytest.raises(ComesError, match=r"format 99.*written by comes 7\.0"):
        CandidateClassifier.load(model)


def test_an_error_of_the_system_is_found_in_a_message() -> None:
    error = find_system_error(
        "Error while serializing: I/O error: No space left on device (os error 28)"
    )
    assert error is not None and (error.errno, error.strerror) == (28, "No space left on device")
    assert find_system_error("invalid header") is None


# Models of earlier versions


def test_the_first_models_still_load() -> None:
    """Written by comes 0.1.0, with the scores they gave then."""
    before = DATA / "models_before_house"
    expected = json.loads((before / "scores.json").read_text(encoding="utf-8"))
    names = ["height", "width", "depth"]
    rows = pd.DataFrame(expected["rows"]["X"], columns=pd.Index(names))
    model = load_model(before / "rows")
    assert isinstance(model, CandidateClassifier)
    assert (model.feature_names, model.label_names_) == (names, ["sky", "sea"])
    assert model.class_prior_ is not None and model.class_prior_.tolist() == [0.4, 0.5]
    assert model.flip_rate_ is None and model.transition_ is None
    np.testing.assert_allclose(model.decision_function(rows), expected["rows"]["scores"], atol=1e-5)
    np.testing.assert_array_equal(model.predict(rows), expected["rows"]["predictions"])
    shape = (3, 16, 16, 3)
    images = np.random.default_rng(7).integers(0, 255, size=shape, dtype=np.uint8)
    own = ImageClassifier.load(before / "images", backbone=ResNet((1, 1, 1, 1), width=1))
    scores = own.decision_function(images)
    np.testing.assert_allclose(scores, expected["images"]["scores"], atol=1e-4)
    np.testing.assert_array_equal(own.predict(images), expected["images"]["predictions"])


@pytest.mark.parametrize("name", ["answers", "pairs"])
def test_models_before_weights_streams_and_tables_still_load(name: str, tmp_path: Path) -> None:
    """Written before there were weights, callbacks, calibration and mixed tables."""
    before = DATA / "models_before_tables"
    expected = json.loads((before / "scores.json").read_text(encoding="utf-8"))
    names = ["height", "width", "depth"]
    rows = pd.DataFrame(expected["X"], columns=pd.Index(names))
    model = load_model(before / name)
    assert isinstance(model, CandidateClassifier)
    assert model.feature_names == names
    assert model.label_names_ == (["sky", "sea"] if name == "answers" else ["0", "1"])
    assert model.calibration_ is None and model.callbacks is None and not model.warm_start
    found = expected[name]
    np.testing.assert_allclose(model.decision_function(rows), found["scores"], atol=1e-5)
    np.testing.assert_allclose(model.predict_proba(rows), found["probabilities"], atol=1e-5)
    np.testing.assert_array_equal(model.predict(rows), found["predictions"])
    again = save_and_load(model, tmp_path)
    np.testing.assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))
    again.set_params(threshold="auto")
    labels = np.array([[1, 0], [0, 1], [1, 1], [0, 1], [1, 0]], dtype=bool)
    said = Answers(no=~labels, yes=labels) if name == "answers" else Answers.from_candidates(labels)
    again.partial_fit(rows, answers=said)  # and goes on


def test_a_model_saved_before_there_were_thresholds_is_cut_at_its_level(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    clf = classifier("comes-rl").fit(X, CANDIDATES)
    clf.save(tmp_path / "model")
    tensors = load_file(tmp_path / "model" / "model.safetensors")
    del tensors["threshold"]
    save_file(tensors, tmp_path / "model" / "model.safetensors")
    describe(tmp_path / "model", checksums=None)
    loaded = CandidateClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), clf.predict(X))


def test_a_model_saved_before_there_were_several_networks_has_one(tmp_path: Path) -> None:
    for method in ("likelihood", "bce", "comes-hl"):
        clf = classifier(method, n_networks=1, dropout=0.0).fit(X, CANDIDATES)
        clf.save(tmp_path / "model")
        described = json.loads((tmp_path / "model" / "model.json").read_text())
        for name in ("dropout", "n_networks", "starts_at_prior"):
            del described["parameters"][name]
        described["parameters"] |= {"batch_size": 256, "flood_level": 0.0}
        describe(tmp_path / "model", parameters=described["parameters"], checksums=None)
        assert_same(CandidateClassifier.load(tmp_path / "model"), clf)
