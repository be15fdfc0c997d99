import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from comes.models import Backbone, ImageNetwork, Preprocessing, power_normalised, zero_linear
from pictures import some_pixels, tiny


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


@pytest.mark.parametrize("power", [True, False])
def test_scores_are_those_of_the_scaled_features(power: bool) -> None:
    shift, scale = torch.rand(256), 1 + torch.rand(256)
    network = image_network(shift=shift, scale=scale, power=power).eval()
    with torch.no_grad():
        features = network.backbone(some_pixels())
        scores = network(some_pixels())
        torch.testing.assert_close(network.score_features(features), scores, rtol=0, atol=0)
        scaled = power_normalised(features) if power else features
        torch.testing.assert_close(network.head((scaled - shift) / scale), scores)


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
