"""Results of tasks: one ``result.json`` each, in a folder that the key of its spec names."""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import Field, TypeAdapter, ValidationError, model_validator
from pydantic.dataclasses import dataclass

from comes.errors import ComesError
from comes.experiment.config import SweepKey, TaskSpec, as_json
from comes.files import replacing_file
from comes.metrics import Convention

RESULT_FILE = "result.json"  # is there if and only if the task has finished
ERROR_FILE = "error.txt"  # the name of a task that failed, and its traceback


@dataclass(frozen=True)
class Names:
    """What a task is called in tables; the same work may have other names in other experiments."""

    experiment: str
    data: str
    method: str
    sweep: SweepKey | None = None  # the field of the spec that the experiment varies

    def title(self, spec: TaskSpec) -> str:
        """Return what a person would call the task; it is unique within an experiment."""
        at = "" if self.sweep is None else f", {self.sweep} {spec.at(self.sweep):g}"
        return f"{self.method} on {self.data}{at}"


@dataclass(frozen=True)
class Size:
    """Rows, features and labels of a data set."""

    n: int
    d: int  # 0 for images
    q: int


@dataclass(frozen=True)
class Degenerate:
    """How many rows and labels the conventions of metrics treat differently."""

    rows_without_relevant: int
    rows_all_relevant: int
    labels_without_relevant: int | None = None


@dataclass(frozen=True)
class HammingByCut:
    """The Hamming loss by two more ways to cut scores."""

    zero: float
    minmax: float  # halfway between the least and the greatest score of a row


@dataclass(frozen=True)
class TrueRisk:
    """What the paper's risks estimate, computed from the true labels of the test rows."""

    hamming: float
    ranking: float


@dataclass(frozen=True, kw_only=True)
class RepeatResult:
    """The numbers of one fold or label seed."""

    pml: Mapping[str, float]  # metrics by name, in the paper's convention
    sklearn: Mapping[str, float]  # the same as scikit-learn defines them
    hamming_loss: HammingByCut  # by two more ways to cut scores: zero, minmax
    true_risk: TrueRisk | None = None  # by the true labels; not in results of early versions
    risk: tuple[float, ...] = Field(min_length=1)  # of every epoch
    seconds: float | None = None  # of the training
    chosen: Mapping[str, Any] | None = None  # settings that a search chose
    tied: int | None = None  # how many other settings of the search were level with them
    edges: tuple[str, ...] | None = None  # in what nothing was tried beyond them
    held_out: tuple[float, ...] | None = None  # score of held-out rows after every epoch
    by_label: Mapping[str, tuple[float | None, ...]] | None = None  # metrics of every label


@dataclass(frozen=True, kw_only=True)
class Result:
    """A task with the numbers of its repeats, and where they were computed."""

    names: Names  # in the file its parts: experiment, data, method, sweep
    spec: TaskSpec  # what decides the numbers; its hash names the folder
    size: Size  # n rows, d features, q labels
    degenerate: Degenerate  # rows and labels that conventions treat differently
    repeats: tuple[RepeatResult, ...] = Field(min_length=1, repr=False)  # one for each
    seconds: float  # of all repeats
    versions: Mapping[str, str]  # of comes, torch, numpy and python
    device: str  # that torch computed on
    # What results of early versions lack, and where it cannot be measured: None.
    label_names: tuple[str, ...] | None = field(default=None, repr=False)  # in the order of columns
    peak_memory: float | None = None  # of the process, in MiB
    peak_device_memory: float | None = None  # of a GPU, in MiB

    @model_validator(mode="after")
    def _check_sweep(self) -> "Result":
        if self.names.sweep is not None and self.at is None:
            raise ValueError(f"what varies, {self.names.sweep}, is not in the spec")
        return self

    @property
    def at(self) -> float | None:
        """The value of what the experiment varies."""
        return self.spec.at(self.names.sweep)

    @property
    def name(self) -> str:
        """What a person would call it."""
        return f"{self.names.title(self.spec)} ({self.names.experiment})"

    @property
    def test_over_train(self) -> float:
        """Rows tested on for each row trained on; NaN for label seeds, which share their rows."""
        if self.spec.folds is None:
            return math.nan
        n, folds = self.size.n, self.spec.folds
        n_train = n - n / folds if self.spec.train_rows is None else float(self.spec.train_rows)
        return n / folds / n_train

    @property
    def pairing(self) -> tuple[Any, ...]:
        """What two results must share for their repeats to be pairs."""
        spec = self.spec
        rows = (spec.seed, spec.folds, spec.first_folds, spec.label_seeds, spec.test_share)
        return (spec.data, len(self.repeats), *rows, spec.train_rows)

    def values(self, metric: str, convention: Convention = "pml") -> npt.NDArray[np.float64]:
        """Return a metric of every repeat, (n_repeats,); all NaN if one of them has none."""
        metrics: list[Mapping[str, float]] = [getattr(r, convention) for r in self.repeats]
        if any(metric not in of_repeat for of_repeat in metrics):
            return np.full(len(metrics), math.nan)
        return np.array([of_repeat[metric] for of_repeat in metrics], dtype=float)

    def label_means(self, metric: str) -> "pd.Series[float] | None":
        """Return a metric of every label, the mean of the repeats that have it."""
        rows = [(repeat.by_label or {}).get(metric) for repeat in self.repeats]
        if self.label_names is None or None in rows:
            return None
        return pd.DataFrame(rows, columns=list(self.label_names), dtype=float).mean()


