"""The default networks and the trees of a `CorrectedClassifier`, with one half of the say each."""

import json
import os
import pickle
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from comes import Answers, CandidateClassifier, CorrectedClassifier, load_model
from comes.answers.annotators import LongAnswers
from comes.datasets import ReadOptions, open_shards
from comes.estimator import cross_fit, export_onnx, fit_together, together
from comes.estimator import inputs as estimator_inputs
from comes.estimator.prepare import prepare
from comes.generation import independent, simulate_answers
from comes.selection import choose_thresholds
from comes.selection.thresholds import cut_as_expected
from comes.workflows.fit import fit_model
from command_line import Run, command_runner
from mixed_tables import make_table
from refusals import refused

N = 200
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4))
RELEVANT = X[:, :3] + 0.5 * RNG.normal(size=(N, 3)) > np.array([0.0, 0.3, 0.8])
PRIOR = RELEVANT.mean(axis=0)
CANDIDATES = independent(RELEVANT, exclude_rate=0.5, seed=0)
ANSWERS = simulate_answers(RELEVANT, asked_rate=0.6, no_rate=0.9, yes_rate=0.7, seed=0)
EXCLUDE: dict[str, Any] = {"class_prior": PRIOR, "rates": {"exclude": 0.5}}
SURE: dict[str, Any] = {"class_prior": PRIOR, "rates": {"no": 0.9, "yes": 0.7}}
TIMES = np.resize([0.0, 1.0, 2.0, 5.0], N)


@pytest.fixture(autouse=True)
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("comes.estimator.corrected.N_TREES", 8)


def make(model: str = "blend", **settings: Any) -> CandidateClassifier:
    given: dict[str, Any] = {"epochs": 2, "hidden": 8, "random_state": 0, "device": "cpu"}
    return CandidateClassifier(model=model, verbose=-1, **given | settings)


@pytest.fixture(scope="module")
def fitted() -> CandidateClassifier:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("comes.estimator.corrected.N_TREES", 8)
        return make(**EXCLUDE).fit(X, CANDIDATES)


def assert_mean(blend: Any, networks: Any, trees: Any, rows: Any = X) -> None:
    """Check that probabilities are the mean of two that differ."""
    of_networks, of_trees = networks.predict_proba(rows), trees.predict_proba(rows)
    assert np.abs(of_networks - of_trees).max() > 0.05
    expected = (of_networks + of_trees) / 2
    np.testing.assert_allclose(blend.predict_proba(rows), expected, atol=1e-6)
    np.testing.assert_allclose(blend.decision_function(rows), logit(expected), atol=1e-4)


def assert_same(one: Any, other: Any, rows: Any = X) -> None:
    for name in ("decision_function", "predict_proba", "predict"):
        np.testing.assert_array_equal(getattr(one, name)(rows), getattr(other, name)(rows))


# Probabilities


@pytest.mark.parametrize("kind", ["candidates", "answers", "ticked", "answers of people"])
def test_probabilities_are_the_mean_of_those_of_networks_and_of_trees(kind: str) -> None:
    said: list[tuple[int, int, str, str]] = []
    for seed, person in enumerate(["ann", "bob"]):
        answers = simulate_answers(RELEVANT, asked_rate=0.6, no_rate=0.9, yes_rate=0.7, seed=seed)
        words = np.array(["", "no", "yes", "maybe"])[answers.codes]
        said += [(i, j, words[i, j], person) for i, j in zip(*words.nonzero(), strict=True)]
    people = Answers.from_long(LongAnswers.read(*zip(*said, strict=True)), RELEVANT.shape)
    given, known = {
        "candidates": (Answers.from_candidates(CANDIDATES), EXCLUDE),
        "answers": (ANSWERS, SURE),
        "ticked": (Answers.from_positives(RELEVANT & (X[:, :3] > 0.5)), {"rates": {"yes": 0.6}}),
        "answers of people": (people, SURE),
    }[kind]
    blend = make(**known).fit(X, given)
    networks = make("wide_and_deep", **known).fit(X, given)
    trees = CorrectedClassifier(random_state=0, **known).fit(X, given)
    assert_mean(blend, networks, trees)
    assert clone(blend).fit(X, given).trees_ is not blend.trees_
    assert networks.trees_ is None


