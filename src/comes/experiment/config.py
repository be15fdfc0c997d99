"""An experiment as a TOML file: which data, which methods, repeated how.

.. code-block:: toml

    name = "smoke"
    folds = 3

    [settings]
    epochs = 20

    [[data]]
    name = "scenes"

    [[methods]]
    method = "comes-hl"
"""

import difflib
import itertools
import tomllib
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from comes.errors import ComesError
from comes.experiment.tasks import Task


class Strict(BaseModel):
    """A part of the file that refuses what it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class DataChoice(Strict):
    """A data set, and where its candidates come from."""

    name: str  # of `comes datasets`, "scenes", or the path of a file
    case: Literal["a", "b", "one", "size", "instance"] | None = None  # None: the data set's own
    rate: float | None = Field(None, ge=0, le=1)

    @property
    def label(self) -> str:
        """Name in tables."""
        name = Path(self.name).stem if "/" in self.name else self.name
        rate = "" if self.rate is None else f" {self.rate:g}"
        return name if self.case is None else f"{name}, case {self.case}{rate}"


class MethodChoice(Strict):
    """A method with its own settings."""

    method: str  # by name, or "FILE.py:FUNCTION", a risk of one's own
    label: str = ""  # in tables; the method by default
    settings: dict[str, Any] = {}  # parameters of CandidateClassifier

    @property
    def name(self) -> str:
        """Name in tables."""
        return self.label or self.method


class Search(Strict):
    """A small budget for each method, spent on held-out candidates only."""

    learning_rate: list[float] = Field(min_length=1)
    epochs: list[int] = Field(min_length=1)
    held_out: float = Field(0.2, gt=0, lt=1)


class Experiment(Strict):
    """What is to be run."""

    name: str
    data: list[DataChoice] = Field(min_length=1)
    methods: list[MethodChoice] = Field(min_length=1)
    folds: int | None = Field(None, ge=2)  # repeated over the test rows of folds
    first_folds: int | None = Field(None, ge=1)  # only so many of them
    label_seeds: int | None = Field(None, ge=1)  # or over seeds of candidates, one test set
    test_share: float = Field(0.3, gt=0, lt=1)  # of rows, with label_seeds
    seed: int = 0
    class_prior: Literal["true", "estimated"] = "true"
    prior_noise: float = Field(0.0, ge=0)
    settings: dict[str, Any] = {}  # of CandidateClassifier, for all methods
    search: Search | None = None

    @model_validator(mode="after")
    def _repeated_one_way(self) -> Self:
        if (self.folds is None) == (self.label_seeds is None):
            raise ValueError("give either folds or label_seeds")
        if self.label_seeds is not None and any(data.case is None for data in self.data):
            raise ValueError("label_seeds need a case for every data set")
        return self


def read_experiment(path: str | Path) -> Experiment:
    """Read an experiment from a TOML file; every mistake says where it is and what was meant."""
    path = Path(path)
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ComesError(f"{path} cannot be read: {error.strerror}.") from None
    except tomllib.TOMLDecodeError as error:
        raise ComesError(f"{path} is not TOML: {error}.") from None
    try:
        return Experiment.model_validate(values)
    except ValidationError as error:
        raise ComesError(f"{path}: {_in_words(error)}") from None


def tasks_of(experiment: Experiment) -> list[Task]:
    """Return the tasks of an experiment, each once."""
    shared = experiment.model_dump(exclude={"name", "data", "methods", "settings"})
    tasks = []
    for data, method in itertools.product(experiment.data, experiment.methods):
        settings = experiment.settings | method.settings
        own = {"data": data.model_dump(), "method": method.method, "settings": settings}
        tasks.append(Task(experiment.name, data.label, method.name, shared | own))
    if len({task.key for task in tasks}) < len(tasks):
        raise ComesError(f"{experiment.name} has a method twice, with the same settings.")
    return tasks


PARTS: dict[str, type[BaseModel]] = {"data": DataChoice, "methods": MethodChoice, "search": Search}


def _in_words(error: ValidationError) -> str:
    """Return the first mistake with its place and the nearest word that would be right."""
    mistakes = error.errors()  # an unknown key explains a missing one
    first = min(mistakes, key=lambda mistake: mistake["type"] != "extra_forbidden")
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] != "extra_forbidden":
        return f"{where}: {first['msg']}." if where else f"{first['msg']}."
    parts = [part for part in first["loc"] if isinstance(part, str)]
    known = list(PARTS[parts[0]].model_fields if len(parts) > 1 else Experiment.model_fields)
    near = difflib.get_close_matches(parts[-1], known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else f" Known are {', '.join(known)}."
    return f"{where} is no key of an experiment.{hint}"
