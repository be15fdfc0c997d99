"""Networks for images: from pixels to features, views of these, and scores."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from comes.models import Backbone, Preprocessing, ResNet, make_backbone
from comes.models.backbones import DEPTHS, import_torchvision, root_probabilities
from comes.models.views import Clusters, ImageNetwork, Views, power_normalised, project, zero_linear
from pictures import randomised, some_pixels, tiny


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_pixels_are_normalised_and_maps_averaged() -> None:
    pixels, mean, std = some_pixels(), (0.1, 0.2, 0.3), (0.5, 0.6, 0.7)
    parts = [(pixels[:, c] / 255 - mean[c]) / std[c] for c in range(3)]
    expected = torch.stack(parts, dim=1)
    own = Preprocessing(mean=mean, std=std)
    torch.testing.assert_close(Backbone(nn.Flatten(), None, own)(pixels), expected.flatten(1))
    maps = Backbone(nn.Identity(), None, own)
    torch.testing.assert_close(maps(pixels), expected.mean(dim=(2, 3)))
    assert maps.count_features(8) == 3


def test_counting_features_leaves_the_mode_alone() -> None:
    backbone = Backbone(tiny()).train()
    statistics = copy.deepcopy(backbone.state_dict())
    assert backbone.count_features(32) == 256
    assert backbone.training
    for name, tensor in backbone.state_dict().items():
        torch.testing.assert_close(tensor, statistics[name], rtol=0, atol=0)
    assert backbone.eval().count_features(32) == 256
    assert not backbone.training


def test_class_features_are_roots_of_probabilities_at_the_temperature() -> None:
    classifier = nn.Linear(256, 6)
    backbone = Backbone(tiny(), classifier, temperature=3.0).eval()
    with torch.no_grad():
        features = backbone(some_pixels())
        pooled = Backbone(backbone.network).eval()(some_pixels())
        heights = (classifier(pooled) / 3).exp()
        expected = (heights / heights.sum(dim=1, keepdim=True)).sqrt()
        torch.testing.assert_close(features, expected)
        torch.testing.assert_close(backbone.class_features(pooled), expected)
    torch.testing.assert_close(features.square().sum(dim=1), torch.ones(8))


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


def test_gradients_are_finite_where_a_class_is_impossible() -> None:
    classifier = nn.Linear(1, 2)
    with torch.no_grad():
        classifier.weight.copy_(torch.tensor([[400.0], [-400.0]]))
    pooled = torch.ones(1, 1, requires_grad=True)
    Backbone(nn.Identity(), classifier).class_features(pooled)[0, 0].backward()
    assert pooled.grad is not None
    assert pooled.grad.isfinite().all()


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


def test_resnets_have_the_weights_of_torchvision() -> None:
    torchvision = import_torchvision("a test")
    for name in DEPTHS:
        with torch.device("meta"):
            theirs = torchvision.models.get_model(name).state_dict()
            ours = make_backbone(name).network.state_dict()
        shapes = {key: w.shape for key, w in theirs.items() if not key.startswith("fc.")}
        assert {key: w.shape for key, w in ours.items()} == shapes, name


def test_with_equal_weights_features_are_those_of_torchvision() -> None:
    theirs = randomised(import_torchvision("a test").models.resnet50()).eval()
    theirs.fc = nn.Identity()
    ours = ResNet().eval()
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = theirs(x)
        torch.testing.assert_close(ours(x), expected, rtol=1e-4, atol=1e-4 * expected.max().item())
        ours.set_strides("v1")
        assert (ours(x) - expected).norm() > 0.1 * expected.norm()


def test_strides_move_between_two_convolutions_and_back() -> None:
    network, x = tiny().eval(), some_pixels().float()
    with torch.no_grad():
        before = network(x)
        network.set_strides("v1")
        moved = network(x)
        torch.testing.assert_close(ResNet((1,) * 4, 8, "v1").eval()(x).shape, moved.shape)
        for stage, (first, second) in enumerate([(1, 1), (2, 1), (2, 1), (2, 1)], start=1):
            block: Any = network.get_submodule(f"layer{stage}.0")
            assert (block.conv1.stride, block.conv2.stride) == ((first,) * 2, (second,) * 2)
        network.set_strides("v1.5")
        torch.testing.assert_close(network(x), before, rtol=0, atol=0)
    assert (moved - before).norm() > 0.01 * before.norm()
    assert network.strides == "v1.5"


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
