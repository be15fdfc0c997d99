"""Numbers, flags, categories and dates of a table as features: learned once, then applied.

A part knows one column. `Part.spec` writes it as json and arrays, `Part.restore` reads it.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from sklearn.preprocessing import OneHotEncoder

from comes.columns.column_kinds import Column
from comes.columns.raw_cells import (
    Cells,
    FloatArray,
    is_stored_as_dates,
    is_stored_as_numbers,
    read_dates,
    read_flags,
    read_numbers,
    read_words,
)
from comes.errors import listed

Arrays = dict[str, npt.NDArray[Any]]

MOST_LEVELS = 200
DAY = pd.Timedelta(days=1)


class Encoded(NamedTuple):
    """Features of a column, (n, k), and what is to be said about them, if anything."""

    matrix: Any  # float32, dense or CSR
    note: str | None = None


@dataclass(frozen=True)
class Part:
    """What was learned of a column, to make features of its cells."""

    kind: ClassVar[str]

    column: str

    @classmethod
    def fit(cls, column: Column, cells: Cells) -> Self:
        """Learn what the features need."""
        raise NotImplementedError

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        raise NotImplementedError

    def encode(self, cells: Cells) -> Encoded:
        """Return the features of some cells."""
        raise NotImplementedError

    def spec(self) -> tuple[dict[str, Any], Arrays]:
        """Return what json can hold, and arrays."""
        return {"kind": self.kind, **asdict(self)}, {}

    @classmethod
    def restore(cls, spec: dict[str, Any], arrays: Arrays) -> Self:
        """Return the part that `spec` wrote."""
        return cls(**{name: value for name, value in spec.items() if name != "kind"})


@dataclass(frozen=True)
class NumberPart(Part):
    """A number, less its mean, over its standard deviation; the median where it is missing."""

    kind: ClassVar[str] = "number"

    median: float
    mean: float
    scale: float
    marks_missing: bool
    decimal: str = "."

    @classmethod
    def fit(cls, column: Column, cells: Cells) -> Self:
        """Learn the median, the mean and the deviation."""
        decimal = column.form or "."
        values = read_numbers(cells, decimal, column.name)
        missing = np.isnan(values)
        median = float(np.median(values[~missing])) if not missing.all() else 0.0
        filled = np.where(missing, median, values)
        mean, scale = _measure(filled)
        return cls(column.name, median, mean, scale, bool(missing.any()), decimal)

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        return [self.column, *_name_missing(self)]

    def encode(self, cells: Cells) -> Encoded:
        """Return the features of some cells."""
        values = read_numbers(cells, self.decimal, self.column)
        missing = np.isnan(values)
        scaled = (np.where(missing, self.median, values) - self.mean) / self.scale
        stray = missing & ~read_missing(cells)
        return Encoded(_stack([scaled], missing, self.marks_missing), _note(self, stray, "numbers"))


@dataclass(frozen=True)
class FlagPart(Part):
    """True and false as 1 and 0; the commoner one where it is missing."""

    kind: ClassVar[str] = "boolean"

    common: float
    marks_missing: bool

    @classmethod
    def fit(cls, column: Column, cells: Cells) -> Self:
        """Learn which is commoner."""
        values = read_flags(cells)
        missing = np.isnan(values)
        common = 0.0 if missing.all() else float(values[~missing].mean() > 0.5)
        return cls(column.name, common, bool(missing.any()))

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        return [self.column, *_name_missing(self)]

    def encode(self, cells: Cells) -> Encoded:
        """Return the features of some cells."""
        values = read_flags(cells)
        missing = np.isnan(values)
        filled = np.where(missing, self.common, values)
        stray = missing & ~read_missing(cells)
        note = _note(self, stray, "true or false")
        return Encoded(_stack([filled], missing, self.marks_missing), note)


@dataclass(frozen=True)
class CategoryPart(Part):
    """A feature for each value that is not rare, one for all that are, one for missing ones."""

    kind: ClassVar[str] = "category"

    levels: Sequence[str]
    has_rare: bool
    marks_missing: bool

    @classmethod
    def fit(cls, column: Column, cells: Cells) -> Self:
        """Learn which values there are: the commonest, each in at least 1 % of up to 500 rows."""
        words = read_words(cells)
        counts = words.value_counts()
        least = max(1, min(5, len(words) // 100))
        kept = counts[counts >= least].index[:MOST_LEVELS]
        levels = sorted(map(str, kept))
        return cls(column.name, levels, len(levels) < len(counts), bool(words.isna().any()))

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        rare = [f"{self.column} is rare"] if self.has_rare else []
        return [*(f"{self.column} = {level}" for level in self.levels), *rare, *_name_missing(self)]

    def encode(self, cells: Cells) -> Encoded:
        """Return the features of some cells."""
        words, n_levels = read_words(cells), len(self.levels)
        codes = pd.Index(np.array(self.levels, dtype=object)).get_indexer(words)
        missing, other = words.isna().to_numpy(), codes < 0
        codes = np.where(other & self.has_rare, n_levels, codes)
        codes = np.where(missing, n_levels + self.has_rare if self.marks_missing else -1, codes)
        encoder = OneHotEncoder(
            categories=[np.arange(len(self.names))], handle_unknown="ignore", dtype=np.float32
        )
        matrix = encoder.fit([[0]]).transform(codes[:, None])
        return Encoded(sparse.csr_array(matrix), self._note_unseen(words[other & ~missing]))

    def _note_unseen(self, words: Cells) -> str | None:
        """Return what is said about values that training did not see, if it is known."""
        if self.has_rare or not len(words):  # then they may have been rare
            return None
        shown = listed(sorted(map(str, words.unique())), most=3)
        return (
            f"column {self.column!r} holds values that training did not see in {len(words)} rows "
            f"({shown}); they count as none of the known ones"
        )


@dataclass(frozen=True)
class DatePart(Part):
    """Days since the first date, standardised, and where in year, month, week and day it is."""

    kind: ClassVar[str] = "date"

    form: str | None
    first: str
    median: float
    mean: float
    scale: float
    cycles: Sequence[str]
    marks_missing: bool

    @classmethod
    def fit(cls, column: Column, cells: Cells) -> Self:
        """Learn the first and the middle date, and which parts of dates vary."""
        moments = read_dates(cells, column.form)
        known = moments[moments.notna()]
        first = known.min() if len(known) else pd.Timestamp(0)
        days = ((known - first) / DAY).to_numpy(dtype=np.float64)
        median = float(np.median(days)) if len(days) else 0.0
        missing = moments.isna().to_numpy()
        filled = np.full(len(moments), median)
        filled[~missing] = days
        mean, scale = _measure(filled)
        cycles = [name for name in CYCLES if _measure_cycle(name, known).std() > 0]
        is_marked = bool(missing.any())
        return cls(column.name, column.form, str(first), median, mean, scale, cycles, is_marked)

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        turns = [f"{self.column}: {name} {of}" for name in self.cycles for of in ("sin", "cos")]
        return [f"{self.column}: days", *turns, *_name_missing(self)]

    def encode(self, cells: Cells) -> Encoded:
        """Return the features of some cells."""
        moments, first = read_dates(cells, self.form), pd.Timestamp(self.first).as_unit("us")
        missing = moments.isna().to_numpy()
        filled = moments.fillna(first + self.median * DAY)
        days = ((filled - first) / DAY).to_numpy(dtype=np.float64)
        columns = [(days - self.mean) / self.scale]
        for name in self.cycles:
            angle = 2 * np.pi * _measure_cycle(name, filled)
            columns += [np.sin(angle), np.cos(angle)]
        stray = missing & ~read_missing(cells)
        what = "dates" if self.form is None else f"dates of the form {self.form}"
        return Encoded(_stack(columns, missing, self.marks_missing), _note(self, stray, what))


CYCLES = ("year", "month", "week", "day")


def _measure_cycle(name: str, moments: Cells) -> FloatArray:
    """Return where in a year, month, week or day moments are, in [0, 1)."""
    of = moments.dt
    found = {
        "year": lambda: (of.day_of_year - 1) / 366,
        "month": lambda: (of.day - 1) / 31,
        "week": lambda: of.day_of_week / 7,
        "day": lambda: (of.hour + of.minute / 60) / 24,
    }[name]()
    return np.asarray(found.to_numpy(dtype=np.float64))


def read_missing(cells: Cells) -> npt.NDArray[np.bool_]:
    """Return which cells hold nothing, or a word for it."""
    if is_stored_as_numbers(cells) or is_stored_as_dates(cells):
        return np.asarray(cells.isna().to_numpy(), dtype=bool)
    return np.asarray(read_words(cells).isna().to_numpy(), dtype=bool)


def _measure(values: FloatArray) -> tuple[float, float]:
    """Return mean and standard deviation; the latter is 1 where all values are equal."""
    largest = float(np.abs(values).max()) or 1.0  # so that no square is infinite
    scaled = values / largest
    mean, deviation = float(scaled.mean()) * largest, float(scaled.std()) * largest
    return mean, deviation if deviation > 1e-12 * largest else 1.0


def _stack(
    columns: list[FloatArray], missing: npt.NDArray[np.bool_], marks_missing: bool
) -> npt.NDArray[np.float32]:
    """Return features as a matrix, with one that marks missing cells if that is wanted."""
    marks = [missing.astype(np.float64)] if marks_missing else []
    return np.stack([*columns, *marks], axis=1).astype(np.float32)


def _name_missing(part: Any) -> list[str]:
    return [f"{part.column} is missing"] if part.marks_missing else []


def _note(part: Any, stray: npt.NDArray[np.bool_], what: str) -> str | None:
    """Return what is said about cells that should be something else, if it is news."""
    n = int(stray.sum())
    if not n or part.marks_missing:
        return None
    return f"{n} cells of column {part.column!r} are not {what} and count as missing"
