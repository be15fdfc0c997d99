"""A fitted classifier as a folder: ``model.json`` and ``model.safetensors``, no pickle."""

import json
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from sklearn.base import clone
from torch import nn

import comes
from comes.columns import ColumnEncoder
from comes.errors import ComesError
from comes.estimator.checksums import add_checksums, check_checksums, find_system_error
from comes.estimator.row_training import make_module
from comes.estimator.scaling import Scaling
from comes.estimator.settings import find_settings
from comes.estimator.table_inputs import count_inputs, find_encoder
from comes.files import check_folder_target, expanded, replacing_folder
from comes.methods import Rates
from comes.selection.calibration import Calibration
from comes.training import History
from comes.training.seeding import seeded

if TYPE_CHECKING:
    from comes.estimator.classifier import CandidateClassifier, Model

    C = TypeVar("C", bound=CandidateClassifier)

FILES = DESCRIPTION, WEIGHTS = "model.json", "model.safetensors"
COLUMNS = "columns."  # begins the names of what the encoder of a table learned
FORMAT = 1
OWN = "your own"  # stands for a parameter that is code
PLAIN_NETWORK = {"dropout": 0.0, "n_networks": 1}  # of models that were saved without these


def check_model_target(path: str | Path) -> None:
    """Raise an error unless a model can be saved there; call it before a long training.

    Parameters
    ----------
    path : path
        A folder that does not exist yet, is empty, or holds a model.

    Examples
    --------
    >>> check_model_target("model-of-photos")  # may be written
    >>> check_model_target("missing/model")
    Traceback (most recent call last):
    comes.errors.ComesError: ...missing is not a folder. Create it first, or correct the path.
    """
    check_folder_target(path, FILES)


def save(classifier: "CandidateClassifier", path: str | Path) -> None:
    """Write a fitted classifier to a folder."""
    arrays = {
        **rate_arrays(classifier.rates_),
        "score_offset": classifier.score_offset_,
        "score_power": classifier.score_power_,
        **calibration_arrays(classifier),
        "threshold": classifier.threshold_,
        "seen_rows": getattr(classifier, "seen_rows_", None),
        "feature_shift": classifier.scaling_.shift,
        "feature_scale": classifier.scaling_.scale,
    }
    tensors = {name: torch.as_tensor(a) for name, a in arrays.items() if a is not None}
    for name, tensor in classifier.module_.state_dict().items():
        tensors[f"module.{name}"] = tensor.cpu().clone().contiguous()  # tied weights twice
    parameters = {
        k: plain(v) for k, v in classifier.get_params(deep=False).items() if k != "encoder"
    }
    parameters["method"] = plain(classifier.method_)
    parameters["device"] = "auto"  # where it was trained need not be where it is used
    parameters["callbacks"] = None  # they are code
    description = {
        "parameters": parameters,
        "n_features": classifier.n_features_in_,
        "feature_names": classifier.feature_names,
        "item": getattr(classifier, "item_column_", None),
        "label_names": classifier.label_names_,
        "network": _describe_network(classifier),
        "history": vars(classifier.history_),
        "trained_on": classifier.trained_on_,
    }
    encoder = find_encoder(classifier)
    if encoder is not None:
        description["columns"], arrays = encoder.state()
        tensors |= {COLUMNS + name: torch.as_tensor(a) for name, a in arrays.items()}
    write_model(path, description, tensors)


def _describe_network(classifier: "CandidateClassifier") -> dict[str, Any]:
    """Return the size of the network, so that later defaults do not change what is loaded."""
    settings = find_settings(classifier, classifier.method_)
    return {name: settings[name] for name in PLAIN_NETWORK}


