import copy
import gc
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from comes.datasets import open_dataset
from comes.errors import ComesError
from comes.models import (
    Backbone,
    ImageNetwork,
    ResNet,
    choose_strides,
    load_weights,
    make_backbone,
    power_normalised,
    zero_linear,
)
from comes.models.backbones import IMAGENET_MEAN, IMAGENET_STD
from comes.models.libraries import DEPTHS, import_torchvision
from comes.models.resnet import Strides
from comes.training import PixelRows
from pictures import pictures, tiny

CPU = torch.device("cpu")
STATE = tiny().state_dict()


def some_pixels(n: int = 8) -> Tensor:
    return torch.from_numpy(pictures(n)[0]).permute(0, 3, 1, 2)


def randomised(network: nn.Module, seed: int = 0) -> nn.Module:
    """Give every number of a network a value of its own, statistics included."""
    generator = torch.Generator().manual_seed(seed)
    for name, tensor in network.state_dict().items():
        if tensor.ndim == 1 and "num_batches" not in name:
            tensor.uniform_(0.5, 1.5, generator=generator)
    return network


@pytest.mark.parametrize("name", DEPTHS)
def test_resnets_have_the_weights_of_torchvision(name: str) -> None:
    torchvision = import_torchvision("a test")
    with torch.device("meta"):
        theirs = torchvision.models.get_model(name).state_dict()
        ours = make_backbone(name).network.state_dict()
    shapes = {key: w.shape for key, w in theirs.items() if not key.startswith("fc.")}
    assert {key: w.shape for key, w in ours.items()} == shapes


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


@pytest.mark.parametrize("right", ["v1", "v1.5"])
@pytest.mark.parametrize("start", ["v1", "v1.5"])
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


def test_the_real_weights_of_2015_are_the_first_variant(image_data: Path) -> None:
    weights = image_data.parent / "weights" / "resnet50-v1-imagenet-fp16.safetensors"
    if not weights.is_file() or not (image_data / "voc2012-160px-val.zip").is_file():
        pytest.skip(f"{image_data.parent} has no weights of ResNet-50 or no pictures of VOC2012")
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
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_weights_are_read_from_every_usual_file(
    write: Callable[[dict[str, Tensor], Path], Path], dtype: torch.dtype, tmp_path: Path
) -> None:
    source = randomised(tiny(), seed=1).state_dict()
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


@pytest.mark.parametrize("top", ["fc", "head", "classifier.1"])
def test_a_linear_layer_on_top_becomes_the_classifier(top: str, tmp_path: Path) -> None:
    weight, bias = torch.randn(7, 256).half(), torch.randn(7).half()
    path = as_pth({**STATE, f"{top}.weight": weight, f"{top}.bias": bias}, tmp_path)
    backbone = Backbone(tiny())
    load_weights(backbone, path)
    assert backbone.classifier is not None
    torch.testing.assert_close(backbone.classifier.weight.data, weight.float(), rtol=0, atol=0)
    torch.testing.assert_close(backbone.classifier.bias.data, bias.float(), rtol=0, atol=0)
    assert backbone.eval()(some_pixels()).shape == (8, 7)


def test_more_than_a_linear_layer_on_top_is_left_out(tmp_path: Path) -> None:
    top = {"head.0.weight": torch.ones(9, 256), "head.0.bias": torch.ones(9)}
    top |= {"head.1.weight": torch.ones(7, 9), "head.1.bias": torch.ones(7)}
    backbone = Backbone(tiny())
    load_weights(backbone, as_pth({**STATE, **top}, tmp_path))
    assert backbone.classifier is None


def missing(state: dict[str, Tensor]) -> None:
    del state["layer3.0.conv2.weight"]


def unwanted(state: dict[str, Tensor]) -> None:
    state["layer5.0.bias"] = torch.zeros(1)


def of_another_shape(state: dict[str, Tensor]) -> None:
    state["conv1.weight"] = torch.zeros(8, 1, 7, 7)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (missing, r"1 are missing \('layer3.0.conv2.weight'\), 0 are not wanted"),
        (unwanted, r"1 are not wanted \('layer5.0.bias'\), 0 have another shape"),
        (of_another_shape, r"0 are missing .*, 1 have another shape \('conv1.weight'\)"),
    ],
)
def test_weights_of_another_network_are_refused_by_name(
    change: Callable[[dict[str, Tensor]], None], message: str, tmp_path: Path
) -> None:
    state = randomised(tiny(), seed=1).state_dict()
    change(state)
    backbone = Backbone(tiny())
    with pytest.raises(ComesError, match=message):
        load_weights(backbone, as_pth(state, tmp_path))
    for name, tensor in backbone.network.state_dict().items():  # not even those that fit
        torch.testing.assert_close(tensor, STATE[name], rtol=0, atol=0)


@pytest.mark.parametrize("ending", [".pth", ".safetensors"])
def test_a_file_that_holds_no_weights_is_refused(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"weights{ending}"
    with pytest.raises(ComesError, match="there is no file of weights at .*weights"):
        load_weights(Backbone(tiny()), path)
    for content in ("no weights, but a text\n", ""):
        path.write_text(content)
        with pytest.raises(ComesError, match=f"weights{ending} (cannot be read|is neither)"):
            load_weights(Backbone(tiny()), path)


@pytest.mark.parametrize("content", [[1, 2], {"epoch": 3}, torch.zeros(2), {1: torch.zeros(2)}])
def test_other_objects_are_no_weights(content: Any, tmp_path: Path) -> None:
    with pytest.raises(ComesError, match="must hold a state dict"):
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
    with pytest.raises(ComesError, match="neither safetensors nor a state dict"):
        load_weights(Backbone(tiny()), path)
    assert not trace.exists()


@pytest.mark.parametrize(
    ("name", "n_pooled"), [("timm:resnet10t", 512), ("torchvision:mobilenet_v3_small", 1024)]
)
def test_networks_of_libraries_are_backbones_with_a_classifier(name: str, n_pooled: int) -> None:
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


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("resnet18", "backbone must be resnet50, resnet101, resnet152, timm:NAME"),
        ("timm:", "backbone must be"),
        ("hub:resnet50", "backbone must be"),
        ("timm:resnet51t", "timm has no model 'resnet51t'"),
        ("torchvision:resnet51", "torchvision has no model 'resnet51'"),
        ("torchvision:fcn_resnet50", "no model 'fcn_resnet50' that classifies"),
    ],
)
def test_an_unknown_network_is_refused(name: str, message: str) -> None:
    with pytest.raises(ComesError, match=message):
        make_backbone(name)


def test_a_network_without_a_linear_layer_has_no_classifier() -> None:
    assert make_backbone("torchvision:squeezenet1_1").classifier is None


def test_a_module_becomes_a_backbone_and_a_backbone_stays_one() -> None:
    backbone = make_backbone(tiny())
    assert backbone.classifier is None
    assert make_backbone(backbone) is backbone


def test_pixels_are_normalised_and_maps_averaged() -> None:
    pixels, mean, std = some_pixels(), (0.1, 0.2, 0.3), (0.5, 0.6, 0.7)
    parts = [(pixels[:, c] / 255 - mean[c]) / std[c] for c in range(3)]
    expected = torch.stack(parts, dim=1)
    torch.testing.assert_close(Backbone(nn.Flatten(), None, mean, std)(pixels), expected.flatten(1))
    maps = Backbone(nn.Identity(), None, mean, std)
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
