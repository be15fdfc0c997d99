"""An experiment as a TOML file, and the specs that its results store.

.. code-block:: toml

    name = "smoke"
    folds = 3

    [settings]
    epochs = 20

    [[data]]
    name = "scenes"

    [[methods]]
    method = "comes-hl"

A `TaskSpec` is what decides a result: equal specs give equal numbers and have the same key. A field
that is None is left out of the json, so that a new optional field changes no key.
"""

import difflib
import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic.dataclasses import dataclass
from pydantic_core import to_jsonable_python

from comes.datasets.options import as_options
from comes.errors import ComesError
from comes.generation import Case
from comes.methods import METHODS

Share = Annotated[float, Field(ge=0, le=1)]
Part = Annotated[float, Field(gt=0, lt=1)]
Count = Annotated[int, Field(ge=1)]
Level = Annotated[float, Field(ge=0)]
Strength = Annotated[float, Field(allow_inf_nan=False)]
Title = Annotated[str, Field(min_length=1)]
Knowledge = Literal["true", "estimated"]
# The fields of a spec that an experiment can run at several values.
SweepKey = Literal["prior_noise", "flood", "train_rows"]
# What a search chooses by; see `comes.estimator.choose_classifier`.
SearchCriterion = Literal["log_likelihood", "ranking", "hamming", "auc", "own_risk"]
# What a method sees of answers; "truth" is every label of the training rows.
Sees = Literal["all", "no_maybe", "candidates", "truth"]
STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class AnswerSpec:
    """How answers are drawn from true labels, as `comes.generation.simulate_answers` does."""

    asked_rate: Share = 0.1  # how often a pair of row and label is asked about
    no_rate: Share = 0.8  # how often an irrelevant pair is called no
    yes_rate: Share = 0.8  # how often a relevant pair is called yes
    mistake_rate: Share = 0.0  # how often a sure answer is wrong
    doubt_strength: Strength = 0.0  # how far features decide on maybe
    asked_strength: Strength = 0.0  # how far they decide what is asked
    people: dict[str, tuple[Share, Share]] | None = None  # their rates of no and of yes
    people_per_pair: Count | None = None  # how many are asked about the same pair

    @model_validator(mode="after")
    def _check_people(self) -> Self:
        if self.people_per_pair is not None and self.people_per_pair > len(self.people or {}):
            raise ValueError(f"people_per_pair is {self.people_per_pair}: name as many people")
        return self

    @property
    def title(self) -> str:
        """Name in tables."""
        parts = {"asked": self.asked_rate, "no": self.no_rate, "yes": self.yes_rate}
        if self.people is not None:
            parts = {"asked": self.asked_rate, "people": len(self.people)}
        others = {
            "mistakes": self.mistake_rate,
            "doubt strength": self.doubt_strength,
            "asked strength": self.asked_strength,
        }
        parts |= {name: value for name, value in others.items() if value}
        return ", ".join(f"{name} {value:g}" for name, value in parts.items())


@dataclass(frozen=True, kw_only=True, config=STRICT)
class DataSpec:
    """A data set, and where its candidates or answers come from."""

    name: str  # of `comes datasets`, "scenes", or the path of a file
    case: Case | None = None  # None: the data set comes with candidates, or answers are drawn
    rate: Share | None = None  # of the case, as `comes datasets convert --rate`
    test: str | None = None  # the data set to test on; by default rows of this one
    rows: int | None = Field(default=None, ge=10)  # of "scenes"; 2000 by default
    read: Mapping[str, Any] | None = None  # how a file is read: fields of a ReadOptions
    answers: AnswerSpec | None = None  # None: those of the experiment


