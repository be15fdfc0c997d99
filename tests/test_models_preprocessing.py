"""`Preprocessing`: what a network is shown of a picture, by its own library's rule or stretched."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from PIL import Image

from comes.errors import ComesError
from comes.estimator import pretrained_backbone
from comes.models import Backbone, Preprocessing, make_backbone
from comes.models.backbones import import_torchvision
from comes.training import PixelRows
from pictures import tiny

CPU = torch.device("cpu")


def picture(height: int, width: int) -> npt.NDArray[np.uint8]:
    """Return a picture with slow waves, so that a shift by a pixel shows."""
    rows, columns = np.mgrid[:height, :width]
    waves = [np.sin(rows / 9), np.cos(columns / 7), np.sin((rows + columns) / 11)]
    return np.stack([127 + 120 * wave for wave in waves], axis=2).astype(np.uint8)


INTERPOLATIONS: list[Any] = ["bilinear", "bicubic"]


def test_the_whole_picture_is_stretched_and_one_of_the_size_is_left_alone() -> None:
    for interpolation in INTERPOLATIONS:
        shown = Preprocessing(32, interpolation).apply(picture(50, 70))
        how = Image.Resampling[interpolation.upper()]
        expected = np.asarray(Image.fromarray(picture(50, 70)).resize((32, 32), how))
        np.testing.assert_array_equal(shown, expected)
    assert (same := picture(32, 32)) is Preprocessing(32).apply(same)
    assert Preprocessing(32).apply(picture(32, 40)).shape == (32, 32, 3)


def test_the_centre_is_that_of_torchvision() -> None:
    """Resize the shorter side, keep proportions, cut out the centre; 1 of 255 for rounding."""
    transforms = import_torchvision("a test").transforms
    for interpolation in INTERPOLATIONS:
        resize = transforms.Resize(37, transforms.InterpolationMode(interpolation))
        theirs = transforms.Compose([resize, transforms.CenterCrop(32)])
        own = Preprocessing(32, interpolation, short_side=37)
        for shape in ((60, 90), (91, 40), (64, 64), (33, 32)):
            expected = np.asarray(theirs(Image.fromarray(picture(*shape)))).astype(int)
            difference = np.abs(own.apply(picture(*shape)) - expected).max()
            assert difference <= 1, (interpolation, shape)


def test_another_size_keeps_the_share_that_is_cut_out() -> None:
    own = Preprocessing(224, short_side=256)
    assert own.sized(None) is own
    assert own.sized(112) == Preprocessing(112, short_side=128)
    assert type(own.sized(np.int64(112)).size) is int  # type: ignore[arg-type]
    assert own.cropped(False).short_side is None
    assert own.cropped(True) == own == Preprocessing(224).cropped(True)


def test_libraries_bring_their_own() -> None:
    half = (0.5, 0.5, 0.5)
    vit = make_backbone("timm:vit_tiny_patch16_224", centre_crop=True)
    assert vit.preprocessing == Preprocessing(224, "bicubic", 248, half, half)
    assert vit.mean.flatten().tolist() == [127.5] * 3
    small = make_backbone("timm:resnet10t").preprocessing
    assert (small.size, small.short_side, small.interpolation) == (176, None, "bicubic")
    mobile = make_backbone("torchvision:mobilenet_v3_small", centre_crop=True).preprocessing
    assert mobile == Preprocessing(224, "bilinear", 256)


def test_what_is_built_in_stretches_as_ever() -> None:
    assert make_backbone("resnet50").preprocessing == Preprocessing(224, "bilinear", None)
    assert make_backbone(tiny(), size=64).preprocessing == Preprocessing(64)


def test_a_backbone_keeps_its_own_way_at_another_size() -> None:
    own = Backbone(tiny(), preprocessing=Preprocessing(224, "bicubic", 256))
    made = pretrained_backbone(own, None, [], 112, CPU)
    assert made.preprocessing == Preprocessing(112, "bicubic", 128)
    assert own.preprocessing.size == 224  # a copy was changed


def test_a_network_of_one_size_is_made_for_another() -> None:
    backbone = pretrained_backbone("timm:vit_tiny_patch16_224", None, [], 64, CPU)
    assert backbone.preprocessing.size == 64
    assert backbone.count_features() == 1000


def test_a_size_that_a_network_does_not_take_is_refused() -> None:
    class Square(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.reshape(len(x), 3 * 16 * 16)

    assert pretrained_backbone(Square(), None, [], 16, CPU).count_features() == 3 * 16 * 16
    with pytest.raises(ComesError, match="does not take pictures of 20 x 20 .*Leave image_size"):
        pretrained_backbone(Square(), None, [], 20, CPU)


def test_pixels_are_what_the_network_wants() -> None:
    own = Preprocessing(16, "bicubic", 20)
    pictures = [picture(40, 60), picture(60, 40)]
    (pixels,) = PixelRows(pictures, own, CPU).batches([torch.arange(2)])
    expected = np.stack([own.apply(one) for one in pictures]).transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(pixels, expected)
