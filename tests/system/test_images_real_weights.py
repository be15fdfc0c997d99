"""Weights of ResNet-50 as they are published, on drawn and on real pictures."""

from pathlib import Path

import numpy as np
import pytest
import torch

from comes.datasets import open_dataset
from comes.images import Backbone, compute_features, make_backbone
from comes.images.backbones import choose_strides, get_strides, load_weights, set_strides
from comes.training.pixels import PixelRows

CPU = torch.device("cpu")
EXPECTED = {
    "v1": (
        [
            [0.21538, 0.0438, 0.0, 0.0],
            [0.13892, 0.08219, 0.00028, 0.0],
            [0.48332, 0.16775, 0.01217, 0.01246],
            [0.17703, 0.03617, 0.0, 0.0],
        ],
        [43.21, 47.25, 42.745, 56.731],
    ),
    "v1.5": (
        [
            [0.1657, 0.07754, 0.01413, 0.0],
            [0.15767, 0.1413, 0.01757, 0.0],
            [0.13355, 0.15428, 0.00545, 0.0],
            [0.28578, 0.05499, 0.0, 0.0],
        ],
        [39.293, 41.233, 36.081, 56.019],
    ),
}


@pytest.fixture
def backbone(image_data: Path) -> Backbone:
    """A ResNet-50 with the weights of 2015."""
    weights = image_data.parent / "weights" / "resnet50-v1-imagenet-fp16.safetensors"
    made = make_backbone("resnet50")
    load_weights(made, weights)
    return made


@pytest.mark.needs("images", "weights")
def test_the_real_weights_of_2015_are_the_first_variant(backbone: Backbone) -> None:
    images = open_dataset("VOC2012-160px:val").X[:16]
    (pixels,) = PixelRows(images, 224, CPU).batches([torch.arange(16)])
    mismatches = choose_strides(backbone, pixels)
    assert get_strides(backbone.network) == "v1"
    assert mismatches["v1"] < 0.6 * mismatches["v1.5"]
    assert backbone.classifier is not None
    assert backbone.classifier.out_features == 1000


def draw_pictures() -> list[np.ndarray]:
    """Return pictures of several sizes with slopes and a red box."""
    drawn = []
    for k, (height, width) in enumerate([(200, 300), (224, 224), (160, 120), (300, 300)]):
        y, x = np.mgrid[:height, :width]
        picture = np.stack([x * (k + 1) % 256, y * (k + 2) % 256, (x + y) * 2 % 256], axis=2)
        picture[height // 4 : height // 2, width // 4 : width // 2] = [255, 40 * k, 0]
        drawn.append(picture.astype(np.uint8))
    return drawn


@pytest.mark.needs("weights")
@pytest.mark.parametrize("strides", ["v1", "v1.5"])
def test_features_are_those_of_version_1(backbone: Backbone, strides: str) -> None:
    """As its own ResNet gave them: the first four, and the length of each row."""
    backbone.classifier = None
    set_strides(backbone.network, strides)  # type: ignore[arg-type]
    X = compute_features(backbone, draw_pictures(), CPU, cache=False)
    first, lengths = EXPECTED[strides]
    np.testing.assert_allclose(X[:, :4], first, atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), lengths, rtol=1e-4)
