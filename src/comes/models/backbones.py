"""Networks for images: from pixels to features.

A `Backbone` is a network with what it needs around it: how a picture becomes its pixels
(`Preprocessing`), their normalisation, and, where the network came with one, the classifier of the
task that it was trained on. `make_backbone` makes one by name: our own `ResNet`, a network of timm
or torchvision, a folder that timm or transformers saved, or your own module. `load_weights` fills
it from a file.
"""

import inspect
import json
import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, Literal, TypeVar, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init

from comes.errors import ComesError, first_line, listed
from comes.files import expanded
from comes.models.resnet import Bottleneck, ResNet, Strides

Interpolation = Literal["nearest", "bilinear", "bicubic", "lanczos"]  # names that Pillow knows
Module = TypeVar("Module", bound=nn.Module)

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of pixels in [0, 1]
USUAL_CROP = 0.875  # of the shorter side, where a network does not say
DEPTHS = {"resnet50": (3, 4, 6, 3), "resnet101": (3, 4, 23, 3), "resnet152": (3, 8, 36, 3)}
CLASSIFIERS = ("fc", "classifier", "head", "heads")  # what libraries call the last layer
CONFIG = "config.json"  # in a folder of timm or transformers; a saved model has a copy, with
OUTPUT = "comes_reads"  # which output of a model of transformers is read