def test_rates_that_are_estimated_are_those_of_both() -> None:
    blend, networks = (make(model).fit(X, CANDIDATES) for model in ("blend", "auto"))
    assert blend.trees_ is not None and blend.no_rate_ is not None
    assert blend.trees_.rates_ is blend.rates_
    np.testing.assert_array_equal(blend.no_rate_, networks.no_rate_)
    assert_mean(blend, networks, CorrectedClassifier(random_state=0).fit(X, CANDIDATES))


def test_scores_stay_finite_where_both_are_sure(fitted: CandidateClassifier) -> None:
    sure = np.array([[-1e4, 1e4, 0.0]], dtype=np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CorrectedClassifier, "score_rows", lambda own, X: sure.astype(float))
        found = fitted._blend(sure, X[:1])
    assert found.dtype == np.float32
    np.testing.assert_allclose(expit(found.astype(float)), [[1e-7, 1 - 1e-7, 0.5]], atol=2e-8)


def test_rows_with_weights() -> None:
    rows = TIMES > 0  # the rest is left out of both
    blend = make(**EXCLUDE).fit(X, CANDIDATES, sample_weight=TIMES)
    networks = make("wide_and_deep", **EXCLUDE).fit(X, CANDIDATES, sample_weight=TIMES)
    trees = CorrectedClassifier(random_state=0, **EXCLUDE)
    trees.fit(X[rows], CANDIDATES[rows], sample_weight=TIMES[rows])
    assert_mean(blend, networks, trees)
    unweighted = make(**EXCLUDE).fit(X[rows], CANDIDATES[rows])
    assert np.abs(unweighted.predict_proba(X) - blend.predict_proba(X)).max() > 0.02


def test_sparse_rows_are_scored_as_dense_ones() -> None:
    some = np.where(np.abs(X) > 0.7, X, 0)
    of_sparse = make(**EXCLUDE).fit(sparse.csr_array(some), CANDIDATES)
    networks = make("wide_and_deep", **EXCLUDE).fit(sparse.csr_matrix(some), CANDIDATES)
    trees = CorrectedClassifier(random_state=0, **EXCLUDE).fit(sparse.csr_array(some), CANDIDATES)
    assert_mean(of_sparse, networks, trees, sparse.csr_array(some))
    found = of_sparse.predict_proba(sparse.csr_array(some))
    np.testing.assert_allclose(of_sparse.predict_proba(some), found, atol=1e-5)


def test_a_table_with_words_is_encoded_once_for_both() -> None:
    table, relevant = make_table(N)
    known: dict[str, Any] = {"class_prior": relevant.mean(axis=0), "rates": {"exclude": 0.5}}
    candidates = independent(relevant, exclude_rate=0.5, seed=0)
    blend = make(**known).fit(table, candidates)
    networks = make("wide_and_deep", **known).fit(table, candidates)
    trees = CorrectedClassifier(random_state=0, **known).fit(table, candidates)
    assert_mean(blend, networks, trees, table)
    columns = list(RNG.permutation(table.columns))
    assert_same(blend, blend, table[columns])
    np.testing.assert_array_equal(blend.predict(table[columns]), blend.predict(table))


# Early stopping and thresholds


@pytest.mark.parametrize("weight", [None, 1 + TIMES])
def test_rows_that_are_held_out_are_held_out_of_the_trees(weight: Any) -> None:
    settings: dict[str, Any] = {"early_stopping": 0.25, "epochs": 3, **EXCLUDE}
    answers = Answers.from_candidates(CANDIDATES, ["a", "b", "c"])
    training = prepare(make(**settings), X, answers, weight=weight)
    assert training.held_out is not None
    rows, held = training.rows, training.held_out.rows
    assert len(held) == N // 4
    np.testing.assert_array_equal(np.sort(np.append(rows, held)), np.arange(N))
    np.testing.assert_array_equal(training.held_out.answers.codes, answers[held].codes)
    blend = make(**settings).fit(X, answers, sample_weight=weight)
    networks = make("wide_and_deep", **settings).fit(X, answers, sample_weight=weight)
    own = None if weight is None else weight[rows]
    trees = CorrectedClassifier(random_state=0, **EXCLUDE)
    trees.fit(X[rows], answers[rows], sample_weight=own)
    assert_mean(blend, networks, trees)
    # The usual threshold; the trees know the rows that they learned from by heart.
    alone = blend._score_scaled(blend.scaling_(X[rows])).numpy()
    cut = cut_as_expected(alone, PRIOR)
    np.testing.assert_allclose(blend.threshold_, cut, atol=1e-6)
    assert blend.history_.validation == networks.history_.validation


