"""One result: a method on a data set, with the numbers of all its repeats."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from comes.metrics import Convention
from comes.results.task_spec import SweepKey, TaskSpec


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
    >>> from comes.results import DataSpec
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