def write_model(
    path: str | Path, description: dict[str, Any], tensors: dict[str, torch.Tensor]
) -> None:
    """Write the description of a model and its weights to a folder, whole or not at all."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    described = {"format": FORMAT, "comes_version": comes.__version__, **description}
    whole = json.loads(json.dumps(described))  # as it will be read
    with replacing_folder(path, FILES) as folder:
        try:
            save_file(tensors, folder / WEIGHTS)
        except SafetensorError as error:
            raise find_system_error(str(error)) or error from None
        whole = add_checksums(whole, folder / WEIGHTS)
        text = json.dumps(whole, indent=2, ensure_ascii=False)
        (folder / DESCRIPTION).write_text(text + "\n", encoding="utf-8")


def read_model(path: str | Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Return the description of a model and its weights; raise an error if a folder has none."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = expanded(path)
    try:
        description = json.loads((path / DESCRIPTION).read_text(encoding="utf-8"))
        tensors = load_file(path / WEIGHTS)
    except FileNotFoundError as error:
        raise ComesError(
            f"{path} is not a saved model: it has no {Path(error.filename or WEIGHTS).name}. "
            "Give the folder that 'comes fit -o' or CandidateClassifier.save wrote."
        ) from None
    except (ValueError, SafetensorError, OSError) as error:
        which = WEIGHTS if isinstance(error, SafetensorError) else DESCRIPTION
        raise ComesError(
            f"{path} is not a saved model, or a damaged one: {which} cannot be read ({error}). "
            "Take another copy, or fit it again."
        ) from None
    if not isinstance(description, dict) or "format" not in description:
        raise ComesError(f"{path / DESCRIPTION} is damaged: it names no format.")
    if description["format"] != FORMAT:
        raise ComesError(
            f"{path} has format {description['format']}; this version of comes reads {FORMAT}. "
            f"It was written by comes {description.get('comes_version')}."
        )
    check_checksums(description, path / DESCRIPTION, path / WEIGHTS)
    return description, tensors


def load(cls: "type[C]", path: str | Path, model: "Model | None") -> "C":
    """Read a fitted classifier from a folder."""
    description, tensors = read_model(path)
    try:
        parameters = description["parameters"]
        if parameters["model"] == OWN:
            if model is None:
                raise ComesError(
                    f"{path} holds weights of a model of your own: pass it, load(path, model=...)."
                )
            parameters["model"] = model
        classifier = cls(**parameters)
        _restore(classifier, description, tensors)
    except (KeyError, TypeError, AttributeError) as error:
        raise ComesError(f"{Path(path) / DESCRIPTION} is damaged: {error!r}.") from error
    return classifier


def _restore(
    classifier: "CandidateClassifier", description: dict[str, Any], tensors: dict[str, Any]
) -> None:
    """Set the fitted attributes."""
    q = len(description["label_names"])
    classifier.n_features_in_ = description["n_features"]
    if description["feature_names"] is not None:
        classifier.feature_names_in_ = np.asarray(description["feature_names"], dtype=object)
    classifier.item_column_ = description.get("item")
    if "columns" in description:
        arrays = {name: t.numpy() for name, t in tensors.items() if name.startswith(COLUMNS)}
        own = {name.removeprefix(COLUMNS): array for name, array in arrays.items()}
        classifier.encoder_ = ColumnEncoder.from_state(description["columns"], own)
        classifier.encoder = clone(classifier.encoder_)
    classifier.label_names_ = description["label_names"]
    classifier.method_ = classifier.method
    classifier.classes_ = np.arange(q)
    classifier.rates_ = stored_rates(tensors, classifier.mistake_rate)
    classifier.score_offset_ = stored_array(tensors, "score_offset")
    classifier.score_power_ = stored_array(tensors, "score_power")
    classifier.calibration_ = stored_calibration(tensors)
    classifier.seen_rows_ = stored_array(tensors, "seen_rows")
    classifier.threshold_ = tensors.get("threshold", tensors["score_offset"]).numpy()
    shift, scale = (stored_array(tensors, f"feature_{name}") for name in ("shift", "scale"))
    classifier.scaling_ = Scaling(shift, scale)
    classifier.history_ = History(**description["history"])
    classifier.trained_on_ = description.get("trained_on")
    with seeded(0, torch.device("cpu")):  # initial weights, to be replaced
        network = description.get("network", PLAIN_NETWORK)
        classifier.module_ = make_module(classifier, count_inputs(classifier), q, network)
    weights = {
        name.removeprefix("module."): tensor
        for name, tensor in tensors.items()
        if name.startswith("module.")
    }
    try:
        classifier.module_.load_state_dict(weights)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise ComesError(f"the saved weights do not fit the model: {reason}") from None
    classifier.module_.eval()


def rate_arrays(rates: Rates) -> dict[str, Any]:
    """Return what was known, as arrays; rates of single people are of no use later."""
    arrays = {name: a for name, a in vars(rates).items() if isinstance(a, np.ndarray)}
    return {name: np.ascontiguousarray(a) for name, a in arrays.items()}


def stored_rates(tensors: dict[str, torch.Tensor], mistake_rate: float) -> Rates:
    """Return the rates of the method of a stored model."""
    names = [part.name for part in fields(Rates) if part.name in tensors]
    arrays = {name: stored_array(tensors, name) for name in names}
    return Rates(**arrays, mistake_rate=mistake_rate)


def calibration_arrays(classifier: Any) -> dict[str, Any]:
    """Return the calibration of a classifier, as arrays."""
    found = classifier.calibration_
    return {f"calibration_{name}": a for name, a in (vars(found) if found else {}).items()}


def stored_calibration(tensors: dict[str, torch.Tensor]) -> Calibration | None:
    """Return the calibration of a stored model; None if it has none."""
    slope, level = (stored_array(tensors, f"calibration_{name}") for name in ("slope", "level"))
    return None if slope is None else Calibration(slope, level)


def stored_array(tensors: dict[str, torch.Tensor], name: str) -> Any:
    """Return a stored array, None if none has that name."""
    return tensors[name].numpy() if name in tensors else None


def plain(value: Any) -> Any:
    """Return a parameter in a form that json can hold."""
    if isinstance(value, np.random.RandomState):
        return None
    if isinstance(value, nn.Module) or callable(value):
        return OWN
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    return np.asarray(value).tolist()
