"""The estimator: settings, features and labels that do not fit, weights, streams, calibration."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import torch
from scipy import sparse

from comes import Answers, CandidateClassifier, ImageClassifier
from comes.estimator import choose_classifier, cross_fit, export_onnx
from comes.estimator.inputs import per_label
from comes.methods import CCMN, COMESHL, Likelihood
from hostile.casework import CASES, Case, Place, handled, refused, said
from hostile.materials import (
    LABELS,
    ROWS,
    answers,
    candidates,
    features,
    fitted,
    frame,
    relevant,
    small,
)

AREA = "estimator"

# What is wrong, what is called, and words that its message must have.
CALLS: dict[str, tuple[Callable[[], object], str]] = {
    # settings
    "epochs of none": (lambda: _fit(epochs=0), r"epochs"),
    "epochs of one half": (lambda: _fit(epochs=0.5), r"epochs"),
    "epochs that are true": (lambda: _fit(epochs=True), r"epochs"),
    "a batch below zero": (lambda: _fit(batch_size=-4), r"batch_size"),
    "hidden units of none": (lambda: _fit(hidden=0), r"hidden"),
    "dropout of everything": (lambda: _fit(dropout=1.0), r"dropout"),
    "no networks": (lambda: _fit(n_networks=0), r"n_networks"),
    "a learning rate that is a word": (lambda: _fit(learning_rate="fast"), r"learning_rate"),
    "an infinite learning rate": (lambda: _fit(learning_rate=np.inf), r"learning_rate"),
    "a momentum of two": (lambda: _fit(optimizer={"name": "sgd", "momentum": 2.0}), r"momentum"),
    "a weight decay below zero": (lambda: _fit(weight_decay=-1.0), r"weight_decay"),
    "an optimiser that does not exist": (lambda: _fit(optimizer="adamax9"), r"optimizer.*adam"),
    "a scale that does not exist": (lambda: _fit(scale="log"), r"scale.*standard"),
    "a normaliser that does not exist": (
        lambda: _fit(method=COMESHL(normaliser="row")),
        r"normaliser.*batch",
    ),
    "a share of all rows held out": (
        lambda: _fit(early_stopping=1.0),
        r"early_stopping.*share",
    ),
    "a patience of nothing": (lambda: _fit(early_stopping=True, patience=0), r"patience"),
    "patience without early stopping": (lambda: _fit(patience=3), r"patience.*early_stopping"),
    "an output that does not exist": (
        lambda: _fit().set_output(transform="polars"),
        r"transform.*pandas",
    ),
    "a callback that is no function": (lambda: _fit(callbacks="print"), r"callback"),
    "a random state that is a word": (lambda: _fit(random_state="lucky"), r"random_state"),
    "a model that is a number": (lambda: _fit(model=3), r"model.*mlp"),
    "a model with too few outputs": (
        lambda: _fit(model=lambda d, q: torch.nn.Linear(d, q - 1), n_networks=None),
        r"score|label|output|shape|columns",
    ),
    "a risk that is no tensor": (lambda: _fit(method=lambda s, c: 1.0), r"tensor|scalar"),
    "a risk for each row": (lambda: _fit(method=lambda s, c: s.sum(dim=1)), r"scalar"),
    "a prior weight below zero": (
        lambda: _fit(method=Likelihood(prior_weight=-1.0)),
        r"prior_weight",
    ),
    "a prior of fewer labels": (lambda: _fit(class_prior=[0.1, 0.2]), r"class_prior.*4"),
    "a prior above one": (lambda: _fit(class_prior=[0.1, 0.2, 0.3, 1.4]), r"class_prior.*1\.4"),
    "a prior that is no number": (
        lambda: _fit(class_prior=[0.1, 0.2, 0.3, np.nan]),
        r"class_prior",
    ),
    "a prior for all labels at once": (lambda: _fit(class_prior=0.3), r"class_prior.*each"),
    "priors of other labels": (
        lambda: small(class_prior=pd.Series({"a": 0.1, "b": 0.2, "c": 0.1, "sea": 0.2})).fit(
            frame(), pd.DataFrame(candidates(), columns=LABELS)
        ),
        r"sea|sky",
    ),
    "flip rates of one": (lambda: _fit(method=CCMN(flip_rate=1.0)), r"flip_rate"),
    "uses maybe as a word": (lambda: _fit(method=Likelihood(uses_maybe="no")), r"uses_maybe"),
    # features
    "a feature vector": (lambda: small().fit(features()[:, 0], candidates()), r"2D|reshape"),
    "features of three axes": (lambda: small().fit(features()[:, :, None], candidates()), r"dim"),
    "no features": (lambda: small().fit(np.zeros((ROWS, 0)), candidates()), r"feature"),
    "no rows": (lambda: small().fit(features()[:0], candidates()[:0]), r"row|sample"),
    "an nan": (lambda: small().fit(_with(np.nan), candidates()), r"NaN.*fill|fill"),
    "an infinity": (lambda: small().fit(_with(np.inf), candidates()), r"inf"),
    "a number beyond float32": (lambda: small().fit(_with(1e300), candidates()), r"float32"),
    "complex numbers": (lambda: small().fit(features() + 1j, candidates()), r"[Cc]omplex|real"),
    "words as features": (
        lambda: small().fit([["a", "b"]] * ROWS, candidates()),
        r"number|float|text",
    ),
    "an array of dates": (
        lambda: small().fit(np.full((ROWS, 2), "2024-01-01", dtype="datetime64[D]"), candidates()),
        r"date|number|real",
    ),
    "fewer rows of features": (lambda: small().fit(features()[1:], candidates()), r"59.*60"),
    "no features at all": (lambda: small().fit(None, candidates()), r"X|features|None"),
    "a sparse nan": (lambda: small().fit(sparse.csr_matrix(_with(np.nan)), candidates()), r"NaN"),
    # labels
    "no labels at all": (lambda: small().fit(features()), r"candidates|answers"),
    "one label as a vector": (
        lambda: small().fit(features(), candidates()[:, 0]),
        r"matrix|label|2",
    ),
    "labels of other numbers": (lambda: small().fit(features(), candidates() * 3), r"0 or 1|3"),
    "labels that are no numbers": (
        lambda: small().fit(features(), np.where(candidates(), 1.0, np.nan)),
        r"0 or 1|nan|NaN|missing",
    ),
    "labels between 0 and 1": (lambda: small().fit(features(), candidates() * 0.5), r"0 or 1|0\.5"),
    "labels of -1 and 1": (lambda: small().fit(features(), candidates() * 2 - 1), r"0 or 1|-1"),
    "candidates and complementary": (
        lambda: small().fit(features(), candidates=candidates(), complementary=~candidates()),
        r"one of|both|candidates.*complementary",
    ),
    "truth outside the candidates": (
        lambda: small().fit(features(), ~candidates(), candidates=candidates()),
        r"inside|candidate",
    ),
    "names for fewer labels": (
        lambda: small().fit(features(), candidates(), label_names=["a", "b"]),
        r"label_names|names|4",
    ),
    "a name for two labels": (
        lambda: small().fit(features(), candidates(), label_names=["a", "b", "a", "c"]),
        r"'a'",
    ),
    "the truth where candidates are demanded": (
        lambda: small(require_candidates=True).fit(features(), relevant()),
        r"candidates=|require",
    ),
    "frames with other indexes": (
        lambda: small().fit(
            frame(), pd.DataFrame(candidates(), columns=LABELS, index=range(100, 100 + ROWS))
        ),
        r"index|row",
    ),
    "frames in another order": (
        lambda: small().fit(frame(), pd.DataFrame(candidates(), columns=LABELS)[::-1]),
        r"index|order",
    ),
    "weights of fewer rows": (lambda: _fit_weighted(np.ones(3)), r"sample_weight"),
    "weights below zero": (lambda: _fit_weighted(-np.ones(ROWS)), r"sample_weight"),
    "weights of nothing": (lambda: _fit_weighted(np.zeros(ROWS)), r"sample_weight"),
    "weights that are no numbers": (lambda: _fit_weighted(np.full(ROWS, np.nan)), r"sample_weight"),
    "weights that are words": (lambda: _fit_weighted(["much"] * ROWS), r"sample_weight"),
    "a clean sample of one part": (
        lambda: small().fit(features(), candidates(), clean=features()),
        r"clean|relevant",
    ),
    "a clean sample of other columns": (
        lambda: small().fit(features(), candidates(), clean=(features()[:, :2], relevant())),
        r"features|3|2",
    ),
    # streams, calibration, predictions
    "a stream by a method over all rows": (
        lambda: (
            small(method="comes-rl")
            .partial_fit(features(), candidates()[:, :3])
            .partial_fit(features(), candidates())
        ),
        r"label|3|4",
    ),
    "a part with another feature": (
        lambda: (
            small()
            .partial_fit(features(), candidates())
            .partial_fit(features()[:, :2], candidates())
        ),
        r"features|2|3",
    ),
    "early stopping in a stream": (
        lambda: small(early_stopping=True).partial_fit(features(), candidates()),
        r"early_stopping",
    ),
    "a warm start with another feature": (
        lambda: _fit(warm_start=True).fit(features()[:, :2], candidates()),
        r"features|2|3|warm",
    ),
    "a warm start with fewer labels": (
        lambda: _fit(warm_start=True).fit(features(), candidates()[:, :2]),
        r"label|warm",
    ),
    "calibration without anything": (lambda: _fit().calibrate(features()), r"answers|relevant"),
    "calibration by both": (
        lambda: _fit().calibrate(features(), answers(), relevant=relevant()),
        r"both|one",
    ),
    "calibration by truth of fewer labels": (
        lambda: _fit().calibrate(features(), relevant=relevant()[:, :2]),
        r"label|shape|4|2",
    ),
    "calibration by fewer rows of truth": (
        lambda: _fit().calibrate(features(), relevant=relevant()[:5]),
        r"row|60|5",
    ),
    "calibration before fit": (lambda: small().calibrate(features(), answers()), r"fit"),
    "predictions before fit": (lambda: small().predict(features()), r"fit"),
    "predictions of fewer columns": (
        lambda: fitted().predict(frame()[["red"]]),
        r"green|blue|missing",
    ),
    "predictions of an array of fewer columns": (
        lambda: fitted().predict(features()[:, :2]),
        r"2.*3",
    ),
    "predictions of no rows": (lambda: fitted().predict(frame()[:0]), r"sample|row"),
    "predictions of an nan": (lambda: _fit().predict_proba(_with(np.nan)), r"NaN"),
    "scores by a truth of fewer labels": (
        lambda: fitted().score(frame(), relevant()[:, :2]),
        r"label|shape|4",
    ),
    "rates that are a word": (lambda: per_label("often", "no_rate", LABELS), r"no_rate"),
    "two folds of two rows": (
        lambda: cross_fit([small()], features()[:2], candidates()[:2], folds=3),
        r"fold|row",
    ),
    "a choice among none": (
        lambda: choose_classifier([], features(), candidates(), None),
        r"classifier|one",
    ),
    "rows of another width that were seen": (
        lambda: _fit().count_seen_rows(features()[:, :1]),
        r"features|column|1",
    ),
    "onnx of what was not fitted": (lambda: export_onnx(small(), "m.onnx"), r"fit"),
    "images that are a table": (lambda: ImageClassifier().fit(features(), candidates()), r"image"),
}


def _fit(**settings: object) -> CandidateClassifier:
    return _known(**settings).fit(features(), candidates())


def _known(**settings: object) -> CandidateClassifier:
    return small(**{"random_state": 0, "class_prior": relevant().mean(axis=0)} | settings)


def _fit_weighted(weight: object) -> CandidateClassifier:
    return _known().fit(features(), candidates(), sample_weight=weight)


def _with(value: float) -> np.ndarray:
    X = features().copy()
    X[7, 1] = value
    return X


for _name, (_call, _words) in CALLS.items():
    CASES.append(Case(AREA, _name, lambda _, call=_call: call(), "refused", _words))


@handled(AREA)
def _columns_of_a_frame_in_another_order(_: Place) -> object:
    shuffled = fitted().predict_proba(frame()[["blue", "green", "red"]])
    return np.array_equal(shuffled, fitted().predict_proba(frame()))


@handled(AREA)
def _integers_and_booleans_as_features(_: Place) -> object:
    X = (features() > 0).astype(np.int8)
    found = _known().fit(X > 0, candidates()).predict_proba(X > 0)
    same = _known().fit(X.astype(float), candidates()).predict_proba(X.astype(float))
    return np.allclose(found, same)


@handled(AREA)
def _candidates_as_a_sparse_matrix(_: Place) -> object:
    found = _known().fit(features(), sparse.csr_matrix(candidates()))
    return np.array_equal(found.predict(features()), _fit().predict(features()))


@handled(AREA)
def _features_that_cannot_be_written_to(_: Place) -> object:
    X = features().copy()
    X.flags.writeable = False
    found = _known().fit(X, candidates()).predict_proba(X)
    return np.array_equal(found, _fit().predict_proba(features()))


@handled(AREA)
def _an_earlier_fit_after_a_failed_one(_: Place) -> object:
    classifier = _fit()
    before = classifier.predict_proba(features())
    try:
        classifier.fit(_with(np.nan), candidates())
    except ValueError:
        return np.array_equal(classifier.predict_proba(features()), before)
    return False


@handled(AREA)
def _weights_of_one_change_nothing(_: Place) -> object:
    weighted = _fit_weighted(np.ones(ROWS))
    return np.allclose(weighted.predict_proba(features()), _fit().predict_proba(features()))


@refused(AREA, r"row|same number|60|59")
def _answers_about_fewer_rows(_: Place) -> object:
    return small().fit(features(), answers=Answers(no=~candidates()[1:]))


@said(AREA, r"learning rate|run away|diverge|risk")
def _a_training_that_runs_away(_: Place) -> object:
    return small(optimizer="sgd", learning_rate=1e12, epochs=5).fit(features(), candidates()) and ""


@said(AREA, r"position")
def _a_part_with_other_labels(_: Place) -> object:
    known = _known().partial_fit(frame(), pd.DataFrame(candidates(), columns=LABELS))
    return known.partial_fit(frame(), pd.DataFrame(candidates(), columns=list("abcd"))) and ""


@handled(AREA)
def _a_frame_with_dates_and_categories(_: Place) -> object:
    when = pd.date_range("2024-01-01", periods=ROWS)
    mixed = frame(when=when, town=["Bonn", "Oslo"] * 30)
    known = _known().fit(mixed, candidates())
    later = known.predict_proba(mixed.assign(when=when + pd.Timedelta(days=200)))
    return not np.allclose(later, known.predict_proba(mixed))
