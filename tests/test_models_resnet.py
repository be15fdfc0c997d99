"""Our own ResNets: torchvision's weights and features, and the two variants of strides."""

from typing import Any

import pytest
import torch
from torch import nn

from comes.models import Backbone, ResNet, make_backbone
from comes.models.backbones import DEPTHS, choose_strides, import_torchvision
from comes.models.resnet import Strides
from pictures import pictures, randomised, some_pixels, tiny


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


@pytest.mark.parametrize(("right", "start"), [("v1", "v1.5"), ("v1.5", "v1"), ("v1", "v1")])
def test_strides_are_recognised_by_the_statistics_learnt_with_them(
    right: Strides, start: Strides
) -> None:
    network = tiny()
    backbone = Backbone(network)
    network.set_strides(right)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = None  # the mean of all batches
    with torch.no_grad():
        for batch in some_pixels(96).split(32):
            backbone.train()(batch)
    network.set_strides(start)
    mismatches = choose_strides(backbone, torch.from_numpy(pictures(40, seed=1)[0]).movedim(3, 1))
    wrong: Strides = "v1" if right == "v1.5" else "v1.5"
    assert network.strides == right
    assert mismatches[right] < 0.5 * mismatches[wrong]
