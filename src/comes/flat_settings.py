"""The flat settings of version 1.0.0, as experiment files, stored results and commands have them.

They name side by side what now belongs to a method, to the rates or to the optimiser. `from_flat`
turns them into parameters. What a spec of 1.0.0 leaves out keeps the value that it had there, in
the tables below, so that no stored number changes its meaning: these tables never change. A new
recipe is a new value of the field ``training``, named by the version that had it.
"""

from collections.abc import Mapping
from typing import Any

from sklearn.base import clone

from comes.errors import ComesError
from comes.methods import DEFAULT, METHODS, find_method

BOTH_1_0_0: Mapping[str, Any] = {  # a spec of rows, and one of pictures
    "cosine": True,
    "reduction": "auto",
    "normaliser": "dataset",
    "flood_level": 0.0,
    "threshold": "half",  # which was called auto
    "early_stopping": False,
    "validation_share": 0.2,
}
# `CandidateClassifier.as_published` of 1.0.0: a spec of rows that names no training.
PUBLISHED_1_0_0: Mapping[str, Any] = {
    **BOTH_1_0_0,
    "optimizer": "sgd",
    "learning_rate": 5e-3,
    "epochs": 200,
    "batch_size": 256,
    "dropout": 0.0,
    "n_networks": 1,
    "starts_at_prior": False,
    "model": "mlp",
    "hidden": 500,
    "momentum": 0.9,
    "weight_decay": 1e-4,
    "scale": "dense",
}
# A spec of rows with training = "default". Its epochs are those of `comes.estimator.prepare`.
DEFAULT_1_0_0: Mapping[str, Any] = {
    **PUBLISHED_1_0_0,
    "flood_level": "auto",
    "scale": "columns",  # which was called auto
    "mistake_rate": 0.0,
    "uses_maybe": True,
}
MEASURED_1_0_0: Mapping[str, Any] = {  # and of these methods
    "optimizer": "adam",
    "learning_rate": 5e-4,
    "epochs": None,
    "batch_size": 64,
    "dropout": 0.5,
    "n_networks": 4,
    "starts_at_prior": True,
}
MEASURED_METHODS = ("likelihood", "bce")
# A spec of rows with training = "1.1", and of these methods.
DEFAULT_1_1: Mapping[str, Any] = {**DEFAULT_1_0_0, "threshold": "auto"}
MEASURED_1_1: Mapping[str, Any] = {
    **MEASURED_1_0_0,
    "model": "wide_and_deep",
    "scale": "rows",
}
# A spec of pictures.
IMAGES_1_0_0: Mapping[str, Any] = {
    **BOTH_1_0_0,
    "backbone": "resnet50",
    "weights": "imagenet",
    "features": "auto",
    "epochs": 0,
    "batch_size": 64,
    "learning_rate": 1e-4,
    "backbone_learning_rate": 1e-5,
    "weight_decay": 0.0,
    "augment": "flip",
    "freezes_statistics": True,
    "precision": "auto",
}
# Methods that had one variant only, with its name: it changes nothing.
ONLY_VARIANTS = {"comes-hl": "corrected", "comes-rl": "flooded", "bce": "candidates"}
ONLY_VARIANTS |= {"mlcl": "probability", "comes-hl-unbiased": "uncorrected"}
ONLY_VARIANTS |= {"likelihood": "answers"}
OF_METHODS = (
    *("variant", "reduction", "normaliser", "flood_level", "flip_rate"),
    *("uses_maybe", "prior_weight"),
)
OF_RATES = {f"{name}_rate": name for name in ("exclude", "no", "yes", "mistake")}
OF_OPTIMIZERS = ("momentum", "cosine", "starts_at_prior", "freezes_statistics")
# Settings that are gone, with the value that every model has now, and why another is refused.
GONE: Mapping[str, tuple[Any, str]] = {
    "output": ("default", "call set_output(transform='pandas')"),
    "centre_crop": (False, "cut the pictures before"),
    "standard_errors": (2.0, "leave it out"),
    "temperature": (2.0, "leave it out"),
}
ROWS_ONLY = ("momentum", "starts_at_prior", "output")
IMAGES_ONLY = ("freezes_statistics", "centre_crop", "standard_errors", "temperature")