@dataclass(frozen=True)
class Preprocessing:
    """What happens to a picture before a network sees it.

    The whole picture is stretched to a square, or its centre is cut out. Networks of one object per
    picture were trained on centres; where labels are about everything in the picture, a centre
    loses the objects at the edge.

    Parameters
    ----------
    size : int
        Height and width that the network sees.
    interpolation : {"nearest", "bilinear", "bicubic", "lanczos"}
    short_side : int, optional
        Resize the shorter side to this length, keeping proportions, and cut out the square in the
        centre. None stretches the whole picture.
    mean, std : three floats
        Of the pixels, in [0, 1], that the network was trained on.

    Examples
    --------
    >>> wide = np.zeros((10, 40, 3), np.uint8)
    >>> wide[:, :10] = 255
    >>> Preprocessing(4, "nearest").apply(wide)[0, :, 0].tolist()
    [255, 0, 0, 0]
    >>> Preprocessing(4, "nearest", short_side=4).apply(wide)[0, :, 0].tolist()
    [0, 0, 0, 0]
    """

    size: int = 224
    interpolation: Interpolation = "bilinear"
    short_side: int | None = None
    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD

    @property
    def least(self) -> int:
        """The length of a shorter side from which a picture is resized without a visible loss."""
        return 2 * max(self.size, self.short_side or 0)

    def sized(self, size: int | None) -> "Preprocessing":
        """Return the same for another size; None keeps it."""
        if size is None or size == self.size:
            return self
        short = None if self.short_side is None else round(self.short_side * size / self.size)
        return replace(self, size=int(size), short_side=short)

    def cropped(self, centre_crop: bool) -> "Preprocessing":
        """Return the same with the centre cut out, or with the whole picture stretched."""
        short = self.short_side or round(self.size / USUAL_CROP)
        return replace(self, short_side=short if centre_crop else None)

    def apply(self, picture: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Return a picture, uint8 of shape (height, width, 3), as (size, size, 3)."""
        from PIL import Image

        height, width = picture.shape[:2]
        if self.short_side is None and height == width == self.size:
            return picture
        resample = Image.Resampling[self.interpolation.upper()]
        square, box = (self.size, self.size), self.find_box(height, width)
        return np.asarray(Image.fromarray(picture).resize(square, resample, box))

    def find_box(self, height: int, width: int) -> tuple[float, float, float, float]:
        """Return the part of a picture that the network sees: left, top, right and bottom."""
        if self.short_side is None:
            return 0, 0, width, height
        starts, ends = [], []
        for side in (width, height):
            resized = int(self.short_side * side / min(width, height))
            start = round((resized - self.size) / 2) * side / resized
            starts.append(max(start, 0))
            ends.append(min(start + self.size * side / resized, side))
        return starts[0], starts[1], ends[0], ends[1]


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
    config : dict, optional
        The config of a network that came in a folder; a saved model makes it again from this.

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
        preprocessing: Preprocessing | None = None,
        temperature: float = 2.0,
        config: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.network, self.classifier, self.temperature = network, classifier, temperature
        self.preprocessing, self.config = preprocessing or Preprocessing(), config
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
        if self.classifier is None:
            return features  # type: ignore[no-any-return]
        return self.class_features(features)

    def class_features(self, pooled: Tensor) -> Tensor:
        """Return square roots of class probabilities, from the features before the classifier."""
        assert self.classifier is not None
        with torch.autocast(pooled.device.type, enabled=False):
            return root_probabilities(self.classifier(pooled.float()), self.temperature)

    @torch.no_grad()
    def count_features(self, size: int | None = None) -> int:
        """Return the number of features of images with this side length, or with its own."""
        was_training = self.training
        size = size or self.preprocessing.size
        features: Tensor = self.eval()(torch.zeros(1, 3, size, size, device=self.mean.device))
        self.train(was_training)
        return int(features.shape[1])


def root_probabilities(scores: Tensor, temperature: float | Tensor) -> Tensor:
    """Return square roots of the softmax of scores: vectors of length 1, without zeros."""
    return (0.5 * (scores / temperature).log_softmax(dim=1)).exp()


def place_network(module: Module, device: torch.device) -> Module:
    """Move a network for images to a device, in the faster memory format (channels last)."""
    return module.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def make_backbone(
    name: str | nn.Module,
    pretrained: bool = False,
    *,
    size: int | None = None,
    centre_crop: bool = False,
    config: dict[str, Any] | None = None,
) -> Backbone:
    """Return a backbone by name, or make one of your own network.

    Parameters
    ----------
    name : str or module
        "resnet50", "resnet101", "resnet152" (built in), "timm:NAME", "torchvision:NAME" or
        "folder:PATH", a folder that timm or transformers saved; or a module that maps normalised
        images to features.
    pretrained : bool
        Let timm or torchvision download weights. The built-in networks have none to download. A
        folder brings its weights in any case.
    size : int, optional
        Height and width of the pictures; by default the network's own, 224 for built-in ones.
    centre_crop : bool
        Show the network the centre of a picture that it was trained on, rather than the whole
        picture, stretched. A `Backbone` keeps what it has.
    config : dict, optional
        The `config` of a backbone that came from a folder: it is made again, without its weights.

    Returns
    -------
    backbone : Backbone

    Examples
    --------
    >>> backbone = make_backbone(ResNet((1, 1, 1, 1), width=4), size=32)
    >>> backbone.count_features(), backbone.preprocessing.size
    (128, 32)
    """
    if isinstance(name, Backbone):
        name.preprocessing = name.preprocessing.sized(size)
        return name
    source, _, model = name.partition(":") if isinstance(name, str) else ("", "", "")
    if isinstance(name, nn.Module):
        backbone = Backbone(name)
    elif name in DEPTHS:
        backbone = Backbone(ResNet(DEPTHS[name]))
    elif source == "folder" and model:
        if config is None:
            backbone = _load_folder(expanded(model), size, with_weights=True)
        else:
            with TemporaryDirectory() as folder:
                (Path(folder) / CONFIG).write_text(json.dumps(config))
                backbone = _load_folder(Path(folder), size, with_weights=False)
    elif source in ("timm", "torchvision") and model:
        load = _load_timm if source == "timm" else _load_torchvision
        try:
            backbone = load(model, pretrained, size)
        except (OSError, RuntimeError) as error:
            raise ComesError(
                f"{name} could not be loaded ({first_line(error)}). If its weights cannot be "
                "downloaded, name a file of weights (--weights)."
            ) from None
    else:
        hint = f" For a folder write folder:{name}." if Path(name).is_dir() else ""
        raise ComesError(
            f"backbone must be {', '.join(DEPTHS)}, timm:NAME, torchvision:NAME, folder:PATH or a "
            f"module; got {name!r}.{hint}"
        )
    backbone.preprocessing = backbone.preprocessing.sized(size).cropped(centre_crop)
    return backbone


def _load_timm(name: str, pretrained: bool, size: int | None) -> Backbone:
    """Return a network of timm and its classifier; ``local-dir:PATH`` is one in a folder."""
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
    side = config["input_size"][1]
    preprocessing = Preprocessing(
        side,
        _as_interpolation(config["interpolation"]),
        math.floor(side / config["crop_pct"]),
        tuple(config["mean"]),
        tuple(config["std"]),
    )
    classifier = network.get_classifier()
    network.reset_classifier(0)
    return Backbone(
        network, classifier if isinstance(classifier, nn.Linear) else None, preprocessing
    )


def _load_torchvision(name: str, pretrained: bool, _size: int | None) -> Backbone:
    """Return a network of torchvision, with its last linear layer as classifier."""
    models = import_torchvision(needed_by="torchvision").models
    if name not in models.list_models(module=models):
        raise ComesError(f"torchvision has no model {name!r} that classifies images.")
    network = models.get_model(name, weights="DEFAULT" if pretrained else None)
    transforms = models.get_model_weights(name).DEFAULT.transforms()
    preprocessing = Preprocessing(
        transforms.crop_size[0],
        _as_interpolation(transforms.interpolation.value),
        transforms.resize_size[0],
        tuple(transforms.mean),
        tuple(transforms.std),
    )
    layers = [(path, m) for path, m in network.named_modules() if isinstance(m, nn.Linear)]
    if not layers:  # convolutions alone: their scores are the features
        return Backbone(network, preprocessing=preprocessing)
    path, classifier = layers[-1]
    network.set_submodule(path, nn.Identity())
    return Backbone(network, classifier, preprocessing)


def _as_interpolation(name: str) -> Interpolation:
    """Return the name of an interpolation that Pillow knows; bicubic for others."""
    return name if name in get_args(Interpolation) else "bicubic"  # type: ignore[return-value]


def _load_folder(folder: Path, size: int | None, with_weights: bool) -> Backbone:
    """Return the network of a folder that timm or transformers saved; nothing is downloaded."""
    config = _read_json(folder / CONFIG)
    if "architecture" in config:
        try:
            backbone = _load_timm(f"local-dir:{folder}", with_weights, size)
        except ComesError:
            raise
        except Exception as error:  # whatever a wrong config or a damaged file leads to
            raise ComesError(
                f"timm cannot make the network of {folder} ({first_line(error)}). Update timm, or "
                "copy the whole folder that the network was saved to."
            ) from None
        backbone.config = config
        return backbone
    if "model_type" in config:
        return _load_transformers(folder, config, with_weights)
    raise ComesError(
        f"{folder / CONFIG} must name an 'architecture' (saved by timm) or a 'model_type' (by "
        f"transformers); it has {listed(list(config), 3) or 'nothing'}."
    )


class _VisionModel(nn.Module):
    """A model of transformers: its image embedding, pooled output, or first token."""

    def __init__(self, network: Any, output: str) -> None:
        super().__init__()
        self.network, self.output = network, output
        self.resizes = "interpolate_pos_encoding" in inspect.signature(network.forward).parameters

    def forward(self, x: Tensor) -> Tensor:
        """Return features, or maps where a network has no tokens."""
        has_own_size = x.shape[-1] == getattr(self.network.config, "image_size", x.shape[-1])
        resize = {} if has_own_size or not self.resizes else {"interpolate_pos_encoding": True}
        outputs = self.network(x, **resize)
        pooled: Tensor | None = getattr(outputs, self.output, None)
        if pooled is not None:
            return pooled.flatten(1)
        tokens: Tensor = outputs.last_hidden_state
        return tokens[:, 0] if tokens.ndim == 3 else tokens


def _load_transformers(folder: Path, config: dict[str, Any], with_weights: bool) -> Backbone:
    """Return a vision model of transformers.

    The output is, in this order: the embedding of an image where there is one (CLIP), the pooled
    output if the folder has its weights (DINOv2: the first token), the first token.
    """
    if find_spec("torchvision") is not None:
        import_torchvision(needed_by="transformers")  # which imports it if it is installed
    try:
        import transformers
    except ImportError:
        raise ComesError(
            "a folder that transformers saved needs transformers, which is not installed: pip "
            "install transformers."
        ) from None
    with _quiet(transformers):
        model = _make_vision_model(transformers, config)
        if not with_weights:
            return Backbone(_VisionModel(model, config[OUTPUT]), config=config)
        try:
            network, info = type(model).from_pretrained(
                folder, config=model.config, local_files_only=True, output_loading_info=True
            )
        except (OSError, RuntimeError, ValueError) as error:
            raise ComesError(
                f"the weights in {folder} cannot be loaded: {first_line(error)}."
            ) from None
    missing = sorted(info["missing_keys"])
    if any(not name.startswith("pooler.") for name in missing):
        raise ComesError(
            f"{folder} lacks {len(missing)} weights of its network ({listed(missing, 2)}). Copy "
            "the whole folder that the network was saved to."
        )
    output = "first_token" if missing else "pooler_output"
    if hasattr(network, "visual_projection"):
        output = "image_embeds"
    return Backbone(
        _VisionModel(network.float(), output),
        preprocessing=_read_preprocessing(folder / "preprocessor_config.json"),
        config={**config, OUTPUT: output},
    )


def _make_vision_model(transformers: Any, config: dict[str, Any]) -> Any:
    """Return the part of a model of transformers that takes pictures, with random weights."""
    kind = config["model_type"]
    try:
        whole = transformers.AutoConfig.for_model(**config)
        part = getattr(whole, "vision_config", whole)
        is_whole_clip = "CLIPVisionModel" not in config.get("architectures", ())
        if part.model_type == "clip_vision_model" and is_whole_clip:
            part.projection_dim = whole.projection_dim
            model = transformers.CLIPVisionModelWithProjection(part)
        else:
            model = transformers.AutoModel.from_config(part)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ComesError(
            f"transformers {transformers.__version__} cannot make a network of the type {kind!r} "
            f"({first_line(error)}). Update it, or save the network with timm."
        ) from None
    if model.main_input_name != "pixel_values":
        raise ComesError(f"a network of the type {kind!r} does not take pictures. Name another.")
    return model


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Keep transformers from writing reports of weights that are not read, and progress bars."""
    logging = transformers.utils.logging
    level, had_bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if had_bar:
            logging.enable_progress_bar()


def _read_preprocessing(path: Path) -> Preprocessing:
    """Return what transformers saved about the pictures of a network."""

    def read_side(length: Any) -> int:  # a number, or numbers by one of several names
        return int(next(iter(length.values()), 224) if isinstance(length, dict) else length)

    stored = _read_json(path)
    short = size = read_side(stored.get("size", 224))
    if stored.get("do_center_crop") and "crop_size" in stored:
        size = read_side(stored["crop_size"])
    names = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}  # as Pillow numbers them
    interpolation = _as_interpolation(names.get(stored.get("resample", 3), "bicubic"))
    try:
        mean, std = (tuple(float(x) for x in stored[f"image_{key}"]) for key in ("mean", "std"))
    except (KeyError, TypeError, ValueError) as error:
        raise ComesError(f"{path} lacks the mean or std of pixels: {error!r}.") from None
    return Preprocessing(size, interpolation, max(short, size), mean, std)


