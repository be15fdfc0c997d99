"""Networks for images: from pixels to features.

A `Backbone` is a network with what it needs around it: how a picture becomes its pixels, their
normalisation, and, where the network came with one, the classifier of the task that it was trained
on. `make_backbone` makes one by name or of your own module, with weights from the net or a file.

ResNets have two variants with the same names and shapes of weights. The original paper halves the
resolution in the first 1x1 convolution of a stage ("v1"), torchvision in the 3x3 convolution after
it ("v1.5"). Weights of one load into the other without an error, and give wrong features:
`choose_strides` finds out which variant they belong to.
"""

import copy
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeVar, get_args

import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init

from comes.errors import ComesError, first_line, listed
from comes.files import cache_folder, data_folder, download, expanded
from comes.training.pixels import Interpolation, PixelRows, Preprocessing
from comes.training.seeding import RANDOM_LOCK

Strides = Literal["v1", "v1.5"]
Module = TypeVar("Module", bound=nn.Module)

RESNETS = ("resnet50", "resnet101", "resnet152")  # of torchvision, with weights of either variant
IMAGENET = {  # address and checksum of weights
    "resnet50": (
        "https://download.pytorch.org/models/resnet50-0676ba61.pth",
        "sha256:0676ba61b6795bbe1773cffd859882e5e297624d384b6993f7c9e683e722fb8a",
    )
}
CLASSIFIERS = ("fc", "classifier", "head", "heads")  # what libraries call the last layer
LOOKED_AT = 32  # pictures that show which strides the weights of a ResNet belong to