def test_thresholds_are_learned_from_blended_scores_of_held_out_rows() -> None:
    clf = make(early_stopping=0.4, threshold="f1", **EXCLUDE).fit(X, CANDIDATES)
    training = prepare(clf, X, Answers.from_candidates(CANDIDATES, clf.label_names_))
    assert training.held_out is not None
    held, scores = training.held_out.rows, clf.decision_function(X)
    cut = choose_thresholds(scores[held], CANDIDATES[held], PRIOR, "f1")
    np.testing.assert_allclose(clf.threshold_, cut, atol=1e-6)


def test_thresholds_are_learned_by_blends_of_other_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    crossing = together.cross_fit

    def watch(classifiers: Any, *rest: Any, **given: Any) -> Any:
        found = crossing(classifiers, *rest, **given)
        calls.append((classifiers, found))
        return found

    monkeypatch.setattr(together, "cross_fit", watch)
    clf = make(threshold="f1", **EXCLUDE).fit(X, CANDIDATES)
    (((one,), (crossed,)),) = calls
    assert one.model == "blend" and one.threshold == "half"
    cut = choose_thresholds(crossed.scores, CANDIDATES, PRIOR, "f1")
    np.testing.assert_allclose(clf.threshold_, cut, atol=1e-6)
    scores = clf.decision_function(X)
    np.testing.assert_array_equal(clf.predict(X), scores > cut)
    assert np.abs(crossed.scores - scores).max() > 0.1, "rows are scored without them"


def test_thresholds_and_priors_of_a_clean_sample() -> None:
    clf = make(threshold="risk", **EXCLUDE).fit(
        X[:120], CANDIDATES[:120], clean=(X[120:], RELEVANT[120:])
    )
    scores = clf.decision_function(X[120:])
    cut = choose_thresholds(scores, RELEVANT[120:], RELEVANT[120:].mean(axis=0), "risk")
    np.testing.assert_allclose(clf.threshold_, cut, atol=1e-6)


# What else a classifier does


def test_the_best_labels_calibration_and_judgement(fitted: CandidateClassifier) -> None:
    clf = pickle.loads(pickle.dumps(fitted))
    assert_same(clf, fitted)
    top = clf.predict_top(X, 3)
    scores = clf.decision_function(X)
    np.testing.assert_allclose(top.scores, -np.sort(-scores, axis=1), atol=1e-6)
    np.testing.assert_allclose(top.to_csr().toarray(), clf.predict_proba(X), atol=1e-6)
    assert clf.score(X, RELEVANT) > 0.7
    networks = make("wide_and_deep", **EXCLUDE).fit(X, CANDIDATES)
    assert clf.risk(X, CANDIDATES) != pytest.approx(networks.risk(X, CANDIDATES))
    clf.calibrate(X + 1e-3, relevant=RELEVANT)
    np.testing.assert_array_equal(clf.decision_function(X), scores)
    slope, level = clf.calibration_.slope, clf.calibration_.level
    np.testing.assert_allclose(clf.predict_proba(X), expit(scores * slope + level), atol=1e-6)
    assert clf.count_seen_rows(X) == N


def test_scores_of_parts_are_those_of_the_whole(fitted: CandidateClassifier) -> None:
    parts = list(fitted._stream_scores(X, 90))
    assert [len(part) for part in parts] == [90, 90, 20]
    np.testing.assert_array_equal(torch.cat(parts).numpy(), fitted.decision_function(X))


