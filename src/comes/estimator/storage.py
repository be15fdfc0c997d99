"""A fitted classifier as a folder: ``model.json`` and ``model.safetensors``, no pickle.

``model.json`` holds the checksum of the weights' file, and that of all else it says, so that
weights that rot and descriptions that are edited are noticed.
"""

import hashlib
import json
import re
import shutil
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from sklearn.base import clone
from torch import nn

import comes
from comes.answers import AnswerRates
from comes.errors import ComesError, first_line
from comes.estimator import skops_files
from comes.estimator.base import BaseCandidateClassifier
from comes.estimator.corrected import CorrectedClassifier
from comes.estimator.prepare import OWN, as_plain, choose_settings, make_network
from comes.estimator.scaling import Scaling
from comes.files import expanded, replacing_folder
from comes.flat_settings import from_flat
from comes.methods import DEFAULT, METHODS, Rates, find_method
from comes.models import Ensemble
from comes.selection.calibration import Calibration
from comes.tables import ColumnEncoder
from comes.training import History
from comes.training.seeding import seeded

if TYPE_CHECKING:
    from comes.estimator.classifier import CandidateClassifier, Model

    C = TypeVar("C", bound=CandidateClassifier)

DESCRIPTION, WEIGHTS, TREES = "model.json", "model.safetensors", "trees.skops"
FILES = DESCRIPTION, WEIGHTS, TREES
COLUMNS = "columns."  # begins the names of what the encoder of a table learned
FORMAT = 2  # 1 had the flat parameters of version 1.0.0
PLAIN_NETWORK = {"dropout": 0.0, "n_networks": 1}  # of models that were saved without these
ARRAYS = ("score_offset_", "score_power_", "threshold_", "seen_rows_")


def save(classifier: "CandidateClassifier", path: str | Path) -> None:
    """Write a fitted classifier of rows to a folder."""
    description, tensors = describe(classifier, classifier.module_, "module.", leave="encoder")
    for name, array in vars(classifier.scaling_).items():
        if array is not None:
            tensors[f"feature_{name}"] = torch.as_tensor(array)
    description |= {
        "n_features": classifier.n_features_in_,
        "feature_names": classifier.feature_names,
        "item": classifier.item_column_,
        "network": _describe_network(classifier),
    }
    encoder = getattr(classifier, "encoder_", None)
    if encoder is not None:
        description["columns"], arrays = encoder.state()
        tensors |= {COLUMNS + name: torch.as_tensor(a) for name, a in arrays.items()}
    write_model(path, description, tensors, classifier.trees_)


def _describe_network(classifier: "CandidateClassifier") -> dict[str, Any]:
    """Return the size of the network, so that later defaults do not change what is loaded."""
    module, settings = classifier.module_, choose_settings(classifier, classifier.method_)
    if isinstance(module, Ensemble):
        settings |= {"n_networks": len(module.weight), "dropout": module.dropout.p}
        settings["model"] = "mlp" if module.linear is None else "wide_and_deep"
    names = PLAIN_NETWORK if callable(settings["model"]) else (*PLAIN_NETWORK, "model")
    return {name: settings[name] for name in names}


def load(cls: "type[C]", path: str | Path, model: "Model | None") -> "C":
    """Read a fitted classifier of rows from a folder."""
    description, tensors = read_model(path)
    try:
        classifier = cls(**read_parameters(description, path, "model", model))
        restore(classifier, description, tensors)
        classifier.n_features_in_ = description["n_features"]
        if description["feature_names"] is not None:
            classifier.feature_names_in_ = np.asarray(description["feature_names"], dtype=object)
        classifier.item_column_ = description.get("item")
        if "columns" in description:
            arrays = {name: t.numpy() for name, t in take_tensors(tensors, COLUMNS).items()}
            classifier.encoder_ = ColumnEncoder.from_state(description["columns"], arrays)
            classifier.encoder = clone(classifier.encoder_)
        shift, scale = _as_arrays(tensors, "feature_shift", "feature_scale")
        classifier.scaling_ = Scaling(shift, scale)
        settings = choose_settings(classifier, classifier.method_)
        settings |= description.get("network", PLAIN_NETWORK)
        d, q = classifier.n_inputs_, len(classifier.label_names_)
        with seeded(0, torch.device("cpu")):  # initial weights, to be replaced
            module = make_network(d, q, classifier.hidden, settings)
        classifier.module_ = restore_weights(module, take_tensors(tensors, "module."))
        if "trees" in description:
            trees = expanded(path) / TREES
            if not trees.is_file() or description["trees"] != _hash(trees):
                raise ComesError(f"{trees} is missing or damaged. Take another copy of the model.")
            classifier.trees_ = skops_files.load(CorrectedClassifier, trees, ())
    except (KeyError, TypeError, AttributeError) as error:
        raise ComesError(f"{Path(path) / DESCRIPTION} is damaged: {error!r}.") from error
    return classifier


