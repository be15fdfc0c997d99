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
import hashlib
import itertools
import tomllib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from comes.datasets.options import as_options
from comes.errors import ComesError
from comes.estimator import CandidateClassifier
from comes.experiment.results import (
    AnswerSpec,
    DataSpec,
    Names,
    SearchCriterion,
    SearchSpec,
    Sees,
    SweepKey,
    TaskSpec,
)
from comes.experiment.tasks import Task
from comes.flat_settings import flat_names
from comes.generation import Case
from comes.images import ImageClassifier
from comes.methods import METHODS

Share = Annotated[float, Field(ge=0, le=1)]


class Strict(BaseModel):
    """A part of the file; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class AnswerChoice(Strict):
    """How answers are drawn from true labels, as `comes.generation.simulate_answers` does."""

    asked_rate: Share = 0.1  # how often a pair of row and label is asked about
    no_rate: Share = 0.8  # how often an irrelevant pair is called no
    yes_rate: Share = 0.8  # how often a relevant pair is called yes
    mistake_rate: Share = 0.0  # how often a sure answer is wrong
    doubt_strength: float = Field(0.0, allow_inf_nan=False)  # how far features decide on maybe
    asked_strength: float = Field(0.0, allow_inf_nan=False)  # how far they decide what is asked
    people: dict[str, tuple[Share, Share]] | None = None  # their own rates of no and of yes
    people_per_pair: int | None = Field(None, ge=1)  # how many are asked about the same pair

    @model_validator(mode="after")
    def _check_people(self) -> Self:
        if self.people_per_pair is not None and self.people_per_pair > len(self.people or {}):
            raise ValueError(f"people_per_pair is {self.people_per_pair}: name as many people")
        return self

    @property
    def title(self) -> str:
        """What was asked and said, in tables."""
        said = {"asked": self.asked_rate, "no": self.no_rate, "yes": self.yes_rate}
        others = {
            "mistakes": self.mistake_rate,
            "doubt strength": self.doubt_strength,
            "asked strength": self.asked_strength,
        }
        if self.people is not None:
            said = {"asked": self.asked_rate, "people": len(self.people)}
        said |= {name: value for name, value in others.items() if value}
        return ", ".join(f"{name} {value:g}" for name, value in said.items())


class DataChoice(Strict):
    """A data set, and where its candidates or answers come from."""

    name: str  # of `comes datasets`, "scenes", or the path of a file
    case: Case | None = None  # None: the data set comes with candidates, or answers are drawn
    rate: float | None = Field(None, ge=0, le=1)  # of the case, as `comes generate --rate`
    test: str | None = None  # the data set to test on; by default rows of this one
    rows: int | None = Field(None, ge=10)  # of "scenes"; 2000 by default
    read: dict[str, Any] | None = None  # how a file is read: fields of a ReadOptions
    answers: AnswerChoice | None = None  # None: those of the experiment
    label: str | None = Field(None, min_length=1)  # in tables; by default name, case and rate

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


class MethodChoice(Strict):
    """A method with its own settings."""

    method: str  # by name, or "FILE.py:FUNCTION", the user's own risk
    label: str | None = Field(None, min_length=1)  # in tables; by default the method
    class_prior: Literal["true", "estimated"] | None = None  # None: that of the experiment
    answer_rates: Literal["true", "estimated"] | None = None  # None: that of the experiment
    sees: Sees | None = None  # None: all answers where they are drawn, else candidates
    training: Literal["default"] | None = None  # None: as published
    settings: dict[str, Any] = {}  # parameters of CandidateClassifier, or of ImageClassifier

    @field_validator("method")
    @classmethod
    def _check_method(cls, method: str) -> str:
        if ":" not in method:
            _check_names([method], set(METHODS), "method")
        return method

    @property
    def name(self) -> str:
        """Name in tables."""
        return self.method if self.label is None else self.label


class Search(Strict):
    """A small budget for each method, spent on what was said about held-out rows only."""

    learning_rate: tuple[float, ...] = Field(min_length=1)  # values to try
    epochs: tuple[int, ...] = Field(min_length=1)  # values to try
    held_out: float = Field(0.2, gt=0, lt=1)  # share of the training rows
    criterion: SearchCriterion | Literal["trained_risk"] = "log_likelihood"  # to choose by
    extend: bool = True  # beyond the edges of the grid


class Sweep(Strict):
    """One key of the experiment, run at several values."""

    key: SweepKey  # what varies
    values: list[float] = Field(min_length=2)  # that it takes


class Experiment(Strict):
    """What is to be run.

    Examples
    --------
    >>> values = {"name": "tiny", "data": [{"name": "scenes"}], "methods": [{"method": "bce"}]}
    >>> Experiment.model_validate(values | {"folds": 3}).class_prior
    'true'
    """

    name: str  # of the folder of results, runs/NAME
    data: list[DataChoice] = Field(min_length=1)  # `[[data]]`, one for each data set
    methods: list[MethodChoice] = Field(min_length=1)  # `[[methods]]`, one for each method
    folds: int | None = Field(None, ge=2)  # repeated over the test rows of folds
    first_folds: int | None = Field(None, ge=1)  # only so many of them
    label_seeds: int | None = Field(None, ge=1)  # or over seeds of candidates, one test set
    test_share: float = Field(0.3, gt=0, lt=1)  # of rows, with label_seeds
    seed: int = 0  # of folds, candidates and trainings
    class_prior: Literal["true", "estimated"] = "true"  # what methods know of it
    answers: AnswerChoice | None = None  # for data without a case
    answer_rates: Literal["true", "estimated"] = "estimated"  # what methods know of them
    prior_noise: float = Field(0.0, ge=0)  # error that is added to the class priors
    flood: float | None = Field(None, ge=0)  # beta, in units of the floor of the ranking risk
    train_rows: int | None = Field(None, ge=1)  # of each repeat; all by default
    images: Literal[True] | None = None  # the data are images, and settings of ImageClassifier
    settings: dict[str, Any] = {}  # of CandidateClassifier, for all methods
    search: Search | None = None  # `[search]`: choose settings for each method
    sweep: Sweep | None = None  # `[sweep]`: run it at several values

    @model_validator(mode="after")
    def _check_settings(self) -> Self:
        classifier = (ImageClassifier if self.images else CandidateClassifier)()
        known = flat_names(classifier.get_params(deep=False))
        for where, settings in (
            ("settings", self.settings),
            *((f"methods.{k}.settings", m.settings) for k, m in enumerate(self.methods)),
        ):
            _check_names(settings, known - {"method"}, where)
        if self.images and any(method.training for method in self.methods):
            raise ValueError("training is for tables; images have the settings of ImageClassifier")
        if self.images and (self.search is not None or self.label_seeds is None):
            raise ValueError("images are repeated over label_seeds, and have no search")
        return self

    @model_validator(mode="after")
    def _check_sweep(self) -> Self:
        if self.sweep is not None:
            for value in self.sweep.values:
                values = self.model_dump(exclude={"sweep"}) | {self.sweep.key: value}
                Experiment.model_validate(values)
        return self

    @model_validator(mode="after")
    def _check_repeats(self) -> Self:
        if (self.folds is None) == (self.label_seeds is None):
            raise ValueError("give either folds or label_seeds")
        if self.label_seeds is None and any(data.test is not None for data in self.data):
            raise ValueError("data.test, a separate test set, needs label_seeds")
        drawn = [data.case is not None or data.answers is not None for data in self.drawn_data]
        if self.label_seeds is not None and not all(drawn):
            raise ValueError("label_seeds need a case for every data set, or answers")
        return self

    @model_validator(mode="after")
    def _check_numbers(self) -> Self:
        if self.first_folds is not None and self.first_folds > (self.folds or 0):
            raise ValueError(f"first_folds must be at most folds, {self.folds or 0}")
        if self.name in ("", ".", "..") or set(self.name) & set("/\\"):
            raise ValueError(
                f"name must be the name of a folder, without / or \\; got {self.name!r}"
            )
        return self

    @model_validator(mode="after")
    def _check_answers(self) -> Self:
        if any(data.case is not None and data.answers is not None for data in self.data):
            raise ValueError("a data set has a case or answers, not both")
        sees_answers = any(method.sees in ("all", "no_maybe") for method in self.methods)
        if sees_answers and any(data.case is not None for data in self.data):
            raise ValueError("data of a case are candidates; sees needs answers")
        return self

    @property
    def drawn_data(self) -> list[DataChoice]:
        """The data sets, with the answers of the experiment where they have neither."""
        if self.answers is None:
            return self.data
        given = {"answers": self.answers}
        return [
            data if data.case or data.answers else data.model_copy(update=given)
            for data in self.data
        ]


def read_experiment(path: str | Path) -> Experiment:
    r"""Read an experiment from a TOML file; an error names the place and the key that was meant.

    Parameters
    ----------
    path : path

    Returns
    -------
    experiment : Experiment
        See `tasks_of`.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "tiny.toml"
    >>> text = "name='tiny'\nfolds=3\n[[data]]\nname='scenes'\n[[methods]]\nmethod='bce'\n"
    >>> _ = file.write_text(text)
    >>> read_experiment(file).folds
    3
    """
    path = Path(path)
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ComesError(f"{path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ComesError(f"{path} is not TOML: {error}.") from None
    try:
        return Experiment.model_validate(values)
    except ValidationError as error:
        raise ComesError(f"{path}: {_describe_mistake(error)}") from None


def _check_names(names: Iterable[str], known: set[str], what: str) -> None:
    for name in names:
        if name not in known:
            raise ValueError(f"{what} has no {name!r}.{_suggest_name(name, sorted(known))}")


PARTS: dict[str, type[BaseModel]] = {
    "answers": AnswerChoice,
    "data": DataChoice,
    "methods": MethodChoice,
    "search": Search,
    "sweep": Sweep,
}


def _describe_mistake(error: ValidationError) -> str:
    """Return the first mistake with its place and the nearest word that would be right."""
    mistakes = error.errors()  # an unknown key explains a missing one
    first = min(mistakes, key=lambda mistake: mistake["type"] != "extra_forbidden")
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] != "extra_forbidden":
        message = first["msg"].removeprefix("Value error, ").rstrip(".")
        return f"{where}: {message}." if where else f"{message}."
    parts = [part for part in first["loc"] if isinstance(part, str)]
    known = list(PARTS[parts[-2]].model_fields if len(parts) > 1 else Experiment.model_fields)
    return f"{where} is not a key of an experiment.{_suggest_name(parts[-1], known)}"


def _suggest_name(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f" Did you mean {near[0]!r}?" if near else f" Known are {', '.join(known)}."


def tasks_of(experiment: Experiment) -> list[Task]:
    """Return the tasks of an experiment; no two have the same name or do the same.

    Parameters
    ----------
    experiment : Experiment
        As `read_experiment` returns it.

    Returns
    -------
    tasks : list of Task

    Examples
    --------
    >>> methods = [{"method": "bce"}, {"method": "comes-hl", "label": "ours"}]
    >>> values = {"name": "tiny", "folds": 3, "data": [{"name": "scenes"}], "methods": methods}
    >>> [task.name for task in tasks_of(Experiment.model_validate(values))]
    ['bce on scenes', 'ours on scenes']
    """
    values = [None] if experiment.sweep is None else experiment.sweep.values
    tasks = [
        _make_task(experiment, data, method, value)
        for data, method, value in itertools.product(
            experiment.drawn_data, experiment.methods, values
        )
    ]
    names: dict[str, Task] = {}
    for task in tasks:
        if task.name in names or task.key in {other.key for other in names.values()}:
            raise ComesError(
                f"{experiment.name} has {task.name} twice; give one another label, or leave it out."
            )
        names[task.name] = task
    return tasks


def _make_task(
    experiment: Experiment, data: DataChoice, method: MethodChoice, value: float | None
) -> Task:
    """Return the task of a method on a data set, at a value of the sweep if there is one."""
    search, sweep = experiment.search, experiment.sweep
    rates = method.answer_rates or experiment.answer_rates
    spec = TaskSpec(
        folds=experiment.folds,
        first_folds=experiment.first_folds,
        label_seeds=experiment.label_seeds,
        test_share=experiment.test_share,
        seed=experiment.seed,
        class_prior=method.class_prior or experiment.class_prior,
        prior_noise=experiment.prior_noise,
        images=experiment.images,
        search=None if search is None else _make_search_spec(search),
        data=_make_data_spec(data),
        method=method.method,
        settings=experiment.settings | method.settings,
        content=_hash_files(data.name, method.method.rpartition(":")[0]),
        flood=experiment.flood,
        train_rows=experiment.train_rows,
        sees=method.sees or (None if data.answers is None else "all"),
        answer_rates="true" if rates == "true" else None,
        training=method.training,
    )
    varied: dict[str, Any] = {} if sweep is None else {sweep.key: value}
    names = Names(experiment.name, data.title, method.name, None if sweep is None else sweep.key)
    return Task(names, replace(spec, **varied))


def _make_data_spec(data: DataChoice) -> DataSpec:
    """Return what of a data set decides a result."""
    answers = None if data.answers is None else AnswerSpec(**data.answers.model_dump())
    return DataSpec(**data.model_dump(exclude={"label", "answers"}), answers=answers)


def _make_search_spec(search: Search) -> SearchSpec:
    """Return what of a search decides a result; what is left out is as it was in early results."""
    kept = search.model_dump(include={"learning_rate", "epochs", "held_out"})
    if search.criterion == "trained_risk":
        return SearchSpec(**kept)
    return SearchSpec(**kept, criterion=search.criterion, extend=True if search.extend else None)


def _hash_files(*names: str) -> str | None:
    """Return a hash of the user's own files, so that a task is run again when they change."""
    files = [path for path in map(Path, names) if path.is_file()]
    hashes = [hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in files]
    return "".join(hashes) or None
