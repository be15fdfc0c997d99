"""A table of class priors, of which some may be left open."""

from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np

from comes.answers.convert import match_names
from comes.datasets import Dataset, Images
from comes.errors import ComesError, ComesWarning, listed
from comes.priors import (
    ClassPriorEstimate,
    estimate_class_prior,
    fill_class_prior,
    read_priors,
)


def read_given_priors(path: str | Path, dataset: Dataset, seed: Any = 0) -> Any:
    """Return the class priors of a table; those that it leaves open are estimated from the data."""
    names = dataset.label_names
    given = read_priors(path, names)
    if isinstance(given, ClassPriorEstimate):
        known: Any = given.class_prior
    else:
        order = match_names([str(name) for name in given.index], names)
        known = given.to_numpy()[order]
    is_open = np.isnan(known)
    if not is_open.any():
        return given
    if isinstance(dataset.X, Images):
        label = names[int(is_open.argmax())]
        raise ComesError(
            f"{Path(path).name} must have a class prior for every label, as none is estimated from "
            f"images beforehand; got none for {label!r}. Fill it in, or leave the table out."
        )
    open_names = listed([name for name, is_one in zip(names, is_open, strict=True) if is_one])
    warn(
        f"{Path(path).name} has no class prior for {open_names}: it is estimated from the data.",
        ComesWarning,
        stacklevel=2,
    )
    estimate = estimate_class_prior(
        dataset.known_features(), dataset.known_answers(), random_state=seed, label_names=names
    )
    filled = fill_class_prior(known, estimate)
    if not isinstance(given, ClassPriorEstimate):
        return filled
    parts = ("class_prior", "exclude_rate", "lower", "upper", "standard_error", "flags")
    own = {part: np.where(is_open, getattr(filled, part), getattr(given, part)) for part in parts}
    return ClassPriorEstimate(**own | {"flags": tuple(map(str, own["flags"]))})