def frozen_settings(
    method: str, training: str | None, images: Any, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the settings of a spec, with what it leaves out."""
    is_new = training == "1.1"
    renamed = {"threshold": BOTH_1_0_0["threshold"], "scale": DEFAULT_1_0_0["scale"]}
    if not is_new:
        settings = {**settings} | {k: v for k, v in renamed.items() if settings.get(k) == "auto"}
    if images:
        return {**IMAGES_1_0_0, **settings}
    if training is None:
        return {**PUBLISHED_1_0_0, **settings}
    frozen = dict(DEFAULT_1_1 if is_new else DEFAULT_1_0_0)
    if method in MEASURED_METHODS:
        frozen |= MEASURED_1_1 if is_new else MEASURED_1_0_0
        optimizer = settings.get("optimizer")
        networks = ("mlp", "low_rank", "wide_and_deep", "blend")
        is_small = optimizer is None and settings.get("model", "mlp") not in networks
        if is_small or optimizer == "sgd":
            steps = ("optimizer", "learning_rate", "epochs", "batch_size")
            frozen |= {name: PUBLISHED_1_0_0[name] for name in steps}
            frozen["scale"] = DEFAULT_1_0_0["scale"]
    return {**frozen, **settings}


def flat_names(parameters: Mapping[str, Any]) -> set[str]:
    """Return the flat names beside the parameters of a classifier, of rows or of pictures."""
    other = ROWS_ONLY if "backbone" in parameters else IMAGES_ONLY
    flat = {*OF_METHODS, *OF_RATES, *OF_OPTIMIZERS, *GONE, "validation_share", "progress"}
    return (set(parameters) | flat) - set(other)


def from_flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters of a classifier, given settings by the flat names of version 1.0.0.

    Names that are parameters now stay. A setting of another method is refused, unless it has the
    value that changes nothing.
    """
    new = dict(settings)
    for name, (only, advice) in GONE.items():
        if new.pop(name, only) != only:
            raise ComesError(f"{name} was removed after version 1.0.0: {advice}.")
    own = {name: new.pop(name) for name in OF_METHODS if name in new}
    new["method"] = _with_settings(new.get("method"), own)
    rates = {name: new.pop(flat, None) for flat, name in OF_RATES.items()}
    if rates["mistake"] == 0:
        del rates["mistake"]
    rates = {name: rate for name, rate in rates.items() if rate is not None}
    if rates:
        new["rates"] = rates
    # The values that every optimiser has; None is the method's own.
    usual = {"momentum": 0.9, "cosine": True, "freezes_statistics": True, "starts_at_prior": None}
    how = {name: new.pop(name, usual[name]) for name in OF_OPTIMIZERS}
    how = {name: value for name, value in how.items() if value != usual[name]}
    if how:
        chosen = new.get("optimizer")
        new["optimizer"] = how if chosen is None else {"name": chosen, **how}
    share = new.pop("validation_share", None)
    if new.get("early_stopping") is True and share is not None:
        new["early_stopping"] = share
    if new.pop("progress", None) is False:
        new["verbose"] = -1
    return new


def _with_settings(method: Any, settings: Mapping[str, Any]) -> Any:
    """Return a method object with flat settings; a name, if none differs from its defaults."""
    method = DEFAULT if method is None else method
    named = find_method(method)
    known = named.get_params(deep=False)
    if settings.get("variant", "") == ONLY_VARIANTS.get(named.name):
        settings = {**settings, "variant": None}
    # What changes nothing may be set for any method; these other values, too, of an experiment.
    neutral = {"variant": None, "flip_rate": None, "uses_maybe": True, "reduction": "auto"}
    for name, value in settings.items():
        if name not in known and name in neutral and value != neutral[name]:
            able = [key for key, other in METHODS.items() if name in other.get_params()]
            names = " or ".join(map(repr, able))
            raise ComesError(f"{name} is for method {names}; leave it out of {named.name!r}.")
    chosen = {name: value for name, value in settings.items() if name in known}
    if chosen.get("variant", "") is None:
        del chosen["variant"]
    changed = {name: v for name, v in chosen.items() if not _is_same(v, known[name])}
    return clone(named).set_params(**changed).check() if changed else method


def _is_same(value: Any, other: Any) -> bool:
    return type(value) is type(other) and bool(value == other)
