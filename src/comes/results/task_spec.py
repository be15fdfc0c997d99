"""What decides a result: equal specs give equal numbers and have the same key.

A field that is None is left out of the json, so that a new optional field changes no key.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any, Literal

from comes.generation import Case

# The fields of a spec that an experiment can run at several values.
SweepKey = Literal["prior_noise", "flood", "train_rows"]
# What a search chooses by; see `comes.estimator.choose_classifier`.
SearchCriterion = Literal["log_likelihood", "ranking", "hamming", "auc", "own_risk"]
# What a method sees of answers; "truth" is every label of the training rows.
Sees = Literal["all", "no_maybe", "candidates", "truth"]


@dataclass(frozen=True, kw_only=True)
class AnswerSpec:
    """How answers are drawn from true labels: see `comes.generation.simulate_answers`.

    Examples
    --------
    >>> AnswerSpec(asked_rate=0.1, no_rate=0.8, yes_rate=0.8).mistake_rate
    0.0
    """

    asked_rate: float
    no_rate: float
    yes_rate: float
    mistake_rate: float = 0.0
    doubt_strength: float = 0.0
    asked_strength: float = 0.0
    people: Mapping[str, tuple[float, float]] | None = None  # their own rates of no and of yes
    people_per_pair: int | None = None


@dataclass(frozen=True, kw_only=True)
class DataSpec:
    """A data set, and where its candidates or answers come from.

    Examples
    --------
    >>> DataSpec(name="scenes", case="b", rate=0.5).rows is None
    True
    """

    name: str
    case: Case | None = None  # None: the data set comes with candidates, or answers are drawn
    rate: float | None = None
    test: str | None = None  # the data set to test on; None: rows of this one
    rows: int | None = None  # of "scenes"
    read: Mapping[str, Any] | None = None  # how a file is read
    answers: AnswerSpec | None = None  # how answers are drawn


@dataclass(frozen=True, kw_only=True)
class SearchSpec:
    """Values of hyper-parameters to choose from, on held-out candidates.

    Examples
    --------
    >>> SearchSpec(learning_rate=(0.01, 0.1), epochs=(20,), held_out=0.2).held_out
    0.2
    """

    learning_rate: tuple[float, ...]
    epochs: tuple[int, ...]
    held_out: float  # share of the training rows
    # None: the risk that the method trains with, corrections included, and the first of a tie.
    criterion: SearchCriterion | None = None
    extend: Literal[True] | None = None  # beyond the edges of the grid


@dataclass(frozen=True, kw_only=True)
class TaskSpec:
    """What decides the result of one method on one data set, with all its repeats.

    Either ``folds`` or ``label_seeds`` says how it is repeated.

    Examples
    --------
    >>> spec = TaskSpec(data=DataSpec(name="scenes"), method="bce", folds=3)
    >>> spec.key
    '55cf8858d1e5c08f'
    >>> spec.key == TaskSpec(data=DataSpec(name="scenes"), method="bce", folds=3, flood=None).key
    True
    """

    # In the order of the json.
    folds: int | None = None
    first_folds: int | None = None  # only so many of them
    label_seeds: int | None = None
    test_share: float = 0.3  # of rows, with label_seeds
    seed: int = 0
    class_prior: Literal["true", "estimated"] = "true"
    prior_noise: float = 0.0
    images: Literal[True] | None = None  # None: rows of features
    search: SearchSpec | None = None
    data: DataSpec
    method: str  # by name, or FILE.py:FUNCTION
    settings: Mapping[str, Any] = field(default_factory=dict)  # parameters of the classifier
    content: str | None = None  # hash of the user's own files
    flood: float | None = None  # in units of the floor of the ranking risk
    train_rows: int | float | None = None  # float where an experiment varies it
    sees: Sees | None = None  # None: candidates
    answer_rates: Literal["true"] | None = None  # None: estimated
    training: Literal["default"] | None = None  # None: as published

    @cached_property
    def key(self) -> str:
        """Name of the folder of the result."""
        return hash_json(as_json(self))

    def at(self, sweep: SweepKey | None) -> float | None:
        """Return the value of the field that an experiment varies."""
        value: float | None = None if sweep is None else getattr(self, sweep)
        return None if value is None else float(value)


def as_json(value: Any) -> Any:
    """Return dataclasses as dicts without fields that are None, and tuples as lists."""
    if is_dataclass(value):
        own = {part.name: getattr(value, part.name) for part in fields(value)}
        return {name: as_json(part) for name, part in own.items() if part is not None}
    if isinstance(value, tuple):
        return [as_json(part) for part in value]
    return value


def hash_json(spec: Any) -> str:
    """Return the key of a spec that is json."""
    return hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:16]
