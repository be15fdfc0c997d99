"""From pictures to features: preprocessing, networks by name, weights in files, strides.

Nothing is downloaded.
"""

import copy
import gc
import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import Tensor, nn

from comes.errors import ComesError
from comes.images.backbones import (
    RESNETS,
    Backbone,
    Strides,
    choose_strides,
    get_strides,
    import_torchvision,
    load_weights,
    make_backbone,
    root_probabilities,
    set_strides,
)
from comes.training.pixels import IMAGENET_MEAN, IMAGENET_STD, PixelRows, Preprocessing
from pictures import pictures, randomised, some_pixels, tiny

CPU = torch.device("cpu")
STATE = tiny().state_dict()


def normalised(mean: Any, std: Any) -> Tensor:
    """Return pictures as a network takes them, without a backbone."""
    shift, scale = (torch.tensor(numbers)[:, None, None] for numbers in (mean, std))
    return (some_pixels(4) / 255 - shift) / scale


# What the network sees


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


def test_libraries_bring_their_own() -> None:
    half = (0.5, 0.5, 0.5)
    vit = make_backbone("timm:vit_tiny_patch16_224")
    assert vit.preprocessing == Preprocessing(224, "bicubic", None, half, half)
    assert vit.mean.flatten().tolist() == [127.5] * 3
    small = make_backbone("timm:resnet10t").preprocessing
    assert (small.size, small.short_side, small.interpolation) == (176, None, "bicubic")
    mobile = make_backbone("torchvision:mobilenet_v3_small").preprocessing
    assert mobile == make_backbone("resnet50").preprocessing == Preprocessing(224, "bilinear")
    assert make_backbone(tiny(), size=64).preprocessing == Preprocessing(64)


def test_a_backbone_keeps_its_own_way_at_another_size() -> None:
    own = Backbone(tiny(), preprocessing=Preprocessing(224, "bicubic", 256))
    made = make_backbone(own, size=112)
    assert made.preprocessing == Preprocessing(112, "bicubic", 128)
    assert own.preprocessing.size == 224  # a copy was changed


def test_a_network_of_one_size_is_made_for_another() -> None:
    backbone = make_backbone("timm:vit_tiny_patch16_224", size=64)
    assert backbone.preprocessing.size == 64
    assert backbone.count_features() == 1000