def describe(
    classifier: BaseCandidateClassifier, network: nn.Module, prefix: str, leave: str
) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Return what both kinds of classifiers write: a description, and tensors by name."""
    rates, people = classifier.rates_, classifier.people_rates_
    arrays = vars(rates) | {name.removesuffix("_"): getattr(classifier, name) for name in ARRAYS}
    if classifier.calibration_ is not None:
        arrays |= {f"calibration_{k}": v for k, v in vars(classifier.calibration_).items()}
    if people:
        no, yes = map(np.stack, zip(*people.values(), strict=True))
        arrays |= {"people_no_rate": no, "people_yes_rate": yes}
    tensors = {
        name: torch.as_tensor(np.ascontiguousarray(array))
        for name, array in arrays.items()
        if isinstance(array, np.ndarray)
    }
    for name, tensor in network.state_dict().items():
        tensors[prefix + name] = tensor.cpu().clone().contiguous()  # tied weights twice
    method, parameters = classifier.method_, classifier.get_params(deep=False)
    del parameters[leave]
    parameters |= {"callbacks": None} if "callbacks" in parameters else {}  # they are code
    parameters = {name: as_plain(value) for name, value in parameters.items()}
    parameters["method"] = OWN if method.is_custom else as_plain(method)
    parameters["device"] = "auto"  # where it was trained need not be where it is used
    description = {
        "parameters": parameters,
        "label_names": classifier.label_names_,
        "mistake_rate": rates.mistake_rate,
        "people": list(people),
        "history": vars(classifier.history_),
        "trained_on": classifier.trained_on_,
        "output": getattr(classifier, "_sklearn_output_config", {}).get("transform"),
    }
    return description, tensors


def read_parameters(
    description: dict[str, Any], path: str | Path, code: str, value: Any
) -> dict[str, Any]:
    """Return the parameters of a stored classifier; ``code`` names one that may be the user's."""
    parameters = dict(description["parameters"])
    if parameters[code] == OWN and value is None:
        raise ComesError(
            f"{path} holds weights of a {code} of your own: pass it, load(path, {code}=...)."
        )
    if parameters[code] == OWN:
        parameters[code] = value
    method = parameters["method"]
    if method == OWN:
        parameters["method"] = _lost_risk
    if description["format"] == 1:
        description.setdefault("output", parameters.pop("output", None))
        if "uses_maybe" not in find_method(parameters["method"] or DEFAULT).get_params():
            parameters.pop("uses_maybe", None)  # every method had it; it acts only in training
        return from_flat(parameters)
    if isinstance(method, dict):
        name = method["name"]
        settings = {key: setting for key, setting in method.items() if key != "name"}
        is_plain = find_method(name).get_params() == settings
        parameters["method"] = name if is_plain else clone(METHODS[name]).set_params(**settings)
    rates = parameters["rates"]
    if isinstance(rates, dict) and "people" in rates:
        no, yes = np.asarray(rates["no"]), np.asarray(rates["yes"])
        people = {name: (np.asarray(a), np.asarray(b)) for name, (a, b) in rates["people"].items()}
        parameters["rates"] = AnswerRates(no, yes, rates["mistake"], people)
    return parameters


def _lost_risk(scores: Any, candidates: Any) -> Any:
    """Stand for a risk of the user's own, which is not written with a model."""
    raise ComesError(
        "this model was trained with a risk of your own, which is not saved: set it again, "
        "set_params(method=...)."
    )


def restore(
    classifier: BaseCandidateClassifier, description: dict[str, Any], tensors: dict[str, Any]
) -> None:
    """Set the fitted attributes that both kinds of classifiers have."""
    classifier.label_names_ = description["label_names"]
    classifier.classes_ = np.array(classifier.label_names_, dtype=object)
    parameters = classifier.get_params(deep=False)
    classifier.method_ = clone(find_method(parameters["method"]))
    names = [field.name for field in fields(Rates) if field.name in tensors]
    stored: dict[str, Any] = dict(zip(names, _as_arrays(tensors, *names), strict=True))
    rates = parameters["rates"]
    mistake = rates.get("mistake", 0.0) if isinstance(rates, dict) else 0.0
    stored["mistake_rate"] = description.get("mistake_rate", mistake)
    if description.get("people"):
        no, yes = _as_arrays(tensors, "people_no_rate", "people_yes_rate")
        pairs = zip(no, yes, strict=True)
        stored["people"] = dict(zip(description["people"], pairs, strict=True))
    classifier.rates_ = Rates(**stored)
    for name in ARRAYS:
        setattr(classifier, name, *_as_arrays(tensors, name.removesuffix("_")))
    if "threshold" not in tensors:
        classifier.threshold_ = classifier.score_offset_
    slope, level = _as_arrays(tensors, "calibration_slope", "calibration_level")
    classifier.calibration_ = None if slope is None else Calibration(slope, level)
    classifier.history_ = History(**description["history"])
    classifier.trained_on_ = description.get("trained_on")
    classifier.set_output(transform=description.get("output"))