def _read_json(path: Path) -> dict[str, Any]:
    """Return the object in a json file of a folder."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(stored, dict):
            raise ValueError(f"it holds a {type(stored).__name__}")
    except (OSError, ValueError) as error:
        raise ComesError(
            f"{path} must be a json object, as timm or transformers writes it; it cannot be read "
            f"({first_line(error)}). Name the whole folder that the network was saved to."
        ) from None
    return stored


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


def load_weights(backbone: Backbone, path: str | Path) -> None:
    """Load weights from a file, safetensors or a state dict of torch; those of another raise.

    If all that is on top of the stored network is a linear classifier, it becomes the backbone's.
    """
    state = _read_state(expanded(path))
    wanted = backbone.network.state_dict()
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


@torch.no_grad()
def choose_strides(backbone: Backbone, pixels: Tensor) -> dict[Strides, float]:
    """Give a ResNet the strides that its weights were trained with; return both mismatches.

    With the right strides, activations have the variances that batch normalisation has stored. The
    mismatch is the mean over strided layers and channels of log(variance / stored variance)^2.
    """
    network = backbone.network
    assert isinstance(network, ResNet)
    distances: list[Tensor] = []

    def compare(layer: Any, inputs: tuple[Tensor]) -> None:
        variance = inputs[0].float().var(dim=(0, 2, 3))
        ratio = (variance + layer.eps) / (layer.running_var + layer.eps)
        distances.append((ratio.log() ** 2).mean())

    strided = [m for m in network.modules() if isinstance(m, Bottleneck) and m.stride > 1]
    hooks = [block.bn2.register_forward_pre_hook(compare) for block in strided]
    mismatches: dict[Strides, float] = {}
    try:
        for strides in ("v1.5", "v1"):
            network.set_strides(strides)
            distances.clear()
            backbone.eval()(pixels)
            mismatches[strides] = float(torch.stack(distances).mean())
    finally:
        for hook in hooks:
            hook.remove()
    network.set_strides("v1" if mismatches["v1"] < mismatches["v1.5"] else "v1.5")
    return mismatches
