"""Saved models: what comes back, what replaces what, and files that are damaged or old."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from torch import nn

from comes import AnswerRates, Answers, CandidateClassifier
from comes.errors import ComesError
from comes.estimator import export_onnx, inputs
from comes.estimator.prepare import OWN, as_plain
from comes.generation import case_b
from comes.methods import (
    BCE,
    CCMN,
    COMESHL,
    COMESRL,
    CTL,
    GDF,
    MLCL,
    COMESHLUnbiased,
    ComRank,
    CustomRisk,
    Likelihood,
)
from comes.priors import ClassPriorEstimate, RatesEstimate
from comes.selection.thresholds import recalibrate_to_prior
from goldens import problems

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 5))
RELEVANT = X[:, :3] + 0.3 * RNG.normal(size=(150, 3)) > np.array([0.0, 0.5, 1.0])
CANDIDATES = case_b(RELEVANT, 0.5, seed=0)
ANSWERS = Answers(no=~RELEVANT, yes=RELEVANT)
PRIOR = RELEVANT.mean(axis=0)
FEATURES = pd.DataFrame(X, columns=pd.Index(list("abcde")))
DATA = Path(__file__).parent / "data"
FIRST = DATA / "models_before_house"
WRITTEN = Path(__file__).parent / "goldens" / "written_by_1.0.0"


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


def describe(model: Path, source: Path | None = None, **changes: Any) -> None:
    """Change the description of a model, or that of another; ... leaves something out."""
    described = json.loads(((source or model) / "model.json").read_text()) | changes
    kept = {name: value for name, value in described.items() if value is not ...}
    (model / "model.json").write_text(json.dumps(kept))


def refuses(model: Path, message: str) -> None:
    with pytest.raises(ComesError, match=message):
        CandidateClassifier.load(model)


def save_and_load(clf: CandidateClassifier, folder: Path, **given: Any) -> CandidateClassifier:
    clf.save(folder / "model")
    return CandidateClassifier.load(folder / "model", **given)


def assert_same(loaded: CandidateClassifier, clf: CandidateClassifier, x: Any = X) -> None:
    for name in ("decision_function", "predict_proba", "predict"):
        np.testing.assert_array_equal(getattr(loaded, name)(x), getattr(clf, name)(x))


# What comes back


def test_a_loaded_model_predicts_what_the_saved_one_did(tmp_path: Path) -> None:
    cases = (("likelihood", "auto"), ("comes-hl", "dense"), ("comes-rl", "maxabs"), ("bce", None))
    for method, scale in cases:
        clf = classifier(method, epochs=2, scale=scale).fit(X, CANDIDATES)
        loaded = save_and_load(clf, tmp_path)
        assert_same(loaded, clf)
        assert loaded.label_names_ == clf.label_names_
        assert loaded.history_ == clf.history_
        assert loaded.score(X, RELEVANT) == clf.score(X, RELEVANT)
        for corrected in (False, True):
            found = loaded.risk(X, CANDIDATES, corrected=corrected)
            assert found == clf.risk(X, CANDIDATES, corrected=corrected)


def own_risk(scores: Any, candidates: Any) -> Any:
    return (scores * (1 - candidates.float())).mean() + scores.square().mean()


def own_optimizer(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.Adam(parameters, lr=1e-3)


PEOPLE = {"Ann": (np.full(3, 0.9), np.full(3, 0.6))}
RATES = AnswerRates(np.full(3, 0.8), np.array([0.7, 0.6, 0.5]), 0.01, PEOPLE)
EXCLUDED = AnswerRates(np.full(3, 0.5), np.zeros(3))  # of candidates
PAIR = np.array([0.8, 0.6])
METHODS_WITH_SETTINGS = [
    COMESHL(normaliser="batch"),
    COMESHLUnbiased(normaliser="batch", reduction="mean"),
    COMESRL(flood_level=1.5, reduction="sum"),
    CCMN(variant="ranking", flip_rate=0.3),
    CCMN(flip_rate=np.array([0.1, 0.2, 0.3])),
    CCMN(flip_rate="class_prior"),
    GDF(variant="all"),
    CTL(variant="unbiased"),
    MLCL(reduction="sum"),
    BCE(reduction="mean"),
    ComRank(variant="single"),
    Likelihood(uses_maybe=False, prior_weight=0.3),
]
# Parameters, and those that come back in another form.
PARAMETERS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    *(({"method": method}, {}) for method in METHODS_WITH_SETTINGS),
    ({"method": COMESHL()}, {"method": "comes-hl"}),  # which means the same
    ({"rates": {"no": 0.8, "yes": np.array([0.7, 0.6, 0.5]), "mistake": 0.01}}, {}),
    ({"rates": RATES}, {}),
    ({"rates": EXCLUDED}, {}),
    ({"rates": RatesEstimate(RATES, PRIOR, PRIOR, PAIR, PAIR, ("ok",) * 3)}, {}),
    ({"optimizer": {"name": "sgd", "momentum": 0.5, "cosine": False}}, {}),
    ({"optimizer": own_optimizer}, {"optimizer": OWN}),
    ({"optimizer": {"name": own_optimizer, "starts_at_prior": True}}, {}),
    ({"early_stopping": 0.3, "patience": 2, "threshold": "f1", "verbose": -1}, {}),
    ({"epochs": np.int64(1), "scale": None, "weight_decay": np.float32(0.5)}, {}),
    ({"device": "cpu", "random_state": np.random.RandomState(0)}, {"device": "auto"}),
]


@pytest.mark.filterwarnings("ignore::comes.errors.ComesWarning")
def test_every_parameter_comes_back_and_trains_as_before(tmp_path: Path) -> None:
    for given, changes in PARAMETERS:
        clf = classifier(**{"method": "likelihood"} | given)
        y = CANDIDATES if given.get("rates") in (None, EXCLUDED) else ANSWERS
        loaded = save_and_load(clf.fit(X, y), tmp_path)
        expected = as_plain(clf.get_params(deep=False)) | changes
        assert as_plain(loaded.get_params(deep=False)) == expected, given
        assert_same(loaded, clf)
        copied = clone(loaded)
        if OWN in str(expected):  # code is not stored
            with pytest.raises(ComesError, match=f"optimizer must be one of .*got '{OWN}'"):
                copied.fit(X, y)
        elif "random_state" not in given:
            np.testing.assert_array_equal(copied.fit(X, y).predict_proba(X), clf.predict_proba(X))


def test_a_risk_of_ones_own_is_set_again(tmp_path: Path) -> None:
    for own in (own_risk, CustomRisk(own_risk)):
        clf = classifier(own).fit(X, CANDIDATES)
        loaded = save_and_load(clf, tmp_path)
        stored = json.loads((tmp_path / "model" / "model.json").read_text())
        assert stored["parameters"]["method"] == OWN
        assert_same(loaded, clf)
        with pytest.raises(ComesError, match=r"not saved: set it again, set_params\(method="):
            clone(loaded).fit(X, CANDIDATES)
        assert_same(loaded.set_params(method=own_risk).fit(X, CANDIDATES), clf)


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


def test_rates_of_people_and_of_mistakes_come_back(tmp_path: Path) -> None:
    clf = classifier("likelihood", rates=RATES).fit(X, ANSWERS)
    loaded = save_and_load(clf, tmp_path)
    assert loaded.rates_.mistake_rate == 0.01
    assert list(loaded.people_rates_) == list(clf.people_rates_) == ["Ann"]
    np.testing.assert_array_equal(loaded.people_rates_["Ann"], PEOPLE["Ann"])
    assert loaded.score(X, ANSWERS) == clf.score(X, ANSWERS)


def test_a_model_knows_whether_its_class_prior_was_estimated(tmp_path: Path) -> None:
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


def test_a_model_trained_elsewhere_runs_here(fitted: CandidateClassifier, tmp_path: Path) -> None:
    elsewhere = clone(fitted).fit(X, CANDIDATES).set_params(device="cuda:7")
    assert save_and_load(elsewhere, tmp_path).predict(X).shape == (150, 3)


def test_training_rows_are_recognised_and_others_are_not(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = np.vstack([X[140:], RNG.normal(size=(5, 5))])
    plain = classifier().fit(X, CANDIDATES)
    rows = [(others, 10), (others[10:], 0), (X[::-1], 150), (X + 1e-4, 0)]
    for some, n_seen in [*rows, (sparse.csr_array(others), 10)]:
        assert plain.count_seen_rows(some) == n_seen
    assert CandidateClassifier.load(saved).count_seen_rows(FEATURES[100:]) == 50
    plain.seen_rows_ = None  # an earlier version
    assert plain.count_seen_rows(X) == 0
    monkeypatch.setattr(inputs, "MOST_REMEMBERED", 20)
    assert classifier().fit(X, CANDIDATES).count_seen_rows(X) == 20


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
        loaded = save_and_load(clf, tmp_path, model=own)
        assert_same(loaded, clf)
        assert clone(loaded).model is own
    refuses(tmp_path / "model", r"model of your own.*load\(path, model=")
    with pytest.raises(ComesError, match="do not fit the network"):
        CandidateClassifier.load(tmp_path / "model", model="mlp")


# Files


def test_a_model_is_two_files_without_pickle(saved: Path) -> None:
    assert sorted(path.name for path in saved.iterdir()) == ["model.json", "model.safetensors"]
    assert [path.name for path in saved.parent.iterdir()] == ["model"], "nothing is left beside it"


def test_both_files_have_the_mode_that_the_umask_says(
    fitted: CandidateClassifier, tmp_path: Path
) -> None:
    for umask, mode in ((0o022, 0o644), (0o077, 0o600)):
        before = os.umask(umask)
        try:
            fitted.save(tmp_path / "model")
        finally:
            os.umask(before)
        modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "model").iterdir()}
        assert modes == {"model.json": mode, "model.safetensors": mode}


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
        refuses(model, r"model\.safetensors is damaged.*fit it again")
    path.write_bytes(whole[:100])
    refuses(model, "damaged one: model.safetensors cannot be read")
    path.write_bytes(whole)
    CandidateClassifier.load(model)


def test_a_description_that_is_edited_or_has_no_checksums_is_refused(
    saved: Path, model: Path, tmp_path: Path
) -> None:
    written = Path(shutil.copytree(WRITTEN / "rows", tmp_path / "of 1.0.0"))
    edited = r"model\.json was changed after it was saved.*Take another copy"
    damaged = r"model\.json is damaged: its checksums are .*Take another copy"
    changes: list[tuple[dict[str, Any], str]] = [
        ({"feature_names": ["e", "b", "c", "d", "a"]}, edited),
        ({"label_names": ["blue", "green", "red"]}, edited),
        ({"n_features": 4}, edited),
        ({"checksums": {}}, "damaged"),
        *(({"checksums": wrong}, damaged) for wrong in (3, None, ...)),
    ]
    for change, message in changes:
        for place, source in ((model, saved), (written, WRITTEN / "rows")):
            describe(place, source, **change)
            refuses(place, message)
    describe(model, saved, checksums=..., comes_version="0.1.0")
    refuses(model, damaged)  # no version before 1.0.0 wrote format 2


def test_a_description_without_checksums_of_an_early_version_is_read_with_care(
    tmp_path: Path,
) -> None:
    model = Path(shutil.copytree(FIRST / "rows", tmp_path / "model"))
    wrong: list[dict[str, Any]] = [{"parameters": {}}, {"history": 3}, {"label_names": None}]
    for change in wrong:
        describe(model, FIRST / "rows", **change)
        refuses(model, "damaged")
    describe(model, FIRST / "rows", checksums=None)
    refuses(model, "damaged: its checksums are None")


def test_what_is_no_description_is_refused_at_once(model: Path) -> None:
    path = model / "model.json"
    for text, message in (
        ("{", "damaged one: model.json cannot be read"),
        ("[" * 200_000, "damaged one: model.json cannot be read"),
        ("[]", "it names no format"),
        ("{}", "it names no format"),
    ):
        path.write_text(text)
        refuses(model, message)
    path.unlink()
    os.mkfifo(path)  # reading it would wait for ever
    refuses(model, r"is not a saved model: it has no model.json. Give the folder")
    path.unlink()
    refuses(model, r"is not a saved model: it has no model.json. Give the folder")


def test_another_layout_loads_and_another_format_does_not(
    fitted: CandidateClassifier, model: Path
) -> None:
    path = model / "model.json"
    described = json.loads(path.read_text())
    path.write_text(json.dumps(dict(reversed(described.items())), indent=3))
    assert_same(CandidateClassifier.load(model), fitted, FEATURES)
    describe(model, format=99, comes_version="7.0")
    refuses(model, r"format 99; this version of comes reads 1 and 2. .*written by comes 7\.0")


# Models of earlier versions


OF_1_0_0: dict[str, Any] = {
    "model": "mlp",
    "hidden": 6,
    "epochs": 3,
    "batch_size": 32,
    "weight_decay": 1e-4,
    "threshold": "auto",
    "early_stopping": False,
    "patience": None,
    "device": "auto",
    "random_state": 0,
    "require_candidates": False,
    "verbose": -1,
    "callbacks": None,
    "warm_start": False,
    "encoder": None,
    "rates": None,
}
LIKELIHOOD = OF_1_0_0 | {
    "method": "likelihood",
    "dropout": 0.5,
    "n_networks": 2,
    "optimizer": {"name": "adam", "cosine": False, "starts_at_prior": True},
    "learning_rate": 5e-3,
    "scale": "auto",
}
PARAMETERS_OF_1_0_0 = {
    "rows": OF_1_0_0
    | {
        "method": COMESRL(flood_level=0.0),
        "class_prior": [0.35, 0.4, 0.3, 0.45],
        "dropout": 0.0,
        "n_networks": 1,
        "optimizer": {"name": "sgd", "starts_at_prior": False},
        "learning_rate": 0.05,
        "scale": "dense",
    },
    "rows_bent": LIKELIHOOD
    | {"class_prior": [0.2, 0.3, 0.15, 0.3], "rates": {"exclude": "instance"}},
    "table": LIKELIHOOD
    | {"class_prior": [0.5, 0.3, 0.5], "rates": {"no": 0.75, "yes": 0.7}, "threshold": "f1"},
}


@pytest.mark.parametrize("name", PARAMETERS_OF_1_0_0)
def test_parameters_of_1_0_0_are_in_their_new_places(name: str) -> None:
    """What these models predict is a golden."""
    old = CandidateClassifier.load(WRITTEN / name)
    found, expected = old.get_params(deep=False), PARAMETERS_OF_1_0_0[name]
    assert found.keys() == expected.keys()
    for parameter, value in expected.items():
        if parameter == "encoder" and name == "table":
            assert repr(found[parameter]) == "ColumnEncoder()"
        else:
            assert as_plain(found[parameter]) == as_plain(value), parameter
    assert clone(old).get_params(deep=False).keys() == found.keys()
    assert old.method_.name == ("comes-rl" if name == "rows" else "likelihood")
    assert (old.rates_.mistake_rate, old.people_rates_) == (0.0, {})


def test_a_model_of_1_0_0_with_rates_by_instance_predicts_and_is_stored_whole(
    tmp_path: Path,
) -> None:
    """Fitting it again needs other rates."""
    rows, relevant = problems.rows()
    old: Any = CandidateClassifier.load(WRITTEN / "rows_bent")
    assert old.score_power_.shape == (4,)
    bent = recalibrate_to_prior(old._trained_scores(rows), old.score_power_)
    np.testing.assert_array_equal(old.decision_function(rows), bent)
    loaded = save_and_load(old, tmp_path)
    np.testing.assert_array_equal(loaded.score_power_, old.score_power_)
    assert_same(loaded, old, rows)
    with pytest.raises(ComesError, match="cannot be written as ONNX. Fit it again"):
        export_onnx(loaded, tmp_path / "model.onnx")
    with pytest.raises(ComesError, match="Rates that depend on the instance were removed"):
        loaded.fit(rows, relevant)
    again = loaded.set_params(rates=None, epochs=1).fit(rows, relevant)
    assert again.score_power_ is None
    np.testing.assert_array_equal(again.decision_function(rows), again._trained_scores(rows))


@pytest.mark.parametrize("name", ["rows", "answers", "pairs"])
def test_models_before_1_0_0_still_load(name: str, tmp_path: Path) -> None:
    """With the scores they gave then; two of them know nothing of weights, streams and tables."""
    before = FIRST if name == "rows" else DATA / "models_before_tables"
    stored = json.loads((before / "scores.json").read_text(encoding="utf-8"))
    expected, features = stored[name], (stored[name] if name == "rows" else stored)["X"]
    names = ["height", "width", "depth"]
    rows = pd.DataFrame(features, columns=pd.Index(names))
    old = CandidateClassifier.load(before / name)
    assert old.feature_names == names
    assert old.label_names_ == (["0", "1"] if name == "pairs" else ["sky", "sea"])
    assert old.calibration_ is None and old.callbacks is None and not old.warm_start
    np.testing.assert_allclose(old.decision_function(rows), expected["scores"], atol=1e-5)
    np.testing.assert_array_equal(old.predict(rows), expected["predictions"])
    if name == "rows":
        assert old.class_prior_ is not None and old.class_prior_.tolist() == [0.4, 0.5]
        assert old.flip_rate_ is None and old.transition_ is None
    else:
        found = old.predict_proba(rows)
        np.testing.assert_allclose(found, expected["probabilities"], atol=1e-5)
    again = save_and_load(old, tmp_path)
    assert_same(again, old, rows)
    labels = np.resize([[1, 0], [0, 1], [1, 1], [0, 1], [1, 0]], (len(rows), 2)).astype(bool)
    y = Answers(no=~labels, yes=labels) if name == "answers" else Answers.from_candidates(labels)
    again.set_params(threshold="auto").partial_fit(rows, answers=y)  # and goes on


def test_a_model_saved_before_there_were_thresholds_is_cut_at_its_level(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from comes.estimator import storage

    clf = classifier("comes-rl", threshold="half").fit(X, CANDIDATES)
    monkeypatch.setattr(storage, "ARRAYS", ("score_offset_",))
    clf.save(tmp_path / "model")
    monkeypatch.undo()
    loaded = CandidateClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), clf.predict(X))


def test_a_model_saved_before_there_were_several_networks_has_one(tmp_path: Path) -> None:
    for method in ("likelihood", "bce", "comes-hl"):
        clf = classifier(method, model="mlp", n_networks=1, dropout=0.0).fit(X, CANDIDATES)
        clf.save(tmp_path / "model")
        stored = json.loads((FIRST / "rows" / "model.json").read_text())
        parameters = stored["parameters"] | {"method": method, "hidden": 8, "batch_size": 256}
        old = {"format": 1, "comes_version": "0.1.0", "parameters": parameters}
        describe(tmp_path / "model", **old, network=..., checksums=...)
        assert_same(CandidateClassifier.load(tmp_path / "model"), clf)


def test_what_predictions_are_comes_back_and_what_only_trained_is_left_out(tmp_path: Path) -> None:
    """In 1.0.0 both were parameters of every method."""
    clf = classifier("bce").set_output(transform="pandas").fit(FEATURES, CANDIDATES)
    loaded = save_and_load(clf, tmp_path)
    assert list(loaded.predict(FEATURES).columns) == ["0", "1", "2"]
    stored = json.loads((FIRST / "rows" / "model.json").read_text())["parameters"]
    own = {"method": "bce", "hidden": 8, "output": "pandas", "uses_maybe": False}
    old = {"format": 1, "comes_version": "0.1.0", "parameters": stored | own}
    describe(tmp_path / "model", **old, output=..., checksums=...)
    loaded = CandidateClassifier.load(tmp_path / "model")
    pd.testing.assert_frame_equal(loaded.predict(FEATURES), clf.predict(FEATURES))
