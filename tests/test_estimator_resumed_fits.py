"""Warm starts, streams, callbacks, printed epochs, frames, and fits that go on after a stop."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from torch import nn

from comes import Answers, CandidateClassifier
from comes.errors import ComesError
from comes.estimator import fit_together
from comes.generation import case_b
from comes.metrics import average_precision
from comes.training import TrainedEpoch

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 5))
RELEVANT = X[:, :3] + 0.3 * RNG.normal(size=(600, 3)) > [0.0, 0.5, 1.0]
CANDIDATES = case_b(RELEVANT, 0.5, seed=0)
PRIOR = RELEVANT.mean(axis=0)
ANSWERS = Answers(no=~RELEVANT, yes=RELEVANT)
NAMES = ["sky", "sea", "sun"]
# Of priors that are estimated in a few steps.
pytestmark = pytest.mark.filterwarnings("ignore:.*standard error is:comes.errors.ComesWarning")


def make(**options: Any) -> CandidateClassifier:
    settings: dict[str, Any] = {"class_prior": PRIOR, "random_state": 0, "hidden": 8}
    return CandidateClassifier(**(settings | options))


def weights(clf: CandidateClassifier) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in clf.module_.parameters()])


# Callbacks and printed epochs


def do_nothing(done: TrainedEpoch) -> None:
    pass


def test_every_callback_sees_every_epoch_and_may_end_the_training() -> None:
    seen: list[TrainedEpoch] = []
    calls: list[int] = []

    def watch(done: TrainedEpoch) -> bool:
        seen.append(done)
        return done.epoch == 3

    def count(done: TrainedEpoch) -> None:
        calls.append(done.epoch)

    clf = make(epochs=10, callbacks=[watch, count]).fit(X, CANDIDATES)
    assert [done.epoch for done in seen] == calls == [1, 2, 3]
    assert [done.risk for done in seen] == clf.history_.risk
    assert {done.epochs for done in seen} == {10} and seen[0].held_out_risk is None
    assert seen[0].model is clf.module_ and not clf.history_.interrupted
    alone = make(epochs=3, callbacks=watch, early_stopping=True)  # one function needs no list
    alone.fit(X, CANDIDATES)
    assert [done.held_out_risk for done in seen[3:]] == alone.history_.validation


def test_an_error_in_a_callback_leaves_the_classifier_as_it_was() -> None:
    clf = make(epochs=2).fit(X, CANDIDATES)
    before = clf.predict_proba(X)

    def fail(done: TrainedEpoch) -> None:
        raise KeyError("mine")

    clf.set_params(callbacks=fail, warm_start=True)
    for train in (clf.fit, clf.partial_fit):
        with pytest.raises(KeyError, match="mine"):
            train(X, CANDIDATES)
        np.testing.assert_array_equal(clf.predict_proba(X), before)


def test_callbacks_do_not_change_the_weights_and_are_not_saved(tmp_path: Path) -> None:
    plain = make(epochs=2).fit(X, CANDIDATES)
    watched = make(epochs=2, callbacks=[do_nothing]).fit(X, CANDIDATES)
    assert torch.equal(weights(plain), weights(watched))
    watched.save(tmp_path / "model")
    assert CandidateClassifier.load(tmp_path / "model").callbacks is None
    assert clone(watched).callbacks == [do_nothing]


def test_verbose_prints_a_line_per_epoch(capsys: pytest.CaptureFixture[str]) -> None:
    make(epochs=2, verbose=1, early_stopping=True).fit(X, CANDIDATES)
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("epoch 1 of 2: risk ") and ", held out " in first
    assert second.startswith("epoch 2 of 2: risk ")
    for verbose in (0, -1):
        make(epochs=2, verbose=verbose).fit(X, CANDIDATES)
        assert capsys.readouterr() == ("", "")


def test_classifiers_with_callbacks_are_trained_alone() -> None:
    calls: list[int] = []
    clf = CandidateClassifier.as_published(epochs=2, class_prior=PRIOR, random_state=0, hidden=8)
    clf.set_params(callbacks=lambda done: calls.append(done.epoch))
    fit_together([clf, clf], X, CANDIDATES, [np.arange(300), np.arange(300, 600)], n_jobs=1)
    assert calls == [1, 2, 1, 2]


def test_wrong_settings_are_named() -> None:
    for wrong, message in (
        ({"callbacks": "print"}, "callbacks must be a function of a comes.training.TrainedEpoch"),
        ({"verbose": -2}, "verbose must be a whole number of at least -1; got -2"),
    ):
        with pytest.raises(ComesError, match=message):
            make(**wrong).fit(X, CANDIDATES)
    with pytest.raises(ComesError, match="transform must be 'default' or 'pandas'; got 'polars'"):
        make().set_output(transform="polars")


# Warm starts


def test_a_warm_start_goes_on_from_the_weights_of_the_fit_before() -> None:
    clf = make(epochs=1, warm_start=True, optimizer="sgd", learning_rate=1e-9, model="mlp")
    clf.fit(X, CANDIDATES)
    before, scaling = weights(clf).clone(), clf.scaling_
    clf.fit(X[:300] * 2, CANDIDATES[:300])
    torch.testing.assert_close(weights(clf), before, rtol=0, atol=1e-5)
    assert clf.scaling_ is scaling, "the weights belong to the first scaling"
    clf.set_params(warm_start=False, random_state=5).fit(X, CANDIDATES)
    assert (weights(clf) - before).abs().max() > 0.01


def test_later_fits_do_not_start_at_the_prior_again() -> None:
    for go_on in ("fit", "partial_fit"):
        clf = CandidateClassifier("bce", epochs=2, hidden=4, random_state=0, warm_start=True)
        clf.set_params(model="mlp")
        before = clf.fit(X, RELEVANT).decision_function(X)
        clf.set_params(learning_rate=1e-9)
        after = getattr(clf, go_on)(X, RELEVANT).decision_function(X)
        np.testing.assert_allclose(after, before, atol=1e-5)


def test_a_warm_start_wants_the_same_labels_and_features() -> None:
    clf = make(epochs=1, warm_start=True).fit(X, CANDIDATES, label_names=NAMES)
    before = clf.predict_proba(X)
    with pytest.raises(ComesError, match=r"5 features and the labels 'sky', .*Set warm_start=Fa"):
        clf.fit(X[:, :4], CANDIDATES, label_names=NAMES)
    with pytest.raises(ComesError, match="goes on with the network"):
        clf.fit(X, CANDIDATES, label_names=["a", "b", "c"])
    np.testing.assert_array_equal(clf.predict_proba(X), before)


def test_several_short_warm_starts_learn_as_one_long_fit_does() -> None:
    constant = {"optimizer": {"cosine": False}, "learning_rate": 5e-3}
    clf = make(epochs=2, warm_start=True, hidden=30, **constant)
    first = average_precision(clf.fit(X, CANDIDATES).decision_function(X), RELEVANT)
    for _ in range(6):
        clf.fit(X, CANDIDATES)
    assert average_precision(clf.decision_function(X), RELEVANT) > max(first, 0.9)


# Streams


@pytest.mark.parametrize("method", ["likelihood", "comes-hl", "comes-rl", "bce"])
def test_a_stream_is_learned_from_parts(method: str) -> None:
    rng = np.random.default_rng(1)
    clf = make(method=method, optimizer="adam", learning_rate=1e-2, hidden=30)
    for _ in range(12):
        part = rng.normal(size=(200, 5))
        relevant = part[:, :3] > [0.0, 0.5, 1.0]
        clf.partial_fit(part, case_b(relevant, 0.5, seed=int(rng.integers(99))))
    assert average_precision(clf.decision_function(X), RELEVANT) > 0.85
    assert len(clf.history_.risk) == 12 and clf.partial_fit_state_.n_parts == 12
    assert clf.partial_fit_state_.counts.n == 12 * 200


def test_the_first_part_fixes_scaling_labels_and_priors() -> None:
    clf = make(class_prior=None)
    clf.partial_fit(X[:400], CANDIDATES[:400], label_names=NAMES)
    scaling, prior = clf.scaling_, clf.class_prior_
    swapped = pd.DataFrame(CANDIDATES[400:], columns=NAMES)[["sun", "sky", "sea"]]
    apart = clone(clf).partial_fit(X[:400], CANDIDATES[:400], label_names=NAMES)
    clf.partial_fit(10 * X[400:], swapped)  # matched by name
    apart.partial_fit(10 * X[400:], CANDIDATES[400:])  # by place
    assert clf.scaling_ is scaling and clf.class_prior_ is prior
    assert clf.label_names_ == apart.label_names_ == NAMES
    np.testing.assert_array_equal(clf.predict_proba(X), apart.predict_proba(X))
    with pytest.raises(ComesError, match="labels"):
        clf.partial_fit(X, pd.DataFrame(CANDIDATES, columns=["sky", "b", "c"]))
    with pytest.raises(ValueError, match="4 features"):
        clf.partial_fit(X[:, :4], CANDIDATES)


def test_a_part_may_be_one_row_that_excludes_nothing() -> None:
    clf = make(method="comes-hl").partial_fit(X[:300], CANDIDATES[:300])
    clf.partial_fit(X[300:301], np.ones((1, 3)))
    assert clf.partial_fit_state_.counts.n == 301 and np.isfinite(clf.predict_proba(X)).all()


def test_the_optimiser_goes_on_and_every_part_has_its_own_dropout() -> None:
    clf = make().partial_fit(X, CANDIDATES)
    first = clf.partial_fit_state_.optimizer["state"][0]["step"]
    clf.partial_fit(X, CANDIDATES)
    assert clf.partial_fit_state_.optimizer["state"][0]["step"] == 2 * first
    again = make().partial_fit(X, CANDIDATES).partial_fit(X, CANDIDATES)
    assert torch.equal(weights(clf), weights(again))


def test_a_stream_goes_on_from_a_fit_and_from_a_saved_model(tmp_path: Path) -> None:
    clf = make(epochs=3).fit(X, CANDIDATES)
    clf.save(tmp_path / "model")
    loaded = CandidateClassifier.load(tmp_path / "model")
    before = weights(clf).clone()
    clf.partial_fit(X, CANDIDATES)
    assert 0 < (weights(clf) - before).abs().max() < 0.1 and len(clf.history_.risk) == 4
    loaded.partial_fit(X, CANDIDATES)
    np.testing.assert_allclose(loaded.predict_proba(X), clf.predict_proba(X), atol=1e-5)


def test_answers_sparse_rows_and_weights_stream_too() -> None:
    clf = make(class_prior=None, hidden=100)
    for rows in np.array_split(np.arange(600), 6):
        part = sparse.csr_array(X[rows])
        clf.partial_fit(part, answers=ANSWERS[rows], sample_weight=np.full(len(rows), 2.0))
    assert clf.partial_fit_state_.counts.n == 1200
    assert average_precision(clf.decision_function(sparse.csr_array(X)), RELEVANT) > 0.8


def test_a_stream_of_answers_is_not_gone_on_with_candidates() -> None:
    clf = make(rates={"no": 0.9, "yes": 0.9}).partial_fit(X, answers=ANSWERS)
    with pytest.raises(ComesError, match="must go on with answers, as before, .* of candidates"):
        clf.partial_fit(X, CANDIDATES)


def test_what_needs_all_rows_is_refused() -> None:
    for setting, message in (
        ({"early_stopping": True}, "sees every row once.*early_stopping=True"),
        ({"threshold": "f1"}, "threshold='f1'"),
    ):
        with pytest.raises(ComesError, match=message):
            make(**setting).partial_fit(X, CANDIDATES)


def test_rows_of_all_parts_are_remembered() -> None:
    clf = make().partial_fit(X[:200], CANDIDATES[:200]).partial_fit(X[200:400], CANDIDATES[200:400])
    assert clf.count_seen_rows(X) == 400
    assert clf.trained_on_ == {"rows": 400, "kind": "candidates"}


# Tables

TABLE = pd.DataFrame({"colour": np.where(X[:, 0] > 0, "red", "blue"), "size": X[:, 1]})


def test_warm_starts_and_streams_keep_how_a_table_is_encoded() -> None:
    clf = make(epochs=1, warm_start=True).fit(TABLE, CANDIDATES)
    encoder = clf.encoder_
    clf.fit(TABLE[TABLE["colour"] == "red"], CANDIDATES[TABLE["colour"] == "red"])
    assert clf.encoder_ is encoder, "else the columns of the network would mean something else"
    clf.partial_fit(TABLE[:5], CANDIDATES[:5])
    assert clf.encoder_ is encoder and clf.predict(TABLE).shape == (600, 3)
    stream = make().partial_fit(TABLE[:300], CANDIDATES[:300])
    learned = stream.encoder_
    assert stream.partial_fit(TABLE[300:], CANDIDATES[300:]).encoder_ is learned


def test_a_weighted_fit_of_a_table() -> None:
    clf = make(epochs=1).fit(TABLE, CANDIDATES, sample_weight=np.arange(600))
    assert clf.predict(TABLE).shape == (600, 3)


# Frames


def test_frames_come_out_with_names_of_labels_and_the_index_of_x() -> None:
    index = [f"row {i}" for i in range(600)]
    frame = pd.DataFrame(X, columns=list("abcde"), index=index)
    arrays = make(epochs=2).fit(frame, CANDIDATES, label_names=NAMES)
    clf = make(epochs=2).set_output(transform="pandas").fit(frame, CANDIDATES, label_names=NAMES)
    for name in ("predict", "predict_proba", "decision_function"):
        found, expected = getattr(clf, name)(frame), getattr(arrays, name)(frame)
        assert isinstance(found, pd.DataFrame) and isinstance(expected, np.ndarray)
        assert list(found.columns) == NAMES and list(found.index) == index
        np.testing.assert_array_equal(found.to_numpy(), expected)
    assert clf.score(frame, RELEVANT) == arrays.score(frame, RELEVANT)
    with pytest.warns(UserWarning, match="feature names"):
        assert list(clf.predict(X).index) == list(range(600))  # an array has no index
    assert isinstance(clf.set_output(transform=None).predict(frame), pd.DataFrame)
    assert isinstance(clf.set_output(transform="default").predict(frame), np.ndarray)


def test_frames_do_not_disturb_what_is_inside_and_clones_give_them_too() -> None:
    plain = make(epochs=2, threshold="f1").fit(X, CANDIDATES, label_names=NAMES)
    clf = clone(make(epochs=2, threshold="f1").set_output(transform="pandas"))
    clf.fit(X, CANDIDATES, label_names=NAMES)
    np.testing.assert_allclose(clf.threshold_, plain.threshold_)
    assert list(clf.predict(X).columns) == NAMES


# Fits that were stopped


class StoppedError(Exception):
    pass


def stop_after(epochs: int) -> Any:
    def stop(done: TrainedEpoch) -> None:
        if done.epoch == epochs:
            raise StoppedError

    return stop


def fit(path: Path | None, *, x: Any = X, every: float = 0, **settings: Any) -> CandidateClassifier:
    few = {"epochs": 4, "batch_size": 200, **settings}
    return make(**few).fit(x, CANDIDATES, checkpoint=path, checkpoint_every=every)


def test_a_fit_that_was_stopped_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    for kind, x in {"dense": X, "sparse": sparse.csr_array(X * (X > 0))}.items():
        path = tmp_path / f"{kind}.checkpoint"
        with pytest.raises(StoppedError):
            fit(path, x=x, callbacks=stop_after(2))
        seen: list[int] = []
        resumed = fit(path, x=x, callbacks=lambda done, seen=seen: seen.append(done.epoch))
        assert seen == [3, 4], kind
        through = fit(None, x=x)
        assert torch.equal(weights(resumed), weights(through)), kind
        assert resumed.history_.risk == through.history_.risk, kind


def test_a_short_fit_keeps_no_state(tmp_path: Path) -> None:
    fit(tmp_path / "fit.checkpoint", every=300)
    assert list(tmp_path.iterdir()) == []


def test_the_state_of_another_fit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    first = fit(path)
    changes: list[dict[str, Any]] = [
        {"learning_rate": 0.1},
        {"random_state": 1},
        {"x": X + 1},
        {"hidden": 9},
        {"epochs": 5},
    ]
    for change in changes:
        with pytest.raises(ComesError, match="belongs to another training"):
            fit(path, **change)
    again = fit(path, verbose=1, threshold="zero")  # which decide nothing
    assert torch.equal(weights(again), weights(first))


def test_weights_of_a_network_of_ones_own_are_part_of_what_is_resumed(tmp_path: Path) -> None:
    path, model = tmp_path / "fit.checkpoint", nn.Linear(5, 3)
    fit(path, model=model)
    fit(path, model=model)
    with pytest.raises(ComesError, match="belongs to another training"):
        fit(path, model=nn.Linear(5, 3))