RESULTS = TypeAdapter(Result)


def write_result(result: Result, folder: str | Path) -> Path:
    """Write ``result.json`` into an existing folder, whole or not at all; return its path."""
    values = as_json(result)
    names = values.pop("names") | {"sweep": result.names.sweep or ""}  # files say "" for none
    path = Path(folder) / RESULT_FILE
    with replacing_file(path) as temporary:
        text = json.dumps({"key": result.spec.key} | names | values)
        temporary.write_text(f"{text}\n", encoding="utf-8")
    return path


def read_results(folders: Iterable[str | Path]) -> list[Result]:
    """Read the results in folders, and in folders of such folders.

    The same work under the same names appears once.
    """
    read: dict[tuple[Names, float | None], tuple[Result, Path]] = {}
    for folder in map(Path, folders):
        paths = sorted(folder.rglob(RESULT_FILE)) if folder.is_dir() else []
        if not paths:
            raise ComesError(
                f"{folder} holds no {RESULT_FILE}: give a folder that `comes bench` wrote."
            )
        for path in paths:
            result = read_result(path)
            place = (replace(result.names, sweep=None), result.at)
            other, other_path = read.get(place, (result, path))
            if other.spec != result.spec:
                specs = [as_json(other.spec), as_json(result.spec)]
                one, two = pd.json_normalize(specs).astype(str).to_dict("records")
                different = sorted(str(key) for key in one if one[key] != two[key])
                raise ComesError(
                    f"two results are both {result.name}: {other_path} and {path}. They differ in "
                    f"{', '.join(different)}; remove one, or give the method its own label."
                )
            read[place] = (result, path)
    return [result for result, _ in read.values()]


def read_errors(folders: Iterable[str | Path]) -> list[str]:
    """Return the name and the last line of the error of every task that failed."""
    errors = []
    for folder in map(Path, folders):
        for path in sorted(folder.rglob(ERROR_FILE)):
            lines = path.read_text(encoding="utf-8").strip().splitlines() or ["no message"]
            errors.append(f"{lines[0]}: {lines[-1]}")
    return errors


def read_result(path: Path) -> Result:
    """Return the result in a file, checked."""
    try:
        values = json.loads(path.read_bytes())
        names = {part.name: values[part.name] for part in fields(Names)}
        names["sweep"] = names["sweep"] or None
        result = RESULTS.validate_python(values | {"names": names})
        if result.spec.key != values["key"]:
            raise ValueError("the spec is not the one that the result was written with")
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        mistakes: list[Any] = error.errors() if isinstance(error, ValidationError) else [{}]
        if all(mistake.get("type") == "unexpected_keyword_argument" for mistake in mistakes):
            unknown = ".".join(map(str, mistakes[0]["loc"][1:]))
            raise ComesError(
                f"{path} has a spec that this version of comes cannot read: {unknown}. Use the "
                "version that wrote it, or remove its folder and run it again."
            ) from None
        raise ComesError(
            f"{path} is not a result of `comes bench`: remove its folder and run it again."
        ) from None
    return result