def test_a_size_that_a_network_does_not_take_is_refused() -> None:
    class Square(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.reshape(len(x), 3 * 16 * 16)

    assert make_backbone(Square(), size=16).count_features() == 3 * 16 * 16
    with pytest.raises(ComesError, match="does not take pictures of 20 x 20 .*Leave image_size"):
        make_backbone(Square(), size=20)


def test_pixels_are_what_the_network_wants() -> None:
    own = Preprocessing(16, "bicubic", 20)
    pictures = [picture(40, 60), picture(60, 40)]
    (pixels,) = PixelRows(pictures, own, CPU).batches([torch.arange(2)])
    expected = np.stack([own.apply(one) for one in pictures]).transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(pixels, expected)


# Features


def test_pixels_are_normalised_and_maps_averaged() -> None:
    pixels, mean, std = some_pixels(), (0.1, 0.2, 0.3), (0.5, 0.6, 0.7)
    parts = [(pixels[:, c] / 255 - mean[c]) / std[c] for c in range(3)]
    expected = torch.stack(parts, dim=1)
    own = Preprocessing(8, mean=mean, std=std)
    torch.testing.assert_close(Backbone(nn.Flatten(), None, own)(pixels), expected.flatten(1))
    maps = Backbone(nn.Identity(), None, own)
    torch.testing.assert_close(maps(pixels), expected.mean(dim=(2, 3)))
    assert maps.count_features() == 3


def test_counting_features_leaves_the_mode_alone() -> None:
    backbone = Backbone(tiny(), preprocessing=Preprocessing(32)).train()
    statistics = copy.deepcopy(backbone.state_dict())
    assert backbone.count_features() == 256
    assert backbone.training
    for name, tensor in backbone.state_dict().items():
        torch.testing.assert_close(tensor, statistics[name], rtol=0, atol=0)
    assert backbone.eval().count_features() == 256
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
    torch.testing.assert_close(features.square().sum(dim=1), torch.ones(8))


def test_gradients_are_finite_where_a_class_is_impossible() -> None:
    classifier = nn.Linear(1, 2)
    with torch.no_grad():
        classifier.weight.copy_(torch.tensor([[400.0], [-400.0]]))
    pooled = torch.ones(1, 1, requires_grad=True)
    root_probabilities(classifier(pooled), 2.0)[0, 0].backward()
    assert pooled.grad is not None and pooled.grad.isfinite().all()


def test_roots_of_probabilities_by_plain_loops() -> None:
    scores = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    found = root_probabilities(scores, 1.7)
    for i in range(5):
        heights = [np.exp(float(scores[i, j]) / 1.7) for j in range(4)]
        for j in range(4):
            assert float(found[i, j]) == pytest.approx((heights[j] / sum(heights)) ** 0.5, rel=1e-5)


# Networks of timm and torchvision


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
    with torch.no_grad():
        scores = theirs(normalised(IMAGENET_MEAN, IMAGENET_STD))
        features = backbone(some_pixels(4))
    expected = (scores / backbone.temperature).softmax(dim=1)
    torch.testing.assert_close(features.square(), expected)


def test_an_unknown_network_is_refused(tmp_path: Path) -> None:
    for name, message in (
        ("resnet18", "backbone must be resnet50, resnet101, resnet152, timm:NAME"),
        ("timm:", "backbone must be"),
        ("hub:resnet50", "backbone must be"),
        ("timm:resnet51t", "timm has no model 'resnet51t'"),
        ("timm:resnet10t.none", "timm:resnet10t.none could not be loaded"),
        ("torchvision:resnet51", "torchvision has no model 'resnet51'"),
        ("torchvision:fcn_resnet50", "no model 'fcn_resnet50' that classifies"),
        (str(tmp_path), f"write timm:local-dir:{tmp_path}"),
        ("folder:dinov2", "that timm saved write timm:local-dir:dinov2; wrap a network of trans"),
    ):
        with pytest.raises(ComesError, match=message):
            make_backbone(name)


def test_a_network_without_a_linear_layer_has_no_classifier() -> None:
    assert make_backbone("torchvision:squeezenet1_1").classifier is None


def test_a_module_becomes_a_backbone_and_a_backbone_stays_one() -> None:
    backbone = make_backbone(tiny())
    assert backbone.classifier is None
    again = make_backbone(backbone)
    assert isinstance(again.network, type(tiny())) and again is not backbone  # a copy


# Folders of timm


def test_a_folder_of_timm_is_the_network_that_was_saved(tmp_path: Path) -> None:
    import_torchvision("a test")
    import timm

    torch.manual_seed(0)
    network: Any = timm.create_model("resnet10t", num_classes=7)
    settings = {"num_classes": 7}
    timm.models.save_for_hf(network, str(tmp_path), model_args=settings, safe_serialization=True)
    backbone = make_backbone(f"timm:local-dir:{tmp_path}", "imagenet").eval()
    own = backbone.preprocessing
    assert (own.size, own.interpolation, own.short_side) == (176, "bicubic", None)
    with torch.no_grad():
        scores = network.eval()(normalised(own.mean, own.std))
        features = backbone(some_pixels(4))
    torch.testing.assert_close(features.square(), (scores / 2).softmax(dim=1))
    config = json.loads((tmp_path / "config.json").read_text())
    for text in ("{", "{}", json.dumps(config | {"architecture": "resnet14t"})):
        (tmp_path / "config.json").write_text(text)
        with pytest.raises(ComesError, match="timm:local-dir:.* could not be loaded"):
            make_backbone(f"timm:local-dir:{tmp_path}", "imagenet")


# Files of weights


def as_safetensors(state: dict[str, Tensor], folder: Path) -> Path:
    save_file(state, folder / "weights.safetensors")
    return folder / "weights.safetensors"


def as_pth(state: Any, folder: Path) -> Path:
    torch.save(state, folder / "weights.pth")
    return folder / "weights.pth"


def in_a_checkpoint(state: dict[str, Tensor], folder: Path) -> Path:
    renamed = {f"module.{name}": tensor for name, tensor in state.items()}
    return as_pth({"epoch": 3, "state_dict": renamed}, folder)


def in_a_model(state: dict[str, Tensor], folder: Path) -> Path:
    return as_pth({"model": state, "optimizer": {"lr": 0.1}}, folder)


@pytest.mark.parametrize("write", [as_safetensors, as_pth, in_a_checkpoint, in_a_model])
def test_weights_are_read_from_every_usual_file(
    write: Callable[[dict[str, Tensor], Path], Path], tmp_path: Path
) -> None:
    source = randomised(tiny(), seed=1).state_dict()
    for dtype in (torch.float32, torch.float16):
        stored = {k: v.to(dtype) if v.is_floating_point() else v for k, v in source.items()}
        backbone = Backbone(tiny(), nn.Linear(256, 9))
        load_weights(backbone, str(write(stored, tmp_path)))
        loaded = backbone.network.state_dict()
        for name, tensor in stored.items():
            assert loaded[name].dtype == source[name].dtype
            torch.testing.assert_close(loaded[name], tensor.to(source[name].dtype), rtol=0, atol=0)
        assert backbone.classifier is None  # the file has none, and that of other weights is wrong


def test_counts_of_batches_may_be_absent(tmp_path: Path) -> None:
    state = {k: v for k, v in randomised(tiny(), 1).state_dict().items() if "num_batches" not in k}
    backbone = Backbone(tiny())
    load_weights(backbone, as_safetensors(state, tmp_path))
    torch.testing.assert_close(backbone.network.state_dict()["bn1.weight"], state["bn1.weight"])


def test_a_linear_layer_on_top_becomes_the_classifier(tmp_path: Path) -> None:
    weight, bias = torch.randn(7, 256).half(), torch.randn(7).half()
    for top in ("fc", "head", "heads", "classifier.1"):
        path = as_pth({**STATE, f"{top}.weight": weight, f"{top}.bias": bias}, tmp_path)
        backbone = Backbone(tiny())
        load_weights(backbone, path)
        assert backbone.classifier is not None, top
        assert torch.equal(backbone.classifier.weight, weight.float())
        assert torch.equal(backbone.classifier.bias, bias.float())
        assert backbone.eval()(some_pixels()).shape == (8, 7)


def test_more_than_a_linear_layer_on_top_is_left_out(tmp_path: Path) -> None:
    ones = torch.ones
    two_layers = {"head.0.weight": ones(9, 256), "head.0.bias": ones(9)}
    two_layers |= {"head.1.weight": ones(7, 9), "head.1.bias": ones(7)}
    convolution = {"classifier.1.weight": ones(7, 256, 1, 1), "classifier.1.bias": ones(7)}
    for top in (two_layers, convolution):
        backbone = Backbone(tiny())
        load_weights(backbone, as_pth({**STATE, **top}, tmp_path))
        assert backbone.classifier is None


@pytest.mark.parametrize(
    ("name", "tensor", "how"),
    [
        ("layer3.0.conv2.weight", None, "missing"),
        ("layer5.0.bias", torch.zeros(1), "not wanted"),
        ("conv1.weight", torch.zeros(8, 1, 7, 7), "of another shape"),
    ],
)
def test_weights_of_another_network_are_refused_by_name(
    name: str, tensor: Tensor | None, how: str, tmp_path: Path
) -> None:
    state: dict[str, Any] = randomised(tiny(), seed=1).state_dict() | {name: tensor}
    state = {key: value for key, value in state.items() if value is not None}
    backbone = Backbone(tiny())
    with pytest.raises(ComesError, match=rf"network: 1 {how} \('{name}'\)\. Name"):
        load_weights(backbone, as_pth(state, tmp_path))
    for key, value in backbone.network.state_dict().items():  # not even those that fit
        assert torch.equal(value, STATE[key])


def test_a_file_that_holds_no_weights_is_refused(tmp_path: Path) -> None:
    for ending in (".pth", ".safetensors"):
        path = tmp_path / f"weights{ending}"
        with pytest.raises(ComesError, match="there is no file of weights at .*weights"):
            load_weights(Backbone(tiny()), path)
        for content in ("no weights, but a text\n", ""):
            path.write_text(content)
            with pytest.raises(ComesError, match=f"weights{ending} must be safetensors or"):
                load_weights(Backbone(tiny()), path)
    objects: list[Any] = [[1, 2], {"epoch": 3}, torch.zeros(2), {1: torch.zeros(2)}]
    for content in objects:
        with pytest.raises(ComesError, match="it cannot be read as such .it holds other objects"):
            load_weights(Backbone(tiny()), as_pth(content, tmp_path))


class Dangerous:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize(
    "save", [torch.save, lambda what, path: path.write_bytes(pickle.dumps(what))]
)
def test_code_in_a_file_is_not_run(save: Callable[[Any, Path], object], tmp_path: Path) -> None:
    path, trace = tmp_path / "weights.pth", tmp_path / "trace"
    save({"conv1.weight": Dangerous(trace)}, path)
    with pytest.raises(ComesError, match="must be safetensors or a state dict"):
        load_weights(Backbone(tiny()), path)
    assert not trace.exists()


# Strides


def test_resnets_have_the_names_and_shapes_of_both_libraries() -> None:
    import_torchvision("a test")
    import timm

    for name in RESNETS:
        with torch.device("meta"):
            network = make_backbone(name, device="meta").network
            theirs = timm.create_model(name, num_classes=0)
        assert get_strides(network) == get_strides(theirs) == "v1.5"
        ours, other = (one.state_dict() for one in (network, theirs))
        assert {k: w.shape for k, w in ours.items()} == {k: w.shape for k, w in other.items()}


def test_strides_move_between_two_convolutions_and_back() -> None:
    network, x = tiny().eval(), some_pixels().float()
    with torch.no_grad():
        before = network(x)
        set_strides(network, "v1")
        moved = network(x)
        for stage, (first, second) in enumerate([(1, 1), (2, 1), (2, 1), (2, 1)], start=1):
            block: Any = network.get_submodule(f"layer{stage}.0")
            assert (block.conv1.stride, block.conv2.stride) == ((first,) * 2, (second,) * 2)
        assert get_strides(network) == "v1"
        set_strides(network, "v1.5")
        torch.testing.assert_close(network(x), before, rtol=0, atol=0)
    assert (moved - before).norm() > 0.01 * before.norm()
    assert get_strides(network) == "v1.5" and get_strides(nn.Conv2d(3, 3, 3)) is None


@pytest.mark.parametrize(("right", "start"), [("v1", "v1.5"), ("v1.5", "v1"), ("v1", "v1")])
def test_strides_are_recognised_by_the_statistics_learnt_with_them(
    right: Strides, start: Strides
) -> None:
    network = tiny()
    backbone = Backbone(network)
    set_strides(network, right)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = None  # the mean of all batches
    with torch.no_grad():
        for batch in some_pixels(96).split(32):
            backbone.train()(batch)
    set_strides(network, start)
    mismatches = choose_strides(backbone, torch.from_numpy(pictures(40, seed=1)[0]).movedim(3, 1))
    wrong: Strides = "v1" if right == "v1.5" else "v1.5"
    assert get_strides(network) == right
    assert mismatches[right] < 0.5 * mismatches[wrong]
