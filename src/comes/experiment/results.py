"""What decides a result: equal specs give equal numbers and have the same key.

A field that is None is left out of the json, so that a new optional field changes no key.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from comes.errors import ComesError
from comes.files import replacing_file
from comes.generation import Case
from comes.metrics import Convention

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


@dataclass(frozen=True)
class Names:
    """What a task is called in tables; the same work may have other names in other experiments.

    Examples
    --------
    >>> Names("smoke", "scenes, case b", "ours").sweep is None
    True
    """

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
    """Rows, features and labels of a data set.

    Examples
    --------
    >>> Size(n=2000, d=256, q=10).q
    10
    """

    n: int
    d: int  # 0 for images
    q: int


@dataclass(frozen=True)
class Degenerate:
    """How many rows and labels the conventions of metrics treat differently.

    Examples
    --------
    >>> Degenerate(rows_without_relevant=5, rows_all_relevant=1).rows_all_relevant
    1
    """

    rows_without_relevant: int
    rows_all_relevant: int
    labels_without_relevant: int | None = None


@dataclass(frozen=True)
class HammingByCut:
    """The Hamming loss by two more ways to cut scores.

    Examples
    --------
    >>> HammingByCut(zero=0.2, minmax=0.3).zero
    0.2
    """

    zero: float
    minmax: float  # halfway between the least and the greatest score of a row


@dataclass(frozen=True)
class TrueRisk:
    """What the paper's risks estimate, computed from the true labels of the test rows.

    Examples
    --------
    >>> TrueRisk(hamming=0.4, ranking=1.5).ranking
    1.5
    """

    hamming: float
    ranking: float


@dataclass(frozen=True, kw_only=True)
class RepeatResult:
    """The numbers of one fold or label seed.

    Examples
    --------
    >>> cuts = HammingByCut(zero=0.2, minmax=0.3)
    >>> metrics = {"coverage": 0.4}
    >>> RepeatResult(pml=metrics, sklearn=metrics, hamming_loss=cuts, risk=(1.0, 0.9)).risk
    (1.0, 0.9)
    """

    pml: Mapping[str, float]  # metrics by name, in the paper's convention
    sklearn: Mapping[str, float]  # the same as scikit-learn defines them
    hamming_loss: HammingByCut  # by two more ways to cut scores: zero, minmax
    true_risk: TrueRisk | None = None  # by the true labels; not in results of early versions
    risk: tuple[float, ...]  # of every epoch
    seconds: float | None = None  # of the training
    chosen: Mapping[str, int | float] | None = None  # settings that a search found
    tied: int | None = None  # how many other settings of the search were level with them
    edges: tuple[str, ...] | None = None  # in what nothing was tried beyond them
    held_out: tuple[float, ...] | None = None  # score of held-out rows after every epoch
    by_label: Mapping[str, tuple[float | None, ...]] | None = None  # metrics of every label

    def __post_init__(self) -> None:
        if not self.risk:
            raise ValueError("a repeat has the risk of at least one epoch")


@dataclass(frozen=True, kw_only=True)
class Result:
    """A task with the numbers of its repeats, and where they were computed.

    Examples
    --------
    >>> from comes.experiment.results import DataSpec
    >>> repeats = tuple(
    ...     RepeatResult(
    ...         pml={"coverage": value},
    ...         sklearn={"coverage": value},
    ...         hamming_loss=HammingByCut(zero=0.2, minmax=0.3),
    ...         risk=(1.0, 0.9),
    ...     )
    ...     for value in (0.4, 0.6)
    ... )
    >>> result = Result(
    ...     names=Names("smoke", "scenes", "plain BCE"),
    ...     spec=TaskSpec(data=DataSpec(name="scenes"), method="bce", folds=2),
    ...     size=Size(n=2000, d=256, q=10),
    ...     degenerate=Degenerate(rows_without_relevant=0, rows_all_relevant=0),
    ...     repeats=repeats,
    ...     seconds=1.5,
    ...     versions={"comes": "1.0"},
    ...     device="cpu",
    ... )
    >>> result.name, result.means()
    ('plain BCE on scenes (smoke)', {'coverage': 0.5})
    >>> result.values("a metric of next year")
    array([nan, nan])
    """

    names: Names  # in the file its parts: experiment, data, method, sweep
    spec: TaskSpec  # what decides the numbers; its hash names the folder
    size: Size  # n rows, d features, q labels
    degenerate: Degenerate  # rows and labels that conventions treat differently
    repeats: tuple[RepeatResult, ...] = field(repr=False)  # one for each fold or label seed
    seconds: float  # of all repeats
    versions: Mapping[str, str]  # of comes, torch, numpy and python
    device: str  # that torch computed on
    # What results of early versions lack, and where it cannot be measured: None.
    label_names: tuple[str, ...] | None = field(default=None, repr=False)  # in the order of columns
    peak_memory: float | None = None  # of the process, in MiB
    peak_device_memory: float | None = None  # of a GPU, in MiB

    def __post_init__(self) -> None:
        if not self.repeats:
            raise ValueError("a result has at least one repeat")
        if self.names.sweep is not None and self.at is None:
            raise ValueError(f"what varies, {self.names.sweep}, is not in the spec")

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
        found: list[Mapping[str, float]] = [getattr(r, convention) for r in self.repeats]
        if any(metric not in metrics for metrics in found):
            return np.full(len(found), math.nan)
        return np.array([metrics[metric] for metrics in found], dtype=float)

    def label_means(self, metric: str) -> npt.NDArray[np.float64] | None:
        """Return a metric of every label, (n_labels,), the mean of the repeats that have it."""
        found = [None if r.by_label is None else r.by_label.get(metric) for r in self.repeats]
        if self.label_names is None or any(values is None for values in found):
            return None
        table = np.array(found, dtype=float)  # (n_repeats, n_labels)
        known = np.isfinite(table)
        total = np.where(known, table, 0).sum(axis=0)
        return np.asarray(total / np.where(known.any(axis=0), known.sum(axis=0), np.nan))

    def means(self) -> dict[str, float]:
        """Return the mean over repeats of every metric that all of them have."""
        every = [name for name in self.repeats[0].pml if all(name in r.pml for r in self.repeats)]
        return {name: float(self.values(name).mean()) for name in every}


RESULT_FILE = "result.json"  # is there if and only if the task has finished
ERROR_FILE = "error.txt"  # the name of a task that failed, and its traceback
NAMES = tuple(part.name for part in fields(Names))


def write_result(result: Result, folder: str | Path) -> Path:
    """Write ``result.json`` into a folder, whole or not at all.

    Parameters
    ----------
    result : Result
    folder : path
        An existing folder; `comes bench` names it by the key of the spec.

    Returns
    -------
    path : Path

    Examples
    --------
    >>> import tempfile
    >>> cuts, coverage = HammingByCut(zero=0.2, minmax=0.3), {"coverage": 0.4}
    >>> repeat = RepeatResult(pml=coverage, sklearn=coverage, hamming_loss=cuts, risk=(1.0,))
    >>> result = Result(
    ...     names=Names("smoke", "scenes", "plain BCE"),
    ...     spec=TaskSpec(data=DataSpec(name="scenes"), method="bce", label_seeds=1),
    ...     size=Size(n=2000, d=256, q=10),
    ...     degenerate=Degenerate(rows_without_relevant=0, rows_all_relevant=0),
    ...     repeats=(repeat,),
    ...     seconds=1.5,
    ...     versions={"comes": "1.0"},
    ...     device="cpu",
    ... )
    >>> path = write_result(result, tempfile.mkdtemp())
    >>> path.name, read_results([path.parent]) == [result]
    ('result.json', True)
    """
    values = as_json(result)
    names = values.pop("names") | {"sweep": result.names.sweep or ""}  # files say "" for none
    path = Path(folder) / RESULT_FILE
    with replacing_file(path) as temporary:
        text = json.dumps({"key": result.spec.key} | names | values)
        temporary.write_text(f"{text}\n", encoding="utf-8")
    return path


def read_results(
    folders: Iterable[str | Path], names: Mapping[str, Names] | None = None
) -> list[Result]:
    """Read the results in folders, and in folders of such folders.

    Parameters
    ----------
    folders : paths
        As `comes bench` wrote them.
    names : mapping of str to Names, optional
        Only results of these keys, under these names in the place of the stored ones.

    Returns
    -------
    results : list of Result
        The same work under the same names appears once.

    Examples
    --------
    See `write_result`; a folder without results is an error:

    >>> import tempfile
    >>> read_results([tempfile.mkdtemp()])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    comes.errors.ComesError: ... holds no result.json: give a folder that `comes bench` wrote.
    """
    found: dict[tuple[Names, float | None], tuple[Result, Path]] = {}
    for folder in map(Path, folders):
        paths = sorted(folder.rglob(RESULT_FILE)) if folder.is_dir() else []
        if names is not None:
            paths = [path for path in paths if path.parent.name in names]
        if not paths:
            raise ComesError(
                f"{folder} holds no {RESULT_FILE}: give a folder that `comes bench` wrote."
            )
        for path in paths:
            result = _read_result(path)
            if names is not None:
                result = replace(result, names=names[path.parent.name])
            place = (replace(result.names, sweep=None), result.at)
            if place in found and found[place][0].spec != result.spec:
                raise ComesError(_describe_clash(*found[place], result, path))
            found[place] = (result, path)
    return [result for result, _ in found.values()]


def read_errors(folders: Iterable[str | Path]) -> list[str]:
    r"""Return the name and the last line of the error of every task that failed.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> text = "bce on scenes\nTraceback\nComesError: epochs must be more\n"
    >>> _ = (folder / "error.txt").write_text(text)
    >>> read_errors([folder])
    ['bce on scenes: ComesError: epochs must be more']
    """
    found = []
    for folder in map(Path, folders):
        for path in sorted(folder.rglob(ERROR_FILE)):
            lines = path.read_text(encoding="utf-8").strip().splitlines() or ["no message"]
            found.append(f"{lines[0]}: {lines[-1]}")
    return found


def _read_result(path: Path) -> Result:
    """Return the result in a file, checked."""
    try:
        values = json.loads(path.read_bytes())
        names = {name: values[name] for name in NAMES if values.get(name) != ""}
        result: Result = _make_adapter().validate_python(values | {"names": names})
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise ComesError(
            f"{path} is not a result of `comes bench`: remove its folder and run it again."
        ) from None
    if result.spec.key != hash_json(values["spec"]):
        raise ComesError(
            f"{path} has a spec that this version of comes cannot read: "
            f"{_find_difference(values['spec'], as_json(result.spec))}. "
            "Use the version that wrote it, or remove its folder and run it again."
        )
    return result


@cache
def _make_adapter() -> Any:
    """Return what checks results. pydantic is imported late, as tasks run without it."""
    from pydantic import TypeAdapter

    return TypeAdapter(Result)


def _describe_clash(one: Result, one_path: Path, other: Result, other_path: Path) -> str:
    difference = _find_difference(as_json(one.spec), as_json(other.spec))
    return (
        f"two results are both {other.name}: {one_path} and {other_path}. They differ in "
        f"{difference}; remove one, or give the method its own label."
    )


def _find_difference(one: Any, other: Any) -> str:
    """Return the first place at which two specs differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            if one.get(key) != other.get(key):
                inner = _find_difference(one.get(key), other.get(key))
                return f"{key}.{inner}" if isinstance(one.get(key), dict) else f"{key} ({inner})"
    return f"{one} and {other}"
