"""Read folders of results, as `comes bench` leaves them."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

import numpy as np
import numpy.typing as npt
from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict  # pydantic wants it so before Python 3.12

from comes.errors import ComesError
from comes.metrics import METRICS

FloatArray = npt.NDArray[np.float64]
# The conventions in which every repeat has its metrics.
Source = Literal["pml", "sklearn"]

# In the order of the paper's tables; methods and data sets that are not here come after by name.
METHOD_ORDER = ("bce", "ccmn", "gdf", "ctl", "mlcl", "comes-hl", "comes-rl")
DATA_ORDER = (
    "mirflickr",
    "music_emotion",
    "music_style",
    "yeastbp",
    "yeastcc",
    "yeastmf",
)


class Size(TypedDict):
    """Rows, features and labels of a data set."""

    n: int
    d: int
    q: int


class Degenerate(TypedDict):
    """Rows that the conventions of metrics treat differently."""

    rows_without_relevant: int
    rows_all_relevant: int


class Thresholds(TypedDict):
    """The Hamming loss by two more cuts of the scores."""

    zero: float
    minmax: float


class TrueRisk(TypedDict):
    """What the risks estimate, computed from true labels of the test rows."""

    hamming: float
    ranking: float


class RepeatResult(TypedDict):
    """What one fold or label seed gave."""

    pml: dict[str, float]
    sklearn: dict[str, float]
    hamming_loss: Thresholds
    risk: Annotated[list[float], Field(min_length=1)]  # of every epoch
    chosen: NotRequired[dict[str, float]]  # by a search
    true_risk: NotRequired[TrueRisk]  # results of early versions have none


@dataclass(frozen=True)
class Cell:
    """One result: a method on a data set, with all its repeats."""

    experiment: str
    data: str
    method: str
    spec: dict[str, Any]
    repeats: Annotated[list[RepeatResult], Field(min_length=1)] = field(repr=False)
    size: Size
    degenerate: Degenerate
    seconds: float
    versions: dict[str, str]
    device: str
    sweep: str = ""  # the key of the spec that the experiment varies

    @property
    def at(self) -> float | None:
        """The value of the key that the experiment varies."""
        return float(self.spec[self.sweep]) if self.sweep else None

    @property
    def name(self) -> str:
        """What a person would call it."""
        where = f", {self.sweep} {self.at:g}" if self.sweep else ""
        return f"{self.method} on {self.data}{where} ({self.experiment})"

    @property
    def test_over_train(self) -> float:
        """Rows tested on for each trained on, where repeats draw other rows; else NaN."""
        if "folds" not in self.spec:
            return math.nan  # label seeds share their rows
        n, folds = self.size["n"], int(self.spec["folds"])
        return n / folds / float(self.spec.get("train_rows", n - n / folds))

    @property
    def pairing(self) -> tuple[Any, ...]:
        """What two cells must share for their repeats to be pairs."""
        names = ("seed", "folds", "first_folds", "label_seeds", "test_share", "train_rows")
        return (self.spec["data"], len(self.repeats), *(self.spec.get(name) for name in names))

    def values(self, metric: str, source: Source = "pml") -> FloatArray:
        """Return a metric of every repeat."""
        return np.array([repeat[source][metric] for repeat in self.repeats], dtype=float)


def read_runs(
    folders: Iterable[str | Path], tasks: Mapping[str, dict[str, Any]] | None = None
) -> list[Cell]:
    """Read the results in folders, and in folders of such folders.

    Parameters
    ----------
    folders : paths
        As `comes bench` wrote them.
    tasks : mapping of str to dict, optional
        Only results of these tasks, by key, and how they are called: names of an experiment, data
        set, method and sweep that take the place of the stored ones.

    Returns
    -------
    cells : list of Cell
        By experiment, data set and method, in the order of the paper.
    """
    found: dict[tuple[Any, ...], tuple[Cell, Path]] = {}
    for folder in map(Path, folders):
        paths = sorted(folder.rglob("result.json")) if folder.is_dir() else []
        if tasks is not None:
            paths = [path for path in paths if path.parent.name in tasks]
        if not paths:
            raise ComesError(
                f"{folder} holds no result.json: give a folder that `comes bench` wrote."
            )
        for path in paths:
            cell = _read(path)
            if tasks is not None:
                cell = replace(cell, **tasks[path.parent.name])
            name = (cell.experiment, cell.data, cell.method, cell.at)
            if name in found and found[name][0].spec != cell.spec:
                raise ComesError(
                    f"two results are both {cell.name}: {found[name][1]} and {path}. They differ "
                    f"in {_difference(found[name][0].spec, cell.spec)}; remove one, or give the "
                    "method a label of its own."
                )
            found[name] = (cell, path)
    return sorted((cell for cell, _ in found.values()), key=_order)


def standard_deviation(values: FloatArray) -> float:
    """Return the spread over repeats, dividing by their number less one; 0 for a single one."""
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def read_errors(folders: Iterable[str | Path]) -> list[str]:
    """Return the name and the last line of the error of every task that failed."""
    found = []
    for folder in map(Path, folders):
        for path in sorted(folder.rglob("error.txt")):
            lines = path.read_text(encoding="utf-8").strip().splitlines() or ["no message"]
            found.append(f"{lines[0]}: {lines[-1]}")
    return found


def method_rank(method: str) -> tuple[int, str]:
    """Return where a method stands in a table: own methods first, COMES last."""
    base = method.split(",")[0].split(" ")[0]
    return (METHOD_ORDER.index(base) if base in METHOD_ORDER else -1, method)


def _order(cell: Cell) -> tuple[Any, ...]:
    lower = cell.data.lower()
    known = [place for place, name in enumerate(DATA_ORDER) if lower.startswith(name)]
    data = (known[0] if known else len(DATA_ORDER), cell.data)
    return (cell.experiment, data, method_rank(cell.method), cell.at or 0)


def _read(path: Path) -> Cell:
    try:
        cell = TypeAdapter(Cell).validate_json(path.read_bytes())
        needed = (cell.spec["data"]["name"], cell.spec["method"], cell.spec["settings"].items())
        complete = all(
            METRICS.keys() <= repeat["pml"].keys() & repeat["sklearn"].keys()
            for repeat in cell.repeats
        )
        if not (needed and complete and cell.name and cell.pairing and cell.test_over_train):
            raise ValueError
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise ComesError(
            f"{path} is no result of `comes bench`: remove its folder and run it again."
        ) from None
    return cell


def _difference(one: Any, other: Any) -> str:
    """Return the first place at which two specs differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            if one.get(key) != other.get(key):
                inner = _difference(one.get(key), other.get(key))
                return f"{key}.{inner}" if isinstance(one.get(key), dict) else f"{key} ({inner})"
    return f"{one} and {other}"
