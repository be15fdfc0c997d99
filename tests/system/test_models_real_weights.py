"""Weights of ResNet-50 as they are published, on real pictures."""

from pathlib import Path

import pytest
import torch

from comes.datasets import open_dataset
from comes.models import ResNet, make_backbone
from comes.models.backbones import choose_strides, load_weights
from comes.training.pixels import PixelRows

CPU = torch.device("cpu")


@pytest.mark.needs("images", "weights")
def test_the_real_weights_of_2015_are_the_first_variant(image_data: Path) -> None:
    weights = image_data.parent / "weights" / "resnet50-v1-imagenet-fp16.safetensors"
    backbone = make_backbone("resnet50")
    load_weights(backbone, weights)
    images = open_dataset("VOC2012-160px:val").X[:16]
    (pixels,) = PixelRows(images, 224, CPU).batches([torch.arange(16)])
    mismatches = choose_strides(backbone, pixels)
    assert isinstance(backbone.network, ResNet)
    assert backbone.network.strides == "v1"
    assert mismatches["v1"] < 0.6 * mismatches["v1.5"]
    assert backbone.classifier is not None
    assert backbone.classifier.out_features == 1000
