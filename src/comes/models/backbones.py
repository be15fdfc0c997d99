"""Pretrained networks that map pixels to features, and a head that maps features to scores."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from comes.errors import ComesError, first_line, listed
from comes.files import expanded
from comes.models.resnet import ResNet, Strides

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of pixels in [0, 1]
TOPS = ("fc", "classifier", "head", "heads")  # what libraries call the classifier
DEPTHS = {"resnet50": (3, 4, 6, 3), "resnet101": (3, 4, 23, 3), "resnet152": (3, 8, 36, 3)}


Module = TypeVar("Module", bound=nn.Module)


class Backbone(nn.Module):
    """A network from pixels, uint8 of shape (n, 3, h, w), to features of shape (n, n_features).

    Parameters
    ----------
    network : module
        Maps normalised images to features, or to maps of features, which are averaged.
    classifier : linear layer, optional
        Maps these to scores of the classes that the network was trained on. With it, the features
        are square roots of class probabilities: few are far from zero, and each means something.
    mean, std : three floats
        Of the pixels in [0, 1] that the network was trained on.
    temperature : float
        What scores of classes are divided by; at 1, probabilities of most classes are nearly 0.

    Examples
    --------
    >>> backbone = Backbone(ResNet((1, 1, 1, 1), width=4))
    >>> backbone(torch.zeros(2, 3, 32, 32, dtype=torch.uint8)).shape
    torch.Size([2, 128])
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        network: nn.Module,
        classifier: nn.Linear | None = None,
        mean: tuple[float, ...] = IMAGENET_MEAN,
        std: tuple[float, ...] = IMAGENET_STD,
        temperature: float = 2.0,
    ) -> None:
        super().__init__()
        self.network, self.classifier, self.temperature = network, classifier, temperature
        self.register_buffer("mean", 255 * torch.tensor(mean)[:, None, None])
        self.register_buffer("std", 255 * torch.tensor(std)[:, None, None])

    def forward(self, pixels: Tensor) -> Tensor:
        """Return the features of a batch."""
        x = (pixels - self.mean) / self.std
        features = self.network(x.contiguous(memory_format=torch.channels_last))
        if isinstance(features, tuple):  # some of torchvision add other outputs in training
            features = features[0]
        if features.ndim == 4:
            features = features.mean(dim=(2, 3))
        if self.classifier is None:
            return features  # type: ignore[no-any-return]
        return self.class_features(features)

    def class_features(self, pooled: Tensor) -> Tensor:
        """Return square roots of class probabilities, from the features before the classifier."""
        assert self.classifier is not None
        with torch.autocast(pooled.device.type, enabled=False):
            scores: Tensor = self.classifier(pooled.float())
            return (0.5 * (scores / self.temperature).log_softmax(dim=1)).exp()

    @torch.no_grad()
    def count_features(self, size: int) -> int:
        """Return how many features images of that side have."""
        was_training = self.training
        features: Tensor = self.eval()(torch.zeros(1, 3, size, size, device=self.mean.device))
        self.train(was_training)
        return int(features.shape[1])


class ImageNetwork(nn.Module):
    """Pixels to scores: a backbone, its features scaled, and a head.

    Parameters
    ----------
    backbone : Backbone
    head : module
        Maps scaled features to scores.
    shift, scale : float tensors of shape (n_features,), optional
        The head sees (features - shift) / scale.
    power : bool
        Features are `power_normalised` first.
    freezes_statistics : bool
        Keep batch normalisation at the statistics it came with, also in training.
    """

    shift: Tensor | None
    scale: Tensor | None

    def __init__(
        self,
        backbone: Backbone,
        head: nn.Module,
        shift: Tensor | None = None,
        scale: Tensor | None = None,
        power: bool = False,
        freezes_statistics: bool = True,
    ) -> None:
        super().__init__()
        self.backbone, self.head, self.power = backbone, head, power
        self.freezes_statistics = freezes_statistics
        self.register_buffer("shift", shift)
        self.register_buffer("scale", scale)

    def forward(self, pixels: Tensor) -> Tensor:
        """Return the scores of a batch."""
        return self.score_features(self.backbone(pixels))

    def score_features(self, features: Tensor) -> Tensor:
        """Return the scores that belong to features of the backbone, in full precision."""
        with torch.autocast(features.device.type, enabled=False):
            features = power_normalised(features.float()) if self.power else features.float()
            if self.shift is not None:
                features = features - self.shift
            if self.scale is not None:
                features = features / self.scale
            scores: Tensor = self.head(features)
        return scores

    def train(self, mode: bool = True) -> "ImageNetwork":
        """Set the mode; frozen statistics stay in evaluation mode."""
        super().train(mode)
        if self.freezes_statistics:
            for module in self.backbone.modules():
                if isinstance(module, nn.modules.batchnorm._BatchNorm):
                    module.eval()
        return self