class Backbone(nn.Module):
    """A network from pixels, uint8 of shape (n, 3, h, w), to features of shape (n, n_features).

    Parameters
    ----------
    network : module
        Maps normalised images to features, or to feature maps, which are averaged.
    classifier : linear layer, optional
        Maps these to scores of the classes that the network was trained on. With it, the features
        are square roots of class probabilities: few are far from zero, and each has a meaning.
    preprocessing : Preprocessing
        How pictures become pixels; `forward` normalises these by its mean and std.
    temperature : float
        Divides the class scores; at 1, the probabilities of most classes are nearly 0.

    Examples
    --------
    >>> backbone = Backbone(nn.Conv2d(3, 8, 5))
    >>> backbone(torch.zeros(2, 3, 32, 32, dtype=torch.uint8)).shape
    torch.Size([2, 8])
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        network: nn.Module,
        classifier: nn.Linear | None = None,
        preprocessing: Preprocessing | None = None,
        temperature: float = 2.0,
    ) -> None:
        super().__init__()
        self.network, self.classifier, self.temperature = network, classifier, temperature
        self.preprocessing = preprocessing or Preprocessing()
        for name in ("mean", "std"):
            numbers = torch.tensor(getattr(self.preprocessing, name))
            self.register_buffer(name, 255 * numbers[:, None, None])

    def forward(self, pixels: Tensor) -> Tensor:
        """Return the features of a batch."""
        x = (pixels - self.mean) / self.std
        features = self.network(x.contiguous(memory_format=torch.channels_last))
        if isinstance(features, tuple):  # some networks of torchvision add outputs in training
            features = features[0]
        if features.ndim == 4:
            features = features.mean(dim=(2, 3))
        if self.classifier is not None:
            with torch.autocast(features.device.type, enabled=False):
                features = root_probabilities(self.classifier(features.float()), self.temperature)
        return features  # type: ignore[no-any-return]

    @torch.no_grad()
    def count_features(self) -> int:
        """Return the number of features."""
        was_training, size = self.training, self.preprocessing.size
        features: Tensor = self.eval()(torch.zeros(1, 3, size, size, device=self.mean.device))
        self.train(was_training)
        return int(features.shape[1])


def root_probabilities(scores: Tensor, temperature: float | Tensor) -> Tensor:
    """Return square roots of the softmax of scores: vectors of length 1, without zeros."""
    return (0.5 * (scores / temperature).log_softmax(dim=1)).exp()


def place_network(module: Module, device: str | torch.device) -> Module:
    """Move a network for images to a device, in the faster memory format (channels last)."""
    return module.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def make_backbone(
    backbone: str | nn.Module,
    weights: str | Path | None = None,
    images: Any = (),
    *,
    size: int | None = None,
    device: str | torch.device = "cpu",
) -> Backbone:
    """Return a network for images with its weights.

    Parameters
    ----------
    backbone : str or module
        "resnet50", "resnet101", "resnet152", "timm:NAME", "torchvision:NAME", or a module that maps
        normalised images to features; it is copied. "timm:local-dir:PATH" is a folder that
        ``timm.models.save_for_hf`` wrote.
    weights : str or path, optional
        "imagenet" downloads them. Or a file, safetensors or a state dict of torch; its path may
        start below ``$COMES_DATA``. None keeps those of a module, and draws those of a name.
    images : sequence of uint8 arrays of shape (height, width, 3)
        The first ones tell which strides the weights of a ResNet in a file were trained with.
    size : int, optional
        Height and width of the pictures; by default the network's own.
    device : str or torch device

    Returns
    -------
    backbone : Backbone

    Examples
    --------
    >>> backbone = make_backbone(nn.Conv2d(3, 8, 5), size=32)
    >>> backbone.count_features(), backbone.preprocessing.size
    (8, 32)
    """
    with RANDOM_LOCK:  # weights that are not given are drawn
        if isinstance(backbone, nn.Module):
            own = copy.deepcopy(backbone)
            made = own if isinstance(own, Backbone) else Backbone(own)
        else:
            made = _load_named(backbone, weights == "imagenet", size)
    made.preprocessing = made.preprocessing.sized(size)
    if size is not None:
        try:
            made.count_features()
        except (RuntimeError, ValueError, AssertionError) as error:
            raise ComesError(
                f"the network does not take pictures of {size} x {size} ({first_line(error)}). "
                "Leave image_size out, or choose another."
            ) from None
    if weights == "imagenet":
        if backbone in RESNETS:
            load_weights(made, _download_weights(str(backbone)))
    elif weights is not None:
        path, folder = expanded(weights), data_folder()
        if not path.exists() and folder is not None and (folder / weights).exists():
            path = folder / weights
        load_weights(made, path)
        if backbone in RESNETS and len(images):
            some = PixelRows(images[:LOOKED_AT], made.preprocessing, torch.device(device))
            choose_strides(made.to(device), next(some.batches([torch.arange(len(some))])))
    return place_network(made, device)


def _load_named(name: str, pretrained: bool, size: int | None) -> Backbone:
    source, _, model = name.partition(":")
    try:
        if name in RESNETS:
            backbone = _load_torchvision(name, pretrained=False)
            backbone.classifier = None  # comes with a file of weights
            return backbone
        if source == "torchvision" and model:
            return _load_torchvision(model, pretrained)
        if source == "timm" and model:
            return _load_timm(model, pretrained, size)
    except ComesError:
        raise
    except Exception as error:  # whatever no connection, a wrong config or a damaged file leads to
        raise ComesError(
            f"{name} could not be loaded ({first_line(error)}). If its weights cannot be "
            "downloaded, name a file of weights (--weights)."
        ) from None
    hint = ""
    if source == "folder" or Path(name).is_dir():
        hint = (
            f" For a folder that timm saved write timm:local-dir:{name.removeprefix('folder:')}; "
            "wrap a network of transformers in a module that returns its features."
        )
    raise ComesError(
        f"backbone must be {', '.join(RESNETS)}, timm:NAME, torchvision:NAME or a module; got "
        f"{name!r}.{hint}"
    )


def _load_timm(name: str, pretrained: bool, size: int | None) -> Backbone:
    import_torchvision(needed_by="timm")  # timm imports it
    try:
        import timm
    except ImportError:
        raise ComesError(
            f"timm:{name} needs timm, which is not installed: pip install 'comes[images]'."
        ) from None
    if not name.startswith("local-dir:") and not timm.is_model(name):
        raise ComesError(f"timm has no model {name!r}; timm.list_models() names them.")
    network: Any = timm.create_model(name, pretrained=pretrained)
    stored = network.pretrained_cfg
    if size is not None and stored.get("fixed_input_size") and size != stored["input_size"][1]:
        network = timm.create_model(name, pretrained=pretrained, img_size=size)
    data: Any = timm.data
    config = data.resolve_model_data_config(network, pretrained_cfg=stored)
    classifier = network.get_classifier()
    network.reset_classifier(0)
    return Backbone(
        network,
        classifier if isinstance(classifier, nn.Linear) else None,
        _make_preprocessing(config["input_size"][1], config["interpolation"], config),
    )


def _load_torchvision(name: str, pretrained: bool) -> Backbone:
    """Return a network of torchvision, with its last linear layer as classifier."""
    models = import_torchvision(needed_by=name).models
    if name not in models.list_models(module=models):
        raise ComesError(f"torchvision has no model {name!r} that classifies images.")
    network = models.get_model(name, weights="DEFAULT" if pretrained else None)
    shown = models.get_model_weights(name).DEFAULT.transforms()
    preprocessing = _make_preprocessing(shown.crop_size[0], shown.interpolation.value, vars(shown))
    layers = [(path, m) for path, m in network.named_modules() if isinstance(m, nn.Linear)]
    if not layers:  # convolutions alone: their scores are the features
        return Backbone(network, preprocessing=preprocessing)
    path, classifier = layers[-1]
    network.set_submodule(path, nn.Identity())
    return Backbone(network, classifier, preprocessing)


def _make_preprocessing(side: int, interpolation: str, config: Mapping[str, Any]) -> Preprocessing:
    """Return how a library shows pictures, but whole; bicubic where Pillow has no such way."""
    how: Any = interpolation if interpolation in get_args(Interpolation) else "bicubic"
    return Preprocessing(side, how, mean=tuple(config["mean"]), std=tuple(config["std"]))


def import_torchvision(needed_by: str) -> ModuleType:
    """Import torchvision, even if its compiled operators do not fit this torch.

    If they do not, importing it raises RuntimeError, since it registers two operators that do not
    exist. Models and transforms do not use them, so we declare them without an implementation.
    """
    try:
        import torchvision
    except ImportError:
        raise ComesError(
            f"{needed_by} needs torchvision, which is not installed: pip install 'comes[images]', "
            "with the torchvision that fits your torch."
        ) from None
    except RuntimeError:
        for name in [m for m in sys.modules if m.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        schema = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
        for operator in ("nms", "qnms"):
            torch.library.define(f"torchvision::{operator}", schema)
        import torchvision
    module: ModuleType = torchvision
    return module


def _download_weights(name: str) -> Path:
    """Return the file of weights of a ResNet, downloaded if it is not there."""
    if name not in IMAGENET:
        raise ComesError(
            f"no address is known for weights of {name}: name a file (--weights), or take "
            f"timm:{name} or torchvision:{name}."
        )
    address, checksum = IMAGENET[name]
    folder = cache_folder() / "weights"
    folder.mkdir(parents=True, exist_ok=True)
    return download(address, checksum, folder / address.rpartition("/")[2])


def load_weights(backbone: Backbone, path: str | Path) -> None:
    """Load weights from a file, safetensors or a state dict of torch; those of another raise.

    If all that is on top of the stored network is a linear classifier, it becomes the backbone's.
    """
    state, wanted = _read_state(expanded(path)), backbone.network.state_dict()
    top = [name for name in state if name.split(".")[0] in CLASSIFIERS and name not in wanted]
    differences = {
        "missing": [k for k in wanted if k not in state and "num_batches" not in k],
        "not wanted": [k for k in state if k not in wanted and k not in top],
        "of another shape": [k for k in wanted if k in state and wanted[k].shape != state[k].shape],
    }
    wrong = [
        f"{len(names)} {how} ({listed(names, 2)})" for how, names in differences.items() if names
    ]
    if wrong:
        raise ComesError(
            f"{path} has the weights of another network: {', '.join(wrong)}. Name the backbone "
            "that they were trained with."
        )
    fitting = {name: tensor.float() for name, tensor in state.items() if name in wanted}
    backbone.network.load_state_dict(fitting, strict=False)
    backbone.classifier = None
    if sorted(name.rpartition(".")[2] for name in top) == ["bias", "weight"]:
        bias, weight = (state[name].float() for name in sorted(top))
        if weight.ndim == 2:
            backbone.classifier = skip_init(nn.Linear, weight.shape[1], weight.shape[0])
            backbone.classifier.load_state_dict({"weight": weight, "bias": bias})


def _read_state(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file by name, without the wrapping that trainers add."""
    from safetensors.torch import load_file

    try:
        if path.suffix == ".safetensors":
            state: Any = load_file(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
        for key in ("state_dict", "model", "model_state_dict"):
            if isinstance(state, Mapping) and isinstance(state.get(key), Mapping):
                state = state[key]
        if not isinstance(state, Mapping) or not all(
            isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in state.items()
        ):
            raise TypeError("it holds other objects")
    except FileNotFoundError:
        raise ComesError(f"there is no file of weights at {path}.") from None
    except Exception as error:  # torch.load raises whatever pickle meets
        raise ComesError(
            f"{path} must be safetensors or a state dict, tensors by name; it cannot be read as "
            f"such ({first_line(error)}). Save it with torch.save(network.state_dict(), ...)."
        ) from None
    return {name.removeprefix("module."): tensor for name, tensor in state.items()}


def _strided_blocks(network: nn.Module) -> list[Any]:
    """Return the bottlenecks that halve the resolution in one of their first two convolutions."""
    names = ("conv1", "conv2", "conv3", "bn2")
    blocks: Any = [m for m in network.modules() if all(hasattr(m, name) for name in names)]
    return [block for block in blocks if block.conv1.stride != block.conv2.stride]


def get_strides(network: nn.Module) -> Strides | None:
    """Return the variant of a ResNet; None of a network without bottlenecks."""
    blocks = _strided_blocks(network)
    if not blocks:
        return None
    return "v1" if blocks[0].conv1.stride > blocks[0].conv2.stride else "v1.5"


def set_strides(network: nn.Module, strides: Strides) -> None:
    """Change the variant of a ResNet; no weight changes."""
    for block in _strided_blocks(network):
        small, large = sorted((block.conv1.stride, block.conv2.stride))
        of_both = (large, small) if strides == "v1" else (small, large)
        block.conv1.stride, block.conv2.stride = of_both


@torch.no_grad()
def choose_strides(backbone: Backbone, pixels: Tensor) -> dict[Strides, float]:
    """Give a ResNet the strides that its weights were trained with; return both mismatches.

    With the right strides, activations have the variances that batch normalisation has stored. The
    mismatch is the mean over strided layers and channels of log(variance / stored variance)^2.
    """
    distances: list[Tensor] = []

    def compare(layer: Any, inputs: tuple[Tensor]) -> None:
        variance = inputs[0].float().var(dim=(0, 2, 3))
        ratio = (variance + layer.eps) / (layer.running_var + layer.eps)
        distances.append((ratio.log() ** 2).mean())

    blocks = _strided_blocks(backbone.network)
    hooks = [block.bn2.register_forward_pre_hook(compare) for block in blocks]
    mismatches: dict[Strides, float] = {}
    try:
        for strides in get_args(Strides):
            set_strides(backbone.network, strides)
            distances.clear()
            backbone.eval()(pixels)
            mismatches[strides] = float(torch.stack(distances).mean())
    finally:
        for hook in hooks:
            hook.remove()
    set_strides(backbone.network, "v1" if mismatches["v1"] < mismatches["v1.5"] else "v1.5")
    return mismatches
