"""`predict_top`: what `decision_function` and `predict_proba` say, in less memory."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from torch import Tensor, nn

from comes import CandidateClassifier
from comes.datasets import make_scenes
from comes.errors import ComesError
from comes.estimator import TopPredictions, base
from comes.metrics import precision_at_k

SCENES = make_scenes(n=300)
X, RELEVANT = SCENES.known_features(), SCENES.known_relevant()
Q = RELEVANT.shape[1]


class Recorded(nn.Module):
    """A linear network with scores in steps of 1/4, many of them tied, that notes their shapes."""

    def __init__(self, d: int, q: int) -> None:
        super().__init__()
        self.linear = nn.Linear(d, q)
        self.shapes: list[tuple[int, ...]] = []

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = (4 * self.linear(x)).round() / 4
        self.shapes.append(tuple(scores.shape))
        return scores


def fit(**settings: Any) -> CandidateClassifier:
    clf = CandidateClassifier("bce", **{"epochs": 2, "hidden": 8, "random_state": 0} | settings)
    return clf.fit(X, RELEVANT)


@pytest.fixture(scope="module")
def fitted() -> CandidateClassifier:
    return fit(n_networks=1)


@pytest.fixture
def in_steps() -> CandidateClassifier:
    return fit(model=Recorded, epochs=1)


def recorded(clf: CandidateClassifier) -> list[tuple[int, ...]]:
    """Return the shapes of scores from now on."""
    assert isinstance(clf.module_, Recorded)
    clf.module_.shapes = []
    return clf.module_.shapes


def order_of(scores: Any, k: int) -> np.ndarray:
    return np.argsort(-np.asarray(scores), axis=1, kind="stable")[:, :k]


def check_top(clf: Any, data: Any, k: int) -> None:
    """Check the best labels against all scores and probabilities."""
    top = clf.predict_top(data, k)
    scores, probabilities = np.asarray(clf.decision_function(data)), clf.predict_proba(data)
    order = order_of(scores, k)
    np.testing.assert_array_equal(top.labels, order)
    np.testing.assert_array_equal(top.scores, np.take_along_axis(scores, order, axis=1))
    expected = np.take_along_axis(np.asarray(probabilities), order, axis=1)
    np.testing.assert_array_equal(top.probabilities, expected)
    assert top.scores.dtype == np.float32 and len(top) == len(scores) and top.n_labels == Q


def test_the_best_labels_are_those_of_the_scores(fitted: CandidateClassifier) -> None:
    for k in (1, 3, Q):
        check_top(fitted, X, k)
    top, scores = fitted.predict_top(X, 3), fitted.decision_function(X)
    for k in (1, 3):  # and can be judged
        assert precision_at_k(top.labels, RELEVANT, k) == precision_at_k(scores, RELEVANT, k)


def test_ties_are_broken_by_column(in_steps: CandidateClassifier) -> None:
    scores = np.sort(in_steps.decision_function(X), axis=1)
    assert (scores[:, 1:] == scores[:, :-1]).any(axis=1).mean() > 0.9
    for k in (1, 4, Q):
        check_top(in_steps, X, k)
    with torch.no_grad():
        for weights in in_steps.module_.parameters():
            weights.zero_()
    np.testing.assert_array_equal(in_steps.predict_top(X, 3).labels, [[0, 1, 2]] * len(X))


def test_features_come_in_every_form() -> None:
    for form in (sparse.csr_matrix, sparse.csr_array, pd.DataFrame):
        data = form(X)
        clf = CandidateClassifier("bce", epochs=1, hidden=8, n_networks=1, random_state=0)
        check_top(clf.fit(data, RELEVANT), data, 3)


def test_columns_of_words_are_encoded_as_in_training() -> None:
    words = ["sea", "sky", "sun"]
    table = pd.DataFrame({"colour": X[:, 0], "word": [words[row % 3] for row in range(len(X))]})
    clf = CandidateClassifier("bce", epochs=1, hidden=8, random_state=0)
    clf.set_output(transform="pandas").fit(table, RELEVANT)
    check_top(clf, table, 2)


def test_probabilities_have_the_level_and_the_calibration_of_the_classifier() -> None:
    prior = RELEVANT.mean(axis=0)
    clf = CandidateClassifier("comes-rl", epochs=2, hidden=8, class_prior=prior, random_state=0)
    clf.fit(X, RELEVANT)
    assert np.abs(clf.score_offset_).max() > 0.01
    check_top(clf, X, 3)
    others = make_scenes(n=100, seed=1)
    found = clf.calibrate(others.X, relevant=others.relevant).calibration_
    check_top(clf, X, 3)
    assert found is not None
    top = clf.predict_top(X, 3)
    for row, label in enumerate(top.labels[:, 1]):
        above = top.scores[row, 1] - clf.score_offset_[label]
        expected = 1 / (1 + math.exp(-(found.slope[label] * above + found.level[label])))
        assert top.probabilities[row, 1] == pytest.approx(expected)


def test_bent_scores_are_ordered_after_they_are_bent() -> None:
    clf = fit(n_networks=1)
    plain = clf.predict_top(X, 3).labels
    clf.score_power_ = np.geomspace(0.1, 10, Q)
    check_top(clf, X, 3)
    assert (clf.predict_top(X, 3).labels != plain).any()


def test_a_network_never_gives_more_scores_than_the_bound(
    in_steps: CandidateClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = in_steps.predict_top(X, 3)
    for bound in (1, 3 * Q + 1, 100 * Q):  # a row is the least that can be scored
        monkeypatch.setattr(base, "SCORES_AT_ONCE", bound)
        shapes = recorded(in_steps)
        parts = list(in_steps.stream_top(X, 3))
        rows = [len(part) for part in parts]
        assert max(rows) == max(1, bound // Q) and sum(rows) == len(X)
        assert shapes == [(n, Q) for n in rows]
        np.testing.assert_array_equal(TopPredictions.join(parts).labels, whole.labels)


def test_a_hundred_thousand_labels_are_scored_in_parts() -> None:
    n, q = 200, 100_000
    few = sparse.csr_array(sparse.random(n, 5, 0.4, rng=np.random.default_rng(0)))
    clf = CandidateClassifier("bce", model=Recorded, epochs=1, random_state=0)
    clf.fit(few[:2], np.tile([[True], [False]], q))
    shapes = recorded(clf)
    top = clf.predict_top(few, 5)
    assert top.labels.shape == (n, 5) and top.to_csr().shape == (n, q)
    assert max(rows * labels for rows, labels in shapes) <= 2**24
    assert min(rows for rows, _ in shapes[:-1]) * q > 2**24 - q  # and few calls


def test_the_sparse_matrix_has_the_probabilities_in_their_columns(
    fitted: CandidateClassifier,
) -> None:
    top = fitted.predict_top(X, 4)
    labels, probabilities = top.labels.copy(), top.probabilities.copy()
    matrix = top.to_csr()
    assert matrix.nnz == 4 * len(X) and matrix.has_sorted_indices
    dense = np.zeros((len(X), Q))
    np.put_along_axis(dense, labels, probabilities, axis=1)
    np.testing.assert_array_equal(matrix.toarray(), dense)
    np.testing.assert_array_equal(top.labels, labels)  # and the arrays are as they were
    np.testing.assert_array_equal(top.probabilities, probabilities)


def test_more_labels_than_there_are_cannot_be_listed(fitted: CandidateClassifier) -> None:
    for k in (0, Q + 1):
        with pytest.raises(ComesError, match=f"k must be 1 to {Q}, the number of labels; got {k}"):
            fitted.predict_top(X, k)
    with pytest.raises(ValueError, match="not fitted"):
        CandidateClassifier().predict_top(X, 1)