@dataclass(frozen=True, kw_only=True, config=STRICT)
class DataChoice(DataSpec):
    """A data set of an experiment."""

    label: Title | None = None  # in tables; by default name, case and rate

    @field_validator("read")
    @classmethod
    def _check_read_options(cls, read: dict[str, Any] | None) -> dict[str, Any] | None:
        as_options(None, read or {})  # raises at what is not a field, or not a value of one
        return read

    @property
    def title(self) -> str:
        """Name in tables."""
        if self.label is not None:
            return self.label
        name = Path(self.name).stem if "/" in self.name else self.name
        if self.answers is not None:
            return f"{name}, {self.answers.title}"
        rate = "" if self.rate is None else f" {self.rate:g}"
        return name if self.case is None else f"{name}, case {self.case}{rate}"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class MethodChoice:
    """A method of an experiment, with settings that it alone has."""

    method: str  # by name, or "FILE.py:FUNCTION", your own risk
    label: Title | None = None  # in tables; by default the method
    class_prior: Knowledge | None = None  # None: that of the experiment
    answer_rates: Knowledge | None = None  # None: that of the experiment
    sees: Sees | None = None  # None: all answers where they are drawn, else candidates
    training: Literal["default", "1.1"] | None = None  # None: as published; of 1.0.0, or of 1.1
    settings: dict[str, Any] = Field(default_factory=dict)  # as those of the experiment

    @field_validator("method")
    @classmethod
    def _check_method(cls, method: str) -> str:
        if ":" not in method:
            check_names([method], METHODS, "method")
        return method


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SearchSpec:
    """Settings to choose from for each method and repeat, by answers about held-out rows only."""

    learning_rate: tuple[float, ...] | None = Field(default=None, min_length=1)  # values to try
    epochs: tuple[int, ...] | None = Field(default=None, min_length=1)  # values to try
    held_out: Part = 0.2  # share of the training rows
    # In a file it is log_likelihood by default, and may be trained_risk, which is None here: the
    # risk that the method trains with, corrections included, and the first of a tie.
    criterion: SearchCriterion | None = None  # to choose by; log_likelihood by default in a file
    extend: Literal[True] | None = None  # beyond the edges of the grid; true by default in a file
    settings: Mapping[str, tuple[Any, ...]] | None = None  # others; in a file without this table

    @property
    def grid(self) -> dict[str, tuple[Any, ...]]:
        """The values of every setting to try."""
        values = {"learning_rate": self.learning_rate, "epochs": self.epochs}
        return {k: v for k, v in values.items() if v is not None} | dict(self.settings or {})


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Sweep:
    """One key of the experiment, run at several values."""

    key: SweepKey  # what varies
    values: tuple[float, ...] = Field(min_length=2)  # that it takes


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Protocol:
    """What an experiment and each of its tasks share, in the order of the stored json."""

    folds: int | None = Field(default=None, ge=2)  # repeated over the test rows of folds
    first_folds: Count | None = None  # only so many of them
    label_seeds: Count | None = None  # or over seeds of candidates, one test set
    test_share: Part = 0.3  # of rows, with label_seeds
    seed: int = 0  # of folds, candidates and trainings
    class_prior: Knowledge = "true"  # what methods know of it
    prior_noise: Level = 0.0  # error that is added to the class priors
    images: Literal[True] | None = None  # the data are images, and settings of ImageClassifier
    search: SearchSpec | None = None  # `[search]`: choose settings for each method


