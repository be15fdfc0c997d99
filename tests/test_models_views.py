"""Views of features, against plain loops."""

import numpy as np
import pytest
import torch
from torch import nn

from comes.models import Clusters, Views, power_normalised
from comes.models.backbones import root_probabilities
from comes.models.views import project


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def some_clusters() -> Clusters:
    centres = nn.functional.normalize(draw(3, 2, seed=3), dim=1)
    return Clusters(0.1 * draw(4, seed=1), draw(2, 4, seed=2), centres, 0.3)


def test_roots_of_probabilities_by_plain_loops() -> None:
    scores = draw(5, 4)
    found = root_probabilities(scores, 1.7)
    for i in range(5):
        heights = [np.exp(float(scores[i, j]) / 1.7) for j in range(4)]
        for j in range(4):
            assert float(found[i, j]) == pytest.approx((heights[j] / sum(heights)) ** 0.5, rel=1e-5)


def test_memberships_in_clusters_by_plain_loops() -> None:
    clusters, features = some_clusters(), 4 * draw(6, 4, seed=4)
    found = clusters(features)
    mean, directions = clusters.mean.double().numpy(), clusters.directions.double().numpy()
    for i, row in enumerate(features.double().numpy()):
        roots = np.array([np.sign(x) * abs(x) ** 0.5 for x in row])
        roots /= (roots @ roots) ** 0.5
        place = np.array([(roots - mean) @ direction for direction in directions])
        place /= (place @ place) ** 0.5
        heights = [np.exp(place @ c / 0.3) for c in clusters.centres.double().numpy()]
        expected = [(height / sum(heights)) ** 0.5 for height in heights]
        np.testing.assert_allclose(found[i].numpy(), expected, rtol=1e-4)
        np.testing.assert_allclose(
            project(features[i : i + 1], clusters.mean, clusters.directions)[0].numpy(),
            place,
            rtol=1e-4,
        )


def test_the_wider_the_more_clusters_a_picture_belongs_to() -> None:
    clusters, features = some_clusters(), draw(6, 4, seed=4)
    found = []
    for width in (0.01, 0.3, 10.0):
        clusters.width.fill_(width)
        found.append(float(clusters(features).square().max(dim=1).values.mean()))
    assert found[0] > 0.9 > found[1] > found[2] and found[2] < 0.4


def test_views_lie_side_by_side_in_their_order() -> None:
    clusters, layer, features = some_clusters(), nn.Linear(4, 5), draw(6, 4)
    views = Views(clusters, layer, 3.0, pooled=True)
    found = views(features)
    assert views.n_sparse == 8 and found.shape == (6, 12)
    torch.testing.assert_close(found[:, :5], root_probabilities(layer(features), 3.0))
    torch.testing.assert_close(found[:, 5:8], clusters(features))
    torch.testing.assert_close(found[:, 8:], power_normalised(features))
    assert Views(clusters).n_sparse == 3 and Views(None, layer).n_sparse == 5
    torch.testing.assert_close(Views(clusters)(features), clusters(features))


def test_gradients_pass_through_views_and_are_finite() -> None:
    features = torch.tensor([[1.0, 0.0, -2.0, 0.0], [0.0, 0.0, 0.0, 0.0]], requires_grad=True)
    views = Views(some_clusters(), nn.Linear(4, 5), pooled=True)
    views(features).square().cumsum(dim=1).sum().backward()
    assert features.grad is not None and features.grad.isfinite().all()
    assert (features.grad[0] != 0).any()
