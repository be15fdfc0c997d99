"""Networks in a folder, weights beside a ``config.json``, as timm and transformers save them."""

import inspect
import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch import Tensor, nn

from comes.errors import ComesError, first_line, listed
from comes.models.backbones import Backbone
from comes.models.libraries import as_interpolation, import_torchvision, load_from_timm
from comes.models.preprocessing import Preprocessing

CONFIG, PICTURES = "config.json", "preprocessor_config.json"
WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin")
READS = "comes_reads"  # where a stored config says which output is read
RESAMPLING = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}  # as Pillow numbers it


def load_folder(folder: Path, size: int | None) -> Backbone:
    """Return the network of a folder, with its weights; nothing is downloaded."""
    config = _read_json(folder, CONFIG)
    if not any((folder / name).is_file() for name in WEIGHTS):
        raise ComesError(
            f"{folder} must hold weights beside {CONFIG}, {WEIGHTS[0]} or {WEIGHTS[-1]}; it has "
            "neither. Copy the whole folder that the network was saved to."
        )
    if "architecture" in config:
        return _load_with_timm(folder, config, True, size)
    if "model_type" in config:
        network, config = _load_with_transformers(folder, config)
        return Backbone(network, None, _read_pictures(folder), config=config)
    raise ComesError(
        f"{folder / CONFIG} must name an 'architecture' (saved by timm) or a 'model_type' (by "
        f"transformers); it has {listed(list(config), 3) or 'nothing'}."
    )


def restore_folder(config: dict[str, Any], size: int | None) -> Backbone:
    """Return a network made of the config of a folder; its weights are to be loaded."""
    if "architecture" not in config:
        return Backbone(_Vision(_make_vision(config), config[READS]), config=config)
    with TemporaryDirectory() as folder:
        (Path(folder) / CONFIG).write_text(json.dumps(config))
        return _load_with_timm(Path(folder), config, False, size)


def _load_with_timm(
    folder: Path, config: dict[str, Any], with_weights: bool, size: int | None
) -> Backbone:
    """Return a network that ``timm.models.save_for_hf`` saved."""
    try:
        backbone = load_from_timm(f"local-dir:{folder}", with_weights, size)
    except ComesError:
        raise
    except Exception as error:  # whatever a wrong config or a damaged file leads to
        raise ComesError(
            f"timm cannot make the network of {folder} ({first_line(error)}). Update timm, or copy "
            "the whole folder that the network was saved to."
        ) from None
    backbone.config = config
    return backbone


class _Vision(nn.Module):
    """A network of transformers: one of its outputs, named ``reads``."""

    def __init__(self, network: Any, reads: str) -> None:
        super().__init__()
        self.network, self.reads = network, reads
        self.resizes = "interpolate_pos_encoding" in inspect.signature(network.forward).parameters

    def forward(self, x: Tensor) -> Tensor:
        """Return the embedding of pictures, their first token, or maps."""
        is_other = x.shape[-1] != getattr(self.network.config, "image_size", x.shape[-1])
        found = self.network(
            x, **({"interpolate_pos_encoding": True} if self.resizes and is_other else {})
        )
        pooled: Tensor | None = getattr(found, self.reads, None)
        if pooled is not None:
            return pooled.flatten(1)
        tokens: Tensor = found.last_hidden_state
        return tokens[:, 0] if tokens.ndim == 3 else tokens


def _load_with_transformers(folder: Path, config: dict[str, Any]) -> tuple[_Vision, dict[str, Any]]:
    """Return a network with its weights, and its config with the output that is read.

    Read are, in this order: the embedding of an image where there is one (CLIP), the pooled output
    if the folder has its weights (DINOv2: the first token), the first token.
    """
    model = _make_vision(config)
    try:
        with _quiet():
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
    reads = "first_token" if missing else "pooler_output"
    if hasattr(network, "visual_projection"):
        reads = "image_embeds"
    return _Vision(network.float(), reads), {**config, READS: reads}


def _make_vision(config: dict[str, Any]) -> Any:
    """Return the part of a network of transformers that sees, with random weights."""
    transformers = _import_transformers()
    kind = config["model_type"]
    try:
        whole = transformers.AutoConfig.for_model(**config)
        part = getattr(whole, "vision_config", whole)
        with _quiet():
            if part.model_type == "clip_vision_model" and "CLIPVisionModel" not in config.get(
                "architectures", ()
            ):
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


def _read_pictures(folder: Path) -> Preprocessing:
    """Return the preprocessing that transformers saved beside a network."""
    if not (folder / PICTURES).is_file():
        raise ComesError(
            f"{folder} has no {PICTURES}, which says how pictures are resized and normalised. Copy "
            "the file from where the network came from."
        )
    own = _read_json(folder, PICTURES)
    short = _read_side(own.get("size", 224))
    size = (
        _read_side(own["crop_size"]) if own.get("do_center_crop") and "crop_size" in own else short
    )
    resampling = RESAMPLING.get(own.get("resample", 3), "bicubic")
    try:
        mean, std = (tuple(float(number) for number in own[f"image_{k}"]) for k in ("mean", "std"))
    except (KeyError, TypeError, ValueError) as error:
        raise ComesError(
            f"{folder / PICTURES} lacks mean or spread of pixels: {error!r}."
        ) from None
    return Preprocessing(size, as_interpolation(resampling), max(short, size), mean, std)


def _read_side(stored: Any) -> int:
    """Return a length that is stored as a number, or under one of several names."""
    if isinstance(stored, dict):
        stored = next(iter(stored.values()), 224)
    return int(stored)


def _read_json(folder: Path, name: str) -> dict[str, Any]:
    """Return the object in a json file of a folder."""
    try:
        found = json.loads((folder / name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ComesError(
            f"{folder} must be a folder with a {name}; it has none. Name the folder that timm or "
            "transformers saved a network to."
        ) from None
    except (OSError, ValueError) as error:
        raise ComesError(f"{folder / name} cannot be read as json: {error}.") from None
    if not isinstance(found, dict):
        raise ComesError(f"{folder / name} must be a json object; got {type(found).__name__}.")
    return found


def _import_transformers() -> Any:
    """Return the module transformers, which is optional."""
    if find_spec("torchvision") is not None:
        import_torchvision(needed_by="transformers")  # imports it where it is there
    try:
        import transformers
    except ImportError:
        raise ComesError(
            "a folder that transformers saved needs transformers, which is not installed: pip "
            "install transformers."
        ) from None
    return transformers


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers from writing reports and progress bars; what matters we say ourselves."""
    logging = _import_transformers().utils.logging
    level, had_bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if had_bar:
            logging.enable_progress_bar()