@dataclass(frozen=True, kw_only=True, config=STRICT)
class TaskSpec(Protocol):
    """What decides the result of one method on one data set, with all its repeats."""

    data: DataSpec
    method: str  # by name, or FILE.py:FUNCTION
    settings: Mapping[str, Any] = Field(default_factory=dict)  # parameters of the classifier
    content: str | None = None  # hash of the user's files
    flood: float | None = None  # in units of the floor of the ranking risk
    train_rows: int | float | None = None  # float where an experiment varies it
    sees: Sees | None = None  # None: candidates
    answer_rates: Literal["true"] | None = None  # None: estimated
    training: Literal["default", "1.1"] | None = None  # None: as published; of 1.0.0, or of 1.1

    @cached_property
    def key(self) -> str:
        """Name of the folder of the result."""
        text = json.dumps(as_json(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def at(self, sweep: SweepKey | None) -> float | None:
        """Return the value of the field that an experiment varies."""
        value: float | None = None if sweep is None else getattr(self, sweep)
        return None if value is None else float(value)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Experiment(Protocol):
    """What is to be run."""

    name: str  # of the folder of results, runs/NAME
    data: tuple[DataChoice, ...] = Field(min_length=1)  # `[[data]]`, one for each data set
    methods: tuple[MethodChoice, ...] = Field(min_length=1)  # `[[methods]]`, one for each method
    answers: AnswerSpec | None = None  # for data without a case
    answer_rates: Knowledge = "estimated"  # what methods know of them
    flood: Level | None = None  # beta, in units of the floor of the ranking risk
    train_rows: Count | None = None  # of each repeat; all by default
    settings: dict[str, Any] = Field(default_factory=dict)  # of CandidateClassifier
    sweep: Sweep | None = None  # `[sweep]`: run it at several values

    @field_validator("search", mode="before")
    @classmethod
    def _fill_search(cls, search: Any) -> Any:
        """Return a `[search]` as specs store it, with the defaults of files."""
        if not isinstance(search, dict):
            return search
        search = {"criterion": "log_likelihood", "extend": True} | search
        if search["criterion"] == "trained_risk":
            search |= {"criterion": None, "extend": None}
        if search["extend"] is False:
            search["extend"] = None
        known = {field.name for field in fields(SearchSpec)}
        own = {name: value for name, value in search.items() if name in known}
        others = {name: value for name, value in search.items() if name not in known}
        return own | ({"settings": others} if others else {})

    @model_validator(mode="after")
    def _check(self) -> Self:
        folds, seeds = self.folds or 0, self.label_seeds is not None
        cases = [data for data in self.data if data.case is not None]
        is_known = all(data.case or data.answers for data in self.drawn_data)
        sees_answers = any(method.sees in ("all", "no_maybe") for method in self.methods)
        mistakes = {
            "give either folds or label_seeds": bool(folds) == seeds,
            f"first_folds must be at most folds, {folds}": (self.first_folds or 0) > folds,
            "data.test, a separate test set, needs label_seeds": not seeds
            and any(data.test is not None for data in self.data),
            "label_seeds need a case for every data set, or answers": seeds and not is_known,
            "images are repeated over label_seeds, and have no search": self.images
            and (self.search is not None or not seeds),
            "training is for tables; images have the settings of ImageClassifier": self.images
            and any(method.training for method in self.methods),
            f"name must be the name of a folder, without / or \\; got {self.name!r}": self.name
            in ("", ".", "..")
            or set(self.name) & set("/\\"),
            "a data set has a case or answers, not both": any(data.answers for data in cases),
            "data of a case are candidates; sees needs answers": sees_answers and cases,
        }
        for message, is_wrong in mistakes.items():
            if is_wrong:
                raise ValueError(message)
        if self.sweep is not None:
            for value in self.sweep.values:  # raises at one that is not valid
                replace(self, sweep=None, **{self.sweep.key: value})  # type: ignore[arg-type]
        return self

    @property
    def drawn_data(self) -> tuple[DataChoice, ...]:
        """The data sets, with the answers of the experiment where they have neither."""
        if self.answers is None:
            return self.data
        return tuple(
            data if data.case or data.answers else replace(data, answers=self.answers)
            for data in self.data
        )


# Where a file names them; for suggestions.
PARTS: dict[str, type] = {
    "answers": AnswerSpec,
    "data": DataChoice,
    "methods": MethodChoice,
    "search": SearchSpec,
    "sweep": Sweep,
}


def read_experiment(path: str | Path) -> Experiment:
    """Read an experiment from a TOML file; an error names the place and the key that was meant."""
    path = Path(path)
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ComesError(f"{path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ComesError(f"{path} is not TOML: {error}.") from None
    try:
        return Experiment(**values)
    except ValidationError as error:
        raise ComesError(f"{path}: {_describe_mistake(error)}") from None


def _describe_mistake(error: ValidationError) -> str:
    """Return the first mistake with its place and the nearest word that would be right."""
    unknown = "unexpected_keyword_argument"  # it explains a missing one
    first = min(error.errors(), key=lambda mistake: mistake["type"] != unknown)
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] != unknown:
        message = first["msg"].removeprefix("Value error, ").rstrip(".").replace("tuple", "list")
        return f"{where}: {message}." if where else f"{message}."
    parts = [part for part in first["loc"] if isinstance(part, str)]
    part = PARTS[parts[-2]] if len(parts) > 1 else Experiment
    known = [field.name for field in fields(part)]
    return f"{where} is not a key of an experiment.{_suggest_name(parts[-1], known)}"


def check_names(names: Iterable[str], known: Iterable[str], what: str) -> None:
    """Raise a ValueError at a name that is not known, with the nearest one."""
    known = sorted(known)
    for name in names:
        if name not in known:
            raise ValueError(f"{what} has no {name!r}.{_suggest_name(name, known)}")


def _suggest_name(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f" Did you mean {near[0]!r}?" if near else f" Known are {', '.join(known)}."


def as_json(value: Any) -> Any:
    """Return a spec or a result as json has it: what is None is left out."""
    return to_jsonable_python(value, exclude_none=True)
