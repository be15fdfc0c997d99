"""From features to scores: views of the features, clusters found without labels, and a head."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from comes.images import network as module
from comes.images.backbones import Backbone, root_probabilities
from comes.images.network import (
    Clusters,
    ImageNetwork,
    Views,
    find_clusters,
    make_views,
    power_normalised,
    project,
    show_views,
    zero_linear,
)
from pictures import some_pixels, tiny


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_power_normalised_rows_are_signed_roots_of_length_one() -> None:
    features = torch.tensor([[4.0, -9.0, 0.0], [1.0, 1.0, 2.0]])
    expected = torch.tensor([[2.0, -3.0, 0.0], [1.0, 1.0, 2**0.5]])
    expected /= torch.tensor([[13**0.5], [2.0]])
    torch.testing.assert_close(power_normalised(features), expected)
    torch.testing.assert_close(power_normalised(100 * features), expected)
    assert (power_normalised(torch.zeros(1, 3)) == 0).all()


def test_gradients_are_finite_where_a_feature_is_zero() -> None:
    """As those of a channel that a ReLU cuts off everywhere."""
    features = torch.tensor([[4.0, 0.0, -9.0]], requires_grad=True)
    power_normalised(features)[0, 0].backward()
    assert features.grad is not None
    assert features.grad.isfinite().all()


def image_network(**options: Any) -> ImageNetwork:
    torch.manual_seed(0)
    return ImageNetwork(Backbone(tiny()), nn.Linear(256, 3), **options)


def test_scores_are_those_of_the_scaled_features() -> None:
    shift, scale = torch.rand(256), 1 + torch.rand(256)
    views = Views(Clusters(torch.zeros(256), draw(2, 256), draw(256, 2), 0.5))
    ways: dict[str, tuple[dict[str, Any], Callable[[Tensor], Tensor]]] = {
        "plain": ({}, lambda features: features),
        "power": ({"power": True}, power_normalised),
        "views": ({"views": views, "power": True}, views),  # in place of the power
    }
    for way, (options, apply) in ways.items():
        network = image_network(shift=shift, scale=scale, **options).eval()
        with torch.no_grad():
            features = network.backbone(some_pixels())
            scores = network(some_pixels())
            assert torch.equal(network.score_features(features), scores), way
            expected = network.head((apply(features) - shift) / scale)
            torch.testing.assert_close(expected, scores)


@pytest.mark.parametrize("frozen", [True, False])
def test_frozen_statistics_stay_as_they_came_in_training(frozen: bool) -> None:
    head = nn.Sequential(nn.BatchNorm1d(256), nn.Dropout(), zero_linear(256, 3))
    network = ImageNetwork(Backbone(tiny()), head, freezes_statistics=frozen)
    network.eval().train()
    before = copy.deepcopy(network.state_dict())
    network(some_pixels())
    after = network.state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert "head.0.running_mean" in changed  # the head's own are always learnt
    assert ("backbone.network.layer4.0.bn3.running_var" in changed) == (not frozen)
    assert any(name.startswith("backbone") for name in changed) == (not frozen)
    modes = [m.training for m in network.backbone.modules() if isinstance(m, nn.BatchNorm2d)]
    assert modes == [not frozen] * len(modes)
    assert network.training
    assert all(m.training for m in network.head.modules())
    assert not any(m.training for m in network.eval().modules())


@pytest.mark.parametrize("has_classes", [True, False])
def test_under_autocast_scores_are_in_full_precision_and_close(has_classes: bool) -> None:
    network = image_network(power=True).eval()
    if has_classes:
        network.backbone.classifier = nn.Linear(256, 256)
    with torch.no_grad():
        expected = network(some_pixels())
        with torch.autocast("cpu", torch.bfloat16):
            scores = network(some_pixels())
            features = network.backbone(some_pixels())
    assert scores.dtype == torch.float32
    assert features.dtype == (torch.float32 if has_classes else torch.bfloat16)
    assert not torch.equal(scores, expected)
    torch.testing.assert_close(scores, expected, rtol=0, atol=0.03 * expected.std().item())


def test_a_head_that_starts_at_zero_favours_no_label() -> None:
    layer = zero_linear(4, 3)
    assert (layer(torch.randn(5, 4)) == 0).all()
    assert np.array_equal([p.requires_grad for p in layer.parameters()], [True, True])


def some_clusters() -> Clusters:
    centres = nn.functional.normalize(draw(3, 2, seed=3), dim=1)
    return Clusters(0.1 * draw(4, seed=1), draw(2, 4, seed=2), centres, 0.3)


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


FEATURES = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)


def layer() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(6, 5)


def test_there_are_classes_where_there_is_a_classifier() -> None:
    for classifier, n_sparse in ((layer(), 9), (None, 4)):
        views = make_views(FEATURES, classifier)
        assert views.n_sparse == n_sparse and views.pooled
        assert show_views(views, FEATURES).shape == (40, n_sparse + 6)


def test_the_temperature_is_that_of_the_classes() -> None:
    views = make_views(FEATURES, layer(), temperature=0.5)
    scores = layer()(torch.from_numpy(FEATURES)).double() / 0.5
    expected = (scores.exp() / scores.exp().sum(dim=1, keepdim=True)).sqrt().detach()
    np.testing.assert_allclose(show_views(views, FEATURES)[:, :5], expected, rtol=1e-4)


def test_rows_are_shown_in_parts_whatever_their_type(monkeypatch: pytest.MonkeyPatch) -> None:
    views = make_views(FEATURES, layer())
    whole = show_views(views, FEATURES)
    monkeypatch.setattr(module, "AT_ONCE", 7)
    np.testing.assert_allclose(show_views(views, FEATURES), whole, atol=1e-6)
    halves = show_views(views, FEATURES.astype(np.float16))
    assert halves.dtype == np.float32
    np.testing.assert_allclose(halves, whole, atol=0.01)
    np.testing.assert_allclose(show_views(views, FEATURES.astype(np.float64)), whole, atol=1e-6)


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
    monkeypatch.setattr(module, "MOST_ROWS", 100)
    assert len(find_clusters(draw_features(1000)).centres) == 10
