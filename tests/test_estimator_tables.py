"""Tables with columns of any kind, as the input of the estimator."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from comes import estimate_class_prior
from comes.errors import ComesError, ComesWarning
from comes.estimator import CandidateClassifier, choose_classifier, cross_fit, fit_together
from comes.generation import case_b, generate
from comes.tables import ColumnEncoder
from mixed_tables import NAMES, make_table

FRAME, RELEVANT = make_table()
CANDIDATES = case_b(RELEVANT, exclude_rate=0.7, seed=0)
PRIOR = RELEVANT.mean(axis=0)


def classifier(**settings: Any) -> CandidateClassifier:
    known = {
        "class_prior": PRIOR,
        "random_state": 0,
        "epochs": 2,
        "hidden": 8,
        "learning_rate": 5e-3,
    }
    return CandidateClassifier(**{**known, **settings})


@pytest.fixture(scope="module")
def fitted() -> CandidateClassifier:
    return classifier(epochs=15, hidden=32, n_networks=1).fit(FRAME, CANDIDATES, label_names=NAMES)


def test_a_table_is_encoded_and_learned_from(fitted: CandidateClassifier) -> None:
    test, relevant = make_table(seed=1)
    assert fitted.score(test, relevant) > 0.9
    assert "ticket_id" not in list(fitted.feature_names_in_)
    encoder = fitted.encoder_
    assert {c.name for c in encoder.columns_ if not c.is_used} == {"ticket_id", "unit", "notes"}
    assert fitted.n_features_in_ == len(fitted.feature_names_in_) == 10


def test_columns_are_found_by_name(fitted: CandidateClassifier) -> None:
    expected = fitted.decision_function(FRAME)
    np.testing.assert_array_equal(fitted.decision_function(FRAME[FRAME.columns[::-1]]), expected)
    assert fitted.count_seen_rows(FRAME[FRAME.columns[::-1]]) == len(FRAME)
    with pytest.raises(ComesError, match="'body' is missing"):
        fitted.predict(FRAME.drop(columns="body"))
    with pytest.warns(ComesWarning, match="'more' is not known to the model"):
        fitted.predict(FRAME.assign(more=1))
    with pytest.raises(ComesError, match="trained on a table with the columns 'size'.*DataFrame"):
        fitted.predict(np.zeros((2, 10)))


def test_a_table_model_is_stored_without_pickle(
    fitted: CandidateClassifier, tmp_path: Path
) -> None:
    fitted.save(tmp_path / "model")
    loaded = CandidateClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.decision_function(FRAME), fitted.decision_function(FRAME))
    assert {path.suffix for path in (tmp_path / "model").iterdir()} == {".json", ".safetensors"}
    again = classifier(encoder=ColumnEncoder({"stars": "category"})).fit(FRAME, CANDIDATES)
    again.save(tmp_path / "model")
    loaded = CandidateClassifier.load(tmp_path / "model")
    assert loaded.encoder is not None and loaded.encoder.kinds == {"stars": "category"}
    copied = pickle.loads(pickle.dumps(again))
    np.testing.assert_array_equal(copied.predict(FRAME), again.predict(FRAME))


def test_complete_numbers_are_a_matrix() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    X["flag"] = rng.random(200) > 0.5
    S = case_b(X.to_numpy(dtype=float)[:, :2] > 0, exclude_rate=0.5, seed=0)
    settings: dict[str, Any] = {"epochs": 3, "class_prior": [0.5, 0.5]}
    as_frame = classifier(**settings).fit(X, S)
    as_matrix = classifier(**settings).fit(X.to_numpy(dtype=float), S)
    assert not hasattr(as_frame, "encoder_")
    expected = as_matrix.decision_function(X.to_numpy(dtype=float))
    np.testing.assert_array_equal(as_frame.decision_function(X), expected)
    np.testing.assert_array_equal(as_frame.decision_function(X[["flag", "c", "a", "b"]]), expected)
    with pytest.raises(ComesError, match="column 'a' is missing"):
        as_frame.predict(X.rename(columns={"a": "A"}))
    with pytest.raises(
        ComesError, match="'a' must hold numbers, as in training; got 'low' at row 1"
    ):
        as_frame.predict(X[:2].astype(object).assign(a=[0.5, "low"]))
    with pytest.raises(ComesError, match="NaN"):
        as_frame.predict(X.assign(a=np.nan))


def test_an_id_among_numbers_is_left_out() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    S = case_b(X.to_numpy() > 0, exclude_rate=0.5, seed=0)
    with_id = classifier(class_prior=[0.5, 0.5]).fit(X.assign(id=np.arange(200)), S)
    assert list(with_id.feature_names_in_) == ["a", "b"]
    np.testing.assert_array_equal(with_id.predict(X), with_id.predict(X.assign(id=7)))


def test_a_later_fit_forgets_the_table(fitted: CandidateClassifier) -> None:
    X = RELEVANT + np.random.default_rng(0).normal(size=RELEVANT.shape) / 2
    again = clone(fitted).fit(FRAME, CANDIDATES).fit(X, CANDIDATES)
    assert not hasattr(again, "encoder_") and again.n_features_in_ == 3
    assert again.predict(X).shape == CANDIDATES.shape


def test_settings_work_with_tables() -> None:
    settings: list[dict[str, Any]] = [
        {"early_stopping": True},
        {"threshold": "risk"},
        {"method": "comes-rl"},
    ]
    for given in settings:
        clf = classifier(epochs=1, **given).fit(FRAME, CANDIDATES)
        assert clf.predict(FRAME).shape == CANDIDATES.shape, given


def test_each_training_encodes_its_own_rows() -> None:
    frame = FRAME.assign(colour=np.where(np.arange(len(FRAME)) < 200, "red", "blue"))
    frame.loc[::7, "colour"] = "green"
    rows = [np.arange(200), np.arange(200, 400)]
    models: Any = fit_together([classifier(epochs=2)] * 2, frame, CANDIDATES, rows, n_jobs=1)
    levels = [
        next(part.levels for part in model.encoder_.parts_ if part.column == "colour")
        for model in models
    ]
    assert levels == [["green", "red"], ["blue", "green"]]


@pytest.mark.filterwarnings("ignore:column .* holds values:comes.errors.ComesWarning")
@pytest.mark.long
def test_choosing_and_crossing_work_with_tables() -> None:
    models = [classifier(method="comes-hl", epochs=epochs) for epochs in (1, 40)]
    (crossed,) = cross_fit(models[:1], FRAME, CANDIDATES, folds=2, n_jobs=1)
    assert np.isfinite(crossed.scores).all()
    choice = choose_classifier(models, FRAME, CANDIDATES, PRIOR, folds=2, n_jobs=1)
    assert choice.classifier.epochs == 40


@pytest.mark.long
def test_priors_and_processes_take_tables() -> None:
    estimate = estimate_class_prior(FRAME, CANDIDATES, random_state=0)
    assert np.abs(estimate.class_prior - PRIOR).max() < 0.25
    drawn = generate("instance", RELEVANT, FRAME, rate=0.5, seed=0)
    assert drawn.shape == RELEVANT.shape


def test_clean_rows_may_be_a_table() -> None:
    rows = np.arange(50)
    clf = classifier(class_prior=None, epochs=1).fit(
        FRAME[50:], CANDIDATES[50:], clean=(FRAME.iloc[rows], RELEVANT[rows])
    )
    assert clf.class_prior_ is not None