def take_tensors(tensors: dict[str, Any], prefix: str) -> dict[str, torch.Tensor]:
    """Return the tensors whose names begin so, by the rest of their names."""
    return {k.removeprefix(prefix): t for k, t in tensors.items() if k.startswith(prefix)}


def restore_weights(network: nn.Module, weights: dict[str, torch.Tensor]) -> nn.Module:
    """Return a network with stored weights."""
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise ComesError(f"the saved weights do not fit the network: {reason}") from None
    return network.eval()


def _as_arrays(tensors: dict[str, torch.Tensor], *names: str) -> list[Any]:
    """Return stored arrays, None for a name that none has."""
    return [tensors[name].numpy() if name in tensors else None for name in names]


def write_model(
    path: str | Path,
    description: dict[str, Any],
    tensors: dict[str, torch.Tensor],
    trees: CorrectedClassifier | None = None,
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
            # safetensors quotes the error of the system, such as that of a full disk.
            quoted = re.search(r"(?:I/O error: )?([^:()]+) \(os error (\d+)\)", str(error))
            raise OSError(int(quoted[2]), quoted[1].strip()) if quoted else error from None
        if trees is not None:
            skops_files.save(trees, folder / TREES)
            whole["trees"] = _hash(folder / TREES)
        whole["checksums"] = _compute_checksums(whole, folder / WEIGHTS)
        text = json.dumps(whole, indent=2, ensure_ascii=False)
        (folder / DESCRIPTION).write_text(text + "\n", encoding="utf-8")
        shutil.copymode(folder / DESCRIPTION, folder / WEIGHTS)


def read_model(path: str | Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Return the description of a model and its weights; raise an error if a folder has none."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = expanded(path)
    for name in (DESCRIPTION, WEIGHTS):
        if not (path / name).is_file():
            raise ComesError(
                f"{path} is not a saved model: it has no {name}. Give the folder that "
                "'comes fit -o' or CandidateClassifier.save wrote."
            )
    try:
        description = json.loads((path / DESCRIPTION).read_text(encoding="utf-8"))
        tensors = load_file(path / WEIGHTS)
    except (ValueError, SafetensorError, OSError, RecursionError) as error:
        which = WEIGHTS if isinstance(error, SafetensorError) else DESCRIPTION
        raise ComesError(
            f"{path} is not a saved model, or a damaged one: {which} cannot be read "
            f"({first_line(error)}). Take another copy, or fit it again."
        ) from None
    if not isinstance(description, dict) or "format" not in description:
        raise ComesError(f"{path / DESCRIPTION} is damaged: it names no format.")
    version = str(description.get("comes_version"))
    if description["format"] not in (1, FORMAT):
        raise ComesError(
            f"{path} has format {description['format']}; this version of comes reads 1 and "
            f"{FORMAT}. It was written by comes {version}."
        )
    is_first = description["format"] == 1 and version.startswith("0.")  # which had none
    if "checksums" not in description and is_first:
        return description, tensors
    stored, actual = description.get("checksums"), _compute_checksums(description, path / WEIGHTS)
    if not isinstance(stored, dict):
        file, fault = DESCRIPTION, f"is damaged: its checksums are {stored!r}"
    elif stored.get("weights") != actual["weights"]:
        file, fault = WEIGHTS, "is damaged: its bytes are not those that were saved"
    elif stored.get("description") != actual["description"]:
        why = (
            "what it says may not belong to the weights (such as the order of features and labels)"
        )
        file, fault = DESCRIPTION, f"was changed after it was saved, so {why}"
    else:
        return description, tensors
    raise ComesError(f"{path / file} {fault}. Take another copy of the model, or fit it again.")


def _compute_checksums(description: dict[str, Any], weights: Path) -> dict[str, str]:
    """Return the SHA-256 of the weights' file and of the rest of a description, by name."""
    content = {name: value for name, value in description.items() if name != "checksums"}
    described = hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=True).encode())
    return {"weights": _hash(weights), "description": f"sha256:{described.hexdigest()}"}


def _hash(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
