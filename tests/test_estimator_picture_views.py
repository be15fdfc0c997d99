"""Pictures as a head of views reads them: classes, clusters found without labels, features."""

import numpy as np
import pytest
import torch
from torch import nn

from comes.answers import Answers
from comes.errors import ComesError
from comes.estimator import Evidence, clustering, make_views, picture_views, show_views
from comes.estimator.clustering import find_clusters
from comes.models.views import Clusters

FEATURES = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)


def layer() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(6, 5)


def test_every_kind_has_its_views() -> None:
    for kind, classifier, n_sparse, n_pooled in (
        ("classes", layer(), 5, 0),
        ("clusters", layer(), 4, 0),
        ("both", layer(), 9, 0),
        ("all", layer(), 9, 6),
        ("all", None, 4, 6),
        ("clusters", None, 4, 0),
    ):
        views = make_views(FEATURES, kind, classifier)
        assert views.n_sparse == n_sparse, kind
        assert show_views(views, FEATURES).shape == (40, n_sparse + n_pooled), kind
    for kind, classifier in (("classes", None), ("both", None), ("pooled", layer())):
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
    shown = np.arange(20, dtype=np.float32).reshape(4, 5)
    said = Answers(no=np.eye(4, 2, dtype=bool), yes=np.zeros((4, 2), dtype=bool))
    evidence = Evidence(shown, said, n_sparse=3)
    np.testing.assert_array_equal(evidence.sparse, shown[:, :3])
    np.testing.assert_array_equal(evidence.pooled, shown[:, 3:])
    assert np.shares_memory(evidence.sparse, shown)
    some = evidence[[2, 0]]
    np.testing.assert_array_equal(some.sparse, shown[[2, 0], :3])
    np.testing.assert_array_equal(some.answers.codes, said.codes[[2, 0]])
    assert Evidence(shown, said, n_sparse=5).pooled is None


def draw_features(n: int, d: int = 20, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def memberships(clusters: Clusters, features: np.ndarray) -> np.ndarray:
    roots: torch.Tensor = clusters(torch.as_tensor(features, dtype=torch.float32))
    return roots.square().double().numpy()


def test_a_picture_belongs_to_a_tenth_of_the_clusters() -> None:
    for n_clusters, wanted in ((40, 4.0), (20, 2.0), (15, 2.0), (11, 2.0), (6, 1.5), (2, 1.1)):
        features = draw_features(10 * n_clusters)
        p = memberships(find_clusters(features), features)
        assert p.shape == (10 * n_clusters, n_clusters)
        evenness = [np.exp(-sum(x * np.log(x) for x in row if x > 0)) for row in p]
        assert np.mean(evenness) == pytest.approx(wanted, abs=0.02), n_clusters


def test_pictures_of_a_kind_are_together() -> None:
    kinds = np.repeat(np.arange(4), 20)
    centres = 5 * draw_features(4, 30, seed=1)
    features = centres[kinds] + 0.1 * draw_features(80, 30)
    first = memberships(find_clusters(features), features).argmax(axis=1)
    for cluster in np.unique(first):
        assert len(np.unique(kinds[first == cluster])) == 1


def test_the_same_seed_gives_the_same_clusters() -> None:
    features = draw_features(200)
    one, again, other = (find_clusters(features, seed) for seed in (0, 0, 1))
    for name, tensor in one.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[name])
    assert not torch.equal(one.centres, other.centres)


def test_few_or_equal_pictures_have_few_clusters() -> None:
    for n, n_clusters in ((1, 1), (2, 1), (9, 1), (10, 1), (19, 1), (20, 2)):
        features = draw_features(n)
        p = memberships(find_clusters(features), features)
        assert p.shape == (n, n_clusters)
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-5)
    for value in (0.0, 3.0):
        features = np.full((40, 5), value, dtype=np.float32)
        clusters = find_clusters(features)
        assert np.isfinite(memberships(clusters, features)).all()
        assert np.isfinite(memberships(clusters, draw_features(3, 5))).all()


def test_halves_and_one_feature_are_enough() -> None:
    features = draw_features(40).astype(np.float16)
    wide = find_clusters(features.astype(np.float32))
    assert torch.equal(find_clusters(features).centres, wide.centres)
    one = find_clusters(np.abs(draw_features(40, 1)))
    assert np.isfinite(memberships(one, np.abs(draw_features(40, 1)))).all()


def test_of_very_many_rows_some_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clustering, "MOST_ROWS", 100)
    assert len(find_clusters(draw_features(1000)).centres) == 10
