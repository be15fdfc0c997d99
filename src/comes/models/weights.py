"""Stored weights: read them into a backbone, and find the strides that belong to them."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from comes.errors import ComesError, first_line, listed
from comes.files import expanded
from comes.models.backbones import Backbone
from comes.models.resnet import ResNet, Strides

TOPS = ("fc", "classifier", "head", "heads")  # what libraries call the classifier


def load_weights(backbone: Backbone, path: str | Path) -> None:
    """Load weights into a backbone from a file, safetensors or a state dict of torch.

    If all that is on top of the stored network is a linear classifier, it becomes the backbone's.
    Weights that do not fit raise an error.

    Parameters
    ----------
    backbone : Backbone
    path : str or Path

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> stored = ResNet((1, 1, 1, 1), width=4)
    >>> backbone = Backbone(ResNet((1, 1, 1, 1), width=4))
    >>> with TemporaryDirectory() as folder:
    ...     torch.save(stored.state_dict(), f"{folder}/weights.pth")
    ...     load_weights(backbone, f"{folder}/weights.pth")
    >>> torch.equal(backbone.network.conv1.weight, stored.conv1.weight)
    True
    """
    there = _read_state(expanded(path))
    wanted = backbone.network.state_dict()
    on_top = [name for name in there if name.split(".")[0] in TOPS and name not in wanted]
    missing = [name for name in wanted if name not in there and "num_batches" not in name]
    other = [name for name in there if name not in wanted and name not in on_top]
    unequal = [k for k in wanted if k in there and wanted[k].shape != there[k].shape]
    wrong = {"missing": missing, "not wanted": other, "of another shape": unequal}
    found = [f"{len(names)} {how} ({listed(names, 2)})" for how, names in wrong.items() if names]
    if found:
        raise ComesError(
            f"{path} has the weights of another network: {', '.join(found)}. Name the backbone "
            "that they were trained with."
        )
    fitting = {name: tensor.float() for name, tensor in there.items() if name in wanted}
    backbone.network.load_state_dict(fitting, strict=False)
    backbone.classifier = None
    if sorted(name.rpartition(".")[2] for name in on_top) == ["bias", "weight"]:
        bias, weight = (there[name].float() for name in sorted(on_top))
        if weight.ndim == 2:
            backbone.classifier = nn.Linear(weight.shape[1], weight.shape[0])
            backbone.classifier.load_state_dict({"weight": weight, "bias": bias})


def _read_state(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file by name, without the wrapping that trainers add."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        if path.suffix == ".safetensors":
            return {name.removeprefix("module."): t for name, t in load_file(path).items()}
        state = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise ComesError(f"there is no file of weights at {path}.") from None
    except (OSError, SafetensorError) as error:
        raise ComesError(f"{path} cannot be read as weights: {error}.") from None
    except Exception as error:  # torch.load raises whatever pickle meets
        raise ComesError(
            f"{path} is neither safetensors nor a state dict of torch ({first_line(error)}). Save "
            "it with torch.save(network.state_dict(), ...)."
        ) from None
    for key in ("state_dict", "model", "model_state_dict"):
        if isinstance(state, Mapping) and isinstance(state.get(key), Mapping):
            state = state[key]
    if not isinstance(state, Mapping) or not all(
        isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in state.items()
    ):
        raise ComesError(
            f"{path} must hold a state dict, tensors by name; it does not. Save "
            "it with torch.save(network.state_dict(), ...)."
        )
    return {name.removeprefix("module."): tensor for name, tensor in state.items()}


def choose_strides(backbone: Backbone, pixels: Tensor) -> dict[Strides, float]:
    """Give a ResNet the strides that its weights were trained with.

    The two variants store the same weights but compute different activations: with the right
    strides, activations have the variances that batch normalisation has stored.

    Parameters
    ----------
    backbone : Backbone of a ResNet
    pixels : uint8 tensor of shape (n, 3, h, w)
        A few dozen images, of about the size that the weights were trained with.

    Returns
    -------
    mismatches : dict of "v1.5" and "v1" to float
        The lower one was chosen.

    Examples
    --------
    >>> backbone = Backbone(ResNet((1, 1, 1, 1), width=4, strides="v1"))
    >>> pixels = torch.arange(8 * 3 * 32 * 32).mul(37).remainder(251).view(8, 3, 32, 32)
    >>> for module in backbone.modules():
    ...     module.momentum = 1.0  # batch normalisation learns its statistics in one step
    >>> _ = backbone.train()(pixels)
    >>> mismatches = choose_strides(backbone, pixels)
    >>> backbone.network.strides, mismatches["v1"] < mismatches["v1.5"]
    ('v1', True)
    """
    network = backbone.network
    assert isinstance(network, ResNet)
    mismatches: dict[Strides, float] = {}
    for strides in ("v1.5", "v1"):
        network.set_strides(strides)
        mismatches[strides] = _measure_mismatch(backbone, network.normalised_after_strides, pixels)
    network.set_strides(min(mismatches, key=lambda strides: mismatches[strides]))
    return mismatches


@torch.no_grad()
def _measure_mismatch(
    backbone: Backbone, layers: Sequence[nn.BatchNorm2d], pixels: Tensor
) -> float:
    """Return the mean over layers of how far the variances of their inputs are from the stored."""
    distances: list[Tensor] = []
    append = partial(_append_distance, distances)
    hooks = [layer.register_forward_pre_hook(append) for layer in layers]
    try:
        backbone.eval()(pixels)
    finally:
        for hook in hooks:
            hook.remove()
    return float(torch.stack(distances).mean())


def _append_distance(distances: list[Tensor], layer: nn.Module, inputs: tuple[Tensor]) -> None:
    """Append the mean over channels of log(variance / stored variance) squared."""
    assert isinstance(layer, nn.BatchNorm2d)
    assert layer.running_var is not None
    variance = inputs[0].float().var(dim=(0, 2, 3))
    ratio = (variance + layer.eps) / (layer.running_var + layer.eps)
    distances.append((ratio.log() ** 2).mean())