def place_network(module: Module, device: torch.device) -> Module:
    """Return a network of images on the device, with channels last in memory, where it is fast."""
    return module.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def zero_linear(d: int, q: int) -> nn.Module:
    """Return a linear layer that starts at zero: no label is favoured before it has learned.

    Examples
    --------
    >>> zero_linear(3, 2)(torch.ones(1, 3))
    tensor([[0., 0.]], grad_fn=<AddmmBackward0>)
    """
    layer = nn.Linear(d, q)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def power_normalised(features: Tensor) -> Tensor:
    """Return signed square roots, each row then of length 1: no few features dominate.

    Examples
    --------
    >>> power_normalised(torch.tensor([[9.0, 0.0, 16.0]]))
    tensor([[0.6000, 0.0000, 0.8000]])
    """
    roots = features * (features.abs() + 1e-6).rsqrt()  # with a slope that is finite at zero
    return F.normalize(roots, dim=1)


def make_backbone(name: str | nn.Module, pretrained: bool = False) -> Backbone:
    """Return a network by its name, or one of your own, as a backbone.

    Parameters
    ----------
    name : str or module
        "resnet50", "resnet101", "resnet152" (ours, need nothing else), "timm:NAME",
        "torchvision:NAME"; or a module that maps normalised images to features.
    pretrained : bool
        With the weights that timm or torchvision download for it. Ours have none of their own:
        `load_weights`.
    """
    if isinstance(name, nn.Module):
        return name if isinstance(name, Backbone) else Backbone(name)
    if name in DEPTHS:
        return Backbone(ResNet(DEPTHS[name]))
    library, _, model = name.partition(":")
    if library == "timm" and model:
        return _from_timm(model, pretrained)
    if library == "torchvision" and model:
        return _from_torchvision(model, pretrained)
    raise ComesError(
        f"backbone must be {', '.join(DEPTHS)}, timm:NAME, torchvision:NAME or a module; got "
        f"{name!r}."
    )


def load_weights(backbone: Backbone, path: str | Path) -> None:
    """Load the weights of a file, safetensors or a state dict of torch, into a backbone.

    A linear classifier on top becomes the backbone's, if that is all there is on top; anything else
    that does not fit raises.
    """
    there = _read_state(expanded(path))
    wanted = backbone.network.state_dict()
    on_top = [name for name in there if name.split(".")[0] in TOPS and name not in wanted]
    missing = [name for name in wanted if name not in there and "num_batches" not in name]
    other = [name for name in there if name not in wanted and name not in on_top]
    unequal = [k for k in wanted if k in there and wanted[k].shape != there[k].shape]
    if missing or other or unequal:
        raise ComesError(
            f"{path} has the weights of another network: {len(missing)} are missing "
            f"({listed(missing, 2)}), {len(other)} are not wanted ({listed(other, 2)}), "
            f"{len(unequal)} have another shape ({listed(unequal, 2)}). Name the backbone that "
            "they belong to."
        )
    fitting = {name: tensor.float() for name, tensor in there.items() if name in wanted}
    backbone.network.load_state_dict(fitting, strict=False)
    backbone.classifier = None
    if sorted(name.rpartition(".")[2] for name in on_top) == ["bias", "weight"]:
        bias, weight = (there[name].float() for name in sorted(on_top))
        if weight.ndim == 2:
            backbone.classifier = nn.Linear(weight.shape[1], weight.shape[0])
            backbone.classifier.load_state_dict({"weight": weight, "bias": bias})


