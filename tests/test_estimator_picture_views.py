"""Pictures as a head of views reads them."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from comes.answers import Answers
from comes.errors import ComesError
from comes.estimator import Evidence, make_views, picture_views, show_views

FEATURES = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)


def layer() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(6, 5)


@pytest.mark.parametrize(
    ("kind", "classifier", "n_sparse", "n_pooled"),
    [
        ("classes", layer(), 5, 0),
        ("clusters", layer(), 4, 0),
        ("both", layer(), 9, 0),
        ("all", layer(), 9, 6),
        ("all", None, 4, 6),
        ("clusters", None, 4, 0),
    ],
)
def test_every_kind_has_its_views(kind: str, classifier: Any, n_sparse: int, n_pooled: int) -> None:
    views = make_views(FEATURES, kind, classifier)
    assert views.n_sparse == n_sparse
    assert show_views(views, FEATURES).shape == (40, n_sparse + n_pooled)


@pytest.mark.parametrize(
    ("kind", "classifier"), [("classes", None), ("both", None), ("pooled", layer())]
)
def test_views_that_cannot_be_made_are_refused(kind: str, classifier: Any) -> None:
    with pytest.raises(ComesError, match=f"kind must be one of classes.*got '{kind}'"):
        make_views(FEATURES, kind, classifier)


def test_the_temperature_is_that_of_the_classes() -> None:
    views = make_views(FEATURES, "classes", layer(), temperature=0.5)
    scores = layer()(torch.from_numpy(FEATURES)).double() / 0.5
    expected = (scores.exp() / scores.exp().sum(dim=1, keepdim=True)).sqrt().detach()
    np.testing.assert_allclose(show_views(views, FEATURES), expected, rtol=1e-4)


def test_rows_are_shown_in_parts_whatever_their_type(monkeypatch: pytest.MonkeyPatch) -> None:
    views = make_views(FEATURES, "all", layer())
    whole = show_views(views, FEATURES)
    monkeypatch.setattr(picture_views, "AT_ONCE", 7)
    np.testing.assert_allclose(show_views(views, FEATURES), whole, atol=1e-6)
    halves = show_views(views, FEATURES.astype(np.float16))
    assert halves.dtype == np.float32
    np.testing.assert_allclose(halves, whole, atol=0.01)
    np.testing.assert_allclose(show_views(views, FEATURES.astype(np.float64)), whole, atol=1e-6)


def test_evidence_is_cut_by_columns_and_rows() -> None:
    X = np.arange(20, dtype=np.float32).reshape(4, 5)
    said = Answers(no=np.eye(4, 2, dtype=bool), yes=np.zeros((4, 2), dtype=bool))
    evidence = Evidence(X, said, n_sparse=3)
    np.testing.assert_array_equal(evidence.sparse, X[:, :3])
    np.testing.assert_array_equal(evidence.pooled, X[:, 3:])
    assert np.shares_memory(evidence.sparse, X)
    some = evidence[[2, 0]]
    np.testing.assert_array_equal(some.sparse, X[[2, 0], :3])
    np.testing.assert_array_equal(some.answers.codes, said.codes[[2, 0]])
    assert Evidence(X, said, n_sparse=5).pooled is None
