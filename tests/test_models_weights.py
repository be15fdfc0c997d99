import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from comes.errors import ComesError
from comes.models import Backbone
from comes.models.backbones import choose_strides, load_weights
from comes.models.resnet import Strides
from pictures import pictures, randomised, some_pixels, tiny

STATE = tiny().state_dict()


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


def missing(state: dict[str, Tensor]) -> None:
    del state["layer3.0.conv2.weight"]


def unwanted(state: dict[str, Tensor]) -> None:
    state["layer5.0.bias"] = torch.zeros(1)


def of_another_shape(state: dict[str, Tensor]) -> None:
    state["conv1.weight"] = torch.zeros(8, 1, 7, 7)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (missing, r"network: 1 missing \('layer3.0.conv2.weight'\)\. Name"),
        (unwanted, r"network: 1 not wanted \('layer5.0.bias'\)\. Name"),
        (of_another_shape, r"network: 1 of another shape \('conv1.weight'\)\. Name"),
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
