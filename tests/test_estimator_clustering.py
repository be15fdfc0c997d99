"""Clusters of pictures, found without labels: how many, how wide, and with few rows."""

import numpy as np
import pytest
import torch

from comes.estimator import clustering
from comes.estimator.clustering import find_clusters
from comes.models import Clusters


def draw(n: int, d: int = 20, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def memberships(clusters: Clusters, features: np.ndarray) -> np.ndarray:
    roots: torch.Tensor = clusters(torch.as_tensor(features, dtype=torch.float32))
    return roots.square().double().numpy()


@pytest.mark.parametrize(
    ("n_clusters", "wanted"), [(40, 4.0), (20, 2.0), (15, 2.0), (11, 2.0), (6, 1.5), (2, 1.1)]
)
def test_a_picture_belongs_to_a_tenth_of_the_clusters(n_clusters: int, wanted: float) -> None:
    features = draw(10 * n_clusters)
    p = memberships(find_clusters(features), features)
    assert p.shape == (10 * n_clusters, n_clusters)
    evenness = [np.exp(-sum(x * np.log(x) for x in row if x > 0)) for row in p]
    assert np.mean(evenness) == pytest.approx(wanted, abs=0.02)


def test_pictures_of_a_kind_are_together() -> None:
    kinds = np.repeat(np.arange(4), 20)
    centres = 5 * draw(4, 30, seed=1)
    features = centres[kinds] + 0.1 * draw(80, 30)
    first = memberships(find_clusters(features), features).argmax(axis=1)
    for cluster in np.unique(first):
        assert len(np.unique(kinds[first == cluster])) == 1


def test_the_same_seed_gives_the_same_clusters() -> None:
    features = draw(200)
    one, again, other = (find_clusters(features, seed) for seed in (0, 0, 1))
    for name, tensor in one.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[name])
    assert not torch.equal(one.centres, other.centres)


@pytest.mark.parametrize(("n", "n_clusters"), [(1, 1), (2, 1), (9, 1), (10, 1), (19, 1), (20, 2)])
def test_few_rows_have_few_clusters(n: int, n_clusters: int) -> None:
    features = draw(n)
    p = memberships(find_clusters(features), features)
    assert p.shape == (n, n_clusters)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_features_that_are_all_the_same_do_no_harm(value: float) -> None:
    features = np.full((40, 5), value, dtype=np.float32)
    clusters = find_clusters(features)
    assert np.isfinite(memberships(clusters, features)).all()
    assert np.isfinite(memberships(clusters, draw(3, 5))).all()


def test_halves_and_one_feature_are_enough() -> None:
    features = draw(40).astype(np.float16)
    wide = find_clusters(features.astype(np.float32))
    assert torch.equal(find_clusters(features).centres, wide.centres)
    one = find_clusters(np.abs(draw(40, 1)))
    assert np.isfinite(memberships(one, np.abs(draw(40, 1)))).all()


def test_of_very_many_rows_some_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clustering, "MOST_ROWS", 100)
    assert len(find_clusters(draw(1000)).centres) == 10