def test_grids_and_several_fits_at_once() -> None:
    grid = GridSearchCV(make(**EXCLUDE), {"hidden": [4, 8]}, cv=2, scoring=None)
    grid.fit(X, RELEVANT, candidates=CANDIDATES)
    assert grid.best_estimator_.trees_ is not None
    rows = np.arange(N // 2)
    alone = make(**EXCLUDE).fit(X[rows], CANDIDATES[rows])
    (one, two) = fit_together([make(**EXCLUDE)] * 2, X, CANDIDATES, [rows, rows + N // 2])
    assert_same(one, alone)
    assert not np.array_equal(two.predict_proba(X), alone.predict_proba(X))
    (crossed,) = cross_fit([make(**EXCLUDE)], X, CANDIDATES, folds=2)
    assert np.isfinite(crossed.scores).all()


def test_a_warm_start_goes_on_with_the_networks_and_grows_new_trees() -> None:
    clf = make(warm_start=True, **EXCLUDE).fit(X[: N // 2], CANDIDATES[: N // 2])
    first, before = clf.trees_, clf.module_.state_dict()["weight"].clone()
    clf.fit(X[N // 2 :], CANDIDATES[N // 2 :])
    trees = CorrectedClassifier(random_state=0, **EXCLUDE).fit(X[N // 2 :], CANDIDATES[N // 2 :])
    assert clf.trees_ is not None and clf.trees_ is not first
    np.testing.assert_array_equal(clf.trees_.score_rows(X), trees.decision_function(X))
    moved = float((clf.module_.state_dict()["weight"] - before).abs().max())
    assert 0 < moved < 0.1, "a few steps from where it was"


def test_a_fit_without_trees_forgets_those_of_a_fit_before() -> None:
    clf = make(**EXCLUDE).fit(X, CANDIDATES)
    clf.set_params(model="auto").fit(X, CANDIDATES)
    assert clf.trees_ is None
    assert_same(clf, make("auto", **EXCLUDE).fit(X, CANDIDATES))


# Refusals


def test_what_has_no_trees_is_refused(
    fitted: CandidateClassifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for method in ("bce", "comes-hl", "comes-rl"):
        with refused(rf"corrects trees by the rates of method 'likelihood'.*{method}.*'auto'"):
            make(method=method).fit(X, CANDIDATES)
    with refused("partial_fit sees every row once, so it trains networks alone.*model='auto'"):
        make(**EXCLUDE).partial_fit(X, CANDIDATES)
    table = pd.DataFrame(X).add_prefix("x").assign(sea=CANDIDATES[:, 0].astype(int))
    table.to_parquet(tmp_path / "rows.parquet", index=False)
    with refused("fit_stream trains networks alone, and model='blend' has trees"):
        make(**EXCLUDE).fit_stream(open_shards(tmp_path / "rows.parquet", labels=("sea",)))
    with refused("a blend has trees, which are not written as ONNX. Fit with model='auto'"):
        export_onnx(fitted, tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()
    monkeypatch.setattr(estimator_inputs, "MANY_PAIRS", 10)
    with refused("on a matrix of all pairs; got method 'likelihood' and 3 labels"):
        make(rates={"yes": 0.6}).fit(X, Answers.from_positives(sparse.csr_array(RELEVANT)))


# Files


@pytest.fixture(scope="module")
def saved(fitted: CandidateClassifier, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("skops")
    folder = tmp_path_factory.mktemp("saved") / "model"
    fitted.save(folder)
    return folder


@pytest.fixture
def model(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "model"))


@pytest.mark.needs("skops")
def test_a_saved_blend_gives_the_same_numbers(
    fitted: CandidateClassifier, saved: Path, tmp_path: Path
) -> None:
    names = ["model.json", "model.safetensors", "trees.skops"]
    assert sorted(path.name for path in saved.iterdir()) == names
    loaded = load_model(saved)
    assert isinstance(loaded, CandidateClassifier) and loaded.trees_ is not None
    assert_same(loaded, fitted)
    assert loaded.get_params()["model"] == "blend"
    assert_same(clone(loaded).fit(X, CANDIDATES), fitted)
    before = os.umask(0o077)
    try:
        loaded.save(tmp_path / "again")
    finally:
        os.umask(before)
    assert {p.stat().st_mode & 0o777 for p in (tmp_path / "again").iterdir()} == {0o600}
    assert_same(CandidateClassifier.load(tmp_path / "again"), fitted)
    networks = make("auto", **EXCLUDE).fit(X, CANDIDATES)
    networks.save(tmp_path / "again")  # whose trees are gone
    assert sorted(path.name for path in (tmp_path / "again").iterdir()) == names[:2]
    assert_same(CandidateClassifier.load(tmp_path / "again"), networks)


@pytest.mark.needs("skops")
def test_trees_that_are_missing_or_damaged_are_refused(model: Path) -> None:
    path = model / "trees.skops"
    whole = path.read_bytes()
    rotten = bytearray(whole)
    rotten[len(whole) // 2] ^= 1
    for wrong in (bytes(rotten), whole[:100], b""):
        path.write_bytes(wrong)
        with refused(r"trees\.skops is missing or damaged. Take another copy of the model"):
            CandidateClassifier.load(model)
    path.unlink()
    with refused(r"trees\.skops is missing or damaged"):
        CandidateClassifier.load(model)
    path.write_bytes(whole)
    described = json.loads((model / "model.json").read_text())
    del described["trees"]
    (model / "model.json").write_text(json.dumps(described))
    with refused("was changed after it was saved"):
        CandidateClassifier.load(model)


@pytest.mark.needs("skops")
def test_trees_of_another_blend_are_refused(model: Path, tmp_path: Path) -> None:
    """A sound file, whose numbers are not those that were saved."""
    make(**EXCLUDE, epochs=1).set_params(random_state=1).fit(X, CANDIDATES).save(tmp_path / "other")
    shutil.copy(tmp_path / "other" / "trees.skops", model / "trees.skops")
    with refused(r"trees\.skops is missing or damaged"):
        CandidateClassifier.load(model)


@pytest.mark.needs("skops")
def test_what_was_fitted_is_stored_whatever_the_next_fit_shall_be(tmp_path: Path) -> None:
    blend, networks = (make(model, **EXCLUDE).fit(X, CANDIDATES) for model in ("blend", "auto"))
    for clf, other in ((blend, "auto"), (networks, "blend")):
        expected = clf.predict_proba(X)
        clf.set_params(model=other).save(tmp_path / "model")
        loaded = CandidateClassifier.load(tmp_path / "model")
        np.testing.assert_array_equal(loaded.predict_proba(X), expected)
        assert loaded.model == other


def test_without_skops_a_model_that_is_to_be_saved_is_not_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pd.DataFrame(X).add_prefix("x").assign(sea=CANDIDATES[:, 0].astype(int))
    table.to_csv(tmp_path / "rows.csv", index=False)
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setattr(CandidateClassifier, "fit", lambda *_, **__: pytest.fail("it was trained"))
    settings = {"model": "blend", "epochs": 1}
    with refused(r"need skops.*pip install 'comes\[trees\]'"):
        fit_model(
            tmp_path / "rows.csv",
            settings,
            reading=ReadOptions(labels=["sea"]),
            output=tmp_path / "model",
        )
    assert not (tmp_path / "model").exists()


# The command line


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    return command_runner(monkeypatch, capsys)


@pytest.mark.needs("skops")
def test_a_blend_on_the_command_line(run: Run, tmp_path: Path) -> None:
    table = pd.DataFrame(X).add_prefix("x")
    for label in range(3):
        table[f"maybe_{label}"] = CANDIDATES[:, label].astype(int)
    table.to_csv("rows.csv", index=False)
    how = ("--model", "blend", "--set", "exclude_rate=0.5", "--set", "hidden=8", "--epochs", "2")
    fitted = run("fit", "rows.csv", "--labels", "maybe_*", "-o", "model", *how).stdout
    assert "method: likelihood" in fitted
    assert (tmp_path / "model" / "trees.skops").is_file()
    run("predict", "rows.csv", "-m", "model", "-o", "out.csv")
    clf = CandidateClassifier.load("model")
    assert clf.trees_ is not None
    found = pd.read_csv("out.csv").filter(like="probability:")
    np.testing.assert_allclose(found, clf.predict_proba(table.iloc[:, :4]), atol=1e-5)
    said = run("fit", "rows.csv", "--labels", "maybe_*", "-o", "m", *how, "--method", "bce", code=1)
    assert "corrects trees by the rates of method 'likelihood'" in said.stderr
    (tmp_path / "model" / "trees.skops").unlink()
    said = run("predict", "rows.csv", "-m", "model", "-o", "out.csv", code=1)
    assert "trees.skops is missing or damaged" in said.stderr
