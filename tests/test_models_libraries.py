import gc
from pathlib import Path

import pytest
import torch
from torch import nn

from comes.errors import ComesError
from comes.models import make_backbone
from comes.models.backbones import IMAGENET_MEAN, IMAGENET_STD, import_torchvision
from pictures import some_pixels, tiny


def test_torchvision_can_be_imported_again_and_its_models_compute() -> None:
    first, second = (import_torchvision("a test") for _ in range(2))
    assert first is second
    gc.collect()
    assert hasattr(torch.ops.torchvision, "nms")  # what was declared stays so
    with torch.no_grad():
        assert first.models.mobilenet_v3_small().eval()(torch.zeros(1, 3, 32, 32)).shape == (
            1,
            1000,
        )


def test_networks_of_libraries_are_backbones_with_a_classifier() -> None:
    for name, n_pooled in (("timm:resnet10t", 512), ("torchvision:mobilenet_v3_small", 1024)):
        backbone = make_backbone(name).eval()
        assert isinstance(backbone.classifier, nn.Linear)
        assert backbone.classifier.in_features == n_pooled
        with torch.no_grad():
            assert backbone(some_pixels(2)).shape == (2, 1000)
            backbone.classifier = None
            assert backbone(some_pixels(2)).shape == (2, n_pooled)


def test_the_classifier_of_a_library_gives_the_scores_of_its_network() -> None:
    torchvision = import_torchvision("a test")
    torch.manual_seed(0)
    theirs = torchvision.models.mobilenet_v3_small().eval()
    torch.manual_seed(0)
    backbone = make_backbone("torchvision:mobilenet_v3_small").eval()
    mean, std = (torch.tensor(v)[:, None, None] for v in (IMAGENET_MEAN, IMAGENET_STD))
    with torch.no_grad():
        scores = theirs((some_pixels(2) / 255 - mean) / std)
        features = backbone(some_pixels(2))
    expected = (scores / backbone.temperature).softmax(dim=1)
    torch.testing.assert_close(features.square(), expected)


def test_an_unknown_network_is_refused(tmp_path: Path) -> None:
    for name, message in (
        ("resnet18", "backbone must be resnet50, resnet101, resnet152, timm:NAME"),
        ("timm:", "backbone must be"),
        ("hub:resnet50", "backbone must be"),
        ("timm:resnet51t", "timm has no model 'resnet51t'"),
        ("torchvision:resnet51", "torchvision has no model 'resnet51'"),
        ("torchvision:fcn_resnet50", "no model 'fcn_resnet50' that classifies"),
        (str(tmp_path), f"For a folder write folder:{tmp_path}"),
    ):
        with pytest.raises(ComesError, match=message):
            make_backbone(name)


def test_a_network_without_a_linear_layer_has_no_classifier() -> None:
    assert make_backbone("torchvision:squeezenet1_1").classifier is None


def test_a_module_becomes_a_backbone_and_a_backbone_stays_one() -> None:
    backbone = make_backbone(tiny())
    assert backbone.classifier is None
    assert make_backbone(backbone) is backbone