def choose_strides(backbone: Backbone, pixels: Tensor) -> dict[Strides, float]:
    """Give a ResNet the strides that its weights were trained with; return the mismatch of each.

    The two variants differ in nothing that is stored, but in what the layers compute: with the
    right strides, activations have the variances that batch normalisation remembers.

    Parameters
    ----------
    backbone : Backbone of a ResNet
    pixels : uint8 tensor of shape (n, 3, h, w)
        Some dozen pictures, of about the size that the weights were trained with.
    """
    network = backbone.network
    assert isinstance(network, ResNet)
    mismatches: dict[Strides, float] = {}
    for strides in ("v1.5", "v1"):
        network.set_strides(strides)
        mismatches[strides] = _variance_mismatch(backbone, network.normalised_after_strides, pixels)
    network.set_strides(min(mismatches, key=lambda strides: mismatches[strides]))
    return mismatches


@torch.no_grad()
def _variance_mismatch(
    backbone: Backbone, layers: Sequence[nn.BatchNorm2d], pixels: Tensor
) -> float:
    """Return the mean over channels of the squared log of variance over remembered variance."""
    distances: list[Tensor] = []

    def compare(layer: nn.Module, inputs: tuple[Tensor]) -> None:
        assert isinstance(layer, nn.BatchNorm2d)
        assert layer.running_var is not None
        variance = inputs[0].float().var(dim=(0, 2, 3))
        ratio = (variance + layer.eps) / (layer.running_var + layer.eps)
        distances.append((ratio.log() ** 2).mean())

    hooks = [layer.register_forward_pre_hook(compare) for layer in layers]
    try:
        backbone.eval()(pixels)
    finally:
        for hook in hooks:
            hook.remove()
    return float(torch.stack(distances).mean())


def _read_state(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file by name, without what trainers put around them."""
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
        raise ComesError(f"{path} holds no tensors by name; a state dict was wanted.")
    return {name.removeprefix("module."): tensor for name, tensor in state.items()}


def _from_timm(name: str, pretrained: bool) -> Backbone:
    import_torchvision(needed_by="timm")  # timm imports it
    try:
        import timm
    except ImportError:
        raise ComesError("timm is not installed: pip install 'comes[images]'.") from None
    if name not in timm.list_models() and name not in timm.list_pretrained():
        raise ComesError(f"timm has no model {name!r}; timm.list_models() names them.")
    network: Any = _downloaded(lambda: timm.create_model(name, pretrained=pretrained))
    classifier = network.get_classifier()
    network.reset_classifier(0)
    config = network.pretrained_cfg
    return Backbone(
        network,
        classifier if isinstance(classifier, nn.Linear) else None,
        tuple(config["mean"]),
        tuple(config["std"]),
    )


def _from_torchvision(name: str, pretrained: bool) -> Backbone:
    models = import_torchvision(needed_by="torchvision").models
    if name not in models.list_models(module=models):
        raise ComesError(f"torchvision has no model {name!r} that classifies images.")
    weights = "DEFAULT" if pretrained else None
    network = _downloaded(lambda: models.get_model(name, weights=weights))
    layers = [(path, m) for path, m in network.named_modules() if isinstance(m, nn.Linear)]
    if not layers:  # a network of convolutions alone: its scores are its features
        return Backbone(network)
    path, classifier = layers[-1]
    network.set_submodule(path, nn.Identity())
    return Backbone(network, classifier)


def _downloaded(make: Callable[[], nn.Module]) -> nn.Module:
    try:
        return make()
    except (OSError, RuntimeError) as error:  # both libraries download on their own
        raise ComesError(
            f"the weights could not be fetched ({first_line(error)}). Name a file of weights "
            "(--weights)."
        ) from None


def import_torchvision(needed_by: str) -> ModuleType:
    """Return torchvision, also where its compiled operators do not fit this torch.

    It then raises RuntimeError on import, since it describes two operators that do not exist.
    Models and transforms do not use them, so they are declared, without an implementation.
    """
    try:
        import torchvision
    except ImportError:
        raise ComesError(
            f"{needed_by} needs torchvision, which is not installed: pip install torchvision, of "
            "the version that belongs to your torch."
        ) from None
    except RuntimeError:
        for name in [m for m in sys.modules if m.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        global _declared  # must live as long as the process
        _declared = torch.library.Library("torchvision", "DEF")
        for operator in ("nms", "qnms"):
            _declared.define(
                f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            )
        import torchvision
    module: ModuleType = torchvision
    return module


_declared: torch.library.Library | None = None
